# Clients that come and go, in every way a client can, leave neither files nor memory, nor anything for those that stay.
use strict;
use warnings FATAL => 'all';
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Time::HiRes qw(time);
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask processes);

my $node = new_shared('shared', q{
polar_ss_backend_max_count = 4
log_min_messages = fatal
});
my $port = port($node);
my $seed = $ENV{FLOE_TEST_SEED} // time;
my $minutes = $ENV{FLOE_TEST_MINUTES} // ($ENV{FLOE_TEST_LONG} ? 60 : 0);
note "seed $seed";
srand $seed;
$node->safe_psql('postgres', 'CREATE TABLE t (a int, b text); CREATE ROLE guest LOGIN; GRANT INSERT, SELECT ON t TO guest');

sub one_of { return $_[ int rand @_ ]; }
sub raw { return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp') || die "could not connect: $!"; }
sub message { my ($type, $body) = @_; return $type . pack('N', 4 + length $body) . $body; }

# What somebody does between coming and going; what is under way then is broken off
my @visits = (
	sub { my ($client) = @_; ask($client, q{SET app.visitor = '1'; PREPARE p AS SELECT $1::text; EXECUTE p('x')}); return; },
	sub { my ($client) = @_; ask($client, 'SELECT 1') for 1 .. 5; syswrite $client->socket, message('X', ''); return; },
	sub { my ($client) = @_; $client->query('SELECT pg_sleep(0.002), repeat(md5(a::text), 500) FROM generate_series(1, 200) a'); return; },
	sub { my ($client) = @_; ask($client, q{BEGIN; INSERT INTO t VALUES (-1, 'must not stay')}); return; },
	sub { my ($client) = @_; $client->query('COPY t FROM STDIN'); $client->until(qr/^G/); syswrite $client->socket, message('d', "-2\tmust not stay\n" x 50); return; },
	sub { my ($client) = @_; $client->query('COPY (SELECT repeat(md5(a::text), 100) FROM generate_series(1, 2000) a) TO STDOUT'); $client->until(qr/^H/); return; },
	sub { my ($client) = @_; ask($client, one_of('CREATE TEMP TABLE mine AS SELECT 1 AS a', 'BEGIN; CREATE TEMP TABLE mine AS SELECT 1 AS a; ROLLBACK')); return; },
	sub { my ($client) = @_; ask($client, one_of('LISTEN visitors', 'SELECT pg_advisory_lock(' . int(rand 1e9) . ')', 'BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT 1; COMMIT', q{SELECT set_config('app.large', repeat('x', 150000), false) IS NULL})); return; },
	sub { my ($client) = @_; ask($client, 'SELECT 1'); syswrite $client->socket, substr message('Q', 'SELECT 1' . ' ' x 300 . "\0"), 0, 1 + int rand 300; return; },
	sub { my ($client) = @_; $client->parse('s', 'SELECT $1::text'); $client->until_ready; $client->run('s', 'x'); return; },
	sub { my ($client) = @_; ask($client, 'SELECT 1/0'); return; },
);

# and who does not get so far
my @strangers = (
	sub { return; },
	sub { my ($socket) = @_; syswrite $socket, substr pack('N N a*', 23, 196608, "user\0guest\0\0"), 0, 1 + int rand 12; return; },
	sub { my ($socket) = @_; syswrite $socket, pack('N N a*', 8 + length "user\0nobody\0\0", 196608, "user\0nobody\0\0"); return; },
	sub { my ($socket) = @_; syswrite $socket, pack('N N N N', 16, 80877102, 1 << 30, 0); return; },
	sub { my ($socket) = @_; syswrite $socket, pack('N N', 8, 80877103); return; },
);

my @stays = map { Floe::Test::Protocol->to_port($port) } 0 .. 5;
foreach my $n (0 .. $#stays) { ask($stays[$n], "SET app.n = '$n'; PREPARE mine AS SELECT $n"); }
my $wrong = 0;

sub look
{
	foreach my $n (0 .. $#stays)
	{
		my $answer = ask($stays[$n], 'SHOW app.n; EXECUTE mine; SELECT pg_my_temp_schema()');
		next if $answer eq "$n\n$n\n0";
		$wrong++;
		diag("session $n: $answer");
	}
	return;
}

my $visits = 0;

# Visits, a few of them at a time, until somebody says that it is enough
sub visit_until
{
	my ($enough) = @_;
	my @inside;
	while (!$enough->())
	{
		my $socket = raw();
		if (rand() < 0.1) { one_of(@strangers)->($socket); }
		else { one_of(@visits)->(Floe::Test::Protocol->over($socket, user => one_of('guest', scalar getpwuid $<))); }
		push @inside, $socket;
		while (@inside > 4)
		{
			my $leaves = splice @inside, int rand @inside, 1;
			setsockopt $leaves, SOL_SOCKET, SO_LINGER, pack('l l', 1, 0) if rand() < 0.3;
			close $leaves;
		}
		$visits++;
		look() if $visits % 50 == 0;
	}
	close $_ foreach @inside;
	$node->poll_query_until('postgres', q{SELECT count(*) = } . @stays . q{ FROM polar_stat_session}) or die 'sessions stay';
	return;
}

# What each process that stays has open, and what memory; workers come and go
sub cost
{
	my ($pid) = @_;
	my @files = glob "/proc/$pid/fd/*";
	my ($data) = slurp_file("/proc/$pid/status") =~ /^VmData:\s+(\d+) kB/m or die 'no VmData';
	return (scalar @files, $data);
}

sub lasting
{
	my $postmaster = $node->safe_psql('postgres', q{SELECT pg_read_file('postmaster.pid')}) =~ /^(\d+)/ ? $1 : die 'no pid';
	my @pids = ($postmaster, processes($node, 'shared server dispatcher'));
	return map { $_ => [ cost($_) ] } @pids;
}

my $warm = $minutes ? 2000 : 100;
visit_until(sub { return $visits >= $warm; });
my %before = lasting();
my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM t');
my $began = time;
visit_until(sub { return $minutes ? time - $began >= $minutes * 60 : $visits >= 4 * $warm; });
look();
my %after = lasting();
is($wrong, 0, "after $visits visits those that stayed have what they had");
is(join(' ', sort keys %after), join(' ', sort keys %before), 'the processes are those of before');
cmp_ok(scalar keys %after, '>=', 2, 'postmaster and dispatchers');
my ($files, $memory) = (0, 0);
foreach my $pid (sort keys %after)
{
	my ($more_files, $more) = map { $after{$pid}[$_] - ($before{$pid} // $after{$pid})->[$_] } 0 .. 1;
	cmp_ok($more_files, '<=', 3, "process $pid has $after{$pid}[0] files open, $more_files more than before");
	cmp_ok($more, '<=', 1024, "and $after{$pid}[1] kB of memory, $more more");
	$files = $more_files if $more_files > $files;
	$memory = $more if $more > $memory;
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), $rows, 'what was broken off is not there');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relpersistence = 't'}), '0', 'nor a temporary table');
close $_->socket foreach @stays;
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM polar_stat_session') or fail('sessions stay');
is($node->safe_psql('postgres', 'SELECT sum(session_memory) FROM polar_stat_dispatcher'), '0', 'no session, no memory of sessions');
$node->stop;
my @stumbles = grep { /TRAP|PANIC|terminated by signal|image differs|AddressSanitizer|runtime error/ } split /\n/, slurp_file($node->logfile);
is(join("\n", @stumbles), '', 'and the server did not stumble');
append_to_file($ENV{FLOE_TEST_RESULT}, "visits $visits\nminutes " . int((time - $began) / 60) . "\nwrong_sessions $wrong\nfiles $files\nmemory $memory\nstumbles " . @stumbles . "\n") if $ENV{FLOE_TEST_RESULT};
done_testing();
