# A running flashback can be watched by those who may, is cancelled without a trace, and is seen no more when it has ended.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback);
use Floe::Test::Wait qw(wait_until);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\n");
$node->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE ROLE watcher LOGIN;
	CREATE ROLE monitor LOGIN;
	GRANT pg_read_all_stats TO monitor;
	CREATE TABLE test (id int, name text);
	INSERT INTO test SELECT g, repeat('x', 100) FROM generate_series(1, 5000) g;
	CREATE TABLE parted (id int) PARTITION BY RANGE (id);
	CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
	CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (20);
	INSERT INTO parted SELECT g FROM generate_series(0, 19) g;
	-- holds a flashback at one row
	CREATE FUNCTION pause(id int, at int) RETURNS bool LANGUAGE plpgsql AS
	$$BEGIN IF id = at THEN PERFORM pg_advisory_xact_lock(1); END IF; RETURN true; END$$;
});
my $moment = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
$node->safe_psql('postgres', $_) for 'UPDATE test SET id = 0', 'VACUUM test';

sub progress
{
	my ($columns, $user) = @_;
	return $node->safe_psql('postgres', "SELECT $columns FROM polar_stat_progress_flashback_table",
		extra_params => [ '-U', $user // $node->safe_psql('postgres', 'SELECT current_user') ]);
}

# Starts the statement in a session of its own, which waits at the paused row
sub start
{
	my ($sql) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/started/, "\\echo started\n$sql;\n\\echo completed\n");
	wait_until(sub { $node->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) }, 'the flashback to pause');
	return $session;
}

my $holder = $node->background_psql('postgres');
$holder->query_safe('SELECT pg_advisory_lock(1)');

is(progress('count(*)'), '0', 'nothing is shown while nothing runs');
my $session = start("SELECT polar_flashback_table('test', '$moment', condition => 'pause(id, 4000)')");
is(progress(q{datname, relid::regclass, target_time = '} . $moment . q{', started_at < now(), phase <> '', wal_bytes_total > 0, wal_bytes_done <= wal_bytes_total,
	blocks_total > 0, blocks_done <= blocks_total, blocks_rebuilt > 0, rows BETWEEN 1 AND 5000, partitions_total, indexes_total}),
	'postgres|test|t|t|t|t|t|t|t|t|t|1|0', 'how far it is');
is(progress('pid IS NOT NULL, datname, relid, phase, rows', 'watcher'), 't|postgres|||', 'others see only that it runs');
is(progress('relid::regclass, rows > 0', 'monitor'), 'test|t', 'those who may read all statistics see it');

# Cancel
my $pid = progress('pid');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
wait_until(sub { progress('count(*)') eq '0' }, 'the progress to end');
$session->query_until(qr/completed/, '');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname LIKE 'polar\_flashback\_%' AND relkind = 'r'}), '0', 'a cancelled one leaves no table');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_ls_tmpdir()}), '0', 'and no file');
$session->quit;

# The end of the session
$session = start("SELECT count(*) FROM polar_flashback_rows(NULL::test, '$moment', 'pause(id, 1000)')");
is(progress('rows BETWEEN 1 AND 5000'), 't', 'rows are counted for a function, too');
$pid = progress('pid');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
wait_until(sub { progress('count(*)') eq '0' }, 'the progress to end');
eval { $session->quit };

# Partitions and indexes
$session = start("SELECT polar_flashback_count('parted', '$moment', 'pause(id, 15)')");
is(progress('relid::regclass, partitions_done, partitions_total'), 'parted|1|2', 'of partitions, those that are done are counted');
$holder->query_safe('SELECT pg_advisory_unlock(1)');
wait_until(sub { progress('count(*)') eq '0' }, 'the flashback to end');
$session->quit;
$holder->query_safe('SELECT pg_advisory_lock(1)');
$node->safe_psql('postgres', q{
	CREATE TABLE indexed (id int);
	CREATE FUNCTION slow(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
	$$BEGIN IF id = 3 AND current_query() LIKE '%with_indexes%' THEN PERFORM pg_advisory_xact_lock(1); END IF; RETURN id; END$$;
	CREATE INDEX ON indexed (id);
	CREATE INDEX ON indexed (slow(id));
	INSERT INTO indexed SELECT generate_series(1, 5)});
$moment = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
$session = start("SELECT polar_flashback_table('indexed', '$moment', with_indexes => true)");
is(progress('phase, indexes_done, indexes_total, rows'), 'building indexes|1|2|5', 'and of indexes');
$holder->query_safe('SELECT pg_advisory_unlock(1)');
wait_until(sub { progress('count(*)') eq '0' }, 'the flashback to end');
$session->quit;
$holder->quit;

# An error that is caught
$node->safe_psql('postgres', "DO \$\$BEGIN PERFORM polar_flashback_count('test', '$moment', '1 / id > 0'); EXCEPTION WHEN division_by_zero THEN
	IF EXISTS (SELECT FROM polar_stat_progress_flashback_table) THEN RAISE 'it is still shown'; END IF; END\$\$");
pass('an error that is caught ends it, too');

# What the command says
my ($out, $err);
$node->psql('postgres', "FLASHBACK TABLE test TO TIMESTAMP '$moment'", stdout => \$out, stderr => \$err);
like($err, qr/NOTICE:  table "test" as of .* is now in table "polar_flashback_\d+"\n.*HINT:  Check the rows/, 'the command names the table that it makes')
  or diag($err);

my $comment = $node->safe_psql('postgres', q{SELECT obj_description(('polar_flashback_' || 'test'::regclass::oid)::regclass)});
like($comment, qr/^"public"\."test" as of 20.* \(table \d+, columns 2, position [0-9A-F]+\/[0-9A-F]+, point \d+\)$/, 'which says what it is');

# Without the log it is refused
$node->append_conf('postgresql.conf', "polar_enable_flashback_log = off\n");
$node->restart;
$node->psql('postgres', "FLASHBACK TABLE test TO TIMESTAMP '$moment'", stderr => \$err);
like($err, qr/ERROR:  the flashback log is switched off/, 'without the log it is refused');

done_testing();
