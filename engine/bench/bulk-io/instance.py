"""Private instances of an engine build: own directory, own socket, no port."""
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile

ENGINE_TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'tools', 'engine')

# One backend does the work and nothing happens at the side; the pool is smaller than the table.
CONFIGURATION = """
listen_addresses = ''
unix_socket_directories = '{directory}'
shared_buffers = 128MB
max_wal_size = 16GB
checkpoint_timeout = 1h
autovacuum = off
maintenance_work_mem = 256MB
max_parallel_workers_per_gather = 0
max_parallel_maintenance_workers = 0
"""


class BenchError(Exception):
    """A reason to stop that a user can understand."""


class EngineUser:
    """Who runs the engine: the caller or, as root cannot, the user "floe"."""

    def __init__(self):
        self.prefix = []
        self.entry = None
        if os.getuid() != 0:
            return
        try:
            self.entry = pwd.getpwnam('floe')
        except KeyError:
            run(['useradd', '--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent',
                 '--shell', '/usr/sbin/nologin', 'floe'])
            self.entry = pwd.getpwnam('floe')
        self.prefix = ['setpriv', f'--reuid={self.entry.pw_uid}', f'--regid={self.entry.pw_gid}', '--clear-groups']

    def own(self, path):
        if self.entry:
            os.chown(path, self.entry.pw_uid, self.entry.pw_gid)


def run(command, **options):
    """Runs a command, returns its output; its error output is the error."""
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)
    if result.returncode != 0:
        raise BenchError(f'could not run "{" ".join(command[:4])} …": {result.stderr.strip() or result.stdout.strip()}')
    return result.stdout


def engine_user():
    return EngineUser()


def prefix_of(variant):
    """The prefix of a build variant, which is built if it has to be."""
    result = subprocess.run([ENGINE_TOOL, 'build', '--variant', variant], stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        raise BenchError(f'could not build the engine\'s variant "{variant}"')
    return result.stdout.strip().splitlines()[-1]


def _alive(pid):
    return os.path.exists(f'/proc/{pid}')


def _postmasters(directory):
    """Process ids of the instances that run in the directory."""
    for root, names, files in os.walk(directory):
        if 'postmaster.pid' in files:
            names.clear()
            with open(os.path.join(root, 'postmaster.pid'), encoding='utf-8') as file:
                pid = file.readline().strip()
            if pid.isdigit() and _alive(pid):
                yield int(pid)


def private_directory(parent):
    """A new directory for private instances. What a bench left there that was killed, which may be many GB, is removed."""
    for name in os.listdir(parent):
        found = re.fullmatch(r'floe-bench-(\d+)-\w+', name)
        left = os.path.join(parent, name)
        if not found or _alive(found[1]) or os.stat(left).st_uid not in (os.getuid(), getattr(engine_user().entry, 'pw_uid', -1)):
            continue
        running = list(_postmasters(left))
        if running:
            print(f'floe: a bench that was killed left instances running in {left}: processes {running}', file=sys.stderr)
            continue
        print(f'floe: removing {left}, which a bench left that was killed', file=sys.stderr)
        shutil.rmtree(left, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f'floe-bench-{os.getpid()}-', dir=parent)


class Instance:
    def __init__(self, prefix, directory, user, environment=None):
        self.prefix = prefix
        self.environment = environment or {}
        self.directory = directory
        self.pgdata = os.path.join(directory, 'pgdata')
        self.user = user
        self.running = False

    def _command(self, program, *arguments, environment=None):
        return run([*self.user.prefix, os.path.join(self.prefix, 'bin', program), *arguments],
                   cwd=self.directory, env={'PATH': '/usr/bin:/bin', 'LC_ALL': 'C', 'TZ': 'UTC', 'HOME': self.directory,
                                            **(environment or {})})

    def create(self):
        os.mkdir(self.directory)
        self.user.own(self.directory)
        self._command('initdb', '-D', self.pgdata, '-U', 'postgres', '-A', 'trust', '--no-sync', '--locale=C', '--encoding=UTF8')
        with open(os.path.join(self.pgdata, 'postgresql.conf'), 'a', encoding='utf-8') as file:
            file.write(CONFIGURATION.format(directory=self.directory))
        self.start()

    def start(self, *settings):
        """Starts it, with these settings ("name=value") for this run only, and with its environment."""
        self.running = True
        log = os.path.join(self.directory, 'log')
        try:
            self._command('pg_ctl', '-w', '-s', '-D', self.pgdata, '-l', log,
                          '-o', ' '.join(f'-c {setting}' for setting in settings), 'start', environment=self.environment)
        except BenchError as error:
            with open(log, encoding='utf-8', errors='replace') as file:
                raise BenchError(f'{error}\n{"".join(file.readlines()[-12:])}') from error

    def stop(self):
        self._command('pg_ctl', '-w', '-s', '-m', 'fast', '-D', self.pgdata, 'stop')
        self.running = False

    def restart(self, *settings):
        self.stop()
        self.start(*settings)

    def destroy(self):
        if self.running:
            try:
                self._command('pg_ctl', '-w', '-s', '-m', 'immediate', '-D', self.pgdata, 'stop')
            except BenchError:
                pass
        shutil.rmtree(self.directory, ignore_errors=True)

    def _psql(self, *arguments):
        return self._command('psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-h', self.directory, '-U', 'postgres',
                             '-d', 'postgres', *arguments)

    def sql(self, statements):
        return self._psql(*(part for statement in statements.split(';') if statement.strip() for part in ('-c', statement)))

    def timed(self, statement, settings):
        """Runs the statement in a session with these settings; returns its seconds."""
        arguments = [part for setting in settings.split(';') if setting.strip() for part in ('-c', setting)]
        output = self._psql(*arguments, '-c', '\\timing on', '-c', statement)
        times = [line for line in output.splitlines() if line.startswith('Time: ')]
        return float(times[-1].split()[1]) / 1000


def drop_file_cache(instance):
    """Makes the operating system forget the instance's files: all caches as root, else file by file."""
    os.sync()
    try:
        with open('/proc/sys/vm/drop_caches', 'w', encoding='ascii') as file:
            file.write('1')
        return
    except OSError:
        pass
    for path, _, names in os.walk(instance.pgdata):
        for name in names:
            try:
                descriptor = os.open(os.path.join(path, name), os.O_RDONLY)
            except OSError:
                continue
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
