# A standby that has been repaired with pages of its primary needs nothing more of it: the WAL of those pages is on its own
# disk before the first of them. So when the primary crashes next, and is torn, the standby can give its pages back.
# FLOE_TEST_LONG=1 takes ten rounds of each case instead of one.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Repair qw(attempt least_recovery_point new_repairable sound start_only tear_standby);
use Floe::Test::Standby qw(new_standby wait_for_replay);
use Floe::Test::Torn qw(remember_files forget_files tear_pages repair_source);
use Floe::Test::Wait qw(wait_until);

srand($ENV{FLOE_TEST_SEED} // 18);

my $rounds = $ENV{FLOE_TEST_LONG} ? 10 : 1;
my $query = 'SELECT count(*), sum(a), sum(b), md5(string_agg(c, NULL ORDER BY a)) FROM t';
my $primary = new_repairable('primary');
my $standby = new_standby($primary, 'standby');
my $streaming = "primary_conninfo = '" . $primary->connstr =~ s/'/''/gr . " application_name=standby'\n";
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'\npolar_page_repair_timeout = 60s\n");
$primary->reload;
$standby->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($primary) . "'\npolar_page_repair_timeout = 60s\nlog_startup_progress_interval = 1ms\n");

# The log of a cluster from there on
sub log_of
{
	my ($cluster, $offset) = @_;
	return slurp_file($cluster->logfile, $offset);
}

# Work of the primary that it has written and not synced
sub work
{
	$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1 WHERE a % 3 = 0; VACUUM t; UPDATE t SET b = b + 1 WHERE a % 7 = 0');
	return $primary->safe_psql('postgres', $query);
}

# Both are up again, and have all that was committed
sub is_whole
{
	my ($truth, $what) = @_;
	is($primary->safe_psql('postgres', $query), $truth, "$what: the primary has all that was committed");
	is(sound($primary), '', "$what: heap and index are sound");
	wait_for_replay($primary, $standby);
	is($standby->safe_psql('postgres', $query), $truth, "$what: so has the standby");
	is(sound($standby), '', "$what: and they are sound there");
	return;
}

# The primary ends with torn pages as soon as the standby has been repaired, and nothing is streamed from then on.
sub crash_primary_and_start_both
{
	my ($before, $offset, $truth, $what) = @_;
	crash($primary);
	my $torn = tear_pages($primary, $before, sector => 512);
	forget_files($before);
	cmp_ok($torn->{torn}, '>', 20, "$what: the primary's pages are torn: $torn->{torn}");
	wait_until(sub { log_of($standby, $offset) =~ /ready to accept read-only connections|database system is shut down/ }, 'the standby to be consistent');
	unlike(log_of($standby, $offset), qr/database system is shut down/, "$what: the standby is consistent without its primary");
	$standby->_update_pid(1);
	my ($started, $log) = attempt($primary);
	is($started, 1, "$what: the primary starts with the standby's pages") or diag($log);
	cmp_ok($primary->safe_psql('postgres', 'SELECT repaired FROM polar_stat_page_repair'), '>', 20, "$what: it took them");
	$standby->append_conf('postgresql.conf', $streaming);
	$standby->reload;
	is_whole($truth, $what);
	return;
}

foreach my $round (1 .. $rounds)
{
	foreach my $policy ('checksum', 'always')
	{
		my $what = "$policy, round $round";
		my $torn = tear_standby($primary, $standby);
		cmp_ok($torn->{torn}, '>', 20, "$what: the standby's pages are torn: $torn->{torn}");
		$primary->safe_psql('postgres', 'CHECKPOINT');
		my $before = remember_files($primary);
		# A segment that is left in the middle, and whole ones after it
		$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
		my $truth = work();
		$standby->append_conf('postgresql.conf', "primary_conninfo = ''\npolar_page_repair_policy = $policy\n");
		my $offset = start_only($standby);
		wait_until(sub { log_of($standby, $offset) =~ /page repair: \d+ blocks named by WAL|database system is shut down/ }, 'the standby to be repaired');
		like(log_of($standby, $offset), qr/page repair fetched WAL from/, "$what: WAL came before the pages");
		like(log_of($standby, $offset), qr/page repair fetches pages, elapsed time: \d+\.\d+ s, \d+ of \d+ pages$/m, "$what: how far it is with them is told")
		  if $policy eq 'always';
		crash_primary_and_start_both($before, $offset, $truth, $what);
	}
}

