# What WAL says of tables: in pieces, on a standby and after its promotion, where WAL is missing, and whatever WAL says.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback await_point checkpoint);

my $primary = new_flashback('primary', "autovacuum = off\nmin_wal_size = 32MB\nmax_wal_size = 32MB\n");
$primary->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE TABLE t (id int, v text);
	CREATE TABLE other (id int)});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;
my $start = $primary->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');

# Many transactions, small and large, of which two run side by side, and one is not finished
my $slow = $primary->background_psql('postgres');
for my $round (1 .. 5)
{
	$primary->safe_psql('postgres', "INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 1000 * $round) g");
	$slow->query_safe("BEGIN; UPDATE t SET v = 'y' WHERE id <= 500");
	$primary->safe_psql('postgres', "INSERT INTO other SELECT generate_series(1, 150); DELETE FROM other WHERE id <= 10");
	$slow->query_safe("UPDATE t SET v = 'z' WHERE id > 500 AND id <= 1000; COMMIT");
}
$primary->safe_psql('postgres', 'DELETE FROM t');
my $changes = q{SELECT coalesce(string_agg(concat_ws(' ', relation::regclass, inserted, updated, deleted), ',' ORDER BY lsn, relation), '')
	FROM polar_flashback_activity('%s', %s, 100) WHERE kind = 'change'};
my $all = join ',', map { 't ' . 1000 * $_ . ' 0 0', 'other 150 0 0', 't 0 ' . 1000 * $_ . ' 0' } 1 .. 5;
$all .= ',t 0 0 15000';
is($primary->safe_psql('postgres', sprintf $changes, $start, 2**40), $all, 'in one piece');

# In pieces: each transaction once, as a whole
sub in_pieces
{
	my ($node, $from, $bytes) = @_;
	my (@found, $pieces);
	my $tail = $node->safe_psql('postgres', 'SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END');
	for ($pieces = 0; $pieces < 10_000; $pieces++)
	{
		my ($next, $last, $found) = split /\|/, $node->safe_psql('postgres', qq{WITH a AS MATERIALIZED (SELECT * FROM polar_flashback_activity('$from', $bytes, 100))
			SELECT lsn, lsn >= '$tail', (SELECT string_agg(concat_ws(' ', relation::regclass, inserted, updated, deleted), ',' ORDER BY lsn, relation) FROM a WHERE kind = 'change')
			FROM a WHERE kind = 'end'}), -1;
		push @found, $found if $found ne '';
		last if $next eq $from || $last eq 't';
		$from = $next;
	}
	return (join(',', @found), $pieces);
}
for my $bytes (1_000_000, 100_000)
{
	my ($found, $pieces) = in_pieces($primary, $start, $bytes);
	cmp_ok($pieces, '>', 2, "$pieces pieces of $bytes bytes");
	is($found, $all, 'have each transaction once, as a whole');
}

my ($small, $many) = in_pieces($primary, $start, 40_000);
is(scalar(() = $small =~ /other 150 0 0/g), 5, 'after a transaction that is too large for a piece it goes on');
cmp_ok($many, '<', 10_000, 'and comes to the end');

# One that has not ended is waited for; what it was then is counted
$slow->query_safe('BEGIN; INSERT INTO other SELECT generate_series(1, 200)');
$primary->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(1, 300)');
my $go_on = $primary->safe_psql('postgres', "SELECT lsn FROM polar_flashback_activity('$start', least_rows => 100) WHERE kind = 'end'");
is($primary->safe_psql('postgres', sprintf $changes, $start, 2**40), $all, 'nothing after the start of one that has not ended');
$slow->query_safe('DELETE FROM other; COMMIT');
is($primary->safe_psql('postgres', sprintf $changes, $go_on, 2**40), 't 300 0 0,other 200 0 900', 'until it has');
$slow->quit;

# On a standby, and beyond its promotion
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', sprintf $changes, $start, 2**40), "$all,t 300 0 0,other 200 0 900", 'the same on a standby');
my ($found, $pieces) = in_pieces($standby, $start, 100_000);
is($found, "$all,t 300 0 0,other 200 0 900", 'and in pieces');
$standby->promote;
$standby->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(1, 400)');
is($standby->safe_psql('postgres', sprintf $changes, $start, 2**40), "$all,t 300 0 0,other 200 0 900,t 400 0 0", 'and across its promotion');
$standby->stop;

# After a crash: what had not ended has
$slow = $primary->background_psql('postgres');
$slow->query_safe('BEGIN; INSERT INTO other SELECT generate_series(1, 5000)');
$primary->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(1, 500)');
$primary->stop('immediate');
$slow->{run}->finish;
$primary->start;
$primary->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(1, 600); CHECKPOINT');
is($primary->safe_psql('postgres', sprintf $changes, $go_on, 2**40), 't 300 0 0,other 200 0 900,t 500 0 0,t 600 0 0', 'one that a crash has ended does not hold up others');

# WAL that is missing at the start
$primary->safe_psql('postgres', 'SELECT pg_switch_wal(); INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 1000) g; CHECKPOINT') for 1 .. 6;
my $segment = $primary->safe_psql('postgres', "SELECT pg_walfile_name('$start')");
ok(!-e $primary->data_dir . "/pg_wal/$segment", 'the WAL of the start has been removed');
for my $from ($start, '0/1', '0/0')
{
	like($primary->safe_psql('postgres', sprintf $changes, $from, 2**40), qr/t 1000 0 0$/, "from $from on it begins with the oldest that is there");
}

# Whatever WAL says, the server goes on; FLOE_TEST_LONG=1 says it a million times
my $rounds = $ENV{FLOE_TEST_LONG} ? 1_000_000 : 100_000;
$primary->safe_psql('postgres', q{
	CHECKPOINT;
	CREATE TABLE gone (id int PRIMARY KEY, v text);
	INSERT INTO gone SELECT generate_series(1, 300);
	BEGIN; SAVEPOINT a; UPDATE gone SET v = 'x'; RELEASE a; SAVEPOINT b; DELETE FROM gone; ROLLBACK TO b; COMMIT;
	TRUNCATE gone;
	COPY gone FROM PROGRAM 'seq 1 300 | sed s/$/,/' (FORMAT csv);
	ALTER TABLE gone ALTER v TYPE int USING 1;
	DROP TABLE gone});
my $fuzzed = $primary->safe_psql('postgres', q{CREATE FUNCTION flashback_activity_fuzz(seed int, rounds int) RETURNS int8 AS 'flashback_fuzz' LANGUAGE C;}
	. "SELECT flashback_activity_fuzz(1, $rounds)");
cmp_ok($fuzzed, '>', 10, "$rounds mutated records, of which $fuzzed events were made");

# A cancel; a quick machine reads less WAL than this within the limit
$primary->safe_psql('postgres', "SELECT count(pg_logical_emit_message(false, 'floe', '')) FROM generate_series(1, 300000)");
my $err;
$primary->psql('postgres', "SET statement_timeout = 1; SELECT polar_flashback_activity('0/0', 9223372036854775807)", stderr => \$err);
like($err, qr/canceling statement due to statement timeout/, 'it can be cancelled');
$primary->stop;
done_testing();
