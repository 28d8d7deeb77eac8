# Each kind of page by itself: visibility map, free space map, hint bits only, new pages, init forks, pages beyond the end,
# truncated and dropped relations whose files came back, sequences.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Standby qw(new_primary new_standby wait_for_replay);
use Floe::Test::Torn qw(remember_files tear_pages repair_source);

srand($ENV{FLOE_TEST_SEED} // 2);

my $primary = new_primary('primary', q{
autovacuum = off
shared_buffers = 1MB
full_page_writes = off
polar_page_repair_guard = off
polar_page_repair_timeout = 1s
checkpoint_timeout = 1h
max_wal_size = 4GB
wal_keep_size = 1GB
});
$primary->safe_psql('postgres', q{
	CREATE EXTENSION page_repair;
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pg_visibility;
	CREATE ROLE page_repair LOGIN;
	GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair;
	CREATE TABLE t (a int PRIMARY KEY, b int, c text) WITH (fillfactor = 80);
	INSERT INTO t SELECT g, 0, repeat(md5(g::text), 3) FROM generate_series(1, 20000) g;
	VACUUM t});
my $standby = new_standby($primary, 'standby');
my $source = repair_source($standby);
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '$source'");
$primary->reload;

my $truth_query = 'SELECT count(*), sum(a), sum(b) FROM t';

# after_checkpoint(sql): what is written after a checkpoint; returns the files as the checkpoint left them
sub after_checkpoint
{
	my ($sql) = @_;
	$primary->safe_psql('postgres', 'CHECKPOINT');
	my $before = remember_files($primary);
	$primary->safe_psql('postgres', $sql);
	# The pool is small: what comes next pushes pages out, written and not synced
	$primary->safe_psql('postgres', 'SELECT count(*) FROM pg_class, pg_attribute');
	return $before;
}

sub stat_is
{
	my ($columns, $expected, $what) = @_;
	is($primary->safe_psql('postgres', "SELECT $columns FROM polar_stat_page_repair"), $expected, $what)
	  or diag($primary->safe_psql('postgres', '\x on \\\\ SELECT * FROM polar_stat_page_repair'));
}

sub sound
{
	my ($what) = @_;
	is($primary->safe_psql('postgres', q{
			SELECT v.* FROM pg_class c, LATERAL verify_heapam(c.oid) v WHERE relkind IN ('r', 'm', 't') AND relpersistence = 'p'}),
		'', "$what: all heaps are sound");
	is($primary->safe_psql('postgres', q{
			SELECT count(bt_index_parent_check(i.indexrelid, true, true)) > 50 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
			WHERE c.relam = 403 AND c.relpersistence = 'p'}), 't', "$what: all indexes are sound");
	is($primary->safe_psql('postgres', q{SELECT count(*) FROM pg_class c, LATERAL pg_check_visible(c.oid) WHERE relkind = 'r' AND relpersistence = 'p'}), '0',
		"$what: no visibility map promises too much");
}

# damage(path, offset): one sector of a page is what it never was
sub damage
{
	my ($path, $block) = @_;
	open my $file, '+<:raw', $primary->data_dir . "/$path" or die "could not open $path: $!";
	seek($file, $block * 8192 + 4096, 0);
	print $file "\x55" x 4096;
	close $file;
}
my $path = $primary->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});

# Visibility map: a source is not even needed
after_checkpoint('UPDATE t SET b = b + 1 WHERE a % 100 = 0; VACUUM t');
my $truth = $primary->safe_psql('postgres', $truth_query);
wait_for_replay($primary, $standby);
crash($primary);
damage("${path}_vm", 0);
$primary->start;
is($primary->safe_psql('postgres', $truth_query), $truth, 'visibility map: all rows are there');
stat_is('torn, vm_initialized, repaired, fsm_reset', '1|1|0|0', 'visibility map: the page was initialized');
sound('visibility map');
cmp_ok($primary->safe_psql('postgres', q{SELECT count(*) FROM pg_visibility_map('t') WHERE all_visible}), '>=', 0, 'visibility map: it can be read');
$primary->safe_psql('postgres', 'VACUUM t');
is($primary->safe_psql('postgres', q{SELECT bool_and(all_visible) FROM pg_visibility_map('t')}), 't', 'visibility map: VACUUM fills it again');