# A planned restart of the only standby: it is whole, so its primary may crash meanwhile, though nothing on a disk is believed
sub crash_primary_while_standby_restarts
{
	my ($what) = @_;
	wait_for_replay($primary, $standby);
	$primary->safe_psql('postgres', 'CHECKPOINT');
	my $before = remember_files($primary);
	work();
	wait_for_replay($primary, $standby);
	$standby->stop;
	my $truth = $primary->safe_psql('postgres', $query);
	crash($primary);
	my $torn = tear_pages($primary, $before, sector => 512);
	forget_files($before);
	cmp_ok($torn->{torn}, '>', 20, "$what: the primary's pages are torn: $torn->{torn}");
	my ($started, $log) = attempt($standby);
	is($started, 1, "$what: the standby starts without its primary") or diag($log);
	($started, $log) = attempt($primary);
	is($started, 1, "$what: and the primary with the standby's pages") or diag($log);
	is_whole($truth, $what);
	return;
}
$standby->append_conf('postgresql.conf', 'polar_page_repair_policy = always');
$standby->reload;
foreach my $round (1 .. $rounds)
{
	crash_primary_while_standby_restarts("a clean restart, round $round");

	# The primary's stop was clean as well, so the standby has nothing to replay, and nothing is looked at
	my $what = "a clean restart of a standby that began consistent, round $round";
	wait_for_replay($primary, $standby);
	$primary->stop;
	my ($control) = run_command([ 'pg_controldata', '-D', $primary->data_dir ]);
	my ($last) = $control =~ /^Latest checkpoint location:\s+(\S+)$/m;
	$standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() > '$last'") or die 'the primary\'s last checkpoint is not replayed';
	my $offset = -s $standby->logfile;
	$standby->restart;
	$primary->start;
	$primary->safe_psql('postgres', 'CHECKPOINT');
	wait_for_replay($primary, $standby);
	like(log_of($standby, $offset), qr/consistent recovery state reached.*redo starts/s, "$what: it was, before the first record");
	crash_primary_while_standby_restarts($what);
}
$standby->append_conf('postgresql.conf', 'polar_page_repair_policy = checksum');

# ---- WAL that the source has removed
{
	my $torn = tear_standby($primary, $standby);
	cmp_ok($torn->{torn}, '>', 20, "the standby's pages are torn: $torn->{torn}");
	my $least = least_recovery_point($standby);
	my @segments;
	foreach (1 .. 3)
	{
		push @segments, $primary->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_lsn())');
		$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1 WHERE a < 100; SELECT pg_switch_wal()');
	}
	my $archive = PostgreSQL::Test::Utils::tempdir('archive');
	my $gone = $primary->data_dir . "/pg_wal/$segments[1]";
	rename $gone, "$archive/$segments[1]" or die "rename: $!";
	my ($started, $log) = attempt($standby);
	is($started, 0, 'WAL that is gone: no page is taken that this server could not bring to its end alone');
	like($log, qr/it has removed WAL segment $segments[1]/, 'WAL that is gone: the log names it');
	like($log, qr/HINT: .*from an archive.*or take a new base backup for it/, 'WAL that is gone: and says what to do');
	is(least_recovery_point($standby), $least, 'WAL that is gone: the minimum recovery point has not moved');
	$standby->append_conf('postgresql.conf', "restore_command = 'cp \"$archive/%f\" \"%p\"'");
	($started, $log) = attempt($standby);
	is($started, 1, 'WAL that is gone: it comes from the archive') or diag($log);
	rename "$archive/$segments[1]", $gone or die "rename: $!";
	wait_for_replay($primary, $standby);
	is(sound($standby), '', 'WAL that is gone: heap and index are sound');
}
$standby->stop;
command_ok([ 'pg_checksums', '--check', '-D', $standby->data_dir ], 'every page on its disk verifies');
$primary->stop;
done_testing();
