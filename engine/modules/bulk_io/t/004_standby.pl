# Replay extends ahead of need on a standby and in crash recovery: the contents are the primary's, nothing is more
# than a 16th larger, the free space map of a promoted standby knows the unused pages, and 0 turns it off.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
# Each instance by itself: what the standby has more than the primary is due to replay.
$primary->append_conf('postgresql.conf', "autovacuum = off\npolar_bulk_extend_size = 0\nmax_wal_size = 4GB\nshared_buffers = 32MB\n");
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION amcheck; CREATE EXTENSION pg_freespacemap');
$primary->backup('base');

sub new_standby
{
	my ($name, $size) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->append_conf('postgresql.conf', "polar_recovery_bulk_extend_size = $size\n");
	$standby->start;
	return $standby;
}
my $off = new_standby('off', 0);
my $on = new_standby('on', '512kB');

$primary->safe_psql('postgres', q{
	CREATE TABLE tiny (a int);
	INSERT INTO tiny VALUES (1);
	CREATE TABLE t (a int, b text, p point, v tsvector);
	INSERT INTO t SELECT g, md5(g::text), point(g % 100, g / 100), to_tsvector('simple', md5(g::text))
	  FROM generate_series(1, 20000) g;
	CREATE INDEX t_btree ON t (b);
	CREATE INDEX t_gist ON t USING gist (p);
	CREATE INDEX t_spgist ON t USING spgist (p);
	CREATE INDEX t_gin ON t USING gin (v);
	CREATE INDEX t_hash ON t USING hash (b);
	CREATE INDEX t_brin ON t USING brin (a) WITH (pages_per_range = 1);
	UPDATE t SET b = md5(b) WHERE a % 3 = 0;
	INSERT INTO t SELECT a + 20000, b, p, v FROM t;
	CREATE TABLE u (LIKE t);
	VACUUM t;
});

my @relations = split /\n/, $primary->safe_psql('postgres',
	"SELECT relname FROM pg_class WHERE relname ~ '^(t|tiny)(_|\$)' ORDER BY relname");

sub sizes
{
	my ($instance) = @_;
	return { map { split /\|/ } split /\n/, $instance->safe_psql('postgres',
			"SELECT relname, pg_relation_size(oid) / 8192 FROM pg_class WHERE relname ~ '^(t|tiny)(_|\$)'") };
}

sub contents
{
	my ($instance) = @_;
	return $instance->safe_psql('postgres', q{
		SELECT count(*), sum(a), md5(string_agg(b, '' ORDER BY a)) FROM t;
		SET enable_seqscan = off;
		SELECT count(*) FROM t WHERE b IN (SELECT md5(g::text) FROM generate_series(1, 100) g);
		SELECT count(*) FROM t WHERE p <@ box '((0,0),(10,50))';
		SELECT count(*) FROM t WHERE v @@ to_tsquery('simple', md5('77'));
		SELECT count(*) FROM t WHERE a BETWEEN 500 AND 600;
		SELECT count(*) FROM tiny});
}

sub sound
{
	my ($instance, $what) = @_;
	is($instance->safe_psql('postgres', "SELECT * FROM verify_heapam('t')"), '', "$what: heap is sound");
	is($instance->safe_psql('postgres', "SELECT bt_index_parent_check('t_btree', true, true)"), '', "$what: B-tree is sound")
	  unless $instance->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';
	is($instance->safe_psql('postgres', "SELECT bt_index_check('t_btree', true)"), '', "$what: B-tree's keys are there");
}

foreach my $standby ($off, $on)
{
	$primary->wait_for_catchup($standby);
	is(contents($standby), contents($primary), $standby->name . ': contents');
	sound($standby, $standby->name);
}
my ($at_primary, $at_off, $at_on) = map { sizes($_) } $primary, $off, $on;
is_deeply($at_off, $at_primary, 'with 0, sizes are the same as the primary\'s');
my @wasteful = grep { $at_on->{$_} > 1.07 * $at_primary->{$_} } @relations;
is_deeply(\@wasteful, [], 'nothing is more than a 16th larger');
is_deeply([ grep { $at_on->{$_} > $at_primary->{$_} } @relations ],
	['t'], "replay extended the table ahead of need, and no index, which could change the standby's plans");
is($at_on->{tiny}, 1, 'a small table stays small');

# VACUUM of a table with pages ahead of need takes no exclusive lock: a query on a standby goes on, whether VACUUM
# reads the used pages (the first time) or skips them, as all-visible (from then on).
$primary->safe_psql('postgres', q{
	CREATE TABLE ahead (a int, b text STORAGE PLAIN);
	SET polar_bulk_extend_size = '4MB';
	DO $$ BEGIN FOR g IN 1..700 LOOP INSERT INTO ahead VALUES (g, repeat('x', 7000)); END LOOP; END $$;
});
my $ahead = $primary->safe_psql('postgres', "SELECT pg_relation_size('ahead') / 8192");
cmp_ok($ahead, '>', 705, 'pages ahead of need');
$on->safe_psql('postgres', 'ALTER SYSTEM SET max_standby_streaming_delay = 0');
$on->reload;
$primary->wait_for_catchup($on);
my $reader = $on->background_psql('postgres');
$reader->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT a FROM ahead; FETCH 1 FROM c');
foreach my $time (1 .. 3)
{
	# with another size than the session's that added them
	$primary->safe_psql('postgres', 'VACUUM ahead');
	is($primary->safe_psql('postgres', "SELECT pg_relation_size('ahead') / 8192"), $ahead, "VACUUM $time leaves them");
}
$primary->wait_for_catchup($on);
is($reader->query_safe('SELECT count(*) FROM ahead; COMMIT'), '700', 'and the query on the standby goes on');
$reader->quit;

