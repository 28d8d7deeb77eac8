
=pod

=head1 NAME

Floe::Test::Repair - instances whose torn pages a source can give back, and sources that lie

=head1 SYNOPSIS

  use Floe::Test::Repair qw(new_repairable with_log sound tear_standby attempt start_only liar);

  my $primary = new_repairable('primary');
  my $standby = new_standby($primary, 'standby');
  my $torn = tear_standby($primary, $standby);

=cut

package Floe::Test::Repair;

use strict;
use warnings FATAL => 'all';
use Carp;
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Floe::Test::Crash qw(crash);
use Floe::Test::Standby qw(new_primary wait_for_replay);
use Floe::Test::Torn qw(remember_files tear_pages);

our @EXPORT_OK = qw(new_repairable unguarded with_log sound tear_standby copy_instance attempt start_only least_recovery_point reasons liar);

=pod

=over

=item unguarded()

A configuration in which images are off from the start, pages are written soon, and nothing is synced before a CHECKPOINT.
In so small a pool nothing is written in runs; Torture.pm has a larger one.

=cut

sub unguarded
{
	return q{
autovacuum = off
shared_buffers = 1MB
full_page_writes = off
polar_page_repair_guard = off
polar_page_repair_timeout = 2s
checkpoint_timeout = 1h
max_wal_size = 4GB
wal_keep_size = 1GB
wal_init_zero = off
};
}

=pod

=item with_log()

The configuration of a flashback log in sync mode, with small segments and no checkpoint of its own.

=cut

sub with_log
{
	return q{
polar_enable_flashback_log = on
polar_flashback_log_mode = sync
polar_flashback_log_test_segment_size = 1MB
polar_flashback_point_timeout = 1d
polar_flashback_point_segments = 10000
};
}

=pod

=item new_repairable(name [, configuration [, rows]])

A started primary with that configuration, the extension, the role page_repair, and a table t (a int PRIMARY KEY, b int, c text).

=cut

