# Blocks that a VACUUM cut off, and that the file has again since: with nothing in them, or while the point was made. Blocks
# that were damaged on disk.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback checkpoint in_background);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\nfull_page_writes = off\npolar_page_repair_guard = off\nwal_writer_delay = 10s\nwal_writer_flush_after = 0\n");
$node->safe_psql('postgres', 'CREATE EXTENSION flashback_table; CREATE EXTENSION pageinspect');

sub moment
{
	return $node->safe_psql('postgres', 'SELECT clock_timestamp()');
}

sub digest
{
	my ($from) = @_;
	return $node->safe_psql('postgres', "SELECT count(*), md5(string_agg(t::text, chr(10) ORDER BY id)) FROM $from t");
}

sub digest_then
{
	my ($table, $moment) = @_;
	return digest("polar_flashback_rows(NULL::$table, '$moment')");
}

# After a crash the file has the blocks that a transaction had added, with nothing in them, not even a position in WAL
$node->safe_psql('postgres', q{CREATE TABLE t (id int, n int, body text);
	INSERT INTO t SELECT g, g, repeat('x', 300) FROM generate_series(1, 10000) g});
my $file = $node->basedir . '/rows';
$node->safe_psql('postgres', "COPY (SELECT * FROM t WHERE id <= 3000) TO '$file'");
checkpoint($node);
$node->safe_psql('postgres', 'UPDATE t SET n = -n WHERE id % 7 = 0');
my $then = moment();
my $is = digest('t');
$node->safe_psql('postgres', 'DELETE FROM t');
$node->safe_psql('postgres', 'VACUUM t');
is($node->safe_psql('postgres', q{SELECT pg_relation_size('t')}), '0', 'the table was truncated');
is(digest_then('t', $then), $is, 'its rows of before');
checkpoint($node);
$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
my $writer = $node->background_psql('postgres');
$writer->query_safe("BEGIN; COPY t FROM '$file'");
crash($node);
$writer->{run}->finish;
$node->start;
my $empty = q{SELECT count(*) FROM generate_series(0, pg_relation_size('t') / 8192 - 1) b, page_header(get_raw_page('t', b::int)) WHERE lsn = '0/0'};
cmp_ok($node->safe_psql('postgres', $empty), '>', 0, 'blocks are there again, with nothing in them');
is(digest_then('t', $then), $is, 'they still had rows then');

# Between the start of a checkpoint and its point rows are deleted, and their blocks are cut off: WAL from the checkpoint's start
# names blocks that the point does not have
for my $again (0, 1)
{
	$node->safe_psql('postgres', q{DROP TABLE IF EXISTS c; CREATE TABLE c (id int, n int, body text);
		INSERT INTO c SELECT g, g, repeat('x', 300) FROM generate_series(1, 3000) g});
	# No image for hint bits comes later
	digest('c');
	checkpoint($node);
	my $session = in_background($node, 'flashback-log-before-point', 'CHECKPOINT');
	$node->safe_psql('postgres', 'UPDATE c SET n = -n WHERE id > 1500; DELETE FROM c WHERE id > 1000');
	$node->safe_psql('postgres', 'VACUUM c');
	cmp_ok($node->safe_psql('postgres', q{SELECT pg_relation_size('c') / 8192}), '<', 50, 'the table was truncated');
	$node->safe_psql('postgres', "COPY c FROM '$file'") if $again;
	$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-log-before-point'); SELECT injection_points_wakeup('flashback-log-before-point')});
	$session->query_until(qr/completed/, '');
	$session->quit;
	$node->safe_psql('postgres', 'SELECT pg_log_standby_snapshot()');
	$node->safe_psql('postgres', 'UPDATE c SET n = n + 1 WHERE id < 500');
	$then = moment();
	$is = digest('c');
	$node->safe_psql('postgres', q{UPDATE c SET n = 0; INSERT INTO c SELECT g, 0, 'new' FROM generate_series(1, 30000) g});
	is($node->safe_psql('postgres', "SELECT point FROM polar_flashback_check('c', '$then')"), $node->safe_psql('postgres', 'SELECT max(number) FROM polar_flashback_points'), 'the point is the one');
	is(digest_then('c', $then), $is, 'truncated while the point was made' . ($again ? ', and filled again' : ''));
	checkpoint($node);
	is(digest_then('c', $then), $is, 'also after a checkpoint');
}

# A block that held nothing at the point, and was unreadable when it was overwritten, as after a crash that tore it: WAL has all
# of it; of one that held something, WAL has not
$node->safe_psql('postgres', q{CREATE TABLE u (id int, n int, body text)});
checkpoint($node);
$node->safe_psql('postgres', q{INSERT INTO u SELECT g, g, repeat('x', 300) FROM generate_series(1, 100) g});
my $first = moment();
my $first_is = digest('u');
checkpoint($node);
$node->safe_psql('postgres', 'UPDATE u SET n = -n WHERE id = 100');
my $second = moment();
my $path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('u')});
sub damage
{
	my ($offset) = @_;
	open my $handle, '+<', $path or die $!;
	binmode $handle;
	seek $handle, $offset, 0;
	print $handle 'damage';
	return close $handle;
}
damage(5000);
$node->safe_psql('postgres', 'UPDATE u SET n = 0 WHERE id > 10');
$node->safe_psql('postgres', 'UPDATE u SET n = 0');
my ($out, $err);
is(digest_then('u', $first), $first_is, 'nothing is needed of a damaged block that WAL makes');
$node->psql('postgres', "SELECT polar_flashback_count('u', '$second')", stderr => \$err);
like($err, qr/ERROR:  could not rebuild block 0 of relation/, 'else it is an error');
checkpoint($node);
is($node->safe_psql('postgres', 'SELECT unreadable FROM polar_stat_flashback_log'), '1', 'it has been overwritten');
is(digest_then('u', $first), $first_is, 'it is still not needed');
$node->psql('postgres', "SELECT polar_flashback_count('u', '$second')", stderr => \$err);
like($err, qr/ERROR:  could not rebuild block 0 of relation/, 'and still an error else');
damage(0);
$node->safe_psql('postgres', 'UPDATE u SET n = 1');
$node->psql('postgres', "SELECT polar_flashback_count('u', '$second')", stderr => \$err);
like($err, qr/ERROR:  could not rebuild block 0 of relation/, 'damage is not taken for a newer page');
$node->stop;
done_testing();
