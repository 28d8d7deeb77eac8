"""node-postgres: the tests of its repository, from Debian's source package; what they need besides, from npm by a lock file."""
import glob
import json
import os
import re
import shutil
import tempfile

from pinned import command, fetch_source
from suite import FAILED, PASSED, SKIPPED, find_program, kept, parts_or_whole

NAME = 'node-postgres'
VERSION = '8.16.3'
RELEASE = 'sid'
PACKAGE = '8.16.3+~cs35.24.27'
REVISION = '5'
SHA256 = '03803c9ccfca47b63bf57bf3f166002ee64652a7e26c2d91fb94da19d769381e'
LOCKED = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'node-postgres')
# pg's tests of its own kind, one program a file; native bindings and Cloudflare's workers are not run
FILES = 'packages/pg/test/integration/**/*-tests.js'
# Those that use mocha
MOCHA = {'pg-pool': 'test/*.js', 'pg-cursor': 'test/*.js', 'pg-query-stream': 'test/*.ts'}
SETTINGS = """
ssl = on
ssl_cert_file = 'server.crt'
ssl_key_file = 'server.key'
polar_ss_share_tls = on
"""


def build(target):
    find_program('node')
    npm = find_program('npm')
    with tempfile.TemporaryDirectory() as room:
        source = fetch_source(room, RELEASE, f'node-postgres={PACKAGE}-{REVISION}', f'node-postgres_{PACKAGE}.orig.tar.gz', SHA256)
        command('tar', 'xf', source, '--strip-components=1', '--no-same-owner', '-C', target)
    for name in ('package.json', 'package-lock.json'):
        shutil.copy(os.path.join(LOCKED, name), target)
    command(npm, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', cwd=target)


def fetch():
    return kept(f'node-postgres-{VERSION}', build)


def prepare(instance, tree, room):
    """As the workflow of its repository has it."""
    key, certificate = (os.path.join(instance.pgdata, name) for name in ('server.key', 'server.crt'))
    command('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost',
            '-keyout', key, '-out', certificate)
    for path in (key, certificate):
        os.chmod(path, 0o600)
        instance.user.own(path)
    with open(os.path.join(instance.pgdata, 'pg_hba.conf'), 'w', encoding='ascii') as file:
        file.write('local all all trust\nhost all scram_test 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n')
    instance.configure(SETTINGS)
    instance.restart()
    instance.sql("CREATE ROLE scram_test LOGIN PASSWORD 'test4scram'; CREATE DATABASE ci_db_test")


def cases_of_file(said):
    """Name → what became of it, of what a file's tests print while they run; two of one name are numbered."""
    cases = {}
    for line in said.splitlines():
        found = re.match(r'(?:\S+\.js)?  (\S.*)', line)
        if not found:
            continue
        name, ended, skipped = re.fullmatch(r'(.*?) ?(✔)?(\? - SKIPPED)?', found.group(1)).groups()
        if ended or skipped or name.endswith('FAILED!'):
            name = name.removesuffix(' FAILED!')
            number = 1 + sum(other == name or other.startswith(name + ' #') for other in cases)
            cases[name if number == 1 else f'{name} #{number}'] = SKIPPED if skipped else PASSED if ended else FAILED
    return cases


def cases_of_mocha(path):
    """The same of the report that mocha has written."""
    try:
        with open(path, encoding='utf-8') as file:
            report = json.load(file)
    except (OSError, ValueError):
        return {}
    cases = {}
    for key, became in (('passes', PASSED), ('pending', SKIPPED), ('failures', FAILED)):
        for test in report[key]:
            cases[test['fullTitle']] = became
    return cases


def run(port, tree, room):
    node = find_program('node')
    environment = {'PGHOST': '127.0.0.1', 'PGPORT': str(port), 'PGUSER': 'postgres', 'PGPASSWORD': 'postgres', 'PGDATABASE': 'ci_db_test',
                   'USER': 'postgres', 'SCRAM_TEST_PGUSER': 'scram_test', 'SCRAM_TEST_PGPASSWORD': 'test4scram',
                   'PATH': f'{room.path}:{os.path.dirname(node)}'}
    became = {}
    pg = os.path.join(tree, 'packages', 'pg')
    room.run([node, 'script/create-test-tables.js', 'postgres://'], pg, environment, 60)
    for path in sorted(glob.glob(os.path.join(tree, FILES), recursive=True)):
        said, status = room.run([node, os.path.relpath(path, pg), 'postgres://'], pg, environment, 120)
        became.update(parts_or_whole('pg ' + os.path.relpath(path, os.path.join(pg, 'test/integration')), cases_of_file(said), status != 0))
    mocha = os.path.join(tree, 'node_modules', 'mocha', 'bin', 'mocha.js')
    for package, pattern in MOCHA.items():
        where = os.path.join(tree, 'packages', package)
        for path in sorted(glob.glob(os.path.join(where, pattern))):
            name = os.path.relpath(path, where)
            report = os.path.join(room.directory, 'report.json')
            loader = ['--require', 'tsx/cjs'] if path.endswith('.ts') else []
            _, status = room.run([node, mocha, *loader, '--reporter', 'json', '--reporter-option', f'output={report}', name],
                                 where, environment, 120)
            cases = cases_of_mocha(report)
            if cases or status != 0:
                became.update(parts_or_whole(f'{package} {name}', cases, status != 0))
            if os.path.exists(report):
                os.unlink(report)
    return became
