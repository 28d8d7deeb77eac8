# A fast shutdown that is asked for while an instance recovers from the crash of a process ends, and loses nothing.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Wait qw(wait_until);

my $instance = PostgreSQL::Test::Cluster->new('main');
$instance->init;
$instance->append_conf('postgresql.conf', "wal_level = replica\nrestart_after_crash = on\ncheckpoint_timeout = 1h\nmax_wal_size = 4GB\n");
$instance->start;
# WAL enough that its replay can be caught
$instance->safe_psql('postgres', 'CREATE TABLE t AS SELECT g FROM generate_series(1, 1500000) g');
my $postmaster = $instance->{_pid};

sub children
{
	my ($title) = @_;
	return grep { $_ ne '' } map { /^\s*(\d+) .*: $title/ ? $1 : '' } split /\n/, `ps -o pid=,args= --ppid $postmaster`;
}

# The startup process is stopped by a signal, so that the request surely comes while it recovers.
kill 'KILL', children('background writer');
my ($startup) = wait_until(sub { (children('startup'))[0] }, 'the instance to recover');
kill 'STOP', $startup;
is(scalar(grep { $_ } children('checkpointer')), 1, 'a checkpointer was started for the recovery');
kill 'INT', $postmaster;
$instance->wait_for_log(qr/received fast shutdown request/);
kill 'CONT', $startup;
ok(wait_until(sub { !kill 0, $postmaster }, 'the shutdown to end'), 'the shutdown ends');
is(join(' ', grep { -e "/proc/$_" } $startup), '', 'without a process that is left');

$instance->{_pid} = undef;
$instance->start;
is($instance->safe_psql('postgres', 'SELECT count(*) FROM t'), '1500000', 'what was committed is there');
$instance->stop;
done_testing();
