"""Cases of our own for psycopg 3, whose packages hold no tests: what its users rely on from one transaction to the next.

Each statement of an autocommit connection is a transaction, after which a session may be served by another backend. `python
psycopg_cases.py CONNINFO` prints "ok NAME" or "not ok NAME" for each case.
"""
import asyncio
import datetime
import decimal
import ipaddress
import signal
import sys
import threading
import time
import traceback
import uuid

import psycopg
from psycopg import errors, pq, sql
from psycopg.rows import class_row, dict_row, namedtuple_row, scalar_row
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.enum import EnumInfo, register_enum
from psycopg.types.hstore import register_hstore
from psycopg.types.json import Jsonb
from psycopg.types.multirange import Int4Multirange
from psycopg.types.range import Int4Range, TimestamptzRange

CONNINFO = ''
CASES = {}
SECONDS = 60


def case(*arguments):
    """Registers a function as a case; with arguments, as one for each of them."""
    def register(function):
        for argument in arguments or (None,):
            name = function.__name__ + ('' if argument is None else f'[{argument[0] if isinstance(argument, tuple) else argument}]')
            assert name not in CASES
            CASES[name] = (lambda f=function, a=argument: f(a)) if arguments else function
        return function
    return register


def connect(**options):
    return psycopg.connect(CONNINFO, **{'autocommit': True, **options})


def raises(kind, action, *arguments, **options):
    try:
        action(*arguments, **options)
    except kind as error:
        return error
    raise AssertionError(f'{kind.__name__} was not raised')


def equal(found, expected):
    assert found == expected, f'{found!r} is not {expected!r}'


class Style:
    """How a statement is sent: by the simple protocol, the extended one, prepared at once, or with binary results."""

    NAMES = ('simple', 'extended', 'prepared', 'binary')

    def __init__(self, name, **options):
        self.prepare = True if name == 'prepared' else None
        self.binary = name == 'binary'
        self.connection = connect(cursor_factory=psycopg.ClientCursor if name == 'simple' else psycopg.Cursor, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def ask(self, query, *values):
        with self.connection.cursor(binary=self.binary) as cursor:
            options = {} if isinstance(cursor, psycopg.ClientCursor) else {'prepare': self.prepare}
            cursor.execute(query, values or None, **options)
            return cursor.fetchall() if cursor.description else cursor.rowcount


VALUES = (
    ('int', 'int4', 42), ('int8', 'int8', 2 ** 40), ('numeric', 'numeric', decimal.Decimal('12345678901234567890.0123')),
    ('float', 'float8', 0.1), ('bool', 'bool', True), ('text', 'text', "quo'te \\ ü 漢"), ('bytea', 'bytea', bytes(range(256))),
    ('date', 'date', datetime.date(2026, 2, 28)), ('time', 'time', datetime.time(23, 59, 59, 999999)),
    ('timestamp', 'timestamp', datetime.datetime(1999, 12, 31, 23, 59, 59, 1)),
    ('timestamptz', 'timestamptz', datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone.utc)),
    ('interval', 'interval', datetime.timedelta(days=3, seconds=7)), ('uuid', 'uuid', uuid.UUID(int=2 ** 127 + 5)),
    ('inet', 'inet', ipaddress.ip_address('10.1.2.3')), ('cidr', 'cidr', ipaddress.ip_network('10.0.0.0/8')),
    ('array', 'int4[]', [1, None, 3]), ('texts', 'text[]', ['a', 'b,c', '"', None]), ('nested', 'int4[]', [[1, 2], [3, 4]]),
    ('range', 'int4range', Int4Range(100_000, 500_000)),
    ('tstzrange', 'tstzrange', TimestamptzRange(datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc), None)),
    ('multirange', 'int4multirange', Int4Multirange([Int4Range(100_000, 100_003), Int4Range(700_000, 700_009)])), ('null', 'text', None),
)


@case(*VALUES)
def value_comes_back_each_way(argument):
    _, kind, value = argument
    for name in Style.NAMES:
        with Style(name) as style:
            for _ in range(3):
                equal(style.ask(f'SELECT %s::{kind}', value), [(value,)])


@case(*Style.NAMES)
def setting_is_kept(name):
    with Style(name) as style:
        style.ask("SET search_path = 'pg_catalog', 'other'")
        style.ask("SET my.setting = 'ö x'")
        for _ in range(5):
            equal(style.ask("SELECT current_setting('search_path'), current_setting('my.setting')"), [('pg_catalog, other', 'ö x')])
        style.ask('RESET ALL')
        equal(style.ask("SELECT current_setting('search_path'), current_setting('my.setting')"), [('"$user", public', '')])


