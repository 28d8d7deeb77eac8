# Each of several dispatchers has a relay of its own for TLS clients: what is wrong with one costs its clients only, and can be seen.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared await_dispatchers port ask session processes);
use Floe::Test::TlsProgram qw(tls_client leave);
use Floe::Test::Wait qw(wait_until);

plan skip_all => 'there is no program "openssl" to make certificates with' unless grep { -x "$_/openssl" } split /:/, $ENV{PATH};

my $node = new_shared('shared', q{
polar_ss_dispatcher_count = 3
polar_ss_debug_force_migrate = on
polar_ss_backend_max_count = 9
polar_ss_share_tls = on
});
my $port = port($node);
my $data = $node->data_dir;
system_log('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-keyout', "$data/server.key",
	'-out', "$data/server.crt") == 0 or die 'openssl made no certificate';
chmod 0600, "$data/server.key" or die $!;
$node->append_conf('postgresql.conf', 'ssl = on');
$node->restart;
await_dispatchers($node);
my $user = getpwuid $<;

sub asked { my ($statement) = @_; return $node->safe_psql('postgres', $statement); }
sub dispatcher_of { my ($client) = @_; return session($node, $client, 'dispatcher'); }
sub dispatchers { my ($condition) = @_; return asked("SELECT string_agg(dispatcher::text, ' ' ORDER BY dispatcher) FROM polar_stat_dispatcher WHERE $condition"); }

# a relay each
wait_until(sub { dispatchers(q{relay_last_active > now() - interval '3 s'}) eq '1 2 3'; }, 'three relays that answer');
my @client = map { tls_client($port, $user) } 1 .. 6;
is(join(' ', sort map { dispatcher_of($_) } @client), '1 1 2 2 3 3', 'TLS clients are shared out');
my $who = q{SELECT ssl, version ~ '^TLSv1\.[23]$' FROM pg_stat_ssl WHERE pid = pg_backend_pid()};
foreach my $round (1 .. 3)
{
	is(join(' ', map { ask($_, $who) } @client), join(' ', ('t|t') x 6), "each is what it is in whichever worker, $round");
}
is(asked('SELECT count(*) FROM polar_stat_dispatcher WHERE binds > 0'), '3', 'they have moved at each');

# one relay does nothing
my @relays = processes($node, 'TLS relay');
is(scalar @relays, 3, 'there are three relays');
my $still = q{relay_last_active < now() - interval '4 s' AND last_active > now() - interval '3 s'};
kill 'STOP', $relays[0];
my $dispatcher;
wait_until(sub { $dispatcher = dispatchers($still); }, 'a relay that is stopped to be seen');
like($dispatcher, qr/^[123]$/, 'it is that of one dispatcher');
my @others = grep { dispatcher_of($_) ne $dispatcher } @client;
is(join(' ', map { ask($_, $who) } @others), join(' ', ('t|t') x 4), 'clients of the others do not notice');
kill 'CONT', $relays[0];
wait_until(sub { dispatchers($still) eq ''; }, 'it to go on');
is(join(' ', map { ask($_, $who) } @client), join(' ', ('t|t') x 6), 'and its clients with it');

# one is killed
kill 'KILL', $relays[0];
foreach my $client (grep { dispatcher_of($_) eq $dispatcher } @client) { ok(!defined eval { ask($client, 'SELECT 1') }, 'with a relay its clients are gone'); }
is(join(' ', map { ask($_, $who) } @others), join(' ', ('t|t') x 4), 'no others');
wait_until(sub { dispatchers(q{relay_last_active > now() - interval '3 s'}) eq '1 2 3'; }, 'another relay');
push @others, map { tls_client($port, $user) } 1 .. 2;
is(join(' ', map { dispatcher_of($_) } @others[ -2, -1 ]), "$dispatcher $dispatcher", 'who comes then has the new one');
is(join(' ', map { ask($_, $who) } @others), join(' ', ('t|t') x 6), 'and all are served');

# a reload reaches each
my $served = sub { my $text = `echo | openssl s_client -connect 127.0.0.1:$port -starttls postgres 2>/dev/null | openssl x509 -noout -subject 2>/dev/null`; return $text; };
system_log('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=another', '-keyout', "$data/server.key",
	'-out', "$data/server.crt") == 0 or die 'openssl made no certificate';
chmod 0600, "$data/server.key" or die $!;
$node->reload;
wait_until(sub { (grep { $served->() =~ /another/ } 1 .. 6) == 6; }, 'a new certificate at each');
pass('a new certificate is used by all of them');

# the end
my @last = (processes($node, 'TLS relay'), processes($node, 'TLS keeper'));
is(scalar @last, 9, 'a relay and two keepers each');
$node->stop('fast');
is((grep { join(' ', $_->until_closed) =~ /^E FATAL: terminating connection/ } @others), 6, 'a stop tells every client');
leave($_) foreach @client[ 0 .. 5 ], @others[ -2, -1 ];
wait_until(sub { !grep { -e "/proc/$_" } @last; }, 'they end with the server');
is($node->log_contains('TRAP|PANIC|session image differs|could not restore the session'), '', 'nothing went wrong that nobody saw');
done_testing();
