"""pgx: its module contains its tests; they are compiled once and run against either port."""
import base64
import json
import os
import shutil

from pinned import CannotHave, command
from suite import cases_of_go, find_program, kept

NAME = 'pgx'
VERSION = '5.10.0'
MODULE = 'github.com/jackc/pgx/v5'
# as in go.sum, which the checksum database confirms
SUM = 'h1:VhSvgU2jSli8o3AqIEOTJr7rZwAEUVo4E4XhR94Zfr0='
# those whose tests connect
PACKAGES = ('.', 'pgconn', 'pgproto3', 'pgtype', 'pgtype/zeronull', 'pgxpool', 'stdlib', 'tracelog')
SETTINGS = """
ssl = on
ssl_cert_file = 'server.crt'
ssl_key_file = 'server.key'
ssl_ca_file = 'root.crt'
polar_ss_share_tls = on
"""


def program_of(package):
    return ('pgx' if package == '.' else package.replace('/', '-')) + '.test'


def build(target):
    go = find_program('go', '/usr/local/go/bin')
    environment = {'GOTOOLCHAIN': 'local', 'GOWORK': 'off', 'GOFLAGS': '-mod=readonly', 'CGO_ENABLED': '0'}
    module = json.loads(command(go, 'mod', 'download', '-json', f'{MODULE}@v{VERSION}', cwd=target,
                                environment={**environment, 'GOFLAGS': '-mod=mod'}))
    if module['Sum'] != SUM:
        raise CannotHave(f'{MODULE} {VERSION} is not the one that is pinned')
    source = os.path.join(target, 'source')
    shutil.copytree(module['Dir'], source)
    for root, _, files in os.walk(source):
        for each in (root, *(os.path.join(root, file) for file in files)):
            os.chmod(each, os.stat(each).st_mode | 0o200)
    for package in PACKAGES:
        command(go, 'test', '-c', '-o', os.path.join(target, program_of(package)), './' + package, cwd=source, environment=environment)


def fetch():
    return kept(f'pgx-{VERSION}', build)


def certificates(tree):
    """Name → the contents of a certificate or key that the suite brings."""
    place = os.path.join(tree, 'source', 'testsetup', 'certs')
    for name in os.listdir(place):
        with open(os.path.join(place, name), 'rb') as file:
            yield name.removesuffix('.b64'), base64.b64decode(file.read())


def prepare(instance, tree, room):
    """As the suite's testsetup/ has it: certificates, pg_hba.conf, users and types."""
    setup = os.path.join(tree, 'source', 'testsetup')
    contents = dict(certificates(tree))
    for name, source in (('server.crt', 'localhost.crt'), ('server.key', 'localhost.key'), ('root.crt', 'ca.pem')):
        path = os.path.join(instance.pgdata, name)
        with open(path, 'wb') as file:
            file.write(contents[source])
        os.chmod(path, 0o600)
        instance.user.own(path)
    for name in ('ca.pem', 'pgx_sslcert.crt', 'pgx_sslcert.key'):
        path = os.path.join(room.directory, name)
        with open(path, 'wb') as file:
            file.write(contents[name])
        os.chmod(path, 0o600)
        instance.user.own(path)
    shutil.copy(os.path.join(setup, 'pg_hba.conf'), os.path.join(instance.pgdata, 'pg_hba.conf'))
    instance.configure(SETTINGS)
    instance.restart()
    instance.sql('CREATE DATABASE pgx_test')
    instance._command('psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', instance.directory, '-U', 'postgres', '-d', 'pgx_test',
                      '-f', os.path.join(setup, 'postgresql_setup.sql'))


def run(port, tree, room):
    def by(user, *options):
        return ' '.join((f'host=127.0.0.1 port={port} user={user} password=secret dbname=pgx_test', *options))

    plain, ca = 'sslmode=disable', f'sslrootcert={room.directory}/ca.pem'
    verified = (f'host=localhost port={port} user=pgx_ssl password=secret dbname=pgx_test sslmode=verify-full', ca)
    environment = {
        'PGX_TEST_DATABASE': by('pgx_md5', plain),
        'PGX_TEST_TCP_CONN_STRING': by('pgx_md5', plain),
        'PGX_TEST_MD5_PASSWORD_CONN_STRING': by('pgx_md5', plain),
        'PGX_TEST_SCRAM_PASSWORD_CONN_STRING': by('pgx_scram', plain, 'channel_binding=disable'),
        'PGX_TEST_PLAIN_PASSWORD_CONN_STRING': by('pgx_pw', plain),
        'PGX_TEST_SCRAM_PLUS_CONN_STRING': ' '.join((*verified, 'channel_binding=require')),
        'PGX_TEST_TLS_CONN_STRING': ' '.join((*verified, 'channel_binding=disable')),
        'PGX_TEST_TLS_CLIENT_CONN_STRING': f'host=localhost port={port} user=pgx_sslcert dbname=pgx_test sslmode=verify-full {ca} '
                                           f'sslcert={room.directory}/pgx_sslcert.crt sslkey={room.directory}/pgx_sslcert.key',
        'PGX_SSL_PASSWORD': 'certpw',
    }
    became = {}
    for package in PACKAGES:
        said, _ = room.run([os.path.join(tree, program_of(package)), '-test.v=test2json', '-test.timeout=10m', '-test.count=1'],
                           os.path.join(tree, 'source', package), environment)
        became.update(cases_of_go(said, package))
    return became