@case(*Style.NAMES)
def set_local_ends_with_its_transaction(name):
    with Style(name) as style:
        with style.connection.transaction():
            style.ask("SET LOCAL work_mem = '77MB'")
            equal(style.ask("SELECT current_setting('work_mem')"), [('77MB',)])
        assert style.ask("SELECT current_setting('work_mem')") != [('77MB',)]


@case(*Style.NAMES)
def role_is_kept(name):
    with Style(name) as style:
        style.ask('SET ROLE pg_monitor')
        for _ in range(3):
            equal(style.ask('SELECT current_user::text'), [('pg_monitor',)])
        style.ask('RESET ROLE')
        equal(style.ask('SELECT current_user = session_user'), [(True,)])


@case(*Style.NAMES)
def temporary_table_is_kept(name):
    with Style(name) as style:
        style.ask('CREATE TEMP TABLE mine (n int4)')
        for number in range(5):
            equal(style.ask('INSERT INTO mine VALUES (%s)', number), 1)
        equal(style.ask('SELECT sum(n)::int4 FROM mine'), [(10,)])
        style.ask('DROP TABLE mine')
        equal(style.ask("SELECT to_regclass('mine') IS NULL"), [(True,)])


@case(*Style.NAMES)
def sequence_value_is_kept(name):
    with Style(name) as style:
        style.ask('DROP SEQUENCE IF EXISTS numbers')
        style.ask('CREATE SEQUENCE numbers CACHE 10')
        equal([style.ask("SELECT nextval('numbers')")[0][0] for _ in range(12)], list(range(1, 13)))
        equal(style.ask("SELECT currval('numbers'), lastval()"), [(12, 12)])


@case(*Style.NAMES)
def advisory_lock_is_held(name):
    with Style(name) as style, connect() as other:
        style.ask('SELECT pg_advisory_lock(4711)')
        for _ in range(3):
            style.ask('SELECT 1')
        equal(other.execute('SELECT pg_try_advisory_lock(4711)').fetchone(), (False,))
        equal(style.ask('SELECT pg_advisory_unlock(4711)'), [(True,)])
        equal(other.execute('SELECT pg_try_advisory_lock(4711)').fetchone(), (True,))


@case(*Style.NAMES)
def error_leaves_the_session_usable(name):
    with Style(name) as style:
        for _ in range(3):
            error = raises(errors.DivisionByZero, style.ask, 'SELECT 1 / %s::int4', 0)
            equal(error.diag.sqlstate, '22012')
            equal(style.ask('SELECT 1'), [(1,)])


@case(*Style.NAMES)
def failed_transaction_rolls_back(name):
    with Style(name) as style:
        style.ask('DROP TABLE IF EXISTS rolled')
        style.ask('CREATE TABLE rolled (n int4 PRIMARY KEY)')

        def twice():
            with style.connection.transaction():
                style.ask('INSERT INTO rolled VALUES (1)')
                style.ask('INSERT INTO rolled VALUES (1)')

        raises(errors.UniqueViolation, twice)
        equal(style.ask('SELECT count(*)::int4 FROM rolled'), [(0,)])


@case(*Style.NAMES)
def savepoint_undoes_its_part_only(name):
    with Style(name) as style:
        style.ask('DROP TABLE IF EXISTS saved')
        style.ask('CREATE TABLE saved (n int4)')
        with style.connection.transaction():
            style.ask('INSERT INTO saved VALUES (1)')
            with style.connection.transaction() as inner:
                style.ask('INSERT INTO saved VALUES (2)')
                raise psycopg.Rollback(inner)
            style.ask('INSERT INTO saved VALUES (3)')
        equal(style.ask('SELECT n FROM saved ORDER BY n'), [(1,), (3,)])


@case(*Style.NAMES)
def large_result_is_whole(name):
    with Style(name) as style:
        for _ in range(2):
            rows = style.ask("SELECT n, repeat('x', 100) FROM generate_series(1, 20000) AS n")
            equal((len(rows), rows[-1]), (20000, (20000, 'x' * 100)))


@case(*Style.NAMES)
def large_parameter_is_whole(name):
    with Style(name) as style:
        for size in (1, 8191, 8192, 65536, 3_000_000):
            equal(style.ask('SELECT length(%s::text)', 'y' * size), [(size,)])


