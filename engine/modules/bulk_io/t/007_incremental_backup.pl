# An incremental backup does not bring back what was truncated before the file grew again by pages that no WAL mentions.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $instance = PostgreSQL::Test::Cluster->new('main');
$instance->init(has_archiving => 1, allows_streaming => 1);
$instance->append_conf('postgresql.conf', "autovacuum = off\nsummarize_wal = on\nshared_buffers = 32MB\n");
$instance->start;

# One row a page.
$instance->safe_psql('postgres', q{
	CREATE EXTENSION amcheck;
	CREATE TABLE at_once (a int PRIMARY KEY, b text STORAGE PLAIN);
	CREATE TABLE later (LIKE at_once INCLUDING ALL);
	SET polar_bulk_extend_size = 0;
	INSERT INTO at_once SELECT g, repeat('x', 7000) FROM generate_series(1, 1000) g;
	INSERT INTO later SELECT * FROM at_once});
$instance->backup('full', backup_options => ['-cfast']);

sub shrink
{
	my ($table) = @_;
	$instance->safe_psql('postgres', "DELETE FROM $table WHERE a > 600");
	$instance->safe_psql('postgres', "VACUUM $table");
	is($instance->safe_psql('postgres', "SELECT pg_relation_size('$table') / 8192"), '600', "$table is truncated");
}

sub grow
{
	my ($table) = @_;
	$instance->safe_psql('postgres', "SET polar_bulk_extend_size = '4MB';\nINSERT INTO $table VALUES (2000, repeat('y', 7000))");
	# one row on page 600, and then pages that are in no WAL
	is($instance->safe_psql('postgres', "SELECT pg_relation_size('$table') / 8192"), '637', "$table has grown again");
}

sub incremental
{
	my ($name, $prior) = @_;
	$instance->command_ok(
		[
			'pg_basebackup', '-D', $instance->backup_dir . "/$name", '--no-sync', '-cfast',
			'--incremental', $instance->backup_dir . "/$prior/backup_manifest"
		],
		"incremental backup $name");
}

shrink('at_once');
grow('at_once');
shrink('later');
incremental('first', 'full');
grow('later');
incremental('second', 'first');

my $query = q{
	SELECT 'at_once', count(*), max(a) FROM at_once;
	SELECT 'later', count(*), max(a) FROM later};
my $expected = "at_once|601|2000\nlater|601|2000";
is($instance->safe_psql('postgres', $query), $expected, 'what was backed up');

my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($instance, 'second', combine_with_prior => [ 'full', 'first' ]);
$restored->start;
is($restored->safe_psql('postgres', $query), $expected, 'restored from the chain');
foreach my $table ('at_once', 'later')
{
	is($restored->safe_psql('postgres', "SELECT * FROM verify_heapam('$table')"), '', "$table: heap is sound");
	is($restored->safe_psql('postgres', "SELECT bt_index_check('${table}_pkey', true)"), '', "$table: every row is in the index");
}
$restored->stop;

my $after_first = PostgreSQL::Test::Cluster->new('after_first');
$after_first->init_from_backup($instance, 'first', combine_with_prior => ['full']);
$after_first->start;
is($after_first->safe_psql('postgres', $query), "at_once|601|2000\nlater|600|600", 'restored from the first two');
$after_first->stop;

$instance->stop;
done_testing();
