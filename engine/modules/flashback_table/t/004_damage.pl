# Damaged pages, logs and WAL are errors; cancels, timeouts and errors at any moment leave no file, and no rebuilt page is seen by
# others.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback checkpoint in_background);
use Floe::Test::Wait qw(wait_until);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\nshared_buffers = 1MB\nmaintenance_work_mem = 64kB\nwork_mem = 64kB\nfull_page_writes = off\npolar_page_repair_guard = off\nlogging_collector = off\n");
$node->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE TABLE t (a int, b text, c text);
	ALTER TABLE t ALTER c SET STORAGE EXTERNAL;
	INSERT INTO t SELECT g, repeat(md5(g::text), 5), CASE WHEN g % 10 = 0 THEN repeat(md5(g::text), 100) END FROM generate_series(1, 10000) g});
checkpoint($node);
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1 WHERE a % 2 = 0');
my $then = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
my $digest = q{SELECT count(*), md5(string_agg(t::text, chr(10) ORDER BY t::text))};
my $is = $node->safe_psql('postgres', "$digest FROM t");
$node->safe_psql('postgres', 'UPDATE t SET a = -a, c = c || a; CHECKPOINT; UPDATE t SET b = a');
is($node->safe_psql('postgres', "$digest FROM polar_flashback_rows(NULL::t, '$then') t"), $is, 'the rows of then');

sub temporary_files
{
	return $node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()');
}

# The relation's forks, as others see them, are not touched by the rebuild
my $present = $node->safe_psql('postgres', "$digest FROM t");
my $path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});
$node->safe_psql('postgres', 'VACUUM t; VACUUM t; CHECKPOINT');
my %before = map { $_ => slurp_file("$path$_") } ('', '_vm', '_fsm');
$node->safe_psql('postgres', "$digest FROM polar_flashback_rows(NULL::t, '$then') t");
$node->safe_psql('postgres', 'CHECKPOINT');
ok($before{$_} eq slurp_file("$path$_"), "fork '$_' is as before") for ('', '_vm', '_fsm');
is($node->safe_psql('postgres', "$digest FROM t"), $present, 'so are the rows of now');

# Stopped in each phase
for my $point ('flashback-table-rebuild', 'flashback-table-read', 'flashback-table-replay')
{
	for my $end ('pg_cancel_backend', 'pg_terminate_backend')
	{
		my $session = in_background($node, $point, "$digest FROM polar_flashback_rows(NULL::t, '$then') t");
		my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE wait_event = '$point'");
		$node->safe_psql('postgres', "SELECT $end($pid)");
		ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid AND state = 'active')"), "$end at $point");
		is(temporary_files(), 0, 'leaves no file');
		$node->safe_psql('postgres', "SELECT injection_points_detach('$point')");
		$session->{run}->finish if $end eq 'pg_terminate_backend';
		$session->quit if $end eq 'pg_cancel_backend';
	}
}
my $stopped = 0;
for my $ms (1, 2, 5, 10, 20, 40, 60, 80, 100, 150)
{
	$stopped++ if $node->psql('postgres', "SET statement_timeout = $ms; SELECT count(*) FROM polar_flashback_table('t', '$then', result_name => 'made_$ms')") != 0;
}
cmp_ok($stopped, '>', 2, "statement_timeout stops it, $stopped times");
is(temporary_files(), 0, 'and leaves no file');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname ~ '^made_'}), 10 - $stopped, 'nor a table');
isnt($node->psql('postgres', "SET temp_file_limit = 100; $digest FROM polar_flashback_rows(NULL::t, '$then') t"), 0, 'temp_file_limit holds');
is(temporary_files(), 0, 'and leaves no file');
is($node->safe_psql('postgres', "$digest FROM polar_flashback_rows(NULL::t, '$then') t"), $is, 'then it still works');

# A page of another point as base, WAL for other pages, random bytes: an error each time, never the end of the server.
# FLOE_TEST_LONG=1 makes a million of them.
my $rounds = $ENV{FLOE_TEST_LONG} ? 1_000_000 : 100_000;
$node->safe_psql('postgres', q{CREATE FUNCTION flashback_fuzz(regclass, timestamptz, seed int, rounds int, OUT applied int8, OUT refused int8, OUT rows int8)
	AS 'flashback_fuzz' LANGUAGE C});
my ($applied, $refused, $rows) = split /\|/, $node->safe_psql('postgres', "SELECT * FROM flashback_fuzz('t', '$then', 1, $rounds)");
cmp_ok($applied, '>', $rounds / 20, "$applied mutated records were applied");
cmp_ok($refused, '>', $rounds / 20, "$refused were refused");
cmp_ok($rows, '>', $rounds / 20, "$rows rows of such pages were read");

# A damaged log; only its segments, not their indexes
$node->stop;
for my $segment (grep { /^[0-9A-F]{16}$/ } slurp_dir($node->data_dir . '/polar_flog'))
{
	my $file = $node->data_dir . "/polar_flog/$segment";
	open my $handle, '+<', $file or die $!;
	binmode $handle;
	for (my $at = 4096; $at < -s $file; $at += 256) { seek $handle, $at, 0; print $handle 'damage'; }
	close $handle;
}
$node->start;
my ($out, $err);
isnt($node->psql('postgres', "$digest FROM polar_flashback_rows(NULL::t, '$then') t", stderr => \$err), 0, 'a damaged log is an error');
like($err, qr/ERROR:  (the flashback log is damaged|the target time is before)/, 'that says so');
$node->stop;
done_testing();
