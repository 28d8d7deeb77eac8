# polar_stat_checkpoint follows a running checkpoint through its phases and ends with the figures of the server log.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
# An hour long, a checkpoint that need not hurry writes about ten buffers a second.
$node->append_conf('postgresql.conf', <<'CONF');
autovacuum = off
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
shared_buffers = 32MB
log_checkpoints = on
fsync = on
CONF
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION monitor; CREATE EXTENSION injection_points; CREATE TABLE t (a int)');

sub progress { return $node->safe_psql('postgres', "SELECT $_[0] FROM polar_stat_checkpoint"); }

# The figures of the last checkpoint in the server log
sub logged
{
	my ($offset) = @_;
	my ($written, $files) = slurp_file($node->logfile, $offset) =~ /checkpoint complete: wrote (\d+) buffers.*sync files=(\d+)/;
	return ($written, $files);
}

# Ended: the log's own figures
$node->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(1, 100000)');
my $offset = -s $node->logfile;
$node->safe_psql('postgres', 'CHECKPOINT');
$node->wait_for_log(qr/checkpoint complete/, $offset);
my ($written, $files) = logged($offset);
is(progress('running, kind, reason, phase, phase_started_at, buffers_written, files_total, files_processed'),
	"f|checkpoint|immediate force wait|||$written|$files|$files", 'a checkpoint that has ended shows the figures of the server log');
is(progress('buffers_processed = buffers_total AND buffers_total >= buffers_written AND ended_at >= started_at'),
	't', 'and has processed everything');

# Nothing to write
$node->safe_psql('postgres', 'CHECKPOINT; CHECKPOINT');
is(progress('running, buffers_total >= 0, files_total >= 0, ended_at IS NOT NULL'), 'f|t|t|t', 'a checkpoint without work ends, too');

# A spread checkpoint writes for long; it is watched, and then hurried by another.
$node->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(1, 400000)');
my $backup = $node->background_psql('postgres');
$backup->query_until(qr/begun/, "\\echo begun\nSELECT pg_backup_start('spread', fast => false);\n");
ok($node->poll_query_until('postgres', q{SELECT phase = 'write' AND buffers_processed > 2 FROM polar_stat_checkpoint}),
	'a running checkpoint is seen writing');
is(progress(q{running, kind, reason, files_total IS NULL AND ended_at IS NULL}), 't|checkpoint|force wait|t',
	'with its reason, and without figures that are not known yet');
is(progress('buffers_processed BETWEEN buffers_written AND buffers_total AND buffers_total > 1000'), 't',
	'processed buffers are out of a total');
my $processed = progress('buffers_processed');
ok($node->poll_query_until('postgres', "SELECT buffers_processed > $processed FROM polar_stat_checkpoint"), 'and grow');
is(progress('phase_started_at >= started_at AND phase_started_at <= now()'), 't', 'the phase has a beginning');
my $standing = progress('started_at');

# Stop it while it syncs, and again before it recycles WAL.
$node->safe_psql('postgres', q{SELECT injection_points_attach('monitor-checkpoint-sync', 'wait')});
$node->safe_psql('postgres', q{SELECT injection_points_attach('checkpoint-before-old-wal-removal', 'wait')});
my $hurry = $node->background_psql('postgres');
$hurry->query_until(qr/begun/, "\\echo begun\nCHECKPOINT;\n");
my $waits = sub { $node->wait_for_event('checkpointer', $_[0]); return; };
$waits->('monitor-checkpoint-sync');
is(progress(q{running, phase, files_processed, files_total > 0, buffers_processed = buffers_total}), 't|sync|0|t|t',
	'files are synced once all buffers are written');
$node->safe_psql('postgres', q{SELECT injection_points_detach('monitor-checkpoint-sync')});
$node->safe_psql('postgres', q{SELECT injection_points_wakeup('monitor-checkpoint-sync')});
$waits->('checkpoint-before-old-wal-removal');
is(progress(q{running, phase, files_processed = files_total}), 't|finish|t', 'what follows has a phase of its own');
is(progress('started_at'), $standing, 'all this is one checkpoint');
$node->safe_psql('postgres', q{SELECT injection_points_detach('checkpoint-before-old-wal-removal')});
$node->safe_psql('postgres', q{SELECT injection_points_wakeup('checkpoint-before-old-wal-removal')});
$hurry->quit;
$backup->quit;
is(progress('running'), 'f', 'no checkpoint is running when both have ended');

# A checkpoint that fails is not shown as running.
$node->safe_psql('postgres', 'INSERT INTO t VALUES (1)');
$node->safe_psql('postgres', q{SELECT injection_points_attach('monitor-checkpoint-write', 'error')});
my ($status, undef, $errors) = $node->psql('postgres', 'CHECKPOINT');
isnt($status, 0, 'the checkpoint fails');
like($errors, qr/checkpoint request failed/, 'and says so');
is(progress('running, phase IS NULL, ended_at IS NULL, started_at IS NOT NULL'), 'f|t|t|t', 'a failed checkpoint neither runs nor has ended');
$node->safe_psql('postgres', q{SELECT injection_points_detach('monitor-checkpoint-write')});
$node->safe_psql('postgres', 'CHECKPOINT');
is(progress('running, ended_at IS NOT NULL'), 'f|t', 'the next one is shown as ever');

$node->restart;
is(progress('running'), 'f', 'a new start begins without a running checkpoint');
$node->stop;
done_testing();
