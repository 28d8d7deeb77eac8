# Which moment is which position: between commits, at points, at the ends of the window; when the clock or a commit stands still.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback checkpoint in_background);
use Floe::Test::Wait qw(wait_until);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\n");
$node->safe_psql('postgres', 'CREATE EXTENSION flashback_table; CREATE TABLE t (a int)');

sub count_at
{
	my ($moment) = @_;
	return $node->safe_psql('postgres', "SELECT polar_flashback_count('t', $moment)");
}

# Each row is there from the very microsecond of its commit on
checkpoint($node);
for my $i (1 .. 12)
{
	$node->safe_psql('postgres', "INSERT INTO t VALUES ($i)");
	checkpoint($node) if $i % 4 == 0;
}
my @commits = split /\n/, $node->safe_psql('postgres', 'SELECT pg_xact_commit_timestamp(xmin) FROM t ORDER BY a');
for my $i (1 .. 12)
{
	is(count_at("'$commits[$i - 1]'"), $i, "at the commit of row $i");
	is(count_at("timestamptz '$commits[$i - 1]' - interval '1 microsecond'"), $i - 1, 'and just before it');
}
my @points = split /\n/, $node->safe_psql('postgres', 'SELECT "time" FROM polar_flashback_points ORDER BY number');
for my $point (@points)
{
	my $expected = grep { $_ le $point } @commits;
	is(count_at("'$point'"), $expected, 'at the time of a point') if $point ge $commits[0];
}

# The ends of the window
my ($out, $err);
is($node->safe_psql('postgres', q{SELECT possible, reason, nearest_time = (SELECT min("time") FROM polar_flashback_points) FROM polar_flashback_check('t', now() - interval '1 day')}),
	'f|the target time is before the oldest moment of the flashback log|t', 'before the window, with the moment that works');
is($node->safe_psql('postgres', q{SELECT possible, reason, nearest_time > now() - interval '1 minute' FROM polar_flashback_check('t', now() + interval '1 day')}),
	'f|the target time is in the future|t', 'in the future');
for my $extreme ("'infinity'", "'-infinity'")
{
	isnt($node->psql('postgres', "SELECT polar_flashback_count('t', $extreme)"), 0, "$extreme is refused");
}
is($node->safe_psql('postgres', "SELECT possible, reason IS NULL, hint IS NULL, nearest_time, point = (SELECT max(number) FROM polar_flashback_points WHERE \"time\" <= '$commits[11]'), wal_bytes > 0, pages
	FROM polar_flashback_check('t', '$commits[11]')"), "t|t|t|$commits[11]|t|t|1", 'what it takes');

# A stalls between its time and its commit record while B, which is older, commits a delete and its row is pruned: as of A's time
# there are both rows, although B's record comes before A's
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'injection_points'");
$node->restart;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pageinspect;
	CREATE TABLE s (what text);
	INSERT INTO s VALUES ('deleted by b'), ('unchanged')});
checkpoint($node);
my $b = $node->background_psql('postgres');
$b->query_safe(q{BEGIN; DELETE FROM s WHERE what = 'deleted by b'});
my $a = $node->background_psql('postgres');
$a->query_until(qr/started/, q{SELECT injection_points_set_local();
	SELECT injection_points_attach('commit-before-record', 'wait');
	\echo started
	INSERT INTO s VALUES ('inserted by a');
});
ok($node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'commit-before-record')}), 'a stands still');
my $between = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
$b->query_safe('COMMIT');
$b->quit;
$node->safe_psql('postgres', 'VACUUM s');
is($node->safe_psql('postgres', q{SELECT what FROM s}), 'unchanged', 'b has committed, a has not');
is($node->safe_psql('postgres', q{SELECT lp_flags FROM heap_page_items(get_raw_page('s', 0)) WHERE lp = 1}), '0', 'the row of b is pruned');
my $waiting = $node->background_psql('postgres');
$waiting->query_until(qr/started/, qq{\\echo started\nSELECT 'found ' || string_agg(what, ',' ORDER BY what) FROM polar_flashback_rows(NULL::s, '$between');\n});
ok($node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'CheckpointDelayStart')}),
	'whoever asks meanwhile for a later moment waits for a');
$node->safe_psql('postgres', q{SELECT injection_points_wakeup('commit-before-record')});
$waiting->query_until(qr/found deleted by b,inserted by a,unchanged/, '');
$waiting->quit;
$a->quit;
my $of_a = q{SELECT pg_xact_commit_timestamp(xmin) FROM s WHERE what = 'inserted by a'};
ok($node->safe_psql('postgres', "SELECT ($of_a) < '$between'") eq 't', 'a took its time before b');
is($node->safe_psql('postgres', "SELECT string_agg(what, ',' ORDER BY what) FROM polar_flashback_rows(NULL::s, ($of_a))"),
	'deleted by b,inserted by a,unchanged', 'a counts and b does not, as their times say');
is($node->safe_psql('postgres', "SELECT string_agg(what, ',' ORDER BY what) FROM polar_flashback_rows(NULL::s, ($of_a) - interval '1 microsecond')"),
	'deleted by b,unchanged', 'before, only what b deleted');

