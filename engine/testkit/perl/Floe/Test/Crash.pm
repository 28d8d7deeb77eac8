
=pod

=head1 NAME

Floe::Test::Crash - end an instance as a power failure would

=head1 SYNOPSIS

  use Floe::Test::Crash qw(crash crash_at_injection_point crash_postmaster);

  crash($cluster);                          # at once
  crash_at_injection_point($cluster, 'name', 'INSERT ...');
  crash_postmaster($cluster);               # and its children end by themselves

=head1 DESCRIPTION

PostgreSQL::Test::Cluster::kill9 kills only the postmaster: its children live on for a moment and may
still write. These functions stop the postmaster first, so that it can neither notice nor restart
anything, kill every child, and then the postmaster. What the operating system has accepted stays
written, as after kill -9 of everything; the cluster can be started again.

=cut

package Floe::Test::Crash;

use strict;
use warnings FATAL => 'all';
use Carp;
use Exporter 'import';
use POSIX ();
use PostgreSQL::Test::Utils;
use Floe::Test::Wait qw(wait_until);

our @EXPORT_OK = qw(crash crash_at_injection_point crash_postmaster);

# The children of a process, by /proc: their number and order change until the parent is stopped.
sub _children
{
	my ($parent) = @_;
	my @children;
	foreach my $stat (glob '/proc/[0-9]*/stat')
	{
		open my $in, '<', $stat or next;
		my $line = <$in>;
		close $in;
		# The command may hold blanks and parentheses; what follows the last one is fixed.
		next unless defined $line && $line =~ /^(\d+) \(.*\) \S (\d+) /s;
		push @children, $1 if $2 == $parent;
	}
	return @children;
}

# Gone means reaped: a zombie's number in postmaster.pid would keep the instance from starting again. The first process of
# some systems reaps every other second, or never; so what loses its parent becomes a child of the test.
my %prctl = (x86_64 => 157, aarch64 => 167);
my $PR_SET_CHILD_SUBREAPER = 36;
my $machine = (POSIX::uname())[4];
syscall($prctl{$machine}, $PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) if $prctl{$machine};

sub _wait_until_gone
{
	my @processes = @_;
	# waitpid sets it, also for a test that is ending
	local ($?, $!);
	my $gone = sub {
		waitpid $_, POSIX::WNOHANG() foreach @processes;
		return !grep { -e "/proc/$_" } @processes;
	};
	wait_until($gone, 'all processes of the crashed instance to be gone');
	return;
}

=pod

=over

=item crash(cluster)

Kills the postmaster and all its children with SIGKILL and waits until none is left.

=cut

sub crash
{
	my ($cluster) = @_;
	my $postmaster = $cluster->{_pid} or croak 'the instance does not run';
	kill 'STOP', $postmaster;
	my @children = _children($postmaster);
	kill 'KILL', @children;
	$cluster->kill9;
	_wait_until_gone($postmaster, @children);
	return;
}

=pod

=item crash_postmaster(cluster)

Kills the postmaster alone and waits until its children have noticed and none is left.

=cut

sub crash_postmaster
{
	my ($cluster) = @_;
	my $postmaster = $cluster->{_pid} or croak 'the instance does not run';
	kill 'STOP', $postmaster;
	my @children = _children($postmaster);
	$cluster->kill9;
	_wait_until_gone($postmaster, @children);
	return;
}

=pod

=item crash_at_injection_point(cluster, point, sql)

Runs the statements in a session of their own until they reach the injection point, and crashes
there. The extension injection_points must exist in database postgres. Returns when the instance is
gone.

=back

=cut

sub crash_at_injection_point
{
	my ($cluster, $point, $sql) = @_;
	$cluster->safe_psql('postgres', qq{SELECT injection_points_attach('$point', 'wait')});
	my $session = $cluster->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/ready/, "\\echo ready\n$sql;\n");
	$cluster->poll_query_until('postgres',
		qq{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'InjectionPoint' AND wait_event = '$point'}
	) or croak qq(no process reached the injection point "$point");
	crash($cluster);
	# The session's connection is gone; quitting it may say so.
	eval { $session->quit };
	return;
}

1;
