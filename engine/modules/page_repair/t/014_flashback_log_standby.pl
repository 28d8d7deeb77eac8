# A standby with a flashback log of its own repairs itself, also when its primary is gone, and after it was promoted; a primary and
# a standby that one power failure tore do not wait for each other.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(await_point);
use Floe::Test::Repair qw(new_repairable with_log sound tear_standby attempt start_only);
use Floe::Test::Standby qw(new_standby wait_for_replay);
use Floe::Test::Torn qw(remember_files tear_pages redo_pointer);
use Floe::Test::Wait qw(wait_until);

srand($ENV{FLOE_TEST_SEED} // 20261126);

my $primary = new_repairable('primary', with_log());
$primary->safe_psql('postgres', 'CREATE EXTENSION flashback_log');
my $standby = new_standby($primary, 'standby');
my $truth_query = 'SELECT count(*), sum(a), sum(b) FROM t';
my $stat = q{SELECT recovery, repaired > 20, log_pages = repaired, log_why IS NULL FROM polar_stat_page_repair};

# A standby takes its points at restartpoints
wait_for_replay($primary, $standby);
$primary->safe_psql('postgres', 'CHECKPOINT');
wait_for_replay($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
await_point($standby);

sub is_as_primary
{
	my ($name) = @_;
	wait_for_replay($primary, $standby);
	is($standby->safe_psql('postgres', $truth_query), $primary->safe_psql('postgres', $truth_query), "$name: all rows are there");
	is(sound($standby), '', "$name: heap and index are sound");
	return;
}

foreach my $policy ('checksum', 'always')
{
	my $torn = tear_standby($primary, $standby);
	cmp_ok($torn->{torn}, '>', 20, "$policy: pages are torn: $torn->{torn}");
	$standby->append_conf('postgresql.conf', "polar_page_repair_policy = $policy\n");
	my ($started, $log) = attempt($standby);
	is($started, 1, "$policy: it starts without any source") or die $log;
	is($standby->safe_psql('postgres', $stat), 'standby|t|t|t', "$policy: its log gave the pages")
	  or diag($standby->safe_psql('postgres', '\x on \\\\ SELECT * FROM polar_stat_page_repair'));
	is_as_primary($policy);
	ok($standby->poll_query_until('postgres', q{SELECT state = 'protected' AND why = 'flashback log' FROM polar_page_repair_status}), "$policy: and protects it again")
	  or diag($standby->safe_psql('postgres', 'SELECT * FROM polar_page_repair_status'));
}
$standby->append_conf('postgresql.conf', "polar_page_repair_policy = checksum\n");

# Truncated and dropped in WAL that is to be replayed
{
	$primary->safe_psql('postgres', q{CREATE TABLE cut AS SELECT g AS a, repeat('y', 200) AS b FROM generate_series(1, 5000) g});
	my $torn = tear_standby($primary, $standby, q{UPDATE t SET b = b + 1; UPDATE cut SET b = 'z'; DELETE FROM cut WHERE a > 100; VACUUM cut;
		INSERT INTO cut SELECT g, repeat('w', 200) FROM generate_series(101, 5000) g; DROP TABLE IF EXISTS gone});
	cmp_ok($torn->{torn}, '>', 20, "truncation: pages are torn: $torn->{torn}");
	$standby->start;
	is_as_primary('truncation');
	is($standby->safe_psql('postgres', q{SELECT count(*) FROM cut}), '5000', 'truncation: the right rows are there');
	is($standby->safe_psql('postgres', q{SELECT * FROM verify_heapam('cut')}), '', 'truncation: the heap is sound');
}

# Interrupted, then again
{
	my $torn = tear_standby($primary, $standby);
	my $offset = start_only($standby);
	wait_until(sub { (() = slurp_file($standby->logfile, $offset) =~ /repaired block/g) > 5 }, 'some pages to be repaired');
	$standby->_update_pid(1);
	crash($standby);
	$standby->start;
	is_as_primary('interrupted');
	is($standby->safe_psql('postgres', 'SELECT log_pages = repaired, log_why IS NULL FROM polar_stat_page_repair'), 't|t', 'interrupted: its log was enough');
}

# Who shall stay behind gets no pages of now, but may have those of its own log
{
	my $torn = tear_standby($primary, $standby);
	$standby->append_conf('postgresql.conf', "recovery_min_apply_delay = 1ms\n");
	my ($started, $log) = attempt($standby);
	is($started, 1, 'delayed: it starts') or die $log;
	is($standby->safe_psql('postgres', $stat), 'standby|t|t|t', 'delayed: its log gave the pages');
	$standby->append_conf('postgresql.conf', "recovery_min_apply_delay = 0\n");
	$standby->reload;
	is_as_primary('delayed');
}

# One power failure for both
{
	wait_for_replay($primary, $standby);
	$primary->safe_psql('postgres', 'CHECKPOINT');
	wait_for_replay($primary, $standby);
	$standby->safe_psql('postgres', 'CHECKPOINT');
	my ($one, $other) = (remember_files($primary), remember_files($standby));
	$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1; VACUUM t; UPDATE t SET b = b + 1 WHERE a % 5 = 0');
	my $truth = $primary->safe_psql('postgres', $truth_query);
	wait_for_replay($primary, $standby);
	crash($primary);
	crash($standby);
	cmp_ok(tear_pages($primary, $one, sector => 512)->{torn}, '>', 20, 'one power failure: pages of the primary are torn');
	cmp_ok(tear_pages($standby, $other, sector => 512)->{torn}, '>', 20, 'one power failure: pages of the standby are torn');
	$standby->start;
	is($standby->safe_psql('postgres', $truth_query), $truth, 'one power failure: the standby is right without its primary');
	$primary->start;
	is($primary->safe_psql('postgres', $truth_query), $truth, 'one power failure: so is the primary');
	is(sound($primary), '', 'one power failure: its heap and index are sound');
	is_as_primary('one power failure');
}

# Promoted, and crashed before a checkpoint on its own timeline
{
	wait_for_replay($primary, $standby);
	$primary->safe_psql('postgres', 'CHECKPOINT');
	wait_for_replay($primary, $standby);
	$standby->safe_psql('postgres', 'CHECKPOINT');
	my $before = remember_files($standby);
	$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1 WHERE a % 2 = 0');
	wait_for_replay($primary, $standby);
	$primary->stop;
	$standby->safe_psql('postgres', 'SELECT pg_promote()');
	$standby->safe_psql('postgres', 'UPDATE t SET b = b + 1 WHERE a % 3 = 0');
	my $truth = $standby->safe_psql('postgres', $truth_query);
	crash($standby);
	my $redo = redo_pointer($standby);
	SKIP:
	{
		skip 'the checkpoint after the promotion was faster', 1 if $redo ne $before->{redo};
		cmp_ok(tear_pages($standby, $before, sector => 512)->{torn}, '>', 20, 'promoted: pages are torn');
	}
	$standby->start;
	is($standby->safe_psql('postgres', $truth_query), $truth, 'promoted: all rows are there');
	is(sound($standby), '', 'promoted: heap and index are sound');
}
$standby->stop;
command_ok([ 'pg_checksums', '--check', '-D', $_->data_dir ], $_->name . ': every page on disk verifies') foreach $primary, $standby;
done_testing();
