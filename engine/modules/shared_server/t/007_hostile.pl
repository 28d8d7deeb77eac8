# Bytes that make no sense, at every state of a connection: they end the connection that sent them, or are answered as natively, and
# nobody else notices. A seed repeats a run.
use strict;
use warnings FATAL => 'all';
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Socket qw(SOL_SOCKET SO_LINGER MSG_DONTWAIT);
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session);

my $node = new_shared('shared', q{
polar_ss_backend_max_count = 3
authentication_timeout = 5s
log_min_messages = fatal
});
my $port = port($node);
my $seed = $ENV{FLOE_TEST_SEED} // time;
my $wanted = $ENV{FLOE_TEST_MESSAGES} // ($ENV{FLOE_TEST_LONG} ? 1_000_000 : 20_000);
note "seed $seed";
srand $seed;
$node->safe_psql('postgres', 'CREATE ROLE guest LOGIN; CREATE ROLE canary LOGIN; CREATE ROLE locked LOGIN');
append_to_file($node->data_dir . '/hba', "host all locked all reject\n" . slurp_file($node->data_dir . '/pg_hba.conf'));
rename $node->data_dir . '/hba', $node->data_dir . '/pg_hba.conf' or die "could not rename: $!";
$node->reload;

sub one_of { return $_[ int rand @_ ]; }
sub garbage { my ($length) = @_; return join '', map { chr int rand 256 } 1 .. $length; }

# what the canaries have they must keep
my @canary = map { Floe::Test::Protocol->to_port($port, user => 'canary') } 0 .. 5;
foreach my $n (0 .. $#canary) { ask($canary[$n], "SET app.n = '$n'; PREPARE mine AS SELECT $n"); }
my $wrong = 0;
my $foreign = 0;

sub look
{
	$foreign += $node->safe_psql('postgres', q{SELECT count(*) FROM polar_stat_worker_pool WHERE usename NOT IN ('guest', 'canary')});
	foreach my $n (0 .. $#canary)
	{
		my $answer = ask($canary[$n], 'SHOW app.n; EXECUTE mine; SELECT current_user');
		next if $answer eq "$n\n$n\ncanary";
		$wrong++;
		diag("canary $n: $answer");
	}
	return;
}

# Most of what a talkative one says is framed well, so that it is listened to for long
my $talkative = 0;

sub message
{
	my ($type, $body) = @_;
	my $length = 4 + length $body;
	$length = one_of(0, 3, $length - 1, $length + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**16) if rand() < ($talkative ? 0.002 : 0.15);
	return $type . pack 'N', $length;
}

sub some_message
{
	my $type = one_of(qw(Q P B E D C S H F d c f p));
	$type = one_of('X', chr int rand 256) if rand() < ($talkative ? 0.002 : 0.2);
	my $body = one_of('', "SELECT 1\0", "\0SELECT \$1\0" . pack('n', 0), "\0\0" . pack('n n n', 0, 0, 0), "\0" . pack('N', 0), "S\0",
		"SHOW app.n\0", "BEGIN\0", "COMMIT\0", "COPY (SELECT 1) TO STDOUT\0", garbage(int rand 60));
	return message($type, $body) . $body;
}

sub some_startup
{
	my $body = one_of(
		pack('N', 196608) . "user\0guest\0database\0postgres\0\0",
		pack('N', 196610) . "user\0guest\0database\0postgres\0_pq_.x\0y\0\0",
		pack('N', 196608) . "user\0locked\0database\0postgres\0\0",
		pack('N', 80877103), pack('N', 80877104), pack('N', 80877102) . garbage(8),
		pack('N', (1234 << 16) + 5690) . garbage(one_of(0, 8, 44, 200)),
		pack('N', 196608) . garbage(30), garbage(12));
	my $length = rand() < 0.3 ? one_of(0, 4, 7, 8, 10000, 10001, 2**31, 2**32 - 1) : 4 + length $body;
	return pack('N', $length) . $body;
}

my $messages = 0;

sub say_it
{
	my ($socket, $bytes) = @_;
	$messages++;
	while (length $bytes)
	{
		my $part = substr $bytes, 0, rand() < ($talkative ? 0.97 : 0.7) ? length $bytes : 1 + int rand 8, '';
		send($socket, $part, MSG_DONTWAIT) // return;
	}
	return;
}

# Reads what there is; is the connection still there?
sub hears
{
	my ($socket) = @_;
	my $bytes;
	while (defined recv($socket, $bytes, 65536, MSG_DONTWAIT)) { return 0 if $bytes eq ''; }
	return $!{EAGAIN} || $!{EWOULDBLOCK};
}

local $SIG{PIPE} = 'IGNORE';
my @open;
for (my $round = 1; $messages < $wanted; $round++)
{
	my $socket;
	$talkative = rand() < 0.5;
	if (rand() < 0.4)
	{
		$socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp') or die "could not connect: $!";
		say_it($socket, rand() < 0.8 ? some_startup() : garbage(1 + int rand 50)) for 1 .. 1 + int rand 2;
	}
	else
	{
		my $client = Floe::Test::Protocol->to_port($port, user => 'guest');
		$socket = $client->socket;
		ask($client, one_of('SELECT 1', 'BEGIN', 'SET work_mem = 100', 'PREPARE p AS SELECT 2', 'LISTEN l')) if rand() < 0.5;
		$client->query('COPY (SELECT 1) TO STDOUT') if rand() < 0.1;
	}
	for (1 .. 1 + int rand($talkative ? 300 : 6))
	{
		last unless hears($socket);
		say_it($socket, some_message());
	}
	push @open, $socket;

	# some stay for a while, and end in different ways
	while (@open > 12)
	{
		my $ending = splice @open, int rand @open, 1;
		setsockopt $ending, SOL_SOCKET, SO_LINGER, pack('l l', 1, 0) if rand() < 0.3;
		shutdown $ending, 1 if rand() < 0.3;
		close $ending;
	}
	look() if $round % 25 == 0;
}
close $_ foreach @open;
look();
is($wrong, 0, "after $messages messages each session has what it had");
is($foreign, 0, 'nobody has a pool who has not logged in');
$node->poll_query_until('postgres', 'SELECT count(*) = ' . @canary . ' FROM polar_stat_session') or fail('sessions stay');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE usename = 'canary' AND wait_event = 'ClientWrite'}), '0', 'nobody is stuck');
$node->stop;
my @crashes = grep { /TRAP|PANIC|terminated by signal|image differs|AddressSanitizer|runtime error/ } split /\n/, slurp_file($node->logfile);
is(join("\n", @crashes), '', 'and nothing has crashed');
append_to_file($ENV{FLOE_TEST_RESULT}, "messages $messages\ncrashes " . @crashes . "\nwrong_sessions " . ($wrong + $foreign) . "\n") if $ENV{FLOE_TEST_RESULT};
done_testing();
