# The flashback log alone after a power failure: at the steps of keeping an image, of ending a segment and of making a point, what
# of the log was not synced is lost, and pages are torn. Every image whose block may have been overwritten is there and can be read.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Disk qw(losable);
use Floe::Test::Flashback qw(in_background);
use Floe::Test::Repair qw(new_repairable with_log attempt sound);
use Floe::Test::Torn qw(remember_files forget_files tear_pages);
use Floe::Test::Wait qw(wait_until);

srand($ENV{FLOE_TEST_SEED} // 20261127);

my $disk = losable() or plan skip_all => 'no C compiler';
local $ENV{LD_PRELOAD} = $disk->{library};
local $ENV{FLOE_DURABLE} = $disk->{directory};

my $node = new_repairable('node', with_log() . "fsync = on\nshared_buffers = 16MB\nbgwriter_lru_maxpages = 0\npolar_flashback_log_compression = off\n");
$node->safe_psql('postgres', q{
	CREATE EXTENSION flashback_log; CREATE EXTENSION injection_points; CREATE EXTENSION pg_buffercache;
	CREATE TABLE u (a int, b int, c text) WITH (fillfactor = 50);
	INSERT INTO u SELECT g, 0, repeat(md5(g::text), 10) FROM generate_series(1, 500) g;
	VACUUM t});
my $evict = q{SELECT pg_buffercache_evict_relation('u')};
my $truth_query = 'SELECT (SELECT ROW(count(*), sum(a), sum(b))::text FROM t) || (SELECT ROW(count(*), sum(a), sum(b))::text FROM u)';

# Who is stopped, where, and then again on the way from there; meanwhile another session writes what it can. FLOE_TEST_LONG=1 adds
# the moments between these.
my @steps = (
	[ 'CHECKPOINT', 'flashback-log-appended' ],
	# The first image in the next segment: those in the one before wait for the sync of their batch
	[ 'CHECKPOINT', 'flashback-log-segment-placed', 'flashback-log-appended' ],
	[ 'CHECKPOINT', 'flashback-log-overwrite' ],
	[ 'CHECKPOINT', 'flashback-log-after-point' ],
	[ 'CHECKPOINT', 'flashback-log-point-stored' ],
	[ $evict, 'flashback-log-image-durable' ],
	[ $evict, 'flashback-log-overwrite' ]);
push @steps,
  (map { [ 'CHECKPOINT', $_ ] } 'flashback-log-segment', 'flashback-log-segment-header', 'flashback-log-segment-placed', 'flashback-log-reserved', 'flashback-log-state-rename'),
  (map { [ $evict, $_ ] } 'flashback-log-reserved', 'flashback-log-appended')
  if $ENV{FLOE_TEST_LONG};

foreach my $step (@steps)
{
	my ($sql, $point, $second) = @$step;
	my $name = join(' ', $sql eq $evict ? 'a backend' : 'a checkpoint', 'at', grep { defined } $point, $second);
	my $is_waiting = sub { return $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'InjectionPoint' AND wait_event = '$_[0]'") };
	$node->safe_psql('postgres', 'VACUUM t; VACUUM u; CHECKPOINT');
	my $before = remember_files($node);
	$node->safe_psql('postgres', 'UPDATE t SET b = b + 1; UPDATE u SET b = b + 1');
	my $truth = $node->safe_psql('postgres', $truth_query);

	in_background($node, $point, $sql) or die;
	if ($second)
	{
		$node->safe_psql('postgres', "SELECT injection_points_attach('$second', 'wait'); SELECT injection_points_detach('$point'); SELECT injection_points_wakeup('$point')");
		wait_until(sub { $is_waiting->($second) }, "it to reach $second");
	}
	$node->safe_psql('postgres', "SELECT injection_points_detach('" . ($second // $point) . "')");
	my $other = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $other->query_safe('SELECT pg_backend_pid()');
	$other->query_until(qr/started/, "\\echo started\n$evict;\n");
	# It has ended, or waits for who is stopped
	my $waits = 0;
	wait_until(
		sub {
			my ($state, $wait) = split /\|/, $node->safe_psql('postgres', "SELECT state, wait_event FROM pg_stat_activity WHERE pid = $pid AND query ~ 'evict'") || '|';
			$waits = $wait eq 'flashback_log' ? $waits + 1 : 0;
			return $state eq 'idle' || $waits == 5;
		},
		'the other session to have written what it can');
	crash($node);

	note("$name: files of the log that lost something: ", $disk->{lose}->($node));
	my $torn = tear_pages($node, $before, sector => 512, share => 1);
	note("$name: torn $torn->{torn}, lost $torn->{lost}");
	cmp_ok($torn->{torn}, '>', 20, "$name: pages are torn, whose images are in the segment after the one that was ended") if $second;
	my ($started, $log) = attempt($node);
	is($started, 1, "$name: it starts") or die $log;
	is($node->safe_psql('postgres', $truth_query), $truth, "$name: all rows are there");
	is(sound($node) . $node->safe_psql('postgres', q{SELECT * FROM verify_heapam('u')}), '', "$name: heaps and index are sound");
	is($node->safe_psql('postgres', 'SELECT coalesce(log_pages = repaired, true), log_why IS NULL FROM polar_stat_page_repair'), 't|t', "$name: by the log alone")
	  or diag($node->safe_psql('postgres', '\x on \\\\ SELECT * FROM polar_stat_page_repair'));
	is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_log_verify() WHERE damage IS NOT NULL'), 0, "$name: the log is in order");
	is($node->safe_psql('postgres', 'SELECT windows_ended FROM polar_stat_flashback_log'), 0, "$name: and its window goes on");
	forget_files($before);
}

$node->stop;
done_testing();
