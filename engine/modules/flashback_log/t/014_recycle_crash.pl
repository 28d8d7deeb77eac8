# Everything is killed at each step of keeping the file of a deleted relation, with the commit to be replayed and without: the
# relation is kept whole, or it is not kept; and what replay makes of one whose file was removed never passes for it.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback await_point checkpoint state continued in_background record_points check_points);
use Floe::Test::Standby qw(new_standby wait_for_replay);

my $area = 'pgsql_tmp_polar_recycle';
my $two_phase = q{BEGIN; DROP TABLE t; PREPARE TRANSACTION 'drop'; COMMIT PREPARED 'drop'};
my $fill = q{INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 1000) g};
foreach my $mode ('async', 'sync')
{
	my $node = new_flashback("node_$mode", qq{
shared_buffers = 16MB
polar_enable_fast_recovery_area = on
polar_flashback_log_mode = $mode
max_prepared_transactions = 2
});
	my $copies = record_points($node);
	my $kept = sub { return $node->safe_psql('postgres', "SELECT count(*) FROM polar_flashback_recycled WHERE relfilenode = $_[0]"); };
	my $files = sub { return [ sort grep { /^\d+_$_[0]_/ } slurp_dir($node->data_dir . "/base/$area") ]; };
	foreach my $step (
		[ 'flashback-recycle-linked', 'DROP TABLE t', 0, 1 ],
		[ 'flashback-recycle-described', 'DROP TABLE t', 0, 1 ],
		[ 'flashback-recycle-tombstone', 'DROP TABLE t', 0, 1 ],
		[ '', 'DROP TABLE t', 0, 1 ],
		[ 'flashback-recycle-linked', 'DROP TABLE t', 1, 0 ],
		[ 'flashback-recycle-described', 'DROP TABLE t', 1, 1 ],
		[ 'flashback-recycle-tombstone', 'DROP TABLE t', 1, 1 ],
		[ 'flashback-recycle-linked', $two_phase, 0, 1 ],
		[ 'flashback-recycle-described', $two_phase, 0, 1 ],
		[ '', $two_phase, 0, 1 ],
		[ 'flashback-recycle-described', 'TRUNCATE t', 0, 1 ],
		[ 'flashback-recycle-tombstone', 'VACUUM FULL t', 0, 1 ],
		$mode eq 'async' ? [ 'flashback-recycle-tombstone', 'DROP TABLE t /* large */', 0, 1 ] : ())
	{
		my ($point, $sql, $checkpoint, $expected) = @$step;
		my $name = "$mode, $point in $sql" . ($checkpoint ? ' with a checkpoint after the commit' : '');

		$node->safe_psql('postgres', "DROP TABLE IF EXISTS t; CREATE TABLE t (a int, b text) WITH (fillfactor = 50); $fill");
		my $number = $node->safe_psql('postgres', q{SELECT pg_relation_filenode('t')});
		my $path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});
		checkpoint($node);
		if ($sql =~ /large/)
		{
			# Two segments; they need not hold anything
			$node->stop;
			truncate $path, 1024 * 1024 * 1024 or die $!;
			open my $segment, '>', "$path.1" or die $!;
			truncate $segment, 3 * 8192 or die $!;
			close $segment;
			$node->start;
			checkpoint($node);
		}
		# Some of it is written, some is in buffers, some pages are not changed at all
		$node->safe_psql('postgres', 'UPDATE t SET a = -a WHERE a % 50 = 0');
		checkpoint($node);
		$node->safe_psql('postgres', 'UPDATE t SET a = -a WHERE a % 70 = 0');
		my $before = state($node);
		if ($point eq '')
		{
			$node->safe_psql('postgres', $sql);
		}
		else
		{
			in_background($node, $point, $sql);
		}
		$node->safe_psql('postgres', 'CHECKPOINT') if $checkpoint;
		my $state = state($node);
		crash($node);
		$node->start;
		continued($node, $state, "$name: the window continues");
		is($kept->($number), $expected, "$name: " . ($expected ? 'kept' : 'not kept'));
		my $expected_files = !$expected ? [] : [ grep { !-e "$path.x" && /(\.kept|\.0)$/ || /\.1$/ } @{ $files->($number) } ];
		is_deeply($files->($number), $expected_files, "$name: nothing else is left");
		ok(!-s $path, "$name: the file is gone from where it was") if $expected && !$checkpoint;
		is_deeply([ check_points($node, $copies, 2, $expected && !$checkpoint ? 50 : 0, 4) ], [], "$name: every block of the last points");
		record_points($node, $copies);
		# Once more, with the file kept
		if (!$checkpoint)
		{
			crash($node);
			$node->start;
			is($kept->($number), $expected, "$name: also when all is replayed once more");
			record_points($node, $copies);
		}
	}

	is_deeply([ check_points($node, $copies, 10, 300) ], [], "$mode: every block of every point");

	# A file that was kept and removed again is made anew by replay, from what images there are: this is not the relation's
	foreach my $how ('size', 'purge')
	{
		$node->safe_psql('postgres', "DROP TABLE IF EXISTS t; CREATE TABLE t (a int, b text) WITH (fillfactor = 50); $fill");
		checkpoint($node);
		my $number = $node->safe_psql('postgres', q{SELECT pg_relation_filenode('t')});
		$node->safe_psql('postgres', 'UPDATE t SET a = -a WHERE a % 50 = 0; DROP TABLE t');
		is($kept->($number), 1, "$mode: a table is kept");
		if ($how eq 'size')
		{
			$node->append_conf('postgresql.conf', 'polar_flashback_recycle_max_size = 1MB');
			$node->reload;
			$node->safe_psql('postgres', "CREATE TABLE IF NOT EXISTS u (a int, b text)");
			$node->safe_psql('postgres', 'INSERT INTO u SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 2700) g; TRUNCATE u');
			ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM polar_flashback_recycled WHERE relfilenode = $number"), "$mode: removed for its size");
			$node->append_conf('postgresql.conf', 'polar_flashback_recycle_max_size = 0');
			$node->reload;
		}
		else
		{
			is($node->safe_psql('postgres', "SELECT polar_flashback_purge(tablespace, database, relfilenode) FROM polar_flashback_recycled WHERE relfilenode = $number"),
				1, "$mode: removed by request");
		}
		crash($node);
		$node->start;
		is($kept->($number), 0, "$mode: after a crash it is not back");
		is_deeply($files->($number), [], "$mode: nor any of its files");
		record_points($node, $copies);
	}

	# Created after a checkpoint's redo location, written before its point: replay makes it anew, and what is kept then are the
	# zeroes of pages that it did not have to write, with all their changes in the WAL from that redo location on
	$node->safe_psql('postgres', "CREATE TABLE t (a int, b text) WITH (fillfactor = 50); $fill");
	my $checkpoint = in_background($node, 'flashback-log-before-point', 'CHECKPOINT');
	$node->safe_psql('postgres', 'CREATE INDEX i ON t (a); VACUUM FULL t');
	my %anew = map { $_ => $node->safe_psql('postgres', "SELECT pg_relation_filenode('$_')") } 't', 'i';
	$node->safe_psql('postgres', "SELECT injection_points_detach('flashback-log-before-point'); SELECT injection_points_wakeup('flashback-log-before-point')");
	$checkpoint->query_until(qr/completed/, '');
	$checkpoint->quit;
	$node->safe_psql('postgres', q{SELECT injection_points_attach('flashback-recycle-fails', 'notice'); DROP TABLE t});
	is($kept->($anew{t}), 0, "$mode: a table of after the redo location is not kept");
	crash($node);
	$node->start;
	is($kept->($anew{$_}), 1, "$mode: made anew by replay it is, $_") foreach 't', 'i';
	is_deeply([ check_points($node, $copies, 1, 20, 1) ], [], "$mode: and gives every block of the point after that");
	record_points($node, $copies);

	# One that was created since the checkpoint is complete; unless it was purged
	$node->safe_psql('postgres', "CREATE TABLE t (a int, b text) WITH (fillfactor = 50); $fill");
	my $number = $node->safe_psql('postgres', q{SELECT pg_relation_filenode('t')});
	$node->safe_psql('postgres', 'DROP TABLE t');
	crash($node);
	$node->start;
	is($kept->($number), 1, "$mode: a table of after the last checkpoint is kept");
	$node->safe_psql('postgres', "CREATE TABLE t (a int, b text) WITH (fillfactor = 50); $fill");
	$number = $node->safe_psql('postgres', q{SELECT pg_relation_filenode('t')});
	$node->safe_psql('postgres', 'DROP TABLE t');
	$node->safe_psql('postgres', "SELECT polar_flashback_purge(tablespace, database, relfilenode) FROM polar_flashback_recycled WHERE relfilenode = $number");
	crash($node);
	$node->start;
	is($kept->($number), 0, "$mode: not if it was purged");
	$node->stop;
}

