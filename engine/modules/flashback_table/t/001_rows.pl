# The rows of a table are those of transactions that had committed until the moment, whatever has become of them since.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback checkpoint);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\nshared_buffers = 1MB\nmax_prepared_transactions = 5\nwal_consistency_checking = 'heap,heap2'\n");
$node->safe_psql('postgres', 'CREATE EXTENSION flashback_table');

# A moment after everything that has committed, and before all that follows
sub moment
{
	return $node->safe_psql('postgres', 'SELECT clock_timestamp()');
}

# All rows, as their number and a digest of them in order
my $digest = q{SELECT count(*) || ' rows, ' || coalesce(md5(string_agg(r::text, chr(10) ORDER BY r::text)), '-')};

sub rows_of
{
	my ($table, $moment) = @_;
	return $node->safe_psql('postgres', "$digest FROM polar_flashback_rows(NULL::$table, '$moment') r");
}

sub now_of
{
	my ($table) = @_;
	return $node->safe_psql('postgres', "$digest FROM $table r");
}

# The published example
$node->safe_psql('postgres', q{CREATE TABLE test (id int PRIMARY KEY, value int);
	INSERT INTO test SELECT g, g FROM generate_series(1, 10000) g});
my $moment = moment();
$node->safe_psql('postgres', 'DELETE FROM test');
is($node->safe_psql('postgres', 'SELECT count(*), sum(value) FROM test'), '0|', 'all rows are deleted');
my $made = $node->safe_psql('postgres', "SELECT result::text, rows FROM polar_flashback_table('test', '$moment')");
my $oid = $node->safe_psql('postgres', q{SELECT 'test'::regclass::oid});
is($made, "polar_flashback_$oid|10000", 'the result is named for the table');
is($node->safe_psql('postgres', "SELECT count(*), sum(value) FROM polar_flashback_$oid"), '10000|50005000', 'and has its rows');
is($node->safe_psql('postgres', "SELECT polar_flashback_count('test', '$moment')"), '10000', 'they can be counted alone');

# Everything that happens to rows; the truth is what was there at each moment
$node->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, n int, small text, big text, packed text, gone int, twice int GENERATED ALWAYS AS (n * 2) STORED)
		WITH (fillfactor = 70, autovacuum_enabled = off, toast.autovacuum_enabled = off);
	ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
	CREATE FUNCTION noise(i int, n int) RETURNS text LANGUAGE sql IMMUTABLE AS
		$$SELECT string_agg(md5((i * 1000 + g)::text), '') FROM generate_series(1, n) g$$;
	INSERT INTO t SELECT g, g, 'row ' || g, CASE WHEN g % 7 = 0 THEN noise(g, 200) END,
		CASE WHEN g % 5 = 0 THEN repeat('compressible ', 500) WHEN g % 11 = 0 THEN noise(g, 90) END, g FROM generate_series(1, 2000) g});
checkpoint($node);

my @truth;
sub remember
{
	my ($what) = @_;
	my $then = now_of('t');
	push @truth, { what => $what, moment => moment(), rows => $then };
}

remember('after the load');
$node->safe_psql('postgres', q{UPDATE t SET n = n + 1 WHERE id % 3 = 0; UPDATE t SET n = n + 1 WHERE id % 6 = 0});
remember('after HOT updates');
$node->safe_psql('postgres', q{UPDATE t SET big = noise(id + 1, 300) WHERE id % 14 = 0; DELETE FROM t WHERE id % 10 = 0});
remember('after updates of TOAST values and deletes');
$node->safe_psql('postgres', 'VACUUM t');
remember('after VACUUM');
checkpoint($node);
$node->safe_psql('postgres', q{INSERT INTO t (id, n, small) SELECT g, 0, 'new' FROM generate_series(3001, 3500) g});
remember('after inserts into free space');
$node->safe_psql('postgres', q{
	BEGIN;
	UPDATE t SET small = 'kept' WHERE id < 50;
	SAVEPOINT s;
	UPDATE t SET small = 'rolled back' WHERE id < 100;
	DELETE FROM t WHERE id BETWEEN 200 AND 250;
	ROLLBACK TO s;
	SAVEPOINT s2;
	UPDATE t SET small = 'in a savepoint' WHERE id BETWEEN 300 AND 350;
	RELEASE s2;
	COMMIT});
