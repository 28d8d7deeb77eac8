"""PgBouncer, to be measured beside: the release of Debian's source package below, built once; else what is installed."""
import os
import shutil
import tempfile

from pinned import CannotHave, cached_tool, command, fetch_source

# Debian's bookworm has 1.18, which cannot pool prepared statements
VERSION = '1.24.1'
PACKAGE = '1.24.1-1+deb13u2'
RELEASE = 'trixie'
SHA256 = 'da72a3aba13072876d055a3e58dd4aba4a5de4ed6148e73033185245598fd3e0'
NEEDED = ('libevent-dev', 'libssl-dev', 'pkg-config', 'make', 'gcc')


def build(target):
    """Takes the source package by apt, and leaves the program in `target`."""
    with tempfile.TemporaryDirectory() as room:
        command('apt-get', 'install', '-y', '--no-install-recommends', *NEEDED)
        source = fetch_source(room, RELEASE, f'pgbouncer={PACKAGE}', f'pgbouncer_{VERSION}.orig.tar.gz', SHA256)
        command('tar', 'xf', source, cwd=room)
        tree = os.path.join(room, f'pgbouncer-{VERSION}')
        command('./configure', cwd=tree)
        command('make', '-j2', 'pgbouncer', cwd=tree)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.path.join(tree, 'pgbouncer'), target)
        os.chmod(target, 0o755)


def version_of(program):
    """As numbers, to be compared."""
    words = command(program, '--version').split()
    return tuple(int(part) for part in words[1].split('.')[:2]), words[1]


def find_pgbouncer():
    """The program, and how its version is written. Why it is not the pinned one is a third word, or None."""
    target = os.path.join(cached_tool(f'pgbouncer-{VERSION}'), 'pgbouncer')
    reason = None
    if not os.path.exists(target):
        try:
            if os.getuid() != 0:
                raise CannotHave('only root can install what it is built with')
            build(target)
        except (CannotHave, OSError) as error:
            reason = str(error)
            target = shutil.which('pgbouncer', path='/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin')
            if target is None:
                raise CannotHave(f'not built ({reason}), and none is installed') from error
    return target, version_of(target), reason
