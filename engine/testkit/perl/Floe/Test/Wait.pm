
=pod

=head1 NAME

Floe::Test::Wait - wait for a condition, never for a time

=head1 SYNOPSIS

  use Floe::Test::Wait qw(wait_until wait_for_restart);

  wait_until(sub { -e $file }, 'the file to appear');

=cut

package Floe::Test::Wait;

use strict;
use warnings FATAL => 'all';
use Carp;
use Exporter 'import';
use List::Util qw(max min);
use PostgreSQL::Test::Utils;
use Floe::Test::Poll;
use Time::HiRes qw(time usleep);

our @EXPORT_OK = qw(wait_until wait_for_restart);

=pod

=over

=item wait_until(condition, what [, seconds])

Asks every 20 ms until the condition holds and returns its value; croaks with "timed out waiting for
<what>" after the given time (default: PostgreSQL's own bound for tests, 180 s). A question that takes long, because it
starts a psql, is asked less often: who waits leaves the machine to what is waited for.

=cut

sub wait_until
{
	my ($condition, $what, $seconds) = @_;
	my $deadline = time + ($seconds // $PostgreSQL::Test::Utils::timeout_default);
	while (1)
	{
		my $asked = time;
		my $value = $condition->();
		return $value if $value;
		my $now = time;
		croak "timed out waiting for $what" if $now > $deadline;
		usleep(min(max(20_000, 1_000_000 * ($now - $asked)), 250_000));
	}
}

=pod

=item wait_for_restart(node, offset)

Waits until the postmaster has started all processes again, by what it has logged since that offset. Who asks the server
meanwhile is refused, now and then before the query was taken, and then psql's pipe breaks.

=back

=cut

sub wait_for_restart
{
	my ($node, $offset) = @_;
	return wait_until(
		sub { slurp_file($node->logfile, $offset) =~ /all server processes terminated; reinitializing.*database system is ready to accept/s },
		'all processes to be started again');
}

1;
