# Few workers for many sessions: who holds a lock is never queued behind who waits for it, what pins a session says so and lets
# go, a wait ends with 53300, and a client, a worker or the dispatcher that dies costs what it must.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session settle);
use Floe::Test::Wait qw(wait_until wait_for_restart);

my $node = new_shared('shared', q{
polar_ss_backend_max_count = 2
polar_ss_reserved_workers = 0
polar_ss_stall_limit = 1h
restart_after_crash = on
});
my $port = port($node);
$node->safe_psql('postgres', 'CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0); CREATE TABLE copied (a int)');

sub connected { return Floe::Test::Protocol->to_port($port); }


# many sessions, two workers
my @client = map { connected() } 1 .. 12;
foreach my $n (0 .. $#client) { ask($client[$n], "SET app.n = '$n'"); }
is(join(' ', map { ask($_, 'SHOW app.n') } @client), join(' ', 0 .. $#client), 'twelve sessions');
settle($node, 2);
is(join(' ', map { ask($_, 'SHOW app.n') } reverse @client), join(' ', reverse 0 .. $#client), 'on two workers');

# the one who holds a lock goes on while others wait for it
my ($holder, @waiter) = @client[ 0 .. 5 ];
ask($holder, 'BEGIN; UPDATE t SET v = v + 1');
$_->query('UPDATE t SET v = v + 1') foreach @waiter;
$node->poll_query_until('postgres', 'SELECT count(*) = 4 FROM polar_stat_session WHERE state = $$waiting$$') or fail('nobody waits');
is(ask($holder, 'SELECT v FROM t'), '1', 'the holder of the lock is served');
is(ask($holder, 'COMMIT'), '', 'and commits');
is(join(' ', map { ($_->until_ready)[0] } @waiter), join(' ', ('C UPDATE 1') x 5), 'then the others');
is(ask($client[7], 'SELECT v FROM t'), '6', 'all of them');

# what has left is shown for nobody: while the others are served, and when a worker is free
my $shown = connected();
ask($shown, q{SET application_name = 'shown once'});
wait_until(sub { ask($_, 'SELECT 1') foreach @client[ 2 .. 6 ]; return session($node, $shown, 'state') eq 'parked'; }, 'it to be parked');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity
	WHERE pid <> pg_backend_pid() AND (application_name = 'shown once' OR query ~ 'shown once')}),
	'0', 'a parked session is not shown as a worker that it has left');
is(ask($shown, q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'shown once' AND client_addr IS NOT NULL}), '1',
	'one that is bound once');
close $shown->socket;
settle($node, 2);
my $leaver = connected();
ask($leaver, q{SET application_name = 'gone'});
# the worker that it logged in to is one too many, and ends
settle($node, 2);
ask($leaver, q{SELECT 'gone'});
close $leaver->socket;
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SharedServerWorkerFree'}) or fail('its worker is not free');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity
	WHERE pid <> pg_backend_pid() AND (application_name = 'gone' OR query ~ 'gone'
	OR wait_event = 'SharedServerWorkerFree' AND (query <> '' OR application_name <> '' OR client_addr IS NOT NULL))}), '0', 'a free worker shows nothing of who was there');
settle($node, 2);

# what pins
my $pinned = $client[1];
my @pins = (
	[ 'CREATE TEMP TABLE x ()', 'DROP TABLE x', 'temporary objects' ],
	[ 'SET standard_conforming_strings = off; PREPARE p AS SELECT 1', 'DEALLOCATE p', 'prepared statements' ],
	[ 'SELECT pg_advisory_lock(1)', 'SELECT pg_advisory_unlock(1)', 'session locks' ],
	[ 'SET temp_buffers = 200', 'RESET temp_buffers', 'setting temp_buffers' ],
	[ 'LISTEN x', 'UNLISTEN x', 'LISTEN' ],
	[ 'DECLARE c CURSOR WITH HOLD FOR SELECT 1', 'CLOSE c', 'cursors WITH HOLD' ],
	[ q{SELECT set_config('app.big', repeat('x', 200000), false) IS NULL}, 'RESET app.big', 'size' ],
	[ q{SELECT pg_replication_origin_create('o'); SELECT pg_replication_origin_session_setup('o')},
		q{SELECT pg_replication_origin_session_reset(); SELECT pg_replication_origin_drop('o')}, 'replication origin' ],
);
foreach my $pin (@pins)
{
	my ($begin, $end, $reason) = @$pin;
	ask($pinned, $begin);
	# the others make its worker wanted
	wait_until(sub { ask($_, 'SELECT 1') foreach @client[ 2 .. 6 ]; return session($node, $pinned, 'pinned_by') eq $reason; }, "the reason: $reason");
	is(session($node, $pinned, 'mode || $$ $$ || state'), 'dedicated bound', "$reason pins");
	ask($pinned, $end);
	wait_until(sub { ask($_, 'SELECT 1') foreach @client[ 2 .. 6 ]; return session($node, $pinned, 'mode || $$ $$ || state') eq 'shared parked'; }, "$reason to let go");
	pass("$reason lets go");
}

