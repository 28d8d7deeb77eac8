# A standby inserts no WAL and says so; once promoted it counts its own.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Standby qw(new_primary new_standby wait_for_replay);

my $primary = new_primary('primary', 'autovacuum = off');
$primary->safe_psql('postgres', 'CREATE EXTENSION monitor');
my $standby = new_standby($primary, 'standby', 'autovacuum = off');
$primary->safe_psql('postgres', 'CREATE TABLE t AS SELECT generate_series(1, 50000) AS a; CHECKPOINT');
wait_for_replay($primary, $standby);

my $counters = 'SELECT wal_records, wal_fpi, wal_bytes, wal_fpi_bytes FROM polar_stat_wal';
is($standby->safe_psql('postgres', $counters), '0|0|0|0', 'what a standby replays is not counted as inserted');
is($standby->safe_psql('postgres', 'SELECT stats_reset IS NOT NULL FROM polar_stat_wal'), 't', 'a standby knows since when');

$standby->safe_psql('postgres', 'CHECKPOINT');
is($standby->safe_psql('postgres', 'SELECT running, kind, reason, ended_at >= started_at FROM polar_stat_checkpoint'),
	'f|restartpoint|immediate wait|t', 'a standby shows its restartpoints');
is($standby->safe_psql('postgres', $counters), '0|0|0|0', 'a restartpoint inserts no WAL');

$standby->restart;
is($standby->safe_psql('postgres', $counters), '0|0|0|0', 'nor does a restart');

$standby->promote;
$standby->safe_psql('postgres', 'CHECKPOINT; UPDATE t SET a = a + 1; SELECT pg_stat_force_next_flush()');
my ($records, $fpi, $bytes, $fpi_bytes) = split /\|/, $standby->safe_psql('postgres', $counters);
ok($fpi > 0 && $fpi_bytes > 0 && $fpi_bytes < $bytes && $records >= $fpi, 'a promoted standby counts what it inserts')
  or diag("$records $fpi $bytes $fpi_bytes");
is($standby->safe_psql('postgres', q{
	SET stats_fetch_consistency = snapshot;
	SELECT p.wal_bytes = s.wal_bytes AND p.wal_fpi = s.wal_fpi FROM polar_stat_wal p, pg_stat_wal s}),
	't', 'as pg_stat_wal does');
$standby->stop;
$primary->stop;
done_testing();
