# A result that is copied page by page has the rows that one has into which they are inserted, for every kind of table. It is sound,
# stays so after a crash and on a standby, and nothing is left of one that fails. A condition is what makes rows be inserted. Tables
# are copied with 0 to 2 workers in turn. FLOE_TEST_LONG=1 takes every table at every moment.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback checkpoint in_background);
use Floe::Test::Wait qw(wait_until);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\nshared_buffers = 2MB\nmax_prepared_transactions = 5\nmax_wal_senders = 3\n");
$node->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pageinspect;
	CREATE FUNCTION noise(i int, n int) RETURNS text LANGUAGE sql IMMUTABLE AS
		$$SELECT string_agg(md5((i * 1000 + g)::text), '') FROM generate_series(1, n) g$$;

	CREATE TABLE plain (id int PRIMARY KEY, n int, label text) WITH (fillfactor = 80);
	INSERT INTO plain SELECT g, g, 'row ' || g FROM generate_series(1, 5000) g;

	-- External, compressed both ways, inline, short and null values beside each other
	CREATE TABLE toasted (id int PRIMARY KEY, n int, external text, packed text COMPRESSION pglz, packed4 text COMPRESSION lz4, parts text[]);
	ALTER TABLE toasted ALTER external SET STORAGE EXTERNAL;
	INSERT INTO toasted SELECT g, 0, CASE WHEN g % 2 = 0 THEN noise(g, 90 + g % 200) END, repeat('compressible ' || g, 300 + g % 7 * 4000),
		CASE WHEN g % 3 = 0 THEN noise(g, 70) || repeat('y', 9000) ELSE 'short' END, ARRAY[noise(g, g % 130), NULL, 'z'] FROM generate_series(1, 400) g;

	CREATE TYPE pair AS (x int, y text);
	CREATE TABLE kinds (a bool, b "char", c int2, d int8, e numeric, f name, g char(7), h bytea, i int4range, j oidvector, k point,
		l timestamptz, m jsonb, n pair, o int[], p uuid, q text, r interval, s bit varying(90));
	INSERT INTO kinds SELECT CASE WHEN g % 3 > 0 THEN g % 2 = 0 END, 'x', g, g, g / 7.0, 'name ' || g, g::text, decode(md5(g::text), 'hex'),
		int4range(g, g + 5), '1 2 3', point(g, -g), '2020-01-01'::timestamptz + g * interval '1 min', jsonb_build_object('a', g), ROW(g, repeat('c', g))::pair,
		CASE WHEN g % 5 > 0 THEN ARRAY[g, g] END, md5(g::text)::uuid, repeat('q', g), g * interval '1 day', repeat('1', g % 90)::bit varying FROM generate_series(1, 900) g;

	-- Columns that older rows lack, with a default and without; with one of these defaults some row is longer than a page
	CREATE TABLE grown (id int, wide text);
	ALTER TABLE grown ALTER wide SET STORAGE PLAIN;
	INSERT INTO grown SELECT g, repeat(chr(65 + g % 26), CASE WHEN g % 40 = 0 THEN 6000 ELSE g % 100 END) FROM generate_series(1, 400) g;
	ALTER TABLE grown ADD early int, ADD given int DEFAULT 7;
	INSERT INTO grown SELECT g, 'later', g, g FROM generate_series(401, 500) g;
	ALTER TABLE grown ADD long text DEFAULT repeat('long ', 700), ADD last int;
	INSERT INTO grown (id, wide) SELECT g, 'last' FROM generate_series(501, 600) g;

	CREATE TABLE shrunk (id int, gone text, n int, big text);
	INSERT INTO shrunk SELECT g, 'x', g, CASE WHEN g % 10 = 0 THEN noise(g, 200) END FROM generate_series(1, 300) g;
	ALTER TABLE shrunk DROP gone;

	CREATE TABLE computed (id int, stored int GENERATED ALWAYS AS (id * 2) STORED, read int GENERATED ALWAYS AS (id * 3) VIRTUAL);
	INSERT INTO computed SELECT g FROM generate_series(1, 300) g;
	CREATE TABLE stored (id int, twice int GENERATED ALWAYS AS (id * 2) STORED, big text);
	INSERT INTO stored (id, big) SELECT g, noise(g, g % 100) FROM generate_series(1, 300) g;

	CREATE TABLE parted (id int, big text) PARTITION BY RANGE (id);
	CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (500);
	CREATE TABLE parted_2 (big text, gone int, id int);
	ALTER TABLE parted_2 DROP gone;
	ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (500) TO (1000);
	INSERT INTO parted SELECT g, CASE WHEN g % 10 = 0 THEN noise(g, 100) END FROM generate_series(0, 999) g;

	CREATE TABLE empty (id int, big text);
	CREATE TABLE cut (id int, big text);
	INSERT INTO cut SELECT g, CASE WHEN g % 10 = 0 THEN noise(g, 100) END FROM generate_series(1, 1000) g;
	-- Its values have no TOAST table to go to when it is plain
	CREATE TABLE plainer (id int, big text);
	ALTER TABLE plainer ALTER big SET STORAGE EXTERNAL;
	INSERT INTO plainer SELECT g, noise(g, 70 + g) FROM generate_series(1, 100) g;
	CREATE MATERIALIZED VIEW seen AS SELECT id, external FROM toasted;
	-- As many rows as a page can have, and as few columns
	CREATE TABLE tiny (id int);
	INSERT INTO tiny SELECT NULL FROM generate_series(1, 3000);
	CREATE TABLE none ();
	INSERT INTO none SELECT FROM generate_series(1, 1000);
	CREATE TABLE nullable (id int, b text, c int, d text);
	INSERT INTO nullable SELECT g FROM generate_series(1, 3000) g;
});
my @tables = qw(plain toasted kinds grown shrunk computed stored parted empty cut plainer seen tiny none nullable);

