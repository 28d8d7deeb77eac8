"""Instances that are reached by TCP."""
import socket
import time

from pair import BenchError, Member


def free_ports(count):
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def await_port(port):
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(('127.0.0.1', port)).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise BenchError(f'nobody listens on port {port}') from None
            time.sleep(0.05)


class Addressed(Member):
    """An instance with a port."""

    def __init__(self, prefix, directory, user, port):
        super().__init__(prefix, directory, user)
        self.port = port

    def _command(self, program, *arguments, environment=None):
        return super()._command(program, *arguments, environment={'PGPORT': str(self.port), **(environment or {})})
