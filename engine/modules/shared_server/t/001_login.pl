# A login through the shared port is the stock one: the password is asked for, pg_hba.conf sees the client's own address, cancel
# requests reach the session, also one that has just logged in, and nobody without the token is believed.
use strict;
use warnings FATAL => 'all';
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session);
use Floe::Test::Wait qw(wait_until);

my $node = new_shared('shared');
my $port = port($node);
$node->safe_psql('postgres', q{
	SET password_encryption = 'scram-sha-256';
	CREATE ROLE with_password LOGIN PASSWORD 'right';
	CREATE ROLE with_clear_password LOGIN PASSWORD 'right';
	CREATE ROLE elsewhere LOGIN});
open my $file, '>', $node->data_dir . '/pg_hba.conf' or die $!;
print $file qq{
local all all trust
host all with_password 127.0.0.1/32 scram-sha-256
host all with_clear_password 127.0.0.1/32 password
host all elsewhere 127.0.0.1/32 reject
host all all 127.0.0.1/32 trust
};
close $file;
$node->reload;

my $connection = "host=127.0.0.1 port=$port dbname=postgres";
my ($status, $out, $error);

($status, $out, $error) = $node->psql('postgres', 'SELECT inet_client_addr(), inet_server_port()', connstr => $connection);
is($out, "127.0.0.1|$port", 'the client and the port are the real ones');

{
	local $ENV{PGPASSWORD} = 'right';
	($status, $out, $error) = $node->psql('postgres', 'SELECT current_user', connstr => "$connection user=with_password");
	is($out, 'with_password', 'the right password');
	local $ENV{PGPASSWORD} = 'wrong';
	($status, $out, $error) = $node->psql('postgres', 'SELECT current_user', connstr => "$connection user=with_password");
	like($error, qr/password authentication failed/, 'the wrong password');
}
($status, $out, $error) = $node->psql('postgres', 'SELECT 1', connstr => "$connection user=elsewhere");
like($error, qr/pg_hba.conf rejects connection for host "127.0.0.1", user "elsewhere"/, 'pg_hba.conf judges by the address of the client');
($status, $out, $error) = $node->psql('postgres', 'SELECT 1', connstr => "$connection user=nobody");
like($error, qr/role "nobody" does not exist/, 'no such role');
($status, $out, $error) = $node->psql('postgres', 'SELECT 1', connstr => "host=127.0.0.1 port=$port dbname=nothing");
like($error, qr/database "nothing" does not exist/, 'no such database');

my $client = Floe::Test::Protocol->to_port($port);
cmp_ok($client->pid, '>=', 2**30, 'a session has an id of its own');
is(session($node, $client, 'state || $$ $$ || mode'), 'bound shared', 'the view shows it');
is(ask($client, 'SELECT host(client_addr) || $$:$$ || client_port FROM pg_stat_activity WHERE pid = pg_backend_pid()'),
	'127.0.0.1:' . $client->socket->sockport, 'pg_stat_activity shows the address');

# cancel
sub cancel
{
	my ($pid, $key) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die $!;
	syswrite $socket, pack('N N N a*', 12 + length $key, 80877102, $pid, $key);
	sysread $socket, my $end, 1;
	return;
}
my $active = 'SELECT count(*) = 1 FROM pg_stat_activity WHERE state = $$active$$ AND query LIKE $$%pg_sleep%$$ AND pid <> pg_backend_pid()';
$client->query('SELECT pg_sleep(1000)');
$node->poll_query_until('postgres', $active) or die 'not active';
cancel($client->pid, 'abcd');
is($node->safe_psql('postgres', $active), 't', 'a wrong key cancels nothing');
cancel($client->pid, $client->key);
is((grep { /^E ERROR: canceling statement due to user request/ } $client->until_ready), 1, 'the key of the session does');
is(ask($client, 'SELECT 1'), '1', 'and the session goes on');

# protocol 3.2 has longer keys, of which a part is none
my $newer = Floe::Test::Protocol->to_port($port, version => 196610);
is(session($node, $newer, 'state || $$ $$ || mode'), 'bound shared', 'a client of protocol 3.2 shares backends, too');
is(length $newer->key, 32, 'its key has the length of that protocol');
$newer->query('SELECT pg_sleep(1000)');
$node->poll_query_until('postgres', $active) or die 'not active';
cancel($newer->pid, substr $newer->key, 0, 4);
cancel($newer->pid, substr($newer->key, 0, 31) . ~substr($newer->key, 31));
is($node->safe_psql('postgres', $active), 't', 'a part of it cancels nothing, nor one that differs at its end');
cancel($newer->pid, $newer->key);
is((grep { /^E ERROR: canceling statement due to user request/ } $newer->until_ready), 1, 'the whole key does');
is(ask($newer, 'SELECT 1'), '1', 'and that session goes on');

