
=pod

=head1 NAME

Floe::Test::Poll - who polls an instance keeps one session

=head1 SYNOPSIS

  use Floe::Test::Poll;

  $cluster->poll_query_until('postgres', 'SELECT ...');

=head1 DESCRIPTION

PostgreSQL::Test::Cluster starts a psql, and with it a backend, for each look. Where several tests wait at a time that is most of
what the machine does, and what they wait for comes later. This module has poll_query_until() ask in one session, every 20 ms; the
session is made anew when the server has ended it. What it returns, and how long it waits, is as before. Each module of the testkit
that waits loads it.

=cut

package Floe::Test::Poll;

use strict;
use warnings FATAL => 'all';
use IO::Select;
use IPC::Open3 qw(open3);
use List::Util qw(max);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Symbol qw(gensym);
use Test::More;
use Time::HiRes qw(time usleep);

my $mark = 'floe_test_poll';

sub _connect
{
	my ($cluster, $dbname) = @_;
	my %session = (err => gensym);
	$session{pid} = open3($session{in}, $session{out}, $session{err},
		$cluster->installed_command('psql'), '--no-psqlrc', '--no-align', '--tuples-only', '--dbname' => $cluster->connstr($dbname), '--file' => '-');
	$session{in}->autoflush(1);
	return \%session;
}

sub _end
{
	my ($session, $in_vain) = @_;
	close $session->{$_} foreach qw(in out err);
	# It may be in the middle of a question that nobody waits for any more
	kill 'TERM', $session->{pid} if $in_vain;
	# waitpid sets it
	local $?;
	waitpid $session->{pid}, 0;
	return;
}

# One look: what psql prints, and what it complains about; undef in the place of the former when the session is over, or the time
sub _ask
{
	my ($session, $query, $deadline) = @_;
	my %got = (out => '', err => '');
	# A psql that has ended no longer reads
	local $SIG{PIPE} = 'IGNORE';
	print { $session->{in} } "$query\n;\n\\echo $mark\n\\warn $mark\n";
	my $left = IO::Select->new($session->{out}, $session->{err});
	while ($left->count)
	{
		my @ready = $left->can_read(max(0, $deadline - time)) or return (undef, $got{err});
		foreach my $handle (@ready)
		{
			my $which = $handle == $session->{out} ? 'out' : 'err';
			my $length = sysread $handle, $got{$which}, 65536, length $got{$which};
			return (undef, $got{err}) unless $length;
			$left->remove($handle) if $got{$which} =~ s/^$mark\n\z//m;
		}
	}
	chomp(@got{qw(out err)});
	return @got{qw(out err)};
}

no warnings 'redefine';

sub PostgreSQL::Test::Cluster::poll_query_until
{
	my ($self, $dbname, $query, $expected) = @_;
	local %ENV = $self->_get_env();
	$expected = 't' unless defined $expected;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	my $session;
	my ($out, $err);
	while (1)
	{
		$session //= _connect($self, $dbname);
		($out, $err) = _ask($session, $query, $deadline);
		my $found = defined $out && $out eq $expected && $err eq '';
		my $over = $found || time > $deadline;
		if ($over || !defined $out)
		{
			_end($session, !$found);
			undef $session;
		}
		last if $over;
		# Who has no session is refused, by a server that starts, or has none to ask
		usleep($session ? 20_000 : 100_000);
	}
	return 1 if defined $out && $out eq $expected && $err eq '';
	diag("poll_query_until timed out executing this query:\n$query\nexpecting this output:\n$expected\nlast actual query output:\n",
		$out // '', "\nwith stderr:\n", $err // '');
	return 0;
}

1;
