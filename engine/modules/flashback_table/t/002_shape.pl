# The shape of a table changes: dropped columns are null, as are those that were added later; those that were added before with a
# default have it. A table that is not in the same file any more is read from the file that it had, if that is kept.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback checkpoint);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\n");
$node->safe_psql('postgres', 'CREATE EXTENSION flashback_table');

sub moment
{
	return $node->safe_psql('postgres', 'SELECT clock_timestamp()');
}

sub rows_of
{
	my ($table, $moment, $columns) = @_;
	$columns //= '*';
	return $node->safe_psql('postgres', "SELECT $columns FROM polar_flashback_rows(NULL::$table, '$moment') ORDER BY 1");
}

sub reason
{
	my ($table, $moment) = @_;
	my ($out, $err);
	my $reason = $node->safe_psql('postgres', "SELECT reason FROM polar_flashback_check('$table', '$moment') WHERE NOT possible");
	$node->psql('postgres', "SELECT polar_flashback_count('$table', '$moment')", stdout => \$out, stderr => \$err);
	like($err, qr/ERROR:  \Q$reason\E/, "an error with the same reason: $reason");
	return $reason;
}

my $before = moment();
$node->safe_psql('postgres', q{
	CREATE TABLE t (a int, gone text, b text);
	INSERT INTO t SELECT g, 'gone ' || g, repeat('b', g) FROM generate_series(1, 3) g});
my $narrow = moment();
$node->safe_psql('postgres', q{ALTER TABLE t ADD early int DEFAULT 42; ALTER TABLE t ADD none text});
my $early = moment();
$node->safe_psql('postgres', q{INSERT INTO t VALUES (4, 'gone 4', 'x', 43, 'some')});
my $filled = moment();
$node->safe_psql('postgres', q{ALTER TABLE t DROP gone; ALTER TABLE t ADD late int DEFAULT 7; UPDATE t SET b = NULL; DELETE FROM t WHERE a = 1; VACUUM t});
checkpoint($node);

is(rows_of('t', $narrow), "1|b|||\n2|bb|||\n3|bbb|||", 'columns of later are null, also those with a default');
is(rows_of('t', $early), "1|b|42||\n2|bb|42||\n3|bbb|42||", 'those of before have their default');
is(rows_of('t', $filled), "1|b|42||\n2|bb|42||\n3|bbb|42||\n4|x|43|some|", 'or their value');
is(rows_of('t', moment()), "2||42||7\n3||42||7\n4||43|some|7", 'as they have now');
$node->safe_psql('postgres', "SELECT polar_flashback_table('t', '$filled', result_name => 'made', result_schema => 'public')");
is($node->safe_psql('postgres', 'SELECT * FROM made ORDER BY 1'), "1|b|42||\n2|bb|42||\n3|bbb|42||\n4|x|43|some|", 'a table is made with the present columns');
is($node->safe_psql('postgres', q{SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || attnotnull || atthasdef, ',' ORDER BY attnum)
	FROM pg_attribute WHERE attrelid = 'made'::regclass AND attnum > 0}), 'a integerfalsefalse,b textfalsefalse,early integerfalsefalse,none textfalsefalse,late integerfalsefalse', 'without defaults and constraints');
like($node->safe_psql('postgres', q{SELECT obj_description('made'::regclass)}), qr/^"public"\."t" as of 20\S+ \S+\+00 \(table \d+, columns \d+, position \S+, point \d+\)$/, 'and says what it is');
is($node->psql('postgres', "SELECT polar_flashback_table('t', '$filled', result_name => 'made')"), 3, 'an existing table is not touched');

# Values that are stored in other ways
$node->safe_psql('postgres', q{
	CREATE TABLE v (id int, generated int GENERATED ALWAYS AS (id * 2) STORED, c char(5), n numeric, a int[], r t, e text);
	ALTER TABLE v ALTER e SET STORAGE EXTERNAL;
	INSERT INTO v (id, c, n, a, r, e) SELECT g, 'c' || g, g / 7.0, ARRAY[g, NULL], ROW(g, 'b', 1, NULL, 2)::t, (SELECT string_agg(md5(g || ':' || h), '') FROM generate_series(1, 200) h) FROM generate_series(1, 50) g;
	INSERT INTO v (id) SELECT NULL FROM generate_series(1, 3) g});
my $values = $node->safe_psql('postgres', 'SELECT md5(string_agg(v::text, chr(10) ORDER BY v::text)) FROM v');
my $stored = moment();
$node->safe_psql('postgres', q{UPDATE v SET id = id + 1; DELETE FROM v; VACUUM v});
is($node->safe_psql('postgres', "SELECT md5(string_agg(v::text, chr(10) ORDER BY v::text)) FROM polar_flashback_rows(NULL::v, '$stored') v"), $values,
	'generated, padded, array, composite and TOAST values are as they were');
$node->safe_psql('postgres', "SELECT polar_flashback_table('v', '$stored', result_name => 'v_then')");
is($node->safe_psql('postgres', 'SELECT md5(string_agg(v::text, chr(10) ORDER BY v::text)) FROM v_then v'), $values, 'in a table, too');
is($node->safe_psql('postgres', q{SELECT count(DISTINCT chunk_id) > 0 FROM pg_toast.pg_toast_} . $node->safe_psql('postgres', q{SELECT 'v_then'::regclass::oid})),
	't', 'with TOAST values of its own');

