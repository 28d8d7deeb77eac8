# Under concurrent load of many kinds, each moment that was recorded is given back exactly, while the load goes on, after it, and
# after crashes. Each kind is counted, and must have occurred. Each commit holds a lock shared that the recorder takes exclusively,
# so that none is between its timestamp and its visibility. FLOE_TRUTH_SECONDS says how long the load lasts (default 25),
# FLOE_TRUTH_COMPARISONS how many are made at least, FLOE_TRUTH_SESSIONS how many sessions there are (6); FLOE_TEST_RESULT names a
# file for the counts. ./floe bench flashback-truth is the long form; FLOE_TEST_LONG=1 takes a minute and every table more often.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use List::Util qw(max shuffle);
use Time::HiRes qw(time);
use Floe::Test::Crash qw(crash);
use Floe::Test::Figures qw(write_figures);
use Floe::Test::Flashback qw(new_flashback checkpoint);
use Floe::Test::Wait qw(wait_until);

my $long = $ENV{FLOE_TEST_LONG} || $ENV{FLOE_TRUTH_COMPARISONS};
my $seconds = $ENV{FLOE_TRUTH_SECONDS} || ($long ? 60 : 25);
my $least = $ENV{FLOE_TRUTH_COMPARISONS} || ($long ? 150 : 70);
# How often each table is compared at least, after the load and after VACUUM FREEZE
my $each = $long ? 15 : 4;
my $sessions = $ENV{FLOE_TRUTH_SESSIONS} || 6;
my $node = new_flashback('node', q{
polar_enable_fast_recovery_area = on
polar_flashback_log_max_size = 12GB
polar_flashback_recycle_max_size = 12GB
polar_flashback_log_test_segment_size = 4MB
shared_buffers = 4MB
maintenance_work_mem = 1MB
max_prepared_transactions = 20
max_connections = 50
max_worker_processes = 16
full_page_writes = off
polar_page_repair_guard = off
autovacuum = on
autovacuum_naptime = 1s
autovacuum_vacuum_threshold = 200
autovacuum_vacuum_scale_factor = 0
bgwriter_lru_maxpages = 100
});
$node->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE EXTENSION pageinspect;
	CREATE EXTENSION amcheck;
	CREATE TABLE item (id int PRIMARY KEY, n int NOT NULL, label text, body text) WITH (fillfactor = 80);
	CREATE FUNCTION noise(i int, n int) RETURNS text LANGUAGE sql AS
		$$SELECT string_agg(md5((i * 1000 + g)::text), '') FROM generate_series(1, n) g$$;
	INSERT INTO item SELECT g, 0, 'item ' || g, CASE WHEN g % 20 = 0 THEN noise(g, 150) END FROM generate_series(1, 3000) g;
	CREATE TABLE account (id int PRIMARY KEY, balance int) WITH (fillfactor = 50);
	INSERT INTO account SELECT g, 1000 FROM generate_series(1, 500) g;
	CREATE TABLE queue (id serial, payload text);
	CREATE TABLE event (id int, part int, n int, note text) PARTITION BY LIST (part);
	CREATE TABLE event_0 PARTITION OF event FOR VALUES IN (0);
	CREATE TABLE event_1 (note text, gone int, n int, part int, id int);
	ALTER TABLE event_1 DROP gone;
	ALTER TABLE event ATTACH PARTITION event_1 FOR VALUES IN (1);
	INSERT INTO event SELECT g, g % 2, 0, 'event ' || g FROM generate_series(1, 500) g;
	CREATE TABLE shape (id int PRIMARY KEY, n int, c0 text DEFAULT 'c');
	INSERT INTO shape SELECT g, 0 FROM generate_series(1, 300) g;
	CREATE TABLE bulk (id int, n int, body text);
	CREATE TABLE staged (id serial, n int, body text);
	CREATE TABLE typed (id int, v int);
	INSERT INTO typed SELECT g, g FROM generate_series(1, 400) g;
	CREATE TABLE truth (moment timestamptz, tab text, content text);
	CREATE INDEX ON truth (moment, tab)});

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
		UPDATE item SET body = repeat('compressible ', :c * 10) WHERE id = :a + 1;
		UPDATE item SET body = noise(:a, 2) WHERE id = :a + 2;
		UPDATE item SET body = NULL WHERE id = :a + 3;
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
	conflict => q{
		\set a random(1, 40)
		BEGIN;
		INSERT INTO account VALUES (-:a, 0) ON CONFLICT (id) DO NOTHING;
		DELETE FROM account WHERE id = -:a;
		SELECT pg_advisory_xact_lock_shared(1);
		COMMIT;
	},
	move => q{
		\set a random(1, 500)
		BEGIN;
		UPDATE event SET part = 1 - part, n = n + 1 WHERE id = :a AND part < 2;
		SELECT pg_advisory_xact_lock_shared(1);
		COMMIT;
	},
	combo => q{
		\set a random(1, 300)
		BEGIN;
		SELECT id FROM shape WHERE id = :a FOR UPDATE;
		UPDATE shape SET n = n + 1 WHERE id = :a;
		SAVEPOINT s;
		DELETE FROM shape WHERE id = :a;
		ROLLBACK TO s;
		UPDATE shape SET n = n + 1 WHERE id = :a;
		INSERT INTO shape (id, n) VALUES (1000 + :client_id, 0);
		DELETE FROM shape WHERE id = 1000 + :client_id;
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
	stage => q{
		\set n random(1, 40)
		BEGIN;
		SELECT pg_advisory_xact_lock_shared(1);
		TRUNCATE staged;
		INSERT INTO staged (n, body) SELECT g, CASE WHEN g % 8 = 0 THEN noise(g, 100) END FROM generate_series(1, :n) g;
		COMMIT;
		BEGIN;
		SELECT pg_advisory_xact_lock_shared(1);
		UPDATE staged SET n = n + 1 WHERE n % 3 = 0;
		COMMIT;
	},
	undone => q{
		BEGIN;
		SELECT pg_advisory_xact_lock_shared(1);
		TRUNCATE staged;
		INSERT INTO staged (n) VALUES (-1);
		SAVEPOINT s;
		TRUNCATE staged;
		ROLLBACK;
	},
	retype => q{
		\set a random(1, 400)
		BEGIN;
		UPDATE typed SET v = v WHERE id = :a;
		DELETE FROM typed WHERE id = :a + 1;
		INSERT INTO typed (id) VALUES (:a + 1);
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
	# Sequences are not rolled back, and count
	$node->safe_psql('postgres', "CREATE SEQUENCE did_$name");
	$sql .= "SELECT nextval('did_$name');\n";
	my $file = $node->basedir . "/$name.sql";
	append_to_file($file, $sql =~ s/^\t+//mgr);
	push @files, '-f', $file . '@' . ($name =~ /^(abort|prepared|queue|stage|undone)$/ ? 1 : 3);
}

my $load;

sub start_load
{
	$load = IPC::Run::start([ 'pgbench', '-n', '-c', $sessions, '-T', '100000', '--max-tries=10', '--failures-detailed', @files, $node->connstr('postgres') ],
		'>', '/dev/null', '2>', $node->basedir . '/pgbench.err');
	return;
}

# No client may have given up by itself
sub check_load
{
	my $trouble = join '', grep { !/deadlock|serializ/ } slurp_file($node->basedir . '/pgbench.err') =~ /^.*(?:aborted|error|fatal).*$/mgi;
	die "the load died: $trouble" if $trouble ne '' || !$load->pumpable;
	return;
}

my @tables = qw(item account queue event shape bulk staged typed);

# What is compared of a row; a column that is added or dropped is none of it
my %content = map { $_ => 'r::text' } @tables;
$content{shape} = 'ROW(r.id, r.n)::text';
$content{typed} = 'ROW(r.id, r.v::text)::text';
my @moments;

# Takes the content of all tables, and a moment that it belongs to
sub record
{
	my ($moment) = $node->safe_psql('postgres', q{
		SET deadlock_timeout = '1h';
		DO $$ BEGIN PERFORM pg_advisory_lock(1); END $$;
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		CREATE TEMPORARY TABLE taken AS } . join(' UNION ALL ', map { "SELECT '$_' AS tab, $content{$_} AS content FROM $_ r" } @tables) . q{;
		ALTER TABLE taken ADD moment timestamptz;
		UPDATE taken SET moment = m FROM (SELECT clock_timestamp() AS m) t;
		INSERT INTO truth SELECT moment, tab, content FROM taken;
		SELECT DISTINCT moment FROM taken;
		COMMIT;
		DO $$ BEGIN PERFORM pg_advisory_unlock(1); END $$});
	push @moments, $moment;
	return $moment;
}

my ($compared, $different, $made) = (0, 0, 0);

# Makes a table, with as many workers as it comes
sub make_sql
{
	my ($table, $moment) = @_;
	my $workers = (0, 1, 2, 3, 'NULL')[ int(rand(5)) ];
	return "SELECT FROM polar_flashback_table('$table', '$moment', workers => $workers, result_name => 'made');";
}

sub compare
{
	my ($moment, $when) = @_;
	for my $table (@tables)
	{
		# Read, or made: copied where that can be, else inserted.  Rows with other types than now are only had in a table.
		my $make = $table eq 'typed' || rand() < 0.5;
		my $from = $make ? 'made' : "polar_flashback_rows(NULL::$table, '$moment')";
		my ($found) = $node->safe_psql('postgres', ($make ? make_sql($table, $moment) : '') . qq{
			WITH known AS MATERIALIZED (SELECT content FROM truth WHERE moment = '$moment' AND tab = '$table'),
				found AS MATERIALIZED (SELECT $content{$table} AS content FROM $from r)
			SELECT (SELECT count(*) FROM (SELECT * FROM known EXCEPT ALL SELECT * FROM found) m),
				(SELECT count(*) FROM (SELECT * FROM found EXCEPT ALL SELECT * FROM known) s),
				(SELECT count(*) FROM found);} . ($make ? q{SELECT 'findings', count(*) FROM verify_heapam('made', check_toast => true); DROP TABLE made} : '')) =~ /(\d+\|\d+\|\d+(?:\nfindings\|\d+)?)\z/;
		my ($missing, $surplus, $rows) = split /[|\n]/, $found;
		$compared++;
		$made++ if $make;
		next if $found =~ /\A0\|0\|\d+(\nfindings\|0)?\z/;
		$different++;
		diag("$when: $table as of $moment" . ($make ? ', made' : '') . ": $missing rows missing, $surplus too many of $rows: $found");
	}
	return;
}

# What differs from now, which stands still meanwhile: told by pages where that can be, of a moment or of a result
sub compare_differences
{
	my ($moment, $when) = @_;
	for my $table (qw(item account queue event bulk staged))
	{
		my $make = rand() < 0.5;
		my $with = $make ? q{result => 'made'} : "'$moment'";
		my ($found) = $node->safe_psql('postgres', ($make ? make_sql($table, $moment) : '') . qq{
			BEGIN;
			LOCK TABLE $table IN SHARE MODE;
			WITH known AS MATERIALIZED (SELECT content FROM truth WHERE moment = '$moment' AND tab = '$table'),
				present AS MATERIALIZED (SELECT $content{$table} AS content FROM $table r),
				counts AS MATERIALIZED (SELECT json_object_agg(kind, rows) AS c FROM polar_flashback_compare('$table', $with, samples => 0) WHERE kind <> 'columns')
			SELECT (c->>'then')::int - (SELECT count(*) FROM known), (c->>'now')::int - (SELECT count(*) FROM present),
				(c->>'then')::int - (c->>'same')::int - (SELECT count(*) FROM (SELECT * FROM known EXCEPT ALL SELECT * FROM present) m),
				(c->>'now')::int - (c->>'same')::int - (SELECT count(*) FROM (SELECT * FROM present EXCEPT ALL SELECT * FROM known) s) FROM counts;
			COMMIT;} . ($make ? 'DROP TABLE made' : '')) =~ /(-?\d+\|-?\d+\|-?\d+\|-?\d+)\z/;
		$compared++;
		next if defined $found && $found eq '0|0|0|0';
		$different++;
		diag("$when: the differences of $table as of $moment" . ($make ? ', made' : '') . ": $found");
	}
	return;
}

# A dropped table as it was before that
sub compare_lost
{
	my ($n, $when) = @_;
	$node->safe_psql('postgres', "FLASHBACK TABLE lost_$n TO BEFORE DROP RENAME TO back");
	my $result = $node->safe_psql('postgres', qq{
		WITH known AS MATERIALIZED (SELECT content FROM truth WHERE moment = '-infinity' AND tab = 'lost_$n'),
			found AS MATERIALIZED (SELECT r::text AS content FROM back r)
		SELECT (SELECT count(*) FROM (SELECT * FROM known EXCEPT ALL SELECT * FROM found) m),
			(SELECT count(*) FROM (SELECT * FROM found EXCEPT ALL SELECT * FROM known) s),
			(SELECT count(*) FROM verify_heapam('back', check_toast => true))});
	$node->safe_psql('postgres', 'DROP TABLE back');
	$compared++;
	return if $result eq '0|0|0';
	$different++;
	diag("$when: dropped table $n: $result rows missing, too many, findings");
	return;
}

# What else happens, one after the other
my %did = map { $_ => 0 } qw(crash restart checkpoint truncation freeze vacuum copy add_column drop_column late_default
  vacuum_full cluster truncate rewrite retype toast_full add_partition drop_partition drop);
my $file = $node->basedir . '/bulk';
$node->safe_psql('postgres', "COPY (SELECT g, g, CASE WHEN g % 50 = 0 THEN noise(g, 100) ELSE repeat('x', g % 300) END FROM generate_series(1, 2000) g) TO '$file'");

sub size_of
{
	my ($table) = @_;
	return $node->safe_psql('postgres', "SELECT pg_relation_size('$table')");
}

my %step = (
	copy => sub { $node->safe_psql('postgres', "COPY bulk FROM '$file'"); $did{copy}++ },
	truncation => sub {
		my $before = size_of('bulk');
		return if $before < 20 * 8192;
		my $keep = int(rand($before / 8192 / 2));
		$node->safe_psql('postgres', "DELETE FROM bulk WHERE ctid >= '($keep,0)'");

		# What transactions of the load may still see cannot be removed yet
		wait_until(sub { $node->safe_psql('postgres', 'VACUUM bulk'); size_of('bulk') < $before }, 'VACUUM to truncate the table', 60);
		$did{truncation}++;
	},
	change => sub { $node->safe_psql('postgres', 'UPDATE bulk SET n = n + 1 WHERE id % 3 = 0') },
	freeze => sub { $node->safe_psql('postgres', 'VACUUM (FREEZE) item, shape, event'); $did{freeze}++ },
	vacuum => sub { $node->safe_psql('postgres', 'VACUUM account, queue, pg_class, pg_inherits'); $did{vacuum}++ },
	checkpoint => sub { checkpoint($node); $did{checkpoint}++ },
	add_column => sub { $did{add_column}++; $node->safe_psql('postgres', "ALTER TABLE shape ADD c$did{add_column} text DEFAULT 'd'") },
	drop_column => sub {
		return if $did{drop_column} >= $did{add_column};
		$node->safe_psql('postgres', "ALTER TABLE shape DROP c$did{drop_column}");
		$did{drop_column}++;
	},
	vacuum_full => sub {
		my @full = (qw(item account queue shape bulk staged), $node->safe_psql('postgres', q{SELECT string_agg(relid::regclass::text, ', ') FROM pg_partition_tree('event') WHERE isleaf}));
		$node->safe_psql('postgres', 'VACUUM FULL ' . $full[ int(rand(@full)) ]);
		$did{vacuum_full}++;
	},
	toast_full => sub {
		my $toast = $node->safe_psql('postgres', q{SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'item'});
		$node->safe_psql('postgres', "VACUUM FULL $toast");
		$did{toast_full}++;
	},
	cluster => sub { $node->safe_psql('postgres', 'CLUSTER account USING account_pkey'); $did{cluster}++ },
	truncate => sub { $node->safe_psql('postgres', 'TRUNCATE bulk'); $did{truncate}++ },
	rewrite => sub { $did{add_column}++; $node->safe_psql('postgres', "ALTER TABLE shape ADD c$did{add_column} text DEFAULT random()::text"); $did{rewrite}++ },
	retype => sub { $node->safe_psql('postgres', 'ALTER TABLE typed ALTER v TYPE ' . qw(text int8 int)[ $did{retype}++ % 3 ] . ' USING v::text::int') },
	add_partition => sub {
		my $n = 2 + $did{add_partition}++;
		$node->safe_psql('postgres', "CREATE TABLE event_$n PARTITION OF event FOR VALUES IN ($n); INSERT INTO event SELECT g, $n, 0, noise(g, g) FROM generate_series(1, 100) g");
	},
	drop_partition => sub {
		return if $did{drop_partition} >= $did{add_partition};
		my $n = 2 + $did{drop_partition}++;
		$node->safe_psql('postgres', "UPDATE event SET n = n + 1 WHERE part = $n AND id % 3 = 0; DROP TABLE event_$n");
	},
	drop => sub {
		my $n = ++$did{drop};
		$node->safe_psql('postgres', qq{
			CREATE TABLE lost_$n AS SELECT id, n, label, body FROM item WHERE id % 10 = $n % 10;
			UPDATE lost_$n SET n = n + 1 WHERE id % 3 = 0; DELETE FROM lost_$n WHERE id % 7 = 0;
			ALTER TABLE lost_$n DROP label; ALTER TABLE lost_$n ADD added int DEFAULT $n; UPDATE lost_$n SET added = 0 WHERE id % 5 = 0});
		$node->safe_psql('postgres', 'CHECKPOINT') if $n % 2;
		$node->safe_psql('postgres', qq{
			UPDATE lost_$n SET body = noise(id, 100) WHERE id % 11 = 0;
			INSERT INTO truth SELECT '-infinity', 'lost_$n', r::text FROM lost_$n r});
		$node->safe_psql('postgres', "BEGIN; TRUNCATE lost_$n; INSERT INTO lost_$n (id) VALUES (0); DROP TABLE lost_$n; COMMIT");
	},
	late_default => sub { $node->safe_psql('postgres', "ALTER TABLE shape ALTER c$did{drop_column} SET DEFAULT 'e'"); $did{late_default}++ });

# What the load had prepared when it was killed would keep its rows from VACUUM for ever
sub end_prepared
{
	$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()}) or die 'sessions of the load go on';
	$node->safe_psql('postgres', "ROLLBACK PREPARED '$_'") for split /\n/, $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
	return;
}

