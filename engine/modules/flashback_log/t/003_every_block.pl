# Under load with evictions, truncations, new and dropped relations and crashes: for every point, every block of every relation
# is what the log says, compared with copies of the files made at the points.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use IPC::Run;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback record_points check_points checkpoint state continued);

my $script = PostgreSQL::Test::Utils::tempdir('load') . '/load.sql';
append_to_file($script, <<'SQL');
\set n random(1, 20000)
\set m random(1, 100)
UPDATE t SET b = b || 'x' WHERE a = :n;
INSERT INTO t SELECT 20000 + :n, repeat(md5(:m::text), :m);
DELETE FROM t WHERE a = 20000 + :m;
SELECT count(*) FROM t WHERE a BETWEEN :n AND :n + 200;
\if :m <= 2
DROP TABLE IF EXISTS s_:client_id;
CREATE TABLE s_:client_id AS SELECT * FROM t WHERE a < 500;
CREATE INDEX ON s_:client_id USING hash (a);
UPDATE s_:client_id SET a = a + 1;
DROP TABLE s_:client_id;
\elif :m <= 4
DELETE FROM cut WHERE a > :n;
VACUUM (TRUNCATE on) cut;
INSERT INTO cut SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
\elif :m = 5
CHECKPOINT;
\endif
SQL

foreach my $mode ('async', 'sync')
{
	my $node = new_flashback("node_$mode", qq{
shared_buffers = 1MB
bgwriter_lru_maxpages = 100
bgwriter_delay = 10ms
polar_enable_fast_recovery_area = on
polar_flashback_log_mode = $mode
polar_bulk_extend_size = 0
});
	$node->safe_psql('postgres', q{
		CREATE TABLE t (a int, b text);
		INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 20000) g;
		CREATE INDEX ON t (a);
		CREATE TABLE cut AS SELECT * FROM t LIMIT 3000});
	my $copies = record_points($node);
	foreach my $round (1 .. 3)
	{
		$node->command_ok([ 'pgbench', '-n', '-c', '4', '-t', '60', '-f', $script, $node->connstr('postgres') ], "load, $mode, round $round");
		checkpoint($node);
		next if $round == 3;
		my $state = state($node);
		if ($round == 1)
		{
			# In the middle of the load
			my $load = IPC::Run::start([ 'pgbench', '-n', '-c', '4', '-t', '10000', '-f', $script, $node->connstr('postgres') ], '>', '/dev/null', '2>', '/dev/null');
			$node->poll_query_until('postgres', "SELECT max(number) > (SELECT split_part('$state->{points}', ',', -1)::int8) + 1 FROM polar_flashback_points");
			$state = state($node);
			crash($node);
			IPC::Run::finish($load);
			$node->start;
		}
		else
		{
			$node->restart;
		}
		record_points($node, $copies);
		continued($node, $state, "the window continues, $mode, round $round");
	}
	is_deeply([ check_points($node, $copies, 6) ], [], "every block of every point, $mode");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_log_verify() WHERE damage IS NOT NULL'), 0, "the log is in order, $mode");
	is($node->safe_psql('postgres', 'SELECT unreadable, failures FROM polar_stat_flashback_log'), '0|0', "nothing was unreadable, $mode");
	cmp_ok($node->safe_psql('postgres', q{SELECT syncs FROM polar_stat_flashback_log}), $mode eq 'sync' ? '>' : '<', 3, "syncs, $mode");
	$node->stop;
}

done_testing();
