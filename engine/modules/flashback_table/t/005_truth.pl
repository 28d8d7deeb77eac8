# Under concurrent load of many kinds, each moment that was recorded is given back exactly, while the load goes on, after it, and
# after a crash. Each commit holds a lock shared that the recorder takes exclusively, so that none is between its timestamp and
# its visibility. PG_TEST_EXTRA=flashback_truth=SECONDS makes the load last longer than 60 s.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback checkpoint);
use Floe::Test::Wait qw(wait_until);

my $seconds = ($ENV{PG_TEST_EXTRA} // '') =~ /flashback_truth=(\d+)/ ? $1 : 60;
my $node = new_flashback('node', q{
polar_enable_fast_recovery_area = on
polar_flashback_log_max_size = 4GB
polar_flashback_log_test_segment_size = 4MB
shared_buffers = 4MB
maintenance_work_mem = 1MB
max_prepared_transactions = 20
autovacuum = on
autovacuum_naptime = 1s
autovacuum_vacuum_threshold = 200
autovacuum_vacuum_scale_factor = 0
bgwriter_lru_maxpages = 100
});
$node->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE TABLE item (id int PRIMARY KEY, n int NOT NULL, label text, body text) WITH (fillfactor = 80);
	CREATE FUNCTION noise(i int, n int) RETURNS text LANGUAGE sql AS
		$$SELECT string_agg(md5((i * 1000 + g)::text), '') FROM generate_series(1, n) g$$;
	INSERT INTO item SELECT g, 0, 'item ' || g, CASE WHEN g % 20 = 0 THEN noise(g, 150) END FROM generate_series(1, 3000) g;
	CREATE TABLE account (id int PRIMARY KEY, balance int) WITH (fillfactor = 50);
	INSERT INTO account SELECT g, 1000 FROM generate_series(1, 500) g;
	CREATE TABLE queue (id serial, payload text);
	CREATE TABLE truth (moment timestamptz, tab text, content text)});

# The kinds of transactions; each ends while it holds the lock
my %script = (
	transfer => q{
		\set a random(1, 500)
		\set b random(1, 500)
		\set d random(1, 10)
		BEGIN;
		UPDATE account SET balance = balance - :d WHERE id = least(:a, :b);
		UPDATE account SET balance = balance + :d WHERE id = greatest(:a, :b);
		SELECT pg_advisory_xact_lock_shared(1);
		COMMIT;
	},
	update => q{
		\set a random(1, 3000)
		BEGIN;
		UPDATE item SET n = n + 1, label = label || '.' WHERE id = :a;
		SAVEPOINT s;
		UPDATE item SET n = -1 WHERE id BETWEEN :a AND :a + 3;
		ROLLBACK TO s;
		SAVEPOINT s2;
		UPDATE item SET label = 'item ' || id WHERE id = :a;
		RELEASE s2;
		SELECT pg_advisory_xact_lock_shared(1);
		COMMIT;
	},
	toast => q{
		\set a random(1, 3000)
		\set c random(50, 300)
		BEGIN;
		UPDATE item SET body = noise(:a, :c) WHERE id = :a;
		SELECT pg_advisory_xact_lock_shared(1);
		COMMIT;
	},
	lock => q{
		\set a random(1, 3000)
		BEGIN;
		SELECT id FROM item WHERE id BETWEEN :a AND :a + 5 ORDER BY id FOR KEY SHARE;
		UPDATE item SET n = n + 1 WHERE id = :a;
		SELECT pg_advisory_xact_lock_shared(1);
		COMMIT;
	},
	replace => q{
		\set a random(1, 3000)
		BEGIN;
		DELETE FROM item WHERE id = :a;
		INSERT INTO item VALUES (:a, 1, 'again') ON CONFLICT (id) DO UPDATE SET n = item.n + 100;
		SELECT pg_advisory_xact_lock_shared(1);
		COMMIT;
	},
	abort => q{
		\set a random(1, 3000)
		BEGIN;
		DELETE FROM item WHERE id BETWEEN :a AND :a + 20;
		ROLLBACK;
	},
	queue => q{
		\set n random(1, 60)
		BEGIN;
		INSERT INTO queue (payload) SELECT md5(g::text) || repeat('x', :n) FROM generate_series(1, :n) g;
		SELECT pg_advisory_xact_lock_shared(1);
		COMMIT;
		BEGIN;
		DELETE FROM queue WHERE id IN (SELECT id FROM queue ORDER BY id LIMIT :n FOR UPDATE SKIP LOCKED);
		SELECT pg_advisory_xact_lock_shared(1);
		COMMIT;
	},
	prepared => q{
		\set a random(1, 3000)
		BEGIN;
		UPDATE item SET n = n + 10 WHERE id = :a;
		PREPARE TRANSACTION 'p:client_id';
		SELECT pg_advisory_lock_shared(1);
		COMMIT PREPARED 'p:client_id';
		SELECT pg_advisory_unlock_shared(1);
	});
