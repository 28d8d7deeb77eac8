
=pod

=head1 NAME

Floe::Test::Figures - what a long test has counted, for whoever started it

=head1 SYNOPSIS

  use Floe::Test::Figures qw(write_figures);

  write_figures(crashes => 3, wrong => 0);

=cut

package Floe::Test::Figures;

use strict;
use warnings FATAL => 'all';
use Carp;
use Exporter 'import';
use Test::More;

our @EXPORT_OK = qw(write_figures);

=pod

=over

=item write_figures(name => number, ...)

Notes the figures, one a line, and writes the same to the file that FLOE_TEST_RESULT names, if it names one.

=back

=cut

sub write_figures
{
	my (%figures) = @_;
	my @lines = map { "$_ $figures{$_}" } sort keys %figures;
	note($_) foreach @lines;
	return unless $ENV{FLOE_TEST_RESULT};
	open my $out, '>', $ENV{FLOE_TEST_RESULT} or croak "could not write $ENV{FLOE_TEST_RESULT}: $!";
	print $out map { "$_\n" } @lines;
	close $out or croak "could not write $ENV{FLOE_TEST_RESULT}: $!";
	return;
}

1;
