# What goes wrong costs whom it concerns: a cancel hits nobody else, a timeout is the session's that set it, sessions can be drained,
# the end of the dispatcher is no crash, clients that come and go leave nothing behind, and a limit of open files is a limit of clients.
use strict;
use warnings FATAL => 'all';
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session);
use Floe::Test::Wait qw(wait_until);

my $node = new_shared('shared', q{
polar_ss_dispatcher_count = 1
polar_ss_backend_max_count = 3
polar_ss_debug_force_migrate = on
polar_ss_worker_cache_size = 256kB
max_connections = 40
});
my $port = port($node);
my $long = $ENV{FLOE_TEST_LONG};
my $administrator = 'E FATAL: terminating connection due to administrator command';

sub connected { return Floe::Test::Protocol->to_port($port, @_); }
sub dispatcher { my ($column) = @_; return $node->safe_psql('postgres', "SELECT $column FROM polar_stat_dispatcher"); }
sub sessions { my ($count) = @_; return $node->poll_query_until('postgres', "SELECT count(*) = $count FROM polar_stat_session") || fail("there are not $count sessions"); }

sub state_is
{
	my ($client, $state) = @_;
	return wait_until(sub { return session($node, $client, 'state') eq $state; }, "the session to be $state");
}

sub reload
{
	my ($name, $value) = @_;
	$node->append_conf('postgresql.conf', "$name = '$value'");
	$node->reload;
	return $node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'") || die "$name is not $value";
}

# cancels by the hundred, some of which come too late: they hit whom they are meant for, or nobody
my @target = map { connected() } 1 .. 4;
my @bystander = map { connected() } 1 .. 6;
my %of = map { fileno $_->socket => $_ } @target, @bystander;
my %is_target = map { fileno $_->socket => 1 } @target;
my ($sent, $answers, $cancelled, $wrong) = (0, 0, 0, 0);
my @under_way;
sub say_something
{
	my ($file) = @_;
	return $of{$file}->query($is_target{$file} ? 'SELECT pg_sleep(0.003)' : 'SELECT 7 FROM pg_sleep(0.002)');
}
say_something($_) foreach keys %of;
while ($sent < ($long ? 20_000 : 300))
{
	my $client = $target[ int rand @target ];
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp') or die $!;
	syswrite $socket, pack('N N N a*', 12 + length $client->key, 80877102, $client->pid, $client->key);
	$sent++;

	# a server that has answered a request closes the connection
	push @under_way, $socket;
	if (@under_way > 8) { sysread shift @under_way, my $end, 1; }
	my $ready = '';
	vec($ready, $_, 1) = 1 foreach keys %of;
	select $ready, undef, undef, 0.001;
	foreach my $file (grep { vec $ready, $_, 1 } keys %of)
	{
		my @messages = $of{$file}->until_ready;
		my $was_cancelled = grep { $_ eq 'E ERROR: canceling statement due to user request' } @messages;
		$answers++;
		if ($is_target{$file}) { $cancelled += $was_cancelled; }
		elsif (join(' ', @messages) ne 'T D 7 C SELECT 1 Z I') { $wrong++; diag("a bystander: @messages"); }
		say_something($file);
	}
}
sysread $_, my $end, 1 foreach @under_way;
foreach my $file (keys %of)
{
	my @messages = $of{$file}->until_ready;
	$wrong++ if !$is_target{$file} && join(' ', @messages) ne 'T D 7 C SELECT 1 Z I';
}
is($wrong, 0, "of $sent cancels none hit a wrong session, in $answers answers");
cmp_ok($cancelled, '>', 0, "$cancelled hit a command of their own session");
cmp_ok(dispatcher('parks'), '>', $answers / 2, 'and the sessions moved all the time');
is(join(' ', map { ask($_, 'SELECT 1') } @target), '1 1 1 1', 'none is left over for the next command');

