# A start with full-page images reads its WAL once: as long as each first change brings its page, replay needs nobody. Where one
# does not, whatever has ended images, replay stops before it, and every torn page is replaced, or found, there.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Repair qw(attempt copy_instance new_repairable sound start_only);
use Floe::Test::Standby qw(new_standby wait_for_replay);
use Floe::Test::Torn qw(remember_files forget_files tear_pages repair_source);
use Floe::Test::Wait qw(wait_until);

srand($ENV{FLOE_TEST_SEED} // 20);

my $read_ahead = qr/page repair: WAL is read ahead from (\S+),/;
my $query = 'SELECT (SELECT ROW(count(*), sum(a), sum(b))::text FROM t) || (SELECT ROW(count(*), sum(a), sum(b))::text FROM u)';

# images(cluster, how): by the setting, and in force
sub images
{
	my ($cluster, $how) = @_;
	$cluster->safe_psql('postgres', "ALTER SYSTEM SET full_page_writes = $how");
	$cluster->reload;
	$cluster->poll_query_until('postgres', "SELECT images_in_force = '$how'::bool FROM polar_page_repair_status") or die "images are not $how";
	return;
}

# begin(cluster): images are in force, and a checkpoint has been made since. VACUUM sets the hints of catalogs, which whoever looks
# after images have ended would set otherwise: a first change without an image.
sub begin
{
	my ($cluster) = @_;
	images($cluster, 'on');
	$cluster->safe_psql('postgres', 'DROP TABLE IF EXISTS u; CREATE TABLE u AS SELECT g AS a, 0 AS b, md5(g::text) AS c FROM generate_series(1, 20000) g; VACUUM; CHECKPOINT');
	return remember_files($cluster);
}

# Without the guard's worker nobody asks for a checkpoint when images come back
my $primary = new_repairable('primary', "full_page_writes = on\nmax_worker_processes = 0\nlog_startup_progress_interval = 1ms");
$primary->safe_psql('postgres', 'CREATE TABLE hashed AS SELECT g AS a FROM generate_series(1, 100) g');
my $standby = new_standby($primary, 'standby');
# It answers, on a busy machine late
my $source = "polar_page_repair_sources = '" . repair_source($standby) . "'\npolar_page_repair_timeout = 60s\n";
$primary->append_conf('postgresql.conf', $source);
$primary->reload;

# ---- The work, its parts with and without images, and how much of it is torn
my %parts = (
	some => 'UPDATE t SET b = b + 1 WHERE a <= 8000; UPDATE u SET b = b + 1 WHERE a <= 2000',
	all => 'UPDATE t SET b = b + 1; UPDATE u SET b = b + 2 WHERE a % 3 = 0',
	more => 'INSERT INTO u SELECT g, 1, md5(g::text) FROM generate_series(20001, 40000) g',
	# What replay has lengthened is cut, and cut files are longer again after the crash
	cut => 'DELETE FROM u WHERE a > 1000; VACUUM u; INSERT INTO u SELECT g, 5, md5(g::text) FROM generate_series(50000, 60000) g',
	maps => 'DELETE FROM t WHERE a % 10 = 0; VACUUM t');
my @cases = (
	[ 'images all the time', 0, qw(some all more maps cut) ],
	[ 'images that end', 1, qw(some more off all) ],
	[ 'images that end, come back and end', 1, qw(some off some on more off all) ],
	[ 'images that end and come back', 1, qw(some off maps all on all more) ],
	[ 'no change before they end', 1, qw(off all) ],
	[ 'nothing after they have ended', 0, qw(all more off) ],
	[ 'files that are cut after they have ended', 1, qw(more some off all cut) ],
	[ 'files that are cut before they end', 1, qw(more cut off all) ]);
my %told;
foreach my $case (@cases)
{
	my ($what, $ended, @steps) = @$case;
	my $before = begin($primary);
	foreach my $step (@steps)
	{
		$parts{$step} ? $primary->safe_psql('postgres', $parts{$step}) : images($primary, $step);
	}
	my $truth = $primary->safe_psql('postgres', $query);
	wait_for_replay($primary, $standby);
	crash($primary);
	my $torn = tear_pages($primary, $before, sector => 512, share => 0.8, undo => 1);
	forget_files($before);
	cmp_ok($torn->{torn}, '>', 20, "$what: pages are torn: $torn->{torn}");
	my ($started, $log) = attempt($primary);
	is($started, 1, "$what: it starts") or die $log;
	($ended ? \&like : \&unlike)->($log, $read_ahead, "$what: " . ($ended ? 'WAL is read ahead where the first page has none' : 'WAL is read once'));
	$told{reading} ||= $log =~ /page repair reads WAL ahead, elapsed time: /;
	$told{fetching} ||= $log =~ /page repair fetches pages, elapsed time: .* \d+ of \d+ pages/;
	$told{verifying} ||= $log =~ /page repair verifies pages, elapsed time: .* part \d+ of \d+/;
	unlike($log, qr/page repair: \d+ blocks/, "$what: nothing is looked at") if !$ended;
	is($primary->safe_psql('postgres', $query), $truth, "$what: all rows are there");
	is(sound($primary) . $primary->safe_psql('postgres', q{SELECT * FROM verify_heapam('u')}), '', "$what: heaps and index are sound");
	cmp_ok($primary->safe_psql('postgres', 'SELECT repaired FROM polar_stat_page_repair'), '>', 20, "$what: pages were repaired") if $ended;
}

# Each is over within a tick now and then
ok($told{$_}, "how far $_ is is told") foreach qw(reading verifying fetching);

# ---- Recovery that is stopped where images end, after it has written pages of its own
{
	my $before = begin($primary);
	$primary->safe_psql('postgres', "$parts{some}; $parts{more}");
	images($primary, 'off');
	$primary->safe_psql('postgres', $parts{all});
	my $truth = $primary->safe_psql('postgres', $query);
	wait_for_replay($primary, $standby);
	crash($primary);
	tear_pages($primary, $before, sector => 512, share => 0.8);

	my $victim = copy_instance('alone', $primary->data_dir, "polar_page_repair_sources = ''\n");
	my ($started, $log) = attempt($victim);
	is($started, 0, 'no source: no start with torn pages');
	like($log, qr/$read_ahead.*is torn, and no page repair source could give it/s, 'no source: they are found before replay meets one');
	unlike($log, qr/(FATAL|PANIC): .*invalid page/, 'no source: none was read by replay');

	$primary->append_conf('postgresql.conf', "polar_page_repair_sources = 'host=/nonexistent'\npolar_page_repair_timeout = 3min\n");
	my $offset = start_only($primary);
	wait_until(sub { slurp_file($primary->logfile, $offset) =~ $read_ahead }, 'recovery to come to the end of images');
	$primary->_update_pid(1);
	crash($primary);
	my $again = tear_pages($primary, $before, sector => 512, share => 0.8);
	note("torn once more: $again->{torn}");
	forget_files($before);
	$primary->append_conf('postgresql.conf', $source);
	($started, $log) = attempt($primary);
	is($started, 1, 'crashed where it waited: it starts') or die $log;
	is($primary->safe_psql('postgres', $query), $truth, 'crashed where it waited: all rows are there');
	is(sound($primary), '', 'crashed where it waited: heap and index are sound');
}

# ---- A change that has no image by nature is met like one after the end of images
{
	my $before = begin($primary);
	$primary->safe_psql('postgres', q{CREATE INDEX by_hash ON hashed USING hash (a); CHECKPOINT});
	forget_files($before);
	$before = remember_files($primary);
	$primary->safe_psql('postgres', q{INSERT INTO hashed SELECT g % 7 FROM generate_series(1, 5000) g; DELETE FROM hashed WHERE a % 2 = 0; VACUUM hashed; INSERT INTO hashed SELECT g FROM generate_series(1, 5000) g});
	wait_for_replay($primary, $standby);
	crash($primary);
	tear_pages($primary, $before, sector => 512, share => 1);
	forget_files($before);
	is((attempt($primary))[0], 1, 'hash index: it starts');
	my $count = q{SET enable_seqscan = %s; SET enable_bitmapscan = %s; SELECT count(*) FROM hashed WHERE a = 3};
	is($primary->safe_psql('postgres', sprintf($count, 'off', 'off')), $primary->safe_psql('postgres', sprintf($count, 'on', 'on')), 'hash index: it finds what the heap has');
}
$_->stop foreach $standby, $primary;

# ---- WAL of the level minimal does not say when images end
{
	my $minimal = new_repairable('minimal', "full_page_writes = on\nwal_level = minimal\nmax_wal_senders = 0\nwal_log_hints = off\n");
	my $before = begin($minimal);
	$minimal->safe_psql('postgres', "$parts{all}; $parts{more}");
	crash($minimal);
	tear_pages($minimal, $before, sector => 512);
	forget_files($before);
	my ($started, $log) = attempt($minimal);
	is($started, 1, 'minimal, images all the time: it starts') or die $log;
	unlike($log, qr/page repair:/, 'minimal, images all the time: WAL is read once');

	$before = begin($minimal);
	$minimal->safe_psql('postgres', $parts{some});
	images($minimal, 'off');
	$minimal->safe_psql('postgres', $parts{all});
	crash($minimal);
	cmp_ok(tear_pages($minimal, $before, sector => 512)->{torn}, '>', 20, 'minimal, images that end: pages are torn');
	($started, $log) = attempt($minimal);
	is($started, 0, 'minimal, images that end: no start with torn pages');
	like($log, qr/is torn, and no page repair source could give it/, 'minimal, images that end: they are found');
}
done_testing();
