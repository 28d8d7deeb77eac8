# More clients than files and workers, more pools than workers, clients that go at a bad moment: each costs who caused it, and the
# others go on.
use strict;
use warnings FATAL => 'all';
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Socket qw(SOL_SOCKET SO_LINGER IPPROTO_TCP TCP_NODELAY MSG_OOB);
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session settle);
use Floe::Test::Wait qw(wait_until);

my $node = new_shared('shared', q{
polar_ss_backend_max_count = 2
polar_ss_reserved_workers = 0
polar_ss_stall_limit = 1h
max_files_per_process = 64
polar_ss_dispatcher_count = 1
});
my $port = port($node);
$node->safe_psql('postgres', "CREATE ROLE u$_ LOGIN") foreach 0 .. 4;
$node->safe_psql('postgres', q{
	CREATE ROLE large LOGIN;
	CREATE DATABASE utf8 ENCODING 'UTF8' TEMPLATE template0;
	DO $$BEGIN EXECUTE format('ALTER ROLE large SET app.large = %L', repeat('x', 60000)); END$$});

sub connected { return Floe::Test::Protocol->to_port($port, @_); }
sub reset_connection
{
	my ($client) = @_;
	setsockopt $client->socket, SOL_SOCKET, SO_LINGER, pack('l l', 1, 0);
	close $client->socket;
	return;
}

sub gone
{
	my ($client) = @_;
	return $node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM polar_stat_session WHERE session_pid = ' . $client->pid) || fail('its session stays');
}

# clients are not the files that a backend opens
my @client = map { connected() } 1 .. 30;
is(join(' ', map { ask($_, 'SELECT 1') } @client), join(' ', (1) x 30), 'more clients than files of a process');
settle($node, 2);

# who says nothing, or not all of who it is, keeps nobody from logging in
my @silent = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp') or die $! } 1 .. 100;
syswrite $_, pack 'N', 40 foreach @silent[ 50 .. 99 ];
$node->poll_query_until('postgres', 'SELECT n_login = 100 FROM polar_stat_dispatcher') or fail('they are not there');
push @client, connected();
is(ask($client[-1], 'SELECT 1'), '1', 'a hundred that say nothing stop no login');
close $_ foreach @silent;
$node->poll_query_until('postgres', 'SELECT n_login = 0 FROM polar_stat_dispatcher') or fail('they stay');
settle($node, 2);

# urgent data, which nobody has asked for, are passed over as natively: nobody waits for the bytes behind them for ever
sub say_urgently
{
	my ($socket, $before, $behind) = @_;
	setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1;
	send $socket, $before, 0;
	send $socket, 'x', MSG_OOB;
	send $socket, $behind, 0;
	return;
}
my $urgent = connected();
settle($node, 2);
say_urgently($urgent->socket, "Q\0", "\0\0\x0dSELECT 1\0");
is((join ' ', map { /^D (.*)/ } $urgent->until_ready), '1', 'urgent data inside a message');
close $urgent->socket;
$urgent = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp') or die $!;
my $startup = "user\0u0\0database\0postgres\0\0";
my $packet = pack 'N N a*', 8 + length $startup, 196608, $startup;
say_urgently($urgent, substr($packet, 0, 2), substr $packet, 2);
my $welcome = '';
while ($welcome !~ /Z\x00{3}\x05I\z/ && sysread $urgent, my $piece, 4096) { $welcome .= $piece; }
like($welcome, qr/^R/, 'and inside of who somebody is');
close $urgent;
settle($node, 2);

# what can be told to no other worker is native from the start, with a key that works
my $large = connected(user => 'large');
cmp_ok($large->pid, '<', 2**30, 'a login with settings that are too large is native');
close $large->socket;

# a client that is lost while it is answered
sub dispatcher_ticks
{
	my $pid = $node->safe_psql('postgres', 'SELECT pid FROM polar_stat_dispatcher');
	my @stat = split / /, (slurp_file("/proc/$pid/stat") =~ s/^.*\) //sr);
	return $stat[11] + $stat[12];
}
my $lost = connected();
my $ticks = dispatcher_ticks();
$lost->query('SELECT pg_sleep(1)');
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'}) or die 'it does not sleep';
reset_connection($lost);
gone($lost);
cmp_ok(dispatcher_ticks() - $ticks, '<', 25, 'a lost client keeps nobody busy');
is(join(' ', map { ask($_, 'SELECT 1') } @client), join(' ', (1) x 31), 'a lost client costs nobody else the connection');
settle($node, 2);

# a client that goes while it waits
ask($_, 'BEGIN') foreach @client[ 0, 1 ];
my $waiter = pop @client;
$waiter->query('SELECT 1');
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM polar_stat_session WHERE state = 'waiting'}) or die 'it does not wait';
my $spawns = $node->safe_psql('postgres', 'SELECT spawns FROM polar_stat_dispatcher');
reset_connection($waiter);
ask($_, 'ROLLBACK') foreach @client[ 0, 1 ];
gone($waiter);
is(join(' ', map { ask($_, 'SELECT 1') } @client), join(' ', (1) x 30), 'one that goes while it waits costs nobody');
is($node->safe_psql('postgres', 'SELECT spawns FROM polar_stat_dispatcher'), $spawns, 'not even a worker');

