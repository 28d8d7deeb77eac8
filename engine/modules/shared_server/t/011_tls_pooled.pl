# TLS clients are shared too, through the relay: what the stock code asks of TLS is asked for and answered truly wherever the session
# is, no byte is lost between client and worker, and what goes wrong in the relay costs its own clients only.
use strict;
use warnings FATAL => 'all';
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session processes);
use Floe::Test::TlsProgram qw(tls_socket tls_client program_of leave leave_socket);
use Floe::Test::Wait qw(wait_until);

plan skip_all => 'there is no program "openssl" to make certificates with' unless grep { -x "$_/openssl" } split /:/, $ENV{PATH};

my $node = new_shared('shared', q{
polar_ss_debug_force_migrate = on
polar_ss_backend_max_count = 40
polar_ss_safe_modules = 'sslinfo'
polar_ss_dispatcher_count = 1
});
my $port = port($node);
my $data = $node->data_dir;
my $keys = $node->basedir . '/keys';
mkdir $keys or die $!;

sub openssl { system_log('openssl', @_) == 0 or die "openssl @_"; return; }

sub make_certificate
{
	my ($name, $subject) = @_;
	openssl('req', '-new', '-newkey', 'rsa:2048', '-nodes', '-subj', $subject, '-keyout', "$keys/$name.key", '-out', "$keys/$name.csr");
	openssl('ca', '-batch', '-notext', '-config', "$keys/ca.cnf", '-in', "$keys/$name.csr", '-out', "$keys/$name.crt");
	chmod 0600, "$keys/$name.key" or die $!;
	return;
}

sub use_certificate
{
	my ($name) = @_;
	foreach my $kind (qw(crt key))
	{
		my $bytes = slurp_file("$keys/$name.$kind");
		open my $file, '>', "$data/server.$kind" or die $!;
		print $file $bytes;
		close $file;
		chmod 0600, "$data/server.$kind" or die $!;
	}
	return;
}

append_to_file("$keys/ca.cnf", qq{
[ca]
default_ca = it
[it]
dir = $keys
database = $keys/index
serial = $keys/serial
new_certs_dir = $keys
certificate = $keys/ca.crt
private_key = $keys/ca.key
default_md = sha256
default_days = 2
default_crl_days = 2
policy = any
unique_subject = no
[any]
commonName = supplied
organizationName = optional
});
append_to_file("$keys/index", '');
append_to_file("$keys/serial", "1000\n");
openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=authority', '-keyout', "$keys/ca.key", '-out', "$keys/ca.crt");
make_certificate('first', '/CN=localhost');
make_certificate('second', '/CN=localhost/O=second');
make_certificate('carol', '/CN=carol/O=Floe');
make_certificate('dave', '/CN=dave');
make_certificate('revoked', '/CN=carol');
openssl('ca', '-config', "$keys/ca.cnf", '-revoke', "$keys/revoked.crt");
openssl('ca', '-config', "$keys/ca.cnf", '-gencrl', '-out', "$keys/ca.crl");
use_certificate('first');

$node->safe_psql('postgres', q{
	SET password_encryption = 'scram-sha-256';
	CREATE ROLE secret LOGIN PASSWORD 'right'; CREATE ROLE plain LOGIN; CREATE ROLE either LOGIN; CREATE ROLE carol LOGIN; CREATE ROLE dave LOGIN;
	CREATE EXTENSION sslinfo;
	CREATE TABLE loaded (a int, b text); GRANT ALL ON loaded TO PUBLIC});
open my $hba, '>', "$data/pg_hba.conf" or die $!;
print $hba "local all all trust\nhostssl all secret 127.0.0.1/32 scram-sha-256\nhostnossl all plain 127.0.0.1/32 trust\n",
	"host all either 127.0.0.1/32 trust\nhostssl all carol,dave 127.0.0.1/32 cert\n";
close $hba;
$node->append_conf('postgresql.conf', qq{
ssl = on
ssl_ca_file = '$keys/ca.crt'
ssl_crl_file = '$keys/ca.crl'
polar_ss_share_tls = on
log_connections = on
});
$node->restart;
$ENV{PGPASSWORD} = 'right';

