# The counters survive a clean restart and nothing else, as those of pg_stat_wal, and they move without the extension.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Wait qw(wait_for_restart);

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init;
$node->append_conf('postgresql.conf', "autovacuum = off\nrestart_after_crash = on\n");
$node->start;
my $file = $node->data_dir . '/pg_stat/polar_stat_wal.stat';

my $write = 'CHECKPOINT; CREATE TABLE IF NOT EXISTS t (a int); INSERT INTO t SELECT generate_series(1, 10000); DROP TABLE t; SELECT pg_stat_force_next_flush()';
my $both = q{SELECT p.wal_fpi_bytes, p.stats_reset = s.stats_reset AND p.wal_bytes = s.wal_bytes AND p.wal_fpi = s.wal_fpi
	FROM polar_stat_wal p, pg_stat_wal s};

sub counters
{
	return split /\|/, $node->safe_psql('postgres', "SET stats_fetch_consistency = snapshot; $both");
}

# Written before the extension exists; initdb wrote WAL before modules are loaded, and pg_stat_wal knows that
$node->safe_psql('postgres', q{SELECT pg_stat_reset_shared('wal')});
$node->safe_psql('postgres', $write);
$node->safe_psql('postgres', 'CREATE EXTENSION monitor');
my ($bytes, $same) = counters();
ok($bytes > 10_000, 'WAL is counted although the extension was not created');
is($same, 't', 'the counters are those of pg_stat_wal');

my ($before) = counters();
my $reset = $node->safe_psql('postgres', 'SELECT stats_reset FROM polar_stat_wal');
$node->stop('fast');
ok(-s $file, 'a clean shutdown writes the counters');
my $saved = slurp_file($file);
$node->start;
ok(!-e $file, 'they are taken over once');
($bytes, $same) = counters();
cmp_ok($bytes, '>=', $before, 'the counters survive a clean restart');
cmp_ok($bytes, '<', 2 * $before, 'and do not grow by it');
is($same, 't', 'and are still those of pg_stat_wal');
is($node->safe_psql('postgres', 'SELECT stats_reset FROM polar_stat_wal'), $reset, 'stats_reset survives a clean restart');

# A single-user session may write WAL, too.
my ($running) = counters();
$node->stop('fast');
my $result = run_log(
	[ 'postgres', '--single', '-F', '-D', $node->data_dir, 'postgres' ],
	'<', \"CREATE TABLE u AS SELECT generate_series(1, 20000) AS a\n");
ok($result, 'single-user mode runs');
ok(-s $file, 'single-user mode writes the counters');
$node->start;
($bytes, $same) = counters();
cmp_ok($bytes, '>', $running, 'what single-user mode has written is counted');
is($same, 't', 'as it is in pg_stat_wal');

$node->safe_psql('postgres', q{SELECT pg_stat_reset_shared('wal')});
# Zero but for what the observing session itself may cause, such as an image for a hint bit
($bytes, $same) = counters();
cmp_ok($bytes, '<', 100_000, q{pg_stat_reset_shared('wal') resets the counters});
is($same, 't', 'at the same moment as those of pg_stat_wal');
is($node->safe_psql('postgres', q{
	BEGIN; SET LOCAL stats_fetch_consistency = snapshot;
	SELECT wal_bytes >= 0 FROM polar_stat_wal; COMMIT;
	SELECT pg_stat_reset_shared(); SELECT wal_records, wal_fpi, wal_bytes, wal_fpi_bytes, wal_buffers_full FROM polar_stat_wal})
	=~ /0\|0\|0\|0\|0\z/, 1, 'pg_stat_reset_shared() sets all counters to zero');

# Counters of an older reset are void: a plain PostgreSQL may have run in between.
$node->stop('fast');
open my $out, '>:raw', $file or die "could not open $file: $!";
print $out $saved;
close $out;
$node->start;
($bytes) = counters();
cmp_ok($bytes, '<', $before, 'saved counters that belong to another reset are not taken over');
is($node->safe_psql('postgres', 'SELECT p.stats_reset = s.stats_reset FROM polar_stat_wal p, pg_stat_wal s'),
	't', 'stats_reset is that of pg_stat_wal');

# A damaged file costs the counters, not the start.
$node->stop('fast');
open $out, '>:raw', $file or die "could not open $file: $!";
print $out 'damaged';
close $out;
my $offset = -s $node->logfile;
$node->start;
ok($node->log_contains(qr{statistics file "pg_stat/polar_stat_wal.stat" is discarded}, $offset), 'a damaged file is reported');
($bytes) = counters();
cmp_ok($bytes, '<', 100_000, 'and the counters begin anew');

foreach my $how (qw(immediate crash))
{
	$node->safe_psql('postgres', $write);
	if ($how eq 'crash') { crash($node); }
	else { $node->stop('immediate'); }
	$node->start;
	($bytes, $same) = counters();
	cmp_ok($bytes, '<', 10_000 + 100_000, "the counters are reset by recovery ($how)");
	is($same, 't', "as those of pg_stat_wal are ($how)");
}

# The postmaster lives on when a backend crashes; shared memory does not.
$node->safe_psql('postgres', $write);
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query('SELECT pg_backend_pid()');
my $old = $node->safe_psql('postgres', 'SELECT stats_reset FROM polar_stat_wal');
$offset = -s $node->logfile;
kill 'KILL', $pid;
wait_for_restart($node, $offset);
is($node->safe_psql('postgres', "SELECT stats_reset > '$old' FROM polar_stat_wal"), 't', 'the instance is back after a backend was killed');
eval { $session->quit };
($bytes, $same) = counters();
is($same, 't', 'and its counters are those of pg_stat_wal');
$node->stop;
done_testing();
