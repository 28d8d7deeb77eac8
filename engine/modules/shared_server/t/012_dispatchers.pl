# Several dispatchers are as one to who asks: sessions spread over them and keep what they have, limits hold for all together and none
# starves, requests reach each; the end of one, or one that does nothing, costs its own sessions only and can be seen.
use strict;
use warnings FATAL => 'all';
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared await_dispatchers port ask session settle);
use Floe::Test::Wait qw(wait_until wait_for_restart);

my $node = new_shared('shared', q{
polar_ss_dispatcher_count = 3
polar_ss_backend_max_count = 3
polar_ss_reserved_workers = 0
polar_ss_stall_limit = 1h
max_prepared_transactions = 2
max_connections = 60
});
my $port = port($node);
my $administrator = 'E FATAL: terminating connection due to administrator command';
$node->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0);
	CREATE TABLE secrets (tenant text, secret text);
	INSERT INTO secrets SELECT 't' || i, 'secret of t' || i FROM generate_series(0, 11) i;
	ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
	CREATE POLICY own ON secrets USING (tenant = current_setting('app.tenant', true));
	CREATE ROLE u0 LOGIN; CREATE ROLE u1 LOGIN;
	GRANT SELECT ON secrets TO u0, u1});

sub connected { return Floe::Test::Protocol->to_port($port, @_); }
sub asked { my ($statement) = @_; return $node->safe_psql('postgres', $statement); }
sub dispatcher_of { my ($client) = @_; return session($node, $client, 'dispatcher'); }
sub spread { return asked(q{SELECT string_agg(sessions || ' at ' || dispatcher, ', ' ORDER BY dispatcher) FROM
	(SELECT dispatcher, count(*) AS sessions FROM polar_stat_session GROUP BY dispatcher)}); }
sub row { my ($dispatcher, $columns) = @_; return asked("SELECT $columns FROM polar_stat_dispatcher WHERE dispatcher = $dispatcher"); }
sub sessions { my ($count) = @_; return $node->poll_query_until('postgres', "SELECT count(*) = $count FROM polar_stat_session") || fail("there are not $count sessions"); }

# as many new ones as it takes until each dispatcher has one of them
sub clients_of_each
{
	my (@as) = @_;
	my (@new, %seen);
	wait_until(sub { push @new, connected(@as); $seen{ dispatcher_of($new[-1]) } = 1; return keys %seen == 3; }, 'each to be given a client');
	return @new;
}

sub reload
{
	my ($name, $value) = @_;
	$node->append_conf('postgresql.conf', "$name = $value");
	$node->reload;
	return $node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'") || die "$name is not $value";
}

