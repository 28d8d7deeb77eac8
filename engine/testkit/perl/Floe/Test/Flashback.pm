
=pod

=head1 NAME

Floe::Test::Flashback - instances with a flashback log, and what it must give

=head1 SYNOPSIS

  use Floe::Test::Flashback qw(new_flashback await_point checkpoint state record_points check_points);

  my $node = new_flashback('node', "shared_buffers = 1MB\n");
  my $copies = record_points($node);
  ... load ...
  is_deeply([ check_points($node, $copies) ], [], 'every block of every point');

=cut

package Floe::Test::Flashback;

use strict;
use warnings FATAL => 'all';
use Carp;
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Wait qw(wait_until);

our @EXPORT_OK = qw(configuration known_settings new_flashback await_point checkpoint state continued record_points check_points in_background);

=pod

=over

=item configuration

The lines that switch the log on, with small segments, and nothing else that writes; the disk of the machine may be nearly full.

=cut

sub configuration
{
	return q{
polar_enable_flashback_log = on
polar_flashback_log_test_segment_size = 1MB
polar_flashback_reserve = 0
autovacuum = off
checkpoint_timeout = 1h
max_wal_size = 4GB
wal_init_zero = off
bgwriter_lru_maxpages = 0
};
}

=pod

=item known_settings(lines)

The lines without the settings that only an engine with injection points knows: a release engine has segments of its usual size.

=cut

sub has_injection_points
{
	my ($share) = run_command([ 'pg_config', '--sharedir' ]);
	return -e "$share/extension/injection_points.control";
}

sub known_settings
{
	my ($lines) = @_;
	$lines =~ s/^polar_flashback_log_test_.*\n//mg unless has_injection_points();
	return $lines;
}

=pod

=item new_flashback(name [, configuration])

A started instance with extensions flashback_log and injection_points in database postgres, and a first point.

=cut

sub new_flashback
{
	my ($name, $configuration) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 1);
	$node->append_conf('postgresql.conf', known_settings(configuration() . ($configuration // '')));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION flashback_log');
	$node->safe_psql('postgres', 'CREATE EXTENSION injection_points') if has_injection_points();
	await_point($node);
	return $node;
}

=pod

=item await_point(node)

Waits until the window has a point.

=cut

sub await_point
{
	my ($node) = @_;
	$node->poll_query_until('postgres', q{SELECT state = 'on' FROM polar_stat_flashback_log}) or croak 'no point';
	return;
}

=pod

=item checkpoint(node)

A checkpoint, or restartpoint; returns the number of the newest point.

=cut

sub checkpoint
{
	my ($node) = @_;
	$node->safe_psql('postgres', 'CHECKPOINT');
	return $node->safe_psql('postgres', 'SELECT max(number) FROM polar_flashback_points');
}

=pod

=item state(node)

{points, ended, why}: the points' numbers, how many windows ended and why the last one did.

=cut

sub state
{
	my ($node) = @_;
	my ($points, $ended, $why) = split /\|/, $node->safe_psql('postgres', q{
		SELECT (SELECT string_agg(number::text, ',' ORDER BY number) FROM polar_flashback_points), windows_ended, last_end_reason
		FROM polar_stat_flashback_log});
	return { points => $points // '', ended => $ended, why => $why // '' };
}

=pod

=item continued(node, before, name)

A test: the window is the one of the state before, and has all its points.

=cut

sub continued
{
	my ($node, $before, $name) = @_;
	my $now = state($node);
	return ok($now->{ended} == $before->{ended} && "$now->{points}," =~ /^\Q$before->{points}\E,/, $name)
	  || diag("before: $before->{points}, $before->{ended}; now: $now->{points}, $now->{ended} $now->{why}");
}

=pod

=item record_points(node)

From now on, the files of relations are copied at each point, while nobody may write. Returns the directory. To be
repeated after a start.

=cut

sub record_points
{
	my ($node, $directory) = @_;
	$directory //= PostgreSQL::Test::Utils::tempdir('points');
	$node->safe_psql('postgres', qq{
		CREATE OR REPLACE FUNCTION flashback_oracle_record(text) RETURNS void AS 'flashback_oracle' LANGUAGE C;
		CREATE OR REPLACE FUNCTION flashback_oracle_overwrite(regclass, int8) RETURNS void AS 'flashback_oracle' LANGUAGE C;
		CREATE OR REPLACE FUNCTION flashback_oracle_check(text, int8, pg_lsn, OUT blocks int8, OUT from_log int8, OUT late int8,
			OUT wrong int8, OUT first_wrong text, OUT from_kept int8) AS 'flashback_oracle' LANGUAGE C;
		SELECT flashback_oracle_record('$directory')}) unless $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';
	return $directory;
}

=pod

=item check_points(node, directory [, least [, kept [, newest]]])

Compares every block of each point that was copied; what is wrong is returned. Fails when fewer points than "least" (1), no
images, or fewer blocks of deleted relations than "kept" (0) were compared. With "newest" only so many points are, the last ones:
a test of many steps looks at what a step has added, and at the end, without it, at all.

=cut

sub check_points
{
	my ($node, $directory, $least, $kept, $newest) = @_;
	my (@wrong, $compared, $images);
	my $all_kept = 0;
	my @points = grep { -d "$directory/$_->[2]" } map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres', q{
		SELECT number, lsn, (extract(epoch FROM "time" - timestamptz '2000-01-01 00:00:00+00') * 1000000)::int8
		FROM polar_flashback_points ORDER BY number});
	splice @points, 0, -$newest if $newest && @points > $newest;
	foreach my $point (@points)
	{
		my ($number, $lsn, $time) = @$point;
		my ($blocks, $from_log, $late, $wrong, $first, $from_kept) = split /\|/,
		  $node->safe_psql('postgres', "SELECT * FROM flashback_oracle_check('$directory', $number, '$lsn')");
		note("point $number: $blocks blocks, $from_log from the log, $from_kept from kept files, $late late");
		$all_kept += $from_kept;
		$compared++ if $blocks > 100;
		$images += $from_log;
		push @wrong, "point $number: $wrong blocks, $first" if $wrong > 0;
	}
	push @wrong, 'too few points: ' . ($compared // 0) if ($compared // 0) < ($least // 1);
	push @wrong, 'no image was compared' unless $images;
	push @wrong, "too few blocks of deleted relations: $all_kept" if $all_kept < ($kept // 0);
	return @wrong;
}

=pod

=item in_background(node, point, sql)

Attaches to the injection point, starts the statements in a session of their own, and returns it when a process waits there.

=back

=cut

sub in_background
{
	my ($node, $point, $sql) = @_;
	$node->safe_psql('postgres', "SELECT injection_points_attach('$point', 'wait')");
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/started/, "\\echo started\n$sql;\n\\echo completed\n");
	wait_until(
		sub {
			my ($out, $err);
			$node->psql('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'InjectionPoint' AND wait_event = '$point'", stdout => \$out, stderr => \$err);
			return ($out // '') eq 't';
		},
		"a process to reach $point");
	return $session;
}

1;
