"""A primary and a hot standby of it that is its page repair source; crashes; what the benchmarks of page_repair share."""
import os
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'bulk-io'))

from instance import BenchError, Instance, run  # noqa: E402
from usage import children_of  # noqa: E402


class Member(Instance):
    """An instance whose settings can be changed, and that can be killed."""

    def configure(self, lines):
        with open(os.path.join(self.pgdata, 'postgresql.conf'), 'a', encoding='utf-8') as file:
            file.write(lines + '\n')

    def reload(self):
        self._command('pg_ctl', '-s', '-D', self.pgdata, 'reload')

    def value(self, statement):
        return self._psql('-c', statement).strip()

    def wait_for(self, statement, expected, what, seconds=120):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.value(statement) == expected:
                return
            time.sleep(0.05)
        raise BenchError(f'timed out waiting for {what}')

    def pgbench(self, *arguments):
        return self._command('pgbench', '-h', self.directory, '-U', 'postgres', *arguments, 'postgres')

    def crash(self):
        """Ends all processes with SIGKILL; the postmaster is stopped first, so that it cannot start any."""
        with open(os.path.join(self.pgdata, 'postmaster.pid'), encoding='ascii') as file:
            postmaster = int(file.readline())
        os.kill(postmaster, signal.SIGSTOP)
        pids = children_of(postmaster)
        for pid in (*pids, postmaster):
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while any(alive(pid) for pid in (*pids, postmaster)):
            if time.monotonic() > deadline:
                raise BenchError('the killed instance does not end')
            time.sleep(0.02)
        self.running = False
        os.unlink(os.path.join(self.pgdata, 'postmaster.pid'))
        # its process may wait to be reaped, and would count as running
        for name in os.listdir(self.directory):
            if name.startswith('.s.PGSQL.') and name.endswith('.lock'):
                os.unlink(os.path.join(self.directory, name))


def alive(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as file:
            return file.read().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


class Pair:
    """The primary has the extension and the role, the standby streams; checksums are on."""

    def __init__(self, prefix, directory, user, settings='', primary_directory=None):
        self.primary = Member(prefix, os.path.join(primary_directory or directory, 'primary'), user)
        self.standby = Member(prefix, os.path.join(directory, 'standby'), user)
        self.settings = settings

    def create(self):
        self.primary.create()
        self.primary.configure(f"""
wal_level = replica
max_wal_senders = 5
wal_keep_size = 4GB
{self.settings}""")
        self.primary.restart()
        self.primary.sql('CREATE EXTENSION page_repair; CREATE EXTENSION amcheck; CREATE ROLE page_repair LOGIN; '
                         'GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair')

    def create_standby(self):
        os.mkdir(self.standby.directory)
        self.standby.user.own(self.standby.directory)
        self.primary._command('pg_basebackup', '-h', self.primary.directory, '-U', 'postgres', '-D', self.standby.pgdata,
                              '-R', '-c', 'fast', '--no-sync')
        self.standby.configure(f"unix_socket_directories = '{self.standby.directory}'")
        self.standby.start()

    def source(self):
        return f'host={self.standby.directory} dbname=postgres user=page_repair'

    def replayed(self):
        position = self.primary.value('SELECT pg_current_wal_flush_lsn()')
        self.standby.wait_for(f"SELECT pg_last_wal_replay_lsn() >= '{position}'", 't', 'the standby to replay')

    def destroy(self):
        for member in (self.primary, self.standby):
            if os.path.isdir(member.directory):
                member.destroy()


class Count:
    """A figure that is a number with a goal: equal to it, or at least or at most it."""

    def __init__(self, name, value, unit='', goal=None, holds=None):
        self.name, self.value, self.unit, self.goal, self.holds = name, value, unit, goal, holds

    def as_dict(self):
        return {'name': self.name, 'value': self.value, 'unit': self.unit, 'goal': self.goal, 'holds': self.holds}


def print_figures(figures):
    print(f'{"figure":34}{"value":>12} {"unit":10}{"goal":>8}  holds')
    for figure in figures:
        goal = '' if figure.goal is None else str(figure.goal)
        holds = {None: '', True: 'yes', False: 'no'}[figure.holds]
        print(f'{figure.name:34}{figure.value:>12} {figure.unit:10}{goal:>8}  {holds}')


__all__ = ['BenchError', 'Count', 'Member', 'Pair', 'children_of', 'print_figures', 'run', 'shutil']
