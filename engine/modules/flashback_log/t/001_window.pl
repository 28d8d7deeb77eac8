# The window: a point at each checkpoint, the first image of a page after it is the page as it was then, and the window lasts
# over stops of the server, in order or not; switched off, the module leaves nothing behind.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(configuration new_flashback await_point checkpoint state continued);
use Floe::Test::Wait qw(wait_for_restart);

my $node = new_flashback('node', "shared_buffers = 32MB\n");
is($node->safe_psql('postgres', 'SHOW track_commit_timestamp'), 'on', 'commit timestamps are collected');
$node->safe_psql('postgres', q{
	CREATE TABLE t (a int, b text) WITH (fillfactor = 50);
	INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 1000) g;
	CREATE UNLOGGED TABLE u AS SELECT * FROM t});

my $first = checkpoint($node);
my $path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});
my $was = slurp_file($path);
my $image = sub {
	my ($block, $point) = @_;
	return $node->safe_psql('postgres', "SELECT encode(polar_flashback_log_page('t', $block, $point), 'hex')");
};
my $then = sub { my ($block) = @_; return unpack 'H*', substr($was, $block * 8192, 8192); };

$node->safe_psql('postgres', 'UPDATE t SET b = repeat(md5(b), 10), a = -a; UPDATE u SET a = -a');
is($image->(3, $first), '', 'a page that was not overwritten has no image');
my $second = checkpoint($node);
is($image->(3, $first), $then->(3), 'one that was has the image of then');
is($image->(3, $second), '', 'and none since the next point');
my $was_second = slurp_file($path);
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1; CHECKPOINT; UPDATE t SET a = a + 1; CHECKPOINT');
is($image->(3, $first), $then->(3), 'the first image stays the first');
is($image->(3, $second), unpack('H*', substr($was_second, 3 * 8192, 8192)), 'the next point has its own');

my $number = $node->safe_psql('postgres', q{SELECT pg_relation_filenode('u')});
is($node->safe_psql('postgres', "SELECT count(*) FROM polar_flashback_log_get_images($first) WHERE relfilenode = $number"), 0,
	'unlogged relations are not kept');
is($node->safe_psql('postgres', "SELECT images >= 50, unreadable FROM polar_flashback_log_get_images($first) WHERE relfilenode = pg_relation_filenode('t')"),
	't|0', 'images are counted by relation');
is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_log_verify() WHERE damage IS NOT NULL'), 0, 'the log is in order');
is($node->safe_psql('postgres', q{SELECT state, mode, points >= 4, oldest_time < newest_point_time, images >= 50, zero_pages > 0, unreadable,
	written_bytes BETWEEN 1 AND image_bytes, size_bytes > 0, bytes_per_second >= 0, failures FROM polar_stat_flashback_log}),
	'on|async|t|t|t|t|0|t|t|t|0', 'the view shows what happened');

# The window outlives a stop in order, a crash of everything, and one of a single process
my $state = state($node);
$node->restart;
continued($node, $state, 'the window continues after a restart');
is($image->(3, $first), $then->(3), 'and has its images');
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1');
$state = state($node);
crash($node);
$node->start;
continued($node, $state, 'after a crash');
is($image->(3, $first), $then->(3), 'and has its images');
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
$node->reload;
$state = state($node);
my $pid = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
my $offset = -s $node->logfile;
kill 'KILL', $pid;
wait_for_restart($node, $offset);
continued($node, $state, 'after the crash of one process');
is($image->(3, $first), $then->(3), 'and has its images');
$node->poll_query_until('postgres', q{SELECT bool_and(indexed) FROM (SELECT * FROM polar_flashback_log_verify() ORDER BY segment DESC OFFSET 1) s});
is($image->(3, $first), $then->(3), 'through indexes, too');
is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_log_verify() WHERE damage IS NOT NULL'), 0, 'the log is in order');

# Compression
foreach my $how ('off', 'pglz', 'lz4', 'zstd')
{
	$node->append_conf('postgresql.conf', "polar_flashback_log_compression = $how");
	$node->reload;
	ok($node->poll_query_until('postgres', 'SHOW polar_flashback_log_compression', $how), "compression $how");
	my $point = checkpoint($node);
	my $page = substr(slurp_file($path), 0, 8192);
	$node->safe_psql('postgres', 'UPDATE t SET a = a + 1; CHECKPOINT');
	is($image->(0, $point), unpack('H*', $page), 'gives the page back');
}

# Switched off
$node->append_conf('postgresql.conf', 'polar_enable_flashback_log = off');
$node->restart;
is($node->safe_psql('postgres', 'SELECT state, points, looks FROM polar_stat_flashback_log'), 'off|0|0', 'switched off');
is_deeply([ grep { !/^\.+$/ } slurp_dir($node->data_dir . '/polar_flog') ], [], 'nothing is left');
$node->append_conf('postgresql.conf', 'polar_enable_flashback_log = on');
$node->restart;
await_point($node);
unlike(',' . state($node)->{points} . ',', qr/,$first,/, 'switched on again, an older point does not count');
$node->stop;

# What it needs
$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0");
is($node->start(fail_ok => 1), 0, 'without WAL of all changes the server does not start');
like(slurp_file($node->logfile), qr/the flashback log requires "wal_level" to be "replica" or "logical"/, 'and says why');

done_testing();
