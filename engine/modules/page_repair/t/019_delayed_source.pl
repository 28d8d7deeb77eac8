# A standby that stays behind is no protection, not even while nobody has looked at it for long: a primary that crashes would
# wait for it as long as it is behind. Nor is a source that ignores damaged pages: it gives none away.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Standby qw(new_primary new_standby);
use Floe::Test::Torn qw(repair_source);

# A grace period that does not end
my $primary = new_primary('primary', q{
autovacuum = off
checkpoint_timeout = 1h
full_page_writes = off
polar_page_repair_grace = 1h
});
$primary->safe_psql('postgres', q{
	CREATE EXTENSION page_repair;
	CREATE ROLE page_repair LOGIN;
	GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair;
	CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 1000) g});
my $standby = new_standby($primary, 'standby');
$primary->wait_for_replay_catchup($standby);
$standby->append_conf('postgresql.conf', "recovery_min_apply_delay = '1h'");
$standby->reload;
$primary->safe_psql('postgres', 'INSERT INTO t VALUES (0); CHECKPOINT');
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'");
$primary->reload;

# The source streams, has flushed the redo location and has not replayed it
ok($primary->poll_query_until('postgres', q{
	SELECT count(*) FROM polar_page_repair_sources s, pg_control_checkpoint() c
	WHERE NOT s.healthy AND s.why ~ 'it has replayed .*, the last checkpoint' AND s.flush_lsn >= c.redo_lsn AND s.replay_lsn < c.redo_lsn}, '1'),
	'a delayed standby is not healthy, and the view says why');
is($primary->safe_psql('postgres', 'SELECT state, images_in_force FROM polar_page_repair_status'), 'full_page_writes|t', 'images are written');

# Without the delay it is, from when it has come
$standby->append_conf('postgresql.conf', 'recovery_min_apply_delay = 0');
$standby->reload;
$primary->append_conf('postgresql.conf', 'polar_page_repair_grace = 2s');
$primary->reload;
ok($primary->poll_query_until('postgres', 'SELECT state, images_in_force FROM polar_page_repair_status', 'protected|f'),
	'without the delay it protects');

# Pages of a pool in which damaged ones may be
my $question = q{SELECT pages FROM polar_page_repair_read('{}', '{}', '{}', '{}', '{}')};
my ($rc, $out, $err) = $primary->psql('postgres', "SET ignore_checksum_failure = on; $question");
like($err, qr/ERROR: .*no page is given away while "ignore_checksum_failure" is on/, 'nothing is given away by who ignores damage');
is($primary->safe_psql('postgres', "$question"), '{}', 'else it is');
$standby->append_conf('postgresql.conf', 'ignore_checksum_failure = on');
$standby->reload;
ok($primary->poll_query_until('postgres', q{SELECT why ~ 'ignore_checksum_failure' FROM polar_page_repair_sources}, 't'), 'such a source is not healthy');
$standby->stop;
$primary->stop;
done_testing();
