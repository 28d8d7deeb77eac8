"""pgjdbc: the source archive that its project publishes beside its jar contains its tests; Maven compiles them once."""
import os
import tempfile
import xml.etree.ElementTree

from pinned import check_sum, command
from suite import FAILED, PASSED, SKIPPED, find_program, kept

NAME = 'pgjdbc'
VERSION = '42.7.7'
SHA256 = '216e8ff44559bf1094f671c43d71f65863bff381fa8e0ec6934da5d59f5a112e'
# of the same release as the JUnit that the suite's pom.xml names
LAUNCHER = '1.12.2'


def build(target):
    """The tree, compiled, with the jars that it needs in a repository of its own."""
    find_program('javac')
    maven = find_program('mvn')
    repository = os.path.join(target, 'repository')
    with tempfile.TemporaryDirectory() as room:
        def mvn(*words, cwd):
            return command(maven, '-q', '-B', f'-Dmaven.repo.local={repository}', *words, cwd=cwd)

        def get(artifact):
            mvn('dependency:get', f'-Dartifact={artifact}', '-Dtransitive=false', cwd=room)

        get(f'org.postgresql:postgresql:{VERSION}:tar.gz:jdbc-src')
        get(f'org.junit.platform:junit-platform-console-standalone:{LAUNCHER}')
        archive = os.path.join(repository, 'org', 'postgresql', 'postgresql', VERSION, f'postgresql-{VERSION}-jdbc-src.tar.gz')
        check_sum(archive, SHA256, f'the source of pgjdbc {VERSION}')
        source = os.path.join(target, 'source')
        os.mkdir(source)
        command('tar', 'xf', archive, '--strip-components=1', '--no-same-owner', '-C', source)
        listed = os.path.join(room, 'classpath')
        mvn('-DskipTests', 'test-compile', 'dependency:build-classpath', f'-Dmdep.outputFile={listed}', '-Dmdep.includeScope=test',
            cwd=source)
        with open(listed, encoding='utf-8') as file:
            jars = [os.path.relpath(jar, target) for jar in file.read().strip().split(':')]
        # the launcher has JUnit's own jars in it
        jars = [f'repository/org/junit/platform/junit-platform-console-standalone/{LAUNCHER}/'
                f'junit-platform-console-standalone-{LAUNCHER}.jar', *(jar for jar in jars if '/org/junit/' not in jar)]
        with open(os.path.join(target, 'classpath'), 'w', encoding='utf-8') as file:
            file.write('\n'.join(['source/target/test-classes', 'source/target/classes', *jars]) + '\n')


def fetch():
    find_program('java')
    return kept(f'pgjdbc-{VERSION}', build)


def prepare(instance, tree, room):
    with open(os.path.join(instance.pgdata, 'pg_hba.conf'), 'w', encoding='ascii') as file:
        file.write('local all all trust\nhost all postgres 127.0.0.1/32 trust\nhost replication postgres 127.0.0.1/32 trust\n'
                   'host all all 127.0.0.1/32 scram-sha-256\n')
    instance.restart()
    instance.sql("CREATE ROLE test LOGIN PASSWORD 'test'; CREATE DATABASE test OWNER test")
    for extension in ('hstore', 'citext'):
        instance._command('psql', '-X', '-q', '-h', instance.directory, '-U', 'postgres', '-d', 'test',
                          '-c', f'CREATE EXTENSION {extension}')


def cases_of_report(path):
    """Name → what became of it, of a report in JUnit's format; two of one name are numbered."""
    cases = {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter('testcase'):
        name = f"{case.get('classname').removeprefix('org.postgresql.')} {case.get('name')}"
        number = 1 + sum(other == name or other.startswith(name + ' #') for other in cases)
        became = SKIPPED if case.find('skipped') is not None else PASSED
        if case.find('failure') is not None or case.find('error') is not None:
            became = FAILED
        cases[name if number == 1 else f'{name} #{number}'] = became
    return cases


def run(port, tree, room):
    with open(os.path.join(tree, 'classpath'), encoding='utf-8') as file:
        classpath = ':'.join(os.path.join(tree, line.strip()) for line in file)
    reports = os.path.join(room.directory, 'reports')
    room.run([find_program('java'), '-Xmx1536m', '-Dbuild.properties.relative.path=.', '-Dtest.url.PGHOST=127.0.0.1',
              f'-Dtest.url.PGPORT={port}', f'-Djava.io.tmpdir={room.directory}', f'-Duser.home={room.directory}',
              '-cp', classpath, 'org.junit.platform.console.ConsoleLauncher', 'execute',
              f'--scan-classpath={os.path.join(tree, "source/target/test-classes")}', f'--reports-dir={reports}', '--details=none',
              '--disable-banner', '--config=junit.jupiter.extensions.autodetection.enabled=true',
              '--config=junit.jupiter.execution.timeout.default=5 m'],
             os.path.join(tree, 'source'), {'LC_ALL': 'C.UTF-8'})
    became = {}
    for name in ('TEST-junit-jupiter.xml', 'TEST-junit-vintage.xml'):
        path = os.path.join(reports, name)
        if os.path.exists(path):
            became.update(cases_of_report(path))
    return became
