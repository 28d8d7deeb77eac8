# full_page_writes = off is in force only while a source could give every torn page back: images come back by themselves,
# no checkpoint moves the redo pointer to where no source has been, and a person can override it.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Standby qw(new_primary new_standby wait_for_replay);
use Floe::Test::Torn qw(redo_pointer repair_source);
use Floe::Test::Wait qw(wait_until);

my $primary = new_primary('primary', q{
autovacuum = off
checkpoint_timeout = 1h
max_wal_size = 1GB
wal_keep_size = 1GB
polar_page_repair_grace = 2s
});
$primary->safe_psql('postgres', q{
	CREATE EXTENSION page_repair;
	CREATE ROLE page_repair LOGIN;
	GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair;
	CREATE TABLE t AS SELECT g AS a, 0 AS b FROM generate_series(1, 5000) g});

my $status = 'SELECT state, images_in_force FROM polar_page_repair_status';
sub await_status
{
	my ($expected, $what) = @_;
	ok($primary->poll_query_until('postgres', $status, $expected), $what)
	  or diag($primary->safe_psql('postgres', 'SELECT * FROM polar_page_repair_status'));
}

# images(sql): how many full-page images the statement writes after a checkpoint
sub images
{
	my ($sql) = @_;
	$primary->safe_psql('postgres', 'CHECKPOINT');
	return $primary->safe_psql('postgres', "EXPLAIN (ANALYZE, WAL, COSTS off, TIMING off, SUMMARY off, BUFFERS off) $sql") =~ /fpi=(\d+)/ ? $1 : 0;
}

is($primary->safe_psql('postgres', $status), 'full_page_writes|t', 'by default full-page writes protect');
cmp_ok(images('UPDATE t SET b = b + 1'), '>', 20, 'and there are images');

# Without a source the setting has no effect
$primary->append_conf('postgresql.conf', 'full_page_writes = off');
$primary->reload;
ok($primary->poll_query_until('postgres', 'SHOW full_page_writes', 'off'), 'the setting is off');
cmp_ok(images('UPDATE t SET b = b + 1'), '>', 20, 'without a source images are written all the same');
is($primary->safe_psql('postgres', 'SELECT state, images_in_force, why FROM polar_page_repair_status'),
	'full_page_writes|t|polar_page_repair_sources is empty', 'and the status says why');

# With one it does
my $standby = new_standby($primary, 'standby', q{full_page_writes = on});
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'");
$primary->reload;
await_status('protected|f', 'with a healthy source it has');
is($primary->safe_psql('postgres', q{SELECT why FROM polar_page_repair_status}), 'source "' . $standby->host . ':' . $standby->port . '/postgres"',
	'the status names the source');
is(images('UPDATE t SET b = b + 1'), 0, 'and no images are written');
is($primary->safe_psql('postgres', 'SHOW full_page_writes'), 'off', 'the setting is what a person set');
is($primary->safe_psql('postgres', q{SELECT healthy, why IS NULL, flush_lsn <= pg_current_wal_lsn() FROM polar_page_repair_sources}), 't|t|t',
	'the source is shown as healthy');

# A person's word
$primary->safe_psql('postgres', q{ALTER SYSTEM SET polar_page_repair_guard = off; SELECT pg_reload_conf()});
await_status('overridden|f', 'a human can override the guard');
$primary->safe_psql('postgres', q{ALTER SYSTEM RESET polar_page_repair_guard; SELECT pg_reload_conf()});
await_status('protected|f', 'and undo that');

# The source stops flushing: the redo pointer stays where it has been
my $redo = redo_pointer($primary);
my $offset = -s $primary->logfile;
$standby->stop('immediate');
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1');
my ($out, $err);
$primary->psql('postgres', 'CHECKPOINT', stderr => \$err);
like($err, qr/checkpoint request failed/, 'a checkpoint that no source has reached does not complete');
like(slurp_file($primary->logfile, $offset), qr/checkpoint is not completed, because no page repair source has reached its redo point/,
	'and the log says why');