sub new_repairable
{
	my ($name, $configuration, $rows) = @_;
	$rows //= 20000;
	my $primary = new_primary($name, unguarded() . ($configuration // ''));
	$primary->safe_psql('postgres', qq{
		CREATE EXTENSION page_repair;
		CREATE EXTENSION amcheck;
		CREATE ROLE page_repair LOGIN;
		GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair;
		CREATE TABLE t (a int PRIMARY KEY, b int, c text);
		INSERT INTO t SELECT g, 0, md5(g::text) FROM generate_series(1, $rows) g});
	return $primary;
}

=pod

=item sound(cluster)

Returns '' when heap and index of t are without a fault, else what was found.

=cut

sub sound
{
	my ($cluster) = @_;
	return $cluster->safe_psql('postgres', q{SELECT * FROM verify_heapam('t')})
	  . $cluster->safe_psql('postgres', q{SELECT bt_index_check('t_pkey', true)});
}

=pod

=item tear_standby(primary, standby [, sql])

A restartpoint, work that the standby writes and does not sync, a crash of the standby, torn pages; returns what tear_pages does.

=cut

sub tear_standby
{
	my ($primary, $standby, $sql) = @_;
	wait_for_replay($primary, $standby);
	$primary->safe_psql('postgres', 'CHECKPOINT');
	wait_for_replay($primary, $standby);
	$standby->safe_psql('postgres', 'CHECKPOINT');
	my $before = remember_files($standby);
	$primary->safe_psql('postgres', $sql // q{UPDATE t SET b = b + 1; VACUUM t; UPDATE t SET b = b + 1 WHERE a % 5 = 0});
	wait_for_replay($primary, $standby);
	crash($standby);
	return tear_pages($standby, $before, sector => 512);
}

=pod

=item copy_instance(name, directory [, configuration])

An instance, not started, on a copy of the data directory of a stopped or crashed one.

=cut

sub copy_instance
{
	my ($name, $directory, $configuration) = @_;
	my $copy = PostgreSQL::Test::Cluster->new($name);
	# It leaves out the holes of WAL segments, which are most of the bytes
	system_or_bail('cp', '-RPp', $directory, $copy->data_dir);
	chmod 0700, $copy->data_dir or croak "chmod: $!";
	unlink $copy->data_dir . '/postmaster.pid';
	$copy->append_conf('postgresql.conf', 'port = ' . $copy->port . "\n" . ($configuration // ''));
	return $copy;
}

=pod

=item attempt(cluster)

Starts the instance; returns whether it did and what it logged.

=cut

sub attempt
{
	my ($cluster) = @_;
	my $offset = -e $cluster->logfile ? -s $cluster->logfile : 0;
	my $started = $cluster->start(fail_ok => 1);
	return ($started, slurp_file($cluster->logfile, $offset));
}

=pod

=item start_only(cluster)

Starts the instance without waiting for it to accept connections; returns where its log went on.

=cut

sub start_only
{
	my ($cluster) = @_;
	append_to_file($cluster->logfile, '');
	my $offset = -s $cluster->logfile;
	system_or_bail('pg_ctl', '-W', '-s', '-D', $cluster->data_dir, '-l', $cluster->logfile, '-o', '--cluster-name=' . $cluster->name, 'start');
	return $offset;
}

=pod

=item least_recovery_point(cluster)

The minimum recovery ending location in pg_control.

=cut

sub least_recovery_point
{
	my ($cluster) = @_;
	my ($out) = run_command([ 'pg_controldata', '-D', $cluster->data_dir ]);
	return $out =~ /^Minimum recovery ending location:\s+(\S+)$/m ? $1 : croak 'pg_controldata tells no minimum recovery ending location';
}

=pod

=item reasons(log)

Why the sources that were asked did not serve, in the order in which they are named, by the error that ended an attempt.

=cut

sub reasons
{
	my ($log) = @_;
	my ($detail) = $log =~ /FATAL: .* is torn, and no page repair source could give it\n.*DETAIL:  (.*?)(?: File "page_repair\.torn" lists|\n)/ or return;
	my (undef, @reasons) = split /"[^" ]*:\d+\/[^" ]*": /, $detail;
	return @reasons;
}

=pod

=item liar(cluster, system identifier)

Makes a running instance of another system a source that says what a test wants: returns a function that takes what
polar_page_repair_read is to answer, as SQL expressions by column; C<wal> are its pages when it is asked for WAL (default:
as for blocks), C<before> is evaluated first. With several such answers, each an array of a name and its expressions, it says to
each application name what belongs to it.

=back

=cut

sub liar
{
	my ($cluster, $sysid) = @_;
	$cluster->safe_psql('postgres', 'DROP EXTENSION IF EXISTS page_repair; CREATE EXTENSION IF NOT EXISTS dblink');
	$cluster->safe_psql('postgres', q{
		DO $$ BEGIN CREATE ROLE page_repair LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
		CREATE OR REPLACE FUNCTION lend(text, oid[], oid[], oid[], int4[], int8[]) RETURNS bytea[] LANGUAGE sql AS
		$$SELECT p FROM dblink($1, format('SELECT pages FROM pg_catalog.polar_page_repair_read(%L, %L, %L, %L, %L)', $2, $3, $4, $5, $6)) AS (p bytea[])$$});
	my $says = sub {
		my (%answer) = (
			system_identifier => $sysid, timeline => 1, in_recovery => 'true', streaming => 'true', data_checksums => 'true',
			start_lsn => "'0/1'", end_lsn => "'0/1'", flush_lsn => undef,
			pages => q{array_fill('\x'::bytea, ARRAY[cardinality($1)])}, wal => undef, before => 'NULL', @_);
		$answer{flush_lsn} //= $answer{end_lsn};
		$answer{wal} //= $answer{pages};
		return qq{
				PERFORM $answer{before};
				SELECT $answer{system_identifier}, $answer{timeline}, $answer{in_recovery}, $answer{streaming}, $answer{data_checksums},
					$answer{start_lsn}, $answer{end_lsn}, $answer{flush_lsn}, CASE \$4[1] WHEN -1 THEN $answer{wal} ELSE $answer{pages} END
				INTO system_identifier, timeline, in_recovery, streaming, data_checksums, start_lsn, end_lsn, flush_lsn, pages;};
	};
	return sub {
		my $body = !ref $_[0] ? $says->(@_) : join('', "CASE current_setting('application_name')",
			map({ my ($name, @answer) = @$_; "\n\t\t\tWHEN '$name' THEN" . $says->(@answer) } @_), "\n\t\t\tEND CASE;");
		$cluster->safe_psql('postgres', qq{
			DROP FUNCTION IF EXISTS pg_catalog.polar_page_repair_read;
			CREATE FUNCTION pg_catalog.polar_page_repair_read(oid[], oid[], oid[], int4[], int8[],
				OUT system_identifier int8, OUT timeline int4, OUT in_recovery bool, OUT streaming bool, OUT data_checksums bool,
				OUT start_lsn pg_lsn, OUT end_lsn pg_lsn, OUT flush_lsn pg_lsn, OUT pages bytea[]) LANGUAGE plpgsql AS \$\$
			BEGIN
				$body
			END \$\$});
	};
}

1;
