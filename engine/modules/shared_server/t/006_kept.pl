# What a worker keeps of a session that has left is used by that session only, and only while it is still true; a client that says
# half a message holds nobody; one that goes on at once keeps its worker for a moment; memory has an end; a session's id reaches it
# wherever it is.
use strict;
use warnings FATAL => 'all';
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session settle);
use Floe::Test::Wait qw(wait_until);

my $node = new_shared('shared', q{
polar_ss_dispatcher_count = 1
polar_ss_backend_max_count = 1
polar_ss_reserved_workers = 0
polar_ss_stall_limit = 1h
polar_ss_quantum = 0
});
my $port = port($node);
$node->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, v text);
	INSERT INTO t VALUES (1, 'one'), (2, 'two');
	CREATE TABLE private (owner name, v text);
	INSERT INTO private VALUES ('u1', 'of u1'), ('u2', 'of u2');
	ALTER TABLE private ENABLE ROW LEVEL SECURITY;
	CREATE POLICY own ON private USING (owner = current_user);
	CREATE ROLE u1; CREATE ROLE u2; CREATE ROLE stranger LOGIN; CREATE ROLE plain LOGIN;
	GRANT SELECT ON private TO u1, u2});

sub connected { return Floe::Test::Protocol->to_port($port, @_); }

sub run
{
	my ($client, $name, $value) = @_;
	$client->run($name, $value);
	return join "\n", map { /^[DE] (.*)/s ? $1 : () } $client->until_ready;
}

sub prepare
{
	my ($client, $name, $text) = @_;
	$client->parse($name, $text);
	return join "\n", map { /^[DE] (.*)/s ? $1 : () } $client->until_ready;
}

sub reload
{
	my ($name, $value) = @_;
	$node->append_conf('postgresql.conf', "$name = $value");
	$node->reload;
	return $node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'") || die "$name is not $value";
}

# two sessions, one worker: each has its own statements of the same name
my ($one, $two) = (connected(), connected());
prepare($one, 's', 'SELECT v FROM t WHERE id = $1');
settle($node, 1);
prepare($two, 's', 'SELECT $1 || $$ of two$$');
foreach my $round (1 .. 8)
{
	is(run($one, 's', 1), 'one', "the first's statement, $round");
	is(run($two, 's', 'x'), 'x of two', "the second's, $round");
}
like(run($one, 'other', 1), qr/prepared statement "other" does not exist/, 'a statement that nobody has');
prepare($two, 'other', 'SELECT $1 || $$ other$$');
like(run($one, 'other', 1), qr/prepared statement "other" does not exist/, 'or another session');
is(ask($one, 'SELECT name, generic_plans + custom_plans FROM pg_prepared_statements'), 's|8', 'the count of plans is the session\'s');

# its plan stays in the worker, and is the one that is used
is(ask($one, 'PREPARE g AS SELECT v FROM t WHERE id = 1; EXECUTE g'), 'one', 'a statement without parameters');
sub plans { return ask($one, q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'CachedPlan' AND ident LIKE 'PREPARE g %'}); }
ask($two, 'SELECT 1');
is(plans(), '1', 'its plan is kept');
is(ask($one, q{EXECUTE g; SELECT generic_plans FROM pg_prepared_statements WHERE name = 'g'}), "one\n2", 'and counted when it is used');

# what changes meanwhile reaches what is kept
ask($two, 'ALTER TABLE t RENAME v TO w');
like(run($one, 's', 1), qr/column "v" does not exist/, 'a table that has changed');
ask($two, 'ALTER TABLE t RENAME w TO v; ALTER TABLE t ALTER v TYPE varchar(9)');
like(run($one, 's', 1), qr/cached plan must not change result type/, 'a row type that has changed');
ask($two, 'ALTER TABLE t ALTER v TYPE text');
is(run($one, 's', 1), 'one', 'and has changed back');

# the row security of a role
prepare($one, 'p', 'SELECT v FROM private WHERE $1::int > 0');
ask($one, 'SET ROLE u1');
is(run($one, 'p', 1), 'of u1', 'a role');
prepare($two, 'p', 'SELECT v FROM private WHERE $1::int > 0');
ask($two, 'SET ROLE u2');
is(run($two, 'p', 1), 'of u2', 'another role, the same text');
is(run($one, 'p', 1), 'of u1', 'each its own');
ask($one, 'SET ROLE u2');
is(run($two, 'p', 1), 'of u2', 'a role that has changed while the statement was kept');
is(run($one, 'p', 1), 'of u2', 'is seen by it');
ask($_, 'RESET ROLE') foreach $one, $two;