# The truth at each moment, and what has become of it meanwhile
my @moments;

sub remember
{
	my ($what) = @_;
	my %rows = map { $_ => $node->safe_psql('postgres', "SELECT count(*), md5(coalesce(string_agg(r::text, chr(10) ORDER BY r::text), '')) FROM $_ r") } @tables;
	push @moments, { what => $what, at => $node->safe_psql('postgres', 'SELECT clock_timestamp()'), rows => \%rows };
	return;
}

checkpoint($node);
remember('nothing');
$node->safe_psql('postgres', q{
	UPDATE plain SET n = n + 1 WHERE id % 3 = 0; UPDATE plain SET n = n + 1 WHERE id % 6 = 0; DELETE FROM plain WHERE id % 10 = 0;
	UPDATE toasted SET n = 1 WHERE id % 2 = 0; UPDATE toasted SET external = noise(id + 7, 150) WHERE id % 4 = 0; DELETE FROM toasted WHERE id % 9 = 0;
	UPDATE kinds SET e = e + 1 WHERE c % 2 = 0; UPDATE grown SET early = 1 WHERE id % 7 = 0;
	UPDATE nullable SET b = 'b', d = 'd' WHERE id % 2 = 0; UPDATE stored SET id = id + 1000 WHERE id % 2 = 0;
	REFRESH MATERIALIZED VIEW seen});
remember('updates and deletes');
$node->safe_psql('postgres', q{
	BEGIN; UPDATE plain SET n = -1; UPDATE toasted SET external = 'rolled back'; ROLLBACK;
	BEGIN; SAVEPOINT a; DELETE FROM plain WHERE id % 11 = 0; ROLLBACK TO a; SAVEPOINT b; UPDATE plain SET label = 'kept' WHERE id % 13 = 0; RELEASE b; COMMIT;
	BEGIN; DELETE FROM toasted WHERE id % 13 = 0; PREPARE TRANSACTION 'p'});
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; SELECT id FROM plain WHERE id BETWEEN 100 AND 300 FOR KEY SHARE; SELECT id FROM toasted WHERE id < 9 FOR SHARE');
$node->safe_psql('postgres', q{UPDATE plain SET label = 'multixact' WHERE id BETWEEN 150 AND 250});
remember('transactions of all kinds');
$locker->query_safe('COMMIT');
$locker->quit;
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
checkpoint($node);
$node->safe_psql('postgres', q{VACUUM (FREEZE) plain, toasted, nullable; INSERT INTO plain SELECT g, g, 'new' FROM generate_series(9001, 9500) g;
	DELETE FROM cut WHERE id > 200; VACUUM cut; DELETE FROM tiny WHERE ctid < '(1,0)'; DELETE FROM none WHERE ctid < '(1,0)'});