like(slurp_file($primary->logfile, $offset), qr/WARNING: .*full-page images are written again/, 'images come back');
await_status('full_page_writes|t', 'a checkpoint with images follows by itself, and protects');
isnt(redo_pointer($primary), $redo, 'that one has moved the redo pointer');
cmp_ok(images('UPDATE t SET b = b + 1'), '>', 20, 'images are written');
is(scalar(() = slurp_file($primary->logfile, $offset) =~ /WARNING: .*full-page images are written again/g), 1, 'one message for one change');

# It comes back, for longer than the grace period
$standby->start;
$offset = -s $primary->logfile;
await_status('protected|f', 'images end when the source has been healthy again');
$primary->wait_for_log(qr/full-page images are left out, because page repair source/, $offset);

# A person's word counts for a checkpoint that waits already
$primary->safe_psql('postgres', q{ALTER SYSTEM SET polar_page_repair_grace = '10min'; SELECT pg_reload_conf()});
$standby->stop('immediate');
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1');
my $waiting = $primary->background_psql('postgres');
$waiting->query_until(qr/started/, "\\echo started\nCHECKPOINT;\n\\echo completed\n");
ok($primary->poll_query_until('postgres', q{SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE backend_type = 'checkpointer'}),
	'a checkpoint waits for a source');
$primary->safe_psql('postgres', q{ALTER SYSTEM SET polar_page_repair_guard = off; SELECT pg_reload_conf()});
$waiting->query_until(qr/completed/, '');
pass('and is completed when the guard is overridden');
$waiting->quit;
$standby->start;
$primary->safe_psql('postgres', q{ALTER SYSTEM RESET polar_page_repair_guard; ALTER SYSTEM RESET polar_page_repair_grace; SELECT pg_reload_conf()});
await_status('protected|f', 'and the source protects again');

# A source that is alive and streams, but lags, when a checkpoint without images is complete and it has been healthy for longer
# than the grace period: images come, and stay until it has caught up
ok($primary->poll_query_until('postgres', q{SELECT state = 'protected' AND NOT images_in_force AND clock_timestamp() - since > '3s' FROM polar_page_repair_status}),
	'a source has protected for longer than the grace period');
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1; CHECKPOINT');
await_status('protected|f', 'a checkpoint without images is complete');
my $receiver = $standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
kill 'STOP', $receiver;
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1');
my $checkpointer = $primary->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
$offset = -s $primary->logfile;
$primary->psql('postgres', 'CHECKPOINT', stderr => \$err);
# It rests for a second after an error, or for longer on a busy machine
kill 'STOP', $checkpointer;
like($err, qr/checkpoint request failed/, 'a checkpoint that a lagging source has not reached does not complete');
my $checked = $primary->safe_psql('postgres', 'SELECT checked_at FROM polar_page_repair_sources');
ok($primary->poll_query_until('postgres', "SELECT healthy AND checked_at > '$checked'::timestamptz + '1s' FROM polar_page_repair_sources"),
	'the source is seen healthy before images are back');
unlike(slurp_file($primary->logfile, $offset), qr/full-page images are left out/, 'that does not call them off');
kill 'CONT', $checkpointer;
await_status('full_page_writes|t', 'the next one, with images, does');
kill 'CONT', $receiver;
await_status('protected|f', 'when it has caught up it protects again');

# Gone without a checkpoint: exposed at once, images after the grace period
$standby->stop;
await_status('exposed|f', 'without a source it is exposed at once');
await_status('full_page_writes|t', 'and protected by images after the grace period');
$standby->start;
await_status('protected|f', 'and by the source again');

