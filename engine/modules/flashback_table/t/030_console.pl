# Comparing and merging: on a standby, beside others, cancelled, and with an extension that was made earlier.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback await_point checkpoint);
use Floe::Test::Wait qw(wait_until);

my $primary = new_flashback('primary', "polar_enable_fast_recovery_area = on\n");
$primary->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table VERSION '1.0';
	ALTER EXTENSION flashback_table UPDATE;
	CREATE TABLE t (id int PRIMARY KEY, v text);
	ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
	INSERT INTO t SELECT g, CASE WHEN g % 100 = 0 THEN repeat(md5(g::text), 100) ELSE md5(g::text) END FROM generate_series(1, 20000) g;
	CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
	CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
	CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (20);
	INSERT INTO parted SELECT generate_series(0, 19)});
is($primary->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'flashback_table'}), '1.3', 'an extension that was made earlier is updated');
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;
checkpoint($primary);
$primary->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
await_point($standby);

my $moment = $primary->safe_psql('postgres', 'SELECT clock_timestamp()');
$primary->safe_psql('postgres', q{
	DELETE FROM t WHERE id <= 30;
	UPDATE t SET v = v || '.' WHERE id % 500 = 0;
	INSERT INTO t VALUES (20001, 'new');
	DELETE FROM parted WHERE id IN (5, 15)});
my $result = $primary->safe_psql('postgres', "SELECT result FROM polar_flashback_table('t', '$moment')");
$primary->wait_for_catchup($standby);

# The same on both, without a write on the standby
my $counts = "columns|\nthen|20000\nnow|19971\nsame|19930\nadded|1\nremoved|30\nchanged|40";
for my $node ($primary, $standby)
{
	my $name = $node->name;
	is($node->safe_psql('postgres', "SELECT kind, rows FROM polar_flashback_compare('t', '$moment', samples => 0)"), $counts, "$name: compared with a moment");
	is($node->safe_psql('postgres', "SELECT kind, rows FROM polar_flashback_compare('t', result => '$result', samples => 0)"), $counts, "$name: and with a result");
	is($node->safe_psql('postgres', "SELECT key FROM polar_flashback_compare('parted', '$moment') WHERE kind = 'removed' AND rows IS NULL ORDER BY key"), "{15}\n{5}", "$name: partitions");
	is($node->safe_psql('postgres', 'SELECT result_name, relation_name FROM polar_flashback_results()'), "$result|t", "$name: results");
}
my ($out, $err);
for my $dry ('false', 'true')
{
	$standby->psql('postgres', "SELECT polar_flashback_merge('$result', 't', true, true, true, dry_run => $dry)", stderr => \$err);
	like($err, qr/cannot execute polar_flashback_merge\(\) in a read-only transaction/, "nothing is merged on a standby, dry_run $dry");
}

# Cancelled in the middle, with sorts that are in files
for my $statement ("SELECT polar_flashback_compare('t', '$moment')", "SELECT polar_flashback_compare('t', result => '$result')",
	"SELECT polar_flashback_merge('$result', 't', true, true, true)")
{
	$primary->psql('postgres', "SET maintenance_work_mem = '64kB'; SET statement_timeout = 5; $statement", stderr => \$err);
	like($err, qr/canceling statement due to statement timeout/, "cancelled: $statement");
}
my @files = -d $primary->data_dir . '/base/pgsql_tmp' ? slurp_dir($primary->data_dir . '/base/pgsql_tmp') : ();
is(scalar(grep { !/^\./ } @files), 0, 'no temporary files are left');

# A merge waits for those who write, and they for it
my $writer = $primary->background_psql('postgres');
$writer->query_safe(q{BEGIN; INSERT INTO t VALUES (1, 'first')});
my $merger = $primary->background_psql('postgres');
$merger->query_until(qr/begun/, "BEGIN;\n\\echo begun\nSELECT inserted, restored, deleted, conflicts FROM polar_flashback_merge('$result', 't', true, true, true);\n");
wait_until(sub { $primary->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND NOT granted AND mode = 'ShareRowExclusiveLock'}) }, 'the merge to wait');
$writer->query_safe('COMMIT');
is($merger->query_safe('SELECT 1'), "29|41|1|0\n1", 'what was committed before it is compared');
$writer->query_until(qr/begun/, "\\echo begun\nINSERT INTO t VALUES (20002, 'last');\n");
wait_until(sub { $primary->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND NOT granted}) }, 'the writer to wait');
$merger->query_safe('COMMIT');
$writer->query_safe('SELECT 1');
is($primary->safe_psql('postgres', "SELECT kind, rows FROM polar_flashback_compare('t', result => '$result', samples => 0) WHERE kind IN ('same', 'added', 'changed')"),
	"same|20000\nadded|1\nchanged|0", 'and nothing comes between');

# Who holds a result is not waited for
$merger->query_safe("BEGIN; LOCK TABLE $result");
is($primary->safe_psql('postgres', "SELECT result_name, size_bytes IS NULL FROM polar_flashback_results()"), "$result|t", 'a result that is locked has no size');
$merger->query_safe('ROLLBACK');
$merger->quit;
$writer->quit;
$standby->stop;
$primary->stop;
done_testing();
