# TLS through the shared port is the stock code's: what pg_hba.conf asks for is asked for, the password is bound to the channel, and
# the session is native for its whole life. Nothing of it is ever parked, and nobody is talked out of TLS.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session);

plan skip_all => 'there is no program "openssl" to make certificates with' unless grep { -x "$_/openssl" } split /:/, $ENV{PATH};

my $node = new_shared('shared', q{
polar_ss_debug_force_migrate = on
polar_ss_backend_max_count = 2
});
my $port = port($node);
my $data = $node->data_dir;
system_log('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-keyout', "$data/server.key",
	'-out', "$data/server.crt") == 0 or die 'openssl made no certificate';
chmod 0600, "$data/server.key" or die $!;
$node->safe_psql('postgres', q{
	SET password_encryption = 'scram-sha-256';
	CREATE ROLE secret LOGIN PASSWORD 'right'; CREATE ROLE open LOGIN});
open my $hba, '>', "$data/pg_hba.conf" or die $!;
print $hba "local all all trust\nhostssl all secret 127.0.0.1/32 scram-sha-256\nhostnossl all open 127.0.0.1/32 trust\n";
close $hba;
$node->append_conf('postgresql.conf', 'ssl = on');
$node->restart;
$node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM polar_stat_dispatcher') or die 'no dispatcher';
$ENV{PGPASSWORD} = 'right';

sub asked
{
	my ($statement, $parameters) = @_;
	my ($status, $out, $error) = $node->psql('postgres', $statement, connstr => "host=127.0.0.1 port=$port dbname=postgres $parameters");
	return $status == 0 ? $out : $error;
}

my $who = q{SELECT ssl, version ~ '^TLSv1\.[23]$', (SELECT count(*) FROM polar_stat_session) FROM pg_stat_ssl WHERE pid = pg_backend_pid()};
foreach my $way (qw(postgres direct))
{
	is(asked($who, "user=secret sslmode=require sslnegotiation=$way channel_binding=require"), 't|t|0',
		"TLS ($way negotiation), a password bound to it, and no shared session");
}
is(asked(qq{SET app.a = 'kept';\nSELECT pg_backend_pid() AS pid \\gset\nSELECT pg_backend_pid() = :pid, current_setting('app.a');}, 'user=secret sslmode=require'),
	't|kept', 'its backend is its own, although every other session moves');
like(asked('SELECT 1', 'user=secret sslmode=disable'), qr/no pg_hba.conf entry for host "127.0.0.1", user "secret".*no encryption/, 'a role that must use TLS must');
like(asked('SELECT 1', 'user=open sslmode=require'), qr/no pg_hba.conf entry for host "127.0.0.1", user "open".*SSL encryption/, 'one that must not must not');
# the same role may not pass for one that used TLS: a plain session is shared, and stays what it is
my $plain = Floe::Test::Protocol->to_port($port, user => 'open');
is(ask($plain, 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'), 'f', 'a plain session is plain');
is(session($node, $plain, 'mode'), 'shared', 'and shared');

# a server without TLS says so, and is not believed by who asks for it
$node->append_conf('postgresql.conf', 'ssl = off');
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('ssl') = 'off'});
like(asked('SELECT 1', 'user=secret sslmode=require'), qr/server does not support SSL, but SSL was required/, 'without a certificate nothing is encrypted, nor promised');
$node->stop;
done_testing();
