
=pod

=head1 NAME

Floe::Test::TlsProgram - a client whose TLS a program does, so that a test talks with the server in plain

=head1 SYNOPSIS

  use Floe::Test::TlsProgram qw(tls_socket tls_client leave);

  my $client = tls_client($port, 'somebody');
  $client->query('SELECT 1');
  leave($client);

=cut

package Floe::Test::TlsProgram;

use strict;
use warnings FATAL => 'all';
use Exporter 'import';
use POSIX ();
use Socket;
use Floe::Test::Protocol;

our @EXPORT_OK = qw(tls_socket tls_client program_of leave leave_socket);

my %program_of;

=pod

=over

=item tls_socket(port [, option of openssl s_client …])

A socket on which is said and heard in plain what the server says and hears under TLS.

=cut

sub tls_socket
{
	my ($port, @options) = @_;
	socketpair(my $ours, my $its, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die $!;
	my $pid = fork // die $!;
	if ($pid == 0)
	{
		open STDIN, '<&', $its or POSIX::_exit(1);
		open STDOUT, '>&', $its or POSIX::_exit(1);
		open STDERR, '>', '/dev/null' or POSIX::_exit(1);
		close $ours;
		exec('openssl', 's_client', '-quiet', '-no_ign_eof', '-nocommands', '-connect', "127.0.0.1:$port", @options) or POSIX::_exit(1);
	}
	close $its;
	$program_of{$ours} = $pid;
	return $ours;
}

=pod

=item tls_client(port, user [, option of openssl s_client …])

A Floe::Test::Protocol over it, which has asked for TLS and logged in.

=cut

sub tls_client
{
	my ($port, $user, @options) = @_;
	return Floe::Test::Protocol->over(tls_socket($port, '-starttls', 'postgres', @options), user => $user);
}

=pod

=item program_of(client)

The process of its program.

=item leave(client)

=item leave_socket(socket)

Closes it, and waits for its program to end.

=back

=cut

sub program_of { my ($client) = @_; return $program_of{ $client->socket }; }
sub leave { my ($client) = @_; return leave_socket($client->socket); }

sub leave_socket
{
	my ($socket) = @_;
	close $socket;
	waitpid delete $program_of{$socket}, 0;
	return;
}

1;
