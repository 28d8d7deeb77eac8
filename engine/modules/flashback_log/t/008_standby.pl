# A standby has a log of its own: points at restartpoints, none before its files are consistent; what it kept counts after its
# restart and after its promotion.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback await_point checkpoint state continued in_background record_points check_points);
use Floe::Test::Standby qw(new_standby wait_for_replay);

my $primary = new_flashback('primary', "shared_buffers = 16MB\npolar_enable_fast_recovery_area = on\n");
$primary->safe_psql('postgres', q{
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE t (a int, b text) WITH (fillfactor = 50);
	INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 3000) g});
my $copies = record_points($primary);
my $standby = new_standby($primary, 'standby', "shared_buffers = 1MB\n");
my $turn = sub {
	$primary->safe_psql('postgres', 'UPDATE t SET b = b WHERE a % 2 = 0; VACUUM t; CHECKPOINT; UPDATE t SET b = b WHERE a % 5 = 0');
	wait_for_replay($primary, $standby);
	$standby->safe_psql('postgres', "SELECT flashback_oracle_record('$copies')") unless $_[0];
	return checkpoint($standby);
};

$turn->();
await_point($standby);
$turn->(1) foreach 1 .. 3;
my $state = state($standby);
cmp_ok(scalar(split /,/, $state->{points}), '>=', 3, 'restartpoints are points');
is_deeply([ check_points($standby, $copies, 2) ], [], 'every block of every point');

crash($standby);
$standby->start;
continued($standby, $state, 'the window continues after a crash of the standby');
$turn->();
$turn->(1);
is_deeply([ check_points($standby, $copies, 2) ], [], 'with every block');

# Truncation in replay
$primary->safe_psql('postgres', q{DELETE FROM t WHERE ctid > '(50,0)'});
$primary->safe_psql('postgres', 'CHECKPOINT');
wait_for_replay($primary, $standby);
checkpoint($standby);
my $path = $standby->data_dir . '/' . $standby->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});
my $size = -s $path;
$primary->safe_psql('postgres', 'VACUUM t');
wait_for_replay($primary, $standby);
cmp_ok(-s $path, '<', $size, 'replay cuts a file');
is_deeply([ check_points($standby, $copies, 2) ], [], 'and what it cut off is kept');

# Promoted while a restartpoint is about to take its point: what has been written by then is not newer than the point
$primary->safe_psql('postgres', 'UPDATE t SET b = b; CHECKPOINT');
wait_for_replay($primary, $standby);
$state = state($standby);
my $session = in_background($standby, 'flashback-log-before-point', 'CHECKPOINT');
$standby->promote;
$standby->safe_psql('postgres', q{UPDATE t SET b = b; SELECT pg_buffercache_evict_relation('t')});
my $written = $standby->safe_psql('postgres', q{SELECT pg_current_wal_insert_lsn()});
$standby->safe_psql('postgres', q{SELECT injection_points_detach('flashback-log-before-point'); SELECT injection_points_wakeup('flashback-log-before-point')});
$session->query_until(qr/completed/, '');
$session->quit;
my ($newest) = $state->{points} =~ /(\d+)$/;
is($standby->safe_psql('postgres', "SELECT lsn >= '$written' FROM polar_flashback_points WHERE number = $newest + 1"), 't',
	'a point during a promotion is not older than pages on disk');
$standby->safe_psql('postgres', 'UPDATE t SET b = b');
checkpoint($standby);
continued($standby, $state, 'the window continues over a promotion');
is_deeply([ check_points($standby, $copies, 2) ], [], 'with every block');
is($standby->safe_psql('postgres', 'SELECT array_agg(DISTINCT timeline ORDER BY timeline) FROM polar_flashback_points'), '{1,2}', 'points know their timeline');
$standby->stop;
$primary->stop;

done_testing();