# the same name again, with the same text and another meaning
ask($one, q{CREATE SCHEMA a; CREATE TABLE a.x AS SELECT 'a' AS v; CREATE SCHEMA b; CREATE TABLE b.x AS SELECT 'b' AS v; SET search_path = a});
prepare($one, 'x', 'SELECT v FROM x WHERE $1::int > 0');
is(run($one, 'x', 1), 'a', 'a search path');
ask($two, 'SET search_path = b');
is(run($one, 'x', 1), 'a', 'is its own');
ask($one, 'SET search_path = b');
ask($two, 'SET search_path = a');
is(run($one, 'x', 1), 'b', 'and what it is now');
ask($_, 'RESET search_path') foreach $one, $two;

# what a function was compiled to for one session, it is not for another
ask($one, q{
	SET check_function_bodies = off;
	CREATE FUNCTION midnight() RETURNS int LANGUAGE plpgsql AS $$BEGIN RETURN extract(epoch FROM '2020-01-01 00:00'::timestamptz); END$$;
	CREATE FUNCTION midnight_again() RETURNS int LANGUAGE plpgsql AS $$BEGIN RETURN extract(epoch FROM '2020-01-01 00:00'::timestamptz); END$$;
	CREATE FUNCTION tenant() RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT current_setting('app.tenant')$$;
	CREATE FUNCTION told() RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN tenant(); END$$;
	CREATE TABLE a.r AS SELECT 1 AS a; CREATE TABLE b.r AS SELECT 2 AS a, 3 AS b;
	CREATE FUNCTION row_of() RETURNS text LANGUAGE plpgsql AS $$DECLARE found r%ROWTYPE; BEGIN SELECT * INTO found FROM r; RETURN found; END$$;
	RESET check_function_bodies});
foreach my $round (1, 2)
{
	is(ask($one, q{SET TimeZone = 'UTC'; SELECT midnight()}), '1577836800', "midnight of one time zone, $round");
	is(ask($two, q{SET TimeZone = 'America/New_York'; SELECT midnight()}), '1577854800', 'and of another');
	is(ask($_, q{SET app.tenant = '} . $_->pid . q{'; SELECT told()}), $_->pid, 'a custom setting in a function that calls itself immutable') foreach $one, $two;
	is(ask($one, 'SET search_path = public, a; SELECT row_of()'), '(1)', 'the row of a table');
	is(ask($two, 'SET search_path = public, b; SELECT row_of()'), '(2,3)', 'and of another');
}
ask($_, q{RESET search_path; RESET app.tenant; SET TimeZone = 'UTC'}) foreach $one, $two;
ask($one, q{BEGIN; SET LOCAL TimeZone = 'America/New_York'; SELECT midnight_again(); COMMIT});
is(ask($two, 'SELECT midnight_again()'), '1577836800', 'what was set for a transaction is seen as well');
ask($_, 'RESET TimeZone') foreach $one, $two;

