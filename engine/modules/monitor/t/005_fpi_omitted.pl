# wal_fpi_omitted is what full_page_writes = off saves: the images that the same statements write with it on.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('primary');
# The guard of page_repair would have images written, because there is no source of pages.
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
autovacuum = off
checkpoint_timeout = 1h
max_wal_size = 4GB
polar_page_repair_guard = off
CONF
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION monitor VERSION '1.0';
CREATE TABLE t (id int PRIMARY KEY, body text) WITH (fillfactor = 50);
INSERT INTO t SELECT g, repeat('floe ', 20) FROM generate_series(1, 20000) g;
SQL

# The extension of before goes on working with the module of now
is($node->safe_psql('postgres', q{SELECT wal_fpi >= 0 AND wal_fpi_bytes >= 0 FROM polar_stat_wal}), 't', 'version 1.0 can be read');
$node->safe_psql('postgres', q{ALTER EXTENSION monitor UPDATE});
is($node->safe_psql('postgres', q{SELECT has_table_privilege('pg_monitor', 'polar_stat_wal', 'SELECT')}), 't', 'and is updated with its rights');

# Copies of one table, so that each run meets the same pages in the same state
$node->safe_psql('postgres', "CREATE TABLE copy_$_ (LIKE t INCLUDING ALL); INSERT INTO copy_$_ SELECT * FROM t") foreach qw(on off);
$node->safe_psql('postgres', 'VACUUM (FREEZE)');

# Runs statements on their own after a checkpoint
sub measure
{
	my ($statements) = @_;
	$node->safe_psql('postgres', 'CHECKPOINT');
	my $line = $node->safe_psql('postgres', <<"SQL");
\\set QUIET on
SELECT pg_stat_force_next_flush() \\g /dev/null
SELECT pg_stat_reset_shared('wal') \\g /dev/null
$statements
SELECT pg_stat_force_next_flush() \\g /dev/null
SELECT wal_fpi, wal_fpi_bytes, wal_fpi_omitted, wal_fpi_omitted_bytes FROM polar_stat_wal;
SQL
	my %stat;
	@stat{qw(fpi fpi_bytes omitted omitted_bytes)} = split /\|/, (split /\n/, $line)[-1];
	return \%stat;
}
my $update = sub { "UPDATE copy_$_[0] SET body = body || id WHERE id % 7 = 0; SELECT count(*) FROM copy_$_[0] \\g /dev/null\n" };

my $on = measure($update->('on'));
cmp_ok($on->{fpi}, '>', 300, 'full_page_writes = on: the workload writes images');
is("$on->{omitted} $on->{omitted_bytes}", '0 0', 'full_page_writes = on: none is left out');

$node->append_conf('postgresql.conf', 'full_page_writes = off');
$node->reload;
ok($node->poll_query_until('postgres', q{SELECT current_setting('full_page_writes') = 'off'}), 'full_page_writes is off');
$node->safe_psql('postgres', 'CHECKPOINT');
my $off = measure($update->('off'));
is($off->{fpi}, '0', 'full_page_writes = off: the same workload writes none');
# one record of each process may be missing, and a catalog's page may differ
cmp_ok(abs($off->{omitted} - $on->{fpi}), '<=', 5, "full_page_writes = off: what is left out is what was written ($off->{omitted}, $on->{fpi})");
cmp_ok(abs($off->{omitted_bytes} - $on->{fpi_bytes}), '<=', 5 * 8192, 'full_page_writes = off: with its bytes');

my $again = measure("UPDATE copy_off SET body = 'x' WHERE id = 1; UPDATE copy_off SET body = 'y' WHERE id = 1;");
cmp_ok($again->{omitted}, '<=', 5, 'a page is counted once in each checkpoint');

# An image that is written all the same was not left out
my $forced = measure("SET wal_consistency_checking = 'heap'; UPDATE copy_off SET body = 'z';");
cmp_ok($forced->{omitted}, '<', $forced->{fpi}, 'images for wal_consistency_checking are not counted as left out');
# A new index, too: its images are always written. Reading the table for it sets hint bits, which is another matter.
$node->safe_psql('postgres', 'VACUUM copy_off');
my $index = measure('CREATE INDEX ON copy_off (body);');
cmp_ok($index->{omitted}, '<=', 20, 'nor those of a new index');

# Counted by whoever inserts, and kept over a clean restart
my $query = 'SELECT wal_fpi_omitted > 0 AND wal_fpi_omitted_bytes > 0 FROM polar_stat_wal';
measure($update->('off'));
$node->restart;
is($node->safe_psql('postgres', $query), 't', 'the counters survive a restart');
$node->safe_psql('postgres', q{SELECT pg_stat_reset_shared('wal')});
is($node->safe_psql('postgres', q{SELECT wal_fpi_omitted FROM polar_stat_wal}), '0', 'and are reset with pg_stat_wal');
$node->stop;
done_testing();