# A person turns images on in that time: they protect once a checkpoint with them is complete, which follows at once
$primary->safe_psql('postgres', q{ALTER SYSTEM SET polar_page_repair_grace = '10min'; SELECT pg_reload_conf()});
$standby->stop;
await_status('exposed|f', 'without a source it is exposed');
$redo = redo_pointer($primary);
$primary->safe_psql('postgres', q{UPDATE t SET b = b + 1; ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf()});
await_status('full_page_writes|t', 'with images that a person turns on it is not');
isnt(redo_pointer($primary), $redo, 'because a checkpoint with them is complete');
$standby->start;
$primary->safe_psql('postgres', q{ALTER SYSTEM RESET full_page_writes; ALTER SYSTEM RESET polar_page_repair_grace; SELECT pg_reload_conf()});
await_status('protected|f', 'and by the source again when both are back');

# A stopped standby that accepts connections but does not stream is no source
$standby->append_conf('postgresql.conf', "primary_conninfo = 'host=/nonexistent'");
$standby->reload;
await_status('exposed|f', 'a source that does not stream is none');
like($primary->safe_psql('postgres', 'SELECT why FROM polar_page_repair_status'), qr/does not stream/, 'the status says so');
await_status('full_page_writes|t', 'images come back');
$standby->append_conf('postgresql.conf', "primary_conninfo = '" . $primary->connstr =~ s/'/''/gr . " application_name=standby'");
$standby->reload;
await_status('protected|f', 'until it streams again');

# A policy under which recovery would look at nothing
$primary->safe_psql('postgres', q{ALTER SYSTEM SET polar_page_repair_policy = off; SELECT pg_reload_conf()});
await_status('exposed|f', 'a source that recovery would not ask protects nobody');
is($primary->safe_psql('postgres', 'SELECT why FROM polar_page_repair_status'), 'polar_page_repair_policy is off', 'the status says so');
await_status('full_page_writes|t', 'images come back');
$primary->safe_psql('postgres', q{ALTER SYSTEM RESET polar_page_repair_policy; SELECT pg_reload_conf()});
await_status('protected|f', 'until recovery would');

# A role that may not read pages
$primary->safe_psql('postgres', 'REVOKE EXECUTE ON FUNCTION polar_page_repair_read FROM page_repair');
await_status('full_page_writes|t', 'a role that may not call the function is no source');
$primary->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair');
await_status('protected|f', 'until it may');

# The worker dies: images until another has seen the source
my $worker = $primary->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'page repair guard'});
$primary->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
ok($primary->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'page repair guard' AND pid <> $worker"),
	'a guard that was terminated comes back');
await_status('protected|f', 'and watches again');

# At every start images are on until a source was seen
crash($primary);
$primary->start;
is((run_command([ 'pg_controldata', '-D', $primary->data_dir ]))[0] =~ /Latest checkpoint's full_page_writes:\s+(\w+)/ ? $1 : '', 'on',
	'after a crash images are in force from the first record');
await_status('protected|f', 'until the source has been seen');

# No sources any more
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = ''");
$primary->reload;
await_status('full_page_writes|t', 'without sources images are back');
ok($primary->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'page repair guard'"),
	'and the guard has left');
cmp_ok(images('UPDATE t SET b = b + 1'), '>', 20, 'images are written');

# The same without anybody who watches: the guard was off, and is on again
$primary->safe_psql('postgres', q{ALTER SYSTEM SET polar_page_repair_guard = off; SELECT pg_reload_conf()});
await_status('overridden|f', 'without the guard there are no images');
$redo = redo_pointer($primary);
$primary->safe_psql('postgres', q{UPDATE t SET b = b + 1; ALTER SYSTEM RESET polar_page_repair_guard; SELECT pg_reload_conf()});
await_status('full_page_writes|t', 'with the guard images are back and protect');
isnt(redo_pointer($primary), $redo, 'because a checkpoint with them is complete');

# Promotion: the new primary writes images until it has seen a source of its own
$standby->promote;
is($standby->safe_psql('postgres', 'SELECT images_in_force FROM polar_page_repair_status'), 't', 'a promoted standby writes images');
$primary->stop;
$standby->stop;
done_testing();