# what a constant of a prepared statement means stays as natively, whoever executes it
reload('polar_ss_worker_cache_size', 0);
sub at { my ($client, $text) = @_; ask($client, $text); return ask($client, 'EXECUTE at'); }
my $at = q{PREPARE at AS SELECT extract(epoch FROM '2020-01-01'::timestamptz)::int};
is(at($one, "SET TimeZone = 'UTC'; $at"), '1577836800', 'a time of one time zone');
is(at($two, "SET TimeZone = 'America/New_York'; $at"), '1577854800', 'and of another');
is(ask($one, q{SET TimeZone = 'America/New_York'; EXECUTE at}), '1577836800', 'which stays what it was in the worker that has it again');
$two->query('SELECT 1');
wait_until(sub { return session($node, $one, 'pinned_by') eq 'prepared statements'; }, 'a session with a constant of other settings to stay');
is(ask($one, 'EXECUTE at'), '1577836800', 'and after the others would have had its worker');
ask($one, q{SET TimeZone = 'UTC'});
is(join(' ', map { /^[DE] (.*)/ } $two->until_ready), '1', 'with its settings back it lets go');
ask($one, q{DEALLOCATE at; BEGIN; SET LOCAL TimeZone = 'America/New_York'; PREPARE at AS SELECT extract(epoch FROM '2020-01-01'::timestamptz)::int; COMMIT});
$two->query('SELECT 1');
wait_until(sub { return session($node, $one, 'pinned_by') eq 'prepared statements'; }, 'so does one with a constant of a transaction');
is(ask($one, 'EXECUTE at'), '1577854800', 'which is what it was there');
ask($one, 'DEALLOCATE at');
$two->until_ready;
ask($one, q{PREPARE at AS SELECT 'now'::timestamptz - now() < '0'::interval});
$two->query('SELECT 1');
wait_until(sub { return session($node, $one, 'pinned_by') eq 'prepared statements'; }, 'so does one that says now');
is(ask($one, 'EXECUTE at'), 't', 'which stays what it was');
ask($one, 'DEALLOCATE at');
$two->until_ready;
$node->safe_psql('postgres', 'CREATE TABLE passing AS SELECT date $$2020-01-01$$ AS d');
ask($one, q{PREPARE at AS SELECT count(*) FROM passing WHERE d = '2020-01-01'});
is(ask($two, 'DEALLOCATE ALL; SELECT 1'), '1', 'one whose table goes is no hindrance');
$node->safe_psql('postgres', 'DROP TABLE passing');
like(ask($one, 'SELECT 2'), qr/^2$/, 'nor ends its session');
like(ask($one, 'EXECUTE at'), qr/relation "passing" does not exist/, 'but is told of when it is used');
ask($_, 'DEALLOCATE ALL; RESET TimeZone') foreach $one, $two;
reload('polar_ss_worker_cache_size', '8MB');

# what was dropped while another worker had the session
reload('polar_ss_backend_max_count', 2);
my @blocker = map { connected() } 1 .. 2;

# What a session says in another worker than its present one.
sub elsewhere
{
	my ($client, $text, @others) = @_;
	@others = @blocker unless @others;
	return wait_until(
		sub {
			my $here = ask($client, 'SELECT pg_backend_pid()');
			# both workers are busy, and the one where it was stays so
			my %by = map { ask($_, 'BEGIN'); ask($_, 'SELECT pg_backend_pid()') => $_ } @others;
			my $there = delete $by{$here};
			ask($_, 'COMMIT') foreach values %by;
			my $answer = $there ? ask($client, $text) : undef;
			ask($there, 'COMMIT') if $there;
			return defined $answer && "answer: $answer";
		}, 'another worker to have the session');
}
prepare($one, 'd', 'SELECT 1 + $1::int');
is(run($one, 'd', 1), '2', 'a statement');
elsewhere($one, 'DEALLOCATE d; PREPARE d(text) AS SELECT 10 + $1::int');
is(run($one, 'd', 1), '11', 'what took its place elsewhere');
is(elsewhere($one, 'EXECUTE d(2)'), 'answer: 12', 'is everywhere');
elsewhere($one, 'DEALLOCATE d');
like(run($one, 'd', 1), qr/prepared statement "d" does not exist/, 'dropped elsewhere');
like(elsewhere($one, 'EXECUTE d(2)'), qr/prepared statement "d" does not exist/, 'it is gone everywhere');

