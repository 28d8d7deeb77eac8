# Files of relations that a commit deletes are kept: whatever the command, wherever they are, and only those; they are as they
# were, are bounded by time and size, go with their database or tablespace, and are no part of copies.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback await_point checkpoint state record_points check_points in_background);
use Floe::Test::Wait qw(wait_until);

my $area = 'pgsql_tmp_polar_recycle';
my $node = new_flashback('node', q{
shared_buffers = 16MB
polar_enable_fast_recovery_area = on
polar_flashback_log_compression = off
max_prepared_transactions = 2
allow_in_place_tablespaces = on
});
my $copies = record_points($node);
$node->safe_psql('postgres', q{CREATE TABLESPACE place LOCATION ''});
my $create = sub {
	my ($table, $options) = @_;
	my ($name) = $table =~ /(\w+)$/;
	$node->safe_psql('postgres', "CREATE $table (a int, b text) WITH (fillfactor = 50) " . ($options // '')
		. "; INSERT INTO $name SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 1000) g");
	return $node->safe_psql('postgres', "SELECT pg_relation_filenode('$name')");
};
my $kept = sub {
	my ($number) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM polar_flashback_recycled WHERE relfilenode = $number AND database = (SELECT oid FROM pg_database WHERE datname = current_database())");
};

# Each command that deletes a file
my %number;
my @commands = (
	[ 'dropped', 'DROP TABLE dropped' ],
	[ 'truncated', 'TRUNCATE truncated' ],
	[ 'vacuumed', 'VACUUM FULL vacuumed' ],
	[ 'clustered', 'CLUSTER clustered USING clustered_a' ],
	[ 'altered', 'ALTER TABLE altered ALTER a TYPE int8' ],
	[ 'moved', 'ALTER TABLE moved SET TABLESPACE place' ],
	[ 'prepared', q{BEGIN; DROP TABLE prepared; PREPARE TRANSACTION 'drop'; COMMIT PREPARED 'drop'} ],
	[ 'released', 'BEGIN; SAVEPOINT s; DROP TABLE released; RELEASE s; COMMIT' ],
);
$number{ $_->[0] } = $create->("TABLE $_->[0]") foreach @commands;
$node->safe_psql('postgres', 'CREATE INDEX clustered_a ON clustered (a)');
my $index = $node->safe_psql('postgres', q{SELECT pg_relation_filenode('clustered_a')});
my $toast = $node->safe_psql('postgres', q{SELECT pg_relation_filenode(reltoastrelid) FROM pg_class WHERE relname = 'dropped'});
my $catalog = $node->safe_psql('postgres', q{SELECT pg_relation_filenode('pg_class')});
my $first = checkpoint($node);
$node->safe_psql('postgres', "UPDATE $_->[0] SET a = a + 1 WHERE a % 7 = 0") foreach @commands;
my $second = checkpoint($node);
$node->safe_psql('postgres', "UPDATE $_->[0] SET a = a + 1 WHERE a % 5 = 0") foreach @commands;
foreach my $command (@commands)
{
	my ($name, $sql) = @$command;
	is($kept->($number{$name}), 0, "$name: not yet");
	$node->safe_psql('postgres', $sql);
	is($kept->($number{$name}), 1, "$name: kept by $sql");
}
$node->safe_psql('postgres', 'VACUUM FULL pg_class');
is($kept->($catalog), 1, 'a catalog, too');
is($kept->($toast), 1, 'a TOAST table, too');
is($kept->($index), 0, 'an index is not');
is_deeply([ check_points($node, $copies, 2, 300) ], [], 'every block at every point');
is($node->safe_psql('postgres', q{SELECT bool_and(dropped_at BETWEEN now() - interval '5 min' AND now() AND restorable_since < dropped_at
	AND commit_lsn <= pg_current_wal_insert_lsn()), count(*) = (SELECT recycled_files FROM polar_stat_flashback_log),
	sum(size_bytes) = (SELECT recycled_bytes FROM polar_stat_flashback_log) FROM polar_flashback_recycled}), 't|t|t', 'the views agree');

# A name that only looks like one of ours is none: it would be read as a damaged descriptor
my $kept_files = $node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_recycled');
my ($one) = map { m{/(\d+_\d+_[0-9A-F]{16})\.kept$} } glob($node->data_dir . "/base/$area/*.kept");
my @strange = map { $node->data_dir . "/base/$area/$_.kept" } "0$one", "+$one", " $one", "${one}0", $one =~ s/_/_0/r, $one =~ s/_\d+_/_4294967296_/r,
  $one =~ s/_([0-9A-F]+)$/_0123456789abcdef/r, $one =~ s/.$//r, $one =~ s/^\d+//r;
append_to_file($_, 'strange') foreach @strange;
is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_recycled'), $kept_files, 'strange names are no kept files');
unlink @strange;

# What is not to be kept
$number{unlogged} = $create->('UNLOGGED TABLE unlogged');
$node->safe_psql('postgres', 'DROP TABLE unlogged');
is($kept->($number{unlogged}), 0, 'an unlogged table is not kept');
my $before = $node->safe_psql('postgres', 'SELECT recycled_files FROM polar_stat_flashback_log');
$node->safe_psql('postgres', q{CREATE TEMP TABLE temporary AS SELECT generate_series(1, 1000); DROP TABLE temporary});
$node->safe_psql('postgres', q{BEGIN; CREATE TABLE created AS SELECT generate_series(1, 1000); ROLLBACK});
$number{back} = $create->('TABLE back');
$node->safe_psql('postgres', 'BEGIN; DROP TABLE back; ROLLBACK');
$node->safe_psql('postgres', 'BEGIN; SAVEPOINT s; DROP TABLE back; ROLLBACK TO s; COMMIT');
$node->safe_psql('postgres', q{BEGIN; DROP TABLE back; CREATE TABLE created AS SELECT 1; PREPARE TRANSACTION 'back'; ROLLBACK PREPARED 'back'});
is($node->safe_psql('postgres', 'SELECT recycled_files FROM polar_stat_flashback_log'), $before, 'nothing temporary, nothing that was rolled back');
is($node->safe_psql('postgres', 'SELECT count(*) FROM back'), 1000, 'which is all there');
is($kept->($number{back}), 0, 'and not kept');

# The number is not used again before a checkpoint, and its file is empty
my $path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('back')});
$node->safe_psql('postgres', 'DROP TABLE back');
is(-s $path, 0, 'an empty file keeps the number from being used');
checkpoint($node);
ok(!-e $path, 'until a checkpoint');
is($kept->($number{back}), 1, 'which does not take what was kept');