# Not the same file
is(reason('t', $before), 'table "t" did not exist at the target time', 'before it was created');
$node->safe_psql('postgres', 'CREATE TABLE f (a int, b text); INSERT INTO f SELECT g, g FROM generate_series(1, 100) g');
my $first = moment();
for my $command ('TRUNCATE f', 'VACUUM FULL f', 'ALTER TABLE f ALTER a TYPE int8', 'CREATE INDEX ON f (a); CLUSTER f USING f_a_idx')
{
	$node->safe_psql('postgres', $command);
	is($node->safe_psql('postgres', "SELECT polar_flashback_count('f', '$first')"), '100', "after $command");
}
my $last = moment();
$node->safe_psql('postgres', 'INSERT INTO f SELECT g, g FROM generate_series(1, 10) g');
my $ten = moment();
$node->safe_psql('postgres', 'DELETE FROM f');
is($node->safe_psql('postgres', "SELECT polar_flashback_count('f', '$last'), polar_flashback_count('f', '$ten')"), '0|10', 'the new file can be read');
$node->safe_psql('postgres', 'BEGIN; TRUNCATE f; ROLLBACK');
is($node->safe_psql('postgres', "SELECT polar_flashback_count('f', '$ten')"), '10', 'also after a TRUNCATE that was rolled back');
my ($out, $err);
$node->psql('postgres', "BEGIN; TRUNCATE f; SELECT polar_flashback_count('f', '$ten')", stderr => \$err);
like($err, qr/table "f" was rewritten or truncated since/, 'not in the transaction of a TRUNCATE');
$node->safe_psql('postgres', 'VACUUM FULL pg_class');
is($node->safe_psql('postgres', "SELECT polar_flashback_count('f', '$ten')"), '10', 'after pg_class was rewritten its former file tells where the table was');
$node->safe_psql('postgres', 'TRUNCATE f; VACUUM FULL pg_attribute; VACUUM FULL pg_class; REINDEX TABLE pg_class');
is($node->safe_psql('postgres', "SELECT count(*) FROM polar_flashback_rows(NULL::f, '$ten')"), '10', 'and that of pg_attribute what it was');
is($node->safe_psql('postgres', "SELECT polar_flashback_count('f', clock_timestamp() - interval '1 microsecond')"), '0', 'now it is empty');

# What might pass for pg_class without being it is not read
$node->safe_psql('postgres', q{CREATE TABLE guise AS SELECT * FROM pg_class});
my $moved = moment();
$node->safe_psql('postgres', 'INSERT INTO f VALUES (1)');
$node->safe_psql('postgres', q{BEGIN; DROP TABLE guise; CLUSTER pg_class USING pg_class_oid_index; COMMIT});
is(reason('f', $moved), 'pg_class was rewritten since the target time', 'by a commit that deletes another file, too');

# Which partitions there were is known
my $moment = moment();
$node->safe_psql('postgres', q{CREATE TABLE p (a int) PARTITION BY LIST (a); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); INSERT INTO p VALUES (1)});
my $one = moment();
is(reason('p', $moment), 'table "p" did not exist at the target time', 'a partitioned table of later is no empty one');
$node->safe_psql('postgres', 'DELETE FROM p');
is($node->safe_psql('postgres', "SELECT polar_flashback_count('p', '$one')"), '1', 'its row');
$node->safe_psql('postgres', 'VACUUM FULL pg_inherits');
is($node->safe_psql('postgres', "SELECT polar_flashback_count('p', '$one')"), '1', 'after pg_inherits was rewritten its former file tells');
$node->safe_psql('postgres', 'INSERT INTO p VALUES (1)');
$one = moment();
$node->safe_psql('postgres', 'DELETE FROM p');
is($node->safe_psql('postgres', "SELECT polar_flashback_count('p', '$one')"), '1', 'except of later');

# A database that was copied from another one has its past only since then
$node->safe_psql('postgres', 'CREATE DATABASE model');
$node->safe_psql('model', 'CREATE EXTENSION flashback_table; CREATE TABLE m AS SELECT generate_series(1, 1000) AS a');
checkpoint($node);
$node->safe_psql('model', 'INSERT INTO m SELECT generate_series(1, 1000)');
my $model = moment();
$node->safe_psql('postgres', "CREATE DATABASE $_ TEMPLATE model STRATEGY $_") for qw(file_copy wal_log);
my $copied = moment();
for my $database (qw(file_copy wal_log))
{
	$node->safe_psql($database, 'DELETE FROM m');
	isnt($node->psql($database, "SELECT polar_flashback_count('m', '$model')", stderr => \$err), 0, "before $database it is an error");
	like($err, qr/ERROR:  the database did not exist at the target time/, 'that says so');
	is($node->safe_psql($database, "SELECT polar_flashback_count('m', '$copied')"), '2000', 'since then it has rows');
	$node->safe_psql('postgres', "ALTER DATABASE $database CONNECTION LIMIT 20");
	$node->safe_psql('postgres', 'VACUUM pg_database');
	is($node->safe_psql($database, "SELECT polar_flashback_count('m', '$copied')"), '2000', 'also when its settings have changed');
	isnt($node->psql($database, "SELECT polar_flashback_count('m', '$model')"), 0, 'and before, it is still an error');
}

# No result among the shared relations
isnt($node->psql('postgres', "SET default_tablespace = pg_global; SELECT polar_flashback_table('f', '$one')", stderr => \$err), 0, 'no table is made in pg_global');
like($err, qr/only shared relations can be placed in pg_global/, 'as nowhere else');

$node->stop;
done_testing();
