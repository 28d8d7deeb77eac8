
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

our @EXPORT_OK = qw(new_shared await_dispatchers port ask session settle processes);

my %port_of;

=pod

=over

=item new_shared(name, lines of postgresql.conf)

A started instance with a port for shared sessions, and the views.

With FLOE_TEST_DISPATCHERS there are as many dispatchers, if the lines do not say how many, and the views are those of the
extension's version 1.0, which shows them together as one.

=cut

sub new_shared
{
	my ($name, $lines) = (@_, '');
	my $node = PostgreSQL::Test::Cluster->new($name);
	my $port = $port_of{$name} = PostgreSQL::Test::Cluster::get_free_port();
	my $dispatchers = $ENV{FLOE_TEST_DISPATCHERS} && $lines !~ /polar_ss_dispatcher_count/ ? $ENV{FLOE_TEST_DISPATCHERS} : 0;
	my $version = $dispatchers > 1 ? q{ VERSION '1.0'} : '';
	$lines .= "\npolar_ss_dispatcher_count = $dispatchers\nmax_worker_processes = " . (8 + $dispatchers) if $dispatchers > 1;
	$node->init;
	$node->append_conf('postgresql.conf', qq{
listen_addresses = '127.0.0.1'
polar_ss_port = $port
polar_enable_shared_server = on
autovacuum = off
log_statement = none
} . $lines);
	$node->append_conf('pg_hba.conf', 'host all all 127.0.0.1/32 trust');
	$node->start;
	$node->safe_psql('postgres', "CREATE EXTENSION shared_server$version");
	await_dispatchers($node);
	return $node;
}

=pod

=item await_dispatchers(node)

Waits until all dispatchers can be given clients.

=cut

sub await_dispatchers
{
	my ($node) = @_;
	my $count = $node->safe_psql('postgres', 'SHOW polar_ss_dispatcher_count');
	return $node->poll_query_until('postgres', q{SELECT count(*) = CASE extversion WHEN '1.0' THEN 1 ELSE } . $count .
		q{ END FROM polar_stat_dispatcher, pg_extension WHERE extname = 'shared_server' GROUP BY extversion}) || die 'no dispatcher';
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

=item processes(node, name)

Processes of the instance that are shown with such a name, also those that are not the postmaster's children.

=cut

sub processes
{
	my ($node, $name) = @_;
	my @found;
	foreach my $process (glob '/proc/[0-9]*')
	{
		# it may have ended since, or be another user's
		next if (readlink("$process/cwd") // '') ne $node->data_dir;
		open my $file, '<', "$process/cmdline" or next;
		my $line = readline($file) // '';
		close $file;
		push @found, $process =~ /(\d+)$/ if $line =~ /$name/;
	}
	return @found;
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
	return $node->poll_query_until('postgres', "SELECT sum(n_login) = 0 AND sum(n_bound) <= $workers AND sum(n_backends) <= $workers FROM polar_stat_dispatcher")
	  || fail('too many workers stay');
}

1;
