# Blocks that are written together: a crash or an error in the middle of a run loses nothing and leaves nothing behind, a checkpoint
# writes in runs and goes on after several errors, the smallest pool with many writers is enough, and so is a small one in which runs
# are as long as its pins allow.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash_at_injection_point);

if (($ENV{enable_injection_points} // '') ne 'yes')
{
	plan skip_all => 'Injection points not supported by this build';
}

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
autovacuum = off
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
shared_buffers = 32MB
polar_bulk_write_size = 256kB
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION injection_points;
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE t (a int, b text);
	INSERT INTO t SELECT g, repeat('x', 900) FROM generate_series(1, 16000) g;
	CREATE TABLE vacuumed AS SELECT * FROM t;
	CREATE INDEX ON t (a)});
my $rows = '16000|128008000';

sub sound
{
	my ($what) = @_;
	foreach my $table ('t', 'vacuumed')
	{
		is($node->safe_psql('postgres', "SELECT * FROM verify_heapam('$table')"), '', "$what: $table is sound");
	}
	is($node->safe_psql('postgres', q{SELECT count(*), sum(a) FROM t}), $rows, "$what: all rows are there");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_buffercache WHERE pinning_backends > 0'), '0', "$what: no buffer is pinned");
	return;
}

# A checkpoint that is waited for no longer than a test may take: psql's exit status, and whether that time was over.
sub checkpoint_in_time
{
	my ($out, $err, $timed_out) = ('', '', 0);
	my $status = $node->psql('postgres', 'CHECKPOINT', stdout => \$out, stderr => \$err,
		timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \$timed_out);
	return ($status // 'none', $timed_out ? 1 : 0);
}

# What the checkpointer writes: requests and blocks of one checkpoint of some 2,000 dirty blocks.
sub checkpoint_writes
{
	my $figures = sub {
		return split /\|/, $node->safe_psql('postgres', q{
			SELECT writes, write_bytes / 8192, (SELECT buffers_written FROM pg_stat_checkpointer)
			FROM pg_stat_io WHERE backend_type = 'checkpointer' AND object = 'relation' AND context = 'normal'});
	};
	$node->safe_psql('postgres', 'CHECKPOINT; UPDATE t SET a = a');
	my @before = $figures->();
	$node->safe_psql('postgres', 'CHECKPOINT');
	$node->poll_query_until('postgres', "SELECT buffers_written > $before[2] FROM pg_stat_checkpointer") or die 'no checkpoint';
	my @after = $figures->();
	return map { $after[$_] - $before[$_] } 0 .. 2;
}
my ($requests, $blocks, $counted) = checkpoint_writes();
cmp_ok($blocks, '>', 1000, 'a checkpoint of many blocks');
cmp_ok($blocks / $requests, '>', 12, 'writes them in runs');
is($counted, $blocks, 'and counts each block');
$node->append_conf('postgresql.conf', 'polar_bulk_write_size = 0');
$node->reload;
($requests, $blocks, $counted) = checkpoint_writes();
is("$requests $counted", "$blocks $blocks", 'with 0 one by one');
$node->append_conf('postgresql.conf', 'polar_bulk_write_size = 256kB');
$node->reload;

my %loads = (
	'CREATE TABLE AS' => 'CREATE TABLE crashed AS SELECT a.* FROM t a, generate_series(1, 3)',
	'COPY' => "COPY t FROM PROGRAM 'seq -f %.0f,y 1 3000000' (FORMAT csv)",
	'VACUUM' => "VACUUM (BUFFER_USAGE_LIMIT '512kB') vacuumed",
	'CHECKPOINT' => 'CHECKPOINT');
foreach my $load (sort keys %loads)
{
	$node->safe_psql('postgres', 'CHECKPOINT; UPDATE t SET b = b; DELETE FROM vacuumed WHERE a % 5 = 0; UPDATE vacuumed SET a = a WHERE a % 5 = 1');
	crash_at_injection_point($node, 'bulk-io-write-part', $loads{$load});
	$node->start;
	sound("crash in the middle of a run of $load");

	$node->safe_psql('postgres', 'UPDATE t SET b = b; UPDATE vacuumed SET a = a');
	$node->safe_psql('postgres', q{SELECT injection_points_attach('bulk-io-write-part', 'error')});
	my $offset = -s $node->logfile;
	my ($out, $err);
	isnt($node->psql('postgres', $loads{$load}, stdout => \$out, stderr => \$err), 0, "$load fails in the middle of a run");
	ok($node->log_contains(qr/CONTEXT:  .*writing blocks \d+\.\.\d+ of relation "base/, $offset), 'the message names the blocks');
	$node->safe_psql('postgres', q{SELECT injection_points_detach('bulk-io-write-part')});
	sound("error in the middle of a run of $load");
	is($node->psql('postgres', 'CHECKPOINT'), 0, 'then all can be written');
}

# The checkpointer's resource owner is used again after each error, and must be as new: with runs longer than its array, a later
# checkpoint would never end
$node->append_conf('postgresql.conf', 'polar_bulk_write_size = 1MB');
$node->reload;
foreach my $failure (1 .. 4)
{
	$node->safe_psql('postgres', q{UPDATE t SET b = b; SELECT injection_points_attach('bulk-io-write-part', 'error')});
	my $offset = -s $node->logfile;
	my ($status, $timed_out) = checkpoint_in_time();
	is($timed_out, 0, "checkpoint $failure of a failing disk ends");
	isnt($status, 0, 'with an error');
	ok($node->log_contains(qr/ERROR:.*bulk-io-write-part/, $offset), 'which is that of the write');
	$node->safe_psql('postgres', q{SELECT injection_points_detach('bulk-io-write-part')});
}
my ($status, $timed_out) = checkpoint_in_time();
is("$status, $timed_out", '0, 0', 'and one of a disk that is well again succeeds');
sound('several errors in runs of a checkpoint');
$node->stop;
command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], 'checksums are right');

# Many writers of the same table, in the smallest pool, where nobody may pin a second buffer, and in one of 1,024 buffers, where each
# process of 61 may pin 16, 8 of which count as held: 9 blocks are the longest run
$node->append_conf('postgresql.conf', "max_connections = 12\nautovacuum_worker_slots = 1\nautovacuum_max_workers = 1\npolar_bulk_write_size = 1MB\nrestart_after_crash = off\n");
my $script = $node->basedir . '/writers.sql';
append_to_file($script, <<'SQL');
\set n random(1, 10)
COPY small (a) FROM PROGRAM 'seq 1 3000';
SELECT pg_stat_force_next_flush();
\if :n = 1
VACUUM (BUFFER_USAGE_LIMIT '128kB') small;
\elif :n = 2
CHECKPOINT;
\elif :n = 3
CREATE TEMP TABLE mine AS SELECT * FROM small LIMIT 2000;
DROP TABLE mine;
\endif
SQL
foreach my $pool ('256kB', '8MB')
{
	$node->append_conf('postgresql.conf', "shared_buffers = $pool\n");
	$node->start;
	$node->safe_psql('postgres', q{
		DROP TABLE IF EXISTS small;
		CREATE TABLE small (a int, b text DEFAULT repeat('x', 600));
		CREATE INDEX ON small (a);
		SELECT pg_stat_reset_shared('io')});
	$node->command_ok([ 'pgbench', '-n', '-c', '4', '-t', '12', '-f', $script, $node->connstr('postgres') ], "four writers in a pool of $pool");
	my $written = q{SELECT sum(writes), sum(write_bytes) / 8192 FROM pg_stat_io WHERE object = 'relation' AND context = 'bulkwrite'};
	my ($requests, $blocks) = split /\|/, $node->safe_psql('postgres', $written);
	cmp_ok($blocks, '>', 1000, "$pool: blocks left the rings of COPY: $blocks");
	if ($pool eq '256kB') { cmp_ok($blocks, '==', $requests, "$pool: one by one, as nobody may pin two") }
	# A run ends where the rows of another writer begin
	else { cmp_ok($blocks, '>', 1.5 * $requests, "$pool: in runs, with $requests requests") }
	is($node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM small'), '144000|216072000', "$pool: all their rows are there");
	is($node->safe_psql('postgres', "SELECT * FROM verify_heapam('small')"), '', "$pool: and the table is sound");
	$node->stop;
}

done_testing();
