# A relation is never more than a 16th larger than with extension sizes of 0, and no unused page is lost,
# whatever the size, the way of loading, the kind of table and the size of the buffer pool.
# FLOE_TEST_LONG=1 takes more sizes.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $instance = PostgreSQL::Test::Cluster->new('main');
$instance->init(allows_streaming => 1);
$instance->append_conf('postgresql.conf', "autovacuum = off\nshared_buffers = 128MB\n");
$instance->start;

my $rows = $instance->basedir . '/rows.data';

sub prepare
{
	$instance->safe_psql('postgres', qq{
		CREATE EXTENSION IF NOT EXISTS amcheck;
		CREATE EXTENSION IF NOT EXISTS pg_freespacemap;
		COPY (SELECT g, repeat('x', 700) FROM generate_series(1, 9000) g) TO '$rows';
	});
}
prepare();

my @sizes = $ENV{FLOE_TEST_LONG} ? (1, 3, 16, 512, 1024) : (3, 512, 1024);

# load <kind of table> <way> <rows> <sizes>: for each size its blocks, the unused pages that the free space map does not know, and
# its rows; in one session, because there are many of them
sub load
{
	my ($kind, $way, $nrows, @sizes) = @_;
	my $setup = "CREATE $kind TABLE t (a int, b text)";
	my %statements = (
		'INSERT' => "$setup; INSERT INTO t SELECT g, repeat('x', 700) FROM generate_series(1, $nrows) g",
		'COPY' => "$setup; COPY t FROM '$rows' WHERE a <= $nrows",
		'COPY into a new table' => "BEGIN; $setup; COPY t FROM '$rows' WHERE a <= $nrows; COMMIT",
		'CREATE TABLE AS' => "CREATE $kind TABLE t AS SELECT g AS a, repeat('x', 700) AS b FROM generate_series(1, $nrows) g",
		'row by row' => "$setup; DO 'BEGIN FOR i IN 1..$nrows LOOP INSERT INTO t VALUES (i, repeat(''x'', 700)); END LOOP; END'"
	);
	return map { [ split /\|/ ] } split /\n/, $instance->safe_psql('postgres', 'SET client_min_messages = error;' . join('', map { qq{
		SET polar_bulk_extend_size = $_;
		$statements{$way};
		WITH used AS (SELECT max((ctid::text::point)[0])::int AS last, count(*) AS n FROM t)
		SELECT pg_relation_size('t') / 8192,
		       (SELECT count(*) FROM pg_freespace('t') f, used WHERE f.blkno > used.last AND f.avail < 8000),
		       (SELECT n FROM used);
		DROP TABLE t;
	} } @sizes));
}

sub check_all
{
	my ($where, @row_counts) = @_;
	foreach my $kind ('', 'UNLOGGED', 'TEMP')
	{
		foreach my $way ('INSERT', 'COPY', 'COPY into a new table', 'CREATE TABLE AS', 'row by row')
		{
			foreach my $nrows (@row_counts)
			{
				my ($plain, @loads) = load($kind, $way, $nrows, 0, @sizes);
				my $base = $plain->[0];
				my (@wasteful, @lost, @missing);
				foreach my $i (0 .. $#sizes)
				{
					my ($blocks, $unknown, $count) = @{ $loads[$i] };
					push @wasteful, "$sizes[$i]: $blocks instead of $base" if $blocks > $base + $base / 16 + 64;
					# up to 63 pages are PostgreSQL's own, in which it does not enter pages meant for the caller
					push @lost, "$sizes[$i]: $unknown" if $unknown > 63;
					push @missing, "$sizes[$i]: $count" if $count != $nrows;
				}
				my $what = join ' ', grep { $_ ne '' } $where, $kind, $way, $nrows;
				is_deeply(\@wasteful, [], "$what: no waste");
				is_deeply(\@lost, [], "$what: no page lost");
				is_deeply(\@missing, [], "$what: all rows");
			}
		}
	}
}
check_all('default pool', 1, 60, 9000);

# Many sessions that extend at the same time do not add up their extensions.
foreach my $size (0, 512)
{
	$instance->safe_psql('postgres', "DROP TABLE IF EXISTS many_$size; CREATE TABLE many_$size (a int, b text)");
	my $script = $instance->basedir . "/many_$size.sql";
	append_to_file($script, "INSERT INTO many_$size SELECT g, repeat('x', 700) FROM generate_series(1, 50) g;\n");
	local $ENV{PGOPTIONS} = "-c polar_bulk_extend_size=$size";
	$instance->command_ok([ 'pgbench', '-n', '-c', '8', '-j', '2', '-t', '100', '-f', $script, 'postgres' ],
		"eight sessions insert with size $size");
}
is( $instance->safe_psql('postgres', q{
		SELECT pg_relation_size('many_512') <= 1.125 * pg_relation_size('many_0') + 64 * 8192, count(*) FROM many_512}),
	't|40000', 'eight sessions: no waste');
is($instance->safe_psql('postgres', "SELECT * FROM verify_heapam('many_512')"), '', 'eight sessions: heap is sound');

# The smallest buffer pools there are
$instance->append_conf('postgresql.conf', "shared_buffers = 128kB\nmax_connections = 10\ntemp_buffers = 800kB\n");
$instance->restart;
check_all('smallest pool', 9000);
$instance->safe_psql('postgres', q{
	CREATE TABLE small (a int, b text);
	INSERT INTO small SELECT g, md5(g::text) FROM generate_series(1, 50000) g;
	CREATE INDEX small_idx ON small (b);
	VACUUM small});
is($instance->safe_psql('postgres', "SELECT bt_index_parent_check('small_idx', true, true)"), '', 'smallest pool: index build');
is($instance->safe_psql('postgres', "SELECT * FROM verify_heapam('small')"), '', 'smallest pool: heap is sound');

$instance->stop;
done_testing();
