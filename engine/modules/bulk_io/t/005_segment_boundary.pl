# A heap grows across the 1 GB segment boundary like anywhere else.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $instance = PostgreSQL::Test::Cluster->new('main');
$instance->init(allows_streaming => 1);
$instance->append_conf('postgresql.conf', "autovacuum = off\nmax_wal_size = 4GB\nshared_buffers = 128MB\n");
$instance->start;
my $segment = $instance->safe_psql('postgres',
	"SELECT setting::int FROM pg_settings WHERE name = 'segment_size'");
$instance->safe_psql('postgres', q{
	CREATE EXTENSION pg_freespacemap;
	CREATE TABLE t (a int, b text);
	INSERT INTO t VALUES (0, '')});
my $path = $instance->data_dir . '/' . $instance->safe_psql('postgres', "SELECT pg_relation_filepath('t')");
$instance->stop;

# All-zeroes pages up to shortly before the boundary, without using disk space
truncate($path, 8192 * ($segment - 200)) or die "could not extend \"$path\": $!";
$instance->start;

# One row a page: the pages after the hole come first, since the free space map does not know the hole.
my $rows = 1500;
$instance->safe_psql('postgres', "INSERT INTO t SELECT g, repeat('x', 10) || g FROM generate_series(1, 3) g");
$instance->safe_psql('postgres', "COPY (SELECT g, repeat('x', 7000) FROM generate_series(1, $rows) g) TO '" . $instance->basedir . "/rows'");
$instance->safe_psql('postgres', "ALTER TABLE t ALTER b SET STORAGE PLAIN");
foreach my $load (
	"COPY t FROM '" . $instance->basedir . "/rows'",
	"INSERT INTO t SELECT g, repeat('y', 7000) FROM generate_series(1, $rows) g")
{
	$instance->safe_psql('postgres', $load);
}
is(-s $path, 8192 * $segment, 'the first segment is full');
ok(-s "$path.1" > 0, 'the second one exists');
my ($size, $last) = split /\|/, $instance->safe_psql('postgres',
	"SELECT pg_relation_size('t') / 8192, max((ctid::text::point)[0])::int FROM t");
cmp_ok($size - $last - 1, '<=', 512, 'no more than one extension is unused');
is( $instance->safe_psql('postgres', "SELECT count(*) FROM pg_freespace('t') WHERE avail < 8000 AND blkno > $last"),
	'0', 'and the free space map knows it');
is($instance->safe_psql('postgres', 'SELECT count(*), sum(a) FROM t'),
	(4 + 2 * $rows) . '|' . (6 + $rows * ($rows + 1)), 'all rows are there');

# Replay crosses it, too.
$instance->stop('immediate');
unlink "$path.1" or die "could not remove \"$path.1\": $!";
truncate($path, 8192 * ($segment - 200)) or die "could not truncate \"$path\": $!";
$instance->start;
is($instance->safe_psql('postgres', 'SELECT count(*), sum(a) FROM t'),
	(4 + 2 * $rows) . '|' . (6 + $rows * ($rows + 1)), 'all rows are there after replay');
cmp_ok(-s "$path.1", '>', 8192 * 1024, 'in both segments');

$instance->stop;
done_testing();
