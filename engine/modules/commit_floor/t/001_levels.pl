# A commit waits for standbys at least as the floor says, whatever its session, role, database or code has set; nothing else does.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::Standby qw(new_primary new_standby);

my $primary = new_primary('primary', q{
autovacuum = off
max_connections = 60
max_prepared_transactions = 10
polar_commit_floor = on
});
my $user = getpwuid $<;
$primary->safe_psql('postgres', q{
	CREATE TABLE t (way text);
	CREATE TABLE indexed AS SELECT g AS a FROM generate_series(1, 1000) g;
	CREATE TABLE scanned AS SELECT g AS a FROM generate_series(1, 20000) g;
	CREATE ROLE careless SUPERUSER LOGIN;
	ALTER ROLE careless SET synchronous_commit = off;
	CREATE DATABASE careless;
	ALTER DATABASE careless SET synchronous_commit = off;
	CREATE FUNCTION lowering() RETURNS void LANGUAGE sql SET synchronous_commit = off
		AS $$ INSERT INTO t VALUES ('function') $$;
	CREATE PROCEDURE committing() LANGUAGE plpgsql
		AS $$ BEGIN INSERT INTO t VALUES ('procedure'); COMMIT; END $$;
	CREATE TABLE deferred (a int);
	CREATE FUNCTION lowering_late() RETURNS trigger LANGUAGE plpgsql
		AS $$ BEGIN PERFORM set_config('synchronous_commit', 'off', true); RETURN NULL; END $$;
	CREATE CONSTRAINT TRIGGER late AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION lowering_late();
	BEGIN; INSERT INTO t VALUES ('commit prepared'); PREPARE TRANSACTION 'commit prepared';
	BEGIN; INSERT INTO t VALUES ('rollback prepared'); PREPARE TRANSACTION 'rollback prepared';
});
$primary->safe_psql('careless', 'CREATE TABLE t (way text)');
my $standby = new_standby($primary, 'standby');
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'standby'");
$primary->reload;
$primary->poll_query_until('postgres', q{SELECT sync_state = 'sync' FROM pg_stat_replication}) or die 'no synchronous standby';

my ($status, undef, $stderr) = $primary->psql('postgres', 'SELECT 1',
	connstr => $primary->connstr('postgres') . q{ options='-c polar_commit_floor=off'});
like($stderr, qr/parameter "polar_commit_floor" cannot be changed now/, 'a connection cannot bring a floor of its own');

my $off = 'SET synchronous_commit = off';
# name, parameters of the connection, commands before, the command that is to wait (one that begins with "extended:" so), the level after
my @ways = (
	[ 'off by SET', {}, [$off], q{INSERT INTO t VALUES ('set')}, 'off' ],
	[ 'local by SET', {}, ['SET synchronous_commit = local'], q{INSERT INTO t VALUES ('local')}, 'local' ],
	[ 'remote_write by SET', {}, ['SET synchronous_commit = remote_write'], q{INSERT INTO t VALUES ('remote_write')}, 'remote_write' ],
	[ 'off by SET LOCAL', {}, [ 'BEGIN', 'SET LOCAL synchronous_commit = off', q{INSERT INTO t VALUES ('set local')} ], 'COMMIT', 'on' ],
	[ 'off by the connection', { options => '-c synchronous_commit=off' }, [], q{INSERT INTO t VALUES ('options')}, 'off' ],
	[ 'off by the role', { user => 'careless' }, [], q{INSERT INTO t VALUES ('role')}, 'off' ],
	[ 'off by the database', { database => 'careless' }, [], q{INSERT INTO t VALUES ('database')}, 'off' ],
	[ 'off by a function', {}, [], 'SELECT lowering()', 'on' ],
	[ 'off in a function', {}, [], q{INSERT INTO t SELECT set_config('synchronous_commit', 'off', false)}, 'off' ],
	[ 'off by a deferred trigger', {}, [], 'INSERT INTO deferred VALUES (1)', 'on' ],
	[ 'a procedure', {}, [$off], 'CALL committing()', 'off' ],
	[ 'a DO block', {}, [$off], q{DO $$ BEGIN INSERT INTO t VALUES ('do'); COMMIT; END $$}, 'off' ],
	[ 'a block with an exception', {}, [$off],
		q{DO $$ BEGIN INSERT INTO t VALUES ('a'); PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN INSERT INTO t VALUES ('exception'); END $$}, 'off' ],
	[ 'a savepoint', {}, [ $off, 'BEGIN', 'SAVEPOINT s', q{INSERT INTO t VALUES ('savepoint')}, 'RELEASE s' ], 'COMMIT', 'off' ],
	[ 'several commands', {}, [$off], q{INSERT INTO t VALUES ('several'); INSERT INTO t VALUES ('several')}, 'off' ],
	[ 'the extended protocol', {}, [$off], q{extended:INSERT INTO t VALUES ('extended')}, 'off' ],
	[ 'PREPARE TRANSACTION', {}, [ $off, 'BEGIN', q{INSERT INTO t VALUES ('prepare')} ], q{PREPARE TRANSACTION 'prepare'}, 'off' ],
	[ 'COMMIT PREPARED', {}, [$off], q{COMMIT PREPARED 'commit prepared'}, 'off' ],
	[ 'COMMIT AND CHAIN', {}, [ $off, 'BEGIN', q{INSERT INTO t VALUES ('chain')} ], 'COMMIT AND CHAIN', 'off' ],
	[ 'a parallel CREATE TABLE AS', {}, [ $off, 'SET debug_parallel_query = on' ], 'CREATE TABLE parallel AS SELECT count(*) FROM scanned', 'off' ],
	[ 'CREATE INDEX CONCURRENTLY', {}, [$off], 'CREATE INDEX CONCURRENTLY ON indexed (a)', 'off' ],
	[ 'ANALYZE', {}, [$off], 'ANALYZE scanned', 'off' ],
	[ 'CREATE DATABASE', { database => 'careless' }, [], 'CREATE DATABASE made', 'off' ],
);