# they are shared out, and each keeps what it has
my @client = map { connected(user => 'u' . $_ % 2) } 0 .. 11;
is(spread(), '4 at 1, 4 at 2, 4 at 3', 'twelve clients, four for each');
settle($node, 3);
reload('polar_ss_debug_force_migrate', 'on');
ask($client[$_], "SET app.tenant = 't$_'") foreach 0 .. 5;
my @wrong;
foreach my $round (1 .. 4)
{
	foreach my $n (sort { rand() <=> 0.5 } 0 .. $#client)
	{
		my $answer = ask($client[$n], q{SELECT current_user, (SELECT string_agg(secret, ',') FROM secrets), current_setting('app.tenant', true)});
		my $expected = $n <= 5 ? 'u' . $n % 2 . "|secret of t$n|t$n" : 'u' . $n % 2 . '||';
		push @wrong, "$n: $answer" if $answer ne $expected;
	}
}
is("@wrong", '', 'each is its own in whichever worker, and nothing of it is another\'s');
reload('polar_ss_debug_force_migrate', 'off');
is(asked('SELECT count(*) FROM polar_stat_dispatcher WHERE binds > 0'), '3', 'all of them have moved sessions');
is(asked('SELECT count(DISTINCT dispatcher) FROM polar_stat_worker_pool'), '3', 'each has pools of its own');
is(asked('SELECT sum(sessions) FROM polar_stat_worker_pool'), '12', 'which show all sessions');

# the cap is for all together, whoever is busy
my %at;
push @{ $at{ dispatcher_of($_) } }, $_ foreach @client;
sub most_workers
{
	my ($rounds, @busy) = @_;
	my $most = 0;
	foreach my $round (1 .. $rounds)
	{
		$_->query('SELECT 1 FROM pg_sleep(0.01)') foreach @busy;
		my $count = asked('SELECT sum(n_backends) FROM polar_stat_dispatcher');
		$most = $count if $count > $most;
		$_->until_ready foreach @busy;
	}
	return $most;
}
settle($node, 3);
is(most_workers(8, @client), '3', 'with all busy there are no more workers than the cap');
is(most_workers(8, @{ $at{2} }), '3', 'nor with those of one, which has them all');

# who has all the places gives them to another's sessions, also when its own never rest
my @never = @{ $at{2} };
$_->query('SELECT 1') foreach @never;
my %quiet = map { fileno $_->socket => $_ } @{ $at{1} }, @{ $at{3} };
$_->query('SELECT 2') foreach values %quiet;
while (%quiet)
{
	my $ready = '';
	vec($ready, $_, 1) = 1 foreach keys %quiet, map { fileno $_->socket } @never;
	select($ready, undef, undef, $PostgreSQL::Test::Utils::timeout_default) or last;
	foreach my $file (grep { vec $ready, $_, 1 } keys %quiet) { (delete $quiet{$file})->until_ready; }
	foreach my $busy (grep { vec $ready, fileno $_->socket, 1 } @never) { $busy->until_ready; $busy->query('SELECT 1'); }
}
is(scalar keys %quiet, 0, 'sessions that never rest let those of other dispatchers in');
$_->until_ready foreach @never;

# fewer workers than dispatchers
reload('polar_ss_backend_max_count', 2);
settle($node, 2);
foreach my $round (1 .. 3)
{
	$_->query('SELECT current_user') foreach @client;
	is(join(' ', map { map { /^[DE] (.*)/ } $_->until_ready } @client), join(' ', map { 'u' . $_ % 2 } 0 .. 11), 'with two workers all three take turns');
}
is(most_workers(5, @client), '2', 'and keep to the cap');

# a lock whose holder is queued at a dispatcher that has no worker: those that have them wait for it
reload('polar_ss_stall_limit', '100ms');
my $holder = connected();
ask($holder, q{BEGIN; UPDATE t SET v = 1; PREPARE TRANSACTION 'held'});
my @waiter = grep { dispatcher_of($_) ne dispatcher_of($holder) } map { connected() } 1 .. 5;
settle($node, 2);
$_->query('UPDATE t SET v = v + 1') foreach @waiter;
$node->poll_query_until('postgres', q{SELECT count(*) >= 2 FROM pg_locks WHERE NOT granted}) or fail('nobody waits for the lock');
is(ask($holder, q{COMMIT PREPARED 'held'}), '', 'who holds the lock is served');
is(join(' ', map { ($_->until_ready)[0] } @waiter), join(' ', ('C UPDATE 1') x @waiter), 'then the others are');
close $_->socket foreach $holder, @waiter;

# clients that wait for each other at different dispatchers
ask($client[$_], 'BEGIN') foreach 0 .. 1;
is(ask($client[$_], 'SELECT 1'), '1', 'when every worker waits for its client others are started') foreach 2 .. 4;
ask($client[$_], 'ROLLBACK') foreach 0 .. 1;
settle($node, 2);
pass('and taken back');
reload('polar_ss_backend_max_count', 3);

# requests reach whichever has the session
foreach my $dispatcher (1 .. 3)
{
	my ($client) = grep { dispatcher_of($_) eq $dispatcher } @client;
	$client->query('SELECT pg_sleep(1000)');
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'}) or die 'it does not sleep';
	my $request = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp') or die $!;
	syswrite $request, pack('N N N a*', 12 + length $client->key, 80877102, $client->pid, $client->key);
	sysread $request, my $end, 1;
	is(join(' ', map { /^E (.*)/ } $client->until_ready), 'ERROR: canceling statement due to user request', "a request to cancel reaches dispatcher $dispatcher");

	my ($ended, @passed_over) = clients_of_each();
	($ended, @passed_over) = (@passed_over, $ended) while dispatcher_of($ended) ne $dispatcher;
	is(asked('SELECT pg_terminate_backend(' . $ended->pid . ')'), 't', 'so does one to end');
	is(join(' ', $ended->until_closed), $administrator, 'which is told to its client');
	close $_->socket foreach @passed_over;
}

# the end of one that does not listen
sessions(12);
my $second = row(2, 'pid');
my @of_second = grep { dispatcher_of($_) eq '2' } @client;
my @others = grep { dispatcher_of($_) ne '2' } @client;
kill 'TERM', $second;
like(join(' ', $_->until_closed), qr/^E FATAL: terminating connection (due to administrator command|because the dispatcher has ended)$/, 'its sessions end with a dispatcher') foreach @of_second;
is(join(' ', map { ask($_, 'SELECT 1') } @others), join(' ', (1) x @others), 'no other does');
is(ask(connected(), 'SELECT 1'), '1', 'who comes meanwhile finds another');
$node->poll_query_until('postgres', "SELECT pid <> $second FROM polar_stat_dispatcher WHERE dispatcher = 2") or fail('it stays away');
@client = (@others, map { connected() } 1 .. 4);
cmp_ok(scalar(grep { dispatcher_of($_) eq '2' } @client), '>', 0, 'the next one is given clients');

# the end of the one that listens
my $first = row(1, 'pid');
my @of_first = grep { dispatcher_of($_) eq '1' } @client;
@others = grep { dispatcher_of($_) ne '1' } @client;
kill 'TERM', $first;
like(join(' ', $_->until_closed), qr/^E FATAL: terminating connection (due to administrator command|because the dispatcher has ended)$/, 'the one that listens takes its own along') foreach @of_first;
is(join(' ', map { ask($_, 'SELECT 1') } @others), join(' ', (1) x @others), 'those of the others go on without it');
$node->poll_query_until('postgres', "SELECT pid <> $first FROM polar_stat_dispatcher WHERE dispatcher = 1") or fail('it stays away');
@client = (@others, clients_of_each());

# one that does nothing can be seen, is given no clients, and keeps no others waiting
my $silent = q{SELECT string_agg(dispatcher::text, ' ' ORDER BY dispatcher) FROM polar_stat_dispatcher WHERE last_active < now() - interval '4 s'};
is(asked($silent), '', 'all go round');
my $third = row(3, 'pid');
kill 'STOP', $third;
wait_until(sub { asked($silent) eq '3'; }, 'one that is stopped to be seen');
my @new = map { connected() } 1 .. 6;
is((grep { dispatcher_of($_) eq '3' } @new), 0, 'it is given no clients');
@others = grep { dispatcher_of($_) ne '3' } @client, @new;
is(join(' ', map { ask($_, 'SELECT 1') } @others), join(' ', (1) x @others), 'the others serve theirs');
is(most_workers(3, @others) <= 3 + 3, 1, 'with at most its places more');
kill 'CONT', $third;
wait_until(sub { asked($silent) eq ''; }, 'it to go on');
is(join(' ', map { ask($_, 'SELECT 1') } @client), join(' ', (1) x @client), 'and so do its sessions');
@client = (@client, @new);

# a database that is needed
asked('CREATE DATABASE other');
my @there = map { connected(database => 'other') } 1 .. 6;
ask($_, 'SELECT 1') foreach @there;
my ($status, $out, $error) = $node->psql('postgres', 'DROP DATABASE other');
like($error, qr/database "other" is being accessed by other users/, 'a database has the sessions of all');
close $_->socket foreach @there[ 0 .. 2 ];
asked('DROP DATABASE other WITH (FORCE)');
like(join(' ', $_->until_closed), qr/^E FATAL: terminating connection/, 'by force all of them end') foreach @there[ 3 .. 5 ];

# what a pool keeps when it has nothing to do, its login keeps at all of them together
reload('polar_ss_backend_max_count', 40);
reload('polar_ss_backend_pool_min_size', 2);
reload('polar_ss_backend_idle_timeout', '1s');
asked('CREATE ROLE kept LOGIN');
my @kept = clients_of_each(user => 'kept');
cmp_ok(asked(q{SELECT sum(workers) FROM polar_stat_worker_pool WHERE usename = 'kept'}), '>', 2, 'a login has workers at each');
close $_->socket foreach @kept;
$node->poll_query_until('postgres', q{SELECT sum(workers) = 2 AND sum(sessions) = 0 FROM polar_stat_worker_pool WHERE usename = 'kept'}) or fail('it does not keep two');
pass('two stay');
reload('polar_ss_backend_pool_min_size', 0);
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM polar_stat_worker_pool WHERE usename = 'kept'}) or fail('they stay for good');
reload('polar_ss_backend_max_count', 3);