# a worker that ends before it has taken a session
my %bound = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', q{SELECT session_pid FROM polar_stat_session WHERE state = 'bound'});
close $_->socket foreach grep { $bound{ $_->pid } } @client;
@client = grep { !$bound{ $_->pid } } @client;
$node->poll_query_until('postgres', q{SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event = 'SharedServerWorkerFree'}) or die 'workers are not free';
my @free = split /\n/, $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE wait_event = 'SharedServerWorkerFree'});
kill 'STOP', @free;
$client[0]->query('SHOW polar_ss_port');
wait_until(sub { return session($node, $client[0], 'state') eq 'bound'; }, 'the session is given to a worker');
kill 'TERM', @free;
kill 'CONT', @free;
is(join(' ', map { /^[DE] (.*)/ } $client[0]->until_ready), $port, 'a session outlives a worker that has not taken it');

# an encoding loads a library that keeps nothing
my ($latin, @other) = map { connected(database => 'utf8') } 1 .. 3;
ask($latin, 'SET client_encoding = LATIN1; SELECT chr(228)');
wait_until(sub { ask($_, 'SELECT 1') foreach @other; return session($node, $latin, 'mode || $$ $$ || state') eq 'shared parked'; }, 'the session to be parked');
is(ask($latin, 'SELECT chr(228)'), "\xe4", 'a client encoding does not pin, and moves');

# more pools than workers
my @pool = map { connected(user => "u$_") } 0 .. 4;
for my $round (1 .. 3)
{
	$_->query('SELECT current_user') foreach @pool;
	is(join(' ', map { map { /^[DE] (.*)/ } $_->until_ready } @pool), join(' ', map { "u$_" } 0 .. 4), 'five pools on two workers');
}

# one that never rests does not keep the others out
my %quiet = map { fileno $_->socket => $_ } @pool;
$_->query('SELECT 1') foreach @client[ 0 .. 5 ];
$_->query('SELECT 2') foreach @pool;
while (%quiet)
{
	my $ready = '';
	vec($ready, $_, 1) = 1 foreach keys %quiet, map { fileno $_->socket } @client[ 0 .. 5 ];
	select($ready, undef, undef, $PostgreSQL::Test::Utils::timeout_default) or last;
	foreach my $file (grep { vec $ready, $_, 1 } keys %quiet) { (delete $quiet{$file})->until_ready; }
	foreach my $busy (grep { vec $ready, fileno $_->socket, 1 } @client[ 0 .. 5 ]) { $busy->until_ready; $busy->query('SELECT 1'); }
}
is(scalar keys %quiet, 0, 'a pool that is never idle lets the others in');
$_->until_ready foreach @client[ 0 .. 5 ];

# clients that wait for each other: a transaction on each worker, and one who must be served before they go on
$node->append_conf('postgresql.conf', 'polar_ss_stall_limit = 100ms');
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('polar_ss_stall_limit') = '100ms'});
ask($client[$_], 'BEGIN') foreach 0 .. 1;
is(ask($client[2], 'BEGIN'), '', 'when each worker waits for its client another is started');
is(ask($client[3], 'SELECT 1'), '1', 'and another');
ask($client[$_], 'ROLLBACK') foreach 0 .. 2;
settle($node, 2);

# nor does one work that waits for the workers of its parallel query, which wait for a lock
$node->safe_psql('postgres', q{
	CREATE FUNCTION lock_share(int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS
		'BEGIN PERFORM pg_advisory_xact_lock_shared($1); RETURN 1; END';
	CREATE TABLE many AS SELECT a FROM generate_series(1, 1000) a; ALTER TABLE many SET (parallel_workers = 2)});
my $holder = $node->background_psql('postgres');
$holder->query_safe('SELECT pg_advisory_lock(7)');
my @leader = @client[ 0 .. 1 ];
ask($_, q{SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SET parallel_leader_participation = off; SET debug_parallel_query = on}) foreach @leader;
$_->query('SELECT count(lock_share(7)) FROM many') foreach @leader;
$node->poll_query_until('postgres', q{SELECT count(DISTINCT leader_pid) = 2 AND bool_and(wait_event_type = 'Lock')
	FROM pg_stat_activity WHERE backend_type = 'parallel worker'}) or die 'no parallel query waits';
is(ask($client[2], 'SELECT 1'), '1', 'when each waits for parallel workers that wait for a lock another is started');
$holder->quit;
is(join(' ', map { map { /^[DE] (.*)/ } $_->until_ready } @leader), '1000 1000', 'and they go on');
$node->stop;

# workers that each wait for the postmaster, of whose pipe the kernel counts who watches it
$node = new_shared('many', q{
max_connections = 620
polar_ss_backend_max_count = 540
});
$port = port($node);
my @many = map { connected() } 1 .. 520;
ask($_, 'SELECT 1') foreach @many;
is($node->safe_psql('postgres', 'SELECT n_backends >= 520 FROM polar_stat_dispatcher'), 't', 'there are more than 500 workers');
is((grep { ask($_, 'SELECT 1') eq '1' } @many), 520, 'and all serve');
$node->stop;
done_testing();
