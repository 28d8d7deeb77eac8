# Comparing by pages finds what comparing row by row finds, and a result that was touched is read.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback checkpoint);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\nlock_timeout = 60s\nmax_prepared_transactions = 5\n");
$node->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE TABLE other (a int);
	CREATE TABLE plain AS SELECT g AS id, 0 AS n FROM generate_series(1, 1000) g;
	CREATE TABLE t (id int PRIMARY KEY, n int, v text);
	ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
	INSERT INTO t SELECT g, 0, CASE WHEN g % 50 = 0 THEN repeat(md5(g::text), 100) ELSE md5(g::text) END FROM generate_series(1, 8000) g});

sub moment
{
	my $moment = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
	$node->safe_psql('postgres', 'INSERT INTO other VALUES (1)');
	return $moment;
}

# What a statement returns, and whether pages told it
sub by_pages
{
	my ($sql, $before) = @_;
	my ($out, $err) = ('', '');
	my $status = $node->psql('postgres', ($before // '') . "; SET client_min_messages = debug1; $sql", stdout => \$out, stderr => \$err);
	is($status, 0, 'the statement succeeds') or diag($err);
	return ($out, $err =~ /rows are compared by pages/ ? 1 : 0);
}

sub comparison { my ($arguments) = @_; return "SELECT * FROM polar_flashback_compare('t', $arguments, samples => 10000) c ORDER BY c::text" }

my $oracle = 0;

# The same by pages, by an untouched result, and by one whose rows were inserted, of which each is read
sub check
{
	my ($moment, $name, $before) = @_;
	$oracle++;
	$node->safe_psql('postgres', "SELECT FROM polar_flashback_table('t', '$moment', result_name => 'copied_$oracle');
		SELECT FROM polar_flashback_table('t', '$moment', result_name => 'inserted_$oracle', condition => 'true')");
	my ($read, $read_pages) = by_pages(comparison("result => 'inserted_$oracle'"), $before);
	my ($paged, $paged_pages) = by_pages(comparison("'$moment'"), $before);
	my ($copied, $copied_pages) = by_pages(comparison("result => 'copied_$oracle'"), $before);
	is($paged, $read, "$name: the same by pages");
	is($copied, $read, "$name: the same by an untouched result");
	is("$read_pages $paged_pages $copied_pages", '0 1 1', "$name: by pages where that can be");
	# What is prepared holds the lock that a merge takes
	return if $node->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts') > 0;
	my $merge = "SELECT * FROM polar_flashback_merge('%s_$oracle', 't', true, true, true, dry_run => true)";
	my ($merged, $merged_pages) = by_pages(sprintf($merge, 'copied'), $before);
	is($merged, (by_pages(sprintf($merge, 'inserted'), $before))[0], "$name: the same is merged");
	is($merged_pages, 1, "$name: and that by pages");
	return;
}

# Pages that have not changed since, with tuples that were there but did not count
my $prepared = 'PREPARE TRANSACTION';
$node->safe_psql('postgres', "BEGIN; DELETE FROM t WHERE id BETWEEN 100 AND 110; INSERT INTO t VALUES (30001, 1, 'in doubt'); $prepared 'late'");
$node->safe_psql('postgres', "BEGIN; DELETE FROM t WHERE id BETWEEN 200 AND 210; INSERT INTO t VALUES (30002, 1, 'in doubt'); $prepared 'never'");
$node->safe_psql('postgres', "BEGIN; DELETE FROM t WHERE id BETWEEN 300 AND 310; INSERT INTO t VALUES (30003, 1, 'aborted'); ROLLBACK");
$node->safe_psql('postgres', "BEGIN; SAVEPOINT s; DELETE FROM t WHERE id BETWEEN 80 AND 85; ROLLBACK TO s; SELECT id FROM t WHERE id < 90 FOR SHARE; COMMIT");
checkpoint($node);
my $first = moment();
check($first, 'nothing has changed');
$node->safe_psql('postgres', "COMMIT PREPARED 'late'");
is($node->safe_psql('postgres', "SELECT kind, rows FROM polar_flashback_compare('t', '$first', samples => 0) WHERE kind IN ('added', 'removed', 'changed')"),
	"added|1\nremoved|11\nchanged|0", 'what was in doubt then counts now');
check($first, 'what was in doubt has committed');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'never'});
check($first, 'or was rolled back');

# All that changes a page
$node->safe_psql('postgres', q{
	UPDATE t SET n = n + 1 WHERE id % 1000 = 0;
	UPDATE t SET v = repeat('x', 5000) WHERE id BETWEEN 5000 AND 5010;
	UPDATE t SET v = v WHERE id BETWEEN 6000 AND 6010;
	DELETE FROM t WHERE id BETWEEN 7000 AND 7100;
	INSERT INTO t SELECT g, 5, 'new' FROM generate_series(40001, 41000) g});
check($first, 'rows have changed');
$node->safe_psql('postgres', q{VACUUM t; INSERT INTO t SELECT g, 6, md5(g::text) FROM generate_series(7000, 7100) g});
check($first, 'places are used again');
$node->safe_psql('postgres', q{DELETE FROM t WHERE id > 7500; VACUUM t});
check($first, 'the end was cut off');
$node->safe_psql('postgres', 'INSERT INTO t SELECT g, 7, md5(g::text) FROM generate_series(7501, 9000) g');
$node->safe_psql('postgres', 'VACUUM (FREEZE) t; CHECKPOINT');
check($first, 'all is frozen, and blocks came back');
check($first, 'a transaction sees its own changes', q{BEGIN; DELETE FROM t WHERE id < 50; UPDATE t SET n = 99 WHERE id BETWEEN 60 AND 70; INSERT INTO t VALUES (50001, 1, 'own')});
my $second = moment();
$node->safe_psql('postgres', 'UPDATE t SET n = n + 1');
check($second, 'each row has changed');
$node->restart;
check($second, 'after a restart');

# Whoever touches a result is found out: what it has is merged, not what it had
my $third = moment();
$node->safe_psql('postgres', q{DELETE FROM t WHERE id <= 20; UPDATE t SET n = -1 WHERE id BETWEEN 21 AND 30});
my %touch = (
	update => 'UPDATE %s SET n = 77 WHERE id = 5',
	delete => 'DELETE FROM %s WHERE id = 5',
	deleted_long_ago => 'DELETE FROM %s WHERE id = 5; VACUUM %1$s',
	insert => "INSERT INTO %s VALUES (60000, 1, 'x')",
	frozen => 'CREATE TABLE was AS TABLE %s; BEGIN; DELETE FROM %1$s; INSERT INTO %1$s SELECT id, n + 1, v FROM was; COMMIT; VACUUM FREEZE %1$s; DROP TABLE was',
	updated_and_frozen => 'UPDATE %1$s SET n = n + 1; VACUUM FREEZE %1$s',
	rename => 'ALTER TABLE %s RENAME n TO m; ALTER TABLE %1$s RENAME id TO n; ALTER TABLE %1$s RENAME m TO id',
	rewrite => 'ALTER TABLE %s ALTER n TYPE int USING n + 1',
	truncate => 'TRUNCATE %s',
	copy => "TRUNCATE %s; BEGIN; TRUNCATE %1\$s; INSERT INTO %1\$s VALUES (1, 1, 'a'); COMMIT; VACUUM FREEZE %1\$s",
);
for my $how (sort keys %touch)
{
	my $result = "touched_$how";
	$node->safe_psql('postgres', "SELECT FROM polar_flashback_table('t', '$third', result_name => '$result')");
	$node->safe_psql('postgres', sprintf($touch{$how}, $result));
	# Another table with its rows is read in any case
	my ($found, $pages) = by_pages(comparison("result => '$result'"));
	my $comment = $node->safe_psql('postgres', "SELECT quote_literal(obj_description('$result'::regclass))");
	$node->safe_psql('postgres', "CREATE TABLE as_read AS TABLE $result; COMMENT ON TABLE as_read IS $comment");
	my ($read) = by_pages(comparison(q{result => 'as_read'}));
	is($found, $read, "$how: its rows as they are now are compared");
	is($pages, 0, "$how: it is read");
	$node->safe_psql('postgres', 'DROP TABLE as_read');
}

# A row that the transaction of the flashback has added, deleted and kept has the number of that pair, and the first is 0
{
	$node->safe_psql('postgres', "BEGIN; SELECT FROM polar_flashback_table('plain', '$third', result_name => 'paired');
		INSERT INTO paired VALUES (60000, 1); DELETE FROM paired WHERE id = 5; SAVEPOINT s; DELETE FROM paired WHERE id = 60000; ROLLBACK TO s; COMMIT");
	$node->safe_psql('postgres', 'VACUUM (FREEZE) paired');
	my ($found, $pages) = by_pages(q{SELECT kind, rows FROM polar_flashback_compare('plain', result => 'paired', samples => 0) WHERE kind IN ('added', 'removed')});
	is($found, "added|1\nremoved|1", 'added and deleted in the transaction of the flashback: its rows as they are now are compared');
	is($pages, 0, 'and it is read');
}

# Whether a result is untouched is read of it: who writes it meanwhile is in the way of a serializable transaction
{
	$node->safe_psql('postgres', "SELECT FROM polar_flashback_table('plain', '$third', result_name => 'watched')");
	my $reader = $node->background_psql('postgres', on_error_stop => 0);
	$reader->query(q{BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM polar_flashback_compare('plain', result => 'watched', samples => 0); INSERT INTO other VALUES (2)});
	$node->safe_psql('postgres', 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM other; DELETE FROM watched WHERE id = 1; COMMIT');
	$reader->query('COMMIT');
	like($reader->{stderr}, qr/could not serialize access/, 'compared and written in serializable transactions: one of them fails');
	$reader->quit;
}

# What does not touch its rows
$node->safe_psql('postgres', "SELECT FROM polar_flashback_table('t', '$third', result_name => 'kept')");
my ($known) = by_pages(comparison("result => 'kept'"));
$node->safe_psql('postgres', 'VACUUM (FREEZE, ANALYZE) kept');
my ($found, $pages) = by_pages(comparison("result => 'kept'"));
is($found, $known, 'after VACUUM and ANALYZE: the same');
is($pages, 1, 'and by pages');

# A comment that somebody wrote is not believed
my $comment = $node->safe_psql('postgres', q{SELECT quote_literal(obj_description('kept'::regclass))});
$node->safe_psql('postgres', "COMMENT ON TABLE kept IS $comment; COMMENT ON TABLE kept IS NULL; COMMENT ON TABLE kept IS $comment");
($found, $pages) = by_pages(comparison("result => 'kept'"));
is($found, $known, 'a comment written anew: the same');
is($pages, 0, 'and it is read');

# Other files, other columns
$node->safe_psql('postgres', "SELECT FROM polar_flashback_table('t', '$third', result_name => 'whole')");
$node->safe_psql('postgres', 'VACUUM FULL t');
($found, $pages) = by_pages(comparison("result => 'whole'"));
is($found, $known, 'the table was rewritten: the same');
is($pages, 0, 'and the result is read');
($found, $pages) = by_pages(comparison("'$third'"));
is($found, $known, 'and with the moment');
is($pages, 0, 'of which all rows are read');

# Without a log the result is enough
my $fourth = moment();
$node->safe_psql('postgres', "DELETE FROM t WHERE id BETWEEN 100 AND 200; SELECT FROM polar_flashback_table('t', '$fourth', result_name => 'last')");
my $merge = q{SELECT inserted, restored, deleted FROM polar_flashback_merge('last', 't', true, true, true, dry_run => true)};
my ($with, $with_pages) = by_pages($merge);
$node->adjust_conf('postgresql.conf', 'polar_enable_fast_recovery_area', 'off');
$node->adjust_conf('postgresql.conf', 'polar_enable_flashback_log', 'off');
$node->restart;
my ($without, $without_pages) = by_pages($merge);
is($without, $with, 'without a log: the same');
is("$with_pages $without_pages", '1 0', 'by pages only with it');

$node->stop;
done_testing();
