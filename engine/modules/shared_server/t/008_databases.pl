# A session that nobody serves uses its database as any other does; a worker that serves nobody does not. What a session has
# counted can be seen once it has been answered, whichever workers counted it.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session settle);
use Floe::Test::Wait qw(wait_until);

my $node = new_shared('shared', q{
polar_ss_debug_force_migrate = on
polar_ss_backend_max_count = 4
});
my $port = port($node);
$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN CREATEDB; CREATE ROLE guest LOGIN; GRANT pg_signal_backend TO owner');

sub connected { return Floe::Test::Protocol->to_port($port, @_); }

sub parked
{
	my ($client) = @_;
	return wait_until(sub { return session($node, $client, 'state') eq 'parked'; }, 'the session to be parked');
}

# The SQLSTATE, message and detail of a command that fails; nothing if it does not
sub refused
{
	my ($user, $text) = @_;
	my ($status, undef, $stderr) = $node->psql('postgres', $text,
		extra_params => [ '-U', $user, '-v', 'VERBOSITY=verbose' ], on_error_die => 0);
	return $status == 0 ? '' : join ' ', $stderr =~ /ERROR:\s+(\S+):/, $stderr =~ /DETAIL:\s+(.*)/;
}

# parked sessions hold their database
$node->safe_psql('postgres', 'CREATE DATABASE d OWNER owner');
my @client = map { connected(database => 'd', user => 'guest') } 1 .. 2;
is(ask($_, 'SELECT 1'), '1', 'a session of the database') foreach @client;
parked($_) foreach @client;
is(refused('owner', 'DROP DATABASE d'), '55006 There are 2 other sessions using the database.', 'parked sessions hold their database');
is(ask($client[0], 'SELECT current_database()'), 'd', 'and have lost nothing');

# workers without a session do not
close $_->socket foreach @client;
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM polar_stat_session WHERE datname = 'd'}) or die 'sessions stay';
is($node->safe_psql('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = 'd'}), 't', 'free workers of the database are there');
is(refused('owner', 'DROP DATABASE d'), '', 'and do not hold it');

# by force
$node->safe_psql('postgres', 'CREATE DATABASE d OWNER owner');
my ($superuser, $guest) = (connected(database => 'd'), connected(database => 'd', user => 'guest'));
ask($_, 'SELECT 1') foreach $superuser, $guest;
parked($_) foreach $superuser, $guest;
is(refused('owner', 'DROP DATABASE d WITH (FORCE)'), '42501 Only roles with the SUPERUSER attribute may terminate processes of roles with the SUPERUSER attribute.', "a superuser's session is not ended by force of another's");
is(ask($guest, 'SELECT 1'), '1', 'then nobody is');
ask($superuser, 'SELECT 1');
parked($_) foreach $superuser, $guest;
close $superuser->socket;
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM polar_stat_session WHERE datname = 'd'}) or die 'a session stays';
# its worker is a superuser's as long as it is there
wait_until(sub { return refused('owner', 'DROP DATABASE d WITH (FORCE)') eq ''; }, 'the database to be dropped by force');
eval { ask($guest, 'SELECT 1') };
like($@, qr/57P01|terminating connection|closed/, 'parked sessions are ended by force');
is($node->safe_psql('postgres', q{SELECT count(*) FROM polar_stat_session WHERE datname = 'd'}), '0', 'and gone');

# what is counted
$node->safe_psql('postgres', 'CREATE TABLE t (id int); INSERT INTO t VALUES (1)');
my $counter = connected();
foreach my $n (1 .. 6)
{
	ask($counter, 'SELECT * FROM t');
	# this one counts in another worker
	is(ask($counter, q{SELECT pg_stat_force_next_flush()}), '', 'the next statement sees what was counted') if $n == 6;
}
is(ask($counter, q{SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 't'}), '6', 'six scans in several workers');
is(ask($counter, q{SELECT pg_stat_get_xact_numscans('t'::regclass)}), '0', 'none of which is this transaction\'s');

# temporary tables leave nothing in the worker, those of a transaction that was rolled back neither
my ($former, $later) = map { connected() } 1 .. 2;
foreach my $ends (['', 'DROP TABLE temporary'], ['', 'DROP TABLE temporary'], [ 'BEGIN;', 'ROLLBACK' ], [ 'BEGIN;', 'ROLLBACK' ])
{
	is(ask($former, "$ends->[0] CREATE TEMP TABLE temporary AS SELECT 1 AS a; SELECT a FROM temporary; $ends->[1]"), '1', 'a temporary table');
	parked($former);
	is(ask($later, 'SET temp_buffers = 100; SELECT pg_my_temp_schema(); RESET temp_buffers'), '0', 'of which the next session finds nothing');
	parked($later);
}

# and who waits for that worker is served by another
$node->append_conf('postgresql.conf', "polar_ss_backend_max_count = 1\npolar_ss_stall_limit = '1min'");
$node->reload;
my @waiting = map { connected() } 1 .. 4;
foreach my $n (1 .. 5)
{
	ask($former, 'BEGIN; CREATE TEMP TABLE temporary AS SELECT 1 AS a');
	settle($node, 1);
	$_->query('SELECT 1') foreach @waiting;
	wait_until(sub { return !grep { session($node, $_, 'state') ne 'waiting' } @waiting; }, 'the others to wait');
	ask($former, 'DROP TABLE temporary; COMMIT');
	is(join(' ', map { map { /^[DE] (.*)/ } $_->until_ready } @waiting), '1 1 1 1', 'who waited is answered');
}
$node->stop;
done_testing();
