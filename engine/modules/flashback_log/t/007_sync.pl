# In sync mode no block is overwritten before its image is durable: a segment that fails is given up for another, and when that
# fails, too, the write is an error and the page stays as it was, on disk and in the window.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback checkpoint state continued record_points check_points);

my $node = new_flashback('node', q{
shared_buffers = 32MB
polar_flashback_log_mode = sync
polar_enable_fast_recovery_area = on
});
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE t (a int, b text) WITH (fillfactor = 50);
	INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 5000) g});
my $copies = record_points($node);
my $path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});
my $change = 'UPDATE t SET a = a + 1';
my $evict = q{SELECT pg_buffercache_evict_relation('t')};
my $syncs = sub { return $node->safe_psql('postgres', 'SELECT syncs, images FROM polar_stat_flashback_log'); };

# A checkpoint syncs many images at once
checkpoint($node);
$node->safe_psql('postgres', $change);
my ($syncs_before, $images_before) = split /\|/, $syncs->();
checkpoint($node);
my ($syncs_after, $images_after) = split /\|/, $syncs->();
cmp_ok($images_after - $images_before, '>', 200, 'a checkpoint keeps images');
cmp_ok($syncs_after - $syncs_before, '<', 20, 'with few syncs');

# A failure that lasts
my $state = state($node);
my $attach = sub { $node->safe_psql('postgres', "SELECT injection_points_attach('$_[0]', 'notice')"); };
my $detach = sub { $node->safe_psql('postgres', "SELECT injection_points_detach('$_[0]')"); };

foreach my $failure ('flashback-log-append-fails', 'flashback-log-sync-fails')
{
	$node->safe_psql('postgres', $change);
	my $content = slurp_file($path);
	$attach->($failure);
	my ($out, $err);
	isnt($node->psql('postgres', 'CHECKPOINT', stdout => \$out, stderr => \$err), 0, "$failure: a checkpoint fails");
	like($err, qr/checkpoint request failed/, "$failure: and is not complete");
	like(slurp_file($node->logfile), qr/ERROR:  could not keep blocks? [\d.]+ of relation .* in the flashback log/, "$failure: the log says why");
	ok(slurp_file($path) eq $content, "$failure: nothing was overwritten");
	$detach->($failure);
	$node->safe_psql('postgres', 'SELECT sum(a) FROM t');
	checkpoint($node);
	ok(slurp_file($path) ne $content, "$failure: when it is over, all is written");
	continued($node, $state, "$failure: in the same window");
}
is_deeply([ check_points($node, $copies, 3) ], [], 'every block of every point');
cmp_ok($node->safe_psql('postgres', 'SELECT failures FROM polar_stat_flashback_log'), '>', 1, 'failures are counted');

# A disk without room for another segment: the oldest points make room, the last two never
$node->append_conf('postgresql.conf', 'polar_flashback_log_compression = off');
$node->reload;
$node->safe_psql('postgres', "$change; CHECKPOINT") foreach 1 .. 5;
$state = state($node);
$attach->('flashback-log-disk-full');
$node->safe_psql('postgres', "$change; CHECKPOINT") foreach 1 .. 2;
my $now = state($node);
is($now->{ended}, $state->{ended}, 'a full disk does not end the window of one that has segments to give');
my ($oldest) = split /,/, $state->{points};
unlike(",$now->{points},", qr/,$oldest,/, 'it gets shorter');
is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_log_verify() WHERE damage IS NOT NULL'), 0, 'and has all that is left');
is_deeply([ check_points($node, $copies, 2) ], [], 'every block of every point');
$detach->('flashback-log-disk-full');
checkpoint($node);

# Checkpoints that fail after their point: the point to recover from is not one of the last two, and stays all the same
$node->safe_psql('postgres', q{SELECT injection_points_attach('flashback-log-point-stored', 'error')});
foreach my $turn (1 .. 6)
{
	$attach->('flashback-log-disk-full') if $turn == 4;
	$node->safe_psql('postgres', $change);
	isnt($node->psql('postgres', 'CHECKPOINT'), 0, 'a checkpoint fails');
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_points WHERE redo_lsn = (SELECT redo_lsn FROM pg_control_checkpoint())'),
	1, 'the point that recovery starts from stays');
$detach->($_) foreach 'flashback-log-point-stored', 'flashback-log-disk-full';
checkpoint($node);
is(state($node)->{ended}, $state->{ended}, 'when there is room, all goes on');
is_deeply([ check_points($node, $copies, 2) ], [], 'every block of every point');

done_testing();
