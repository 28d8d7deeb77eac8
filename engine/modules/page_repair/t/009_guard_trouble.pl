# The guard when things around it fail: sources that never answer, its own worker stopped or killed, a control file that cannot
# be read, a promotion, a setting that has no effect. Images are on whenever nobody knows better, and somebody says so.
use strict;
use warnings FATAL => 'all';
use IO::Socket::UNIX;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Names qw(slow_names);
use Floe::Test::Standby qw(new_primary new_standby wait_for_replay);
use Floe::Test::Torn qw(repair_source);
use Floe::Test::Wait qw(wait_until);

my $primary = new_primary('primary', q{
autovacuum = off
checkpoint_timeout = 1h
max_wal_size = 1GB
wal_keep_size = 1GB
full_page_writes = off
polar_page_repair_grace = 2s
restart_after_crash = on
});
like(slurp_file($primary->logfile), qr/LOG: .*full-page images are written although "full_page_writes" is off\n.*DETAIL: .*No page repair source is named/,
	'a setting that has no effect is mentioned');
$primary->safe_psql('postgres', 'SELECT pg_reload_conf(); CHECKPOINT; CHECKPOINT');
is(scalar(() = slurp_file($primary->logfile) =~ /full-page images are written although/g), 1, 'once');
$primary->safe_psql('postgres', q{
	CREATE EXTENSION page_repair;
	CREATE ROLE page_repair LOGIN;
	GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair;
	CREATE TABLE t AS SELECT g AS a, 0 AS b FROM generate_series(1, 5000) g});
my $standby = new_standby($primary, 'standby', q{
polar_page_repair_sources = ''
bgwriter_lru_maxpages = 0
shared_buffers = 32MB
});
my $sibling = new_standby($primary, 'sibling', q{polar_page_repair_sources = ''});

my $status = 'SELECT state, images_in_force FROM polar_page_repair_status';
sub await_status
{
	my ($cluster, $expected, $what) = @_;
	ok($cluster->poll_query_until('postgres', $status, $expected), $what)
	  or diag($cluster->safe_psql('postgres', 'SELECT * FROM polar_page_repair_status'));
	return;
}

sub images
{
	my ($sql) = @_;
	$primary->safe_psql('postgres', 'CHECKPOINT');
	return $primary->safe_psql('postgres', "EXPLAIN (ANALYZE, WAL, COSTS off, TIMING off, SUMMARY off, BUFFERS off) $sql") =~ /fpi=(\d+)/ ? $1 : 0;
}

sub guard_of
{
	my ($cluster) = @_;
	return $cluster->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'page repair guard'});
}

sub set
{
	my ($cluster, $name, $value) = @_;
	$cluster->safe_psql('postgres', "ALTER SYSTEM SET $name = '$value'");
	$cluster->reload;
	return;
}

# Sources that accept a connection and never answer stand before a good one
my $holes = PostgreSQL::Test::Utils::tempdir_short();
my @holes = map { IO::Socket::UNIX->new(Local => "$holes/.s.PGSQL.$_", Listen => 100) or die "could not listen: $!" } 1, 2;
set($primary, 'polar_page_repair_sources', join(';', map({ "host=$holes port=$_ dbname=postgres" } 1, 2), repair_source($standby)));
await_status($primary, 'protected|f', 'two sources that never answer do not hide a good one');
my $offset = -s $primary->logfile;
foreach my $round (1 .. 8)
{
	$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1; CHECKPOINT');
}
pass('each checkpoint is completed');
ok($primary->poll_query_until('postgres', q{SELECT array_agg(healthy ORDER BY number) FROM polar_page_repair_sources}, '{f,f,t}'), 'they are shown as not healthy');
like($primary->safe_psql('postgres', 'SELECT why FROM polar_page_repair_sources WHERE number = 1'), qr/timed out/, 'with the reason');
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1; CHECKPOINT') foreach 1 .. 4;
unlike(slurp_file($primary->logfile, $offset), qr/full-page images are written again|checkpoint is not completed/, 'no checkpoint waited for them in vain');
set($primary, 'polar_page_repair_sources', repair_source($standby));
await_status($primary, 'protected|f', 'the good one alone protects');

