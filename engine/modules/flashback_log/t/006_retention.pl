# The window is bounded by size and time, keeps the WAL and commit status that it needs, and in async mode gives way to a log
# that fails: visibly, and known to a restart.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback await_point checkpoint state continued);

my $node = new_flashback('node', q{
shared_buffers = 32MB
polar_flashback_log_keep_segments = 3
polar_flashback_log_compression = off
min_wal_size = 32MB
});
$node->safe_psql('postgres', q{CREATE TABLE t (a int, b text); ALTER TABLE t ALTER b SET STORAGE plain;
	INSERT INTO t SELECT g, repeat(md5(g::text), 30) FROM generate_series(1, 1000) g});
my $turn = sub { $node->safe_psql('postgres', 'UPDATE t SET a = a + 1; VACUUM t; CHECKPOINT') foreach 1 .. $_[0]; };

# By size, without a fast recovery area
my $first = checkpoint($node);
$turn->(8);
ok($node->poll_query_until('postgres', "SELECT min(number) > $first FROM polar_flashback_points"), 'old points go');
ok($node->poll_query_until('postgres', 'SELECT size_bytes <= 4 * 1024 * 1024 FROM polar_stat_flashback_log'), 'and their segments');
is($node->safe_psql('postgres', 'SELECT windows_ended FROM polar_stat_flashback_log'), 0, 'that is no loss');

# With one: by time, and WAL stays
$node->append_conf('postgresql.conf', 'polar_enable_fast_recovery_area = on');
$node->restart;
$first = checkpoint($node);
my $redo = $node->safe_psql('postgres', "SELECT pg_walfile_name(redo_lsn) FROM polar_flashback_points WHERE number = $first");
$node->safe_psql('postgres', 'SELECT pg_switch_wal(); UPDATE t SET a = a + 1') foreach 1 .. 4;
$turn->(8);
is($node->safe_psql('postgres', "SELECT count(*) FROM polar_flashback_points WHERE number = $first"), 1, 'points stay for the rotation time');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_ls_waldir() WHERE name = '$redo'"), 1, 'with their WAL');
$node->append_conf('postgresql.conf', 'max_slot_wal_keep_size = 16MB');
$node->reload;
$node->safe_psql('postgres', 'SELECT pg_switch_wal(); UPDATE t SET a = a + 1') foreach 1 .. 3;
$turn->(2);
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_ls_waldir() WHERE name = '$redo'"), 0, 'but not more than slots may keep');
ok($node->poll_query_until('postgres', "SELECT min(number) > $first FROM polar_flashback_points"), 'points without WAL go');
$node->append_conf('postgresql.conf', 'max_slot_wal_keep_size = -1');
$node->reload;

# Commit status
my $oldest = 'SELECT oldest_xid FROM polar_flashback_points ORDER BY number LIMIT 1';
my $limit = q{SELECT oldest_xid FROM pg_control_checkpoint()};
checkpoint($node);
my $needed = $node->safe_psql('postgres', $oldest);
$node->safe_psql('postgres', q{UPDATE pg_database SET datallowconn = true WHERE datname = 'template0'});
my $freeze = sub {
	foreach my $database ('template0', 'template1', 'postgres') { $node->safe_psql($database, 'SELECT pg_current_xact_id(); VACUUM FREEZE'); }
	checkpoint($node);
};
$freeze->();
is($node->safe_psql('postgres', $limit), $needed, 'commit status that the window needs stays');
$node->append_conf('postgresql.conf', 'polar_enable_fast_recovery_area = off');
$node->restart;
$freeze->();
isnt($node->safe_psql('postgres', $limit), $needed, 'without a fast recovery area it does not');

# By request
$node->append_conf('postgresql.conf', 'polar_enable_fast_recovery_area = on');
$node->restart;
$node->append_conf('postgresql.conf', 'polar_flashback_point_timeout = 1s');
$node->reload;
my $last = checkpoint($node);
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1');
ok($node->poll_query_until('postgres', "SELECT max(number) > $last FROM polar_flashback_points"), 'a point is requested in time');
$node->append_conf('postgresql.conf', 'polar_flashback_point_timeout = 300s');
$node->reload;

# The log cannot be written
my $state = state($node);
$node->safe_psql('postgres', q{UPDATE t SET a = a + 1; SELECT injection_points_attach('flashback-log-append-fails', 'notice')});
my $offset = -s $node->logfile;
$node->safe_psql('postgres', 'CHECKPOINT');
ok($node->log_contains(qr/WARNING:  the window of the flashback log ended/, $offset), 'a failure does not disturb a checkpoint');
my $now = state($node);
is($now->{ended}, $state->{ended} + 1, 'the window ended');
like($now->{why}, qr/could not write .*No space left/, 'with the reason');
is($now->{points}, $node->safe_psql('postgres', 'SELECT max(number) FROM polar_flashback_points'), 'that checkpoint begins another');
is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_log_verify() WHERE damage IS NOT NULL'), 0, 'to which the image that is missing is no damage');
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1; CREATE EXTENSION pg_buffercache');
$node->safe_psql('postgres', q{SELECT pg_buffercache_evict_relation('t')});
is($node->safe_psql('postgres', 'SELECT state FROM polar_stat_flashback_log'), 'waiting', 'without points until a checkpoint');
ok(!-e $node->data_dir . '/polar_flog/state', 'no state file says otherwise');
crash($node);
$node->start;
await_point($node);
unlike(',' . state($node)->{points} . ',', qr/,\Q$now->{points}\E,/, 'nor does a restart');
$state = state($node);
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1; CHECKPOINT; UPDATE t SET a = a + 1');
checkpoint($node);
continued($node, $state, 'then all is well again');

# An index that cannot be written is tried again later and later: each attempt reads a whole segment
$node->safe_psql('postgres', q{SELECT injection_points_attach('flashback-log-index-fails', 'notice')});
$offset = -s $node->logfile;
my $since = time;
$turn->(8);
ok($node->poll_query_until('postgres', q{SELECT count(*) >= 2 FROM polar_flashback_log_verify() WHERE NOT indexed}), 'segments without an index');
my $attempts = () = slurp_file($node->logfile, $offset) =~ /LOG:  could not write an index of the flashback log/g;
cmp_ok($attempts, '>=', 1, 'the log says so');
cmp_ok($attempts, '<=', 1 + (time - $since) / 5, 'not with every turn');
$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-log-index-fails')});

done_testing();
