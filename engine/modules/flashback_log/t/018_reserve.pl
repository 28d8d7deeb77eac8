# Disks that fill up: the window gives its oldest part up before they are full, and nobody's work fails. WAL on a small disk of its
# own, a tablespace on another one.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(configuration await_point checkpoint state);
use Floe::Test::Wait qw(wait_until);

my @namespace = ('unshare', '--user', '--mount', '--map-current-user', '--keep-caps');
my $probe = PostgreSQL::Test::Utils::tempdir('probe');
plan skip_all => 'this system does not let users mount a file system'
  if system("@namespace mount -t tmpfs tmpfs '$probe' >/dev/null 2>&1") != 0;

# As the server sees it: the test is not in its namespace
sub available
{
	my ($node, $path) = @_;
	return $node->safe_psql('postgres', "TRUNCATE df; COPY df FROM PROGRAM 'df --output=avail -B1M ''$path'' | tail -n 1'; SELECT trim(l)::int FROM df");
}

sub start
{
	my ($mode) = @_;
	my $node = PostgreSQL::Test::Cluster->new("node_$mode");
	$node->init(allows_streaming => 1, extra => ['--wal-segsize=1']);
	$node->append_conf('postgresql.conf', configuration() . qq{
shared_buffers = 16MB
min_wal_size = 2MB
max_wal_size = 16MB
wal_keep_size = 0
polar_enable_fast_recovery_area = on
polar_flashback_log_mode = $mode
polar_flashback_reserve = 36MB
});
	my ($wal, $place) = ($node->data_dir . '/pg_wal', $node->basedir . '/place');
	mkdir $place or die $!;
	my $mounts = "mv '$wal' '$wal.was' && mkdir -m 700 '$wal' && mount -t tmpfs -o size=100m,mode=700 tmpfs '$wal' && cp -a '$wal.was/.' '$wal' && "
	  . "mount -t tmpfs -o size=48m,mode=700 tmpfs '$place'";
	command_ok([ @namespace, 'sh', '-c', "$mounts && exec pg_ctl -w -D '" . $node->data_dir . "' -l '" . $node->logfile . "' start" ], "an instance starts, $mode");
	$node->_update_pid(1);
	$node->safe_psql('postgres', 'CREATE EXTENSION flashback_log; CREATE TABLE df (l text)');
	$node->safe_psql('postgres', "CREATE TABLESPACE place LOCATION '$place'");
	await_point($node);
	return ($node, $wal, $place);
}

# More than the disk of WAL holds, in one command that makes WAL and hardly any image
my $flood = q{SET synchronous_commit = off; CREATE TABLE flood AS SELECT g, repeat(md5(g::text), 8) FROM generate_series(1, 500000) g};
my $view = q{SELECT shortened > 0, last_shortened_reason, windows_ended FROM polar_stat_flashback_log};

foreach my $mode ('async', 'sync')
{
	my ($node, $wal, $place) = start($mode);

	# The tables of a tablespace: what was dropped gives way there, and only there
	my $make = sub { $node->safe_psql('postgres', "CREATE TABLE $_[0] TABLESPACE $_[1] AS SELECT g, repeat(md5(g::text), 8) FROM generate_series(1, $_[2]) g") };
	my $kept = sub { return $node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_recycled WHERE size_bytes > 0 AND tablespace ' . $_[0] . q{ (SELECT oid FROM pg_tablespace WHERE spcname = 'place')}) };
	$make->('here', 'pg_default', 1000);
	$make->('there', 'place', 40000);
	checkpoint($node);
	$node->safe_psql('postgres', 'DROP TABLE here; DROP TABLE there');
	is($kept->('='), 1, 'a dropped table is kept while there is room');
	my $points = state($node)->{points};
	$make->('more', 'place', 60000);
	ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM polar_flashback_recycled WHERE size_bytes > 0 AND tablespace = (SELECT oid FROM pg_tablespace WHERE spcname = 'place')}),
		'it goes when there is none');
	cmp_ok(available($node, $place), '>=', 24, 'which gives the space back');
	cmp_ok($kept->('<>'), '>', 0, 'what is kept elsewhere stays');
	like(state($node)->{points}, qr/^\Q$points\E/, 'and the points');

	# WAL
	my $first = checkpoint($node);
	my $before = $node->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
	is($node->psql('postgres', $flood), 0, "a large table is filled, $mode");
	cmp_ok($node->safe_psql('postgres', "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '$before') / 1048576"), '>', 100, 'with more WAL than its disk holds');
	unlike(',' . state($node)->{points} . ',', qr/,$first,/, 'the oldest points went');
	like($node->safe_psql('postgres', $view), qr/^t\|\d+ MB were left on the file system of "pg_wal", less than the reserve of 36 MB\|0$/, 'visibly, and that is no loss');
	like(slurp_file($node->logfile), qr/LOG:  the window of the flashback log gets shorter for want of space/, 'the log says so, too');
	ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM polar_flashback_points WHERE redo_lsn = (SELECT redo_lsn FROM pg_control_checkpoint())}),
		'the point that recovery starts from is there');
	checkpoint($node) foreach 1 .. 3;
	cmp_ok(available($node, $wal), '>=', 36, 'and the reserve');

	if ($mode eq 'sync')
	{
		crash($node);
		next;
	}

	# Without the rule
	$node->append_conf('postgresql.conf', 'polar_flashback_reserve = 0');
	$node->reload;
	isnt($node->psql('postgres', $flood =~ s/flood/flood_again/r), 0, 'without a reserve the window takes all');
	wait_until(sub { !-e $node->data_dir . '/postmaster.pid' }, 'the server to be gone');
	$node->_update_pid(0);
	like(slurp_file($node->logfile), qr/PANIC: .*No space left on device/, 'which ends the server');
}

done_testing();