# A standby keeps its own, through its crash and its promotion
my $primary = new_flashback('primary', "shared_buffers = 16MB\npolar_enable_fast_recovery_area = on\nallow_in_place_tablespaces = on\n");
my $copies = record_points($primary);
$primary->safe_psql('postgres', "CREATE TABLE t (a int, b text) WITH (fillfactor = 50); $fill; CREATE TABLE w AS SELECT * FROM t");
$primary->safe_psql('postgres', q{CREATE TABLESPACE place LOCATION ''});
$primary->safe_psql('postgres', 'CREATE TABLE p TABLESPACE place AS SELECT * FROM t');
my $standby = new_standby($primary, 'standby', '');
my $kept = sub { my ($node, $number) = @_; return $node->safe_psql('postgres', "SELECT count(*) FROM polar_flashback_recycled WHERE relfilenode = $number"); };
my %number = map { $_ => $primary->safe_psql('postgres', "SELECT pg_relation_filenode('$_')") } 't', 'w', 'p';
my $turn = sub {
	$primary->safe_psql('postgres', 'UPDATE t SET a = -a WHERE a % 50 = 0; UPDATE w SET a = -a WHERE a % 50 = 0; CHECKPOINT');
	wait_for_replay($primary, $standby);
	checkpoint($standby);
};
$turn->();
await_point($standby);
$standby->safe_psql('postgres', "SELECT flashback_oracle_record('$copies')");
$turn->() foreach 1 .. 2;
$primary->safe_psql('postgres', 'UPDATE t SET a = -a WHERE a % 70 = 0; DROP TABLE t; DROP TABLE p');
wait_for_replay($primary, $standby);
is($kept->($standby, $number{t}), 1, 'a standby keeps what it replays the deletion of');
is($kept->($standby, $number{p}), 1, 'in a tablespace, too');
is($standby->safe_psql('postgres', "SELECT commit_lsn, dropped_at - interval '1 s' < now() FROM polar_flashback_recycled WHERE relfilenode = $number{t}"),
	$primary->safe_psql('postgres', "SELECT commit_lsn, true FROM polar_flashback_recycled WHERE relfilenode = $number{t}"), 'deleted by the same commit');