sub relays { return processes($node, 'TLS relay'); }
sub keepers { return processes($node, 'TLS keeper'); }
sub one_relay { return wait_until(sub { my @found = relays(); @found == 1 && $found[0]; }, 'a relay'); }

sub asked
{
	my ($statement, $parameters) = @_;
	my ($status, $out, $error) = $node->psql('postgres', $statement, connstr => "host=127.0.0.1 port=$port dbname=postgres $parameters");
	return $status == 0 ? $out : $error;
}

sub by_certificate { my ($name) = @_; return tls_client($port, $name, '-cert', "$keys/$name.crt", '-key', "$keys/$name.key"); }

sub sessions { my ($count) = @_; return $node->poll_query_until('postgres', "SELECT count(*) = $count FROM polar_stat_session") || fail("there are not $count sessions"); }
sub state_is { my ($client, $state) = @_; return wait_until(sub { session($node, $client, 'state') eq $state; }, "the session to be $state"); }
sub logged { my ($offset, $pattern) = @_; return wait_until(sub { slurp_file($node->logfile, $offset) =~ $pattern; }, "the log to say $pattern"); }

sub reload
{
	my ($name, $value) = @_;
	$node->append_conf('postgresql.conf', "$name = $value");
	$node->reload;
	return $node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'") || die "$name is not $value";
}

my $relay = one_relay();
like(slurp_file("/proc/$relay/cmdline"), qr/TLS relay/, 'there is a relay');
unlike(slurp_file("/proc/$relay/maps"), qr/^\S+ .w.s /m, 'which shares no memory with anybody');

# what the stock code asks of TLS, and what it tells
my $who = q{SELECT ssl, version ~ '^TLSv1\.[23]$', bits >= 128, (SELECT count(*) FROM polar_stat_session) FROM pg_stat_ssl WHERE pid = pg_backend_pid()};
foreach my $way (qw(postgres direct))
{
	is(asked($who, "user=secret sslmode=verify-full host=localhost hostaddr=127.0.0.1 sslrootcert=$keys/ca.crt sslnegotiation=$way channel_binding=require"), 't|t|t|1',
		"TLS ($way negotiation), a password bound to it, and a shared session");
}
like(asked('SELECT 1', 'user=secret sslmode=require password=wrong'), qr/password authentication failed/, 'a wrong password is wrong');
like(asked('SELECT 1', 'user=secret sslmode=disable'), qr/no pg_hba.conf entry for host "127.0.0.1", user "secret".*no encryption/, 'a role that must use TLS must');
like(asked('SELECT 1', 'user=plain sslmode=require'), qr/no pg_hba.conf entry for host "127.0.0.1", user "plain".*SSL encryption/, 'one that must not must not');
my $carol = "user=carol sslmode=require sslcert=$keys/carol.crt sslkey=$keys/carol.key";
my $certificate = q{SELECT current_user, system_user, client_dn, issuer_dn, client_serial IS NOT NULL, ssl_client_cert_present(), ssl_client_dn_field('organizationName'),
	ssl_issuer_field('commonName'), ssl_client_serial() = client_serial, inet_client_addr(), inet_server_port() FROM pg_stat_ssl WHERE pid = pg_backend_pid()};
is(asked($certificate, $carol), "carol|cert:O=Floe,CN=carol|/CN=carol/O=Floe|/CN=authority|t|t|Floe|authority|t|127.0.0.1|$port", 'a certificate names its role, and can be seen');
like(asked('SELECT 1', $carol =~ s/user=carol/user=dave/r), qr/certificate authentication failed for user "dave"/, 'and no other');
like(asked('SELECT 1', 'user=carol sslmode=require sslcert=/nonexistent'), qr/connection requires a valid client certificate/, 'who needs one needs one');
like(asked('SELECT 1', "user=carol sslmode=require sslcert=$keys/revoked.crt sslkey=$keys/revoked.key"), qr/certificate revoked|closed the connection/, 'a revoked one is none');
ok($node->log_contains('Client certificate verification failed at depth 0: certificate revoked'), 'and the log says so');
ok($node->log_contains('connection authorized: user=carol database=postgres .*SSL enabled \(protocol=TLSv1.3, cipher=TLS_'), 'the log tells of TLS as ever');
sessions(0);

