# full_page_writes = off is in force while the flashback log could give every torn page back, without any standby; when it loses its
# window images come back at once, unless a standby protects.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Repair qw(with_log);
use Floe::Test::Standby qw(new_primary new_standby);
use Floe::Test::Torn qw(remember_files tear_pages redo_pointer repair_source);
use Floe::Test::Wait qw(wait_until);

srand($ENV{FLOE_TEST_SEED} // 20261127);

my $node = new_primary('node', with_log() . q{
autovacuum = off
shared_buffers = 16MB
full_page_writes = off
checkpoint_timeout = 1h
max_wal_size = 1GB
wal_keep_size = 1GB
polar_page_repair_grace = 2s
polar_flashback_log_compression = off
polar_enable_fast_recovery_area = on
});
$node->safe_psql('postgres', q{
	CREATE EXTENSION page_repair; CREATE EXTENSION flashback_log; CREATE EXTENSION injection_points; CREATE EXTENSION pg_buffercache;
	CREATE ROLE page_repair LOGIN;
	GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair;
	CREATE TABLE t AS SELECT g AS a, 0 AS b, repeat('x', 500) AS c FROM generate_series(1, 5000) g});

my $status = 'SELECT state, images_in_force FROM polar_page_repair_status';
sub await_status
{
	my ($expected, $what) = @_;
	ok($node->poll_query_until('postgres', $status, $expected), $what)
	  or diag($node->safe_psql('postgres', 'SELECT * FROM polar_page_repair_status; SELECT * FROM polar_page_repair_sources'));
	return;
}

sub why_is
{
	my ($pattern, $what) = @_;
	like($node->safe_psql('postgres', 'SELECT why FROM polar_page_repair_status'), $pattern, $what);
	return;
}

# images(): how many full-page images a change writes after a checkpoint
sub images
{
	$node->safe_psql('postgres', 'CHECKPOINT');
	return $node->safe_psql('postgres', 'EXPLAIN (ANALYZE, WAL, COSTS off, TIMING off, SUMMARY off, BUFFERS off) UPDATE t SET b = b + 1') =~ /fpi=(\d+)/ ? $1 : 0;
}

sub attach { $node->safe_psql('postgres', "SELECT injection_points_attach('$_[0]', 'notice')"); return; }
sub detach { $node->safe_psql('postgres', "SELECT injection_points_detach('$_[0]')"); return; }
sub set { $node->safe_psql('postgres', "ALTER SYSTEM SET $_[0]"); $node->reload; return; }

# spoil(): records of the segment with the point of the last checkpoint are damaged, and its index is gone; the checkpoint that the
# log asks for, to begin another window, waits until release()
sub spoil
{
	$node->safe_psql('postgres', 'CHECKPOINT');
	my $log = $node->data_dir . '/polar_flog';
	my @before = sort grep { /^[0-9A-F]{16}$/ } slurp_dir($log);
	my $segment = $before[-1];
	$node->safe_psql('postgres', q{SELECT injection_points_attach('flashback-log-before-point', 'wait')});
	# Until that segment and another one are full
	wait_until(
		sub {
			$node->safe_psql('postgres', q{UPDATE t SET b = b + 1; SELECT pg_buffercache_evict_relation('t')});
			return grep({ /^[0-9A-F]{16}$/ && $_ gt $segment } slurp_dir($log)) > 0;
		},
		'the segment to be full');
	open my $out, '+<:raw', "$log/$segment" or die $!;
	foreach my $at (map { $_ * 100_000 } 1 .. 9)
	{
		sysseek $out, $at, 0;
		syswrite $out, 'XXXXXXXX';
	}
	close $out;
	unlink "$log/$segment.idx";
	return;
}

sub release
{
	ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'flashback-log-before-point'}), 'the log asks for a checkpoint');
	$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-log-before-point'); SELECT injection_points_wakeup('flashback-log-before-point')});
	return;
}

# No standby at all
await_status('protected|f', 'the flashback log alone protects');
why_is(qr/^flashback log$/, 'the status names it');
is($node->safe_psql('postgres', 'SELECT number, source, healthy, why FROM polar_page_repair_sources'), '0|flashback log|t|', 'it is shown as a source');
is(images(), 0, 'no images are written');
like(slurp_file($node->logfile), qr/full-page images are left out, because page repair source "flashback log" is healthy/, 'the log says so');

# A crash: images from the start until the log has been looked at; torn pages come back
my $before = remember_files($node);
$node->safe_psql('postgres', q{UPDATE t SET b = b + 1; SELECT pg_buffercache_evict_relation('t')});
my $truth = $node->safe_psql('postgres', 'SELECT count(*), sum(b) FROM t');
crash($node);
is((run_command([ 'pg_controldata', '-D', $node->data_dir ]))[0] =~ /Latest checkpoint's full_page_writes:\s+(\w+)/ ? $1 : '', 'off', 'the redo location has no images');
cmp_ok(tear_pages($node, $before, sector => 512)->{torn}, '>', 20, 'pages are torn');
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*), sum(b) FROM t'), $truth, 'all rows are there');
is($node->safe_psql('postgres', 'SELECT repaired > 20, log_pages = repaired FROM polar_stat_page_repair'), 't|t', 'by the log');
await_status('protected|f', 'and the log protects again');

