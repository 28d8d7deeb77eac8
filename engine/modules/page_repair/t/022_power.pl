# Power failures by the rules of fsync, with the guard on: relations, the end of WAL, commit status and multixacts lose or tear, by
# sectors of 512 bytes, what was not synced, while the guard is steady and while it changes its mind. Every start succeeds, what
# was confirmed is there, and heaps and indexes are sound.
# FLOE_TORTURE_CRASHES says how many (default 3, with FLOE_TEST_LONG=1 it is 10); FLOE_TEST_RESULT names a file for the figures.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Figures qw(write_figures);
use Floe::Test::Power qw(unsynced);
use Floe::Test::Standby qw(new_primary new_standby wait_for_replay);
use Floe::Test::Torn qw(repair_source);
use Floe::Test::Torture qw(load_settings pool_for prepare_load run_until_crash started add_written runs_were_written written_figures check_everything);
use Time::HiRes qw(time);

my $crashes = $ENV{FLOE_TORTURE_CRASHES} // ($ENV{FLOE_TEST_LONG} ? 10 : 3);
my $seed = $ENV{FLOE_TEST_SEED} || time;
srand($seed);
note("FLOE_TEST_SEED=$seed");

my $power = unsynced() or plan skip_all => 'no C compiler';
my $primary = new_primary('primary', load_settings() . q{
fsync = on
polar_page_repair_grace = 2s
});
# The library comes after initdb, which syncs nothing in tests
local $ENV{LD_PRELOAD} = $power->{library};
local $ENV{FLOE_UNSYNCED} = $power->{directory};
$primary->restart;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION page_repair; CREATE EXTENSION amcheck;
	CREATE ROLE page_repair LOGIN; GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair});
my $standby = new_standby($primary, 'standby');
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'");
$standby->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($primary) . "'");
$_->reload foreach $primary, $standby;
prepare_load($primary);

my %figures = map { $_ => 0 } qw(crashes standby_crashes torn_pages relation_pages wal_pages status_pages repaired unrepaired stuck wrong images_returned);
my %runs;

sub await_images
{
	my ($wanted) = @_;
	$primary->poll_query_until('postgres', "SELECT images_in_force = $wanted AND state <> 'exposed' FROM polar_page_repair_status") or die "images_in_force does not become $wanted";
	return;
}

# fail_power(cluster): what its power failure has taken
sub fail_power
{
	my ($cluster) = @_;
	my $lost = $power->{fail}->($cluster);
	$figures{torn_pages} += $lost->{torn};
	$figures{"${_}_pages"} += $lost->{$_} foreach qw(relation wal status);
	note($cluster->name . ": pages lost or torn: $lost->{relation} ($lost->{torn} mixed), of WAL $lost->{wal}, of status $lost->{status}");
	return;
}

# What happens under load before the crash; the longest time until that
my $background;
my %events = (
	steady => [ 2, sub { } ],
	'source lost' => [ 6, sub { $standby->stop('immediate') } ],
	'source back' => [ 8, sub { $standby->start } ],
	checkpoint => [ 2, sub { $background = $primary->background_psql('postgres', on_error_stop => 0); $background->query_until(qr/go/, "\\echo go\nCHECKPOINT;\n") } ],
	'source crashes' => [ 3, sub { crash($standby); fail_power($standby); $figures{standby_crashes}++; started($standby, 'source crashes', \%figures) or die 'the standby does not start' } ]);
my @order = ('source lost', 'source back', 'source crashes', 'checkpoint', 'steady');

# A few more where chance had it that what was torn stood in images, and nothing was left to repair
for (my $number = 1; $number <= $crashes || ($figures{repaired} == 0 && $number <= $crashes + 7); $number++)
{
	prepare_load($primary) if $number % 20 == 0;
	my $event = $order[ ($number - 1) % @order ];
	my $policy = $number % 4 == 2 ? 'always' : 'checksum';
	my $name = "crash $number, $event, $policy";
	if ($event eq 'source back')
	{
		$standby->stop('immediate');
		await_images('true');
	}
	else
	{
		await_images('false');
	}
	my ($seconds, $act) = @{ $events{$event} };
	my $moment;
	my $acted = 0;
	my $round = run_until_crash($primary, crash => $primary, seconds => $seconds, forget => 1, checkpoint => $number % 2, each => sub {
		# From when the load has begun to write in runs
		$moment //= time + 1 + rand(1);
		return if $acted || time < $moment;
		$acted = 1;
		$act->();
	});
	eval { $background->quit } if $background;
	undef $background;
	add_written(\%runs, $round);
	$figures{crashes}++;
	fail_power($primary);
	my ($control) = run_command([ 'pg_controldata', '-D', $primary->data_dir ]);
	note("$name: " . ($control =~ /^(Latest checkpoint's full_page_writes:.*)$/m)[0]);

	if (!$standby->{_pid}) { started($standby, $name, \%figures) or last }
	$primary->append_conf('postgresql.conf', "polar_page_repair_policy = $policy\n" . pool_for($number + 1));
	started($primary, $name, \%figures) or last;
	my $repaired = $primary->safe_psql('postgres', 'SELECT coalesce(sum(repaired + missing + vm_initialized + fsm_reset), 0) FROM polar_stat_page_repair');
	$figures{repaired} += $repaired;
	wait_for_replay($primary, $standby);
	my @faults = check_everything($primary, $round);
	$figures{wrong} += @faults;
	is("@faults", '', "$name: everything is right ($repaired pages repaired, $round->{acknowledged} commits confirmed)");
	# restartpoints that only their timeout brings are so rare here that each crash of the standby replays everything from its birth
	$standby->safe_psql('postgres', 'CHECKPOINT') if $number % 4 == 0;
}
my $log = slurp_file($primary->logfile);
$figures{images_returned} = () = $log =~ /full-page images are written again/g;

is($figures{unrepaired} + $figures{stuck} + $figures{wrong}, 0, 'nothing is unrepaired, stuck or wrong');
runs_were_written(\%runs);
cmp_ok($figures{$_}, '>', 0, "$_: $figures{$_}") foreach qw(torn_pages relation_pages wal_pages repaired);
if (!$figures{unrepaired} && !$figures{stuck})
{
	my $sum = q{SELECT md5(string_agg(aid || ':' || abalance, ',' ORDER BY aid)) FROM pgbench_accounts};
	wait_for_replay($primary, $standby);
	is($standby->safe_psql('postgres', $sum), $primary->safe_psql('postgres', $sum), 'primary and standby have the same contents');
	$_->stop foreach $standby, $primary;
}
write_figures(%figures, written_figures(\%runs));
done_testing();