# timeouts are the session's that has set them, wherever it is
my ($hasty, $patient) = @bystander;
ask($hasty, q{SET statement_timeout = '100ms'});
ask($hasty, 'SELECT 1') foreach 1 .. 3;
is(ask($_, 'SELECT 1 FROM pg_sleep(0.2)'), '1', 'the timeout of another session ends no statement') foreach $patient, @bystander[ 2 .. 4 ];
is(ask($hasty, 'SELECT pg_sleep(100)'), 'ERROR: canceling statement due to statement timeout', 'its own ends its');
ask($hasty, q{RESET statement_timeout; SET lock_timeout = '100ms'});
ask($patient, 'BEGIN; SELECT pg_advisory_xact_lock(1)');
is(ask($hasty, 'SELECT pg_advisory_xact_lock(1)'), 'ERROR: canceling statement due to lock timeout', 'so does lock_timeout');
ask($hasty, q{RESET lock_timeout; SET transaction_timeout = '300ms'});
$hasty->query('BEGIN; SELECT pg_sleep(100)');
is((grep { $_ eq 'E FATAL: terminating connection due to transaction timeout' } $hasty->until_closed), 1, 'transaction_timeout ends its session');
$hasty = $bystander[2];
ask($hasty, q{SET idle_in_transaction_session_timeout = '100ms'; SELECT 1});
ask($hasty, 'BEGIN');
is(join(' ', $hasty->until_closed), 'E FATAL: terminating connection due to idle-in-transaction timeout', 'and idle_in_transaction_session_timeout');
is(ask($patient, 'SELECT 1'), '1', 'others stay in their transactions');
ask($patient, 'COMMIT');
is(join(' ', map { ask($_, 'SHOW transaction_timeout; SHOW idle_in_transaction_session_timeout') } @bystander[ 3 .. 5 ]), join(' ', ("0\n0") x 3), 'and have timeouts of their own');
close $_->socket foreach @target, @bystander;
sessions(0);

