"""PgBouncer, to be measured beside: the release of Debian's source package below, built once; else what is installed."""
import hashlib
import os
import shutil
import subprocess
import tempfile

# Debian's bookworm has 1.18, which cannot pool prepared statements
VERSION = '1.24.1'
PACKAGE = '1.24.1-1+deb13u2'
RELEASE = 'trixie'
SHA256 = 'da72a3aba13072876d055a3e58dd4aba4a5de4ed6148e73033185245598fd3e0'
NEEDED = ('libevent-dev', 'libssl-dev', 'pkg-config', 'make', 'gcc')


class CannotHave(Exception):
    """Why there is no PgBouncer, in a few words."""


def command(*words, cwd=None):
    result = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise CannotHave(f'"{words[0]}" failed: {(result.stderr.strip() or result.stdout.strip()).splitlines()[-1:]}')
    return result.stdout


def debian_mirror():
    """Where this machine takes its packages from."""
    for line in command('apt-cache', 'policy').splitlines():
        words = line.split()
        if len(words) > 2 and words[1].startswith('http') and words[1].rstrip('/').endswith('/debian'):
            return words[1]
    raise CannotHave('this machine does not take its packages from a Debian mirror')


def build(target):
    """Takes the source package by apt, with lists of its own, and leaves the program in `target`."""
    with tempfile.TemporaryDirectory() as room:
        os.makedirs(os.path.join(room, 'lists', 'partial'))
        os.makedirs(os.path.join(room, 'cache', 'archives', 'partial'))
        with open(os.path.join(room, 'list'), 'w', encoding='ascii') as file:
            file.write(f'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {debian_mirror()} {RELEASE} main\n')
        apt = ('apt-get', '-o', f'Dir::Etc::sourcelist={room}/list', '-o', 'Dir::Etc::sourceparts=/dev/null',
               '-o', f'Dir::State::lists={room}/lists', '-o', f'Dir::Cache={room}/cache')
        command('apt-get', 'install', '-y', '--no-install-recommends', *NEEDED)
        command(*apt, 'update')
        command(*apt, 'source', '--download-only', f'pgbouncer={PACKAGE}', cwd=room)
        source = os.path.join(room, f'pgbouncer_{VERSION}.orig.tar.gz')
        with open(source, 'rb') as file:
            if hashlib.sha256(file.read()).hexdigest() != SHA256:
                raise CannotHave(f'the source of PgBouncer {VERSION} is not the one that is pinned')
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
    cache = os.environ.get('FLOE_CACHE', '/var/cache/floe' if os.getuid() == 0 else os.path.expanduser('~/.cache/floe'))
    target = os.path.join(cache, 'tools', f'pgbouncer-{VERSION}', 'pgbouncer')
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
