# Pages change, are written, vacuumed and filled anew between any two steps of a scan; the rows stay those of the moment.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback checkpoint in_background);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\nshared_buffers = 64MB\nfull_page_writes = off\npolar_page_repair_guard = off\n");
$node->safe_psql('postgres', q{CREATE EXTENSION flashback_table;
	CREATE FUNCTION noise(i int, n int) RETURNS text LANGUAGE sql AS
		$$SELECT string_agg(md5((i * 1000 + g)::text), '') FROM generate_series(1, n) g$$});
my $digest = q{SELECT 'digest ' || count(*) || md5(string_agg(t::text, chr(10) ORDER BY id))};

for my $point (qw(flashback-table-rebuild flashback-table-read flashback-table-replay flashback-table-listed))
{
	for my $checkpoint (0, 1)
	{
		$node->safe_psql('postgres', q{
			DROP TABLE IF EXISTS t;
			CREATE TABLE t (id int PRIMARY KEY, n int, body text);
			INSERT INTO t SELECT g, g, CASE WHEN g % 10 = 0 THEN noise(g, 150) END FROM generate_series(1, 3000) g});
		checkpoint($node);
		$node->safe_psql('postgres', 'UPDATE t SET n = n + 1 WHERE id % 3 = 0; DELETE FROM t WHERE id % 5 = 1');
		my $then = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
		my $is = $node->safe_psql('postgres', "$digest FROM t");
		$node->safe_psql('postgres', 'UPDATE t SET n = -n WHERE id < 1500; INSERT INTO t SELECT g, 1 FROM generate_series(10001, 10100) g');
		checkpoint($node) if $checkpoint;
		my $session = in_background($node, $point, "$digest FROM polar_flashback_rows(NULL::t, '$then') t");
		$node->safe_psql('postgres', q{
			UPDATE t SET body = noise(id + 1, 160) WHERE id % 20 = 0;
			DELETE FROM t WHERE id BETWEEN 500 AND 2500});
		$node->safe_psql('postgres', $_) for 'VACUUM t', q{INSERT INTO t SELECT g, 0, noise(g, 100) FROM generate_series(20001, 20200) g}, 'VACUUM (FREEZE) t', 'CHECKPOINT', 'UPDATE t SET n = 7';
		$node->safe_psql('postgres', "SELECT injection_points_detach('$point'); SELECT injection_points_wakeup('$point')");
		$session->query_until(qr/\Q$is\E/, '');
		pass("changes at $point, " . ($checkpoint ? 'after' : 'without') . ' a checkpoint before');
		$session->quit;
	}
}
$node->stop;
done_testing();
