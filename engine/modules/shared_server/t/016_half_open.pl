# Clients whose host is gone without a word: the keepalives of the settings find them, whoever has their sockets, and what they held is
# free again. Played in a network of the test's own, whose only interface is taken down.
use strict;
use warnings FATAL => 'all';

# before PostgreSQL's modules redirect what this process writes
BEGIN
{
	my @own_network = qw(unshare --user --net --map-current-user --keep-caps);
	if (!defined $ENV{FLOE_TEST_OWN_NETWORK})
	{
		$ENV{FLOE_TEST_OWN_NETWORK} = system("@own_network ip link set lo up >/dev/null 2>&1") == 0;
		exec @own_network, $^X, (map { "-I$_" } grep { !ref } @INC), $0 if $ENV{FLOE_TEST_OWN_NETWORK};
	}
}

use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session);
use Floe::Test::Wait qw(wait_until);

plan skip_all => 'no network of its own: user namespaces are not allowed, or ip is missing' if !$ENV{FLOE_TEST_OWN_NETWORK};
sub network { return system_or_bail('ip', 'link', 'set', 'lo', $_[0]); }
network('up');

my $node = new_shared('shared', q{
polar_ss_backend_max_count = 2
polar_ss_debug_force_migrate = on
max_connections = 20
authentication_timeout = 5s
tcp_keepalives_idle = 1
tcp_keepalives_interval = 1
tcp_keepalives_count = 2
tcp_user_timeout = 3000
});
my $port = port($node);
sub connected { return Floe::Test::Protocol->to_port($port, @_); }

my ($holder, $asker, @parked) = map { connected() } 1 .. 6;
ask($_, 'SELECT 1') foreach @parked, $asker;
my $silent = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp') or die $!;
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM polar_stat_session WHERE state = 'login'}) or fail('who says nothing is known');
ask($holder, 'CREATE TABLE held (a int)');
ask($holder, 'BEGIN; LOCK TABLE held');
foreach my $client (@parked) { wait_until(sub { return session($node, $client, 'state') eq 'parked'; }, 'it to be parked'); }

# more than the socket's buffers hold, which nobody will read
$asker->query(q{SELECT repeat('x', 1000) FROM generate_series(1, 100000)});
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'ClientWrite'}) or fail('the answer has gone');
is($node->safe_psql('postgres', q{SELECT count(*) FROM polar_stat_session WHERE state <> 'login'}), '6', 'sessions that are parked, in a transaction, and being answered');

network('down');
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM polar_stat_session') or fail('sessions of a host that is gone stay: ' . $node->safe_psql('postgres', 'SELECT state, session_pid FROM polar_stat_session'));
pass('sessions of a host that is gone end');
is($node->safe_psql('postgres', q{SET lock_timeout = '10s'; ALTER TABLE held ADD b int; SELECT 1}), '1', 'what they held is free');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'}), '0', 'nobody waits for them');

network('up');
my @next = map { connected() } 1 .. 6;
is(join(' ', map { ask($_, 'SELECT count(*) FROM held') } @next), '0 0 0 0 0 0', 'the next clients are served');
$node->stop;
is($node->log_contains('TRAP|PANIC|session image differs'), '', 'nothing went wrong that nobody saw');
done_testing();
