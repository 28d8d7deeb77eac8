
=pod

=head1 NAME

Floe::Test::SharedServer - an instance whose sessions share backends

=head1 SYNOPSIS

  use Floe::Test::SharedServer qw(new_shared port ask);

  my $node = new_shared('shared', 'polar_ss_debug_force_migrate = on');
  my $client = Floe::Test::Protocol->to_port(port($node));
  is(ask($client, 'SELECT 1'), '1');

=cut

package Floe::Test::SharedServer;

use strict;
use warnings FATAL => 'all';
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use Test::More;
use Floe::Test::Poll;

our @EXPORT_OK = qw(new_shared port ask session settle);

my %port_of;

=pod

=over

=item new_shared(name, lines of postgresql.conf)

A started instance with a port for shared sessions, and the views.

=cut

sub new_shared
{
	my ($name, $lines) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	my $port = $port_of{$name} = PostgreSQL::Test::Cluster::get_free_port();
	$node->init;
	$node->append_conf('postgresql.conf', qq{
listen_addresses = '127.0.0.1'
polar_ss_port = $port
polar_enable_shared_server = on
autovacuum = off
log_statement = none
} . ($lines // ''));
	$node->append_conf('pg_hba.conf', 'host all all 127.0.0.1/32 trust');
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION shared_server');
	$node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM polar_stat_dispatcher') or die 'no dispatcher';
	return $node;
}

=pod

=item port(node)

=item ask(client, text)

The values of all rows and the messages of errors of a command, one a line.

=cut

sub port { my ($node) = @_; return $port_of{ $node->name }; }

sub ask
{
	my ($client, $text) = @_;
	$client->query($text);
	return join "\n", map { /^[DE] (.*)/s ? $1 : () } $client->until_ready;
}

=pod

=item session(node, client, column)

What polar_stat_session says of a client's session.

=cut

sub session
{
	my ($node, $client, $column) = @_;
	return $node->safe_psql('postgres', "SELECT $column FROM polar_stat_session WHERE session_pid = " . $client->pid);
}

=pod

=item settle(node, workers)

Waits until no session logs in, and no more of them have a worker than that. The number of workers alone would not tell: it is
shown a moment late, while a session may still have one that has been asked to let go of it.

=back

=cut

sub settle
{
	my ($node, $workers) = @_;
	return $node->poll_query_until('postgres', "SELECT n_login = 0 AND n_bound <= $workers AND n_backends <= $workers FROM polar_stat_dispatcher")
	  || fail('too many workers stay');
}

1;