# A worker that gives no sign of life
my $worker = guard_of($primary);
kill 'STOP', $worker;
ok($primary->poll_query_until('postgres', q{SELECT state, why FROM polar_page_repair_status}, 'exposed|the page repair guard does not answer'),
	'a guard that does not answer protects nobody');
$offset = -s $primary->logfile;
cmp_ok(images('UPDATE t SET b = b + 1'), '>', 20, 'a checkpoint brings images back without it');
like(slurp_file($primary->logfile, $offset), qr/full-page images are written again.*\n.*the page repair guard does not answer/, 'the log says why');
is($primary->safe_psql('postgres', $status), 'full_page_writes|t', 'and they protect');
kill 'CONT', $worker;
await_status($primary, 'protected|f', 'the source protects again when the guard is back');

# A worker that dies, and again at once
foreach my $round (1 .. 3)
{
	$worker = guard_of($primary);
	$primary->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
	ok($primary->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'page repair guard' AND pid <> $worker"),
		"death $round: the guard comes back");
}
await_status($primary, 'protected|f', 'and watches');
$worker = guard_of($primary);
kill 'KILL', $worker;
wait_until(sub { my $pid = eval { guard_of($primary) }; $pid && $pid =~ /^\d+$/ && $pid ne $worker }, 'the instance to restart after a crash');
await_status($primary, 'protected|f', 'after a crash of all processes it watches again');
is(guard_of($primary) =~ tr/\n//, 0, 'one of it');

# Sources that come and go faster than a guard is started
foreach my $round (1, 2)
{
	set($primary, 'polar_page_repair_sources', '');
	ok($primary->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'page repair guard'}),
		"without sources the guard leaves ($round)");
	set($primary, 'polar_page_repair_sources', repair_source($standby));
	ok($primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'page repair guard'}),
		"with sources it is back ($round)");
}
foreach my $round (1 .. 10)
{
	$primary->safe_psql('postgres', "ALTER SYSTEM SET polar_page_repair_sources = '$_'; SELECT pg_reload_conf()") foreach '', repair_source($standby);
}
await_status($primary, 'protected|f', 'and watches, however fast that was');

# A checkpoint with images that fails for another reason is asked for again
$offset = -s $primary->logfile;
my $mappings = $primary->data_dir . '/pg_logical/mappings';
rename $mappings, "$mappings.away" or die "could not rename: $!";
$standby->stop;
wait_until(sub { (() = slurp_file($primary->logfile, $offset) =~ /ERROR: .*could not open directory "pg_logical\/mappings"/g) >= 2 }, 'checkpoints to fail');
is($primary->safe_psql('postgres', $status), 'exposed|t', 'checkpoints with images fail');
rename "$mappings.away", $mappings or die "could not rename: $!";
await_status($primary, 'full_page_writes|t', 'when one can succeed it does, and nobody had to ask');
$standby->start;
await_status($primary, 'protected|f', 'and the source protects again');

