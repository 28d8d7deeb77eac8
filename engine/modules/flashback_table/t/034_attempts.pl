# What others do to a table between a preview and a merge, and names that are meant to break out of a statement.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback);
use Floe::Test::Wait qw(wait_until);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\nlock_timeout = 60s\n");
$node->safe_psql('postgres', 'CREATE EXTENSION flashback_table; CREATE TABLE precious (id int); INSERT INTO precious VALUES (1)');
my $rows = 'SELECT count(*), sum(id) FROM';
my $err;

sub ask { my ($sql) = @_; return $node->safe_psql('postgres', $sql) }

sub refused
{
	my ($sql, $like, $name) = @_;
	isnt($node->psql('postgres', $sql, stderr => \$err), 0, "$name: refused");
	like($err, $like, "$name: and why");
	return;
}

# A table of which the first ten rows are gone, and the result with them
sub lost_rows
{
	my ($name) = @_;
	ask("CREATE TABLE $name (id int PRIMARY KEY, v text); INSERT INTO $name SELECT g, 'v' || g FROM generate_series(1, 100) g");
	my $moment = ask('SELECT clock_timestamp()');
	ask("DELETE FROM $name WHERE id <= 10");
	is(ask("SELECT rows FROM polar_flashback_compare('$name', '$moment') WHERE kind = 'removed' AND rows IS NOT NULL"), 10, "$name: ten rows are missed");
	ask("SELECT FROM polar_flashback_table('$name', '$moment', result_name => '${name}_then')");
	return $moment;
}
sub merge { my ($name) = @_; return "SELECT inserted FROM polar_flashback_merge('${name}_then', '$name', true, true, true)" }

# Something else has the name of the table
lost_rows('a');
ask('ALTER TABLE a RENAME TO a_old; CREATE VIEW a AS SELECT * FROM precious');
refused(merge('a'), qr/ERROR:  table "a_then" is not the result of a flashback of "a"/, 'a view');
ask('DROP VIEW a; CREATE TABLE a (LIKE precious)');
refused(merge('a'), qr/ERROR:  table "a_then" is not the result of a flashback of "a"/, 'another table');
ask('DROP TABLE a; CREATE TABLE a (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE a_1 PARTITION OF a DEFAULT');
refused(merge('a'), qr/ERROR:  table "a_then" is not the result of a flashback of "a"/, 'a partitioned table');
ask('DROP TABLE a; CREATE MATERIALIZED VIEW a AS SELECT * FROM a_old');
refused(merge('a'), qr/ERROR:  table "a_then" is not the result of a flashback of "a"/, 'a materialized view');
is(ask("$rows a_old"), '90|4995', 'the table that had the name is as it was');
is(ask("$rows precious"), '1|1', 'and so is any other');

# The result is exchanged
lost_rows('b');
ask(q{ALTER TABLE b_then RENAME TO b_kept; CREATE VIEW b_then AS SELECT * FROM b_kept});
refused(merge('b'), qr/ERROR:  .*"b_then"/, 'a view instead of the result');
ask(q{DROP VIEW b_then; CREATE TABLE b_then AS SELECT 1000 + g AS id, 'other' AS v FROM generate_series(1, 5) g});
refused(merge('b'), qr/ERROR:  table "b_then" is not the result of a flashback of "b"/, 'another table instead of the result');

# The table has become a partition
lost_rows('c');
ask('CREATE TABLE parent (id int NOT NULL, v text) PARTITION BY RANGE (id); ALTER TABLE parent ATTACH PARTITION c FOR VALUES FROM (11) TO (1000)');
refused(merge('c'), qr/ERROR:  new row for relation "c" violates partition constraint/, 'a partition that rows of then do not belong to');
is(ask("$rows parent"), '90|4995', 'and nothing was written');
ask('ALTER TABLE parent DETACH PARTITION c');
is(ask(merge('c')), 10, 'detached again, it gets its rows');

# It is renamed while the merge waits for it: rows go where they come from
lost_rows('d');
my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN; LOCK TABLE d');
my $merging = $node->background_psql('postgres', on_error_stop => 0);
$merging->query_until(qr/begun/, "\\echo begun\n" . merge('d') . ";\n");
wait_until(sub { ask(q{SELECT count(*) FROM pg_locks WHERE relation = 'd'::regclass AND NOT granted}) > 0 }, 'the merge to wait', 60);
$holder->query_safe('ALTER TABLE d RENAME TO d_old; CREATE TABLE d (id int PRIMARY KEY, v text); COMMIT');
$holder->quit;
$merging->quit;
is(ask("$rows d"), '0|', 'the table that has its name now gets nothing');
like(ask("$rows d_old"), qr/^(100\|5050|90\|4995)$/, 'its own table gets all or nothing');