remember('after savepoints');
$node->psql('postgres', 'BEGIN; UPDATE t SET n = -1; ROLLBACK');
remember('after a rollback');
$node->safe_psql('postgres', q{BEGIN; UPDATE t SET small = 'prepared' WHERE id BETWEEN 400 AND 450; PREPARE TRANSACTION 'p'});
remember('while a transaction is prepared');
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
remember('after COMMIT PREPARED');
{
	my $locker = $node->background_psql('postgres');
	$locker->query_safe('BEGIN; SELECT id FROM t WHERE id BETWEEN 500 AND 600 FOR KEY SHARE');
	$node->safe_psql('postgres', q{BEGIN; SAVEPOINT a; UPDATE t SET small = 'multixact' WHERE id BETWEEN 500 AND 550; RELEASE a; COMMIT});
	$node->safe_psql('postgres', q{SELECT id FROM t WHERE id BETWEEN 700 AND 750 FOR SHARE});
	remember('after updates of locked rows');
	$locker->query_safe('COMMIT');
	$locker->quit;
	$locker = $node->background_psql('postgres');
	$locker->query_safe('BEGIN; SELECT id FROM t WHERE id BETWEEN 800 AND 850 FOR SHARE; SAVEPOINT a; DELETE FROM t WHERE id BETWEEN 800 AND 820; COMMIT');
	$locker->quit;
	remember('after deletes of rows that were locked');
}
checkpoint($node);
$node->safe_psql('postgres', q{UPDATE t SET big = NULL WHERE id % 7 = 0 AND id < 1000; VACUUM t; VACUUM (FREEZE) t});
remember('after VACUUM FREEZE');
$node->safe_psql('postgres', q{INSERT INTO t (id, n) VALUES (5000, 1) ON CONFLICT (id) DO UPDATE SET n = 2; INSERT INTO t (id, n) VALUES (5000, 1) ON CONFLICT (id) DO UPDATE SET n = 2});
remember('after ON CONFLICT');
crash($node);
$node->start;
$node->safe_psql('postgres', q{UPDATE t SET n = n + 100 WHERE id % 2 = 0});
remember('after a crash');
$node->safe_psql('postgres', q{DELETE FROM t WHERE id > 600; VACUUM t});
remember('after a VACUUM that truncated the table');
checkpoint($node);
$node->safe_psql('postgres', q{COPY (SELECT id + 10000, n, small, big, packed, gone FROM t) TO '} . $node->basedir . q{/rows'});
$node->safe_psql('postgres', q{COPY t (id, n, small, big, packed, gone) FROM '} . $node->basedir . q{/rows'});
remember('after COPY');
$node->restart;
$node->safe_psql('postgres', q{UPDATE t SET n = 0});
remember('after an update of everything');

sub check_truth
{
	my ($when) = @_;
	for my $known (@truth)
	{
		my $found = rows_of('t', $known->{moment});
		is($found, $known->{rows}, "$when: $known->{what}");
	}
}

check_truth('pages in the cache');
$node->safe_psql('postgres', 'CHECKPOINT; VACUUM (FREEZE) t');
check_truth('after a checkpoint');
$node->safe_psql('postgres', q{DELETE FROM t; VACUUM t; CHECKPOINT});
check_truth('after the table was emptied');
$node->append_conf('postgresql.conf', "maintenance_work_mem = 64kB\nwork_mem = 64kB\n");
$node->restart;
check_truth('with pages spilled to a file');

$node->stop;
done_testing();
