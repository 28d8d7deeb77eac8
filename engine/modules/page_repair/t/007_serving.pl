# What a source answers while the relation is being removed, cut or rolled back, and for pages that make no sense: never a
# page that lacks what it claims to have or that somebody has read although it is damaged, and never a position that does not cover
# what is missing.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Disk qw(held_removals);
use Floe::Test::Repair qw(new_repairable);
use Floe::Test::Standby qw(new_standby wait_for_replay);
use Floe::Test::Wait qw(wait_until);

my $removals = held_removals() or plan skip_all => 'no C compiler';
local $ENV{LD_PRELOAD} = $removals->{library};
local $ENV{FLOE_HELD_REMOVALS} = $removals->{mark};

my $primary = new_repairable('primary', 'shared_buffers = 32MB');
$primary->safe_psql('postgres', 'CREATE EXTENSION pg_prewarm');
my $standby = new_standby($primary, 'standby', q{
bgwriter_lru_maxpages = 0
max_standby_streaming_delay = 2min
});

# ask(cluster, columns, relation as tablespace, database, number; blocks...): one row of an answer
sub ask
{
	my ($cluster, $columns, $relation, @blocks) = @_;
	my @arrays = map { 'ARRAY[' . join(',', ($_) x @blocks) . ']::oid[]' } @$relation;
	return $cluster->safe_psql('postgres', "SELECT $columns FROM polar_page_repair_read("
		. join(', ', @arrays, 'array_fill(0, ARRAY[' . scalar(@blocks) . '])', "'{" . join(',', @blocks) . "}'") . ')');
}

sub relation_of
{
	my ($database, $name) = @_;
	return [ split /\|/, $primary->safe_psql($database, qq{
		SELECT t.oid, d.oid, pg_relation_filenode('$name')
		FROM pg_database d JOIN pg_tablespace t ON t.oid = d.dattablespace WHERE datname = current_database()}) ];
}

# A table in a database of its own: old on the standby's disk, new in its pool
sub database_with_table
{
	my ($database) = @_;
	$primary->safe_psql('postgres', "CREATE DATABASE $database");
	$primary->safe_psql($database, 'CREATE TABLE t AS SELECT g AS a, 0 AS b FROM generate_series(1, 1000) g');
	$primary->safe_psql('postgres', 'CHECKPOINT');
	wait_for_replay($primary, $standby);
	$standby->safe_psql('postgres', 'CHECKPOINT');
	$primary->safe_psql($database, 'UPDATE t SET b = 1');
	wait_for_replay($primary, $standby);
	return relation_of($database, 't');
}

# Whoever removes the directory of a database waits when its files are gone: directories in it come last
sub hold_in
{
	my ($directory) = @_;
	mkdir "$directory/last" or die "could not make $directory/last: $!";
	append_to_file("$directory/last/held", '');
	$removals->{hold}->();
	return;
}

# Replay has dropped the buffers, unwritten, and waits before it removes the files: the disk has old pages
my $relation = database_with_table('stale');
my $file = $standby->data_dir . "/base/$relation->[1]/$relation->[2]";
my $position = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
my $sleeper = $standby->background_psql('postgres');
my $sleeper_pid = $sleeper->query_safe('SELECT pg_backend_pid()');
kill 'STOP', $sleeper_pid;
$primary->safe_psql('postgres', 'DROP DATABASE stale');
ok($standby->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event = 'ProcSignalBarrier'}),
	'replay of DROP DATABASE is between the buffers and the files');
ok(-s $file, 'the file is still there');
is(ask($standby, "length(pages[1]), start_lsn >= '$position'", $relation, 0), '0|t', 'its pages are not given as if they were new');
kill 'CONT', $sleeper_pid;
$sleeper->quit;
wait_for_replay($primary, $standby);
is(ask($standby, 'pages[1] IS NULL', $relation, 0), 't', 'when the file is gone the page is missing');

# The file is gone, the record that removed it is not replayed yet: who zeroes the page must replay that record
$relation = database_with_table('missing');
my $directory = $standby->data_dir . "/base/$relation->[1]";
hold_in($directory);
$primary->safe_psql('postgres', 'DROP DATABASE missing');
wait_until(sub { !-e "$directory/$relation->[2]" }, 'the file to be removed');
ok(-d $directory, 'the record that drops the database is still being replayed');
is(ask($standby, 'pages[1] IS NULL, end_lsn > start_lsn', $relation, 0), 't|t', 'the position covers the record that removed the file');
$removals->{release}->();
wait_for_replay($primary, $standby);

# A primary removes the files of a database before it inserts the record that says so
{
	$primary->safe_psql('postgres', 'CREATE DATABASE going');
	$primary->safe_psql('going', 'CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 1000) g');
	$relation = relation_of('going', 't');
	$directory = $primary->data_dir . "/base/$relation->[1]";
	hold_in($directory);
	my $dropping = $primary->background_psql('postgres');
	$dropping->query_until(qr/started/, "\\echo started\nDROP DATABASE going;\n");
	wait_until(sub { !-e "$directory/$relation->[2]" }, 'the file to be removed');
	ok(-d $directory, 'the primary is still removing the database');
	is(ask($primary, 'length(pages[1])', $relation, 0), '0', 'a block of it is not called missing');
	$removals->{release}->();
	$dropping->quit;
	is(ask($primary, 'pages[1] IS NULL', $relation, 0), 't', 'when the record is there, it is');
}

