# A purge ends what can be read of a table's past whatever files it had: before it was rewritten or truncated, of its partitions of
# now and of before, of a dropped table, and for whoever is reading just then. What is asked about says so, with the moment that works.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback checkpoint);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\nshared_buffers = 16MB\n");
my $fill = q{SELECT g, repeat(md5(g::text), 100) FROM generate_series(1, 300) g};
$node->safe_psql('postgres', qq{
	CREATE EXTENSION flashback_table;
	CREATE TABLE t (a int, b text);
	ALTER TABLE t ALTER b SET STORAGE EXTERNAL;
	CREATE TABLE other (LIKE t);
	CREATE TABLE dropped (LIKE t);
	CREATE TABLE parts (a int, b text) PARTITION BY LIST (a);
	INSERT INTO t $fill; INSERT INTO other $fill; INSERT INTO dropped $fill});
$node->safe_psql('postgres', "CREATE TABLE parts_$_ PARTITION OF parts FOR VALUES IN ($_); INSERT INTO parts SELECT $_ FROM generate_series(1, 100)") foreach 1 .. 4;
my $oid = $node->safe_psql('postgres', q{SELECT 'dropped'::regclass::oid});
checkpoint($node);

sub now { return $node->safe_psql('postgres', 'SELECT clock_timestamp()'); }

sub count_at
{
	my ($table, $moment) = @_;
	my ($out, $err);
	$node->psql('postgres', "SET client_min_messages = error; SELECT polar_flashback_count('$table', '$moment')", stdout => \$out, stderr => \$err);
	return $err =~ /ERROR:  (.*?)$/m ? $1 : $out;
}

sub purge
{
	my ($relation) = @_;
	my ($out, $err);
	$node->psql('postgres', "SELECT polar_flashback_purge($relation)", stdout => \$out, stderr => \$err);
	return ($out, $err);
}
my $kept = q{SELECT count(*) FROM polar_flashback_recycled WHERE size_bytes > 0 AND database = (SELECT oid FROM pg_database WHERE datname = 'postgres')};
my $then = now();

# Its former files, with those of its TOAST table, and the present ones
$node->safe_psql('postgres', $_) foreach 'DELETE FROM t WHERE a % 3 = 0', 'VACUUM FULL t', 'UPDATE t SET a = -a', 'TRUNCATE t', "INSERT INTO t $fill", 'VACUUM FULL other';
my $later = now();
$node->safe_psql('postgres', 'DELETE FROM t WHERE a % 2 = 0');
is(count_at('t', $then), 300, 'a table as it was two files ago');
is(count_at('t', $later), 300, 'and in its present one');
is($node->safe_psql('postgres', $kept), 5, 'two files of it are kept, those of its TOAST tables, and one of another table');
is((purge("'t'"))[0], 4, 'a purge removes those of the table');
is($node->safe_psql('postgres', $kept), 1, 'and leaves that of the other one');
foreach my $moment ($then, $later)
{
	is(count_at('t', $moment), 'the past of table "t" was purged', 'nothing of before can be read');
	is($node->safe_psql('postgres', qq{SELECT possible, reason, nearest_time = (SELECT max("time") FROM polar_flashback_points) FROM polar_flashback_check('t', '$moment')}),
		'f|the past of table "t" was purged|t', 'which is said beforehand, with the moment that works');
}
is(count_at('other', $then), 300, 'that of another table can');
my $nearest = $node->safe_psql('postgres', qq{SELECT nearest_time FROM polar_flashback_check('t', '$then')});
is($node->safe_psql('postgres', qq{SELECT possible FROM polar_flashback_check('t', '$nearest')}), 't', 'and it does work');
is(count_at('t', $nearest), 150, 'to the row');
is($node->safe_psql('postgres', q{SELECT count(*) FROM polar_flashback_dropped() WHERE relation_name = 't'}), 0, 'the list has nothing of it');

# In the middle of a flashback, also of one that has read a part to its end
my $mine = now();
$node->safe_psql('postgres', $_) foreach 'UPDATE t SET a = a + 1', 'VACUUM t', 'UPDATE parts SET b = b';
checkpoint($node);
$node->safe_psql('postgres', q{CREATE FUNCTION halt() RETURNS bool LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN true; END'});
my $holder = $node->background_psql('postgres');
foreach my $case ([ 't', 'a < 299 OR halt()', 't' ], [ 'parts', 'a < 4 OR halt()', 'parts_1' ])
{
	my ($table, $condition, $purged) = @$case;
	$holder->query_safe('SELECT pg_advisory_lock(1)');
	my $reader = $node->background_psql('postgres', on_error_stop => 0);
	$reader->query_until(qr/started/, "\\echo started\nSELECT count(*) FROM polar_flashback_rows(NULL::$table, '$mine', '$condition');\n\\echo completed\n");
	ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'advisory'}), "a flashback of $table has begun");
	purge("'$purged'");
	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	$reader->query_until(qr/completed/, '');
	like($reader->{stderr}, qr/ERROR:  the past of table "$purged" was purged/, 'it does not return what was purged meanwhile');
	$reader->quit;
}
$holder->quit;

# Partitions: those of now, and those that it had
my $parts = now();
$node->safe_psql('postgres', $_) foreach 'TRUNCATE parts_2', 'ALTER TABLE parts DETACH PARTITION parts_3', 'DROP TABLE parts_4';
is(count_at('parts', $parts), 400, 'a partitioned table with a partition that was dropped and one that was detached');
is(count_at('parts_3', $parts), 100, 'and the latter itself');
my ($removed, $said) = purge("'parts'");
is($removed, 4, 'the files of those that were truncated and dropped go');
like($said, qr/NOTICE:  relation "parts_3", which was a partition before, is purged, too/, 'the other is named');
is(count_at($_, $parts), qq{the past of table "$_" was purged}, "nothing of $_ can be read") foreach 'parts', 'parts_1', 'parts_2', 'parts_3';
is($node->safe_psql('postgres', q{SELECT count(*) FROM polar_flashback_dropped() WHERE relation_name LIKE 'parts%'}), 0, 'nor given back');

# One that was dropped, by its OID
$node->safe_psql('postgres', 'DROP TABLE dropped');
is($node->safe_psql('postgres', q{SELECT count(*) FROM polar_flashback_dropped() WHERE relation_name = 'dropped'}), 1, 'a dropped table');
is((purge($oid))[0], 2, 'is purged by its OID');
like((purge('4294967295'))[1], qr/ERROR:  there is no relation with OID 4294967295, and none is known that was dropped/, 'and nothing else');
my $err;
isnt($node->psql('postgres', 'FLASHBACK TABLE dropped TO BEFORE DROP', stderr => \$err), 0, 'it cannot be given back');

# All of this survives a crash
crash($node);
$node->start;
is(count_at($_->[0], $_->[1]), qq{the past of table "$_->[0]" was purged}, "after a crash as well: $_->[0]") foreach [ 't', $then ], [ 'parts', $parts ];
is(count_at('other', $then), 300, 'and no more than that');
$node->stop;

done_testing();
