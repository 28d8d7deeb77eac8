# A result that several processes make has the rows of one that a single process makes. It survives a crash and a checkpoint in the
# middle, and nothing is left when any of the processes fails, is cancelled or killed. Without workers to be had one process does it.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback checkpoint);
use Floe::Test::Wait qw(wait_until wait_for_restart);

my $node = new_flashback('node', q{
polar_enable_fast_recovery_area = on
shared_buffers = 2MB
maintenance_work_mem = 1MB
max_worker_processes = 12
restart_after_crash = on
});
$node->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE EXTENSION amcheck;
	CREATE ROLE owner LOGIN;
	GRANT CREATE ON SCHEMA public TO owner;
	CREATE FUNCTION noise(i int, n int) RETURNS text LANGUAGE sql IMMUTABLE AS
		$$SELECT string_agg(md5((i * 1000 + g)::text), '') FROM generate_series(1, n) g$$;
	CREATE TABLE t (id int, n int, label text, body text) WITH (fillfactor = 90);
	ALTER TABLE t ALTER body SET STORAGE EXTERNAL;
	INSERT INTO t SELECT g, 0, repeat(md5(g::text), 6), CASE WHEN g % 10 = 0 THEN noise(g, 100 + g % 50) END FROM generate_series(1, 12000) g;
	ALTER TABLE t OWNER TO owner;
	-- With the default that they lack, rows are longer than a page
	CREATE TABLE grown (id int, wide text);
	ALTER TABLE grown ALTER wide SET STORAGE PLAIN;
	INSERT INTO grown SELECT g, repeat(chr(65 + g % 26), CASE WHEN g % 4 = 0 THEN 6000 ELSE 100 END) FROM generate_series(1, 400) g;
	ALTER TABLE grown ADD long text DEFAULT repeat('long ', 700);
	CREATE TABLE lost AS SELECT * FROM t WHERE id < 4000;
	CREATE TABLE cut AS SELECT g AS id, repeat('x', 500) AS x FROM generate_series(1, 5000) g});
checkpoint($node);
$node->safe_psql('postgres', q{UPDATE t SET n = 1 WHERE id % 3 = 0; UPDATE t SET body = noise(id + 1, 80) WHERE id % 40 = 0; UPDATE lost SET n = 2 WHERE id % 2 = 0; UPDATE cut SET x = x || 'y' WHERE id % 2 = 0});
my $hash = q{SELECT count(*), sum(hashtextextended(r::text, 0)) FROM %s r};
my %truth = map { $_ => $node->safe_psql('postgres', sprintf($hash, $_)) } qw(t grown lost cut);
my $then = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
$node->safe_psql('postgres', $_) for 'UPDATE t SET n = 2 WHERE id % 2 = 0', 'UPDATE t SET body = NULL', 'VACUUM t', 'DELETE FROM grown WHERE id % 5 = 0', 'TRUNCATE lost',
  'DELETE FROM cut WHERE id > 100', 'VACUUM cut', 'CHECKPOINT';

sub sound
{
	my ($name) = @_;
	$node->safe_psql('postgres', qq{SELECT bt_index_check(indexrelid, true) FROM pg_index WHERE indrelid = (SELECT reltoastrelid FROM pg_class WHERE oid = '$name'::regclass)});
	return $node->safe_psql('postgres', "SELECT count(*) FROM verify_heapam('$name', check_toast => true)");
}

my %size;
for my $table (qw(t grown lost cut))
{
	for my $workers (0, 1, 3)
	{
		my $rows = $node->safe_psql('postgres', "SELECT rows FROM polar_flashback_table('$table', '$then', workers => $workers, result_name => 'made')");
		is($node->safe_psql('postgres', sprintf($hash, 'made')), $truth{$table}, "$table by $workers workers");
		is("$rows|" . sound('made'), ($truth{$table} =~ /^(\d+)/)[0] . '|0', 'with all rows, sound');
		$size{$table}[$workers] = $node->safe_psql('postgres', q{SELECT pg_relation_size('made') / 8192});
		$node->safe_psql('postgres', 'DROP TABLE made');
	}
	cmp_ok($size{$table}[3] - $size{$table}[0], '<=', 3, "$table by 3 workers has $size{$table}[3] pages, $size{$table}[0] by none");
}

# Arguments
for my $wrong (-1, 1025)
{
	my ($out, $err);
	$node->psql('postgres', "SELECT polar_flashback_table('t', '$then', workers => $wrong)", stdout => \$out, stderr => \$err);
	like($err, qr/ERROR:  argument "workers" must be between 0 and 1024/, "$wrong workers are refused");
}

sub in_session
{
	my ($sql) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/started/, "\\echo started\n$sql;\n\\echo completed\n");
	return $session;
}

# Processes that wait at an injection point
sub waiting
{
	my ($point, $kind) = @_;
	my $only = $kind ? "AND backend_type = '$kind'" : '';
	return split /\n/, $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'InjectionPoint' AND wait_event = '$point' $only ORDER BY pid");
}