# Several segments: they need not hold anything
$number{large} = $create->('TABLE large');
$path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('large')});
checkpoint($node);
$node->stop;
truncate $path, 1024 * 1024 * 1024 or die $!;
open my $segment, '>', "$path.1" or die $!;
truncate $segment, 3 * 8192 or die $!;
close $segment;
$node->start;
record_points($node, $copies);
is($node->safe_psql('postgres', q{SELECT pg_relation_size('large') / 8192}), 131075, 'a table of two segments');
$node->safe_psql('postgres', 'DROP TABLE large');
is($node->safe_psql('postgres', "SELECT size_bytes / 8192 FROM polar_flashback_recycled WHERE relfilenode = $number{large}"), 131075, 'is kept');
ok(!-e "$path.1", 'its second segment is gone');
is_deeply([ check_points($node, $copies, 2, 300) ], [], 'every block at every point');

# Failures and limits
$number{fails} = $create->('TABLE fails');
my ($oldest, $second_oldest, $after) = split /\n/, $node->safe_psql('postgres', 'SELECT relfilenode FROM polar_flashback_recycled ORDER BY commit_lsn LIMIT 3');
$node->safe_psql('postgres', q{SELECT injection_points_attach('flashback-recycle-fails', 'notice')});
my ($out, $err);
is($node->psql('postgres', 'DROP TABLE fails', stderr => \$err), 0, 'a table that cannot be kept is dropped');
like($err, qr/WARNING:  could not keep file .* for flashback\nDETAIL:  could not write .*No space left/, 'with a warning');
is($kept->($number{fails}), 0, 'and not kept');
$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-recycle-fails')});
is_deeply([ grep { /^\d+_$number{fails}_/ } slurp_dir($node->data_dir . "/base/$area") ], [], 'nothing of it is left');
is($kept->($_), 0, 'the oldest were given up for it and its TOAST table') foreach $oldest, $second_oldest;
is($kept->($after), 1, 'and no other');
$node->append_conf('postgresql.conf', 'polar_flashback_recycle_max_size = 1MB');
$node->reload;
ok($node->poll_query_until('postgres', 'SELECT recycled_bytes <= 1024 * 1024 FROM polar_stat_flashback_log'), 'by size');
is($kept->($after), 0, 'the oldest goes first');
$number{big} = $create->('TABLE big');
$node->safe_psql('postgres', q{INSERT INTO big SELECT a, b FROM big; INSERT INTO big SELECT a, b FROM big});
checkpoint($node);
is($node->psql('postgres', 'DROP TABLE big', stderr => \$err), 0, 'one that is larger than all is dropped');
like($err, qr/WARNING:  could not keep file .*\nDETAIL:  it is larger than polar_flashback_recycle_max_size/, 'with a warning');
$node->append_conf('postgresql.conf', 'polar_flashback_recycle_max_size = 0');
$node->reload;