# Maps that no record in WAL names, as one has been written before its record, which was lost
$primary->safe_psql('postgres', 'CREATE TABLE unnamed AS SELECT g AS a FROM generate_series(1, 5000) g; VACUUM unnamed');
my $unnamed = $primary->safe_psql('postgres', q{SELECT pg_relation_filepath('unnamed')});
after_checkpoint('UPDATE t SET b = b + 1 WHERE a % 100 = 0');
wait_for_replay($primary, $standby);
crash($primary);
damage("${unnamed}_vm", 0);
damage("${unnamed}_fsm", 1);
$primary->start;
stat_is('vm_initialized, fsm_reset', '1|1', 'maps that WAL does not name: they are looked at, too');
$primary->safe_psql('postgres', 'DROP TABLE unnamed');

# Free space map: all of its pages, whether replay meets them or not
after_checkpoint('DELETE FROM t WHERE a % 50 = 0; VACUUM t');
$truth = $primary->safe_psql('postgres', $truth_query);
wait_for_replay($primary, $standby);
crash($primary);
damage("${path}_fsm", $_) foreach 0, 1, 2;
$primary->start;
is($primary->safe_psql('postgres', $truth_query), $truth, 'free space map: all rows are there');
stat_is('fsm_reset, repaired', '3|0', 'free space map: its pages were zeroed');
$primary->safe_psql('postgres', 'INSERT INTO t SELECT 50 * g, 0, md5(g::text) FROM generate_series(1, 400) g; VACUUM t');
sound('free space map');
$primary->stop;
command_ok([ 'pg_checksums', '--check', '-D', $primary->data_dir ], 'free space map: every page on disk verifies');
$primary->start;

# Only hint bits changed; replay never reads these pages
$primary->safe_psql('postgres', 'CREATE TABLE hinted AS SELECT g AS a FROM generate_series(1, 20000) g');
my $before = after_checkpoint('SELECT count(*) FROM hinted');
wait_for_replay($primary, $standby);
crash($primary);
my $torn = tear_pages($primary, $before, sector => 512, share => 1);
cmp_ok($torn->{torn}, '>', 10, "hint bits: pages are torn: $torn->{torn}");
$primary->start;
stat_is('torn > 10 AND torn = repaired', 't', 'hint bits: they were found and repaired, although replay does not read them');
is($primary->safe_psql('postgres', 'SELECT count(*), sum(a) FROM hinted'), '20000|200010000', 'hint bits: all rows are there');
$primary->stop;
command_ok([ 'pg_checksums', '--check', '-D', $primary->data_dir ], 'hint bits: every page on disk verifies');
$primary->start;

# New pages and new relations need no source at all
$before = after_checkpoint(q{
	CREATE TABLE new_one (a int PRIMARY KEY, b text);
	INSERT INTO new_one SELECT g, repeat('x', 500) FROM generate_series(1, 5000) g;
	CREATE SEQUENCE s; SELECT nextval('s') FROM generate_series(1, 100);
	CREATE UNLOGGED TABLE u AS SELECT g AS a FROM generate_series(1, 5000) g; CREATE INDEX ON u (a);
	CREATE INDEX ON new_one (b)});
my $new = $primary->safe_psql('postgres', q{
	SELECT string_agg(pg_relation_filepath(c.oid), '|') FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
	WHERE coalesce(i.indrelid, c.oid) IN ('new_one'::regclass, 's'::regclass, 'u'::regclass)});
is(scalar(split /\|/, $new), 6, 'new pages: two tables, a sequence, three indexes');
wait_for_replay($primary, $standby);
$standby->stop;
crash($primary);
$torn = tear_pages($primary, $before, sector => 512, share => 1, only => qr/^(?:$new)(?:\z|[._])/);
cmp_ok($torn->{torn}, '>', 100, "new pages: pages are torn: $torn->{torn}");
is($primary->start(fail_ok => 1), 1, 'new pages: none needs a source');
$standby->start;
is($primary->safe_psql('postgres', 'SELECT count(*), sum(a), sum(length(b)) FROM new_one'), '5000|12502500|2500000', 'new pages: all rows are there');
cmp_ok($primary->safe_psql('postgres', q{SELECT nextval('s')}), '>', 100, 'new pages: the sequence does not go back');
is($primary->safe_psql('postgres', 'SELECT count(*) FROM u'), '0', 'new pages: an unlogged table is empty, as always');
sound('new pages');