sub stop_at
{
	my ($point, $n, $sql) = @_;
	$node->safe_psql('postgres', "SELECT injection_points_attach('$point', 'wait')");
	my $session = in_session($sql);
	wait_until(sub { waiting($point) == $n }, "$n processes to reach $point");
	return $session;
}

sub go_on
{
	my ($point) = @_;
	$node->safe_psql('postgres', "SELECT injection_points_detach('$point')");
	wait_until(sub { $node->safe_psql('postgres', "SELECT injection_points_wakeup('$point')") if waiting($point); !waiting($point) }, "nobody to wait at $point");
	return;
}

sub left
{
	wait_until(sub { $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'}) eq '0' }, 'workers to end');
	$node->safe_psql('postgres', 'CHECKPOINT');
	return $node->safe_psql('postgres', q{SELECT count(*) FROM pg_class; SELECT count(*) FROM pg_ls_tmpdir(); SELECT count(*) FROM polar_stat_progress_flashback_table;
		SELECT string_agg(f, ' ' ORDER BY f) FROM pg_ls_dir('base/' || (SELECT oid FROM pg_database WHERE datname = 'postgres')) f WHERE f ~ '^[0-9.]+$'});
}

# Who fails, and where
my $make = "SELECT polar_flashback_table('t', '$then', workers => 3, result_name => 'failed')";
my $before = left();
for my $case (
	[ 'flashback-table-worker', 3, 'the leader is cancelled' => sub { q{SELECT pg_cancel_backend(pid) FROM polar_stat_progress_flashback_table} } ],
	[ 'flashback-table-worker', 3, 'a worker is cancelled' => sub { "SELECT pg_cancel_backend($_[1])" } ],
	[ 'flashback-table-copy', 4, 'the leader is cancelled' => sub { q{SELECT pg_cancel_backend(pid) FROM polar_stat_progress_flashback_table} } ],
	[ 'flashback-table-copy-toast', 4, 'a worker is cancelled' => sub { "SELECT pg_cancel_backend($_[1])" } ],
	[ 'flashback-table-copy-toast', 4, 'a worker is terminated' => sub { "SELECT pg_terminate_backend($_[1])" } ],
	[ 'flashback-table-copied', 4, 'the leader is terminated' => sub { q{SELECT pg_terminate_backend(pid) FROM polar_stat_progress_flashback_table} } ],
	[ 'flashback-table-worker-copied', 3, 'the leader is cancelled' => sub { q{SELECT pg_cancel_backend(pid) FROM polar_stat_progress_flashback_table} } ])
{
	my ($point, $n, $what, $statement) = @$case;
	my $session = stop_at($point, $n, $make);
	my @workers = waiting($point, 'parallel worker');
	is(scalar @workers, 3, "$what at $point, where 3 workers are");
	$node->safe_psql('postgres', $statement->(@workers));
	wait_until(sub { $node->safe_psql('postgres', 'SELECT count(*) FROM polar_stat_progress_flashback_table') eq '0' }, 'the flashback to end');
	$node->safe_psql('postgres', "SELECT injection_points_detach('$point')");
	$session->{run}->finish if $what =~ /leader is terminated/;
	$session->quit if $what !~ /leader is terminated/;
	is(left(), $before, 'leaves nothing');
}
for my $point (qw(flashback-table-worker flashback-table-worker-copied flashback-table-copy-toast))
{
	my ($out, $err);
	$node->safe_psql('postgres', "SELECT injection_points_attach('$point', 'error')");
	$node->psql('postgres', $make, stdout => \$out, stderr => \$err);
	$node->safe_psql('postgres', "SELECT injection_points_detach('$point')");
	like($err, qr/ERROR:  error triggered for injection point $point/, "an error at $point is that of the command");
	is(left(), $before, 'and leaves nothing');
}
$node->safe_psql('postgres', q{SELECT injection_points_attach('flashback-table-worker-copied', 'error')});
my $caught = $node->safe_psql('postgres', qq{
	BEGIN;
	DO \$\$BEGIN PERFORM polar_flashback_table('t', '$then', workers => 2, result_name => 'failed'); EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'caught'; END\$\$;
	SELECT injection_points_detach('flashback-table-worker-copied');
	SELECT rows FROM polar_flashback_table('t', '$then', workers => 2, result_name => 'after');
	COMMIT});
is($caught =~ /(\d+)\s*\z/ && $1, 12000, 'an error that is caught leaves a transaction that can do it again');
is($node->safe_psql('postgres', sprintf($hash, 'after')), $truth{t}, 'rightly');
$node->safe_psql('postgres', 'DROP TABLE after');

# No worker is to be had
is($node->safe_psql('postgres', "SET max_parallel_workers = 0; SELECT rows FROM polar_flashback_table('t', '$then', workers => 3, result_name => 'alone')"), '12000', 'without workers one process does it');
is($node->safe_psql('postgres', sprintf($hash, 'alone')), $truth{t}, 'with the same rows');
$node->safe_psql('postgres', 'DROP TABLE alone');

# The default is that of settings, also of the command
my $chosen = sub {
	my ($settings) = @_;
	my ($out, $err);
	$node->safe_psql('postgres', q{SELECT injection_points_attach('flashback-table-worker', 'error')});
	my $failed = $node->psql('postgres', "$settings; BEGIN; FLASHBACK TABLE t TO TIMESTAMP '$then'; ROLLBACK", on_error_stop => 1, stdout => \$out, stderr => \$err);
	$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-table-worker')});
	die $err if $failed && $err !~ /flashback-table-worker/;
	return $failed ? 'with workers' : 'alone';
};
is($chosen->(q{SET min_parallel_table_scan_size = '1MB'; SET maintenance_work_mem = '64MB'}), 'with workers', 'a table that is large enough has workers');
is($chosen->(q{SET min_parallel_table_scan_size = '1GB'; SET maintenance_work_mem = '64MB'}), 'alone', 'a small one has none');
is($chosen->(q{SET min_parallel_table_scan_size = '1MB'; SET maintenance_work_mem = '64MB'; SET max_parallel_maintenance_workers = 0}), 'alone', 'nor if the setting has none');
is($chosen->(q{SET min_parallel_table_scan_size = '1MB'; SET maintenance_work_mem = '12MB'}), 'alone', 'nor without memory');

# What is shown is what all have done
my $session = stop_at('flashback-table-copied', 4, $make);
is($node->safe_psql('postgres', q{SELECT blocks_total > 0, blocks_done = blocks_total, blocks_rebuilt > 0 FROM polar_stat_progress_flashback_table}),
	't|t|t', 'progress counts what all have read');
$node->safe_psql('postgres', q{SELECT injection_points_attach('flashback-table-worker-copied', 'wait')});
go_on('flashback-table-copied');
wait_until(sub { waiting('flashback-table-worker-copied') == 3 }, 'the workers to be done');
is($node->safe_psql('postgres', q{SELECT rows FROM polar_stat_progress_flashback_table}), '12000', 'and the rows of all');
my ($written) = $node->safe_psql('postgres', q{SELECT bytes_written FROM polar_stat_progress_flashback_table});
cmp_ok($written, '>=', $size{t}[0] * 8192, "$written bytes");

# A checkpoint comes in between, then a crash right after the commit
checkpoint($node);
go_on('flashback-table-worker-copied');
wait_until(sub { $node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'failed'}) eq '1' }, 'the result to be committed');
crash($node);
eval { $session->{run}->finish };
$node->start;
is($node->safe_psql('postgres', sprintf($hash, 'failed')), $truth{t}, 'after a checkpoint and a crash it is the same');
is(sound('failed'), '0', 'and sound');
$node->safe_psql('postgres', 'DROP TABLE failed');

