
=pod

=head1 NAME

Floe::Test::Standby - a primary that can have standbys, and standbys of it

=head1 SYNOPSIS

  use Floe::Test::Standby qw(new_primary new_standby wait_for_replay);

  my $primary = new_primary('primary', 'shared_buffers = 1MB');
  my $standby = new_standby($primary, 'standby');
  wait_for_replay($primary, $standby);

=cut

package Floe::Test::Standby;

use strict;
use warnings FATAL => 'all';
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use Floe::Test::Poll;

our @EXPORT_OK = qw(new_primary new_standby wait_for_replay);

=pod

=over

=item new_primary(name [, configuration])

Returns a started instance that allows streaming and hint-bit logging, with checksums on.

=cut

sub new_primary
{
	my ($name, $configuration) = @_;
	my $primary = PostgreSQL::Test::Cluster->new($name);
	$primary->init(allows_streaming => 1);
	$primary->append_conf('postgresql.conf', $configuration) if defined $configuration;
	$primary->start;
	return $primary;
}

=pod

=item new_standby(primary, name [, configuration])

Takes a base backup of the running primary and returns a started streaming standby of it.

=cut

sub new_standby
{
	my ($primary, $name, $configuration) = @_;
	$primary->backup("backup_$name");
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($primary, "backup_$name", has_streaming => 1);
	$standby->append_conf('postgresql.conf', $configuration) if defined $configuration;
	$standby->start;
	return $standby;
}

=pod

=item wait_for_replay(primary, standby)

Waits until the standby has replayed what the primary has written so far.

=back

=cut

sub wait_for_replay
{
	my ($primary, $standby) = @_;
	$primary->wait_for_replay_catchup($standby);
	return;
}

1;