# What a subscription writes has the commit timestamp of the publisher
$node->safe_psql('postgres', q{CREATE TABLE r (a int); SELECT pg_replication_origin_create('elsewhere')});
my @applied;
for my $i (1 .. 4)
{
	checkpoint($node) if $i == 3;
	$node->safe_psql('postgres', q{SELECT pg_replication_origin_session_setup('elsewhere');
		BEGIN; SELECT pg_replication_origin_xact_setup('0/1', '2100-01-01'); SAVEPOINT s; INSERT INTO r VALUES (} . $i . '); COMMIT');
	push @applied, $node->safe_psql('postgres', 'SELECT clock_timestamp()');
}
is($node->safe_psql('postgres', "SELECT polar_flashback_count('r', '$applied[$_ - 1]')"), $_, "row $_ of a subscription") for 1 .. 4;

# Also while an older transaction runs on
my $old = $node->background_psql('postgres');
$old->query_safe('BEGIN; SAVEPOINT s; SELECT pg_current_xact_id()');
$node->safe_psql('postgres', q{SELECT pg_replication_origin_session_setup('elsewhere');
	BEGIN; SELECT pg_replication_origin_xact_setup('0/1', '2100-01-01'); SAVEPOINT s; INSERT INTO r VALUES (5); COMMIT});
checkpoint($node);
push @applied, $node->safe_psql('postgres', 'SELECT clock_timestamp()');
$node->safe_psql('postgres', q{SELECT pg_replication_origin_session_setup('elsewhere');
	BEGIN; SELECT pg_replication_origin_xact_setup('0/1', '2100-01-01'); SAVEPOINT s; INSERT INTO r VALUES (6); COMMIT});
push @applied, $node->safe_psql('postgres', 'SELECT clock_timestamp()');
is($node->safe_psql('postgres', "SELECT polar_flashback_count('r', '$applied[$_ - 1]')"), $_, "row $_, beside an older transaction") for 1 .. 6;
$old->query_safe('COMMIT');
$old->quit;
$node->stop;

# Without a fast recovery area the window gives way, also while a table is read
my $short = new_flashback('short', "polar_flashback_log_keep_segments = 3\npolar_flashback_log_compression = off\nmin_wal_size = 32MB\n");
$short->safe_psql('postgres', q{CREATE EXTENSION flashback_table; CREATE TABLE t (a int, b text); ALTER TABLE t ALTER b SET STORAGE plain;
	INSERT INTO t SELECT g, repeat(md5(g::text), 30) FROM generate_series(1, 1000) g});
my $first = checkpoint($short);
my $then = $short->safe_psql('postgres', 'SELECT clock_timestamp()');
$short->safe_psql('postgres', 'UPDATE t SET a = a + 1');
my $reader = in_background($short, 'flashback-table-rebuild', qq{SELECT polar_flashback_count('t', '$then')});
$short->safe_psql('postgres', 'UPDATE t SET a = a + 1; VACUUM t; CHECKPOINT') foreach 1 .. 8;
ok($short->poll_query_until('postgres', "SELECT min(number) > $first FROM polar_flashback_points"), 'the point of a scan goes meanwhile');
$short->safe_psql('postgres', q{SELECT injection_points_detach('flashback-table-rebuild'); SELECT injection_points_wakeup('flashback-table-rebuild')});
$reader->query_until(qr/completed/, '');
unlike($reader->{stdout}, qr/1000/, 'the scan returns nothing');
like($reader->{stderr}, qr/ERROR/, 'but an error');
$reader->quit;
is($short->safe_psql('postgres', "SELECT reason FROM polar_flashback_check('t', '$then')"),
	'the target time is before the oldest moment of the flashback log', 'later ones are refused');

# Commit status that is not kept, while the WAL is: on a slow machine a checkpoint may come between
$short->append_conf('postgresql.conf', 'wal_keep_size = 1GB');
$short->reload;
$first = checkpoint($short);
$then = $short->safe_psql('postgres', 'SELECT clock_timestamp()');
$short->safe_psql('postgres', q{UPDATE pg_database SET datallowconn = true WHERE datname = 'template0'});
foreach my $database ('template0', 'template1', 'postgres') { $short->safe_psql($database, 'SELECT pg_current_xact_id(); VACUUM FREEZE'); }
$short->safe_psql('postgres', 'CREATE TABLE kept (a int)');
my $missing = $short->safe_psql('postgres', 'BEGIN; SELECT clock_timestamp(); INSERT INTO kept SELECT 1; COMMIT');
foreach my $database ('template0', 'template1', 'postgres') { $short->safe_psql($database, 'SELECT pg_current_xact_id(); VACUUM FREEZE'); }
$short->psql('postgres', "SELECT polar_flashback_count('kept', '$missing')", stderr => \my $error);
like($error, qr/ERROR:  (the commit timestamp of transaction \d+ is missing|the commit status of)/, 'nothing is guessed about a transaction whose commit timestamp is gone');
is($short->safe_psql('postgres', "SELECT polar_flashback_count('t', '$then')"), 1000, 'what had committed before is known');
$short->stop;
done_testing();