my @files;
while (my ($name, $sql) = each %script)
{
	my $file = $node->basedir . "/$name.sql";
	append_to_file($file, $sql =~ s/^\t+//mgr);
	push @files, '-f', $file . '@' . ($name =~ /^(abort|prepared|queue)$/ ? 1 : 3);
}

sub start_load
{
	return IPC::Run::start([ 'pgbench', '-n', '-c', '6', '-T', '100000', '--max-tries=10', '--failures-detailed', @files, $node->connstr('postgres') ],
		'>', '/dev/null', '2>', $node->basedir . '/pgbench.err');
}

my @tables = qw(item account queue);
my @moments;

# Takes the content of all tables, and a moment that it belongs to
sub record
{
	my ($moment) = $node->safe_psql('postgres', q{
		SET deadlock_timeout = '1h';
		DO $$ BEGIN PERFORM pg_advisory_lock(1); END $$;
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		CREATE TEMPORARY TABLE taken AS SELECT 'item' AS tab, i::text AS content FROM item i
			UNION ALL SELECT 'account', a::text FROM account a UNION ALL SELECT 'queue', q::text FROM queue q;
		ALTER TABLE taken ADD moment timestamptz;
		UPDATE taken SET moment = m FROM (SELECT clock_timestamp() AS m) t;
		INSERT INTO truth SELECT moment, tab, content FROM taken;
		SELECT DISTINCT moment FROM taken;
		COMMIT;
		DO $$ BEGIN PERFORM pg_advisory_unlock(1); END $$});
	push @moments, $moment;
	return $moment;
}

my ($compared, $different) = (0, 0);

sub compare
{
	my ($moment, $when) = @_;
	for my $table (@tables)
	{
		my ($missing, $surplus, $rows) = split /\|/, $node->safe_psql('postgres', qq{
			WITH known AS MATERIALIZED (SELECT content FROM truth WHERE moment = '$moment' AND tab = '$table'),
				found AS MATERIALIZED (SELECT r::text AS content FROM polar_flashback_rows(NULL::$table, '$moment') r)
			SELECT (SELECT count(*) FROM (SELECT * FROM known EXCEPT ALL SELECT * FROM found) m),
				(SELECT count(*) FROM (SELECT * FROM found EXCEPT ALL SELECT * FROM known) s),
				(SELECT count(*) FROM found)});
		$compared++;
		next if "$missing|$surplus" eq '0|0';
		$different++;
		diag("$when: $table as of $moment: $missing rows missing, $surplus too many of $rows");
	}
	return;
}

my $load = start_load();
my $began = time;
my $crashed = 0;
my $last = 0;
while (time - $began < $seconds)
{
	# A moment after each so many transactions
	my $commits = sub { $node->safe_psql('postgres', q{SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'}) };
	$last = $commits->();
	wait_until(sub { $commits->() > $last + 300 }, 'transactions of the load', 60);
	record();
	checkpoint($node) if @moments % 4 == 0;
	$node->safe_psql('postgres', 'VACUUM (FREEZE) item; VACUUM account') if @moments % 7 == 0;
	compare($moments[ int(rand(@moments)) ], 'under load') if @moments % 2 == 0;
	if (!$crashed && time - $began > $seconds / 2)
	{
		crash($node);
		IPC::Run::kill_kill($load);
		$node->start;
		$node->safe_psql('postgres', "ROLLBACK PREPARED '$_'") for split /\n/, $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
		$load = start_load();
		$crashed = 1;
	}
}
IPC::Run::kill_kill($load);
ok($crashed, 'the server crashed meanwhile');
compare($_, 'after the load') for @moments;
$node->safe_psql('postgres', 'DELETE FROM item WHERE id % 2 = 0; VACUUM (FREEZE) item, account, queue; CHECKPOINT');
compare($_, 'after VACUUM FREEZE') for @moments;
cmp_ok($compared, '>', 20, "$compared comparisons of " . scalar(@moments) . ' moments');
is($different, 0, 'no difference');
$node->stop;
done_testing();
