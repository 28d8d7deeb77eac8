"""Runs a module's TAP test on the release engine, as a benchmark: longer than as a test, with a file of results."""
import collections
import os
import shutil
import subprocess
import sys

from instance import BenchError

ENGINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')


def run_tap(prefixes, user, directory, test, environment, label):
    """The results that the test has written, and the lines of its failed checks. `test` is <module>/<name>; the release engine
    does the work, the assert build has PostgreSQL's test library. The test gets the file's name as FLOE_TEST_RESULT."""
    prefix, library = prefixes
    module, name = test.split('/')
    perl = os.path.join(library, 'lib', 'postgresql', 'pgxs', 'src', 'test')
    shutil.copytree(os.path.join(ENGINE, 'testkit', 'perl'), os.path.join(directory, 'perl'))
    shutil.copy(os.path.join(ENGINE, 'modules', module, 't', name + '.pl'), directory)
    for made in ('data', 'log'):
        os.mkdir(os.path.join(directory, made))
    os.chmod(directory, 0o755)
    for root, _, names in os.walk(directory):
        user.own(root)
        for file in names:
            user.own(os.path.join(root, file))
    result = os.path.join(directory, 'result')
    variables = {
        'PATH': f'{prefix}/bin:/usr/local/bin:/usr/bin:/bin', 'HOME': directory, 'LC_ALL': 'C', 'TZ': 'UTC',
        'PG_REGRESS': os.path.join(perl, 'regress', 'pg_regress'), 'top_builddir': directory,
        'TESTDATADIR': os.path.join(directory, 'data'), 'TESTLOGDIR': os.path.join(directory, 'log'),
        'FLOE_TEST_RESULT': result, **environment}
    process = subprocess.Popen([*user.prefix, 'perl', '-I', os.path.join(perl, 'perl'), '-I', os.path.join(directory, 'perl'),
                                name + '.pl'], cwd=directory, env=variables, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    failed = []
    last = collections.deque(maxlen=20)
    try:
        for line in process.stdout:
            if line.startswith('not ok'):
                failed.append(line)
            # What a failed check has found is below it
            if line.startswith(('ok', 'not ok', '#')):
                print(f'{label}: ' + line.rstrip(), file=sys.stderr)
            else:
                last.append(line.rstrip())
        process.wait()
    finally:
        if process.poll() is None:
            # Its END block stops the instances
            process.terminate()
            process.wait()
    # a test that dies tells it to its log, and a failed check is an exit status, too
    if process.returncode != 0 and not failed or not os.path.exists(result):
        last.extend(_last_words(os.path.join(directory, 'log', f'regress_log_{name}')))
        raise BenchError(f'the test {test} did not end; its last words:\n' + '\n'.join(last))
    with open(result, encoding='ascii') as file:
        return {key: int(value) for key, value in (line.split() for line in file)}, failed


def _last_words(log):
    try:
        with open(log, encoding='utf-8', errors='replace') as file:
            return collections.deque((line.rstrip() for line in file), maxlen=15)
    except OSError as error:
        return [f'{log}: {error}']