# version 1.0 of the extension shows them as one
my $sum = q{SELECT sum(n_bound + n_parked), max(pid) > 0, sum(logins), count(*) FROM polar_stat_dispatcher};
my $of_all = asked($sum);
asked(q{DROP EXTENSION shared_server; CREATE EXTENSION shared_server VERSION '1.0'});
is(asked($sum), $of_all =~ s/3$/1/r, 'version 1.0 of the extension has one row, of all');
is(asked('SELECT count(*) FROM polar_stat_session') . ' ' . asked('SELECT sum(sessions) FROM polar_stat_worker_pool'), join(' ', (asked('SELECT sum(n_bound + n_parked) FROM polar_stat_dispatcher')) x 2), 'and the other views');
asked('ALTER EXTENSION shared_server UPDATE');
is(asked($sum), $of_all, 'an update has a row each');

# nobody else gets the port, and nobody clients of it
my $stranger = PostgreSQL::Test::Cluster->new('stranger');
$stranger->init;
$stranger->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'\npolar_ss_port = $port\npolar_enable_shared_server = on\npolar_ss_dispatcher_count = 2");
$stranger->start;
wait_until(sub { $stranger->log_contains("could not listen on port $port for shared sessions"); }, 'another instance to fail');
is((grep { ask(connected(), 'SHOW data_directory') eq $node->data_dir } 1 .. 6), 6, 'the port stays with who has it');
$stranger->stop;

