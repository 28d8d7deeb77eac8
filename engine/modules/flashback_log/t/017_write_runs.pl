# Blocks that one call writes together: the window has what each of them held at the point, in sync mode before the first one is
# overwritten, whether the call is ended by a crash in its middle, by an error or not at all.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash_at_injection_point);
use Floe::Test::Flashback qw(new_flashback checkpoint state continued record_points check_points);

foreach my $mode ('sync', 'async')
{
	my $node = new_flashback("node_$mode", qq{
shared_buffers = 32MB
polar_bulk_write_size = 256kB
polar_flashback_log_mode = $mode
polar_enable_fast_recovery_area = on
});
	$node->safe_psql('postgres', q{
		CREATE EXTENSION pg_buffercache;
		CREATE TABLE t (a int, b text) WITH (fillfactor = 50);
		INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 20000) g;
		DELETE FROM t WHERE a % 3 = 0});
	my $copies = record_points($node);
	my $rows = $node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM t');
	my $number = sub { return $node->safe_psql('postgres', "SELECT $_[0] FROM polar_stat_flashback_log"); };

	# Out of a ring: the blocks exist, none of them has been kept since the point, and none is in the pool
	my $evict = sub { $node->safe_psql('postgres', q{SELECT pg_buffercache_evict_relation('t')}); };
	my $vacuum = "VACUUM (BUFFER_USAGE_LIMIT '512kB') t";
	checkpoint($node);
	$evict->();
	my ($images, $syncs) = split /\|/, $number->('images, syncs');
	$node->safe_psql('postgres', $vacuum);
	my ($images_after, $syncs_after) = split /\|/, $number->('images, syncs');
	cmp_ok($images_after - $images, '>', 500, "$mode: VACUUM overwrites blocks");
	cmp_ok(($images_after - $images) / ($syncs_after - $syncs), '>', 16, 'many images share a sync') if $mode eq 'sync';
	checkpoint($node);

	$node->safe_psql('postgres', 'DELETE FROM t WHERE a % 3 = 1');
	$rows = $node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM t');
	checkpoint($node);
	$evict->();
	my $state = state($node);
	crash_at_injection_point($node, 'flashback-log-write-part', $vacuum);
	$node->start;
	record_points($node, $copies);
	continued($node, $state, "$mode: the window continues after a crash in the middle of a run of VACUUM");
	is($node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM t'), $rows, "$mode: nothing is lost");
	is_deeply([ check_points($node, $copies, 2) ], [], "$mode: every block of every point");

	# A checkpoint
	$node->safe_psql('postgres', 'UPDATE t SET b = b');
	$state = state($node);
	crash_at_injection_point($node, 'flashback-log-write-part', 'CHECKPOINT');
	$node->start;
	record_points($node, $copies);
	continued($node, $state, "$mode: nor does one in the middle of a run of a checkpoint end it");
	is($node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM t'), $rows, "$mode: nothing is lost there either");
	is_deeply([ check_points($node, $copies, 2) ], [], "$mode: every block of every point, again");

	# An error in the middle
	$node->safe_psql('postgres', q{UPDATE t SET b = b; SELECT injection_points_attach('flashback-log-write-part', 'error')});
	isnt($node->psql('postgres', 'CHECKPOINT'), 0, "$mode: a checkpoint fails in the middle of a run");
	$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-log-write-part')});
	checkpoint($node);
	is_deeply([ check_points($node, $copies, 2) ], [], "$mode: every block of every point after an error");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_log_verify() WHERE damage IS NOT NULL'), 0, "$mode: the log is in order");
	is($number->('unreadable, failures'), '0|0', "$mode: nothing was unreadable");
	$node->stop;
	command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], "$mode: checksums are right");
}

done_testing();