# sessions of two roles and of none of TLS on the same workers: each is what it is, wherever it is
my ($first, $second) = (by_certificate('carol'), by_certificate('dave'));
my ($tls, $plain) = (tls_client($port, 'either'), Floe::Test::Protocol->to_port($port, user => 'either'));
my $mine = q{SELECT pg_backend_pid(), ssl, coalesce(client_dn, 'none') FROM pg_stat_ssl WHERE pid = pg_backend_pid()};
my (%workers, @wrong);
wait_until(sub { ask($tls, $mine) =~ /^(\d+)/; $workers{$1} = 1; return keys %workers > 1; }, 'a session to move');
%workers = ();
foreach my $round (1 .. 12)
{
	foreach my $of ([ $first, 't|/CN=carol/O=Floe', 'carol' ], [ $second, 't|/CN=dave', 'dave' ], [ $tls, 't|none', 'either' ], [ $plain, 'f|none', 'either' ])
	{
		my ($client, $expected, $role) = @$of;
		my ($worker, $seen) = ask($client, $mine) =~ /^(\d+)\|(.*)/;
		push @wrong, "$role: $seen" if $seen ne $expected;
		$workers{$role}{$worker} = 1;
	}
}
is("@wrong", '', 'each session is its own, also where one with TLS follows one without');
cmp_ok(scalar keys %{ $workers{either} }, '>', 1, 'although they moved');
is(session($node, $_, 'mode'), 'shared', 'and are shared') foreach $first, $tls;
is(ask($first, q{SET app.a = 'kept'; SELECT current_setting('app.a')}), 'kept', 'it has state');
is(ask($first, q{SELECT current_setting('app.a')}), 'kept', 'that goes with it');
leave($second);

