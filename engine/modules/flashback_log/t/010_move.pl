# A database that moves to another tablespace takes the points of before with it, as their images name the old place; the points
# of the move itself are right for it, and a standby begins a new window.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback await_point checkpoint state continued);
use Floe::Test::Standby qw(new_standby wait_for_replay);

my $node = new_flashback('node', "shared_buffers = 16MB\npolar_enable_fast_recovery_area = on\nallow_in_place_tablespaces = on\n");
$node->safe_psql('postgres', q{CREATE TABLESPACE place LOCATION ''});
$node->safe_psql('postgres', 'CREATE DATABASE moved');
$node->safe_psql('moved', q{
	CREATE EXTENSION flashback_log;
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE t (a int) WITH (fillfactor = 50);
	INSERT INTO t SELECT generate_series(1, 1000)});
my $standby = new_standby($node, 'standby', '');
my $change = 'UPDATE t SET a = a + 1';
foreach my $turn (1 .. 3)
{
	$node->safe_psql('moved', $change);
	checkpoint($node);
}
wait_for_replay($node, $standby);
checkpoint($standby);
await_point($standby);

# A move to where it is is none
my $before = state($node);
$node->safe_psql('postgres', 'ALTER DATABASE moved SET TABLESPACE pg_default');
continued($node, $before, 'nothing is lost where nothing moves');

$node->safe_psql('moved', $change);
$before = state($node);
my $standby_before = state($standby);
$node->safe_psql('postgres', 'ALTER DATABASE moved SET TABLESPACE place');
my $now = state($node);
my @points = split /,/, $now->{points};
my ($last) = $before->{points} =~ /(\d+)$/;
is(scalar(@points), 2, 'two points are left');
cmp_ok($points[0], '>', $last, 'those of the move');
like($now->{why}, qr/a database was moved/, 'which is said');

# Both have the content of the move
my $path = $node->data_dir . '/' . $node->safe_psql('moved', q{SELECT pg_relation_filepath('t')});
my $then = unpack 'H*', substr(slurp_file($path), 0, 8192);
$node->safe_psql('moved', qq{$change; SELECT pg_buffercache_evict_relation('t')});
isnt(unpack('H*', substr(slurp_file($path), 0, 8192)), $then, 'a page is overwritten in the new place');
is($node->safe_psql('moved', "SELECT encode(polar_flashback_log_page('t', 0, $_), 'hex')"), $then, 'and kept for a point of the move') foreach @points;

# Then points are kept again
checkpoint($node);
my $after = state($node);
$node->safe_psql('moved', $change);
checkpoint($node);
continued($node, $after, 'then all goes on');
$node->restart;
continued($node, $after, 'also after a restart');

# A standby
wait_for_replay($node, $standby);
is(state($standby)->{ended}, $standby_before->{ended} + 1, 'the window of a standby ends');
like(state($standby)->{why}, qr/a database was moved/, 'for the same reason');
checkpoint($standby);
await_point($standby);
my ($oldest) = split /,/, state($standby)->{points};
cmp_ok($oldest, '>', ($standby_before->{points} =~ /(\d+)$/)[0], 'and another begins');
$standby->stop;
$node->stop;

done_testing();