# Each waits while the standby is away, for nothing but standbys.
my %client;
foreach my $way (@ways)
{
	my ($name, $parameters, $before) = @$way;
	$client{$name} = Floe::Test::Protocol->new($primary, %$parameters);
	foreach my $command (@$before) { $client{$name}->query($command); $client{$name}->until_ready; }
}
my $free = Floe::Test::Protocol->new($primary, options => '-c synchronous_commit=off');
my $stock = Floe::Test::Protocol->new($primary, options => '-c synchronous_commit=off');
$standby->stop;
foreach my $way (@ways)
{
	my ($name, undef, undef, $command) = @$way;
	if ($command =~ s/^extended://) { $client{$name}->extended($command); }
	else { $client{$name}->query($command); }
}
foreach my $way (@ways)
{
	my ($name) = @$way;
	ok($primary->poll_query_until('postgres', 'SELECT wait_event = $$SyncRep$$ FROM pg_stat_activity WHERE pid = ' . $client{$name}->pid),
		"waits: $name");
}

# What leaves no WAL to commit does not wait.
foreach my $command ('SELECT count(*) FROM scanned', 'SET debug_parallel_query = on', 'SELECT count(*) FROM scanned', 'BEGIN', 'COMMIT',
	'BEGIN', q{INSERT INTO t VALUES ('rolled back')}, 'ROLLBACK', q{ROLLBACK PREPARED 'rollback prepared'}, 'NOTIFY a', 'CHECKPOINT')
{
	$free->query($command);
	like(join(', ', $free->until_ready), qr/\bC \w.*, Z/, "does not wait: $command");
}

foreach my $way (@ways)
{
	my ($name) = @$way;
	is($client{$name}->arrived, 0, "nothing is acknowledged: $name");
}
$standby->start;
foreach my $way (@ways)
{
	my ($name, undef, undef, undef, $level) = @$way;
	like(join(', ', $client{$name}->until_ready), qr/C \w[\w ]*, Z/, "is acknowledged when the standby is back: $name");
	$client{$name}->query('SHOW synchronous_commit');
	like(join(', ', $client{$name}->until_ready), qr/D $level,/, "and the level is what it was: $name");
}
is($standby->safe_psql('postgres', 'SELECT count(*) FROM t'), 17, 'the standby has what was acknowledged');

# Which of the standby's answers is waited for
$primary->wait_for_replay_catchup($standby);
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die 'replay goes on';
$free->query(q{INSERT INTO t VALUES ('flushed')});
like(join(', ', $free->until_ready), qr/C INSERT/, 'the floor "on" is satisfied by what the standby has flushed');
my $above = Floe::Test::Protocol->new($primary, options => '-c synchronous_commit=remote_apply');
$above->query(q{INSERT INTO t VALUES ('above the floor')});
$primary->append_conf('postgresql.conf', 'polar_commit_floor = remote_apply');
$primary->reload;
$primary->poll_query_until('postgres', 'SHOW polar_commit_floor', 'remote_apply') or die 'the floor is not set';
$free->query(q{INSERT INTO t VALUES ('applied')});
foreach my $client ($above, $free)
{
	ok($primary->poll_query_until('postgres', 'SELECT wait_event = $$SyncRep$$ FROM pg_stat_activity WHERE pid = ' . $client->pid),
		$client == $above ? 'a level above the floor stays' : 'the floor "remote_apply" waits for replay');
	is($client->arrived, 0, 'and nothing is acknowledged');
}
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
foreach my $client ($above, $free) { like(join(', ', $client->until_ready), qr/C INSERT/, 'it is when the standby has replayed it'); }

# pg_receivewal writes at once and flushes when a segment is complete.
$standby->stop;
$primary->append_conf('postgresql.conf', "polar_commit_floor = remote_write\nsynchronous_standby_names = ''");
$primary->reload;
$primary->poll_query_until('postgres', 'SHOW polar_commit_floor', 'remote_write') or die 'the floor is not set';
my $directory = PostgreSQL::Test::Utils::tempdir;
$primary->command_ok([ 'pg_receivewal', '-D' => $directory, '--slot' => 'written', '--create-slot' ], 'a slot');
my $receiver = IPC::Run::start([ 'pg_receivewal', '-D' => $directory, '--slot' => 'written', '-s' => 1, '-d' => $primary->connstr . ' application_name=written' ],
	'>' => \my $out, '2>' => \my $err);
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'written'");
$primary->reload;
$primary->poll_query_until('postgres', q{SELECT sync_state = 'sync' AND write_lsn IS NOT NULL FROM pg_stat_replication}) or die "no receiver: $err";
$free->query(q{INSERT INTO t VALUES ('written')});
like(join(', ', $free->until_ready), qr/C INSERT/, 'the floor "remote_write" is satisfied by what the standby has written');
$primary->append_conf('postgresql.conf', 'polar_commit_floor = on');
$primary->reload;
$primary->poll_query_until('postgres', 'SHOW polar_commit_floor', 'on') or die 'the floor is not set';
my $last = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
$free->query(q{INSERT INTO t VALUES ('flushed')});
ok($primary->poll_query_until('postgres', "SELECT write_lsn > '$last'::pg_lsn FROM pg_stat_replication"), 'a receiver that has written');
ok($primary->poll_query_until('postgres', 'SELECT wait_event = $$SyncRep$$ FROM pg_stat_activity WHERE pid = ' . $free->pid), 'is not enough for the floor "on"');
is($free->arrived, 0, 'and nothing is acknowledged');
$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
like(join(', ', $free->until_ready), qr/C INSERT/, 'it is when the segment is flushed');
$receiver->signal('TERM');
$receiver->finish;

# Without synchronous_standby_names nobody is waited for, and the local flush is.
$primary->append_conf('postgresql.conf', "synchronous_standby_names = ''\nwal_writer_delay = 10s\nwal_writer_flush_after = 1GB");
$primary->reload;
$primary->poll_query_until('postgres', 'SHOW synchronous_standby_names', '') or die 'the names are still set';
$primary->poll_query_until('postgres', 'SHOW wal_writer_delay', '10s') or die 'the delay is not set';
# of so many commits, those that are not flushed when they are acknowledged
sub unflushed
{
	my $count = 0;
	foreach (1 .. 50)
	{
		$stock->query(q{INSERT INTO t VALUES ('local'); SELECT 1});
		$stock->until_ready;
		$stock->query('SELECT pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn()');
		$count++ if grep { $_ eq 'D t' } $stock->until_ready;
	}
	return $count;
}
is(unflushed(), 0, 'a commit at the level off is flushed locally');
$primary->append_conf('postgresql.conf', 'polar_commit_floor = off');
$primary->reload;
$primary->poll_query_until('postgres', 'SHOW polar_commit_floor', 'off') or die 'the floor is not off';
cmp_ok(unflushed(), '>', 0, 'without the floor it is not');
$primary->stop;
done_testing();