# The window is lost: at once, whatever the grace is
set(q{polar_page_repair_grace = '10min'});
my $redo = redo_pointer($node);
my $offset = -s $node->logfile;
spoil();
$node->wait_for_log(qr/WARNING: .*full-page images are written again although "full_page_writes" is off\n.*DETAIL:  No page repair source is healthy: flashback log: /, $offset);
await_status('exposed|f', 'the window is lost: the status says that nothing protects');
why_is(qr/^flashback log: its window ended: a record of segment .* is damaged/, 'and why');
release();
await_status('full_page_writes|t', 'images are back at once, and protect');
isnt(redo_pointer($node), $redo, 'a checkpoint with them is complete');
why_is(qr/images end soon: flashback log/, 'which began another window');
cmp_ok(images(), '>', 20, 'images are written');
set(q{polar_page_repair_grace = '2s'});
await_status('protected|f', 'and end when the log has been healthy again');

# Recovery would ask nobody
set('polar_page_repair_policy = off');
await_status('full_page_writes|t', 'with the policy off images are back');
why_is(qr/^flashback log: polar_page_repair_policy is off$/, 'the status says why');
set('polar_page_repair_policy = checksum');
await_status('protected|f', 'until it is on');

# No room for another segment: nothing is lost, but nobody relies on it any longer
attach('flashback-log-disk-full');
ok($node->poll_query_until('postgres', q{SELECT state = 'protected' AND why ~ '^flashback log, but: could not reserve space' FROM polar_page_repair_status}),
	'without room the log protects what was written');
is($node->safe_psql('postgres', 'SELECT healthy, why ~ $$could not reserve space$$ FROM polar_page_repair_sources'), 'f|t', 'and is not healthy');
await_status('full_page_writes|t', 'after the grace period images are back');
why_is(qr/^flashback log: could not reserve space/, 'the status says why');
detach('flashback-log-disk-full');
await_status('protected|f', 'until there is room');

# It cannot be written: checkpoints fail, what was written stays protected
attach('flashback-log-append-fails');
$node->safe_psql('postgres', 'UPDATE t SET b = b + 1');
my ($out, $err);
isnt($node->psql('postgres', 'CHECKPOINT', stderr => \$err), 0, 'a checkpoint fails when the log cannot be written');
ok($node->poll_query_until('postgres', q{SELECT state = 'protected' AND why ~ '^flashback log, but: blocks could not be kept' FROM polar_page_repair_status}),
	'the log still has what is needed, and the status says that it cannot be written');
await_status('protected|t', 'after the grace period images are back, although no checkpoint with them can be complete');
detach('flashback-log-append-fails');
await_status('protected|f', 'until it can');

# A standby beside it
my $standby = new_standby($node, 'standby', "polar_enable_flashback_log = off\n");
my $name = 'source "' . $standby->host . ':' . $standby->port . '/postgres"';
set("polar_page_repair_sources = '" . repair_source($standby) . "'");
ok($node->poll_query_until('postgres', "SELECT state = 'protected' AND NOT images_in_force AND why = 'flashback log, $name' FROM polar_page_repair_status"),
	'both protect, and both are named') or diag($node->safe_psql('postgres', 'SELECT * FROM polar_page_repair_status'));
is($node->safe_psql('postgres', 'SELECT array_agg(number ORDER BY number) FROM polar_page_repair_sources WHERE healthy'), '{0,1}', 'and shown');

$offset = -s $node->logfile;
spoil();
$node->wait_for_log(qr/points of the flashback log are lost|the window of the flashback log ended/, $offset);
ok($node->poll_query_until('postgres', "SELECT state = 'protected' AND NOT images_in_force AND why = '$name' FROM polar_page_repair_status"),
	'without the log the standby protects') or diag($node->safe_psql('postgres', 'SELECT * FROM polar_page_repair_status'));
unlike(slurp_file($node->logfile, $offset), qr/full-page images are written again/, 'so that no images are needed');
release();
ok($node->poll_query_until('postgres', "SELECT why = 'flashback log, $name' FROM polar_page_repair_status"), 'a checkpoint begins another window');

$standby->stop('immediate');
ok($node->poll_query_until('postgres', q{SELECT NOT healthy FROM polar_page_repair_sources WHERE number = 1}), 'without the standby');
$node->safe_psql('postgres', 'UPDATE t SET b = b + 1; CHECKPOINT');
is($node->safe_psql('postgres', $status), 'protected|f', 'the log protects, and a checkpoint waits for nobody');
why_is(qr/^flashback log$/, 'the status names the log alone');
set(q{polar_page_repair_sources = ''});

# In async mode it is no source, and without any the setting has no effect
$node->append_conf('postgresql.conf', "polar_flashback_log_mode = async\n");
$node->restart;
await_status('full_page_writes|t', 'in async mode images are written');
why_is(qr/^polar_page_repair_sources is empty, polar_flashback_log_mode is async$/, 'the status says why');
like(slurp_file($node->logfile), qr/No page repair source is named in "polar_page_repair_sources", and the flashback log is not kept in sync mode/, 'so does the log');
cmp_ok(images(), '>', 20, 'images are written');
$node->stop;
done_testing();
