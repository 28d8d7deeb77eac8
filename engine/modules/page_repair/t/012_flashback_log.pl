# The flashback log alone, without any standby: pages of all kinds that a crash tore come back from it.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Repair qw(new_repairable with_log copy_instance attempt);
use Floe::Test::Torn qw(remember_files tear_pages);

srand($ENV{FLOE_TEST_SEED} // 20261124);

my $node = new_repairable('node', with_log());
$node->safe_psql('postgres', q{
	CREATE EXTENSION flashback_log;
	CREATE EXTENSION pg_visibility;
	CREATE TABLE hinted AS SELECT * FROM t;
	VACUUM t});
my $truth_query = 'SELECT count(*), sum(a), sum(b), md5(string_agg(c, NULL ORDER BY a)) FROM t';

sub after_checkpoint
{
	my ($sql) = @_;
	$node->safe_psql('postgres', 'CHECKPOINT');
	my $before = remember_files($node);
	$node->safe_psql('postgres', $sql);
	# The pool is small: what comes next pushes pages out, written and not synced
	$node->safe_psql('postgres', 'SELECT count(*) FROM pg_class, pg_attribute');
	return $before;
}

sub stat_is
{
	my ($columns, $expected, $what) = @_;
	is($node->safe_psql('postgres', "SELECT $columns FROM polar_stat_page_repair"), $expected, $what)
	  or diag($node->safe_psql('postgres', '\x on \\\\ SELECT * FROM polar_stat_page_repair'));
	return;
}

sub all_is_sound
{
	my ($name) = @_;
	is($node->safe_psql('postgres', q{
			SELECT v.* FROM pg_class c, LATERAL verify_heapam(c.oid) v WHERE relkind IN ('r', 'm', 't') AND relpersistence = 'p'}),
		'', "$name: all heaps are sound");
	is($node->safe_psql('postgres', q{
			SELECT count(bt_index_parent_check(i.indexrelid, true, true)) > 50 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
			WHERE c.relam = 403 AND c.relpersistence = 'p'}), 't', "$name: all indexes are sound");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class c, LATERAL pg_check_visible(c.oid) WHERE relkind = 'r' AND relpersistence = 'p'}), '0',
		"$name: no visibility map promises too much");
	$node->stop;
	command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], "$name: every page on disk verifies");
	$node->start;
	return;
}

# damage(path, block): one sector of a page is what it never was
sub damage
{
	my ($path, $block) = @_;
	open my $file, '+<:raw', $node->data_dir . "/$path" or die "could not open $path: $!";
	seek($file, $block * 8192 + 4096, 0);
	print $file "\x55" x 4096;
	close $file;
	return;
}

foreach my $policy ('checksum', 'always')
{
	foreach my $sector (4096, 512)
	{
		my $name = "$policy, sectors of $sector";
		my $before = after_checkpoint(q{
			UPDATE t SET b = b + 1 WHERE a % 3 = 0;
			INSERT INTO t SELECT (SELECT max(a) FROM t) + g, 1, md5(g::text) FROM generate_series(1, 2000) g;
			DELETE FROM t WHERE a % 7 = 0;
			VACUUM t;
			-- only hints change on these pages
			SELECT count(*) FROM hinted});
		my $truth = $node->safe_psql('postgres', $truth_query);
		crash($node);
		# Only "always" promises anything for a page whose checksum is right by accident
		my $torn = tear_pages($node, $before, sector => $sector, unseen => $policy eq 'always');
		cmp_ok($torn->{torn}, '>', 20, "$name: pages are torn: $torn->{torn}, lost: $torn->{lost}");

		my $stock = copy_instance("stock_${policy}_$sector", $node->data_dir, "polar_page_repair_policy = off\npolar_enable_flashback_log = off\n");
		my ($started, $log) = attempt($stock);
		is($started, 0, "$name: PostgreSQL does not start");
		like($log, qr/FATAL: .*invalid page in block/, "$name: because a page is torn");
		$stock->clean_node;

		$node->append_conf('postgresql.conf', "polar_page_repair_policy = $policy\n");
		($started, $log) = attempt($node);
		is($started, 1, "$name: the module does") or die $log;
		is($node->safe_psql('postgres', $truth_query), $truth, "$name: all that was committed is there");
		stat_is(q{recovery, policy, torn > 0 OR policy = 'always', repaired > 20, log_pages = repaired, log_why IS NULL}, "crash|$policy|t|t|t|t", "$name: the view tells");
		is($node->safe_psql('postgres', q{SELECT number, source, s.pages = r.repaired, s.bytes = r.bytes FROM polar_stat_page_repair r, polar_page_repair_sources s}),
			'0|flashback log|t|t', "$name: and from where");
		like($log, qr/repaired block \d+ of relation "base\/.*": taken from source "flashback log"/, "$name: so does the log") if $policy eq 'checksum';
		cmp_ok($node->safe_psql('postgres', 'SELECT log_kept FROM polar_stat_page_repair'), $policy eq 'always' ? '>=' : '==', 0, "$name: what was not written since is left");
		all_is_sound($name);
	}
}

