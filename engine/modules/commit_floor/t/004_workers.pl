# Autovacuum does not wait for standbys. A subscription does, and its publisher hears of nothing that standbys do not have.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Standby qw(new_primary new_standby);

my $publisher = new_primary('publisher', "wal_level = logical\nmax_prepared_transactions = 10\nautovacuum = off");
my $primary = new_primary('primary', q{
autovacuum = off
autovacuum_naptime = 1s
max_prepared_transactions = 10
polar_commit_floor = on
wal_retrieve_retry_interval = 100ms
});
$publisher->safe_psql('postgres', 'CREATE TABLE t (a int); CREATE PUBLICATION p FOR TABLE t');
$primary->safe_psql('postgres', q{
	CREATE TABLE t (a int);
	CREATE TABLE vacuumed AS SELECT g AS a FROM generate_series(1, 10000) g;
	DELETE FROM vacuumed WHERE a % 2 = 0});
my $standby = new_standby($primary, 'standby');
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'standby'");
$primary->reload;
$primary->poll_query_until('postgres', q{SELECT sync_state = 'sync' FROM pg_stat_replication}) or die 'no synchronous standby';
$primary->safe_psql('postgres', q{CREATE SUBSCRIPTION s CONNECTION '} . $publisher->connstr . q{ dbname=postgres' PUBLICATION p WITH (two_phase = true)});
$primary->wait_for_subscription_sync($publisher, 's');
$primary->poll_query_until('postgres', q{SELECT subtwophasestate = 'e' FROM pg_subscription}) or die 'two_phase is not enabled';
is($primary->safe_psql('postgres', 'SELECT subsynccommit FROM pg_subscription'), 'off', 'a subscription commits at the level off');

# change(sql): on the publisher; returns the position after it
sub change
{
	my ($sql) = @_;
	$publisher->safe_psql('postgres', $sql);
	return $publisher->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
}

sub worker_waits
{
	my ($lsn, $what) = @_;
	ok($primary->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity
		WHERE backend_type = 'logical replication apply worker' AND wait_event = 'SyncRep'}), $what);
	unheard($lsn);
}

sub unheard
{
	my ($lsn) = @_;
	is($publisher->safe_psql('postgres', "SELECT confirmed_flush_lsn < '$lsn' FROM pg_replication_slots WHERE slot_name = 's'"), 't',
		'the publisher has not heard of it');
}

sub heard
{
	my ($lsn, $what) = @_;
	ok($publisher->poll_query_until('postgres', "SELECT confirmed_flush_lsn >= '$lsn' FROM pg_replication_slots WHERE slot_name = 's'"), $what);
}

heard(change(q{BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'one'}), 'a prepared transaction is received');
$standby->stop;

# Autovacuum
$primary->append_conf('postgresql.conf', 'autovacuum = on');
$primary->reload;
ok($primary->poll_query_until('postgres', q{SELECT autovacuum_count > 0 AND autoanalyze_count > 0 FROM pg_stat_user_tables WHERE relname = 'vacuumed'}),
	'autovacuum does its work while the standby is away');

# A commit, COMMIT PREPARED
my $lsn = change('INSERT INTO t VALUES (2)');
worker_waits($lsn, 'the subscription waits');
$primary->stop('fast');
unheard($lsn);
$primary->start;
worker_waits($lsn, 'after a restart it waits for what it has received before');
$primary->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'logical replication apply worker'});
unheard($lsn);
$standby->start;
heard($lsn, 'until the standby has it');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM t'), 1, 'which it does');

$standby->stop;
$lsn = change(q{COMMIT PREPARED 'one'});
worker_waits($lsn, 'it waits for the commit of a prepared transaction');
$primary->stop('immediate');
unheard($lsn);
$primary->start;
worker_waits($lsn, 'after a crash, too');
$standby->start;
heard($lsn, 'until the standby has it');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM t'), 2, 'which it does');

$_->stop foreach $standby, $primary, $publisher;
done_testing();
