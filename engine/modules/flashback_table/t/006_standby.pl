# A standby gives the same rows, without making anything; what it cannot know yet it refuses.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback await_point checkpoint);

my $primary = new_flashback('primary', "polar_enable_fast_recovery_area = on\nshared_buffers = 2MB\n");
$primary->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE TABLE t (a int, b text, c text);
	ALTER TABLE t ALTER c SET STORAGE EXTERNAL;
	INSERT INTO t SELECT g, md5(g::text), CASE WHEN g % 10 = 0 THEN repeat(md5(g::text), 100) END FROM generate_series(1, 3000) g});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;
checkpoint($primary);
$primary->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
await_point($standby);

my $digest = q{SELECT count(*), md5(string_agg(t::text, chr(10) ORDER BY a))};
my @known;
for my $change ('SELECT 1', 'UPDATE t SET b = upper(b) WHERE a % 3 = 0', 'DELETE FROM t WHERE a % 4 = 0', 'VACUUM t',
	q{UPDATE t SET c = repeat(b, 200) WHERE a % 7 = 0}, 'CHECKPOINT', 'INSERT INTO t SELECT * FROM t', 'VACUUM (FREEZE) t')
{
	$primary->safe_psql('postgres', $change);
	my $is = $primary->safe_psql('postgres', "$digest FROM t");
	push @known, [ $primary->safe_psql('postgres', 'SELECT clock_timestamp()'), $is, $change ];
}
my ($out, $err);
$primary->wait_for_catchup($standby);
my $newest = $primary->safe_psql('postgres', 'SELECT clock_timestamp()');
$standby->psql('postgres', "SELECT polar_flashback_count('t', '$newest')", stderr => \$err);
like($err, qr/ERROR:  the standby has not replayed a transaction later than the target time\nHINT:  The newest moment/, 'a moment that may not be complete');
$primary->safe_psql('postgres', 'DELETE FROM t');
$primary->wait_for_catchup($standby);
my $restorable = $standby->safe_psql('postgres', 'SELECT newest_time FROM polar_stat_flashback_log');
is($standby->safe_psql('postgres', "SELECT possible FROM polar_flashback_check('t', '$restorable')"), 't', 'the newest moment that the log names');
is($standby->safe_psql('postgres', "SELECT possible FROM polar_flashback_check('t', timestamptz '$restorable' + interval '1 microsecond')"), 'f', 'and none after it');
for my $round ('at first', 'after a restartpoint')
{
	for my $known (@known)
	{
		my ($moment, $is, $change) = @$known;
		is($standby->safe_psql('postgres', "$digest FROM polar_flashback_rows(NULL::t, '$moment') t"), $is, "$round, after $change");
	}
	$primary->safe_psql('postgres', 'VACUUM t; CHECKPOINT');
	$primary->wait_for_catchup($standby);
	$standby->safe_psql('postgres', 'CHECKPOINT');
}
$standby->psql('postgres', "SELECT polar_flashback_table('t', '$known[0][0]')", stderr => \$err);
like($err, qr/cannot execute polar_flashback_table\(\) in a read-only transaction/, 'no table is made');

# A purge is of one member
$primary->safe_psql('postgres', 'CREATE TABLE p AS SELECT generate_series(1, 10) AS a; CHECKPOINT');
my $then = $primary->safe_psql('postgres', 'SELECT clock_timestamp()');
$primary->safe_psql('postgres', $_) foreach 'DELETE FROM p', 'VACUUM p';
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT polar_flashback_count('p', '$then')"), 10, 'another table');
is($standby->safe_psql('postgres', q{SELECT polar_flashback_purge('p')}), 0, 'is purged on the standby');
$standby->psql('postgres', "SELECT polar_flashback_count('p', '$then')", stderr => \$err);
like($err, qr/ERROR:  the past of table "p" was purged\nHINT:  It can be read as of /, 'and cannot be read there');
is($primary->safe_psql('postgres', "SELECT polar_flashback_count('p', '$then')"), 10, 'but on the primary it can');

$standby->promote;
is($standby->safe_psql('postgres', "$digest FROM polar_flashback_rows(NULL::t, '$_->[0]') t"), $_->[1], "promoted, after $_->[2]") for @known;
$standby->safe_psql('postgres', 'INSERT INTO t VALUES (1)');
is($standby->safe_psql('postgres', "SELECT polar_flashback_count('t', clock_timestamp() - interval '1 microsecond')"), 1, 'and moments after the promotion');
$standby->stop;
$primary->stop;
done_testing();
