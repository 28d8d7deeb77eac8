# A session for which no worker can be started any more ends when it speaks next, with the reason, and does not wait in vain; what
# may pass is waited for.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session settle);
use Floe::Test::Wait qw(wait_until);

# one worker, which goes from pool to pool
my $lines = q{
polar_ss_backend_max_count = 1
polar_ss_reserved_workers = 0
polar_ss_stall_limit = 1h
polar_ss_quantum = 0
polar_ss_session_wait_timeout = 1h
};
my $node = new_shared('shared', $lines . "wal_level = replica\nmax_wal_senders = 4");
my $port = port($node);
$node->safe_psql('postgres', q{
	CREATE ROLE r LOGIN; CREATE ROLE gone LOGIN;
	CREATE DATABASE d; REVOKE CONNECT ON DATABASE d FROM PUBLIC; GRANT CONNECT ON DATABASE d TO r});
my $other = Floe::Test::Protocol->to_port($port);

# The client of a session that has no worker, nor has its pool
sub parked
{
	my (%who) = @_;
	my $client = Floe::Test::Protocol->to_port($port, %who);
	ask($client, 'SELECT 1');
	# of the two workers that there are after a login either may be the one that stays
	settle($node, 1);
	ask($other, 'SELECT 1');
	$node->poll_query_until('postgres', qq{SELECT count(*) = 0 FROM pg_stat_activity WHERE usename = '$who{user}'}) or die 'a worker stays';
	return $client;
}

sub ends
{
	my ($client, $detail, $why) = @_;
	$client->query('SELECT 1');
	is(join(' ', $client->until_closed), 'E FATAL: terminating connection because its role or database has changed', $why);
	is($client->sqlstate . ' ' . $client->detail, "57P01 $detail", 'it is told why, so that its driver connects again');
	return is(ask($other, 'SELECT 1'), '1', 'others go on');
}

my $client = parked(user => 'r');
$node->safe_psql('postgres', 'ALTER ROLE r NOLOGIN');
ends($client, 'role "r" is not permitted to log in', 'a role that may no longer log in');
$node->safe_psql('postgres', 'ALTER ROLE r LOGIN');

$client = parked(user => 'gone');
$node->safe_psql('postgres', 'DROP ROLE gone');
ends($client, 'role "gone" does not exist', 'a role that is no longer there');

$client = parked(user => 'r', database => 'd');
$node->safe_psql('postgres', 'REVOKE CONNECT ON DATABASE d FROM r');
ends($client, 'permission denied for database "d"', 'a role that may no longer connect');
$node->safe_psql('postgres', 'GRANT CONNECT ON DATABASE d TO r');

$client = parked(user => 'r', database => 'd');
$node->safe_psql('postgres', 'ALTER DATABASE d ALLOW_CONNECTIONS false');
ends($client, 'database "d" is not currently accepting connections', 'a database that takes no connections');
$node->safe_psql('postgres', 'ALTER DATABASE d ALLOW_CONNECTIONS true');

# a setting of the role's that it could set when the session began
mkdir $node->basedir . '/place' or die $!;
$node->safe_psql('postgres', 'CREATE TABLESPACE place LOCATION $$' . $node->basedir . '/place$$');
$node->safe_psql('postgres', 'ALTER ROLE r SET default_tablespace = place');
$client = parked(user => 'r');
$node->safe_psql('postgres', 'DROP TABLESPACE place');
ends($client, 'invalid value for parameter "default_tablespace": "place"', 'a setting that nobody could set now');
$node->safe_psql('postgres', 'ALTER ROLE r RESET default_tablespace');

$client = parked(user => 'r');
$node->safe_psql('postgres', 'ALTER ROLE r RENAME TO renamed');
ends($client, 'role "r" does not exist', 'a role that has another name');
$node->safe_psql('postgres', 'ALTER ROLE renamed RENAME TO r');

# what may pass: all places are taken for a moment
$client = parked(user => 'r');
my @taken;
my $free = $node->safe_psql('postgres', q{SELECT current_setting('max_connections')::int - count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'});
push @taken, $node->background_psql('postgres') for 1 .. $free - 1;
$client->query('SELECT 1');
wait_until(sub { return $taken[0]->query_safe('SELECT state FROM polar_stat_session WHERE session_pid = ' . $client->pid) eq 'waiting'; }, 'the session to wait');
$node->wait_for_log(qr/FATAL.*(too many clients|reserved for roles)/, 0);
$_->quit foreach @taken;
is(join(' ', map { /^[DE] (.*)/ } $client->until_ready), '1', 'a session waits for a place that is missing for a moment');

# a standby replays the end of a database
$node->safe_psql('postgres', 'CREATE DATABASE e');
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
my $standby_port = PostgreSQL::Test::Cluster::get_free_port();
$standby->append_conf('postgresql.conf', "polar_ss_port = $standby_port");
$standby->start;
$standby->poll_query_until('postgres', 'SELECT count(*) > 0 FROM polar_stat_dispatcher') or die 'no dispatcher';
my ($in, $beside) = map { Floe::Test::Protocol->to_port($standby_port, database => $_) } 'e', 'postgres';
is(ask($_, 'SELECT pg_is_in_recovery()'), 't', 'a session on a standby') foreach $in, $beside;
$standby->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'e'}) or die 'a worker stays';
$node->safe_psql('postgres', 'DROP DATABASE e');
$node->wait_for_replay_catchup($standby);
$in->query('SELECT 1');
is(join(' ', $in->until_closed), 'E FATAL: terminating connection because its role or database has changed', 'a session whose database a standby has dropped');
is($in->sqlstate . ' ' . $in->detail, '57P01 database "e" does not exist', 'is told so');
is(ask($beside, 'SELECT 1'), '1', 'others go on');
$standby->stop;
$node->stop;
done_testing();