# all are drained, and all are told of the end
my $count = asked('SELECT polar_ss_drain()');
cmp_ok($count, '>=', scalar @client, 'there is something to drain');
is((grep { join(' ', $_->until_closed) eq $administrator } @client), scalar @client, 'all of them end');
sessions(0);
@client = map { connected() } 1 .. 9;
ask($_, 'SELECT 1') foreach @client;
$node->stop('fast');
is((grep { join(' ', $_->until_closed) =~ /^E FATAL: terminating connection (due to|because)/ } @client), 9, 'a stop tells every session');
is(-e $node->data_dir . '/pg_stat_tmp/shared_server.socket', undef, 'and leaves nothing');

# a crash of one costs all, as that of any backend
$node->start;
await_dispatchers($node);
my $crashing = connected();
my $offset = -s $node->logfile;
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
$node->reload;
kill 'KILL', row(2, 'pid');
wait_for_restart($node, $offset);
await_dispatchers($node);
is(ask(connected(), 'SELECT 1'), '1', 'after a crash they begin again');

# one that has no place among the processes
$node->append_conf('postgresql.conf', 'max_worker_processes = 3');
$node->restart;
$node->poll_query_until('postgres', q{SELECT count(*) >= 1 FROM polar_stat_dispatcher});
ok($node->log_contains('too many background workers'), 'without processes for all the log says so');
is(ask(connected(), 'SELECT 1'), '1', 'and those that are there serve');
is($node->log_contains('TRAP|PANIC|session image differs|could not restore the session'), '', 'nothing went wrong that nobody saw');
$node->stop;
done_testing();
