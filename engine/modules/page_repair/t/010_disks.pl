# Where pages lie: tablespaces, sectors that the disk refuses to read, maps that no position protects.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Disk qw(bad_sectors);
use Floe::Test::Repair qw(attempt liar new_repairable sound tear_standby);
use Floe::Test::Standby qw(new_primary new_standby wait_for_replay);
use Floe::Test::Torn qw(remember_files tear_pages repair_source);

srand($ENV{FLOE_TEST_SEED} // 10);

my $primary = new_repairable('primary', 'allow_in_place_tablespaces = on');
$primary->safe_psql('postgres', q{CREATE TABLESPACE elsewhere LOCATION ''});
$primary->safe_psql('postgres', q{
	CREATE TABLE far (a int PRIMARY KEY USING INDEX TABLESPACE elsewhere, b int) TABLESPACE elsewhere;
	INSERT INTO far SELECT g, 0 FROM generate_series(1, 20000) g;
	CREATE TABLE mapped AS SELECT g AS a, repeat('x', 100) AS b FROM generate_series(1, 20000) g;
	VACUUM});
my $standby = new_standby($primary, 'standby', 'shared_buffers = 32MB');
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'");
$primary->reload;
my $query = 'SELECT count(*), sum(a), sum(b) FROM ';

# Tablespaces
$primary->safe_psql('postgres', 'CHECKPOINT');
my $before = remember_files($primary);
$primary->safe_psql('postgres', 'UPDATE far SET b = b + 1; SELECT count(*) FROM pg_class, pg_attribute');
my $truth = $primary->safe_psql('postgres', $query . 'far');
wait_for_replay($primary, $standby);
crash($primary);
my $torn = tear_pages($primary, $before, sector => 512, only => qr/^pg_tblspc/);
cmp_ok($torn->{torn}, '>', 20, "pages in a tablespace are torn: $torn->{torn}");
$primary->start;
is($primary->safe_psql('postgres', $query . 'far'), $truth, 'a tablespace: all rows are there');
cmp_ok($primary->safe_psql('postgres', 'SELECT repaired FROM polar_stat_page_repair'), '>', 20, 'a tablespace: pages were taken; those that were new need no source');
is($primary->safe_psql('postgres', q{SELECT count(*) FROM verify_heapam('far')}), '0', 'a tablespace: the heap is sound');
is($primary->safe_psql('postgres', q{SELECT bt_index_parent_check('far_pkey', true, true)}), '', 'a tablespace: the index is sound');

# A block that the disk does not give is torn, not the end of recovery
SKIP:
{
	my $disk = bad_sectors() or skip 'no C compiler', 6;
	$primary->safe_psql('postgres', 'VACUUM t; CHECKPOINT');
	$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1; SELECT count(*) FROM pg_class, pg_attribute');
	$truth = $primary->safe_psql('postgres', $query . 't');
	my $path = $primary->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});
	wait_for_replay($primary, $standby);
	crash($primary);
	$disk->{spoil}->($path, 2, 3, 17);
	$disk->{spoil}->("${path}_fsm", 0, 2);
	$disk->{spoil}->("${path}_vm", 0);
	local $ENV{LD_PRELOAD} = $disk->{library};
	local $ENV{FLOE_BAD_SECTORS} = $disk->{directory};
	my ($started, $log) = attempt($primary);
	is($started, 1, 'unreadable blocks: recovery ends');
	like($log, qr/block 17 of relation "$path" cannot be read and is taken for torn\n.*DETAIL: .*Input\/output error/, 'unreadable blocks: the log tells');
	is($disk->{left}->(), 0, 'unreadable blocks: all were written again');
	is($primary->safe_psql('postgres', q{SELECT torn, repaired, fsm_reset, vm_initialized FROM polar_stat_page_repair}), '6|3|2|1', 'unreadable blocks: they are counted');
	is($primary->safe_psql('postgres', $query . 't'), $truth, 'unreadable blocks: all rows are there');
	is(sound($primary), '', 'unreadable blocks: everything is sound');
	$primary->stop;
}
$primary->start unless $primary->{_pid};

# A standby writes free space maps whose records lie after its minimum recovery point
$primary->safe_psql('postgres', 'CHECKPOINT');
wait_for_replay($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
my $fsm = $primary->safe_psql('postgres', q{SELECT pg_relation_filepath('mapped') || '_fsm'});
$primary->safe_psql('postgres', 'DELETE FROM mapped WHERE a % 3 = 0; VACUUM mapped');
wait_for_replay($primary, $standby);
crash($standby);
open my $file, '+<:raw', $standby->data_dir . "/$fsm" or die "could not open $fsm: $!";
foreach my $block (0, 1)
{
	seek($file, $block * 8192 + 4096, 0);
	print $file "\x55" x 512;
}
close $file;
$standby->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($primary) . "'");
$standby->start;
is($standby->safe_psql('postgres', 'SELECT fsm_reset FROM polar_stat_page_repair'), '2', 'free space maps of a standby are looked at, whatever its minimum recovery point');
wait_for_replay($primary, $standby);
$standby->stop;
command_ok([ 'pg_checksums', '--check', '-D', $standby->data_dir ], 'every page on its disk verifies');

# A visibility map page of zeroes, as a source has it that was extended and has crashed: replay would take it for missing
my $other = new_primary('other', 'fsync = off');
my $lie = liar($other, $primary->safe_psql('postgres', 'SELECT system_identifier FROM pg_control_system()'));
$standby->append_conf('postgresql.conf', 'shared_buffers = 1MB');
$standby->start;
$primary->safe_psql('postgres', 'VACUUM t');
tear_standby($primary, $standby, 'UPDATE t SET b = b + 1');
$standby->append_conf('postgresql.conf', "polar_page_repair_policy = always\npolar_page_repair_sources = '" . (repair_source($other) =~ s/user=\S+//r) . "'");
my $flushed = $primary->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
my $lent = "lend('" . $primary->connstr('postgres') =~ s/'/''/gr . " user=page_repair', \$1, \$2, \$3, \$4, \$5)";
$lie->(in_recovery => 'false', start_lsn => "'$flushed'", end_lsn => "'$flushed'", pages => qq{
	(SELECT array_agg(CASE WHEN \$4[i] = 2 THEN decode(repeat('00', 8192), 'hex') ELSE p END ORDER BY i) FROM unnest($lent) WITH ORDINALITY u(p, i))});
my ($started, $log) = attempt($standby);
is($started, 1, 'a visibility map page of zeroes: the standby starts');
wait_for_replay($primary, $standby);
is($standby->safe_psql('postgres', $query . 't'), $primary->safe_psql('postgres', $query . 't'), 'a visibility map page of zeroes: all rows are there');
is(sound($standby), '', 'a visibility map page of zeroes: everything is sound');

$_->stop('immediate') foreach $standby, $primary, $other;
done_testing();