# what has been said in parts, and at once
syswrite $tls->socket, "Q\0\0";
state_is($tls, 'parked');
is(ask($plain, 'SELECT 1'), '1', 'who has said a part of a message holds no worker');
is(session($node, $tls, 'state'), 'parked', 'and waits');
syswrite $tls->socket, pack('n', 4 + 9) . "SELECT 2\0";
is(join(' ', $tls->until_ready), 'T D 2 C SELECT 1 Z I', 'until it has said the rest');
my $many = join '', map { 'Q' . pack('N a*', 4 + length("SELECT $_\0"), "SELECT $_\0") } 1 .. 500;
syswrite $tls->socket, $many;
is(join(' ', map { my ($row) = grep { /^D/ } $tls->until_ready; $row =~ s/D //r; } 1 .. 500), join(' ', 1 .. 500), 'five hundred messages at once are answered, in order');
my $long = 'SELECT length(\'' . 'x' x 300_000 . "')\0";
my $message = 'Q' . pack('N a*', 4 + length $long, $long);
foreach my $piece (unpack '(a70000)*', $message) { syswrite $tls->socket, $piece; ask($plain, 'SELECT 1'); }
is(join(' ', $tls->until_ready), 'T D 300000 C SELECT 1 Z I', 'one that is longer than all buffers is whole');
$tls->extended('SELECT 3') foreach 1 .. 20;
is(join(' ', map { my ($row) = grep { /^D/ } $tls->until_ready; $row } 1 .. 20), join(' ', ('D 3') x 20), 'so are pipelines of the extended protocol');

# much, both ways
my $rows = 100_000;
my $dump = $node->basedir . '/rows';
asked(qq{\\copy (SELECT g, repeat(md5(g::text), 4) FROM generate_series(1, $rows) g) TO '$dump'}, 'user=either sslmode=require');
is(asked(qq{\\copy loaded FROM '$dump'\nSELECT count(*), sum(a), bool_and(b = repeat(md5(a::text), 4)) FROM loaded}, 'user=either sslmode=require'),
	"$rows|" . ($rows * ($rows + 1) / 2) . '|t', 'megabytes come as they were sent');
is(asked('TRUNCATE loaded; SELECT count(*) FROM loaded', 'user=either sslmode=require'), '0', 'and go');

# a client that dies in the middle
my $dying = tls_client($port, 'either');
$dying->query('COPY loaded FROM STDIN');
$dying->until(qr/^G/);
syswrite $dying->socket, 'd' . pack('N a*', 4 + 4, "1\tx\n") for 1 .. 1000;
kill 'KILL', program_of($dying);
leave($dying);
sessions(3);
is(asked('SELECT count(*) FROM loaded', 'user=either sslmode=require'), '0', 'of what a client that died had begun nothing is left');

# a client that does not read
my $deaf = tls_client($port, 'either');
$deaf->query("SELECT repeat('x', 1000) FROM generate_series(1, 100000)");
is(ask($tls, 'SELECT 4'), '4', 'one that does not read keeps no other waiting');
leave($deaf);
sessions(3);

# requests to cancel, under TLS
my $cancelled = tls_client($port, 'either');
$cancelled->query('SELECT pg_sleep(1000)');
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'});
my $request = tls_socket($port, '-starttls', 'postgres');
syswrite $request, pack('N N N a*', 12 + length $cancelled->key, 80877102, $cancelled->pid, $cancelled->key);
is((grep { $_ eq 'E ERROR: canceling statement due to user request' } $cancelled->until_ready), 1, 'a request to cancel may come by TLS');
sysread $request, my $end, 1;
leave_socket($request);
leave($cancelled);

# what is no handshake
sub raw
{
	my (@said) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp') or die $!;
	my $got = '';
	foreach my $piece (@said)
	{
		syswrite $socket, $piece;
		next if $piece ne $said[0] || @said == 1;
		sysread $socket, $got, 1;
	}
	return ($socket, $got);
}
sub ends { my ($socket) = @_; local $SIG{ALRM} = sub { die 'it goes on' }; alarm 60; 1 while sysread $socket, my $piece, 4096; alarm 0; return 1; }
my $ask_tls = pack 'N N', 8, 80877103;
my $offset = -s $node->logfile;
my ($garbage, $answer) = raw($ask_tls, "\x16\x03\x01" . 'nonsense' x 400);
is($answer, 'S', 'who asks for TLS is promised it');
ok(ends($garbage), 'who then says something else is left');
logged($offset, qr/LOG:  could not accept SSL connection/);
$offset = -s $node->logfile;
ok(ends((raw("${ask_tls}more"))[0]), 'who says more before it has been answered is left');
logged($offset, qr/received unencrypted data after SSL request/);
ok(ends((raw("\x16" . "\x03\x01\x40\x00" . 'nonsense' x 4000))[0]), 'so is who begins with what only looks like TLS');
$offset = -s $node->logfile;
my $direct = tls_socket($port);
ok(ends($direct), 'and who begins with TLS without naming the protocol');
leave_socket($direct);
logged($offset, qr/received direct SSL connection request without ALPN/);
sessions(3);

# many that begin and say nothing more
reload('authentication_timeout', '3s');
my @silent = map { (raw($ask_tls, ''))[0] } 1 .. 150;
is(asked('SELECT 5', 'user=secret sslmode=require channel_binding=require'), '5', 'handshakes that stand still keep nobody waiting');
ok(ends($_), 'and end') foreach @silent[ 0, -1 ];
close $_ foreach @silent;
sessions(3);
reload('authentication_timeout', '1min');
is(ask($first, 'SELECT 6'), '6', 'sessions do not');

# a new certificate
sub certificate_seen
{
	my $text = `echo | openssl s_client -connect 127.0.0.1:$port -starttls postgres 2>/dev/null | openssl x509 -noout -subject 2>/dev/null`;
	return $text =~ /second/ ? 'second' : $text =~ /localhost/ ? 'first' : 'none';
}
is(certificate_seen(), 'first', 'the certificate is the first');
use_certificate('second');
$node->reload;
wait_until(sub { certificate_seen() eq 'second'; }, 'the second certificate');
is(asked('SELECT 7', 'user=secret sslmode=require channel_binding=require'), '7', 'a new certificate is used from a reload on, and passwords bound to it');
is(ask($first, $mine) =~ s/^\d+\|//r, 't|/CN=carol/O=Floe', 'who was there stays');
is(one_relay(), $relay, 'by the same relay');
$offset = -s $node->logfile;
append_to_file("$data/server.key", 'no key');
open my $key, '>', "$data/server.key" or die $!;
print $key "no key\n";
close $key;
$node->reload;
logged($offset, qr/could not load private key file(?s:.*)could not load private key file/);
is(certificate_seen(), 'second', 'what cannot be loaded changes nothing');
use_certificate('second');
reload('ssl_min_protocol_version', 'TLSv1.3');
wait_until(sub { asked('SELECT 1', 'user=secret sslmode=require ssl_max_protocol_version=TLSv1.2') =~ /protocol version/; }, 'TLS 1.2 to be refused');
is(asked('SELECT 1', 'user=secret sslmode=require ssl_max_protocol_version=TLSv1.3'), '1', 'settings of TLS hold');

# the relay dies
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
kill 'KILL', $relay;
ok(!defined eval { ask($tls, 'SELECT 1') }, 'with the relay its clients are gone');
is(ask($plain, 'SELECT 8'), '8', 'others are not');
is(asked($who, 'user=secret sslmode=require'), 't|t|t|1', 'who comes then is shared again');
isnt(one_relay(), $relay, 'by another relay');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'the server has not noticed');
leave($_) foreach $first, $tls;
sessions(1);

# there is none for long
my @keepers = keepers();
kill 'STOP', @keepers;
kill 'KILL', one_relay();
is(asked($who, 'user=secret sslmode=require channel_binding=require'), 't|t|t|0', 'without a relay TLS clients get a backend');
kill 'CONT', @keepers;
wait_until(sub { asked($who, 'user=secret sslmode=require') eq 't|t|t|1'; }, 'TLS clients to be shared');

# keepers die, one after another
foreach my $round (1 .. 3)
{
	wait_until(sub { keepers() == 2; }, 'two keepers');
	kill 'KILL', (keepers())[ $round % 2 ];
	kill 'KILL', one_relay();
	wait_until(sub { asked($who, 'user=secret sslmode=require') eq 't|t|t|1'; }, 'TLS clients to be shared');
}
pass('a keeper has a successor');

# off and on
$tls = tls_client($port, 'either');
reload('polar_ss_share_tls', 'off');
wait_until(sub { asked($who, 'user=secret sslmode=require') eq 't|t|t|0'; }, 'TLS clients to be native');
is(ask($tls, 'SELECT 9'), '9', 'who was shared stays so');
my $old = one_relay();
leave($tls);
wait_until(sub { relays() == 0; }, 'the relay to end with its last client');
pass('then there is no relay');
reload('polar_ss_share_tls', 'on');
wait_until(sub { asked($who, 'user=secret sslmode=require') eq 't|t|t|1'; }, 'TLS clients to be shared');
reload('ssl', 'off');
wait_until(sub { asked('SELECT 1', 'user=either sslmode=require') =~ /server does not support SSL, but SSL was required/; }, 'TLS to be off');
is(asked('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()', 'user=either sslmode=prefer'), 'f', 'without a certificate nothing is encrypted, nor promised');
reload('ssl', 'on');
wait_until(sub { asked($who, 'user=secret sslmode=require') eq 't|t|t|1'; }, 'TLS to be on');

# the end
$tls = tls_client($port, 'either');
ask($tls, 'SELECT 1');
$node->safe_psql('postgres', 'SELECT polar_ss_drain()');
my $administrator = 'E FATAL: terminating connection due to administrator command';
is(join(' ', $tls->until_closed), $administrator, 'who is drained is told');
leave($tls);
$tls = tls_client($port, 'either');
ask($tls, 'SELECT 1');
my $last = one_relay();
$node->stop('fast');
is(join(' ', $tls->until_closed), $administrator, 'so is who is there when the server stops');
leave($tls);
wait_until(sub { !-e "/proc/$last"; }, 'the relay to end');
pass('and the relay ends with it');
is($node->log_contains('TRAP|PANIC|session image differs|could not restore the session'), '', 'nothing went wrong that nobody saw');
done_testing();
