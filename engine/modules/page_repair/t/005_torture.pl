# Load of many kinds, crashes at random moments, pages torn by sectors of 4096 and 512 bytes, truncations and removals undone:
# every page is repaired, everything that was confirmed is there, all heaps and indexes are sound. Then the same for a standby.
# In two rounds of three blocks are written in runs, by COPY, CREATE TABLE AS, VACUUM and checkpoints, one of which the crash cuts.
# FLOE_TORTURE_SOURCE says who gives the pages: standby (the default; a standby's come from its primary), or flashback-log, without
# any other source, with the guard on; then there is a standby only if it is to crash, too.
# FLOE_TORTURE_CRASHES and FLOE_TORTURE_STANDBY_CRASHES say how many of each (default 2, with FLOE_TEST_LONG=1 it is 6);
# FLOE_TEST_RESULT names a file for the figures.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Figures qw(write_figures);
use Floe::Test::Flashback qw(known_settings);
use Floe::Test::Standby qw(new_primary new_standby wait_for_replay);
use Floe::Test::Torn qw(forget_files tear_pages repair_source);
use Floe::Test::Torture qw(load_settings pool_for prepare_load run_until_crash started add_written runs_were_written written_figures check_everything index_files);

my $crashes = $ENV{FLOE_TORTURE_CRASHES} // ($ENV{FLOE_TEST_LONG} ? 6 : 2);
my $from_log = ($ENV{FLOE_TORTURE_SOURCE} // 'standby') eq 'flashback-log';
my $standby_crashes = $ENV{FLOE_TORTURE_STANDBY_CRASHES} // ($from_log ? 0 : $ENV{FLOE_TEST_LONG} ? 6 : 2);
my $seed = $ENV{FLOE_TEST_SEED} || time;
srand($seed);
note("FLOE_TEST_SEED=$seed");

# Nothing is synced before the crash but by a checkpoint.
my $primary = new_primary('primary', load_settings() . ($from_log ? known_settings(q{
polar_enable_flashback_log = on
polar_flashback_log_mode = sync
polar_flashback_log_max_size = 2GB
polar_flashback_log_keep_segments = 1000
polar_flashback_point_timeout = 1d
polar_flashback_point_segments = 10000
polar_flashback_log_test_segment_size = 4MB
}) : q{
polar_page_repair_guard = off
}));
$primary->safe_psql('postgres', q{
	CREATE EXTENSION page_repair; CREATE EXTENSION amcheck;
	CREATE ROLE page_repair LOGIN; GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair});
my $standby = $from_log && !$standby_crashes ? undef : new_standby($primary, 'standby');
my @instances = grep { defined } $primary, $standby;
if (!$from_log)
{
	$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'");
	$standby->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($primary) . "'");
	$_->reload foreach @instances;
}
prepare_load($primary);
my $index_files = index_files($primary);
my %written = map { $_ => 0 } qw(btree hash gin gist brin);

my %figures = map { $_ => 0 } qw(crashes standby_crashes cut_checkpoints torn_pages unseen_pages lost_pages repaired unrepaired stuck wrong stock_fails stock_silently_wrong stock_sound);
my %runs;