sub stop_load
{
	my ($how) = @_;
	check_load();
	$how->();
	IPC::Run::kill_kill($load);
	$node->start;
	end_prepared();
	return;
}

# A crash resets the counts of the core
my $hot = 0;
start_load();
my $began = time;
my @stops = map { $began + $seconds * $_ / 5 } 1 .. 4;
while (time - $began < $seconds || @stops)
{
	# A moment after each so many transactions
	my $commits = sub { $node->safe_psql('postgres', q{SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'}) };
	my $last = $commits->();
	wait_until(sub { $commits->() > $last + 300 }, 'transactions of the load', 60);
	check_load();
	record();
	$hot = max($hot, $node->safe_psql('postgres', q{SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'account'}));
	my @names = sort keys %step;
	$step{ $names[ int(rand(@names)) ] }->() for 1 .. 3;
	compare($moments[ int(rand(@moments)) ], 'under load') if @moments % 2 == 0;
	compare_differences($moments[ int(rand(@moments)) ], 'under load') if @moments % 2 == 1;
	compare_lost(1 + int(rand($did{drop})), 'under load') if $did{drop} && @moments % 4 == 0;
	next unless @stops && time > $stops[0];
	shift @stops;
	if (@stops == 1)
	{
		stop_load(sub { $node->stop('fast') });
		$did{restart}++;
	}
	else
	{
		stop_load(sub { crash($node) });
		$did{crash}++;
	}
	start_load();
}
check_load();
IPC::Run::kill_kill($load);
end_prepared();
$step{$_}->() for qw(copy truncation change add_column late_default drop_column vacuum freeze checkpoint vacuum_full cluster toast_full retype rewrite
  add_partition drop_partition truncate drop);

cmp_ok($did{$_}, '>', $_ eq 'crash' ? 2 : 0, "$_ occurred $did{$_} times") for sort keys %did;
for my $name (sort keys %script)
{
	my $times = $node->safe_psql('postgres', "SELECT last_value FROM did_$name");
	cmp_ok($times, '>', 10, "$name occurred $times times");
}
cmp_ok($hot, '>', 50, "$hot heap-only tuples between two crashes");
my $multixacts = $node->safe_psql('postgres', 'CHECKPOINT; SELECT next_multixact_id FROM pg_control_checkpoint()');
cmp_ok($multixacts, '>', 10, "$multixacts multixacts");
my $values = $node->safe_psql('postgres', q{SELECT count(DISTINCT chunk_id) FROM pg_toast.pg_toast_} . $node->safe_psql('postgres', q{SELECT 'item'::regclass::oid}));
cmp_ok($values, '>', 10, "$values TOAST values");

# Random moments, one after the other, until there are so many comparisons
sub compare_until
{
	my ($when, $count) = @_;
	while ($compared < $count)
	{
		my @left = shuffle(@moments);
		while ($compared < $count && @left)
		{
			my $moment = shift @left;
			compare($moment, $when);
			compare_differences($moment, $when) if $compared % 3 == 0;
		}
	}
	return;
}
my $before = $compared;
compare_until('after the load', $compared + max(($least - $compared) / 2, $each * @tables));
compare_lost($_, 'after the load') for 1 .. $did{drop};
$node->safe_psql('postgres', 'DELETE FROM item WHERE id % 2 = 0; DELETE FROM bulk');
$node->safe_psql('postgres', 'VACUUM (FREEZE) item, account, queue, event, shape, bulk; CHECKPOINT');
compare_until('after VACUUM FREEZE', max($least, $compared + $each * @tables));
cmp_ok($compared, '>=', $least, "$compared comparisons of " . scalar(@moments) . " moments, $before under load, $made of made tables");
is($different, 0, 'no difference');
cmp_ok($node->safe_psql('postgres', 'SELECT recycled_files FROM polar_stat_flashback_log'), '>', 50, 'many files are kept');
write_figures(%did, comparisons => $compared, differences => $different, made => $made, moments => scalar(@moments));
$node->stop;
done_testing();
