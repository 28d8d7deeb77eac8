# Whatever ends the connection of a commit that waits, the client sees no acknowledgement: pg_terminate_backend, each kind of
# shutdown, the death of the postmaster, the promotion of the standby.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash_postmaster);
use Floe::Test::Protocol;
use Floe::Test::Standby qw(new_primary new_standby);

my $primary = new_primary('primary', q{
autovacuum = off
max_prepared_transactions = 10
polar_commit_floor = on
});
$primary->safe_psql('postgres', q{
	CREATE TABLE t (way text);
	CREATE PROCEDURE twice() LANGUAGE plpgsql AS
		$$ BEGIN INSERT INTO t VALUES ('procedure'); COMMIT; RAISE WARNING 'after'; INSERT INTO t VALUES ('after'); END $$});
my $standby = new_standby($primary, 'standby');
$standby->stop;
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'standby'");
$primary->reload;
$primary->poll_query_until('postgres', 'SHOW synchronous_standby_names', 'standby') or die 'the names are not set';

# name, commands before, the command that is to wait, what of its answer may be seen although it is not acknowledged
my @shapes = (
	[ 'one command', [], q{INSERT INTO t VALUES ('lost')}, qr/^$/ ],
	[ 'COMMIT', [ 'BEGIN', q{INSERT INTO t VALUES ('lost')} ], 'COMMIT', qr/^$/ ],
	[ 'a command that returns rows', [], q{INSERT INTO t VALUES ('lost') RETURNING way}, qr/^(T(, D lost)?)?$/ ],
	# without the wait the first answer would be pushed out by the rows of the second
	[ 'a command after COMMIT', [ 'BEGIN', q{INSERT INTO t VALUES ('lost')} ], q{COMMIT; SELECT repeat('x', 100000)}, qr/^$/ ],
	[ 'a procedure', [], 'CALL twice()', qr/^$/ ],
	[ 'the extended protocol', [], q{extended:INSERT INTO t VALUES ('lost')}, qr/^$/ ],
	[ 'PREPARE TRANSACTION', [ 'BEGIN', q{INSERT INTO t VALUES ('lost')} ], q{PREPARE TRANSACTION 'prepared'}, qr/^$/ ],
);

sub lost
{
	my ($how, $end) = @_;
	my %client;
	foreach my $shape (@shapes)
	{
		my ($name, $before, $command) = @$shape;
		my $client = $client{$name} = Floe::Test::Protocol->new($primary, options => '-c synchronous_commit=off');
		foreach my $text (@$before) { $client->query($text); $client->until_ready; }
		if ($command =~ s/^extended://) { $client->extended($command); }
		else { $client->query($command); }
	}
	foreach my $client (values %client)
	{
		$primary->poll_query_until('postgres', 'SELECT wait_event = $$SyncRep$$ FROM pg_stat_activity WHERE pid = ' . $client->pid)
		  or die 'a commit does not wait';
	}
	$end->(map { $_->pid } values %client);
	foreach my $shape (@shapes)
	{
		my ($name, undef, undef, $allowed) = @$shape;
		my @messages = grep { !/^N WARNING: / } $client{$name}->until_closed;
		like(join(', ', @messages), $allowed, "$how: no acknowledgement of $name");
	}
}

sub start_again
{
	$primary->start;
	my @prepared = split /\n/, $primary->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
	is("@prepared", 'prepared', 'the transaction is prepared locally');
	my $client = Floe::Test::Protocol->new($primary);
	$client->query(q{ROLLBACK PREPARED 'prepared'});
	$primary->poll_query_until('postgres', 'SELECT wait_event = $$SyncRep$$ FROM pg_stat_activity WHERE pid = ' . $client->pid)
	  or die 'ROLLBACK PREPARED does not wait';
	$primary->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $client->pid . ')');
	is((grep { /^[CZ]/ } $client->until_closed), 0, 'nor is its end acknowledged');
}

lost('pg_terminate_backend', sub {
	my @pids = @_;
	$primary->safe_psql('postgres', "SELECT pg_terminate_backend($_)") foreach @pids;
	ok($primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_activity WHERE pid IN (' . join(', ', @pids) . ')'), 'all have ended');
});
$primary->stop('fast');
start_again();
lost('a fast shutdown', sub { $primary->stop('fast') });
start_again();
lost('an immediate shutdown', sub { $primary->stop('immediate') });
start_again();
lost('the death of the postmaster', sub { crash_postmaster($primary) });
start_again();

# A smart shutdown waits for the clients, a fast one after it does not.
lost('a smart shutdown and then a fast one', sub {
	my @pids = @_;
	my $offset = -s $primary->logfile;
	is(system_log('pg_ctl', '-D' => $primary->data_dir, '-m' => 'smart', '-W', 'stop'), 0, 'smart shutdown');
	$primary->wait_for_log(qr/received smart shutdown request/, $offset);
	is((grep { kill 0, $_ } @pids), scalar @pids, 'all wait');
	$primary->stop('fast');
});
start_again();

# The standby is promoted while it hears nothing: it has none of these commits, and none of them was acknowledged.
lost('the promotion of the standby', sub {
	my @pids = @_;
	$standby->append_conf('postgresql.conf', "primary_conninfo = ''");
	$standby->start;
	$standby->promote;
	is($standby->safe_psql('postgres', 'SELECT count(*) FROM t'), 0, 'what is promoted has none of the commits');
	is((grep { kill 0, $_ } @pids), scalar @pids, 'which still wait');
	$primary->stop('fast');
});
done_testing();