# Held against removal while it is read: an error ends that, too
$number{held} = $create->('TABLE held');
checkpoint($node);
$node->safe_psql('postgres', 'DROP TABLE held');
my $size = $node->safe_psql('postgres', 'SELECT recycled_bytes FROM polar_stat_flashback_log');
$node->safe_psql('postgres', q{CREATE FUNCTION flashback_oracle_hold(oid) RETURNS int8 AS 'flashback_oracle' LANGUAGE C});
my $reader = in_background($node, 'flashback-oracle-hold', "SELECT flashback_oracle_hold($number{held})");
$node->append_conf('postgresql.conf', 'polar_flashback_recycle_max_size = 1MB');
$node->reload;
$number{next} = $create->('TABLE next');
$node->safe_psql('postgres', 'UPDATE next SET a = a; CHECKPOINT; DROP TABLE next');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM polar_flashback_recycled WHERE relfilenode = $number{next}"), 'a later file goes');
is($kept->($number{held}), 1, 'not the one that is read');
$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-oracle-hold'); SELECT injection_points_wakeup('flashback-oracle-hold')});
$reader->query_until(qr/completed/, '');
$reader->quit;
$node->append_conf('postgresql.conf', 'polar_flashback_recycle_max_size = 0');
$node->reload;

# The log has no room: when it has given up its points, kept files go
$create->('TABLE filler');
$node->safe_psql('postgres', 'INSERT INTO filler SELECT a, b FROM filler') foreach 1 .. 5;
checkpoint($node);
$node->safe_psql('postgres', 'CREATE TABLE small (a int); INSERT INTO small VALUES (1)');
$node->safe_psql('postgres', 'TRUNCATE small; INSERT INTO small VALUES (1)') foreach 1 .. 20;
my $files = $node->safe_psql('postgres', 'SELECT recycled_files FROM polar_stat_flashback_log');
$node->safe_psql('postgres', q{SELECT injection_points_attach('flashback-log-disk-full', 'notice')});
$node->safe_psql('postgres', 'UPDATE filler SET a = a; CHECKPOINT');
$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-log-disk-full')});
is(state($node)->{ended}, 0, 'a log without room goes on');
cmp_ok($node->safe_psql('postgres', 'SELECT recycled_files FROM polar_stat_flashback_log'), '<', $files, 'in that of kept files');

# A damaged block is an error
$number{damaged} = $create->('TABLE damaged');
checkpoint($node);
$node->safe_psql('postgres', 'DROP TABLE damaged');
my ($file) = grep { /^\d+_$number{damaged}_\w+\.0$/ } slurp_dir($node->data_dir . "/base/$area");
open my $damage, '+<', $node->data_dir . "/base/$area/$file" or die $!;
sysseek $damage, 8192 + 4000, 0;
syswrite $damage, 'damage';
close $damage;
$node->psql('postgres', "SELECT flashback_oracle_hold($number{damaged})", stderr => \$err);
like($err, qr/ERROR:  invalid page in block 1 of kept file/, 'a damaged block is an error');

