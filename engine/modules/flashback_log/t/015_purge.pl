# Personal data that was erased can be made unreadable in the past: at once, for good, over a crash, and for this table only.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback checkpoint state continued in_background);

my $node = new_flashback('node', "shared_buffers = 16MB\npolar_enable_fast_recovery_area = on\n");
foreach my $table ('t', 'other')
{
	$node->safe_psql('postgres', "CREATE TABLE $table (a int, b text) WITH (fillfactor = 50); INSERT INTO $table SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 1000) g");
}
my $number = $node->safe_psql('postgres', q{SELECT pg_relation_filenode('t')});
my $first = checkpoint($node);
$node->safe_psql('postgres', 'UPDATE t SET a = -a; UPDATE other SET a = -a; CHECKPOINT');
my $read = sub {
	my ($table, $point) = @_;
	my ($out, $err);
	$node->psql('postgres', "SELECT length(polar_flashback_log_page('$table', 0, $point))", stdout => \$out, stderr => \$err);
	return $err eq '' ? $out : $err =~ /ERROR:  (.*)/ ? $1 : $err;
};
is($read->('t', $first), 8192, 'the past of a table can be read');
my $state = state($node);
is($node->safe_psql('postgres', q{SELECT polar_flashback_purge('t')}), 0, 'it is purged');
my $after = $node->safe_psql('postgres', 'SELECT max(number) FROM polar_flashback_points');
like($read->('t', $first), qr/the past of relation $number was purged/, 'and cannot be read');
is($read->('other', $first), 8192, 'that of another table can');
$node->safe_psql('postgres', 'UPDATE t SET a = -a; CHECKPOINT');
is($read->('t', $after), 8192, 'from then on it can');
crash($node);
$node->start;
continued($node, $state, 'the window continues after a crash');
like($read->('t', $first), qr/the past of relation $number was purged/, 'with it the purge');
is($read->('t', $after), 8192, 'and no more than that');

# A kept file, before the list is in memory
$node->safe_psql('postgres', 'DROP TABLE t');
my $file = "SELECT polar_flashback_purge(tablespace, database, relfilenode) FROM polar_flashback_recycled WHERE relfilenode = $number";
in_background($node, 'flashback-purge-listed', $file);
crash($node);
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_points WHERE number = ' . $first), 1, 'killed in the middle');
is($node->safe_psql('postgres', $file) || 0, 0, 'what was listed goes at the start');
is($node->safe_psql('postgres', "SELECT count(*) FROM polar_flashback_recycled WHERE relfilenode = $number"), 0, 'nothing is left');

# Without its list the window does not continue
$node->stop;
append_to_file($node->data_dir . '/polar_flog/purged', 'x');
$node->start;
like(state($node)->{why}, qr/the list of purged relations is damaged/, 'a damaged list ends the window');
isnt(',' . state($node)->{points} . ',', ",$first,", 'and what it protected is gone');

# Not for everybody
$node->safe_psql('postgres', 'CREATE ROLE nobody; CREATE ROLE monitor IN ROLE pg_monitor');
foreach my $sql (q{SELECT polar_flashback_purge('other'::regclass)}, 'SELECT polar_flashback_purge(1663, 5, 16384)', 'SELECT count(*) FROM polar_flashback_recycled')
{
	my $err;
	isnt($node->psql('postgres', "SET ROLE nobody; $sql", stderr => \$err), 0, "nobody: $sql");
	like($err, qr/permission denied/, 'is denied');
}
is($node->safe_psql('postgres', 'SET ROLE monitor; SELECT count(*) >= 0 FROM polar_flashback_recycled'), 't', 'pg_monitor sees what is kept');
$node->stop;

done_testing();