# COPY waits for a program, which must end too
$client->query(q{COPY (SELECT 1) TO PROGRAM 'exec sleep 1000'});
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'COPY%'}) or die 'not active';
my $copying = session($node, $client, 'worker_pid');
wait_until(sub { return slurp_file("/proc/$copying/task/$copying/children") =~ /\d/; }, 'the program to run');
cancel($client->pid, $client->key);
is((grep { /^E ERROR: program "exec sleep 1000" failed/ } $client->until_ready), 1, 'a cancel reaches the program that COPY waits for');

# who has just logged in, and whom the dispatcher has not heard of: it stops while the password is asked for
sub until_asked
{
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die $!;
	my $startup = "user\0with_clear_password\0database\0postgres\0\0";
	syswrite $socket, pack('N N a*', 8 + length $startup, 196608, $startup);
	sysread $socket, my $asked, 9;
	is($asked, 'R' . pack('N N', 8, 3), 'a password is asked for');
	return $socket;
}
sub say_password { my ($socket) = @_; return syswrite $socket, 'p' . pack('N', 10) . "right\0"; }
sub dispatcher { return $node->safe_psql('postgres', 'SELECT pid FROM polar_stat_dispatcher'); }
local $SIG{PIPE} = 'IGNORE';
my $new = until_asked();
my $dispatcher = dispatcher();
kill 'STOP', $dispatcher;
say_password($new);
my $said = '';
while ($said !~ /Z\x00{3}\x05I\z/ && sysread $new, my $piece, 4096) { $said .= $piece; }
my $id = $said =~ /K\x00{3}\x0c(.{4})/s ? unpack 'N', $1 : die 'no key';
($status, $out, $error) = $node->psql('postgres', "SELECT pg_terminate_backend($id)");
kill 'CONT', $dispatcher;
is($out, 't', 'who has just logged in can be terminated');
$said = '';
while (IO::Select->new($new)->can_read($PostgreSQL::Test::Utils::timeout_default) && sysread $new, my $piece, 4096) { $said .= $piece; }
like($said, qr/C57P01\0/, 'and is told');

# who has no token is not believed
my $socket = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) or die $!;
syswrite $socket, pack('N N a32 l l l', 52, (1234 << 16) + 5690, 'x' x 32, 0, 0, 1);
is(sysread($socket, my $bytes, 1), 0, 'a hand-over without the token is refused without a word');
$socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die $!;
syswrite $socket, pack('N N a32 l l l', 52, (1234 << 16) + 5690, 'x' x 32, 0, 0, 1);
sysread $socket, $bytes, 200;
like($bytes // '', qr/unsupported frontend protocol|^$/, 'nor is one by TCP');

# off: an ordinary backend, which needs the dispatcher no more
$node->append_conf('postgresql.conf', 'polar_enable_shared_server = off');
$node->reload;
$node->poll_query_until('postgres', 'SELECT NOT current_setting($$polar_enable_shared_server$$)::bool');
my $native = Floe::Test::Protocol->to_port($port);
cmp_ok($native->pid, '<', 2**30, 'off: the session is its backend');
is(ask($native, 'SELECT 1'), '1', 'which serves it');
is(ask($client, 'SELECT 1'), '1', 'and the shared one goes on');
$native->query('SELECT pg_sleep(1000)');
$node->poll_query_until('postgres', $active) or die 'not active';
cancel($native->pid, $native->key);
is((grep { /^E ERROR: canceling statement due to user request/ } $native->until_ready), 1, 'and is cancelled by its key');

# who logs in while the dispatcher ends leaves the places of the next one's sessions alone
$node->append_conf('postgresql.conf', 'polar_enable_shared_server = on');
$node->reload;
$node->poll_query_until('postgres', 'SELECT current_setting($$polar_enable_shared_server$$)::bool');
my $late = until_asked();
$dispatcher = dispatcher();
kill 'TERM', $dispatcher;
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM polar_stat_dispatcher WHERE pid <> $dispatcher") or die 'no other dispatcher';
my @next = map { Floe::Test::Protocol->to_port($port) } 0 .. 4;
say_password($late);
$said = '';
while (sysread $late, my $piece, 4096) { $said .= $piece; }
like($said, qr/C57P01\0/, 'who logs in while the dispatcher ends is told');
foreach my $one (@next)
{
	$one->query('SELECT pg_sleep(1000)');
	$node->poll_query_until('postgres', $active) or die 'not active';
	cancel($one->pid, $one->key);
	is((grep { /^E ERROR: canceling statement due to user request/ } $one->until_ready), 1, 'each has its own key');
}
$node->stop;
done_testing();
