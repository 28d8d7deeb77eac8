"""What the drivers' suites share: where they are kept, how a program of theirs runs, and what became of each case."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from pair import BenchError
from pinned import CannotHave, cache_directory, cached_tool

PASSED, FAILED, SKIPPED = 'passed', 'failed', 'skipped'
PATH = '/usr/local/bin:/usr/bin:/bin'


def kept(name, make):
    """The directory of that name in the cache; where it is missing, `make` fills it, whole or not at all."""
    target = cached_tool(name)
    if not os.path.isdir(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        half = tempfile.mkdtemp(prefix=name + '.', dir=os.path.dirname(target))
        try:
            make(half)
            # who runs the engine reads it, and nobody but its owner writes it
            for root, directories, files in os.walk(half):
                for each in (root, *(os.path.join(root, file) for file in files)):
                    if not os.path.islink(each):
                        os.chmod(each, os.stat(each).st_mode & 0o755 | (0o555 if os.path.isdir(each) else 0o444))
            os.rename(half, target)
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return target


def find_program(name, *places):
    found = shutil.which(name, path=':'.join((os.environ.get('PATH', PATH), *places)))
    if found is None:
        raise CannotHave(f'there is no "{name}" on this machine')
    return found


class Room:
    """A directory in which the programs of one run work, as the user of the engine, and the log of what they say."""

    def __init__(self, directory, user, name, prefix):
        self.directory, self.user = directory, user
        self.libraries = os.path.join(prefix, 'lib')
        self.path = os.path.join(prefix, 'bin') + ':' + PATH
        os.makedirs(directory)
        user.own(directory)
        logs = os.path.join(cache_directory(), 'log', 'shared-server-drivers')
        os.makedirs(logs, exist_ok=True)
        self.log = os.path.join(logs, name + '.log')
        with open(self.log, 'wb'):
            pass
        self.deadline = None

    def allow(self, seconds):
        """From now on all programs together have so long."""
        self.deadline = time.monotonic() + seconds

    def run(self, words, where, environment, seconds=None):
        """What the program said, with its exit status, or None if it did not end in time; all that it started ends with it."""
        left = max(0.0, self.deadline - time.monotonic())
        variables = {'PATH': self.path, 'HOME': self.directory, 'TMPDIR': self.directory, 'LC_ALL': 'C.UTF-8', 'TZ': 'UTC', **environment}
        with open(self.log, 'ab') as log:
            log.write(f'$ {" ".join(words)}\n'.encode())
            log.flush()
            began = log.tell()
            process = subprocess.Popen([*self.user.prefix, *words], cwd=where, env=variables, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(min(left, seconds or left))
            except subprocess.TimeoutExpired:
                status = None
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
        with open(self.log, 'rb') as log:
            log.seek(began)
            return log.read().decode('utf-8', 'replace'), status


def known_differences(path):
    """Case → reason, of a list whose lines that begin with "#" say why what is below them differs."""
    known, reason, ended = {}, [], True
    with open(path, encoding='utf-8') as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip('\n')
            if line.startswith('#'):
                if ended:
                    reason = []
                ended = False
                reason.append(line.lstrip('# '))
            elif line.strip():
                ended = True
                if not reason:
                    raise BenchError(f'{path}, line {number}: "{line}" has no reason above it')
                known[line] = ' '.join(reason)
            else:
                reason, ended = [], True
    return known


class Verdict:
    """One driver's cases, natively and through the shared port."""

    def __init__(self, native, shared, known):
        self.cases = sorted(name for name, became in native.items() if became != SKIPPED)
        self.native_failures = [name for name in self.cases if native[name] == FAILED]
        passed = {name for name in self.cases if native[name] == PASSED}
        # a case that was skipped or never came to its turn has not passed
        different = sorted({name for name in passed if shared.get(name) != PASSED}
                           | {name for name, became in shared.items() if became == FAILED and name not in native})
        self.explained = {name: known[name] for name in different if name in known}
        self.new_failures = [name for name in different if name not in known]
        # a file that breaks off is a case only where it does
        self.unknown = sorted(name for name in known if name not in native and name not in shared)


def cases_of_go(text, package):
    """Case → what became of it, of what a test program of Go said with -test.v=test2json. A case with parts is its parts."""
    became = {}
    for found in re.finditer(r'^\x16?=== (?:RUN|NAME) +(\S+)$', text, re.MULTILINE):
        became.setdefault(found.group(1), FAILED)
    words = {'PASS': PASSED, 'FAIL': FAILED, 'SKIP': SKIPPED}
    for found in re.finditer(r'\x16?--- (PASS|FAIL|SKIP): (\S+) \(', text):
        became[found.group(2)] = words[found.group(1)]
    # a part's name may have slashes of its own
    whole = {name[:at] for name in became for at, letter in enumerate(name) if letter == '/'}
    # what failed outside of its parts is a failure of its own
    return {f'{package} {name}': result for name, result in became.items()
            if name not in whole or result == FAILED and not any(
                part.startswith(name + '/') and other == FAILED for part, other in became.items())}


def parts_or_whole(whole, parts, failed):
    """The parts of what ran as one program; itself where it has none, or where it failed and none of them did."""
    if parts and not (failed and all(became == PASSED for became in parts.values())):
        return {f'{whole} > {name}': became for name, became in parts.items()}
    return {**{f'{whole} > {name}': became for name, became in parts.items()}, whole: FAILED if failed else PASSED}
