# The testkit's crash leaves no process behind, loses nothing committed, and nothing uncommitted survives it.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash crash_at_injection_point);
use Floe::Test::Standby qw(new_primary new_standby wait_for_replay);

my $primary = new_primary('primary');
$primary->safe_psql('postgres', 'CREATE EXTENSION injection_points; CREATE TABLE t AS SELECT 1 AS a');
my @pids = split /\n/, $primary->safe_psql('postgres', 'SELECT pid FROM pg_stat_activity');
my $postmaster = $primary->{_pid};
my $session = $primary->background_psql('postgres');
$session->query_safe('BEGIN; INSERT INTO t VALUES (2)');
crash($primary);
eval { $session->quit };
is_deeply([ grep { -e "/proc/$_" } $postmaster, @pids ], [], 'no process is left after a crash');
$primary->start;
is($primary->safe_psql('postgres', 'SELECT a FROM t'), '1', 'what was committed is there, what was not is gone');

my $standby = new_standby($primary, 'standby');
$primary->safe_psql('postgres', 'INSERT INTO t VALUES (3)');
wait_for_replay($primary, $standby);
is($standby->safe_psql('postgres', 'SELECT a FROM t ORDER BY a'), "1\n3", 'a standby has what wait_for_replay waited for');
$standby->stop;

crash_at_injection_point($primary, 'heap_update-before-pin', 'UPDATE t SET a = 4 WHERE a = 1');
$primary->start;
is($primary->safe_psql('postgres', 'SELECT a FROM t ORDER BY a'), "1\n3", 'a statement that was cut short at an injection point left nothing');
$primary->stop;
done_testing();
