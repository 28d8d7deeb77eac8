# Sync mode: blocks are kept ahead of those who overwrite them, many with one sync. Whatever comes between that and the write (a
# point, another writer, a truncation, the end of the relation), every block of every point is right.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback checkpoint state record_points check_points in_background);
use Floe::Test::Wait qw(wait_until);

my $node = new_flashback('node', q{
shared_buffers = 4MB
enable_seqscan = off
polar_flashback_log_mode = sync
polar_enable_fast_recovery_area = on
});
# What is read of these pushes other pages out; each is too small for a ring of its own
my @small = 1 .. 30;
my $pressure = join '; ', map { "SELECT count(*) FROM p$_" } @small;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_buffercache; CREATE TABLE t (a int, b text) WITH (fillfactor = 50); CREATE INDEX ON t (a)');
$node->safe_psql('postgres', "CREATE TABLE p$_ AS SELECT g AS a, repeat('p', 1000) AS b FROM generate_series(1, 150) g; VACUUM (FREEZE) p$_") foreach @small;
my $fill = q{INSERT INTO t SELECT g, repeat(md5(g::text), 20) FROM generate_series(1, 7000) g WHERE NOT EXISTS (SELECT FROM t)};
my $change = 'UPDATE t SET a = a + 1 WHERE a < 500';
# Blocks that are no neighbours, by the index: a scan of all would have a ring of its own
my $offset = 0;
my $scattered = sub {
	$offset = ($offset + 6) % 240;
	return 'UPDATE t SET b = b WHERE a IN (' . join(', ', map { 500 + $_ * 240 + $offset } 0 .. 25) . ')';
};
my $evict = 'SELECT pg_buffercache_evict_all()';
# In one session: the writer is waited for by reading
my $session = $node->background_psql('postgres');
$session->set_query_timer_restart;
my $value = sub { return $session->query_safe($_[0]) };
my $waits = sub { return $value->("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'flashback log writer' AND wait_event = '$_[0]'") };
my $images = 'SELECT images, syncs, looks FROM polar_stat_flashback_log';
my $release = sub { $value->("SELECT injection_points_detach('$_[0]'); SELECT injection_points_wakeup('$_[0]')") };

is($value->(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'flashback log writer'}), 1, 'there is a process that looks ahead');
$value->($fill);
my $copies = record_points($node);
checkpoint($node);

# Stops it on its way: there are dirty pages that the hand comes to after some more are read
sub stop_writer
{
	my ($point) = @_;
	my $turn = 0;
	$value->("SELECT injection_points_attach('$point', 'wait')");
	wait_until(
		sub {
			return 1 if $waits->($point);
			$value->($scattered->()) if $turn % @small == 0;
			$value->("SELECT count(*) FROM p$small[$turn++ % @small]");
			return $waits->($point);
		},
		"the writer to reach $point");
	return;
}

# A block that is kept is not looked at again
{
	checkpoint($node);
	$value->($change);
	$value->($evict);
	my @before = split /\|/, $value->($images);
	$value->("$change; $evict");
	my @after = split /\|/, $value->($images);
	cmp_ok($after[0] - $before[0], '<', 30, 'a second write of the same blocks before the next point keeps few: ' . ($after[0] - $before[0]));
	cmp_ok($after[2] - $before[2], '<', 60, 'and looks at few: ' . ($after[2] - $before[2]));
}

# Neighbours share a sync
{
	checkpoint($node);
	my @before = split /\|/, $value->($images);
	$value->($change);
	$value->($evict);
	my @after = split /\|/, $value->($images);
	my ($kept, $syncs) = map { $after[$_] - $before[$_] } 0, 1;
	cmp_ok($kept, '>', 30, "blocks that are written one after the other are kept: $kept");
	cmp_ok($syncs * 3, '<', $kept, "with few syncs: $syncs");
}

foreach my $case (
	[ 'nothing', '' ],
	[ 'another writer', $evict ],
	[ 'a truncation', "DELETE FROM t; VACUUM (TRUNCATE on) t; $fill; $change; $evict" ],
	[ 'the end of the relation', "DROP TABLE t; CREATE TABLE t (a int, b text) WITH (fillfactor = 50); $fill; CREATE INDEX ON t (a)" ],
	[ 'a rewrite', "VACUUM FULL t; $change; $evict" ])
{
	my ($name, $sql) = @$case;
	foreach my $point ('flashback-log-ahead-read', 'flashback-log-ahead-added', 'flashback-log-ahead-durable')
	{
		checkpoint($node);
		stop_writer($point);
		# Each on its own: VACUUM takes no transaction
		$value->($_) foreach split /; /, $sql;
		$release->($point);
		$value->("$change; $pressure");
	}
	checkpoint($node);
}
is_deeply([ check_points($node, $copies, 5) ], [], 'every block of every point');

# A point waits for what was read before it, and what was kept before it does not count after it
{
	checkpoint($node);
	stop_writer('flashback-log-ahead-read');
	my $before = $value->('SELECT max(number) FROM polar_flashback_points');
	my $checkpoint = $node->background_psql('postgres');
	$checkpoint->query_until(qr/started/, "\\echo started\nCHECKPOINT;\n\\echo completed\n");
	wait_until(sub { $value->(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'checkpointer' AND wait_event = 'flashback_log'}) }, 'the checkpointer to wait');
	is($value->('SELECT max(number) FROM polar_flashback_points'), $before, 'no point comes between reading a block and keeping it');
	$release->('flashback-log-ahead-read');
	$checkpoint->query_until(qr/completed/, '');
	$checkpoint->quit;
	cmp_ok($value->('SELECT max(number) FROM polar_flashback_points'), '>', $before, 'then it comes');
}
{
	checkpoint($node);
	stop_writer('flashback-log-ahead-added');
	my $point = checkpoint($node);
	$release->('flashback-log-ahead-added');
	$value->($scattered->() . "; $evict");
	cmp_ok($value->("SELECT sum(images) FROM polar_flashback_log_get_images($point) WHERE relfilenode = pg_relation_filenode('t')"), '>=', 25,
		'after the next point blocks are kept again');
	checkpoint($node);
}
# A sync that fails: nothing of the batch counts
{
	checkpoint($node);
	stop_writer('flashback-log-ahead-added');
	# Meanwhile any session that has to write a page gets the error, as it must
	my $try = sub { my $out = ''; return $node->psql('postgres', $_[0], stdout => \$out) == 0 && ($_[1] // $out) eq $out };
	$value->(q{SELECT injection_points_detach('flashback-log-ahead-added'); SELECT injection_points_attach('flashback-log-sync-fails', 'notice')});
	wait_until(sub { $try->(q{SELECT injection_points_wakeup('flashback-log-ahead-added')}) }, 'the writer to be woken');
	wait_until(sub { $try->(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'flashback log writer' AND wait_event = 'flashback-log-ahead-added'}, '0') }, 'it to go on');
	wait_until(sub { $try->(q{SELECT injection_points_detach('flashback-log-sync-fails')}) }, 'syncs to work again');
	$value->("$change; $pressure");
	checkpoint($node);
}
is_deeply([ check_points($node, $copies, 8) ], [], 'every block of every point, also of those');
my $state = state($node);
is($state->{ended}, 0, 'in one window') or diag($state->{why});
is($value->('SELECT count(*) FROM polar_flashback_log_verify() WHERE damage IS NOT NULL'), 0, 'the log is in order');
$session->quit;

$node->stop;
done_testing();