# The primary's truncation holds on the standby, too.
$primary->safe_psql('postgres', 'CREATE TABLE shrinks AS SELECT g AS a, repeat(md5(g::text), 20) AS b FROM generate_series(1, 5000) g');
$primary->safe_psql('postgres', 'DELETE FROM shrinks WHERE a > 100');
$primary->safe_psql('postgres', 'VACUUM shrinks');
$primary->wait_for_catchup($on);
my $size_query = "SELECT pg_relation_size('shrinks')";
is($on->safe_psql('postgres', $size_query), $primary->safe_psql('postgres', $size_query), 'truncation is replayed to the block');

# Reload turns it off and on.
$on->safe_psql('postgres', 'ALTER SYSTEM SET polar_recovery_bulk_extend_size = 0');
$on->reload;
ok($on->poll_query_until('postgres', "SELECT current_setting('polar_recovery_bulk_extend_size') = '0'"), 'reload');
$on->safe_psql('postgres', 'ALTER SYSTEM RESET polar_recovery_bulk_extend_size');
$on->reload;

# No room for what nobody needs: replay goes on with what is needed. The limit leaves less than a step beyond 16 MB.
$on->stop;
{
	my $limit = 16 * 1024 + 256;    # kB
	my $pg_ctl = join ' ', 'pg_ctl', '-w', '-D', $on->data_dir, '-l', $on->logfile, '-o --cluster-name=on', 'start';
	my $offset = -s $on->logfile;
	command_ok([ 'bash', '-c', "unset PGAPPNAME; ulimit -f $limit && exec $pg_ctl" ], 'standby with a limit on the size of files');
	$on->_update_pid(1);
	$primary->safe_psql('postgres', q{
		CREATE TABLE tight (a int, b text STORAGE PLAIN);
		INSERT INTO tight SELECT g, repeat('x', 7000) FROM generate_series(1, 2079) g});
	$primary->wait_for_catchup($on);
	is($on->safe_psql('postgres', 'SELECT count(*) FROM tight'), '2079', 'replay goes on without room for a whole step');
	ok($on->log_contains(qr/LOG:  could not add 64 blocks ahead of need: could not extend file/, $offset), 'and says so');
	$on->stop;
}
$on->start;
is($on->safe_psql('postgres', "SELECT count(*) FROM tight"), '2079', 'standby without the limit');

# A promoted standby uses what replay added. One row a page.
$primary->safe_psql('postgres', q{
	CREATE TABLE grows (a int, b text STORAGE PLAIN);
	INSERT INTO grows SELECT g, repeat('x', 7000) FROM generate_series(1, 1100) g});
$primary->wait_for_catchup($on);
my $blocks = "SELECT pg_relation_size('grows') / 8192";
is($primary->safe_psql('postgres', $blocks), '1100', 'the primary has as many pages as it needs');
my $grown = $on->safe_psql('postgres', $blocks);
cmp_ok($grown, '>', 1100, 'the standby has unused pages');
$on->promote;
my $unused = $grown - 1100;
is($on->safe_psql('postgres', "SELECT count(*) FROM pg_freespace('grows') WHERE blkno >= 1100 AND avail > 8000"),
	$unused, 'the free space map of a promoted standby knows them');
$on->safe_psql('postgres', "INSERT INTO grows SELECT g, repeat('y', 7000) FROM generate_series(1, $unused) g");
is($on->safe_psql('postgres', $blocks), $grown, 'and they are used first');
is($on->safe_psql('postgres', "SELECT * FROM verify_heapam('grows')"), '', 'promoted standby: heap that grew is sound');
$on->safe_psql('postgres', 'VACUUM t; INSERT INTO t SELECT a + 200000, b, p, v FROM t');
sound($on, 'promoted standby');
$on->stop;

# Crash recovery on the primary
my $expected = contents($primary);
$primary->append_conf('postgresql.conf', "polar_recovery_bulk_extend_size = 8MB\n");
$primary->safe_psql('postgres', 'CREATE TABLE after_checkpoint AS SELECT * FROM t; CREATE INDEX after_idx ON after_checkpoint (b)');
my $size_after = $primary->safe_psql('postgres', "SELECT pg_relation_size('after_checkpoint')");
$primary->stop('immediate');
$primary->start;
is(contents($primary), $expected, 'crash recovery: contents');
is($primary->safe_psql('postgres', "SELECT bt_index_parent_check('after_idx', true, true)"), '', 'crash recovery: B-tree is sound');
cmp_ok($primary->safe_psql('postgres', "SELECT pg_relation_size('after_checkpoint')"), '<=', 1.07 * $size_after, 'crash recovery: no waste');

$off->stop;
$primary->stop;
done_testing();
