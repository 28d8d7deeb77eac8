# pg_rewind brings back what the old primary truncated, although its file has grown again by pages that no WAL mentions.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = PostgreSQL::Test::Cluster->new('old');
$old->init(allows_streaming => 1, extra => ['--data-checksums']);
$old->append_conf('postgresql.conf', "autovacuum = off\nwal_keep_size = 1GB\npolar_recovery_bulk_extend_size = 0\nshared_buffers = 32MB\n");
$old->start;
$old->backup('base');
my $new = PostgreSQL::Test::Cluster->new('new');
$new->init_from_backup($old, 'base', has_streaming => 1);
$new->start;

# One row a page. What is all-visible stays so on both sides.
$old->safe_psql('postgres', q{
	CREATE TABLE shrinks (a int, b text STORAGE PLAIN);
	CREATE TABLE empties (LIKE shrinks INCLUDING STORAGE);
	SET polar_bulk_extend_size = 0;
	INSERT INTO shrinks SELECT g, repeat('x', 7000) FROM generate_series(1, 1200) g;
	INSERT INTO empties SELECT * FROM shrinks});
$old->safe_psql('postgres', 'VACUUM shrinks, empties');
$old->wait_for_catchup($new);
$new->promote;
$new->safe_psql('postgres', 'UPDATE shrinks SET a = -a WHERE a = 1');
$new->safe_psql('postgres', 'CHECKPOINT');
my $query = q{
	SELECT 'shrinks', count(*), sum(a) FROM shrinks;
	SELECT 'empties', count(*), sum(a) FROM empties};
my $expected = $new->safe_psql('postgres', $query);
is($expected, "shrinks|1200|720598\nempties|1200|720600", 'the source has all rows');

# The target goes its own way: truncates, and grows again.
my $blocks = "SELECT pg_relation_size('shrinks') / 8192, pg_relation_size('empties') / 8192";
$old->safe_psql('postgres', 'DELETE FROM shrinks WHERE a > 600; DELETE FROM empties');
$old->safe_psql('postgres', 'VACUUM shrinks, empties');
is($old->safe_psql('postgres', $blocks), '600|0', 'truncated');
$old->safe_psql('postgres', q{
	SET polar_bulk_extend_size = '4MB';
	DO $$ BEGIN FOR g IN 1..10 LOOP INSERT INTO shrinks VALUES (g, repeat('y', 7000)); END LOOP; END $$;
	SET polar_bulk_extend_size = '8MB';
	INSERT INTO empties SELECT g, repeat('y', 7000) FROM generate_series(1, 1100) g});
like($old->safe_psql('postgres', $blocks), qr/^637\|/, 'and has grown again, without WAL');
$old->stop;

my $connstr = $new->connstr('postgres');
command_ok(
	[
		'pg_rewind', '--target-pgdata', $old->data_dir, '--source-server', $connstr,
		'--config-file', $old->data_dir . '/postgresql.conf', '--no-sync'
	],
	'pg_rewind');

# It is a standby of the new primary now.
$old->append_conf('postgresql.conf', "port = " . $old->port . "\n");
$connstr =~ s/'/''/g;
$old->append_conf('postgresql.conf', "primary_conninfo = '$connstr application_name=old'\n");
$old->set_standby_mode;
$old->start;
$new->wait_for_catchup('old');
is($old->safe_psql('postgres', $query), $expected, 'the target has all rows of the source');

$old->stop;
$new->stop;
done_testing();