# what nobody can take back, or carry: a seed, also of a transaction that is rolled back, or of a login trigger; a library of one worker
sub pins_for_good
{
	my ($statement, $reason) = @_;
	my $client = connected();
	ask($client, $statement);
	wait_until(sub { ask($_, 'SELECT 1') foreach @client[ 2 .. 6 ]; return session($node, $client, 'pinned_by') eq $reason; }, "the reason: $reason");
	pass("$statement pins: $reason");
	close $client->socket;
	return $node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM polar_stat_session WHERE session_pid = ' . $client->pid) || fail('its session stays');
}
pins_for_good('BEGIN; SET LOCAL seed = 0.5; ROLLBACK', 'setseed');
pins_for_good(q{LOAD 'pg_overexplain'}, 'library pg_overexplain');
$node->safe_psql('postgres', q{
	CREATE FUNCTION sow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM setseed(0.5); END $$;
	CREATE EVENT TRIGGER sow ON login EXECUTE FUNCTION sow()});
pins_for_good('SELECT 1', 'setseed');
$node->safe_psql('postgres', 'DROP EVENT TRIGGER sow');

# a parked session ends when it has been silent for too long, and not before
my $silent = connected();
ask($silent, q{SET idle_session_timeout = '1s'});
wait_until(sub { ask($_, 'SELECT 1') foreach @client[ 2 .. 6 ]; return session($node, $silent, 'state') ne 'bound'; }, 'it to be parked');
is(join(' ', $silent->until_closed), 'E FATAL: terminating connection due to idle-session timeout', 'idle_session_timeout ends a parked session');
ask($client[1], q{SET idle_session_timeout = '1h'});
wait_until(sub { ask($_, 'SELECT 1') foreach @client[ 2 .. 6 ]; return session($node, $client[1], 'state') eq 'parked'; }, 'it to be parked');
is(ask($client[1], 'SHOW idle_session_timeout; RESET idle_session_timeout'), '1h', 'one that has more time stays');

# a wait has an end
$node->append_conf('postgresql.conf', 'polar_ss_session_wait_timeout = 500ms');
$node->reload;
ask($_, 'BEGIN') foreach @client[ 0, 1 ];
$client[2]->query('SELECT 1');
is(join(' ', $client[2]->until_closed), 'E FATAL: terminating connection because no worker became free in time', 'a wait ends');
$node->append_conf('postgresql.conf', 'polar_ss_session_wait_timeout = 1min');
$node->reload;
ask($_, 'ROLLBACK') foreach @client[ 0, 1 ];
is(ask($client[3], 'SHOW app.n'), '3', 'others go on');

# a client that breaks off in the middle of COPY
$client[4]->query('COPY copied FROM STDIN');
$client[4]->until(qr/^G/);
syswrite $client[4]->socket, 'd' . pack('N', 6) . "1\n" . 'd' . pack('N', 100) . '2';
setsockopt $client[4]->socket, SOL_SOCKET, SO_LINGER, pack('l l', 1, 0);
close $client[4]->socket;
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM polar_stat_session WHERE session_pid = ' . $client[4]->pid) or fail('its session stays');
is(ask($client[5], 'SELECT count(*) FROM copied'), '0', 'a reset in COPY ends the session, and nothing of it stays');

# a client that goes while it is parked
close $client[6]->socket;
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM polar_stat_session WHERE session_pid = ' . $client[6]->pid) or fail('its session stays');
pass('a parked session ends with its client');

# a worker that is terminated
my $worker = ask($client[7], 'BEGIN; SELECT pg_backend_pid()');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
is(join(' ', $client[7]->until_closed), 'E FATAL: terminating connection due to administrator command', 'a worker takes its session along');
is(ask($client[8], 'SHOW app.n'), '8', 'and no other');

# a crash costs everything, and the next login finds all as it should be
foreach my $victim ('SELECT pid FROM polar_stat_dispatcher', 'worker')
{
	my $crashing = connected();
	my $pid = $victim eq 'worker' ? ask($crashing, 'SELECT pg_backend_pid()') : $node->safe_psql('postgres', $victim);
	my $offset = -s $node->logfile;
	kill 'KILL', $pid;
	wait_for_restart($node, $offset);
	$node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM polar_stat_dispatcher') or fail('no dispatcher');
	is(ask(connected(), 'SELECT 1'), '1', 'after a crash it begins again');
}

# and it stops while sessions are parked
my @last = map { connected() } 1 .. 6;
ask($_, 'SELECT 1') foreach @last, @last;
$node->stop('fast');
is((grep { join(' ', $_->until_closed) =~ /^E FATAL: terminating connection (due to|because)/ } @last), 6, 'a stop tells every session');
done_testing();
