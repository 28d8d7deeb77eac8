# wal_fpi_bytes is exactly what the full-page images in WAL take, whatever wrote them and however they are compressed.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('primary');
# Without checksums no image is forced for a hint bit, so that full_page_writes decides alone.
$node->init(no_data_checksums => 1);
$node->append_conf('postgresql.conf', <<'CONF');
autovacuum = off
checkpoint_timeout = 1h
max_wal_size = 4GB
wal_keep_size = 1GB
stats_fetch_consistency = snapshot
CONF
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION monitor;
CREATE EXTENSION pg_walinspect;
CREATE TABLE t (id int PRIMARY KEY, body text) WITH (fillfactor = 50);
INSERT INTO t SELECT g, repeat('floe ', 20) FROM generate_series(1, 20000) g;
CREATE INDEX ON t (body, id);
CREATE INDEX ON t USING hash (id);
SQL

# Runs the statements on their own after a checkpoint and returns what the statistics and what WAL itself say
# about them.
sub measure
{
	my ($statements) = @_;
	my $observe = q{SELECT wal_records, wal_fpi, wal_bytes, wal_fpi_bytes FROM polar_stat_wal};
	# The rehearsal of the observing statements sets the catalogs' hint bits, so that these write no WAL later.
	my @lines = split /\n/, $node->safe_psql('postgres', <<"SQL");
\\set QUIET on
VACUUM;
$observe \\g /dev/null
SELECT p.*, s.* FROM polar_stat_wal p, pg_stat_wal s \\g /dev/null
CHECKPOINT;
SELECT pg_stat_force_next_flush() \\g /dev/null
SELECT pg_stat_reset_shared('wal') \\g /dev/null
SELECT pg_current_wal_insert_lsn();
$statements
SELECT pg_stat_force_next_flush() \\g /dev/null
SELECT pg_current_wal_insert_lsn();
$observe;
CHECKPOINT;
SQL
	my ($from, $to) = ($lines[0], $lines[-2]);
	my %stat;
	@stat{qw(records fpi bytes fpi_bytes)} = split /\|/, $lines[-1];
	my %wal;
	@wal{qw(fpi fpi_bytes)} = split /\|/, $node->safe_psql('postgres',
		qq{SELECT count(*), coalesce(sum(block_fpi_length), 0) FROM pg_get_wal_block_info('$from', '$to') WHERE block_fpi_length > 0});
	@wal{qw(records bytes fpi_bytes_by_record)} = split /\|/, $node->safe_psql('postgres',
		qq{SELECT sum(count), sum(combined_size), sum(fpi_size) FROM pg_get_wal_stats('$from', '$to')});
	return (\%stat, \%wal, join "\n", @lines);
}

# What a checkpoint itself wrote may be counted late; it holds no image and is this small.
sub agrees
{
	my ($stat, $wal, $name) = @_;
	is($stat->{fpi}, $wal->{fpi}, "$name: the number of images is that in WAL");
	is($stat->{fpi_bytes}, $wal->{fpi_bytes}, "$name: the bytes of images are those of the blocks in WAL");
	is($stat->{fpi_bytes}, $wal->{fpi_bytes_by_record}, "$name: the bytes of images are those of the records in WAL");
	my ($records, $bytes) = ($stat->{records} - $wal->{records}, $stat->{bytes} - $wal->{bytes});
	cmp_ok(abs $records, '<=', 5, "$name: every record is counted once");
	cmp_ok(abs $bytes, '<=', 1000, "$name: every byte is counted once");
	return;
}

my $update = 'UPDATE t SET body = body || id WHERE id % 7 = 0;';
my %bytes;
foreach my $compression (qw(off pglz lz4 zstd))
{
	my ($stat, $wal) = measure("SET wal_compression = $compression; $update");
	agrees($stat, $wal, "wal_compression = $compression");
	ok($stat->{fpi} > 100, "wal_compression = $compression: the workload writes images") or diag($stat->{fpi});
	$bytes{$compression} = $stat->{fpi_bytes} / $stat->{fpi};
}
ok($bytes{off} > 2 * $bytes{$_}, "images are counted as compressed with $_") foreach qw(pglz lz4 zstd);

my ($stat, $wal) = measure('BEGIN; DELETE FROM t WHERE id < 5000; ROLLBACK;');
agrees($stat, $wal, 'a transaction that is rolled back');
ok($stat->{fpi} > 0, 'a transaction that is rolled back: the workload writes images');