# The owner, who is no superuser
is($node->safe_psql('postgres', "SELECT rows FROM polar_flashback_table('t', '$then', workers => 2, result_name => 'own')", extra_params => [ '-U', 'owner' ]), '12000', 'the owner has workers');
is($node->safe_psql('postgres', q{SELECT relowner::regrole FROM pg_class WHERE relname = 'own'}), 'owner', 'and gets the result');
$node->safe_psql('postgres', 'DROP TABLE own');

# Killed, in the middle
for my $who ('a worker', 'the leader')
{
	$session = stop_at('flashback-table-copied', 4, $make);
	my ($pid) = $who eq 'a worker' ? waiting('flashback-table-copied', 'parallel worker') : waiting('flashback-table-copied', 'client backend');
	my $offset = -s $node->logfile;
	kill 'KILL', $pid;
	eval { $session->{run}->finish };
	wait_for_restart($node, $offset);
	is($node->safe_psql('postgres', q{SELECT (SELECT count(*) FROM pg_class WHERE relname = 'failed') + (SELECT count(*) FROM pg_ls_tmpdir())
		+ (SELECT count(*) FROM polar_stat_progress_flashback_table)}), '0', "nothing is left when $who is killed");
}
is($node->safe_psql('postgres', "SELECT rows FROM polar_flashback_table('t', '$then', workers => 3, result_name => 'after')"), '12000', 'and it can be done again');
is($node->safe_psql('postgres', sprintf($hash, 'after')), $truth{t}, 'with the same rows');

# What an older extension has still works, and can be updated
$node->safe_psql('postgres', 'CREATE DATABASE older');
my $call = "polar_flashback_table('s'::regclass, now() - interval '1 ms', 'r%s'::name, null::name, false::bool, null::text)";
$node->safe_psql('older', q{CREATE EXTENSION flashback_table VERSION '1.0'; ALTER EXTENSION flashback_table UPDATE TO '1.1'; CREATE TABLE s AS SELECT 1 AS a});
is($node->safe_psql('older', "SELECT pg_sleep(0.01); SELECT rows FROM " . sprintf($call, 1)), "\n1", 'version 1.1 has the function without workers');
is($node->safe_psql('older', q{ALTER EXTENSION flashback_table UPDATE; SELECT rows FROM } . sprintf($call, 2) . q{; SELECT rows FROM polar_flashback_table('s', now() - interval '1 ms', 'r3')}),
	"1\n1", 'so has the new one, which is called as before');
$node->stop;
done_testing();