remember('VACUUM');
$node->safe_psql('postgres', q{
	ALTER TABLE plainer ALTER big SET STORAGE PLAIN;
	ALTER TABLE plain ADD late text DEFAULT 'late', ADD later int;
	UPDATE plain SET n = 0; UPDATE toasted SET external = NULL, packed = NULL; DELETE FROM kinds; UPDATE grown SET id = -id; DELETE FROM shrunk; UPDATE parted SET big = NULL;
	DELETE FROM cut; VACUUM cut; VACUUM toasted; VACUUM parted; TRUNCATE stored; UPDATE nullable SET b = NULL; INSERT INTO empty VALUES (1, noise(1, 100))});
checkpoint($node);

my $findings = q{SELECT count(*) FROM verify_heapam('%1$s', check_toast => true)};

sub result_is_sound
{
	my ($name) = @_;
	my $toast = $node->safe_psql('postgres', "SELECT indexrelid::regclass FROM pg_index WHERE indrelid = (SELECT reltoastrelid FROM pg_class WHERE oid = '$name'::regclass)");
	$node->safe_psql('postgres', "SELECT bt_index_check('$toast', true)") if $toast ne '';
	return $node->safe_psql('postgres', sprintf($findings, $name));
}

my ($same, $compared, $copied) = (0, 0, 0);
my $logged = -s $node->logfile;
for my $m (0 .. $#moments)
{
	my $moment = $moments[$m];
	for my $t (0 .. $#tables)
	{
		# Each table at every other moment, and each moment with every other table
		next if !$ENV{FLOE_TEST_LONG} && ($m + $t) % 2;
		my $table = $tables[$t];
		# The present shape has columns that were not there then
		my $columns = $table eq 'plain' ? 'id, n, label' : '*';
		my $workers = ($compared + int($compared / @tables)) % 3;
		# In one session: there are many of them
		my ($missing, $surplus, $findings, $rows, $digest, $frozen) = split /\|/, $node->safe_psql('postgres', qq{
			SELECT FROM polar_flashback_table('$table', '$moment->{at}', result_name => 'inserted', condition => 'true', workers => 0);
			SELECT FROM polar_flashback_table('$table', '$moment->{at}', result_name => 'copied', condition => NULL, workers => $workers);
			SELECT bt_index_check(i.indexrelid, true) FROM pg_index i JOIN pg_class c ON c.reltoastrelid = i.indrelid WHERE c.oid IN ('inserted'::regclass, 'copied'::regclass);
			SELECT (SELECT count(*) FROM (SELECT r::text FROM inserted r EXCEPT ALL SELECT r::text FROM copied r) m),
				(SELECT count(*) FROM (SELECT r::text FROM copied r EXCEPT ALL SELECT r::text FROM inserted r) s),
				(SELECT count(*) FROM verify_heapam('inserted', check_toast => true)) + (SELECT count(*) FROM verify_heapam('copied', check_toast => true)),
				(SELECT count(*) || '|' || md5(coalesce(string_agg(r::text, chr(10) ORDER BY r::text), '')) FROM (SELECT $columns FROM copied) r),
				(SELECT count(*) FROM generate_series(0, pg_relation_size('copied') / 8192 - 1) b, heap_page_items(get_raw_page('copied', b::int))
				WHERE t_infomask & 768 = 768 AND t_infomask & 2048 > 0 AND t_infomask2 & 63488 = 0);
			DROP TABLE inserted, copied}) =~ s/.*\n//sr;
		$compared++;
		$copied++ if $frozen > 0;
		if ("$missing|$surplus|$findings" eq '0|0|0' && "$rows|$digest" eq $moment->{rows}{$table}) { $same++ }
		else { diag("$table before $moment->{what}: $missing missing, $surplus surplus, $findings findings, $rows|$digest instead of $moment->{rows}{$table}") }
	}
}
is($same, $compared, "all $compared results are the same both ways, those of then, and sound");
cmp_ok($copied, '>=', 0.6 * $compared, "$copied of them were copied");
unlike(slurp_file($node->logfile, $logged), qr/WARNING/, 'without a warning');

# It is a table like any other
my $then = $moments[1];
$node->safe_psql('postgres', "SELECT polar_flashback_table('toasted', '$then->{at}', result_name => 'used', with_indexes => true)");
$node->safe_psql('postgres', q{
	SELECT bt_index_check(indexrelid, true) FROM pg_index WHERE indrelid = 'used'::regclass;
	INSERT INTO used SELECT id + 1000, n, noise(id, 120), packed, packed4, parts FROM used;
	UPDATE used SET external = noise(id, 100) WHERE id % 3 = 0; DELETE FROM used WHERE id % 5 = 0; VACUUM (FREEZE) used; UPDATE used SET n = 5});
is(result_is_sound('used'), '0', 'changed and vacuumed it is sound');
is($node->safe_psql('postgres', q{SELECT count(*) FROM used WHERE id < 1000 AND id % 3 > 0 AND external IS NOT NULL AND external <> noise(id + CASE WHEN id % 4 = 0 THEN 7 ELSE 0 END, length(external) / 32)}), '0', 'with its values');
is($node->safe_psql('postgres', q{BEGIN; SELECT polar_flashback_table('plain', '} . $then->{at} . q{', result_name => 'own'); SELECT count(*) FROM own; ROLLBACK}) =~ /\n(\d+)$/ && $1,
	(split /\|/, $then->{rows}{plain})[0], 'the transaction that makes it sees it');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'own'}), '0', 'and nobody does when it fails');
