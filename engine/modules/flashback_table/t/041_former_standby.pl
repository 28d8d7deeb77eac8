# A standby gives the rows of truncated and rewritten tables from the files that its replay has kept, and lists those and dropped
# ones; once it is promoted it gives dropped ones back.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback await_point checkpoint);

my $primary = new_flashback('primary', "polar_enable_fast_recovery_area = on\nshared_buffers = 4MB\n");
$primary->safe_psql('postgres', 'CREATE EXTENSION flashback_table');
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;
checkpoint($primary);
$primary->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
await_point($standby);

$primary->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, b text, c text);
	ALTER TABLE t ALTER c SET STORAGE EXTERNAL;
	INSERT INTO t SELECT g, md5(g::text), CASE WHEN g % 10 = 0 THEN repeat(md5(g::text), 100) END FROM generate_series(1, 3000) g;
	CREATE TABLE gone AS SELECT * FROM t;
	CREATE TABLE parts (id int, k int) PARTITION BY LIST (k);
	CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
	CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
	INSERT INTO parts SELECT g, 1 + g % 2 FROM generate_series(1, 1000) g});
my $digest = q{SELECT count(*) || ' ' || md5(string_agg(t::text, chr(10) ORDER BY id))};
my @known;
for my $change ('SELECT 1', 'DELETE FROM t WHERE id % 3 = 0', 'VACUUM FULL t', 'UPDATE t SET c = repeat(b, 200) WHERE id % 7 = 0', 'CHECKPOINT', 'CLUSTER t USING t_pkey', 'TRUNCATE t', 'INSERT INTO t SELECT g FROM generate_series(1, 50) g', 'ALTER TABLE t ADD d float DEFAULT random()')
{
	$primary->safe_psql('postgres', $change);
	push @known, [ $primary->safe_psql('postgres', 'SELECT clock_timestamp()'), $primary->safe_psql('postgres', q{SELECT count(*) || ' ' || md5(string_agg(ROW(id, b, c)::text, chr(10) ORDER BY id)) FROM t}), $change ];
}
my $parts = $known[0][0];
my $is = $primary->safe_psql('postgres', "$digest FROM gone t");
$primary->safe_psql('postgres', 'DROP TABLE gone; DROP TABLE parts_1; TRUNCATE parts_2');
$primary->wait_for_catchup($standby);

my $list = q{SELECT string_agg(relation_name || ' ' || kind || ' ' || lsn || ' ' || at || coalesce(definition, ''), ', ' ORDER BY lsn, relation_name) FROM polar_flashback_dropped()};
my $listed = $primary->safe_psql('postgres', $list);
like($listed, qr/t rewritten.*t truncated.*gone dropped.*parts_1 dropped.*parts_2 truncated/s, 'the list of the primary');

sub check
{
	my ($when) = @_;
	is($standby->safe_psql('postgres', qq{SELECT count(*) || ' ' || md5(string_agg(ROW(id, b, c)::text, chr(10) ORDER BY id)) FROM polar_flashback_rows(NULL::t, '$_->[0]')}), $_->[1], "$when: after $_->[2]") for @known;
	is($standby->safe_psql('postgres', "SELECT count(*), sum(id) FROM polar_flashback_rows(NULL::parts, '$parts')"), '1000|500500', "$when: partitions");
	is($standby->safe_psql('postgres', $list), $listed, "$when: the same list");
	return;
}
check('at first');
$primary->safe_psql('postgres', 'CHECKPOINT; VACUUM FULL pg_class');
$primary->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
check('after a restartpoint and VACUUM FULL of pg_class');
crash($standby);
$standby->start;
check('after a crash');
my $err;
$standby->psql('postgres', 'FLASHBACK TABLE gone TO BEFORE DROP', stderr => \$err);
like($err, qr/cannot execute FLASHBACK TABLE during recovery|read-only transaction/, 'no table is made');

$primary->stop;
$standby->promote;
check('promoted');
$standby->safe_psql('postgres', 'FLASHBACK TABLE gone TO BEFORE DROP');
is($standby->safe_psql('postgres', "$digest FROM gone t"), $is, 'which gives a dropped table back');
$standby->stop;
done_testing();
