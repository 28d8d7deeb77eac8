# Wherever SQL lets a function be called, also many at once and with errors that are caught: the same rows, and nothing left.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback checkpoint);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\nmaintenance_work_mem = 64kB\nwork_mem = 64kB\n");
$node->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE TABLE t (id int PRIMARY KEY, n int, body text);
	INSERT INTO t SELECT g, g, CASE WHEN g % 50 = 0 THEN (SELECT string_agg(md5(g || ':' || h), '') FROM generate_series(1, 200) h) END FROM generate_series(1, 20000) g;
	CREATE TABLE u AS SELECT * FROM t WHERE id <= 5000;
	CREATE TABLE moment (at timestamptz)});
checkpoint($node);
$node->safe_psql('postgres', 'INSERT INTO moment VALUES (clock_timestamp())');
my $then = $node->safe_psql('postgres', 'SELECT at FROM moment');
$node->safe_psql('postgres', $_) for 'UPDATE t SET n = -n, body = NULL', 'DELETE FROM u', 'INSERT INTO moment SELECT NULL', 'CHECKPOINT';
my $rows = "polar_flashback_rows(NULL::t, '$then')";
my $is = '20000|200010000|400';
my $sums = 'count(*), sum(n), count(body)';

sub check
{
	my ($what, $sql, $expected) = @_;
	my $found = $node->safe_psql('postgres', $sql);
	is($found, $expected // $is, $what);
	return;
}

check('in a query', "SELECT $sums FROM $rows");
check('in the list of a SELECT', "SELECT count(*), sum((r).n), count((r).body) FROM (SELECT $rows AS r OFFSET 0) s");
check('joined with itself and another', "SELECT count(*), sum(a.n), count(a.body) FROM $rows a JOIN $rows b USING (id) LEFT JOIN polar_flashback_rows(NULL::u, '$then') c USING (id)");
check('laterally, for many moments', "SELECT count(*), sum(n), count(body) FROM moment m, LATERAL polar_flashback_rows(NULL::t, m.at) r WHERE m.at IS NOT NULL");
check('in a prepared statement', "PREPARE p(timestamptz, text) AS SELECT $sums FROM polar_flashback_rows(NULL::t, \$1, \$2); EXECUTE p('$then', 'true')");
check('with parameters of the protocol', "SELECT $sums FROM polar_flashback_rows(NULL::t, \$1, \$2) \\bind '$then' 'id > 0' \\g");
check('in a cursor that is left half way', "BEGIN; DECLARE c CURSOR FOR SELECT id FROM $rows ORDER BY id; FETCH 2 FROM c; COMMIT", "1\n2");
check('in a cursor that outlives its transaction', "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id FROM $rows ORDER BY id; COMMIT; DROP TABLE IF EXISTS none; FETCH 1 FROM c; CLOSE c", '1');
check('with LIMIT', "SELECT id FROM $rows LIMIT 1", '1');
check('in a materialized view', "CREATE MATERIALIZED VIEW mv AS SELECT * FROM $rows; REFRESH MATERIALIZED VIEW mv; SELECT $sums FROM mv; DROP MATERIALIZED VIEW mv");
check('in a transaction of its own snapshot', "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY; SELECT $sums FROM $rows; COMMIT");
check('beside changes of the same transaction', "BEGIN; DELETE FROM t; INSERT INTO t VALUES (1, 1); SELECT $sums FROM $rows; ROLLBACK");
check('EXPLAIN runs nothing', "EXPLAIN (COSTS OFF) SELECT * FROM polar_flashback_rows(NULL::t, '1999-01-01')", 'Function Scan on polar_flashback_rows');

# Errors that are caught, in the middle of spilled pages
$node->safe_psql('postgres', q{
	CREATE FUNCTION fails(id int, bound int) RETURNS bool LANGUAGE plpgsql AS
		$$BEGIN IF id >= bound THEN RAISE 'enough'; END IF; RETURN true; END$$;
	CREATE FUNCTION attempt(bound int) RETURNS text LANGUAGE plpgsql AS
		$$BEGIN
			RETURN polar_flashback_count('t', (SELECT min(at) FROM moment), format('fails(id, %s)', bound));
		EXCEPTION WHEN raise_exception THEN
			RETURN SQLERRM || (SELECT count(*) FROM polar_stat_progress_flashback_table) || (SELECT count(*) FROM pg_ls_tmpdir());
		END$$;
	CREATE FUNCTION nested(i int) RETURNS int8 LANGUAGE plpgsql AS
		$$BEGIN
			PERFORM attempt(100);
			RETURN polar_flashback_count('u', (SELECT min(at) FROM moment), 'id <= ' || i);
		END$$});
check('an error that is caught leaves nothing', 'SELECT attempt(15000), attempt(15000)', 'enough00|enough00');
check('and it works again', "SELECT attempt(30000), attempt(100), polar_flashback_count('t', '$then')", '20000|enough00|20000');
check('in a condition of another, with errors that are caught', "SELECT polar_flashback_count('t', '$then', 'id <= 20 AND nested(id) = id')", '20');
check('which leaves no progress', 'SELECT count(*) FROM polar_stat_progress_flashback_table', '0');
check('a DO block with savepoints', "DO \$\$ BEGIN FOR i IN 1 .. 5 LOOP BEGIN PERFORM polar_flashback_table('t', '$then', result_name => 'made'); PERFORM 1 / (i - 3); DROP TABLE made; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END \$\$; SELECT to_regclass('made') IS NULL", 't');
my ($out, $err);
$node->psql('postgres', "BEGIN; SAVEPOINT s; SELECT polar_flashback_table('t', '$then', result_name => 'made', condition => 'fails(id, 15000)'); ROLLBACK TO s; SELECT polar_flashback_table('t', '$then', result_name => 'made'); COMMIT",
	on_error_stop => 0, stderr => \$err);
like($err, qr/ERROR:  enough/, 'an error in a savepoint');
check('and then it is made', "SELECT $sums FROM made");

# What the condition does to the table itself
isnt($node->psql('postgres', q{CREATE FUNCTION drops() RETURNS bool LANGUAGE plpgsql AS $$BEGIN TRUNCATE t; RETURN true; END$$;
	SELECT polar_flashback_count('t', (SELECT min(at) FROM moment), 'drops()')}, stderr => \$err), 0, 'a condition cannot take the table away');
like($err, qr/ERROR:  cannot TRUNCATE "t" because it is being used by active queries/, 'that is an error');
check('one that changes it is harmless', q{CREATE FUNCTION changes(i int) RETURNS bool LANGUAGE plpgsql AS $$BEGIN UPDATE t SET n = n + 1 WHERE id = 20001 - i; RETURN true; END$$;
	SELECT polar_flashback_count('t', (SELECT min(at) FROM moment), 'changes(id)')}, '20000');
check('no temporary file is left', 'SELECT count(*) FROM pg_ls_tmpdir()', '0');
$node->stop;
done_testing();
