# A crash tears pages that were written without full-page images. PostgreSQL cannot start; the module takes them from
# the standby, and everything that was committed is there.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use PostgreSQL::Test::RecursiveCopy;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Standby qw(new_primary new_standby wait_for_replay);
use Floe::Test::Torn qw(remember_files tear_pages repair_source);

srand($ENV{FLOE_TEST_SEED} // 20261121);

# The guard has a test of its own; here images are off from the start.
my $primary = new_primary('primary', q{
autovacuum = off
shared_buffers = 1MB
full_page_writes = off
polar_page_repair_guard = off
checkpoint_timeout = 1h
max_wal_size = 4GB
wal_keep_size = 1GB
});
$primary->safe_psql('postgres', q{
	CREATE EXTENSION page_repair;
	CREATE EXTENSION amcheck;
	CREATE ROLE page_repair LOGIN;
	GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair;
	CREATE TABLE t (a int PRIMARY KEY, b int, c text);
	INSERT INTO t SELECT g, 0, md5(g::text) FROM generate_series(1, 20000) g;
	CREATE TABLE hinted AS SELECT * FROM t;
	VACUUM t});
my $standby = new_standby($primary, 'standby');
my $source = repair_source($standby);

foreach my $policy ('checksum', 'always')
{
	foreach my $sector (4096, 512)
	{
		my $name = "$policy, sectors of $sector";
		$primary->safe_psql('postgres', 'CHECKPOINT');
		my $before = remember_files($primary);
		$primary->safe_psql('postgres', q{
			UPDATE t SET b = b + 1 WHERE a % 3 = 0;
			INSERT INTO t SELECT (SELECT max(a) FROM t) + g, 1, md5(g::text) FROM generate_series(1, 2000) g;
			DELETE FROM t WHERE a % 7 = 0;
			VACUUM t;
			-- only hints change on these pages, which FPI_FOR_HINT names
			SELECT count(*) FROM hinted});
		my $truth = $primary->safe_psql('postgres', 'SELECT count(*), sum(a), sum(b), md5(string_agg(c, NULL ORDER BY a)) FROM t');
		wait_for_replay($primary, $standby);
		crash($primary);
		my $torn = tear_pages($primary, $before, sector => $sector);
		cmp_ok($torn->{torn}, '>', 20, "$name: pages are torn: $torn->{torn}, lost: $torn->{lost}");
		note(explain($torn));

		# PostgreSQL, on a copy of the same files
		my $copy = PostgreSQL::Test::Cluster->new("copy_${policy}_$sector");
		PostgreSQL::Test::RecursiveCopy::copypath($primary->data_dir, $copy->data_dir);
		chmod(0700, $copy->data_dir);
		unlink $copy->data_dir . '/postmaster.pid';
		$copy->append_conf('postgresql.conf', 'port = ' . $copy->port . "\npolar_page_repair_policy = off\n");
		is($copy->start(fail_ok => 1), 0, "$name: PostgreSQL does not start");
		like(slurp_file($copy->logfile), qr/FATAL: .*invalid page in block/, "$name: because a page is torn");

		# The module without a source
		$primary->append_conf('postgresql.conf', "polar_page_repair_sources = ''\n");
		my $offset = -s $primary->logfile;
		is($primary->start(fail_ok => 1), 0, "$name: without a source the module does not start either");
		like(slurp_file($primary->logfile, $offset), qr/FATAL: .*no page repair source could give it|FATAL: .*could not get block \d+ .* from any page repair source/,
			"$name: and says why");

		# The module
		$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '$source'\npolar_page_repair_policy = $policy\n");
		$offset = -s $primary->logfile;
		$primary->start;
		is($primary->safe_psql('postgres', 'SELECT count(*), sum(a), sum(b), md5(string_agg(c, NULL ORDER BY a)) FROM t'), $truth,
			"$name: all that was committed is there");
		is($primary->safe_psql('postgres', q{SELECT * FROM verify_heapam('t') UNION ALL SELECT * FROM verify_heapam('hinted')}), '', "$name: heaps are sound");
		is($primary->safe_psql('postgres', q{SELECT bt_index_parent_check('t_pkey', true, true)}), '', "$name: the index is sound");
		# always does not look before it replaces
		my $stat = $primary->safe_psql('postgres', q{
			SELECT recovery, policy, ended_at >= started_at, torn > 0 OR policy = 'always', repaired > 20, bytes = repaired * 8192, last_at IS NOT NULL
			FROM polar_stat_page_repair});
		is($stat, "crash|$policy|t|t|t|t|t", "$name: the view tells");
		is($primary->safe_psql('postgres', q{
				SELECT r.repaired = s.pages, s.number FROM polar_stat_page_repair r, polar_page_repair_sources s}), 't|1',
			"$name: and from whom");
		like(slurp_file($primary->logfile, $offset), qr/repaired block \d+ of relation "base\/.*": taken from source/,
			"$name: so does the log") if $policy eq 'checksum';

		# Each page on disk verifies
		$primary->stop;
		command_ok([ 'pg_checksums', '--check', '-D', $primary->data_dir ], "$name: pg_checksums finds nothing");
		$primary->start;
	}
}
$primary->stop;
$standby->stop;
done_testing();