# An unlogged relation's init fork is logged as images; it is torn and comes back
$before = after_checkpoint('CREATE UNLOGGED TABLE u2 (' . join(', ', map { "a$_ int UNIQUE" } 1 .. 20) . ')');
wait_for_replay($primary, $standby);
crash($primary);
$torn = tear_pages($primary, $before, sector => 512, share => 1, only => qr/_init$/);
cmp_ok($torn->{torn}, '>', 0, "init fork: pages are torn: $torn->{torn}");
$primary->start;
is($primary->safe_psql('postgres', 'INSERT INTO u2 VALUES (1); SELECT a1 FROM u2'), '1', 'init fork: the indexes can be used');

# Truncated and dropped; the crash undoes both on disk
$primary->safe_psql('postgres', q{
	CREATE TABLE cut AS SELECT g AS a, repeat('y', 200) AS b FROM generate_series(1, 20000) g; CREATE INDEX ON cut (a);
	CREATE TABLE gone AS SELECT * FROM cut; CREATE INDEX ON gone (a);
	CREATE TABLE emptied AS SELECT * FROM cut});
my ($cut, $gone) = split /\|/, $primary->safe_psql('postgres', q{SELECT pg_relation_filepath('cut'), pg_relation_filepath('gone')});
$before = after_checkpoint(q{
	UPDATE cut SET b = 'z' WHERE a % 10 = 0; UPDATE gone SET b = 'z' WHERE a % 10 = 0; UPDATE emptied SET b = 'z' WHERE a % 10 = 0;
	DELETE FROM cut WHERE a > 5000; VACUUM cut; DROP TABLE gone; TRUNCATE emptied; INSERT INTO emptied VALUES (1, 'new')});
wait_for_replay($primary, $standby);
crash($primary);
$torn = tear_pages($primary, $before, sector => 512, share => 1, undo => 1);
cmp_ok($torn->{undone}, '>', 1, "truncation: files are as before: $torn->{undone}");
damage($cut, 500);
damage($gone, 3);
$primary->start;
stat_is('missing', '2', 'truncation: what the source has dropped is zeroed');
is($primary->safe_psql('postgres', 'SELECT count(*), sum(a) FROM cut'), '5000|12502500', 'truncation: the right rows are there');
is($primary->safe_psql('postgres', q{SELECT count(*), to_regclass('gone') IS NULL FROM emptied}) . (-s $primary->data_dir . "/$gone" // 0), '1|t0', 'truncation: a dropped table stays dropped');
sound('truncation');

# The same with always: nothing on disk is believed
$primary->append_conf('postgresql.conf', 'polar_page_repair_policy = always');
$primary->reload;
$before = after_checkpoint(q{
	UPDATE t SET b = b + 1; UPDATE cut SET b = 'w' WHERE a % 10 = 0; DELETE FROM cut WHERE a > 2000; VACUUM cut;
	CREATE TABLE another AS SELECT * FROM t; DROP TABLE emptied});
$truth = $primary->safe_psql('postgres', $truth_query);
wait_for_replay($primary, $standby);
crash($primary);
$torn = tear_pages($primary, $before, sector => 512, share => 1, undo => 1);
$primary->start;
stat_is(q{policy, repaired > 300, missing > 0}, 'always|t|t', 'always: pages were replaced unseen');
is($primary->safe_psql('postgres', $truth_query), $truth, 'always: all rows are there');
is($primary->safe_psql('postgres', 'SELECT count(*), sum(a) FROM cut'), '2000|2001000', 'always: truncated tables, too');
sound('always');

$primary->stop;
command_ok([ 'pg_checksums', '--check', '-D', $primary->data_dir ], 'always: every page on disk verifies');
$standby->stop;
done_testing();
