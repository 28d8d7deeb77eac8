# Load of many kinds, crashes at random moments, pages torn by sectors of 4096 and 512 bytes, truncations and removals undone:
# every page is repaired, everything that was confirmed is there, all heaps and indexes are sound. Then the same for a standby.
# FLOE_TORTURE_CRASHES and FLOE_TORTURE_STANDBY_CRASHES say how many of each (default 3); FLOE_TORTURE_RESULT names a file for
# the figures.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Standby qw(new_primary new_standby wait_for_replay);
use Floe::Test::Torn qw(forget_files tear_pages repair_source);
use Floe::Test::Torture qw(prepare_load run_until_crash check_everything index_files);

my $crashes = $ENV{FLOE_TORTURE_CRASHES} // 3;
my $standby_crashes = $ENV{FLOE_TORTURE_STANDBY_CRASHES} // 3;
my $seed = $ENV{FLOE_TEST_SEED} || time;
srand($seed);
note("FLOE_TEST_SEED=$seed");

# Little room in the pool, so that pages are written soon; nothing is synced before the crash.
my $primary = new_primary('primary', q{
autovacuum_naptime = 1s
shared_buffers = 2MB
full_page_writes = off
polar_page_repair_guard = off
polar_page_repair_timeout = 60s
max_prepared_transactions = 20
checkpoint_timeout = 1h
max_wal_size = 8GB
wal_keep_size = 2GB
max_connections = 50
log_statement = none
});
$primary->safe_psql('postgres', q{
	CREATE EXTENSION page_repair; CREATE EXTENSION amcheck;
	CREATE ROLE page_repair LOGIN; GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair});
my $standby = new_standby($primary, 'standby');
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'");
$standby->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($primary) . "'");
$primary->reload;
$standby->reload;
prepare_load($primary);
my $index_files = index_files($primary);
my %written = map { $_ => 0 } qw(btree hash gin gist brin);

my %figures = map { $_ => 0 } qw(crashes standby_crashes torn_pages unseen_pages lost_pages repaired unrepaired wrong stock_fails stock_silently_wrong stock_sound);

foreach my $victim ($primary, $standby)
{
	foreach my $number (1 .. ($victim == $primary ? $crashes : $standby_crashes))
	{
		# Else a long run is mostly one of its own checks
		if ($number % 20 == 0)
		{
			prepare_load($primary);
			$index_files = index_files($primary);
		}
		my $policy = $number % 3 == 0 ? 'always' : 'checksum';
		my $name = $victim->name . " crash $number, $policy";
		my $round = run_until_crash($primary, crash => $victim, seconds => 2.5);
		# Only "always" promises anything for a page whose checksum is right by accident
		my $torn = tear_pages($victim, $round->{before}, sector => $number % 2 ? 512 : 4096, undo => $number % 4 == 0, unseen => $policy eq 'always');
		forget_files($round->{before});
		$figures{ $victim == $primary ? 'crashes' : 'standby_crashes' }++;
		$figures{torn_pages} += $torn->{torn};
		$figures{lost_pages} += $torn->{lost};
		$figures{unseen_pages} += $torn->{unseen};
		$written{ $index_files->{$_} } += $torn->{written}{$_} foreach grep { $index_files->{$_} } keys %{ $torn->{written} };
		cmp_ok($torn->{torn}, '>', 10, "$name: pages are torn: $torn->{torn}, with a right checksum: $torn->{unseen}, old: $torn->{lost}");

		# PostgreSQL, with the same files
		if ($victim == $primary)
		{
			my $copy = PostgreSQL::Test::Cluster->new("stock_$number");
			PostgreSQL::Test::RecursiveCopy::copypath($victim->data_dir, $copy->data_dir);
			chmod 0700, $copy->data_dir;
			unlink $copy->data_dir . '/postmaster.pid';
			$copy->append_conf('postgresql.conf', 'port = ' . $copy->port . "\npolar_page_repair_policy = off\n");
			my $kind = !$copy->start(fail_ok => 1) ? 'stock_fails' : check_everything($copy, $round) ? 'stock_silently_wrong' : 'stock_sound';
			$figures{$kind}++;
			# A baseline that fails for another reason would prove nothing
			like(slurp_file($copy->logfile), qr/FATAL:  invalid page in block|PANIC: /, "$name: without repair a page stops it") if $kind eq 'stock_fails';
			$copy->stop('immediate') if $kind ne 'stock_fails';
			$copy->clean_node;
		}

		$victim->append_conf('postgresql.conf', "polar_page_repair_policy = $policy");
		my $offset = -s $victim->logfile;
		if (!$victim->start(fail_ok => 1))
		{
			$figures{unrepaired}++;
			fail("$name: it starts");
			diag(slurp_file($victim->logfile, $offset));
			last;
		}
		my $repaired = $victim->safe_psql('postgres', 'SELECT repaired + missing + vm_initialized + fsm_reset FROM polar_stat_page_repair');
		$figures{repaired} += $repaired;
		wait_for_replay($primary, $standby);
		my @faults = check_everything($victim, $round);
		$figures{wrong} += @faults;
		is("@faults", '', "$name: everything is right ($repaired pages repaired, $round->{acknowledged} commits confirmed)");
	}
}

is($figures{unrepaired} + $figures{wrong}, 0, 'nothing is unrepaired or wrong');
cmp_ok($written{$_}, '>', 0, "pages of its $_ indexes were written and not synced before the crashes: $written{$_}") foreach sort keys %written;
cmp_ok($figures{stock_fails} + $figures{stock_silently_wrong}, '>', 0,
	"PostgreSQL fails ($figures{stock_fails}), is silently wrong ($figures{stock_silently_wrong}) or is lucky ($figures{stock_sound})")
  if $crashes;

my $sum = q{SELECT md5(string_agg(aid || ':' || abalance, ',' ORDER BY aid)) FROM pgbench_accounts};
wait_for_replay($primary, $standby);
is($standby->safe_psql('postgres', $sum), $primary->safe_psql('postgres', $sum), 'primary and standby have the same contents');
$primary->stop;
$standby->stop;
foreach my $instance ($primary, $standby)
{
	command_ok([ 'pg_checksums', '--check', '-D', $instance->data_dir ], $instance->name . ': every page on disk verifies');
}
if ($ENV{FLOE_TORTURE_RESULT})
{
	open my $out, '>', $ENV{FLOE_TORTURE_RESULT} or die $!;
	print $out "$_ $figures{$_}\n" foreach sort keys %figures;
	close $out;
}
note("$_ $figures{$_}") foreach sort keys %figures;
done_testing();
