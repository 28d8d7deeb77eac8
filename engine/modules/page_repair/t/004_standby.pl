# A standby replays WAL without images, so a crash tears its pages as well. It takes them from its primary, or from another
# standby, and lets nobody read before it has replayed what they hold.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Repair qw(attempt least_recovery_point new_repairable sound start_only tear_standby);
use Floe::Test::Standby qw(new_standby wait_for_replay);
use Floe::Test::Torn qw(repair_source);
use Floe::Test::Wait qw(wait_until);

srand($ENV{FLOE_TEST_SEED} // 4);

my $primary = new_repairable('primary');
my $standby = new_standby($primary, 'standby');
my $second = new_standby($primary, 'second');
is($standby->safe_psql('postgres', 'SELECT recovery IS NULL FROM polar_stat_page_repair'), 't',
	'a base backup is left alone: images were forced until its end');

my $query = 'SELECT count(*), sum(a), sum(b), md5(string_agg(c, NULL ORDER BY a)) FROM t';

sub tear
{
	my $torn = tear_standby($primary, $standby);
	cmp_ok($torn->{torn}, '>', 20, "the standby's pages are torn: $torn->{torn}");
	return;
}

sub is_sound
{
	my ($what) = @_;
	wait_for_replay($primary, $standby);
	is($standby->safe_psql('postgres', $query), $primary->safe_psql('postgres', $query), "$what: it has the primary's contents");
	is(sound($standby), '', "$what: its heap and index are sound");
	return;
}

# Overwrites the WAL of a stopped instance from that position on with zeroes
sub lose_wal_after
{
	my ($cluster, $lsn) = @_;
	my ($high, $low) = map { hex } split m{/}, $lsn;
	foreach my $file (grep { m{/[0-9A-F]{24}$} } glob($cluster->data_dir . '/pg_wal/*'))
	{
		my ($name) = $file =~ m{([^/]+)$};
		my $size = -s $file;
		my $first = sprintf '%08X%08X%08X', 1, $high, $low / $size;
		my $at = $name lt $first ? $size : $name eq $first ? $low % $size : 0;
		open my $out, '+<:raw', $file or die "open: $!";
		seek $out, $at, 0;
		print $out "\0" x ($size - $at);
		close $out or die "close: $!";
	}
	return;
}

foreach my $policy ('checksum', 'always')
{
	# With nobody to ask
	tear();
	$standby->append_conf('postgresql.conf', "polar_page_repair_policy = $policy\npolar_page_repair_sources = 'host=/nonexistent'");
	my ($started, $log) = attempt($standby);
	is($started, 0, "$policy: without a source the standby does not start");
	like($log, qr/no page repair source could give it|from any page repair source/, "$policy: and says why");
	like($log, qr/HINT: .*keep both data directories/, "$policy: and what must be kept");

	# From the primary, which has gone on meanwhile: the pages are newer than what the standby has
	$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1000');
	$standby->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($primary) . "'");
	# What they need of WAL comes before them, so nothing has to be streamed
	$standby->append_conf('postgresql.conf', "primary_conninfo = ''");
	my $had = least_recovery_point($standby);
	my $offset = start_only($standby);
	wait_until(sub { slurp_file($standby->logfile, $offset) =~ /page repair: \d+ blocks named by WAL/ }, 'pages to be repaired');
	wait_until(sub { slurp_file($standby->logfile, $offset) =~ /waiting for WAL to become available/ }, 'local WAL to be replayed');
	my ($repaired) = slurp_file($standby->logfile, $offset) =~ /(\d+) taken from sources/;
	cmp_ok($repaired, '>', 20, "$policy: pages were taken from the primary: $repaired");
	like(slurp_file($standby->logfile, $offset), qr/consistent recovery state reached/, "$policy: it is consistent by itself");
	my $least = least_recovery_point($standby);
	is($primary->safe_psql('postgres', "SELECT '$least'::pg_lsn > '$had'::pg_lsn, '$least'::pg_lsn <= pg_current_wal_flush_lsn()"),
		't|t', "$policy: pg_control knows how far it has to come");

	# A second crash must find the same bound, though it finds no page that is torn and has nobody to ask
	$standby->_update_pid(1);
	crash($standby);
	lose_wal_after($standby, $had);
	$standby->append_conf('postgresql.conf', "polar_page_repair_policy = checksum\npolar_page_repair_sources = ''");
	$offset = start_only($standby);
	wait_until(sub { slurp_file($standby->logfile, $offset) =~ /waiting for WAL to become available/ }, 'local WAL to be replayed again');
	unlike(slurp_file($standby->logfile, $offset), qr/consistent recovery state reached|ready to accept read-only/,
		"$policy: without that WAL it is not consistent");
	is(least_recovery_point($standby), $least, "$policy: the bound stays");
	$standby->_update_pid(1);
	$standby->append_conf('postgresql.conf', "primary_conninfo = '" . $primary->connstr =~ s/'/''/gr . " application_name=standby'");
	$standby->reload;
	is_sound("$policy, from the primary");
	like(slurp_file($standby->logfile, $offset), qr/consistent recovery state reached at/, "$policy: consistent in the end");
	$standby->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($primary) . "'");
	$standby->reload;
}