# what was allowed once stays allowed: the text of a statement, a role
ask($one, q{PREPARE q AS SELECT E'a\\'b'; SELECT 1});
is(elsewhere($one, 'EXECUTE q'), q{answer: a'b}, 'a backslash before a quote');
ask($one, 'SET backslash_quote = off');
is(elsewhere($one, 'EXECUTE q'), q{answer: a'b}, 'which could not be written any more');
ask($one, 'RESET backslash_quote; DEALLOCATE q');
$node->safe_psql('postgres', 'CREATE ROLE set_once; CREATE ROLE member LOGIN; GRANT set_once TO member');
my ($member, @member_blocker) = map { connected(user => 'member') } 0 .. 2;
ask($member, 'SET ROLE set_once');
ask($two, 'SET ROLE set_once; SET SESSION AUTHORIZATION member');
$node->safe_psql('postgres', 'REVOKE set_once FROM member');
is(elsewhere($member, 'SELECT current_user, session_user', @member_blocker), 'answer: set_once|member', 'a role that could not be set any more');
$node->safe_psql('postgres', 'ALTER ROLE set_once RENAME TO renamed; ALTER ROLE member RENAME TO member_renamed');
is(elsewhere($member, 'SELECT current_user, session_user, current_setting($$role$$)', @member_blocker), 'answer: renamed|member_renamed|set_once', 'one that has another name now');
is(elsewhere($two, 'SELECT current_user, session_user'), 'answer: member_renamed|member_renamed', 'also as the user of the session');
ask($two, 'RESET SESSION AUTHORIZATION; RESET ROLE');
close $_->socket foreach $member, @member_blocker;

# a session that takes the place of another finds nothing of it
my $before = connected();
prepare($before, 'left', 'SELECT $1');
elsewhere($before, 'SELECT 1');
close $before->socket;
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM polar_stat_session WHERE session_pid = ' . $before->pid) or die 'it stays';
my $after = connected();
is(($after->pid - $before->pid) % $node->safe_psql('postgres', 'SHOW polar_ss_max_sessions'), 0, 'the place is the same');
like(run($after, 'left', 1), qr/prepared statement "left" does not exist/, 'what it had is gone');
is(elsewhere($after, 'SELECT count(*) FROM pg_prepared_statements'), 'answer: 0', 'everywhere');
close $_->socket foreach @blocker, $after;
reload('polar_ss_backend_max_count', 1);
settle($node, 1);

# memory of what is kept has an end
sub kept
{
	# what all prepared statements of the worker have, of whichever session
	return ask($two, q{SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'CachedPlanSource'});
}
my @many = map { connected() } 1 .. 20;
settle($node, 1);
foreach my $client (@many) { prepare($client, "m$_", 'SELECT ' . join(' + ', ('$1::int') x 50)) foreach 1 .. 5; }
my $all = kept();
reload('polar_ss_worker_cache_size', '256kB');
ask($_, 'SELECT 1') foreach @many;
my $some = kept();
cmp_ok($all, '>', 1000 * 1024, "without a limit $all bytes");
cmp_ok($some, '<', 600 * 1024, "with one $some bytes");
is(join(' ', map { run($_, 'm3', 2) } @many), join(' ', (100) x 20), 'and every statement is still there');
reload('polar_ss_worker_cache_size', '0');
is(join(' ', map { run($_, 'm3', 2) } @many), join(' ', (100) x 20), 'also when nothing is kept');
is(plans(), '0', 'no plan is');
reload('polar_ss_worker_cache_size', '8MB');
close $_->socket foreach splice @many, 2;

# half a message
sub part
{
	my ($client, $bytes) = @_;
	syswrite $client->socket, $bytes;
	return;
}
my ($half, $other) = @many;
foreach my $cut (1, 4, 5, 6, 12)
{
	my $message = 'Q' . pack('N', 4 + 9) . "SELECT 5\0";
	part($half, substr $message, 0, $cut);
	is(join(' ', map { ask($_, 'SELECT 1') } $other, $one, $other), '1 1 1', "who has said $cut bytes holds nobody");
	part($half, substr $message, $cut);
	is(join(' ', map { /^[DE] (.*)/ } $half->until_ready), '5', 'and is served when it has said the rest');
}
my $long = 'SELECT length($$' . ('x' x 100000) . '$$)';
part($half, 'Q' . pack('N', 5 + length $long) . substr $long, 0, 8000);
is(ask($other, 'SELECT 1'), '1', 'nor does a part of a long message');
part($half, substr($long, 8000) . "\0");
is(join(' ', map { /^[DE] (.*)/ } $half->until_ready), '100000', 'and it arrives whole');
part($half, 'Q' . pack('N', 100) . 'SELECT');
shutdown $half->socket, 1;
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM polar_stat_session WHERE session_pid = ' . $half->pid) or fail('its session stays');
is(ask($other, 'SELECT 1'), '1', 'one that will never say the rest ends');
part($other, 'Q' . pack('N', 2));
like(join(' ', $other->until_closed), qr/invalid (message length|frontend message)|^$/, 'a length that cannot be ends it');
is(ask($one, 'SELECT 1'), '1', 'and nobody else');

# a goodbye needs no worker
my ($busy, $leaving) = (connected(), connected());
settle($node, 1);
ask($_, 'SELECT 1') foreach $leaving, $busy;
ask($busy, 'BEGIN');
settle($node, 1);
part($leaving, 'X' . pack('N', 4));
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM polar_stat_session WHERE session_pid = ' . $leaving->pid) or fail('its session stays');
pass('a parked session ends while no worker is free');

# a session that goes on keeps its worker while all processors have work
sub parks { return $node->safe_psql('postgres', 'SELECT parks FROM polar_stat_dispatcher'); }
ask($busy, 'COMMIT');

# how often two clients on one worker, who always have something to say, are moved
sub moves
{
	ask($_, 'SELECT 1') foreach $one, $two;
	my $begin = parks();
	my %client = map { fileno $_->socket => $_ } $one, $two;
	my %left = map { $_ => 200 } keys %client;
	$_->query('SELECT 1') foreach values %client;
	while (%left)
	{
		my $ready = '';
		vec($ready, $_, 1) = 1 foreach keys %left;
		select($ready, undef, undef, $PostgreSQL::Test::Utils::timeout_default) or die 'who waits is never served';
		foreach my $file (grep { vec $ready, $_, 1 } keys %left)
		{
			$client{$file}->until_ready;
			if (--$left{$file}) { $client{$file}->query('SELECT 1'); }
			else { delete $left{$file}; }
		}
	}
	return parks() - $begin;
}
my $without = moves();
cmp_ok($without, '>', 50, 'without a quantum they are moved again and again');
my $processors = `nproc --all`;
my @working = map { Floe::Test::Protocol->new($node) } 0 .. $processors;
$_->query('DO $$BEGIN LOOP NULL; END LOOP; END$$') foreach @working;
reload('polar_ss_quantum', '500ms');
my $with = moves();
cmp_ok($with, '<', $without / 2, "a quantum spares moves while there is work: $with of $without");
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $_->pid . ', 60000)') foreach @working;
reload('polar_ss_quantum', '0');

# a session's id, wherever it is
is(ask($two, 'SELECT pg_cancel_backend(' . $one->pid . ')'), 't', 'a parked session has nothing to cancel');
is(ask($one, 'SELECT 1'), '1', 'and goes on');
my $running = connected();
ask($running, 'BEGIN');
settle($node, 1);
$one->query('SELECT 1');
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM polar_stat_session WHERE state = 'waiting'}) or die 'it does not wait';
is($node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $one->pid . ')'), 't', 'what waits to be served');
ask($running, 'COMMIT');
is(join(' ', $one->until_ready), 'E ERROR: canceling statement due to user request Z I', 'is cancelled');
is(ask($one, 'SELECT 1'), '1', 'and nothing after it');
ask($running, 'BEGIN');
$running->query('SELECT pg_sleep(1000)');
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'}) or die 'it does not sleep';
my ($status, $out, $error) = $node->psql('postgres', 'SELECT pg_cancel_backend(' . $running->pid . ')', extra_params => [ '-U', 'stranger' ]);
like($error, qr/permission denied to cancel query.*SUPERUSER/s, 'a stranger may not cancel it');
is($node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $running->pid . ')'), 't', 'a superuser may');
is((grep { /^E ERROR: canceling statement due to user request/ } $running->until_ready), 1, 'and it is cancelled');
is($node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $running->pid . ', 60000)'), 't', 'it is terminated where it runs');
is(join(' ', $running->until_closed), 'E FATAL: terminating connection due to administrator command', 'and is told');
settle($node, 1);
ask($_, 'SELECT 1') foreach $one, $two;
my $offset = -s $node->logfile;
is(session($node, $one, 'state'), 'parked', 'a session is parked');
is($node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $one->pid . ', 60000)'), 't', 'it is terminated there too');
is(join(' ', $one->until_closed), 'E FATAL: terminating connection due to administrator command', 'and is told');
is(ask($two, 'SELECT 1'), '1', 'the others are not');
is($node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $one->pid . ')'), 'f', 'an id of nobody');
my $plain = connected(user => 'plain');
($status, $out, $error) = $node->psql('postgres', 'SELECT pg_terminate_backend(' . $plain->pid . ')', extra_params => [ '-U', 'stranger' ]);
like($error, qr/permission denied to terminate process/, 'a stranger may not terminate one');
($status, $out, $error) = $node->psql('postgres', 'SELECT pg_terminate_backend(' . $plain->pid . ', 60000)', extra_params => [ '-U', 'plain' ]);
is($out, 't', 'its own role may');