# one worker that serves many sessions
my @guest = map { connected() } 1 .. 12;
sub move_about { foreach my $round (1 .. $_[0]) { ask($_, "PREPARE p$round AS SELECT 1; EXECUTE p$round; DEALLOCATE p$round") foreach @guest; } return; }
sub memory_of_workers { return ask($guest[0], 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts'); }
reload('polar_ss_backend_max_count', 1);
wait_until(sub { ask($_, 'SELECT 1') foreach @guest; return dispatcher('n_backends') <= 1; }, 'one worker to be left');
move_about(4);
my $memory = memory_of_workers();
move_about($long ? 500 : 12);
cmp_ok(memory_of_workers(), '<=', $memory + 300_000, "a worker that has served many has no more than $memory bytes and a little");
reload('polar_ss_backend_max_count', 3);

# draining: who is idle ends at once, who is in a transaction when it has ended
my ($status, $out, $error) = $node->psql('postgres', 'CREATE ROLE anybody; SET ROLE anybody; SELECT polar_ss_drain()');
like($error, qr/permission denied for function polar_ss_drain/, 'not everybody may drain the pool');
my ($parked, $inside, @rest) = @guest;
ask($inside, 'BEGIN; CREATE TABLE done (a int)');
ask($parked, 'SELECT 1');
state_is($parked, 'parked');
reload('polar_ss_debug_force_migrate', 'off');
my $bound = connected();
ask($bound, 'SELECT 1');
state_is($bound, 'bound');
reload('polar_enable_shared_server', 'off');
is($node->safe_psql('postgres', 'SELECT polar_ss_drain()'), '13', 'how many sessions there are');
foreach ([ $parked, 'parked' ], [ $bound, 'idle' ])
{
	my ($client, $what) = @$_;
	is(join(' ', $client->until_closed) . ' ' . $client->sqlstate, "$administrator 57P01", "a session that is $what ends");
}
is((grep { join(' ', $_->until_closed) eq $administrator } @rest), 10, 'and so do all others');
is(ask($inside, 'INSERT INTO done VALUES (1)'), '', 'one in a transaction goes on');
$inside->query('COMMIT');
is(join(' ', grep { !/^Z/ } $inside->until_closed), "C COMMIT $administrator", 'and ends when it has committed');
is($node->safe_psql('postgres', 'SELECT count(*) FROM done'), '1', 'nothing is lost');
$node->poll_query_until('postgres', 'SELECT n_backends = 0 AND n_pools = 0 FROM polar_stat_dispatcher') or fail('workers stay');
is(ask(connected(), q{SELECT count(*) FROM polar_stat_session WHERE state <> 'login'}), '0', 'the next session is native, and no worker is left');
reload('polar_enable_shared_server', 'on');

# the dispatcher ends without a crash
reload('polar_ss_debug_force_migrate', 'on');
my $native = Floe::Test::Protocol->new($node);
$inside = connected();
$parked = connected();
ask($_, 'SELECT 1') foreach $inside, $parked;
ask($inside, 'BEGIN; INSERT INTO done VALUES (2)');
state_is($parked, 'parked');
my $ended = dispatcher('pid');
kill 'TERM', $ended;
is(join(' ', $parked->until_closed) . ' ' . $parked->sqlstate, "$administrator 57P01", 'a parked session ends');
is(ask($inside, 'SELECT count(*) FROM done'), '2', 'one in a transaction goes on');
$inside->query('COMMIT');
is(join(' ', grep { !/^Z/ } $inside->until_closed), 'C COMMIT E FATAL: terminating connection because the dispatcher has ended', 'and ends when it has committed');
is($inside->sqlstate, '57P01', 'with the same code');
is(ask($native, 'SELECT 1'), '1', 'a native session does not notice');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM polar_stat_dispatcher WHERE pid <> $ended") or fail('no other dispatcher');
my $next = connected();
is(ask($next, 'SELECT count(*) FROM done'), '2', 'another dispatcher serves');
is($node->safe_psql('postgres', 'SELECT session_memory = (SELECT sum(memory) FROM polar_stat_session) FROM polar_stat_dispatcher'), 't', 'and counts its own sessions only');

# what is counted
ask($next, 'SELECT 1') foreach 1 .. 5;
my $pools = 'SELECT sum(transactions) FROM polar_stat_worker_pool';
my $transactions = $node->safe_psql('postgres', $pools);
cmp_ok($transactions, '>=', 5, 'a pool counts transactions');
my $stays = connected();
close $next->socket;
sessions(1);
wait_until(sub { return $node->safe_psql('postgres', $pools) >= $transactions; }, 'the pool to count those of sessions that have ended');
$node->poll_query_until('postgres', q{
	SELECT n_native >= 2 AND n_native + n_backends = (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
	FROM polar_stat_dispatcher}) or fail('not every backend is a native one or a worker');
pass('native sessions are counted');
close $stays->socket;
close $native->socket;

# a library that keeps what it has of a session, and a limit of open files: 200 of them
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements, tablefunc, dblink'\nmax_connections = 20\nmax_files_per_process = 64");
system_or_bail('prlimit', '--pid', $$, '--nofile=200:200');
$node->start;
$node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM polar_stat_dispatcher') or die 'no dispatcher';
my @crowd = (connected());
ask($crowd[0], 'SELECT 1');
wait_until(sub { return session($node, $crowd[0], 'pinned_by') eq 'library tablefunc'; }, 'the library to pin');
pass('a library that nobody knows pins every session, one of PostgreSQL that keeps nothing does not');
ok($node->log_contains('sessions of "polar_ss_port" stay with their backends because of library "tablefunc"'), 'and the log says so');
reload('polar_ss_safe_modules', 'tablefunc');
ask($crowd[0], 'SELECT 1');
wait_until(sub { return session($node, $crowd[0], 'pinned_by') eq 'library dblink'; }, 'the next library to pin');
pass('so does one that keeps connections');
reload('polar_ss_safe_modules', q{tablefunc, dblink});
ask($crowd[0], 'SELECT 1');
state_is($crowd[0], 'parked');
pass('unless it is called safe');
my $logged = slurp_file($node->logfile);
my ($usable) = $logged =~ /the limit of open files allows (\d+) sessions, not "polar_ss_max_sessions"/;
ok($usable && $usable < 150, 'the log names how many sessions the limit of open files allows');
while (@crowd < $usable)
{
	push @crowd, connected();
	ask($crowd[-1], 'SELECT 1');
}
my $refused = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp') or die $!;
my $answer = '';
while (sysread $refused, my $piece, 4096) { $answer .= $piece; }
like($answer, qr/SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0/, 'who comes then is refused');
is(join(' ', map { ask($_, 'SELECT 1') } @crowd), join(' ', (1) x $usable), 'and all others are served');
is($node->safe_psql('postgres', 'SELECT 1'), '1', 'so is the other port');
$node->stop;
is($node->log_contains('TRAP|PANIC|session image differs'), '', 'nothing went wrong that nobody saw');
append_to_file($ENV{FLOE_TEST_RESULT}, "cancels $sent\nwrong_cancels $wrong\n") if $ENV{FLOE_TEST_RESULT};
done_testing();
