# On a standby policies and privileges hold as on the primary, and nothing makes a table there.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback await_point checkpoint);

my $primary = new_flashback('primary', "polar_enable_fast_recovery_area = on\n");
$primary->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE ROLE reader LOGIN;
	GRANT EXECUTE ON FUNCTION polar_flashback_visible_rows TO reader;
	CREATE TABLE t (id int, owner text);
	ALTER TABLE t ENABLE ROW LEVEL SECURITY;
	CREATE POLICY own ON t USING (owner = current_user);
	GRANT SELECT ON t TO reader;
	CREATE TABLE parted (id int) PARTITION BY LIST (id);
	CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
	INSERT INTO parted VALUES (1), (2);
	INSERT INTO t VALUES (1, 'reader'), (2, 'somebody')});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;
checkpoint($primary);
$primary->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
await_point($standby);

my $moment = $primary->safe_psql('postgres', 'SELECT clock_timestamp()');
$primary->safe_psql('postgres', 'DELETE FROM t; DELETE FROM parted');
$primary->wait_for_catchup($standby);

my @as_reader = (extra_params => [ '-U', 'reader' ]);
foreach my $node ($primary, $standby)
{
	my $name = $node->name;
	my $err;
	is($node->safe_psql('postgres', "SELECT * FROM polar_flashback_visible_rows(NULL::t, '$moment')", @as_reader), '1|reader', "$name: policies");
	$node->psql('postgres', "SELECT * FROM polar_flashback_rows(NULL::t, '$moment')", stderr => \$err, @as_reader);
	like($err, qr/ERROR:  must be owner of table t/, "$name: only the owner sees all");
	is($node->safe_psql('postgres', "SELECT count(*) FROM polar_flashback_rows(NULL::parted, '$moment', 'id > 1')"), '1', "$name: partitions");
}
foreach my $command ("FLASHBACK TABLE t TO TIMESTAMP '$moment'", "SELECT polar_flashback_table('t', '$moment')")
{
	my $err;
	$standby->psql('postgres', $command, stderr => \$err);
	like($err, qr/ERROR:  cannot execute (FLASHBACK TABLE|polar_flashback_table\(\)) in a read-only transaction/, "the standby refuses $command");
}
done_testing();