# a role that is given the name of another sees none of its sessions
my $former = connected(user => 'plain');
$node->safe_psql('postgres', 'ALTER ROLE plain RENAME TO renamed_plain; CREATE ROLE plain LOGIN');
is($node->safe_psql('postgres', 'SET ROLE plain; SELECT count(*) FROM polar_stat_session'), '0', 'sessions are those of a role, not of its name');
is($node->safe_psql('postgres', 'SET ROLE renamed_plain; SELECT count(*) FROM polar_stat_session'), '1', 'whatever its name is');
close $former->socket;
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM polar_stat_session WHERE session_pid = ' . $former->pid) or fail('its session stays');
$node->safe_psql('postgres', 'DROP ROLE plain; ALTER ROLE renamed_plain RENAME TO plain');

# limits of connections count sessions, parked or not, and no workers
$node->safe_psql('postgres', 'CREATE ROLE limited LOGIN CONNECTION LIMIT 2');
my @limited = map { connected(user => 'limited') } 1 .. 2;
ask($two, 'SELECT 1');
ok(!eval { connected(user => 'limited') }, 'a third session of a role that may have two');
is(join(' ', map { ask($_, 'SELECT 1') } @limited, @limited), '1 1 1 1', 'the two are served');
close((shift @limited)->socket);
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM polar_stat_session WHERE usename = 'limited'}) or die 'it stays';
push @limited, connected(user => 'limited');
is(join(' ', map { ask($_, 'SELECT 1') } @limited), '1 1', 'and another one in place of one that has ended');
close $_->socket foreach @limited;