# A page of a standby whose replay waits for queries: that record has removed nothing, and is not waited for
$primary->safe_psql('postgres', 'VACUUM t; CHECKPOINT');
wait_for_replay($primary, $standby);
$standby->restart;    # nothing is in its pool
my $reader = $standby->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$primary->safe_psql('postgres', 'DELETE FROM t WHERE a <= 100; VACUUM t');
ok($standby->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event = 'RecoveryConflictSnapshot'}),
	'replay waits for a query');
$relation = relation_of('postgres', 't');
is(ask($standby, 'length(pages[1])', $relation, 50), '8192', 'pages are given all the same');
$reader->query_safe('COMMIT');
$reader->quit;
wait_for_replay($primary, $standby);

# A primary's transaction that aborts removes files before its record is flushed
my $walwriter = $primary->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'});
kill 'STOP', $walwriter;
my $answer = $primary->safe_psql('postgres', q{
	BEGIN;
	CREATE TABLE aborted AS SELECT g AS a FROM generate_series(1, 1000) g;
	SELECT t.oid AS spc, d.oid AS db, pg_relation_filenode('aborted') AS rel
	FROM pg_database d JOIN pg_tablespace t ON t.oid = d.dattablespace WHERE datname = current_database() \gset
	ROLLBACK;
	SELECT pg_current_wal_insert_lsn() AS inserted, pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() AS unflushed \gset
	SELECT :'unflushed', pages[1] IS NULL, :'inserted'::pg_lsn - end_lsn < 64
	FROM polar_page_repair_read(ARRAY[:spc]::oid[], ARRAY[:db]::oid[], ARRAY[:rel]::oid[], '{0}', '{0}')});
kill 'CONT', $walwriter;
is($answer, 't|t|t', 'the record of an abort is flushed before its files are called missing');

# Positions that were never reached, and blocks that nobody can read: no page, and the others are not lost with them
$relation = relation_of('postgres', 't');
my $path = $primary->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});
foreach my $cluster ($standby, $primary)
{
	my $name = $cluster->name;
	$cluster->stop;
	open my $out, '+<:raw', $cluster->data_dir . "/$path" or die "could not open $path: $!";
	seek($out, 3 * 8192, 0);
	print $out pack('LL', 0xff, 0);
	close $out;
	# The page verifies, as one with a bad position would that a bug has made
	command_ok([ 'pg_checksums', $_, '-D', $cluster->data_dir ], "$name: checksums $_") foreach '--disable', '--enable';
	open $out, '+<:raw', $cluster->data_dir . "/$path" or die "could not open $path: $!";
	foreach my $block (10 .. 109)
	{
		seek($out, $block * 8192 + 4096, 0);
		print $out "\x55" x 512;
	}
	close $out;
	$cluster->start;
	is(ask($cluster, q{length(pages[1]), length(pages[2]), length(pages[3]), end_lsn < 'F/0', end_lsn = flush_lsn}, $relation, 2, 3, 4),
		'8192|0|8192|t|t', "$name: a page with a position that was not reached is not given, and moves nothing");
	is($cluster->safe_psql('postgres', qq{
			SET statement_timeout = '14s';
			SELECT count(*) FILTER (WHERE length(p) = 0), count(*) FILTER (WHERE length(p) = 8192), bool_and(length(p) = 0 OR i IN (1, 102))
			FROM polar_page_repair_read(array_fill($relation->[0]::oid, ARRAY[102]), array_fill($relation->[1]::oid, ARRAY[102]),
				array_fill($relation->[2]::oid, ARRAY[102]), array_fill(0, ARRAY[102]),
				(SELECT array_agg(g::int8) FROM generate_series(9, 110) g)) r, unnest(r.pages) WITH ORDINALITY u(p, i)}),
		'100|2|t', "$name: a hundred blocks that cannot be read do not keep the others from being in time");
	my $read = q{SET ignore_checksum_failure = on; SELECT pg_prewarm('t', 'buffer', 'main', %d, %d)};
	is($cluster->safe_psql('postgres', sprintf($read, 8, 9)), '2', "$name: pages that are whole are in the pool");
	is(ask($cluster, 'length(pages[1]), length(pages[2])', $relation, 8, 9), '8192|8192', "$name: and are given");
	is($cluster->safe_psql('postgres', sprintf($read, 10, 11)), '2', "$name: so are pages that a session has read although they are damaged");
	is(ask($cluster, 'length(pages[1]), length(pages[2]), length(pages[3])', $relation, 9, 10, 11), '8192|0|0', "$name: and are not given as whole");
	$cluster->stop('immediate');
}
done_testing();