# From another standby
tear();
$standby->append_conf('postgresql.conf', "polar_page_repair_policy = checksum\npolar_page_repair_sources = '" . repair_source($second) . "'");
$standby->start;
cmp_ok($standby->safe_psql('postgres', 'SELECT repaired FROM polar_stat_page_repair'), '>', 20, 'pages were taken from another standby');
is($standby->safe_psql('postgres', q{SELECT recovery FROM polar_stat_page_repair}), 'standby', 'the view tells that it is one');
is_sound('from another standby');

# Without its local WAL: blocks are looked at as their WAL comes again
tear();
unlink grep { m{/[0-9A-F]{24}$} } glob($standby->data_dir . '/pg_wal/*');
$standby->start;
cmp_ok($standby->safe_psql('postgres', 'SELECT repaired FROM polar_stat_page_repair'), '>', 20, 'pages were repaired while WAL was streamed again');
is_sound('without local WAL');

# Guard on a standby: it says who could help
ok($standby->poll_query_until('postgres', q{SELECT state, images_in_force IS NULL FROM polar_page_repair_status}, 'protected|t'),
	'a standby is protected by its source');
$standby->append_conf('postgresql.conf', "recovery_min_apply_delay = '1h'");
$standby->reload;
ok($standby->poll_query_until('postgres', q{SELECT state, why FROM polar_page_repair_status}, 'exposed|this server shall stay behind, so it would get no page of now'),
	'a delayed one is not');
$standby->append_conf('postgresql.conf', 'recovery_min_apply_delay = 0');
$standby->reload;
ok($standby->poll_query_until('postgres', q{SELECT state FROM polar_page_repair_status}, 'protected'), 'until it is not delayed any more');
$second->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
ok($second->poll_query_until('postgres', 'SELECT pg_get_wal_replay_pause_state()', 'paused'), 'its source is held');
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1 WHERE a < 100; CHECKPOINT');
wait_for_replay($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
ok($standby->poll_query_until('postgres', q{SELECT state, why ~ 'the last restartpoint' FROM polar_page_repair_status}, 'exposed|t'),
	'a source before its redo point does not protect it');
$second->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
ok($standby->poll_query_until('postgres', q{SELECT state FROM polar_page_repair_status}, 'protected'), 'until it has come');
$second->stop;
ok($standby->poll_query_until('postgres', q{SELECT state FROM polar_page_repair_status}, 'exposed'), 'or exposed');

# A standby that was promoted after such a repair
$standby->promote;
$standby->safe_psql('postgres', 'UPDATE t SET b = 0');
is($standby->safe_psql('postgres', q{SELECT * FROM verify_heapam('t')}), '', 'it can be promoted');
$standby->stop;
command_ok([ 'pg_checksums', '--check', '-D', $standby->data_dir ], 'every page on its disk verifies');
$primary->stop;
done_testing();