my $state = state($standby);
crash($standby);
$standby->start;
wait_for_replay($primary, $standby);
continued($standby, $state, 'its window continues after a crash');
is($kept->($standby, $number{t}), 1, 'with what was kept, replayed again');
is_deeply([ check_points($standby, $copies, 1, 20) ], [], 'and every block');
$primary->safe_psql('postgres', 'DROP TABLESPACE place');
wait_for_replay($primary, $standby);
is($kept->($standby, $number{p}), 0, 'DROP TABLESPACE takes it there, too');
$standby->promote;
$primary->safe_psql('postgres', 'DROP TABLE w');
$primary->stop;
$standby->safe_psql('postgres', 'DROP TABLE w');
is($kept->($standby, $number{t}), 1, 'a promotion leaves it');
is($kept->($standby, $number{w}), 1, 'and the new primary keeps more');
is_deeply([ check_points($standby, $copies, 1, 40) ], [], 'with every block');

# pg_rewind removes what the old primary kept, and takes nothing over
ok(-e $primary->data_dir . "/base/$area", 'the old primary has kept something');
command_ok([ 'pg_rewind', '--target-pgdata' => $primary->data_dir, '--source-server' => $standby->connstr('postgres'), '--no-sync' ], 'it is rewound');
ok(!-e $primary->data_dir . "/base/$area", 'and has nothing left');
$standby->stop;

done_testing();