($stat, $wal) = measure('CREATE TABLE u AS SELECT * FROM t; CREATE INDEX ON u (id); DROP TABLE u;');
agrees($stat, $wal, 'a new table and its index');

($stat, $wal) = measure("SET wal_consistency_checking = 'heap, btree'; UPDATE t SET body = 'x' WHERE id < 300;");
agrees($stat, $wal, 'images for wal_consistency_checking');

# The guard of page_repair would have images written, because there is no source of pages.
$node->append_conf('postgresql.conf', "full_page_writes = off\npolar_page_repair_guard = off\n");
$node->reload;
ok($node->poll_query_until('postgres', q{SELECT current_setting('full_page_writes') = 'off'}), 'full_page_writes is off');
# The checkpoint that measure() makes has the change take effect before the statements begin.
($stat, $wal) = measure($update);
agrees($stat, $wal, 'full_page_writes = off');
is($stat->{fpi_bytes}, '0', 'no image is counted with full_page_writes = off');
ok($stat->{bytes} > 100_000, 'other WAL is counted with full_page_writes = off');
($stat, $wal) = measure('VACUUM FULL t;');
agrees($stat, $wal, 'full_page_writes = off, images that a new index needs');
ok($stat->{fpi_bytes} > 0, 'forced images are counted with full_page_writes = off');
$node->append_conf('postgresql.conf', "full_page_writes = on\n");
$node->reload;

# Workers write images for the hint bits they set: they report these, and the leader must not do so again.
$node->append_conf('postgresql.conf', "wal_log_hints = on\n");
$node->restart;
($stat, $wal, my $printed) = measure(<<'SQL');
CREATE TABLE fresh AS SELECT * FROM t;
CHECKPOINT;
SET parallel_leader_participation = off;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*) FROM fresh;
SQL
like($printed, qr/Workers Launched: [12]/, 'parallel workers read the table');
ok($stat->{fpi} > 200, 'and write images') or diag($stat->{fpi});
agrees($stat, $wal, 'parallel workers');

# Outside of parallel workers PostgreSQL's own counters are right, and then both agree.
$node->safe_psql('postgres', q{SELECT pg_stat_reset_shared('wal'); UPDATE t SET body = ''});
is($node->safe_psql('postgres', q{
	SELECT (p.wal_records, p.wal_fpi, p.wal_bytes, p.wal_buffers_full, p.stats_reset) =
		   (s.wal_records, s.wal_fpi, s.wal_bytes, s.wal_buffers_full, s.stats_reset)
	FROM polar_stat_wal p, pg_stat_wal s}), 't', 'polar_stat_wal says what pg_stat_wal says, at the same moment');

# Checkpoints make backends assemble records anew, and backends that exit must leave their counts behind.
$node->pgbench('-i -s 2 -q', 0, [qr//], [qr//], 'pgbench -i');
$node->safe_psql('postgres', 'CHECKPOINT');
my $start = $node->safe_psql('postgres', q{SELECT pg_stat_force_next_flush(); SELECT pg_stat_reset_shared('wal'); SELECT pg_current_wal_insert_lsn()}) =~ s/\A\s+//r;
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', '8', '-t', '400', '-C', '-h', $node->host, '-p', $node->port, 'postgres' ],
	'>', \my $output, '2>', \my $errors);
# -C connects for every transaction, so that thousands of backends exit; each checkpoint starts images anew.
my $checkpoints = 0;
while ($load->pumpable)
{
	$load->pump_nb;
	$node->safe_psql('postgres', 'CHECKPOINT');
	$checkpoints++;
}
ok($load->finish, 'pgbench ends well') or diag($errors);
ok($checkpoints > 3, 'checkpoints were made under load');
# A backend that was told to go may still be on its way; its client does not wait for it.
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'})
  or die 'the backends of pgbench did not exit';
my @end = split /\n/, $node->safe_psql('postgres', <<'SQL');
\set QUIET on
SELECT pg_stat_force_next_flush() \g /dev/null
SELECT pg_current_wal_insert_lsn();
SELECT wal_fpi, wal_fpi_bytes FROM polar_stat_wal;
CHECKPOINT;
SQL
is($end[1], $node->safe_psql('postgres',
		qq{SELECT count(*), sum(block_fpi_length) FROM pg_get_wal_block_info('$start', '$end[0]') WHERE block_fpi_length > 0}),
	'nothing is lost when backends exit, and nothing is counted twice when records are assembled anew');

$node->stop;
done_testing();
