# An extension survives a crash at any point: nothing committed is lost, the unused pages are legal, and VACUUM
# makes them known again. A failed extension is an ordinary error.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Wait qw(wait_for_restart);

if (($ENV{enable_injection_points} // '') ne 'yes')
{
	plan skip_all => 'Injection points not supported by this build';
}

my $instance = PostgreSQL::Test::Cluster->new('main');
# Small WAL segments, so that a limit on the size of files leaves room for them.
$instance->init(extra => ['--wal-segsize=1']);
$instance->append_conf('postgresql.conf', q{
autovacuum = off
shared_preload_libraries = 'injection_points'
restart_after_crash = on
max_wal_size = 64MB
min_wal_size = 2MB
});
$instance->start;
$instance->safe_psql('postgres', q{
	CREATE EXTENSION injection_points;
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pg_freespacemap;
	CREATE TABLE t (a int, b text);
	CREATE UNLOGGED TABLE u (LIKE t);
	INSERT INTO t SELECT g, repeat('x', 700) FROM generate_series(1, 12000) g;
	INSERT INTO u SELECT * FROM t;
});

# crash_while <statement> <injection point> <how>: crash while the statement waits there
sub crash_while
{
	my ($statement, $point, $how) = @_;
	# Replay from here must not repeat an earlier truncation.
	$instance->safe_psql('postgres', "CHECKPOINT; SELECT injection_points_attach('$point', 'wait')");
	my $session = $instance->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/started/, "\\echo started\n$statement;\n");
	$instance->wait_for_event('client backend', $point);
	if ($how eq 'kill')
	{
		# the postmaster notices, and restarts everything
		my $pid = $instance->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE wait_event = '$point'");
		my $offset = -s $instance->logfile;
		kill 'KILL', $pid;
		wait_for_restart($instance, $offset);
	}
	else
	{
		$instance->stop('immediate');
		$instance->start;
	}
	$session->{run}->finish;
}

foreach my $how ('immediate', 'kill')
{
	foreach my $load (
		"INSERT INTO t SELECT g, repeat('y', 700) FROM generate_series(1, 20000) g",
		"COPY t FROM PROGRAM 'seq -f %.0f,y 1 3000000' (FORMAT csv)")
	{
		crash_while($load, 'bulk-io-heap-extended', $how);
		is($instance->safe_psql('postgres', 'SELECT count(*), sum(a) FROM t'), '12000|72006000',
			"$how: committed rows are there, and no others");
		is($instance->safe_psql('postgres', "SELECT * FROM verify_heapam('t')"), '', "$how: heap is sound");
		cmp_ok($instance->safe_psql('postgres', q{
				SELECT pg_relation_size('t') / 8192 - 1 - max((ctid::text::point)[0]) FROM t}),
			'>', 60, "$how: the crash left unused pages behind");
		$instance->safe_psql('postgres', 'VACUUM (TRUNCATE off) t');
		is( $instance->safe_psql('postgres', q{
				SELECT count(*) FROM pg_freespace('t')
				WHERE avail < 700 AND blkno > (SELECT max((ctid::text::point)[0]) FROM t)}),
			'0', "$how: VACUUM knows all of them");
		my $size = $instance->safe_psql('postgres', "SELECT pg_relation_size('t')");
		$instance->safe_psql('postgres',
			"INSERT INTO t SELECT g, repeat('z', 700) FROM generate_series(-500, -1) g; DELETE FROM t WHERE a < 0");
		is($instance->safe_psql('postgres', "SELECT pg_relation_size('t')"), $size, "$how: and they are used");
		$instance->safe_psql('postgres', 'VACUUM t');
	}
}

# An unlogged table is empty after a crash, as always.
crash_while("INSERT INTO u SELECT g, repeat('y', 700) FROM generate_series(1, 20000) g", 'bulk-io-heap-extended', 'immediate');
is($instance->safe_psql('postgres', "SELECT count(*), pg_relation_size('u') FROM u"), '0|0', 'unlogged table is reset');

# A crash in the middle of an index build, and of a rewrite
$instance->safe_psql('postgres', q{
	CREATE TABLE i (a int, b text);
	INSERT INTO i SELECT g, md5(g::text) FROM generate_series(1, 30000) g;
	CREATE INDEX before_crash ON i (b)});
my $expected_size = $instance->safe_psql('postgres', "SELECT pg_relation_size('before_crash')");
foreach my $statement ('CREATE INDEX crashed ON i (b)', 'REINDEX INDEX before_crash', 'CLUSTER i USING before_crash')
{
	crash_while($statement, 'bulk-write-extended', 'immediate');
	is( $instance->safe_psql('postgres', "SELECT count(*), to_regclass('crashed') IS NULL FROM i"),
		'30000|t', "$statement: nothing of it remains");
	is($instance->safe_psql('postgres', "SELECT bt_index_parent_check('before_crash', true, true)"), '',
		"$statement: index is sound");
	is($instance->safe_psql('postgres', "SELECT pg_relation_size('before_crash')"), $expected_size,
		"$statement: index has its size");
}

# A crash right after a build: replay brings the index back.
$instance->safe_psql('postgres', 'CREATE INDEX after_crash ON i (b)');
$instance->stop('immediate');
$instance->start;
is($instance->safe_psql('postgres', "SELECT bt_index_parent_check('after_crash', true, true)"), '', 'replayed index is sound');
is($instance->safe_psql('postgres', "SELECT pg_relation_size('after_crash')"), $expected_size, 'and has its size');

# The same without WAL: wal_level = minimal skips it for new relations.
$instance->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\n");
$instance->restart;
foreach my $threshold ('2MB', '1GB')
{
	$instance->safe_psql('postgres', qq{
		SET wal_skip_threshold = '$threshold';
		BEGIN;
		CREATE TABLE skipped AS SELECT * FROM i;
		CREATE INDEX skipped_idx ON skipped (b);
		COMMIT});
	$instance->stop('immediate');
	$instance->start;
	is($instance->safe_psql('postgres', 'SELECT count(*) FROM skipped'), '30000', "minimal WAL, $threshold: rows are there");
	is($instance->safe_psql('postgres', "SELECT * FROM verify_heapam('skipped')"), '', "minimal WAL, $threshold: heap is sound");
	is($instance->safe_psql('postgres', "SELECT bt_index_parent_check('skipped_idx', true, true)"), '',
		"minimal WAL, $threshold: index is sound");
	$instance->safe_psql('postgres', 'DROP TABLE skipped');
}

# No room in the middle of an extension: the statement fails, and what was there stays usable.
$instance->stop;
{
	my $limit = 8 * 1024;    # kB
	my $pg_ctl = join ' ', 'pg_ctl', '-w', '-D', $instance->data_dir, '-l', $instance->logfile, 'start';
	command_ok([ 'bash', '-c', "ulimit -f $limit && exec $pg_ctl" ], 'start with a limit on the size of files');
	$instance->_update_pid(1);
	my ($status, $stdout, $stderr) = $instance->psql('postgres',
		"CREATE TABLE full_t (a int, b text); INSERT INTO full_t SELECT g, repeat('x', 700) FROM generate_series(1, 6000) g;");
	is($status, 0, 'a table below the limit');
	($status, $stdout, $stderr) = $instance->psql('postgres',
		"INSERT INTO full_t SELECT g, repeat('x', 700) FROM generate_series(1, 30000) g;", on_error_stop => 0);
	like($stderr, qr/ERROR:  could not extend file/, 'an extension beyond the limit is a clean error');
	is($instance->safe_psql('postgres', 'SELECT count(*) FROM full_t'), '6000', 'nothing is lost');
	is($instance->safe_psql('postgres', "SELECT * FROM verify_heapam('full_t')"), '', 'heap is sound');
	$instance->safe_psql('postgres', 'VACUUM full_t');
	$instance->safe_psql('postgres', "SET polar_bulk_extend_size = 0; INSERT INTO full_t SELECT g, repeat('x', 700) FROM generate_series(1, 100) g");
	is($instance->safe_psql('postgres', 'SELECT count(*) FROM full_t'), '6100', 'and the table takes rows again');

	# Pages ahead come with buffers, so want of room for them is an error, as for PostgreSQL's own;
	# with 0 the last page is reached: 1024 pages is the limit.
	$instance->safe_psql('postgres', q{
		CREATE TABLE nearly_full (a int, b text STORAGE PLAIN);
		SET polar_bulk_extend_size = 0;
		INSERT INTO nearly_full SELECT g, repeat('x', 7000) FROM generate_series(1, 1000) g});
	($status, $stdout, $stderr) = $instance->psql('postgres', "INSERT INTO nearly_full VALUES (1001, repeat('x', 7000))");
	like($stderr, qr/ERROR:  could not extend file/, 'no room for a step is a clean error');
	$instance->safe_psql('postgres', q{
		SET polar_bulk_extend_size = 0;
		VACUUM nearly_full;
		INSERT INTO nearly_full SELECT g, repeat('x', 7000) FROM generate_series(1001, 1024) g});
	is($instance->safe_psql('postgres', "SELECT count(*), pg_relation_size('nearly_full') / 8192 FROM nearly_full"),
		'1024|1024', 'and with 0 the last page is reached');

	# About 920 pages: another step of 512 would lead beyond the limit
	$instance->safe_psql('postgres', q{
		CREATE TABLE fits AS SELECT g AS a FROM generate_series(1, 130000) g;
		CREATE INDEX fits_idx ON fits (md5(a::text))});
	cmp_ok($instance->safe_psql('postgres', "SELECT pg_relation_size('fits_idx') / 8192"),
		'>', 900, 'an index build gets as far as there is room');
	($status, $stdout, $stderr) = $instance->psql('postgres',
		"CREATE TABLE narrow AS SELECT g AS a FROM generate_series(1, 200000) g;"
		  . "CREATE INDEX wide_idx ON narrow (md5(a::text));", on_error_stop => 0);
	like($stderr, qr/ERROR:  could not (extend|write)/, 'an index build beyond the limit is a clean error');
	is($instance->safe_psql('postgres', "SELECT to_regclass('wide_idx') IS NULL"), 't', 'and leaves no index');
}

$instance->stop;
done_testing();
