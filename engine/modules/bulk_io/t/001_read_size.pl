# polar_bulk_read_size and io_combine_limit are one setting on every way a setting can take, and it
# decides how large the reads are.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $instance = PostgreSQL::Test::Cluster->new('main');
$instance->init;
$instance->append_conf('postgresql.conf', "io_combine_limit = 256kB\nautovacuum = off\n");
$instance->append_conf('postgresql.conf', "polar_bulk_read_size = 512kB\n");
$instance->start;

# Both names' values, and what a reload makes of them in an open session.
my $session = $instance->background_psql('postgres');

sub sizes
{
	return $instance->safe_psql('postgres',
		"SELECT current_setting('polar_bulk_read_size'), current_setting('io_combine_limit')");
}

sub session_has
{
	my ($value, $what) = @_;
	$instance->reload;
	ok( $instance->poll_query_until('postgres', "SELECT current_setting('io_combine_limit') = '$value'"),
		"$what: new sessions");
	my $seen = '';
	for (1 .. 1000 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$seen = $session->query_safe('SHOW polar_bulk_read_size');
		last if $seen eq $value;
	}
	is($seen, $value, "$what: open session");
}

is(sizes(), '512kB|512kB', 'of two lines the last one wins at start');
is( $instance->safe_psql('postgres',
		q{SELECT name, setting, applied FROM pg_file_settings
		  WHERE name IN ('io_combine_limit', 'polar_bulk_read_size') ORDER BY seqno}),
	"io_combine_limit|256kB|t\npolar_bulk_read_size|512kB|t",
	'both lines are read, in their order');
is( $instance->safe_psql('postgres',
		q{SELECT count(DISTINCT sourceline), min(source) FROM pg_settings
		  WHERE name IN ('io_combine_limit', 'polar_bulk_read_size')}),
	'1|configuration file', 'both rows name the line that counts');

$instance->append_conf('postgresql.conf', "io_combine_limit = 64kB\n");
session_has('64kB', 'of three lines the last one wins at reload');

$instance->safe_psql('postgres', "ALTER SYSTEM SET polar_bulk_read_size = '1MB'");
session_has('1MB', 'ALTER SYSTEM by one name');
$instance->safe_psql('postgres', "ALTER SYSTEM SET io_combine_limit = '32kB'");
session_has('32kB', 'ALTER SYSTEM by the other name');
is(scalar(grep { /polar_bulk_read_size|io_combine_limit/ } split /\n/,
		slurp_file($instance->data_dir . '/postgresql.auto.conf')),
	1, 'ALTER SYSTEM keeps one entry');
$instance->safe_psql('postgres', 'ALTER SYSTEM RESET polar_bulk_read_size');
session_has('64kB', 'ALTER SYSTEM RESET by either name');

# A line of another instance's auto.conf, brought along by hand: what is set later outranks it
append_to_file($instance->data_dir . '/postgresql.auto.conf', "polar_bulk_read_size = '24kB'\n");
session_has('24kB', 'second name written into postgresql.auto.conf');
$instance->safe_psql('postgres', "ALTER SYSTEM SET polar_bulk_read_size = '32kB'");
session_has('32kB', 'which ALTER SYSTEM outranks');
$instance->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
session_has('64kB', 'and ALTER SYSTEM RESET ALL removes');

# A session's own value is not touched by a reload, and RESET returns to the file's.
$session->query_safe("SET polar_bulk_read_size = '16kB'");
$instance->append_conf('postgresql.conf', "polar_bulk_read_size = 0\n");
$instance->reload;
ok($instance->poll_query_until('postgres', "SELECT current_setting('io_combine_limit') = '0'"), '0 in a file');
is($session->query_safe('SHOW io_combine_limit'), '16kB', 'SET outlives a reload');
is($session->query_safe("RESET io_combine_limit; SHOW polar_bulk_read_size"), '0', 'RESET returns to the file');

$instance->adjust_conf('postgresql.conf', $_, undef) for qw(io_combine_limit polar_bulk_read_size);
session_has('128kB', 'without a line the default holds');
$session->quit;