# Copies have none of it
$node->backup('copy');
ok(!-e $node->backup_dir . "/copy/base/$area", 'a base backup leaves it out');

# A tablespace, and a database
$number{placed} = $create->('TABLE placed', 'TABLESPACE place');
checkpoint($node);
$node->safe_psql('postgres', 'DROP TABLE moved');
$node->safe_psql('postgres', 'DROP TABLE placed');
is($kept->($number{placed}), 1, 'a table of a tablespace is kept');
my $place = $node->safe_psql('postgres', q{SELECT oid FROM pg_tablespace WHERE spcname = 'place'});
is($node->safe_psql('postgres', "SELECT tablespace FROM polar_flashback_recycled WHERE relfilenode = $number{placed}"), $place, 'there');
$node->safe_psql('postgres', 'CREATE ROLE other');
$node->psql('postgres', 'SET ROLE other; DROP TABLESPACE place', stderr => \$err);
like($err, qr/must be owner/, 'somebody else may not drop it');
is($kept->($number{placed}), 1, 'and has removed nothing');
$node->safe_psql('postgres', 'DROP TABLESPACE place');
is($kept->($number{placed}), 0, 'DROP TABLESPACE takes it');
$node->safe_psql('postgres', 'CREATE DATABASE gone');
$node->safe_psql('gone', q{CREATE EXTENSION flashback_log; CREATE TABLE t AS SELECT generate_series(1, 1000); CHECKPOINT; DROP TABLE t});
my $gone = $node->safe_psql('postgres', q{SELECT oid FROM pg_database WHERE datname = 'gone'});
isnt($node->safe_psql('postgres', "SELECT count(*) FROM polar_flashback_recycled WHERE database = $gone"), 0, 'a database has kept files');
$node->safe_psql('postgres', 'DROP DATABASE gone');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM polar_flashback_recycled WHERE database = $gone"), 'and takes them along');

# By time: what is older than the oldest point
ok($node->safe_psql('postgres', 'SELECT recycled_files FROM polar_stat_flashback_log') > 0, 'there is something');
my $state = state($node);
is($state->{ended}, 0, 'the window has not ended so far') or diag($state->{why});
$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-log-point')});
$node->safe_psql('postgres', q{SELECT injection_points_attach('flashback-log-append-fails', 'notice')});
$node->safe_psql('postgres', q{CREATE TABLE t (a int); INSERT INTO t VALUES (1); CHECKPOINT; UPDATE t SET a = 2; CHECKPOINT});
cmp_ok(state($node)->{ended}, '>', 0, 'the window ends');
$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-log-append-fails')});
checkpoint($node);
ok($node->poll_query_until('postgres', 'SELECT recycled_files = 0 AND recycled_bytes = 0 FROM polar_stat_flashback_log'), 'and with it all that was kept');
is_deeply([ grep { !/^\.+$/ } slurp_dir($node->data_dir . "/base/$area") ], [], 'to the last file');

# Switched off
$number{off} = $create->('TABLE off_1');
checkpoint($node);
$node->safe_psql('postgres', 'DROP TABLE off_1');
is($kept->($number{off}), 1, 'in the new window files are kept again');
$number{off} = $create->('TABLE off_2');
$node->append_conf('postgresql.conf', 'polar_enable_fast_recovery_area = off');
$node->restart;
ok(!-e $node->data_dir . "/base/$area", 'without a fast recovery area there is none');
$node->safe_psql('postgres', 'DROP TABLE off_2');
is($node->safe_psql('postgres', 'SELECT recycled_files FROM polar_stat_flashback_log'), 0, 'and nothing is kept');
ok(!-e $node->data_dir . "/base/$area", 'at all');
$node->stop;
command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], 'pages are in order');

done_testing();
