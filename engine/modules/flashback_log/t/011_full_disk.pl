# A file system that is really full: the log takes what there is but for one segment, gives up its oldest points, and neither mode
# lets what it cannot keep go unnoticed.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(configuration await_point checkpoint state);

# A small file system for the log, in a namespace of its own: no privilege is needed where the system allows that
my @namespace = ('unshare', '--user', '--mount', '--map-current-user', '--keep-caps');
my $probe = PostgreSQL::Test::Utils::tempdir('probe');
plan skip_all => 'this system does not let users mount a file system'
  if system("@namespace mount -t tmpfs tmpfs '$probe' >/dev/null 2>&1") != 0;

my $mib = 1024 * 1024;
my $size = 10;
foreach my $mode ('async', 'sync')
{
	my $node = PostgreSQL::Test::Cluster->new("node_$mode");
	$node->init(allows_streaming => 1);
	$node->append_conf('postgresql.conf', configuration() . qq{
shared_buffers = 32MB
polar_enable_fast_recovery_area = on
polar_flashback_log_compression = off
polar_flashback_log_mode = $mode
});
	my $log = $node->data_dir . '/polar_flog';
	mkdir $log or die $!;
	my $start = "mount -t tmpfs -o size=${size}m,mode=700 tmpfs '$log' && exec pg_ctl -w -D '" . $node->data_dir . "' -l '" . $node->logfile . "' start";
	command_ok([ @namespace, 'sh', '-c', $start ], "an instance starts, $mode");
	$node->_update_pid(1);
	$node->safe_psql('postgres', 'CREATE EXTENSION flashback_log; CREATE TABLE t (a int, b text) WITH (fillfactor = 50)');
	await_point($node);
	my $used = sub {
		return $node->safe_psql('postgres', q{SELECT sum((pg_stat_file('polar_flog/' || f, true)).size) FROM pg_ls_dir('polar_flog') f});
	};
	my $damage = 'SELECT count(*) FROM polar_flashback_log_verify() WHERE damage IS NOT NULL';

	# What is kept between two points has room: old points go, the window does not end
	$node->safe_psql('postgres', q{INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 2000) g});
	my $first = checkpoint($node);
	$node->safe_psql('postgres', 'UPDATE t SET a = a + 1; VACUUM t; CHECKPOINT') foreach 1 .. 10;
	my $state = state($node);
	is($state->{ended}, 0, "the window goes on, $mode") or diag($state->{why});
	unlike(",$state->{points},", qr/,$first,/, "without its oldest points, $mode");
	cmp_ok($used->(), '<=', ($size - 1) * $mib, "room for one segment is left to others, $mode");
	is($node->safe_psql('postgres', $damage), 0, "the log is in order, $mode");

	# More than there is room for
	$node->safe_psql('postgres', q{INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 20000) g; CHECKPOINT});
	my ($out, $err);
	my $status = $node->psql('postgres', 'UPDATE t SET a = a + 1; CHECKPOINT', stdout => \$out, stderr => \$err);
	$state = state($node);
	if ($mode eq 'async')
	{
		is($status, 0, 'a checkpoint does not care');
		is($state->{ended}, 1, 'the window ends');
		like($state->{why}, qr/No space left on device/, 'with the reason');
	}
	else
	{
		isnt($status, 0, 'a checkpoint fails');
		is($state->{ended}, 0, 'the window goes on');
		like(slurp_file($node->logfile), qr/ERROR:  could not keep blocks? .*\n.*No space left on device/, 'the log says why');
		is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_points WHERE redo_lsn = (SELECT redo_lsn FROM pg_control_checkpoint())'),
			1, 'the point that recovery starts from is there');
	}
	cmp_ok($used->(), '<=', ($size - 1) * $mib, "room for one segment is left to others, $mode");
	is($node->safe_psql('postgres', $damage), 0, "the log is in order, $mode");
	crash($node);
}

done_testing();