# On a standby, whose WAL has no images any more
$primary->safe_psql('postgres', 'CHECKPOINT');
wait_for_replay($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
set($standby, 'polar_page_repair_sources', repair_source($primary));
await_status($standby, 'protected|', 'a standby is protected by its primary');
foreach my $round (1 .. 2)
{
	$worker = guard_of($standby);
	$standby->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
	ok($standby->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'page repair guard' AND pid <> $worker"),
		"death $round on a standby: the guard comes back");
}
await_status($standby, 'protected|', 'and watches there, too');

# A control file that cannot be read: images, no error in the checkpointer's loop
set($primary, 'full_page_writes', 'on');
await_status($primary, 'full_page_writes|t', 'images by a person');
$offset = -s $primary->logfile;
my $control = $primary->data_dir . '/global/pg_control';
rename $control, "$control.away" or die "could not rename: $!";
set($primary, 'full_page_writes', 'off');
ok($primary->poll_query_until('postgres', 'SHOW full_page_writes', 'off'), 'the setting is off');
is($primary->safe_psql('postgres', 'SELECT images_in_force FROM polar_page_repair_status'), 't', "unreadable pg_control: images go on ($_)") foreach 1 .. 10;
rename "$control.away", $control or die "could not rename: $!";
await_status($primary, 'protected|f', 'readable again: the source protects');
unlike(slurp_file($primary->logfile, $offset), qr/ERROR/, 'no error was raised');

# The lookup of a name that never ends holds the worker, and nobody asks for a checkpoint: the alarm does
SKIP:
{
	my $names = slow_names() or skip 'no C compiler', 4;
	local $ENV{LD_PRELOAD} = $names->{library};
	local $ENV{FLOE_SLOW_NAMES} = $names->{mark};
	set($primary, 'polar_page_repair_sources', repair_source($standby) . ';host=localhost port=1 dbname=postgres');
	$primary->restart;
	await_status($primary, 'protected|f', 'a name that leads nowhere does no harm');
	$offset = -s $primary->logfile;
	$names->{block}->();
	await_status($primary, 'full_page_writes|t', 'a lookup that does not end: images come back by themselves');
	like(slurp_file($primary->logfile, $offset), qr/full-page images are written again.*\n.*the page repair guard does not answer/, 'a lookup that does not end: the log says why');
	$names->{release}->();
	await_status($primary, 'protected|f', 'when it has ended the source protects again');
}

# Promotion: a sibling that still follows the old primary is no source, even before the first checkpoint is complete
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1');
wait_for_replay($primary, $_) foreach $standby, $sibling;
set($standby, 'polar_page_repair_sources', repair_source($sibling));
my $checkpointer = $standby->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
kill 'STOP', $checkpointer;
$standby->promote;
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1 WHERE a < 1000');
wait_for_replay($primary, $sibling);
is($standby->safe_psql('postgres', 'SELECT timeline_id FROM pg_control_checkpoint()'), '1', 'promoted, but no checkpoint is complete');
ok($standby->poll_query_until('postgres', q{SELECT why FROM polar_page_repair_status}, 'no checkpoint on this timeline is complete'),
	'nothing is concluded from the old timeline');
is($standby->safe_psql('postgres', q{SELECT healthy, s.flush_lsn > c.redo_lsn FROM polar_page_repair_sources s, pg_control_checkpoint() c}), 't|t',
	'although the sibling streams that one');
is($standby->safe_psql('postgres', $status), 'exposed|t', 'and images are written');
kill 'CONT', $checkpointer;
await_status($standby, 'full_page_writes|t', 'the first checkpoint with images protects');
like($standby->safe_psql('postgres', 'SELECT why FROM polar_page_repair_sources'), qr/it is on timeline 1, not 2/, 'the sibling is on another timeline');
$_->stop('immediate') foreach $standby, $sibling, $primary;

# Without checksums torn pages cannot be found; that is not kept a secret
my $blind = PostgreSQL::Test::Cluster->new('blind');
$blind->init(force_initdb => 1, extra => ['--no-data-checksums']);
$blind->append_conf('postgresql.conf', "full_page_writes = off\npolar_page_repair_guard = off");
$blind->start;
$blind->safe_psql('postgres', 'CHECKPOINT; CREATE TABLE t AS SELECT 1');
crash($blind);
$blind->start;
like(slurp_file($blind->logfile), qr/WARNING: .*torn pages cannot be found, because data checksums are off/, 'images off, no checksums: a warning');
$blind->append_conf('postgresql.conf', "polar_page_repair_guard = on\npolar_page_repair_sources = 'host=/nonexistent'");
$blind->restart;
$blind->safe_psql('postgres', 'CREATE TABLE u AS SELECT 1');
crash($blind);
$offset = -s $blind->logfile;
$blind->start;
like(slurp_file($blind->logfile, $offset), qr/WARNING: .*data checksums are off\n.*DETAIL: .*"polar_page_repair_sources" has no effect/, 'sources, no checksums: a warning');
$blind->stop;
done_testing();