# Event triggers, which only a superuser can make
my $moment = lost_rows('e');
ask(q{
	CREATE FUNCTION meddle() RETURNS event_trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF current_setting('meddle.how', true) = 'drop' AND to_regclass('e_again') IS NOT NULL THEN
			DROP TABLE e_again;
		ELSIF current_setting('meddle.how', true) = 'change' AND tg_event = 'ddl_command_start' THEN
			UPDATE e SET v = 'meddled' WHERE id < 20;
		ELSIF current_setting('meddle.how', true) = 'fail' THEN
			RAISE EXCEPTION 'meddled %', tg_event;
		END IF;
	END$$;
	CREATE EVENT TRIGGER at_start ON ddl_command_start EXECUTE FUNCTION meddle();
	CREATE EVENT TRIGGER at_end ON ddl_command_end EXECUTE FUNCTION meddle();
	CREATE EVENT TRIGGER at_rewrite ON table_rewrite EXECUTE FUNCTION meddle()});
for my $how ('drop', 'change', 'fail')
{
	$node->psql('postgres', "SET meddle.how = '$how'; FLASHBACK TABLE e TO TIMESTAMP '$moment'", stderr => \$err);
	unlike($err, qr/server closed|TRAP|PANIC/, "$how: the server goes on");
	is(ask("SET meddle.how = '$how'; SELECT count(*), sum(id) FROM polar_flashback_rows(NULL::e, '$moment')"), '100|5050', "$how: the rows of then are those of then");
	$node->psql('postgres', "SET meddle.how = '$how'; SELECT polar_flashback_swap('e_then', 'e')", stderr => \$err);
	my $now = ask("$rows e");
	ok($now eq '100|5050' || $now eq '90|4995', "$how: a swap is done, or it is not");
	$node->psql('postgres', "SELECT polar_flashback_swap('e_then', 'e')", stderr => \$err) if $now eq '100|5050';
	ask('DROP TABLE IF EXISTS polar_flashback_' . ask(q{SELECT 'e'::regclass::oid}));
}
ask('DROP EVENT TRIGGER at_start; DROP EVENT TRIGGER at_end; DROP EVENT TRIGGER at_rewrite');
is(ask(merge('e')), 10, 'without them its rows come back');

# Names
my $schema = qq{"s\n"".'; DROP TABLE precious; --"};
my $table = qq{"t\r\n""\\' as of 2026-01-01 (table 1, columns 1, ""}; $table .= q{"};
my $column = qq{"c\n""', (SELECT 1/0)); --"};
ask(qq{CREATE SCHEMA $schema; CREATE TABLE $schema.$table ($column int PRIMARY KEY, id int); INSERT INTO $schema.$table SELECT g, g FROM generate_series(1, 100) g});
$moment = ask('SELECT clock_timestamp()');
ask("DELETE FROM $schema.$table WHERE id <= 10; UPDATE $schema.$table SET id = 0 WHERE id = 50");
my $quoted = ask(qq{SELECT quote_literal(oid::regclass::text) FROM pg_class WHERE relname LIKE 't%as of%' AND relkind = 'r'});
is(ask("SELECT rows FROM polar_flashback_table($quoted, '$moment', result_name => \$r\$the result\n\"';--\$r\$)"), 100, 'odd names: flashed back');
my $found = ask("SELECT relation_name = (SELECT relname FROM pg_class WHERE oid = $quoted\::regclass), relation = $quoted\::regclass FROM polar_flashback_results() WHERE relation = $quoted\::regclass");
is($found, 't|t', 'odd names: the result is known');
my $result = "(SELECT result FROM polar_flashback_results() WHERE relation = $quoted\::regclass)";
is(ask("SELECT inserted, restored, deleted FROM polar_flashback_merge($result, $quoted, true, true, true)"), '10|1|0', 'odd names: merged');
is(ask("SELECT count(*), sum(id) FROM $schema.$table"), '100|5050', 'odd names: its rows are back');
ask("SELECT polar_flashback_swap($result, $quoted)");
is(ask("SELECT count(*) FROM polar_flashback_activity() WHERE relation = $quoted\::regclass") > 0 ? 1 : 0, 1, 'odd names: what WAL says of it');
like(ask("SELECT string_agg(polar_flashback_csv, '') FROM polar_flashback_csv($quoted)"), qr/^"c\n""', \(SELECT 1\/0\)\); --",id\n/, 'odd names: exported');
ask("DROP TABLE $schema.$table");
$found = ask("SELECT count(*) FROM polar_flashback_dropped() WHERE kind = 'dropped' AND relation_name LIKE 't%as of%'");
is($found, 1, 'odd names: listed as dropped');
ask("FLASHBACK TABLE $schema.$table TO BEFORE DROP");
is(ask("SELECT count(*), sum(id) FROM $schema.$table"), '100|5050', 'odd names: and given back');
is(ask("$rows precious"), '1|1', 'and nothing that a name says was done');

$node->stop;
done_testing();
