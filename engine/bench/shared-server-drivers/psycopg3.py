"""psycopg 3: no package that can be had holds its tests, so that the cases are ours (psycopg_cases.py)."""
import os
import re
import shutil

from pinned import command
from suite import FAILED, PASSED, find_program, kept

NAME = 'psycopg'
VERSION = '3.3.5'
HERE = os.path.dirname(os.path.abspath(__file__))


def build(target):
    python = find_program('python3')
    command(python, '-m', 'pip', 'install', '--quiet', '--no-deps', '--only-binary', ':all:', '--require-hashes', '--target', target,
            '-r', os.path.join(HERE, 'psycopg-requirements.txt'))


def fetch():
    return kept(f'psycopg-{VERSION}', build)


def prepare(instance, tree, room):
    shutil.copy(os.path.join(HERE, 'psycopg_cases.py'), room.directory)
    os.chmod(os.path.join(room.directory, 'psycopg_cases.py'), 0o644)


def run(port, tree, room):
    # the pure Python implementation, on the libpq of the engine
    said, _ = room.run(['python3', '-B', 'psycopg_cases.py',
                        f'host=127.0.0.1 port={port} user=postgres dbname=postgres'], room.directory,
                       {'PYTHONPATH': tree, 'PSYCOPG_IMPL': 'python', 'LD_LIBRARY_PATH': room.libraries, 'LIBRARY_PATH': room.libraries})
    became = {}
    for word, name in re.findall(r'^(ok|not ok) (.+)$', said, re.MULTILINE):
        became[name] = PASSED if word == 'ok' else FAILED
    planned = re.search(r'^1\.\.(\d+)$', said, re.MULTILINE)
    became['the program came to its end'] = PASSED if planned and int(planned[1]) == len(became) else FAILED
    return became