# a role that is no longer what it was when its session logged in: no worker can be started for it
$plain = connected(user => 'plain');
ask($_, 'SELECT 1') foreach $two, $plain, $two;
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE usename = 'plain'}) or die 'its worker stays';
$node->safe_psql('postgres', 'ALTER ROLE plain SUPERUSER');
$plain->query('SELECT 1');
is(join(' ', $plain->until_closed), 'E FATAL: terminating connection because its role or database has changed', 'it does not wait in vain');
is(ask($two, 'SELECT 1'), '1', 'others go on');

# notifications name the session
my $listener = connected();
ask($listener, 'LISTEN l');
$listener->query('NOTIFY l');
$listener->until_ready;
is($listener->notifier, $listener->pid, 'a client knows its own notification');
close $listener->socket;

# memory of sessions has an end
is($node->safe_psql('postgres', 'SELECT session_memory > 0 AND session_memory = (SELECT sum(memory) FROM polar_stat_session) FROM polar_stat_dispatcher'), 't', 'the memory of all sessions is the sum');
my $asking = connected();
reload('polar_ss_shared_memory_size', '8kB');
ask($two, q{SELECT set_config('app.big', repeat('x', 9000), false) IS NULL});
$asking->query('SELECT 1');
wait_until(sub { return session($node, $two, 'pinned_by') eq 'polar_ss_shared_memory_size'; }, 'a session that does not fit to stay');
is(ask($two, 'SELECT length(current_setting($$app.big$$))'), '9000', 'a session that does not fit keeps its worker');
ask($two, 'RESET app.big');
is(join(' ', map { /^[DE] (.*)/ } $asking->until_ready), '1', 'and lets go when it is smaller');
my @open;
my $refused = 0;
while (!$refused && @open < 40)
{
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp') or die $!;
	push @open, $socket;
	my $startup = "user\0" . getpwuid($<) . "\0database\0postgres\0\0";
	syswrite $socket, pack('N N a*', 8 + length $startup, 196608, $startup);
	my $bytes = '';
	while ($bytes !~ /Z\x00{3}\x05I\z/ && sysread $socket, my $piece, 4096) { $bytes .= $piece; }
	$refused = $bytes =~ /C53200\x00Mout of memory for shared sessions\x00/;
}
ok($refused, 'a login that does not fit ends with 53200, the ' . @open . 'th');
close $_ foreach @open;
reload('polar_ss_shared_memory_size', '128MB');
ok(connected(), 'until there is room');
reload('polar_ss_shared_memory_size', '0');
cmp_ok(connected()->pid, '<', 2**30, 'with none sessions are native');
$node->stop;
is($node->log_contains('TRAP|PANIC|session image differs'), '', 'nothing went wrong that nobody saw');
done_testing();