is($node->safe_psql('postgres', q{
	BEGIN; SAVEPOINT s; SELECT polar_flashback_table('plain', '} . $then->{at} . q{', result_name => 'own'); ROLLBACK TO s;
	SELECT polar_flashback_table('plain', '} . $then->{at} . q{', result_name => 'own'); COMMIT; SELECT count(*) FROM own}) =~ /\n(\d+)$/ && $1,
	(split /\|/, $then->{rows}{plain})[0], 'after a savepoint that is rolled back it is made anew');

# A standby has it, and so has the primary after a crash right after its commit
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
checkpoint($node);
$node->safe_psql('postgres', "SELECT polar_flashback_table('$_', '$then->{at}', result_name => '${_}_then')") for qw(plain toasted grown);
$node->wait_for_catchup($standby);
crash($node);
for my $at ([ $standby, 'the standby' ], [ $node, 'the crashed primary' ])
{
	my ($where, $words) = @$at;
	$where->start if $where == $node;
	for my $table (qw(plain toasted grown))
	{
		my $columns = $table eq 'plain' ? 'id, n, label' : '*';
		is($where->safe_psql('postgres', "SELECT count(*), md5(string_agg(r::text, chr(10) ORDER BY r::text)) FROM (SELECT $columns FROM ${table}_then) r"),
			$then->{rows}{$table}, "$table on $words");
		is($where->safe_psql('postgres', sprintf($findings, "${table}_then")), '0', "which is sound");
	}
}

# Nothing is left of one that is cancelled or fails, wherever it is
sub files
{
	$node->safe_psql('postgres', 'CHECKPOINT');
	return $node->safe_psql('postgres', q{SELECT count(*) FROM pg_class; SELECT string_agg(f, ' ' ORDER BY f) FROM pg_ls_dir('base/' || (SELECT oid FROM pg_database WHERE datname = 'postgres')) f
		WHERE f ~ '^[0-9.]+$'});
}
for my $point (qw(flashback-table-rebuild flashback-table-copied))
{
	my $before = files();
	my $session = in_background($node, $point, "SELECT polar_flashback_table('toasted', '$then->{at}', result_name => 'failed')");
	my $bytes = $node->safe_psql('postgres', 'SELECT bytes_written FROM polar_stat_progress_flashback_table');
	cmp_ok($bytes, '>', 0, "$bytes bytes are shown as written at $point") if $point eq 'flashback-table-copied';
	$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM polar_stat_progress_flashback_table});
	wait_until(sub { $node->safe_psql('postgres', 'SELECT count(*) FROM polar_stat_progress_flashback_table') eq '0' }, 'the flashback to end');
	$node->safe_psql('postgres', "SELECT injection_points_detach('$point')");
	$session->quit;
	is(files(), $before, "cancelled at $point it leaves nothing");
	$node->safe_psql('postgres', "SELECT injection_points_attach('$point', 'error')");
	$node->psql('postgres', "SELECT polar_flashback_table('toasted', '$then->{at}', result_name => 'failed')");
	$node->safe_psql('postgres', "SELECT injection_points_detach('$point')");
	is(files(), $before, "failed at $point it leaves nothing");
}
$standby->stop;
$node->stop;
done_testing();