@case('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
def isolation_level_is_the_connections(level):
    with connect(autocommit=False) as connection:
        connection.isolation_level = psycopg.IsolationLevel[level.replace(' ', '_')]
        for _ in range(3):
            equal(connection.execute('SHOW transaction_isolation').fetchone(), (level.lower(),))
            connection.commit()


@case()
def read_only_and_deferrable_are_the_connections():
    with connect(autocommit=False) as connection:
        connection.read_only, connection.deferrable = True, True
        for _ in range(2):
            equal(connection.execute("SELECT current_setting('transaction_read_only'), current_setting('transaction_deferrable')")
                  .fetchone(), ('on', 'on'))
            connection.commit()
        raises(errors.ReadOnlySqlTransaction, connection.execute, 'CREATE TABLE never (n int4)')


@case(1, 5, 50)
def prepared_by_threshold(threshold):
    with connect(prepare_threshold=threshold) as connection:
        for number in range(60):
            equal(connection.execute('SELECT %s::int4 + 1', (number,)).fetchone(), (number + 1,))
        names = connection.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT $1::int4 + 1'").fetchone()
        equal(names, (1,))


@case()
def prepared_statements_are_dropped_beyond_the_limit():
    with connect(prepare_threshold=0) as connection:
        connection.prepared_max = 3
        for number in range(20):
            equal(connection.execute(f'SELECT {number}, %s::int4', (number,)).fetchone(), (number, number))
        assert connection.execute('SELECT count(*) FROM pg_prepared_statements').fetchone()[0] <= 4


@case()
def prepared_statement_survives_a_changed_table():
    with connect(prepare_threshold=0) as connection, connect() as other:
        other.execute('DROP TABLE IF EXISTS changing')
        other.execute('CREATE TABLE changing (n int4, t text)')
        other.execute("INSERT INTO changing VALUES (1, 'a')")
        for _ in range(3):
            equal(connection.execute('SELECT n FROM changing WHERE n = %s', (1,)).fetchall(), [(1,)])
        other.execute('CREATE INDEX ON changing (n)')
        other.execute('ALTER TABLE changing DROP COLUMN t')
        for _ in range(3):
            equal(connection.execute('SELECT n FROM changing WHERE n = %s', (1,)).fetchall(), [(1,)])


@case()
def prepared_statement_whose_result_changed_says_so():
    with connect(prepare_threshold=0) as connection, connect() as other:
        other.execute('DROP TABLE IF EXISTS widened')
        other.execute('CREATE TABLE widened (n int4)')
        connection.execute('SELECT * FROM widened').fetchall()
        other.execute('ALTER TABLE widened ADD COLUMN m int4')
        raises(errors.FeatureNotSupported, connection.execute, 'SELECT * FROM widened')
        equal(connection.execute('SELECT 1').fetchone(), (1,))


@case()
def discard_all_forgets_everything():
    with connect(prepare_threshold=0) as connection:
        for number in range(3):
            equal(connection.execute('SELECT %s::int4', (number,)).fetchone(), (number,))
            connection.execute("SET my.setting = 'x'")
            connection.execute('CREATE TEMP TABLE mine (n int4)')
            connection.execute('DISCARD ALL')
            equal(connection.execute("SELECT current_setting('my.setting'), to_regclass('mine')").fetchone(), ('', None))


@case()
def statement_prepared_by_sql():
    with connect() as connection:
        connection.execute('PREPARE double (int4) AS SELECT $1 * 2')
        for number in range(10):
            equal(connection.execute(f'EXECUTE double({number})').fetchone(), (number * 2,))


@case('results', 'error', 'transaction', 'nested', 'executemany', 'long')
def pipeline(kind):
    with connect() as connection:
        if kind == 'results':
            with connection.pipeline():
                cursors = [connection.execute('SELECT %s::int4', (number,)) for number in range(100)]
            equal([cursor.fetchone()[0] for cursor in cursors], list(range(100)))
        elif kind == 'error':
            def broken():
                with connection.pipeline():
                    connection.execute('SELECT 1')
                    connection.execute('SELECT 1 / 0')
                    connection.execute('SELECT 2')
            raises(errors.DivisionByZero, broken)
        elif kind == 'transaction':
            connection.execute('DROP TABLE IF EXISTS piped')
            connection.execute('CREATE TABLE piped (n int4)')
            with connection.pipeline(), connection.transaction():
                for number in range(20):
                    connection.execute('INSERT INTO piped VALUES (%s)', (number,))
            equal(connection.execute('SELECT count(*) FROM piped').fetchone(), (20,))
        elif kind == 'nested':
            with connection.pipeline() as outer:
                first = connection.execute('SELECT 1')
                with connection.pipeline():
                    second = connection.execute('SELECT 2')
                outer.sync()
                equal((first.fetchone(), second.fetchone()), ((1,), (2,)))
        elif kind == 'executemany':
            connection.execute('DROP TABLE IF EXISTS many')
            connection.execute('CREATE TABLE many (n int4, t text)')
            with connection.cursor() as cursor:
                cursor.executemany('INSERT INTO many VALUES (%s, %s) RETURNING n', [(n, str(n)) for n in range(200)], returning=True)
                found = [cursor.fetchone()[0]]
                while cursor.nextset():
                    found.append(cursor.fetchone()[0])
            equal(found, list(range(200)))
        else:
            with connection.pipeline():
                cursors = [connection.execute("SELECT repeat('z', %s)", (5000,)) for _ in range(300)]
            assert all(cursor.fetchone() == ('z' * 5000,) for cursor in cursors)
        equal(connection.execute('SELECT 1').fetchone(), (1,))


@case('rows', 'text', 'binary', 'error in it', 'given up', 'large', 'out', 'out binary', 'out broken off', 'between tables')
def copy(kind):
    with connect() as connection:
        connection.execute('DROP TABLE IF EXISTS copied')
        connection.execute('CREATE TABLE copied (n int4, t text)')
        cursor = connection.cursor()
        if kind in ('rows', 'binary', 'large', 'between tables', 'out', 'out binary', 'out broken off'):
            count = 50000 if kind == 'large' else 1000
            form = '(FORMAT binary)' if kind == 'binary' else ''
            with cursor.copy(f'COPY copied FROM STDIN {form}') as stream:
                if form:
                    stream.set_types(['int4', 'text'])
                for number in range(count):
                    stream.write_row((number, f'row\t{number}'))
            equal(connection.execute('SELECT count(*), max(t) FROM copied').fetchone()[0], count)
        if kind == 'text':
            with cursor.copy('COPY copied FROM STDIN') as stream:
                stream.write('1\ta\n2\t\\N\n')
            equal(connection.execute('SELECT * FROM copied').fetchall(), [(1, 'a'), (2, None)])
        elif kind == 'error in it':
            def broken():
                with cursor.copy('COPY copied FROM STDIN') as stream:
                    stream.write('x\ty\n')
            raises(errors.InvalidTextRepresentation, broken)
        elif kind == 'given up':
            def given_up():
                with cursor.copy('COPY copied FROM STDIN') as stream:
                    stream.write('1\ta\n')
                    raise KeyError('reason')
            raises(KeyError, given_up)
            equal(connection.execute('SELECT count(*) FROM copied').fetchone(), (0,))
        elif kind == 'out':
            with cursor.copy('COPY copied TO STDOUT') as stream:
                equal(sum(1 for _ in stream.rows()), 1000)
        elif kind == 'out binary':
            with cursor.copy('COPY copied TO STDOUT (FORMAT binary)') as stream:
                stream.set_types(['int4', 'text'])
                equal(list(stream.rows()), [(number, f'row\t{number}') for number in range(1000)])
        elif kind == 'out broken off':
            def broken_off():
                with cursor.copy("COPY (SELECT repeat('x', 1000) FROM generate_series(1, 100000)) TO STDOUT") as stream:
                    stream.read()
                    raise KeyError('enough')
            raises(KeyError, broken_off)
        elif kind == 'between tables':
            connection.execute('DROP TABLE IF EXISTS copied_too')
            connection.execute('CREATE TABLE copied_too (n int4, t text)')
            with connect() as other:
                with cursor.copy('COPY copied TO STDOUT') as source, other.cursor().copy('COPY copied_too FROM STDIN') as target:
                    for block in source:
                        target.write(block)
                equal(other.execute('SELECT count(*) FROM copied_too').fetchone(), (1000,))
        equal(connection.execute('SELECT 1').fetchone(), (1,))


@case('in a transaction', 'with hold', 'scrolls', 'two at once', 'iterated')
def server_side_cursor(kind):
    query = 'SELECT n FROM generate_series(1, 1000) AS n'
    with connect() as connection:
        if kind == 'with hold':
            with connection.cursor('held', withhold=True) as cursor:
                cursor.execute(query)
                for number in range(1, 50):
                    equal(cursor.fetchone(), (number,))
                    equal(connection.execute('SELECT 7').fetchone(), (7,))
        elif kind == 'scrolls':
            with connection.transaction(), connection.cursor('scrolling', scrollable=True) as cursor:
                cursor.execute(query)
                cursor.scroll(500)
                equal(cursor.fetchone(), (501,))
                cursor.scroll(0, mode='absolute')
                equal(cursor.fetchone(), (1,))
        elif kind == 'two at once':
            with connection.transaction(), connection.cursor('one') as one, connection.cursor('two') as two:
                one.execute(query)
                two.execute(query)
                equal([(one.fetchone(), two.fetchone()) for _ in range(3)], [((n,), (n,)) for n in (1, 2, 3)])
        else:
            with connection.transaction(), connection.cursor('plain') as cursor:
                cursor.itersize = 37
                cursor.execute(query)
                equal(sum(row[0] for row in cursor) if kind == 'iterated' else len(cursor.fetchall()),
                      500500 if kind == 'iterated' else 1000)
        equal(connection.execute('SELECT count(*) FROM pg_cursors').fetchone(), (0,))


@case('same session', 'other session', 'payload', 'many', 'unlisten', 'handler')
def notification(kind):
    with connect() as listener, connect() as speaker:
        listener.execute('LISTEN channel')
        if kind == 'same session':
            listener.execute("NOTIFY channel, 'own'")
            equal([note.payload for note in listener.notifies(timeout=10, stop_after=1)], ['own'])
        elif kind == 'handler':
            heard = []
            listener.add_notify_handler(heard.append)
            speaker.execute("NOTIFY channel, 'h'")
            deadline = time.monotonic() + 10
            while not heard and time.monotonic() < deadline:
                listener.execute('SELECT 1')
            equal([note.payload for note in heard], ['h'])
        elif kind == 'unlisten':
            listener.execute('UNLISTEN channel')
            speaker.execute('NOTIFY channel')
            listener.execute('LISTEN other')
            speaker.execute('NOTIFY other')
            equal([note.channel for note in listener.notifies(timeout=10, stop_after=1)], ['other'])
        else:
            count = 500 if kind == 'many' else 3
            for number in range(count):
                speaker.execute('SELECT pg_notify(%s, %s)', ('channel', str(number)))
            notes = list(listener.notifies(timeout=20, stop_after=count))
            equal([note.payload for note in notes], [str(number) for number in range(count)])
            if kind == 'payload':
                assert all(note.channel == 'channel' and note.pid for note in notes)
        equal(listener.execute('SELECT 1').fetchone(), (1,))


@case('commit', 'rollback', 'recover', 'other session')
def two_phase(kind):
    with connect(autocommit=False) as connection, connect() as other:
        other.execute('DROP TABLE IF EXISTS phased')
        other.execute('CREATE TABLE phased (n int4)')
        xid = connection.xid(1, f'floe-{kind}', 'branch')
        connection.tpc_begin(xid)
        connection.execute('INSERT INTO phased VALUES (1)')
        connection.tpc_prepare()
        if kind in ('recover', 'other session'):
            # psycopg would take it for one that is under way
            connection.close()
        if kind == 'recover':
            with connect() as third:
                (found,) = [each for each in third.tpc_recover() if str(each) == str(xid)]
                third.tpc_rollback(found)
        elif kind == 'other session':
            with connect() as third:
                third.tpc_commit(xid)
        elif kind == 'commit':
            connection.tpc_commit()
        else:
            connection.tpc_rollback()
        equal(other.execute('SELECT count(*) FROM phased').fetchone(), (int(kind in ('commit', 'other session')),))


@case('cancel', 'cancel_safe', 'idle', 'right session', 'statement_timeout', 'lock_timeout', 'idle timeout')
def interruption(kind):
    with connect() as connection, connect() as other:
        for _ in range(3):
            connection.execute('SELECT 1')
        if kind in ('cancel', 'cancel_safe', 'right session'):
            def cancel():
                with connect() as watcher:
                    deadline = time.monotonic() + 20
                    query = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(25)'"
                    while watcher.execute(query).fetchone() == (0,) and time.monotonic() < deadline:
                        time.sleep(0.01)
                connection.cancel_safe() if kind == 'cancel_safe' else connection.cancel()
            thread = threading.Thread(target=cancel)
            thread.start()
            raises(errors.QueryCanceled, connection.execute, 'SELECT pg_sleep(25)')
            thread.join()
            equal(other.execute('SELECT 2').fetchone(), (2,))
        elif kind == 'idle':
            connection.cancel()
            for _ in range(5):
                equal(other.execute('SELECT 3').fetchone(), (3,))
        elif kind == 'statement_timeout':
            connection.execute("SET statement_timeout = '100ms'")
            for _ in range(3):
                raises(errors.QueryCanceled, connection.execute, 'SELECT pg_sleep(25)')
            equal(other.execute('SELECT 1 FROM pg_sleep(0.3)').fetchone(), (1,))
        elif kind == 'lock_timeout':
            other.execute('DROP TABLE IF EXISTS locked')
            other.execute('CREATE TABLE locked (n int4)')
            connection.execute("SET lock_timeout = '100ms'")
            with other.transaction():
                other.execute('LOCK TABLE locked')
                raises(errors.LockNotAvailable, connection.execute, 'SELECT * FROM locked')
        else:
            connection.execute("SET idle_in_transaction_session_timeout = '200ms'")
            connection.execute('BEGIN')
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                time.sleep(0.5)
                try:
                    connection.execute('SELECT 1')
                except errors.IdleInTransactionSessionTimeout:
                    break
                except psycopg.OperationalError:
                    break
            assert connection.closed
            return
        equal(connection.execute('SELECT 1').fetchone(), (1,))


@case('dict', 'namedtuple', 'class', 'scalar')
def row_factory(kind):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    factory = {'dict': dict_row, 'namedtuple': namedtuple_row, 'class': class_row(Pair), 'scalar': scalar_row}[kind]
    with connect(row_factory=factory) as connection:
        for _ in range(3):
            row = connection.execute('SELECT 1 AS a, 2 AS b').fetchone()
            equal({'dict': lambda: (row['a'], row['b']), 'scalar': lambda: (row, 2)}.get(kind, lambda: (row.a, row.b))(), (1, 2))


@case('enum', 'composite', 'domain', 'hstore', 'jsonb', 'range of own')
def own_type(kind):
    with connect() as connection:
        if kind == 'hstore':
            connection.execute('CREATE EXTENSION IF NOT EXISTS hstore')
            register_hstore(psycopg.types.TypeInfo.fetch(connection, 'hstore'), connection)
            value, name = {'a': '1', 'b': None}, 'hstore'
        elif kind == 'jsonb':
            value = {'a': [1, {'b': None}]}
            for _ in range(3):
                equal(connection.execute('SELECT %s::jsonb', (Jsonb(value),)).fetchone(), (value,))
            return
        else:
            for each in ('ENUM_OWN', 'COMPOSITE_OWN', 'DOMAIN_OWN', 'RANGE_OWN'):
                connection.execute(sql.SQL('DROP {} IF EXISTS {}').format(
                    sql.SQL('DOMAIN' if each == 'DOMAIN_OWN' else 'TYPE'), sql.Identifier(each.lower())))
            if kind == 'enum':
                connection.execute("CREATE TYPE enum_own AS ENUM ('LEFT', 'RIGHT')")
                info = EnumInfo.fetch(connection, 'enum_own')
                register_enum(info, connection)
                value, name = info.enum.LEFT, 'enum_own'
            elif kind == 'composite':
                connection.execute('CREATE TYPE composite_own AS (n int4, t text)')
                info = CompositeInfo.fetch(connection, 'composite_own')
                register_composite(info, connection)
                value, name = info.python_type(1, 'x,"y"'), 'composite_own'
            elif kind == 'domain':
                connection.execute('CREATE DOMAIN domain_own AS int4 CHECK (value > 0)')
                value, name = 5, 'domain_own'
            else:
                connection.execute('CREATE TYPE range_own AS RANGE (subtype = text)')
                info = psycopg.types.range.RangeInfo.fetch(connection, 'range_own')
                psycopg.types.range.register_range(info, connection)
                value, name = psycopg.types.range.Range('a', 'c'), 'range_own'
        for _ in range(3):
            equal(connection.execute(f'SELECT %s::{name}', (value,)).fetchone(), (value,))


@case('notice', 'warning', 'raise')
def message(kind):
    with connect() as connection:
        heard = []
        connection.add_notice_handler(lambda diag: heard.append((diag.severity_nonlocalized, diag.message_primary)))
        for number in range(3):
            if kind == 'raise':
                error = raises(errors.RaiseException, connection.execute, "DO $$ BEGIN RAISE 'no %', 7 USING HINT = 'h'; END $$")
                equal((error.diag.message_primary, error.diag.message_hint), ('no 7', 'h'))
            else:
                connection.execute(f"DO $$ BEGIN RAISE {kind.upper()} 'said {number}'; END $$")
        equal(heard, [] if kind == 'raise' else [(kind.upper(), f'said {number}') for number in range(3)])


@case('application_name', 'client_encoding', 'TimeZone', 'DateStyle', 'IntervalStyle', 'search_path')
def parameter_is_reported(name):
    values = {'application_name': ('one', 'two'), 'client_encoding': ('LATIN1', 'UTF8'), 'TimeZone': ('Asia/Tokyo', 'UTC'),
              'DateStyle': ('German, DMY', 'ISO, MDY'), 'IntervalStyle': ('iso_8601', 'postgres'), 'search_path': ('pg_catalog', 'public')}
    with connect() as connection, connect() as other:
        before = other.info.parameter_status(name)
        for value in values[name] * 2:
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            equal(connection.info.parameter_status(name), value)
            other.execute('SELECT 1')
            equal(other.info.parameter_status(name), before)


@case('status', 'server', 'reconnect', 'options', 'pid', 'close in a transaction', 'many')
def connection_itself(kind):
    with connect() as connection:
        if kind == 'status':
            equal(connection.info.transaction_status, pq.TransactionStatus.IDLE)
            connection.execute('BEGIN')
            equal(connection.info.transaction_status, pq.TransactionStatus.INTRANS)
            raises(errors.SyntaxError, connection.execute, 'SELEC')
            equal(connection.info.transaction_status, pq.TransactionStatus.INERROR)
            connection.execute('ROLLBACK')
            equal(connection.info.transaction_status, pq.TransactionStatus.IDLE)
        elif kind == 'server':
            assert connection.info.server_version >= 180000
            equal(connection.info.encoding, 'utf-8')
        elif kind == 'reconnect':
            for number in range(30):
                with connect() as other:
                    equal(other.execute('SELECT %s::int4', (number,)).fetchone(), (number,))
        elif kind == 'options':
            with connect(options='-c work_mem=7MB -c my.own=z', application_name='named') as other:
                for _ in range(3):
                    equal(other.execute("SELECT current_setting('work_mem'), current_setting('my.own'), "
                                        "current_setting('application_name')").fetchone(), ('7MB', 'z', 'named'))
        elif kind == 'pid':
            assert connection.info.backend_pid > 0
        elif kind == 'close in a transaction':
            connection.execute('DROP TABLE IF EXISTS unfinished')
            connection.execute('CREATE TABLE unfinished (n int4)')
            other = connect(autocommit=False)
            other.execute('INSERT INTO unfinished VALUES (1)')
            other.close()
            equal(connection.execute('SELECT count(*) FROM unfinished').fetchone(), (0,))
        else:
            others = [connect() for _ in range(40)]
            for number, other in enumerate(others):
                other.execute("SELECT set_config('my.number', %s, false)", (str(number),))
            for _ in range(3):
                equal([int(other.execute("SELECT current_setting('my.number')").fetchone()[0]) for other in others], list(range(40)))
            for other in others:
                other.close()


@case('threads', 'transactions', 'contended row', 'serializable', 'deadlock')
def concurrency(kind):
    with connect() as setup:
        setup.execute('DROP TABLE IF EXISTS counter')
        setup.execute('CREATE TABLE counter (id int4 PRIMARY KEY, n int4)')
        setup.execute('INSERT INTO counter SELECT n, 0 FROM generate_series(1, 10) AS n')
    failures = []

    def work(number):
        try:
            with connect() as connection:
                connection.execute('SELECT set_config(%s, %s, false)', ('my.me', str(number)))
                for round_ in range(25):
                    if kind == 'threads':
                        connection.execute('UPDATE counter SET n = n + 1 WHERE id = %s', (number + 1,))
                    elif kind == 'contended row':
                        connection.execute('UPDATE counter SET n = n + 1 WHERE id = 1')
                    elif kind == 'transactions':
                        with connection.transaction():
                            for _ in range(4):
                                connection.execute('UPDATE counter SET n = n + 1 WHERE id = %s', (number + 1,))
                    elif kind == 'serializable':
                        while True:
                            try:
                                with connection.transaction():
                                    connection.execute('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE')
                                    (now,) = connection.execute('SELECT n FROM counter WHERE id = 1').fetchone()
                                    connection.execute('UPDATE counter SET n = %s WHERE id = 1', (now + 1,))
                                break
                            except errors.SerializationFailure:
                                pass
                    else:
                        first, second = (1, 2) if (number + round_) % 2 else (2, 1)
                        while True:
                            try:
                                with connection.transaction():
                                    connection.execute('UPDATE counter SET n = n + 1 WHERE id = %s', (first,))
                                    connection.execute('UPDATE counter SET n = n + 1 WHERE id = %s', (second,))
                                break
                            except errors.DeadlockDetected:
                                pass
                    equal(connection.execute("SELECT current_setting('my.me')").fetchone(), (str(number),))
        except BaseException as error:
            failures.append(error)

    count = 2 if kind in ('deadlock', 'serializable') else 10
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    with connect() as connection:
        expected = {'threads': 250, 'contended row': 250, 'transactions': 1000, 'serializable': 50, 'deadlock': 100}[kind]
        equal(connection.execute('SELECT sum(n) FROM counter').fetchone(), (expected,))


@case('queries', 'many at once', 'cancelled task', 'notifies', 'copy', 'pipeline')
def asynchronous(kind):
    async def work():
        async with await psycopg.AsyncConnection.connect(CONNINFO, autocommit=True) as connection:
            async def one(query, *values):
                return await (await connection.execute(query, values or None)).fetchone()

            if kind == 'queries':
                for number in range(20):
                    equal(await one('SELECT %s::int4', number), (number,))
            elif kind == 'many at once':
                async def other(number):
                    async with await psycopg.AsyncConnection.connect(CONNINFO, autocommit=True) as mine:
                        for _ in range(5):
                            equal(await (await mine.execute('SELECT %s::int4', (number,))).fetchone(), (number,))
                await asyncio.gather(*(other(number) for number in range(30)))
            elif kind == 'cancelled task':
                try:
                    await asyncio.wait_for(connection.execute('SELECT pg_sleep(25)'), 0.5)
                    raise AssertionError('it was not cancelled')
                except asyncio.TimeoutError:
                    pass
            elif kind == 'notifies':
                await connection.execute('LISTEN here')
                await connection.execute("NOTIFY here, 'p'")
                equal([note.payload async for note in connection.notifies(timeout=10, stop_after=1)], ['p'])
            elif kind == 'copy':
                async with connection.cursor() as cursor, cursor.copy('COPY (SELECT generate_series(1, 500)) TO STDOUT') as stream:
                    equal(len([row async for row in stream.rows()]), 500)
            else:
                async with connection.pipeline():
                    cursors = [await connection.execute('SELECT %s::int4', (number,)) for number in range(50)]
                equal([(await cursor.fetchone())[0] for cursor in cursors], list(range(50)))
            equal(await one('SELECT 1'), (1,))
    asyncio.run(work())


@case('statements', 'stream', 'results of several')
def several(kind):
    with connect() as connection:
        if kind == 'statements':
            cursor = connection.execute('SELECT 1; SELECT 2; SELECT 3')
            found = [cursor.fetchone()]
            while cursor.nextset():
                found.append(cursor.fetchone())
            equal(found, [(1,), (2,), (3,)])
        elif kind == 'stream':
            equal([row[0] for row in connection.cursor().stream('SELECT generate_series(1, 1000)')], list(range(1, 1001)))
        else:
            error = raises(errors.DivisionByZero, connection.execute, "SET my.before = 'x'; SELECT 1 / 0")
            equal(error.sqlstate, '22012')
            # the simple protocol makes one transaction of them
            equal(connection.execute("SELECT coalesce(current_setting('my.before', true), '')").fetchone(), ('',))
        equal(connection.execute('SELECT 1').fetchone(), (1,))


def main():
    global CONNINFO
    CONNINFO = sys.argv[1]

    def too_long(*_):
        raise TimeoutError(f'it took more than {SECONDS} s')

    signal.signal(signal.SIGALRM, too_long)
    for name, run in CASES.items():
        signal.alarm(SECONDS)
        try:
            run()
            print(f'ok {name}', flush=True)
        except Exception:
            print(f'not ok {name}\n{traceback.format_exc()}', flush=True)
        finally:
            signal.alarm(0)
    print(f'1..{len(CASES)}', flush=True)


if __name__ == '__main__':
    main()
