# The rule that makes images complete: a point lies between the last write and the first fsync of a checkpoint, nothing comes
# between a look and the write, or between what is kept of a truncation and the truncation, and no way of writing goes round.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback checkpoint state continued in_background record_points check_points);
use Floe::Test::Torn qw(redo_pointer);
use Floe::Test::Wait qw(wait_until);

my $node = new_flashback('node', "shared_buffers = 32MB\nmax_prepared_transactions = 2\n");
my $copies = record_points($node);
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE t (a int, b text) WITH (fillfactor = 50);
	INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 2000) g;
	CREATE TABLE tail AS SELECT * FROM t});
my $path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});
my $page = sub { return unpack 'H*', substr(slurp_file($path), 0, 8192); };
my $image = sub { return $node->safe_psql('postgres', "SELECT encode(polar_flashback_log_page('t', 0, $_[0]), 'hex')"); };
my $points = sub { return $node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_points'); };
my $change = q{UPDATE t SET a = a + 1 WHERE ctid = (SELECT min(ctid) FROM t)};
my $evict = q{SELECT pg_buffercache_evict_relation('t')};
my $wake = sub { $node->safe_psql('postgres', "SELECT injection_points_detach('$_[0]'); SELECT injection_points_wakeup('$_[0]')"); };
my $waits_for_log = q{SELECT wait_event IN ('flashback_log', 'FlashbackLog') FROM pg_stat_activity WHERE backend_type = 'checkpointer'};

# Counter-examples 1 and 3: a page is overwritten after the point and before the checkpoint is complete. Judged by the end of
# the checkpoint its content then would be in no interval, or in one that is no longer of use.
checkpoint($node);
$node->safe_psql('postgres', $change);
my $session = in_background($node, 'flashback-log-point-stored', 'CHECKPOINT');
my $number = $node->safe_psql('postgres', 'SELECT max(number) FROM polar_flashback_points');
my $then = $page->();
my $redo = redo_pointer($node);
$node->safe_psql('postgres', "$change; $evict");
isnt($page->(), $then, 'a page is overwritten between the point and the end of its checkpoint');
is(redo_pointer($node), $redo, 'which is not complete');
is($image->($number), $then, 'its content at the point is kept');
$wake->('flashback-log-point-stored');
$session->query_until(qr/completed/, '');
$session->quit;
isnt(redo_pointer($node), $redo, 'now it is');
$node->safe_psql('postgres', "$change; $evict");
is($image->($number), $then, 'and the first image is still the one of the point');
crash($node);
$redo = redo_pointer($node);
$node->start;
record_points($node, $copies);
is($node->safe_psql('postgres', "SELECT number FROM polar_flashback_points WHERE redo_lsn = '$redo'"), $number,
	'the checkpoint that recovery started from is that point');
is($image->($number), $then, 'and the page can be rebuilt from it');

# Counter-example 2: a writer has looked and has not written when a point comes
checkpoint($node);
$session = in_background($node, 'flashback-log-before-point', 'CHECKPOINT');
my $before = $points->();
$node->safe_psql('postgres', $change);
my $writer = in_background($node, 'flashback-log-overwrite', $evict);
$wake->('flashback-log-before-point');
ok($node->poll_query_until('postgres', $waits_for_log), 'a point waits for a writer that has looked');
is($points->(), $before, 'there is none yet');
$wake->('flashback-log-overwrite');
$writer->query_until(qr/completed/, '');
$session->query_until(qr/completed/, '');
$_->quit foreach $writer, $session;
is($points->(), $before + 1, 'there is one when the writer is done');
$number = $node->safe_psql('postgres', 'SELECT max(number) FROM polar_flashback_points');
$then = $page->();
$node->safe_psql('postgres', "$change; $evict");
is($image->($number), $then, 'what that one wrote is the content at the point');

# The same with a truncation
$node->safe_psql('postgres', q{DELETE FROM tail WHERE ctid > '(20,0)'});
$number = checkpoint($node);
my $tail_path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('tail')});
my $tail = slurp_file($tail_path);
$session = in_background($node, 'flashback-log-truncate', 'VACUUM tail');
$before = $points->();
my $checkpoint = $node->background_psql('postgres');
$checkpoint->query_until(qr/started/, "\\echo started\nCHECKPOINT;\n\\echo completed\n");
ok($node->poll_query_until('postgres', $waits_for_log), 'a point waits for a truncation');
is($points->(), $before, 'there is none yet');
is(-s $tail_path, length $tail, 'the file has not been cut yet');
$wake->('flashback-log-truncate');
$session->query_until(qr/completed/, '');
$checkpoint->query_until(qr/completed/, '');
$_->quit foreach $session, $checkpoint;
is($points->(), $before + 1, 'there is one when the truncation is done');
my $nblocks = (-s $tail_path) / 8192;
cmp_ok($nblocks, '<', length($tail) / 8192, 'the file is cut');
my $last = length($tail) / 8192 - 1;
$last-- while substr($tail, $last * 8192, 8192) =~ /^\0*\z/;
foreach my $block ($nblocks, $last)
{
	is($node->safe_psql('postgres', "SELECT encode(polar_flashback_log_page('tail', $block, $number), 'hex')"),
		unpack('H*', substr($tail, $block * 8192, 8192)), "block $block, cut off, is kept");
}

# A truncation that fails before it begins lets points come again
$session = $node->background_psql('postgres', on_error_stop => 0);
$session->query(q{SELECT injection_points_set_local(); SELECT injection_points_attach('flashback-log-truncate', 'error')});
$session->query(q{DELETE FROM tail WHERE ctid > '(10,0)'});
$session->query('VACUUM tail');
like($session->{stderr}, qr/error triggered for injection point flashback-log-truncate/, 'a truncation fails');
$session->quit;
$before = $points->();
checkpoint($node);
is($points->(), $before + 1, 'and a point comes');

is_deeply([ check_points($node, $copies, 5) ], [], 'every block of every point is as it was');

# In assert builds no other way of writing goes unnoticed
my $state = state($node);
$node->append_conf('postgresql.conf', 'restart_after_crash = off');
$node->reload;
$node->psql('postgres', q{SELECT flashback_oracle_overwrite('t', 1)});
wait_until(sub { slurp_file($node->logfile) =~ /PANIC:  block 1 of relation .* is overwritten past the flashback log/ },
	'a write past the log to be noticed');
pass('a write past the log is noticed');
$node->{_pid} = undef;
$node->start;
continued($node, $state, 'before it has done anything');

done_testing();