# Databases and roles
$instance->safe_psql('postgres', "ALTER DATABASE postgres SET io_combine_limit = '40kB'");
is(sizes(), '40kB|40kB', 'ALTER DATABASE');
$instance->safe_psql('postgres', "ALTER ROLE CURRENT_USER SET polar_bulk_read_size = '48kB'");
is(sizes(), '48kB|48kB', 'ALTER ROLE outranks ALTER DATABASE whatever the names');
{
	local $ENV{PGOPTIONS} = '-c polar_bulk_read_size=56kB';
	is(sizes(), '56kB|56kB', 'connection option');
}
my ($dump) = run_command([ 'pg_dumpall', '--globals-only', '--port', $instance->port, '--host', $instance->host ]);
like($dump, qr/SET io_combine_limit TO '48kB'/, 'a dump names the parameter that PostgreSQL knows');
$instance->safe_psql('postgres', 'ALTER ROLE CURRENT_USER RESET ALL; ALTER DATABASE postgres RESET ALL');

# The ceiling
is($instance->safe_psql('postgres', 'SHOW io_max_combine_limit'), '1MB', 'the whole range is open by default');
$instance->append_conf('postgresql.conf', "io_max_combine_limit = 64kB\n");
$instance->restart;
is($instance->safe_psql('postgres', 'SHOW io_max_combine_limit'), '64kB', 'a user may lower the ceiling');
$instance->adjust_conf('postgresql.conf', 'io_max_combine_limit', undef);
$instance->restart;
is($instance->safe_psql('postgres', 'SHOW io_max_combine_limit'), '1MB', 'and open it again');

# The size of the reads, for each of the scans that the setting promises
$instance->safe_psql('postgres', q{
	CREATE TABLE big (a int, b text);
	INSERT INTO big SELECT g, repeat('x', 900) FROM generate_series(1, 20000) g;
	CHECKPOINT;
});
my %command = (
	'sequential scan' => 'SELECT count(*) FROM big',
	'VACUUM' => 'VACUUM (DISABLE_PAGE_SKIPPING) big',
	'ANALYZE' => 'SET default_statistics_target = 1000; ANALYZE big',
	'index build' => 'SET max_parallel_maintenance_workers = 0; BEGIN; CREATE INDEX big_idx ON big (a); ROLLBACK');

sub blocks_per_read
{
	my ($command, $size) = @_;
	$instance->restart;
	$instance->safe_psql('postgres',
		"SELECT pg_stat_reset_shared('io'); SET polar_bulk_read_size = '$size'; $command;");
	return $instance->safe_psql('postgres', q{
		SELECT sum(read_bytes) / sum(reads) / 8192 FROM pg_stat_io
		WHERE object = 'relation' AND backend_type IN ('client backend', 'background worker')});
}
foreach my $what (sort keys %command)
{
	my @sizes = map { blocks_per_read($command{$what}, $_) + 0 } ('0', '128kB', '1MB');
	cmp_ok($sizes[0], '==', 1, "$what reads single blocks with 0");
	cmp_ok($sizes[1], '>', 4, "$what combines with the default ($sizes[1] blocks)");
	cmp_ok($sizes[2], '>', 1.5 * $sizes[1], "$what combines more with 1MB ($sizes[2] blocks)");
}

# The ceiling of combined reads is chosen by what it costs, unless it is asked for.
sub ceiling_is
{
	my ($expected, $what, $conf) = @_;
	$instance->append_conf('postgresql.conf', $conf);
	$instance->restart;
	is($instance->safe_psql('postgres', 'SHOW io_max_combine_limit'), $expected, $what);
}
$instance->safe_psql('postgres', 'ALTER SYSTEM RESET io_combine_limit');
ceiling_is('1MB', 'the whole range where it is cheap', 'io_combine_limit = 128kB');
ceiling_is('256kB', 'less with many concurrent reads', "max_connections = 1000\nio_max_concurrency = 64");
ceiling_is('512kB', 'but what the files ask for', 'polar_bulk_read_size = 512kB');
ceiling_is('64kB', 'and no more than somebody allows', 'io_max_combine_limit = 64kB');

$instance->stop;
done_testing();