VICTIM: foreach my $victim (@instances)
{
	foreach my $number (1 .. ($victim == $primary ? $crashes : $standby_crashes))
	{
		# Else a long run is mostly one of its own checks
		if ($number % 20 == 0)
		{
			prepare_load($primary);
			$index_files = index_files($primary);
		}
		# Each instance has both in two crashes, and its second checkpoint is cut short: not the first, as one that is faster than its
		# crash leaves nothing to be torn, and then a short run would have no baseline
		my $policy = $number % 3 == ($victim == $primary ? 2 : 1) ? 'always' : 'checksum';
		my $name = $victim->name . " crash $number, $policy";
		# The guard has seen the source, and the load writes no images
		$primary->poll_query_until('postgres', 'SELECT NOT images_in_force FROM polar_page_repair_status') or die 'images are still written';
		my $cut = $victim == $primary && $number % 4 > 1;
		my $round = run_until_crash($primary, crash => $victim, seconds => 2.5, checkpoint => $number % 2, cut => $cut);
		add_written(\%runs, $round);
		# Only "always" promises anything for a page whose checksum is right by accident
		my $torn = $round->{overtaken} ? { torn => 0, lost => 0, unseen => 0, written => {} } :
		  tear_pages($victim, $round->{before}, sector => $number % 2 ? 512 : 4096, undo => $number % 4 == 0, unseen => $policy eq 'always');
		forget_files($round->{before});
		$figures{cut_checkpoints}++ if $cut && !$round->{overtaken};
		$figures{ $victim == $primary ? 'crashes' : 'standby_crashes' }++;
		$figures{torn_pages} += $torn->{torn};
		$figures{lost_pages} += $torn->{lost};
		$figures{unseen_pages} += $torn->{unseen};
		$written{ $index_files->{$_} } += $torn->{written}{$_} foreach grep { $index_files->{$_} } keys %{ $torn->{written} };
		if ($round->{overtaken}) { note("$name: the checkpoint that was to be cut short was complete, so nothing is torn") }
		else { cmp_ok($torn->{torn}, '>', 10, "$name: pages are torn: $torn->{torn}, with a right checksum: $torn->{unseen}, old: $torn->{lost}") }

		# PostgreSQL, with the same files; in a short run until it has failed once
		if ($victim == $primary && !$round->{overtaken} && ($crashes > 2 || !$figures{stock_fails}))
		{
			my $copy = PostgreSQL::Test::Cluster->new("stock_$number");
			# The log is off there, and is most of the bytes
			PostgreSQL::Test::RecursiveCopy::copypath($victim->data_dir, $copy->data_dir, filterfn => sub { $_[0] ne 'polar_flog' });
			chmod 0700, $copy->data_dir;
			unlink $copy->data_dir . '/postmaster.pid';
			$copy->append_conf('postgresql.conf', 'port = ' . $copy->port . "\npolar_page_repair_policy = off\npolar_enable_flashback_log = off\n");
			my $kind = !$copy->start(fail_ok => 1) ? 'stock_fails' : check_everything($copy, $round) ? 'stock_silently_wrong' : 'stock_sound';
			$figures{$kind}++;
			# A baseline that fails for another reason would prove nothing
			like(slurp_file($copy->logfile), qr/FATAL:  invalid page in block|PANIC: /, "$name: without repair a page stops it") if $kind eq 'stock_fails';
			$copy->stop('immediate') if $kind ne 'stock_fails';
			$copy->clean_node;
		}

		$victim->append_conf('postgresql.conf', "polar_page_repair_policy = $policy\n" . pool_for($number + 1));
		started($victim, $name, \%figures) or last VICTIM;
		my $repaired = $victim->safe_psql('postgres', 'SELECT repaired + missing + vm_initialized + fsm_reset FROM polar_stat_page_repair');
		$figures{repaired} += $repaired;
		is($victim->safe_psql('postgres', 'SELECT log_pages = repaired, log_why IS NULL FROM polar_stat_page_repair'), 't|t', "$name: the log gave all pages") if $from_log;
		wait_for_replay($primary, $standby) if $standby;
		my @faults = check_everything($victim, $round);
		$figures{wrong} += @faults;
		is("@faults", '', "$name: everything is right ($repaired pages repaired, $round->{acknowledged} commits confirmed)");
	}
}

is($figures{unrepaired} + $figures{stuck} + $figures{wrong}, 0, 'nothing is unrepaired, stuck or wrong');
runs_were_written(\%runs);
# Now and then the checkpoint is faster than its crash
cmp_ok($figures{cut_checkpoints}, '>', 0, "crashes in the middle of a checkpoint: $figures{cut_checkpoints}") if $crashes >= 20;
cmp_ok($written{$_}, '>', 0, "pages of its $_ indexes were written and not synced before the crashes: $written{$_}") foreach sort keys %written;
cmp_ok($figures{stock_fails} + $figures{stock_silently_wrong}, '>', 0,
	"PostgreSQL fails ($figures{stock_fails}), is silently wrong ($figures{stock_silently_wrong}) or is lucky ($figures{stock_sound})")
  if $crashes;

if ($standby && !$figures{unrepaired} && !$figures{stuck})
{
	my $sum = q{SELECT md5(string_agg(aid || ':' || abalance, ',' ORDER BY aid)) FROM pgbench_accounts};
	wait_for_replay($primary, $standby);
	is($standby->safe_psql('postgres', $sum), $primary->safe_psql('postgres', $sum), 'primary and standby have the same contents');
}
foreach my $instance (@instances)
{
	last if $figures{unrepaired} || $figures{stuck};
	$instance->stop;
	command_ok([ 'pg_checksums', '--check', '-D', $instance->data_dir ], $instance->name . ': every page on disk verifies');
}
write_figures(%figures, written_figures(\%runs));
done_testing();