# Maps have no images: a visibility map is cleared, a free space map is emptied
$node->append_conf('postgresql.conf', "polar_page_repair_policy = checksum\n");
$node->reload;
my $path = $node->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});
after_checkpoint('UPDATE t SET b = b + 1 WHERE a % 100 = 0; VACUUM t');
my $truth = $node->safe_psql('postgres', $truth_query);
crash($node);
damage("${path}_vm", 0);
damage("${path}_fsm", $_) foreach 0, 1, 2;
$node->start;
is($node->safe_psql('postgres', $truth_query), $truth, 'maps: all rows are there');
stat_is('vm_initialized, fsm_reset, repaired', '1|3|0', 'maps: they were made good without the log');
all_is_sound('maps');

# The same with always: nobody looks at the checksum of a visibility map either
$node->append_conf('postgresql.conf', "polar_page_repair_policy = always\n");
$node->reload;
after_checkpoint('UPDATE t SET b = b + 1 WHERE a % 100 = 0; VACUUM t; UPDATE t SET b = b + 1 WHERE a % 100 = 1');
crash($node);
$node->start;
stat_is('vm_initialized > 0, missing', 't|0', 'maps, always: a visibility map that WAL changes is cleared unseen');
all_is_sound('maps, always');

# Truncated and dropped; the crash undoes both on disk
foreach my $policy ('checksum', 'always')
{
	$node->append_conf('postgresql.conf', "polar_page_repair_policy = $policy\n");
	$node->reload;
	$node->safe_psql('postgres', q{
		DROP TABLE IF EXISTS cut, gone, emptied;
		CREATE TABLE cut AS SELECT g AS a, repeat('y', 200) AS b FROM generate_series(1, 20000) g; CREATE INDEX ON cut (a);
		CREATE TABLE gone AS SELECT * FROM cut; CREATE INDEX ON gone (a);
		CREATE TABLE emptied AS SELECT * FROM cut});
	my ($cut, $gone) = split /\|/, $node->safe_psql('postgres', q{SELECT pg_relation_filepath('cut'), pg_relation_filepath('gone')});
	my $before = after_checkpoint(q{
		UPDATE cut SET b = 'z' WHERE a % 10 = 0; UPDATE gone SET b = 'z' WHERE a % 10 = 0; UPDATE emptied SET b = 'z' WHERE a % 10 = 0;
		DELETE FROM cut WHERE a > 5000; VACUUM cut; DROP TABLE gone; TRUNCATE emptied; INSERT INTO emptied VALUES (1, 'new')});
	crash($node);
	my $torn = tear_pages($node, $before, sector => 512, share => 1, undo => 1);
	cmp_ok($torn->{undone}, '>', 1, "truncation, $policy: files are as before: $torn->{undone}");
	damage($cut, 500);
	damage($gone, 3);
	$node->start;
	is($node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM cut'), '5000|12502500', "truncation, $policy: the right rows are there");
	is($node->safe_psql('postgres', q{SELECT count(*), to_regclass('gone') IS NULL FROM emptied}) . (-s $node->data_dir . "/$gone" // 0), '1|t0', "truncation, $policy: a dropped table stays dropped");
	all_is_sound("truncation, $policy");
}

# New pages, of a table and of a new one: what they were is nothing, and WAL makes them
$node->append_conf('postgresql.conf', "polar_page_repair_policy = checksum\n");
$node->reload;
my $before = after_checkpoint(q{
	CREATE TABLE new_one (a int PRIMARY KEY, b text);
	INSERT INTO new_one SELECT g, repeat('x', 500) FROM generate_series(1, 5000) g;
	INSERT INTO t SELECT (SELECT max(a) FROM t) + g, 1, md5(g::text) FROM generate_series(1, 20000) g});
$truth = $node->safe_psql('postgres', $truth_query);
crash($node);
my $torn = tear_pages($node, $before, sector => 512, share => 1);
cmp_ok($torn->{torn}, '>', 300, "new pages: pages are torn: $torn->{torn}");
$node->start;
is($node->safe_psql('postgres', $truth_query), $truth, 'new pages: all rows are there');
is($node->safe_psql('postgres', 'SELECT count(*), sum(a), sum(length(b)) FROM new_one'), '5000|12502500|2500000', 'new pages: of a new table, too');
stat_is('log_why IS NULL', 't', 'new pages: the log was enough');
all_is_sound('new pages');

$node->stop;
done_testing();
