# Everything is killed at each step of keeping an image and of making a point: after each start the window has exactly the points
# that count, every block of each is right, and redo has kept what it overwrote.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback checkpoint state in_background record_points check_points);
use Floe::Test::Torn qw(redo_pointer);

my $node = new_flashback('node', q{
shared_buffers = 32MB
polar_flashback_log_mode = sync
polar_enable_fast_recovery_area = on
});
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE t (a int, b text) WITH (fillfactor = 50);
	INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 3000) g;
	CREATE INDEX ON t (a)});
my $copies = record_points($node);
my $change = q{UPDATE t SET b = b WHERE a % 3 = 0};
my $evict = q{SELECT pg_buffercache_evict_relation('t')};

# Whether the checkpoint that was under way is one to recover from
my @steps = (
	[ 'flashback-log-appended', $evict ],
	[ 'flashback-log-image-durable', $evict ],
	[ 'flashback-log-overwrite', $evict ],
	[ 'flashback-log-appended', 'CHECKPOINT' ],
	[ 'flashback-log-overwrite', 'CHECKPOINT' ],
	[ 'flashback-log-before-point', 'CHECKPOINT' ],
	[ 'flashback-log-after-point', 'CHECKPOINT' ],
	[ 'flashback-log-state-rename', 'CHECKPOINT' ],
	[ 'flashback-log-point-stored', 'CHECKPOINT' ],
	[ 'checkpoint-before-old-wal-removal', 'CHECKPOINT' ],
	[ 'flashback-log-truncate', q{DELETE FROM t WHERE ctid > '(60,0)'; VACUUM t} ],
	map { [ $_, join('; ', ("$change; CHECKPOINT") x 60) ] } 'flashback-log-segment', 'flashback-log-segment-header', 'flashback-log-segment-placed');
my $ended = state($node)->{ended};
foreach my $step (@steps)
{
	my ($point, $sql) = @$step;
	my $name = "$point in " . ($sql eq $evict ? 'a backend' : ($sql =~ /^(\w+)/)[0]);
	$node->safe_psql('postgres', q{INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 3000) g WHERE (SELECT count(*) FROM t) < 2500});
	checkpoint($node);
	$node->safe_psql('postgres', $change);
	# Without copies: it takes many points to fill a segment
	$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-log-point')}) if $point =~ /^flashback-log-segment/;
	in_background($node, $point, $sql) or die;
	crash($node);
	my $redo = redo_pointer($node);
	$node->start;
	my $points = $node->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE redo_lsn = '$redo') FROM polar_flashback_points");
	my $state = state($node);
	is($state->{ended}, $ended, "$name: the window continues");
	like($points, qr/^\d+\|1$/, "$name: with the point that recovery starts from");
	is_deeply([ check_points($node, $copies, 1, 0, 4) ], [], "$name: every block of the last points");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_log_verify() WHERE damage IS NOT NULL'), 0, "$name: the log is in order");
	record_points($node, $copies);
}

# Redo itself keeps what it overwrites: nothing was kept since the point when everything stopped
$node->append_conf('postgresql.conf', 'shared_buffers = 1MB');
$node->restart;
record_points($node, $copies);
$node->safe_psql('postgres', q{INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 3000) g});
$node->append_conf('postgresql.conf', 'shared_buffers = 64MB');
$node->restart;
record_points($node, $copies);
my $number = checkpoint($node);
$node->safe_psql('postgres', $change);
is($node->safe_psql('postgres', "SELECT count(*) FROM polar_flashback_log_get_images($number) WHERE relfilenode = pg_relation_filenode('t')"), 0,
	'nothing of a table is written');
$node->append_conf('postgresql.conf', 'shared_buffers = 1MB');
crash($node);
$node->start;
cmp_ok($node->safe_psql('postgres', "SELECT sum(images) FROM polar_flashback_log_get_images($number) WHERE relfilenode = pg_relation_filenode('t')"), '>', 50,
	'redo keeps it');
is_deeply([ check_points($node, $copies, 1, 0, 4) ], [], 'and right');

# Crash after crash, the second while the first is being recovered from
$node->safe_psql('postgres', $change);
crash($node);
$node->start;
crash($node);
$node->start;
is_deeply([ check_points($node, $copies, 10) ], [], 'twice in a row, every block of every point');
is(state($node)->{ended}, $ended, 'in one window');

done_testing();
