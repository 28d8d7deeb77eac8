# While there is a floor, neither a cancel nor a timeout ends a wait for standbys, and the cancel reaches nothing else.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::Standby qw(new_primary new_standby);

my $primary = new_primary('primary', q{
autovacuum = off
max_prepared_transactions = 10
polar_commit_floor = on
});
$primary->safe_psql('postgres', q{
	CREATE TABLE t (way text);
	CREATE PROCEDURE twice() LANGUAGE plpgsql AS
		$$ BEGIN INSERT INTO t VALUES ('procedure'); COMMIT; INSERT INTO t VALUES ('after'); END $$;
	CREATE PROCEDURE endless() LANGUAGE plpgsql AS
		$$ BEGIN LOOP INSERT INTO t VALUES ('endless'); COMMIT; END LOOP; END $$;
	BEGIN; INSERT INTO t VALUES ('prepared'); PREPARE TRANSACTION 'prepared';
	BEGIN; INSERT INTO t VALUES ('prepared'); PREPARE TRANSACTION 'rolled back'});
my $standby = new_standby($primary, 'standby');
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'standby'");
$primary->reload;
$primary->poll_query_until('postgres', q{SELECT sync_state = 'sync' FROM pg_stat_replication}) or die 'no synchronous standby';

my $refused = qr/could not cancel the wait for synchronous replication because of "polar_commit_floor"/;
my $given_up = qr/canceling wait for synchronous replication due to user request/;

sub floor_becomes
{
	my ($floor) = @_;
	$primary->append_conf('postgresql.conf', "polar_commit_floor = $floor");
	$primary->reload;
	$primary->poll_query_until('postgres', 'SHOW polar_commit_floor', $floor) or die "the floor is not $floor";
}

sub waits
{
	my ($client, $what) = @_;
	ok($primary->poll_query_until('postgres', 'SELECT wait_event = $$SyncRep$$ FROM pg_stat_activity WHERE pid = ' . $client->pid), $what);
}

# cancel(client): and wait until it was refused, as the log says, since the client need not hear of it
sub cancel
{
	my ($client) = @_;
	my $offset = -s $primary->logfile;
	$primary->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $client->pid . ')');
	$primary->wait_for_log($refused, $offset);
	waits($client, 'and goes on waiting');
}

my $simple = Floe::Test::Protocol->new($primary);
my $returning = Floe::Test::Protocol->new($primary);
my $extended = Floe::Test::Protocol->new($primary, options => '-c synchronous_commit=off');
my $procedure = Floe::Test::Protocol->new($primary, options => '-c synchronous_commit=local -c statement_timeout=100ms');
my $prepared = Floe::Test::Protocol->new($primary, options => '-c statement_timeout=100ms');
my $rolled_back = Floe::Test::Protocol->new($primary, options => '-c statement_timeout=100ms');
$standby->stop;

# A cancel
$simple->query(q{INSERT INTO t VALUES ('simple')});
waits($simple, 'a command of the simple protocol waits');
for (1 .. 3)
{
	cancel($simple);
	is(join(', ', $simple->until(qr/^N/)), 'N WARNING: could not cancel the wait for synchronous replication because of "polar_commit_floor"',
		'the client is told why');
}
is($simple->arrived, 0, 'and nothing else');

$returning->query(q{INSERT INTO t VALUES ('returning') RETURNING way});
waits($returning, 'one that returns rows waits');
cancel($returning);
$extended->extended(q{INSERT INTO t VALUES ('extended')});
waits($extended, 'one of the extended protocol waits');
cancel($extended);
is($_->arrived, 0, 'nothing that the buffer holds goes to the client with a warning') foreach $returning, $extended;

# statement_timeout
$procedure->query('CALL twice()');
like(join(', ', $procedure->until($refused)), $refused, 'statement_timeout does not end the wait of a procedure');
waits($procedure, 'and it waits');
$prepared->query(q{COMMIT PREPARED 'prepared'});
like(join(', ', $prepared->until($refused)), $refused, 'nor that of COMMIT PREPARED');
waits($prepared, 'and it waits');
$rolled_back->query(q{ROLLBACK PREPARED 'rolled back'});
like(join(', ', $rolled_back->until($refused)), $refused, 'nor that of ROLLBACK PREPARED');
waits($rolled_back, 'and it waits');

$standby->start;
foreach my $client ($simple, $returning, $extended, $procedure, $prepared, $rolled_back)
{
	like(join(', ', $client->until_ready), qr/C (INSERT 0 1|CALL|COMMIT PREPARED|ROLLBACK PREPARED), Z I$/, 'the standby is back, and the answer comes without an error');
	$client->query(q{SELECT pg_sleep(0.01), 'next'});
	is((grep { /^[DCE]/ } $client->until_ready)[0], 'D |next', 'the cancel does not reach the next command');
}
is($standby->safe_psql('postgres', q{SELECT string_agg(way, ' ' ORDER BY way) FROM t}), 'after extended prepared procedure returning simple',
	'the standby has everything');
$simple->query('SELECT pg_sleep(1000)');
$primary->poll_query_until('postgres', 'SELECT wait_event = $$PgSleep$$ FROM pg_stat_activity WHERE pid = ' . $simple->pid) or die 'it does not sleep';
$primary->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $simple->pid . ')');
like(join(', ', $simple->until_ready), qr/E ERROR: canceling statement due to user request/, 'a later cancel has its effect');

# The floor is changed while sessions wait: they heed it at once. A wait that has begun ends when standbys have the commit, or,
# without a floor, by a cancel as in PostgreSQL; what has not begun to commit waits as the new floor says.
$standby->stop;
$simple->query(q{INSERT INTO t VALUES ('simple')});
waits($simple, 'a commit waits');
floor_becomes('off');
waits($simple, 'it goes on waiting without a floor');
is($simple->arrived, 0, 'and nothing is acknowledged');
$primary->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $simple->pid . ')');
like(join(', ', $simple->until_ready), $given_up, 'and a cancel ends it');

$simple->query(q{INSERT INTO t VALUES ('simple')});
waits($simple, 'a commit waits without a floor');
my $endless = Floe::Test::Protocol->new($primary, options => '-c synchronous_commit=off');
$endless->query('CALL endless()');
$primary->poll_query_until('postgres', q{SELECT count(*) > 10 FROM t WHERE way = 'endless'}) or die 'nothing is committed';
isnt($primary->safe_psql('postgres', 'SELECT wait_event = $$SyncRep$$ FROM pg_stat_activity WHERE pid = ' . $endless->pid), 't',
	'a procedure that commits and commits does not');
floor_becomes('remote_write');
waits($endless, 'with a floor the same call does');
cancel($endless);
cancel($simple);
$standby->start;
like(join(', ', $simple->until_ready), qr/C INSERT 0 1, Z I$/, 'the standby ends the wait');
$primary->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $endless->pid . ')');
unlike(join(', ', $endless->until_closed), qr/\bC /, 'the procedure ends with its connection');

# Without synchronous_standby_names the wait ends, as in PostgreSQL: who may do that may lower the floor, too.
$standby->stop;
$simple->query(q{INSERT INTO t VALUES ('simple')});
waits($simple, 'a commit waits');
$primary->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$primary->reload;
like(join(', ', $simple->until_ready), qr/C INSERT 0 1, Z I$/, 'until no standby is asked for any more');
$primary->stop;
done_testing();
