# When the flashback log is no source, or not of every page, that is said, and other sources are asked; when it is, it still is
# after recovery was interrupted, as often as that happens.
use strict;
use warnings FATAL => 'all';
use File::Copy qw(copy);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(in_background);
use Floe::Test::Repair qw(new_repairable with_log copy_instance attempt start_only sound);
use Floe::Test::Standby qw(new_standby wait_for_replay);
use Floe::Test::Torn qw(remember_files tear_pages redo_pointer repair_source);
use Floe::Test::Wait qw(wait_until);

srand($ENV{FLOE_TEST_SEED} // 20261125);

# The only source that is ever named answers, on a busy machine late
my $node = new_repairable('node', with_log() . "bgwriter_lru_maxpages = 0\npolar_page_repair_timeout = 60s\n");
$node->safe_psql('postgres', 'CREATE EXTENSION flashback_log; CREATE EXTENSION injection_points; CREATE EXTENSION pg_buffercache; VACUUM t');
my $standby = new_standby($node, 'standby', "polar_enable_flashback_log = off\n");
my $truth_query = 'SELECT count(*), sum(a), sum(b) FROM t';
my $change = 'UPDATE t SET b = b + 1 WHERE a % 2 = 0; UPDATE t SET b = b + 1 WHERE a % 3 = 0';
my $truth;
my $before;

# tear([sql]): work after a checkpoint, a crash, torn pages
sub tear
{
	my ($sql) = @_;
	$node->safe_psql('postgres', 'CHECKPOINT');
	$before = remember_files($node);
	$node->safe_psql('postgres', $sql // $change);
	$node->safe_psql('postgres', 'SELECT pg_buffercache_evict_all()');
	$truth = $node->safe_psql('postgres', $truth_query);
	wait_for_replay($node, $standby);
	crash($node);
	my $torn = tear_pages($node, $before, sector => 512);
	cmp_ok($torn->{torn}, '>', 20, "pages are torn: $torn->{torn}");
	return;
}

sub segments
{
	my ($instance) = @_;
	return sort grep { /^[0-9A-F]{16}$/ } slurp_dir($instance->data_dir . '/polar_flog');
}

# A start that must succeed, by the log or the standby
sub repaired
{
	my ($instance, $name, $columns, $expected) = @_;
	my ($started, $log) = attempt($instance);
	is($started, 1, "$name: it starts") or die $log;
	is($instance->safe_psql('postgres', $truth_query), $truth, "$name: all rows are there");
	is(sound($instance), '', "$name: heap and index are sound");
	is($instance->safe_psql('postgres', "SELECT $columns FROM polar_stat_page_repair"), $expected, "$name: the view tells")
	  or diag($instance->safe_psql('postgres', '\x on \\\\ SELECT * FROM polar_stat_page_repair; SELECT * FROM polar_page_repair_sources'));
	return $log;
}

# Without the log: nothing would help
sub refused
{
	my ($instance, $name, $why) = @_;
	my ($started, $log) = attempt($instance);
	is($started, 0, "$name: it does not start");
	like($log, qr/LOG:  the flashback log is no page repair source: $why/, "$name: the log says why");
	like($log, qr/FATAL:  block \d+ of relation ".*" is torn, and no page repair source could give it\n.*DETAIL:  "flashback log": $why/, "$name: so does the error");
	return;
}

# Interrupted while pages are written, again and again, and then while redo runs
tear();
my ($interrupted, $tries) = (0, 0);
while ($interrupted < 3 && $tries++ < 10)
{
	my $redo = redo_pointer($node);
	my $offset = start_only($node);
	wait_until(sub { (() = slurp_file($node->logfile, $offset) =~ /repaired block/g) > 5 }, 'some pages to be repaired');
	$node->_update_pid(1);
	crash($node);
	if (redo_pointer($node) ne $redo)
	{
		note('recovery had ended before the crash came: once more');
		$node->start;
		tear();
		next;
	}
	$interrupted++;
	cmp_ok(tear_pages($node, $before, sector => 512)->{torn}, '>', 20, 'what was written since the checkpoint is torn again');
}
is($interrupted, 3, 'crashes in the middle of repair: recovery starts again each time');
repaired($node, 'after three crashes in recovery', 'log_pages = repaired, log_why IS NULL', 't|t');

tear();
{
	my $redo = redo_pointer($node);
	my $offset = start_only($node);
	wait_until(sub { slurp_file($node->logfile, $offset) =~ /page repair: \d+ blocks/ }, 'repair to be complete');
	$node->_update_pid(1);
	crash($node);
	note('redo location before and after: ', $redo, ' ', redo_pointer($node));
}
repaired($node, 'after a crash when all was repaired', 'coalesce(log_pages = repaired, true), log_why IS NULL', 't|t');

# A block that held nothing at the point, because it was cut off between the redo location and the point, and was written and torn
# since: it has no image. Recovery writes zeroes over it and keeps a note that it could not read it; the next one must know better.
$node->safe_psql('postgres', q{CREATE TABLE cut AS SELECT g AS a, repeat('y', 200) AS b FROM generate_series(1, 5000) g; CREATE TABLE rotten AS SELECT 1 AS a});
my $checkpoint = in_background($node, 'flashback-log-before-point', 'CHECKPOINT');
$node->safe_psql('postgres', q{
	UPDATE cut SET b = 'z' WHERE a % 10 = 0; DELETE FROM cut WHERE a > 10; VACUUM (FREEZE) cut;
	SELECT injection_points_detach('flashback-log-before-point');
	SELECT injection_points_wakeup('flashback-log-before-point')});
$checkpoint->query_until(qr/completed/, '');
$checkpoint->quit;
$before = remember_files($node);
is($node->safe_psql('postgres', q{SELECT pg_relation_size('cut') < 8192 * 50}), 't', 'a table was truncated between the redo location and the point');
$node->safe_psql('postgres', q{
	INSERT INTO cut SELECT g, repeat('w', 200) FROM generate_series(11, 5000) g;
	SELECT pg_buffercache_evict_relation('cut');
	UPDATE rotten SET a = 2});
my ($cut, $rotten) = map { $node->data_dir . "/$_" } split /\|/, $node->safe_psql('postgres', q{SELECT pg_relation_filepath('cut'), pg_relation_filepath('rotten')});
$truth = $node->safe_psql('postgres', $truth_query);
crash($node);
my $torn = tear_pages($node, $before, sector => 512, share => 1, only => qr/^\Q@{[ substr($cut, 1 + length $node->data_dir) ]}\E\z/);
cmp_ok($torn->{torn}, '>', 50, "blocks that held nothing are torn: $torn->{torn}");
{
	# A page that is damaged and was not written, which the log cannot help, ends the attempt when all that it has is written
	my %content = map { $_ => slurp_file($_) } $cut, $rotten;
	open my $out, '+<:raw', $rotten or die $!;
	sysseek $out, 5000, 0;
	syswrite $out, 'X' x 3000;
	close $out;
	my ($started, $log) = attempt($node);
	is($started, 0, 'blocks that held nothing: an attempt fails');
	cmp_ok(scalar(() = $log =~ /repaired block \d+ .*: zeroed/g), '>', 10, 'blocks that held nothing: after they were zeroed');
	like($log, qr/FATAL:  block 0 of relation .* is torn, and no page repair source could give it\n.*it has no content for block 0 /, 'blocks that held nothing: because of another one');
	# The disk has kept none of it
	foreach my $file (sort keys %content)
	{
		unlink $file;
		append_to_file($file, $content{$file});
	}
}
repaired($node, 'blocks that held nothing', 'missing > 10, log_why IS NULL', 't|t');
is($node->safe_psql('postgres', 'SELECT count(*), sum(a), sum(length(b)) FROM cut WHERE a > 10'), '4990|12502445|998000', 'blocks that held nothing: all rows are there');
is($node->safe_psql('postgres', q{SELECT * FROM verify_heapam('cut')}), '', 'blocks that held nothing: the heap is sound');

# A checkpoint began, had its point, and did not complete: the one before counts, with its point
$node->safe_psql('postgres', 'CHECKPOINT');
$before = remember_files($node);
$node->safe_psql('postgres', $change);
in_background($node, 'flashback-log-point-stored', 'CHECKPOINT');
$node->safe_psql('postgres', "$change; SELECT pg_buffercache_evict_all()");
$truth = $node->safe_psql('postgres', $truth_query);
crash($node);
$torn = tear_pages($node, $before, sector => 512);
cmp_ok($torn->{torn}, '>', 20, "between two points: pages are torn: $torn->{torn}");
repaired($node, 'between two points', 'log_pages = repaired AND repaired > 20, log_why IS NULL', 't|t');

# Damage in a closed segment: what comes before it is used, the rest of a standby
tear();
my @segments = segments($node);
my $place = $node->data_dir . "/polar_flog/$segments[-2]";
unlink "$place.idx";
{
	open my $out, '+<:raw', $place or die $!;
	sysseek $out, 200_000, 0;
	syswrite $out, 'XXXXXXXX';
	close $out;
}
my $copy = copy_instance('alone', $node->data_dir);
my ($started, $log) = attempt($node);
is($started, 0, 'damage: without a standby it does not start');
like($log, qr/LOG:  the flashback log is damaged and may not have all pages\n.*DETAIL:  .*a record of segment .* is damaged/, 'damage: the log says so');
like($log, qr/FATAL:  block \d+ .* is torn, and no page repair source could give it\n.*DETAIL:  "flashback log": .*a record of segment/, 'damage: so does the error');
$node->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'\n");
repaired($node, 'damage', q{repaired > 10, log_why ~ 'a record of segment'}, 't|t');
cmp_ok($node->safe_psql('postgres', 'SELECT pages FROM polar_page_repair_sources WHERE number = 1'), '>', 0, 'damage: the standby gave what was missing');
ok($node->poll_query_until('postgres', q{SELECT healthy FROM polar_page_repair_sources WHERE number = 0}), 'the log is healthy again');

# A copy of the directory of a running instance has another log
($started, $log) = attempt($copy);
is($started, 0, 'a copied directory: it does not start');
like($log, qr/the flashback log is no page repair source: its window ended: the data directory is a copy of a running one/, 'a copied directory: the log says why');
$copy->clean_node;

# Nobody can be asked from here on
$node->append_conf('postgresql.conf', "polar_page_repair_sources = ''\n");
$node->reload;

# A page that has an image gets it although it was damaged before: the standby is not needed
tear();
repaired($node, 'the log alone again', 'log_pages = repaired, log_why IS NULL', 't|t');

# The log of another system, of an older start, and one without its state
foreach my $case (
	[ 'of another system', sub { _other_system() }, 'its window ended: the state file is damaged|its window ended: the data directory is another' ],
	[ 'of before', sub { _older_state() }, 'its window ended: the last checkpoint is not a point: something else has changed the data directory' ],
	[ 'whose window ended', sub { unlink $node->data_dir . '/polar_flog/state' or die $! }, 'its window ended: there is no state file' ])
{
	my ($name, $spoil, $why) = @$case;
	$node->safe_psql('postgres', 'CHECKPOINT');
	copy($node->data_dir . '/polar_flog/state', $node->data_dir . '/older_state') or die $!;
	tear();
	$spoil->();
	unlink $node->data_dir . '/older_state';
	refused($node, "a log $name", "(?:$why)");
	$node->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'\n");
	my $said = repaired($node, "a log $name, with a standby", 'repaired > 10, log_pages, log_why IS NOT NULL', 't|0|t');
	# The start before has removed it
	like($said, qr/the flashback log is no page repair source: it has no point yet/, "a log $name, with a standby: it is not believed later either");
	$node->append_conf('postgresql.conf', "polar_page_repair_sources = ''\n");
	$node->reload;
}

# What counts is the mode in which it was kept: in sync mode until the crash, it is a source whatever the mode is now
tear();
$node->append_conf('postgresql.conf', "polar_flashback_log_mode = async\n");
repaired($node, 'async since the crash', 'log_pages = repaired AND repaired > 20, log_why IS NULL', 't|t');

# Kept in async mode: not a source, and not one either when the mode is sync at the start that follows
tear();
refused($node, 'async mode', 'it was kept with polar_flashback_log_mode = async since the checkpoint at ');
$node->append_conf('postgresql.conf', "polar_flashback_log_mode = sync\n");
refused($node, 'async mode until the crash', 'it was kept with polar_flashback_log_mode = async since the checkpoint at ');
$node->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'\n");
repaired($node, 'async mode, with a standby', 'repaired > 10, log_pages', 't|0');
$node->append_conf('postgresql.conf', "polar_page_repair_sources = ''\n");
$node->restart;

# The same with a stop in between
$node->append_conf('postgresql.conf', "polar_flashback_log_mode = async\n");
$node->restart;
$before = remember_files($node);
$node->safe_psql('postgres', "$change; SELECT pg_buffercache_evict_all()");
$truth = $node->safe_psql('postgres', $truth_query);
wait_for_replay($node, $standby);
crash($node);
cmp_ok(tear_pages($node, $before, sector => 512)->{torn}, '>', 20, 'async mode after a stop: pages are torn');
$node->append_conf('postgresql.conf', "polar_flashback_log_mode = sync\n");
refused($node, 'async mode after a stop', 'it was kept with polar_flashback_log_mode = async since the checkpoint at ');
$node->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'\n");
repaired($node, 'async mode after a stop, with a standby', 'repaired > 10, log_pages', 't|0');
$node->append_conf('postgresql.conf', "polar_page_repair_sources = ''\n");
$node->reload;

# Switched off after the crash, the log would be removed
tear();
$node->append_conf('postgresql.conf', "polar_enable_flashback_log = off\n");
($started, $log) = attempt($node);
is($started, 0, 'switched off: it does not start');
like($log, qr/FATAL:  the flashback log cannot be switched off before recovery from a crash/, 'switched off: and says why');
$node->append_conf('postgresql.conf', "polar_enable_flashback_log = on\n");
repaired($node, 'switched on again', 'log_pages = repaired AND repaired > 20, log_why IS NULL', 't|t');
$node->append_conf('postgresql.conf', "polar_enable_flashback_log = off\n");
$node->restart;
is(join(' ', grep { /^[0-9A-F]{16}$|state/ } slurp_dir($node->data_dir . '/polar_flog')), '', 'after recovery it can be switched off');

$standby->stop;
$node->stop;
command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], 'every page on disk verifies');
done_testing();

sub _other_system
{
	my $path = $node->data_dir . '/polar_flog/state';
	open my $out, '+<:raw', $path or die $!;
	sysseek $out, 8, 0;
	syswrite $out, 'XXXXXXXX';
	close $out;
	return;
}

sub _older_state
{
	unlink $node->data_dir . '/polar_flog/state' or die $!;
	rename $node->data_dir . '/older_state', $node->data_dir . '/polar_flog/state' or die $!;
	return;
}
