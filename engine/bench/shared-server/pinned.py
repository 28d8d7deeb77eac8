"""Other projects' programs and sources, each pinned by a checksum and kept outside the checkout."""
import hashlib
import os
import subprocess


class CannotHave(Exception):
    """Why there is no such program or source, in a few words."""


def command(*words, cwd=None, environment=None):
    result = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                            env={**os.environ, **environment} if environment else None)
    if result.returncode != 0:
        raise CannotHave(f'"{words[0]}" failed: {(result.stderr.strip() or result.stdout.strip()).splitlines()[-1:]}')
    return result.stdout


def cache_directory():
    return os.environ.get('FLOE_CACHE', '/var/cache/floe' if os.getuid() == 0 else os.path.expanduser('~/.cache/floe'))


def cached_tool(name):
    return os.path.join(cache_directory(), 'tools', name)


def check_sum(path, expected, what):
    with open(path, 'rb') as file:
        if hashlib.sha256(file.read()).hexdigest() != expected:
            raise CannotHave(f'{what} is not the one that is pinned')


def debian_mirror():
    """Where this machine takes its packages from."""
    for line in command('apt-cache', 'policy').splitlines():
        words = line.split()
        if len(words) > 2 and words[1].startswith('http') and words[1].rstrip('/').endswith('/debian'):
            return words[1]
    raise CannotHave('this machine does not take its packages from a Debian mirror')


def fetch_source(room, release, package, file_name, expected):
    """One file of a source package ("name=version"), by apt with lists of its own in the directory `room`."""
    os.makedirs(os.path.join(room, 'lists', 'partial'))
    os.makedirs(os.path.join(room, 'cache', 'archives', 'partial'))
    with open(os.path.join(room, 'list'), 'w', encoding='ascii') as file:
        file.write(f'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {debian_mirror()} {release} main\n')
    apt = ('apt-get', '-o', f'Dir::Etc::sourcelist={room}/list', '-o', 'Dir::Etc::sourceparts=/dev/null',
           '-o', f'Dir::State::lists={room}/lists', '-o', f'Dir::Cache={room}/cache')
    command(*apt, 'update')
    source = os.path.join(room, file_name)
    try:
        command(*apt, 'source', '--download-only', package, cwd=room)
    except CannotHave:
        # the package may have other files, which a mirror lacks
        if not os.path.exists(source):
            raise
    check_sum(source, expected, f'the source of {package}')
    return source
