# A source that is behind, ahead, promoted, of another system, itself damaged, slow, lying or gone: its pages are not
# taken. The next one is asked, then recovery waits, then it ends with the reasons; never with a wrong or a torn page.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Repair qw(copy_instance liar new_repairable reasons);
use Floe::Test::Standby qw(new_standby wait_for_replay);
use Floe::Test::Torn qw(remember_files tear_pages repair_source);
use Floe::Test::Wait qw(wait_until);

srand($ENV{FLOE_TEST_SEED} // 3);

my $primary = new_repairable('primary', '', 10000);
my $standby = new_standby($primary, 'standby', 'hot_standby_feedback = on');
my $behind = new_standby($primary, 'behind');
my $ahead = new_standby($primary, 'ahead');
wait_for_replay($primary, $_) foreach $standby, $behind, $ahead;

# What this one has, ends before the checkpoint
$behind->stop;
$primary->safe_psql('postgres', 'CREATE EXTENSION pg_visibility');
$primary->safe_psql('postgres', 'INSERT INTO t SELECT g, 1, md5(g::text) FROM generate_series(10001, 11000) g; CHECKPOINT');
my $before = remember_files($primary);
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1 WHERE a % 2 = 0; SELECT pg_switch_wal()');
# It removes no page of the relation itself
$primary->safe_psql('postgres', q{SELECT pg_truncate_visibility_map('t')});
my $relation_path = $primary->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});
my $truth = $primary->safe_psql('postgres', 'SELECT count(*), sum(a), sum(b) FROM t');
wait_for_replay($primary, $standby);
$standby->stop;
crash($primary);

# A copy of the crashed instance, which has gone on and whose standby is therefore ahead of the original
my $gone_on = copy_instance('gone_on', $primary->data_dir);
$gone_on->start;
my $further = new_standby($gone_on, 'further');
$gone_on->safe_psql('postgres', 'UPDATE t SET b = b - 1000');
wait_for_replay($gone_on, $further);
$gone_on->stop('immediate');

my $torn = tear_pages($primary, $before);
cmp_ok($torn->{torn}, '>', 20, "pages are torn: $torn->{torn}");
my $saved = PostgreSQL::Test::Utils::tempdir('torn') . '/pgdata';
system_or_bail('cp', '-RPp', $primary->data_dir, $saved);
unlink "$saved/postmaster.pid";

# attempt(timeout, sources...): the crashed instance as it was, with these sources; returns whether it starts, and its log
my $attempts = 0;
sub attempt
{
	my ($timeout, @sources) = @_;
	my $list = join(';', map { ref ? repair_source($_) : $_ } @sources);
	my $instance = copy_instance('attempt_' . ++$attempts, $saved, "polar_page_repair_sources = '$list'\npolar_page_repair_timeout = $timeout\n");
	my $started = $instance->start(fail_ok => 1);
	return ($started, slurp_file($instance->logfile), $instance);
}

# refused([what, pattern, source]...): asked in one attempt, each for a reason of its own
sub refused
{
	my (@cases) = @_;
	my ($started, $log, $instance) = attempt('10s', map { $_->[2] // () } @cases);
	my $all = join(', ', map { $_->[0] } @cases);
	is($started, 0, "$all: recovery does not end");
	like($log, qr/FATAL: .*block \d+ of relation "base\/\d+\/\d+" is torn, and no page repair source could give it/, "$all: it names the page");
	my @reasons = reasons($log);
	is(scalar @reasons, scalar(grep { $_->[2] } @cases), "$all: each has a reason") or diag($log);
	foreach my $case (@cases)
	{
		like($case->[2] ? shift @reasons // '' : $log, $case->[1], "$case->[0]: the reason");
	}
	$instance->stop('immediate', fail_ok => 1) if $started;
	return $log;
}

# repaired(what, [patterns], sources...): the log matches all patterns
sub repaired
{
	my ($what, $patterns, @sources) = @_;
	my ($started, $log, $instance) = attempt('60s', @sources);
	is($started, 1, "$what: recovery ends") or diag($log);
	return unless $started;
	like($log, $_, "$what: the log tells") foreach @$patterns;
	is($instance->safe_psql('postgres', 'SELECT count(*), sum(a), sum(b) FROM t'), $truth, "$what: all is there");
	is($instance->safe_psql('postgres', q{SELECT bt_index_parent_check('t_pkey', true, true)}), '', "$what: the index is sound");
	is($instance->safe_psql('postgres', q{SELECT * FROM verify_heapam('t')}), '', "$what: the heap is sound");
	$instance->stop;
}

# Of another system
my $other = PostgreSQL::Test::Cluster->new('other');
# the template that others are copied from has one identifier
$other->init(force_initdb => 1);
$other->start;
$other->safe_psql('postgres', q{
	CREATE EXTENSION page_repair;
	CREATE ROLE page_repair LOGIN;
	CREATE ROLE stranger LOGIN;
	GRANT EXECUTE ON FUNCTION polar_page_repair_read TO page_repair});
# What this one has, it has replayed: nothing comes any more
$behind->append_conf('postgresql.conf', "primary_conninfo = ''");
$behind->start;
my $from_standby = qr/taken from source "\S+:@{[$standby->port]}\//;

# Nobody; then those who do not run, wait for WAL in vain, have replayed WAL that this instance does not have, are of another system,
# or may not read
refused([ 'no source', qr/"polar_page_repair_sources" is empty/ ]);
refused(
	[ 'a source that does not run', qr/^connection to server .* failed/, $standby ],
	[ 'a source behind', qr{^it has replayed up to \S+ only, recovery starts at}, $behind ],
	[ 'a standby ahead', qr/^it has replayed up to \S+, but this server's WAL ends at/, $further ],
	[ 'another system', qr/^it belongs to another system, \d+/, $other ],
	[ 'a role without the right', qr/permission denied for function polar_page_repair_read/, repair_source($other) =~ s/user=\S+/user=stranger/r ],
	[ 'a role without login', qr/role "nobody" does not exist/, repair_source($other) =~ s/user=\S+/user=nobody/r ]);

# The right one, though others are asked before
$standby->append_conf('postgresql.conf', "primary_conninfo = ''");
$standby->start;
repaired('a good source after one behind, one ahead and one of another system', [ $from_standby, qr/refused: it belongs to another system/ ], $behind, $further, $other, $standby);
$further->stop;

# Behind at first: it is asked again until it has come (it restores what the primary has written)
{
	$behind->stop;
	my $late = copy_instance('late', $behind->data_dir, 'recovery_min_apply_delay = 0');
	my $wal = "$saved/pg_wal";
	$late->start;
	my $pid = fork();
	if ($pid == 0)
	{
		# When somebody has asked in vain, WAL comes
		wait_until(sub { slurp_file($late->logfile) =~ /polar_page_repair_read/ }, 'the first question');
		$late->append_conf('postgresql.conf', "restore_command = 'cp \"$wal/%f\" \"%p\"'");
		system('pg_ctl', '-s', '-D', $late->data_dir, 'reload');
		require POSIX;
		POSIX::_exit(0);
	}
	repaired('a source that catches up', [ qr/taken from source/ ], $late);
	waitpid($pid, 0);
	$late->stop;
}

# Liars: a function of the same name that says what the test wants, to each of many sources something else
my $sysid = $standby->safe_psql('postgres', 'SELECT system_identifier FROM pg_control_system()');
my $redo = $before->{redo};
my $replayed = $standby->safe_psql('postgres', 'SELECT pg_last_wal_replay_lsn()');
my $say = liar($other, $sysid);
my @sound = (start_lsn => "'$redo'", end_lsn => "'$replayed'", flush_lsn => "'$replayed'");
# As its superuser: what it lends it asks others for without a password
my $liar = repair_source($other) =~ s/user=\S+//r;

# lies([what, pattern, answer...]...): each refused, in one attempt
sub lies
{
	my (@lies) = @_;
	my $number = 0;
	$say->(map { my (undef, undef, @answer) = @$_; [ 'liar_' . ++$number, @sound, @answer ] } @lies);
	$number = 0;
	unlike(refused(map { [ @$_[ 0, 1 ], "$liar application_name=liar_" . ++$number ] } @lies), qr/taken from source/, 'no page of a liar is taken');
	return;
}
my $of_ones = q{array_fill(decode(repeat('01', 8192), 'hex'), ARRAY[cardinality($1)])};
my $of_zeroes = q{array_fill(decode(repeat('00', 8192), 'hex'), ARRAY[cardinality($1)])};
my $lost = q{array_fill(NULL::bytea, ARRAY[cardinality($1)])};
my $breaks_off = q{pg_terminate_backend(pg_backend_pid())};
lies(
	[ 'a source that cannot read', qr/^it could not read block \d+ of relation/ ],
	[ 'a promoted source', qr/^it is not a standby any more/, in_recovery => 'false' ],
	[ 'another timeline', qr/^it is on timeline 2 at \S+, which is not in this server's history/, timeline => 2 ],
	[ 'a source ahead', qr/^it has replayed up to F\/0, but this server's WAL ends at/, end_lsn => "'F/0'" ],
	[ 'a position that makes no sense', qr/^its position makes no sense/, start_lsn => "'F/0'" ],
	[ 'a position that it has not flushed', qr/^its position makes no sense/, flush_lsn => "'0/1'" ],
	[ 'a source without checksums', qr/^it has no data checksums/, data_checksums => 'false' ],
	[ 'a damaged page', qr/^block \d+ of relation \S+ was damaged on its way/, pages => $of_ones ]);
lies(
	[ 'half a page', qr/^its answer has another shape/, pages => q{array_fill('\x0102'::bytea, ARRAY[cardinality($1)])} ],
	[ 'another number of pages', qr/^its answer has another shape/, pages => q{array_fill('\x'::bytea, ARRAY[cardinality($1) + 1])} ],
	[ 'no pages', qr/^its answer has another shape/, pages => 'NULL' ],
	[ 'a source that has lost a file', qr/^it has no content for block \d+ of relation \S+, which was not dropped/, pages => $lost ],
	[ 'a source whose pages are zeroes', qr/^it has no content for block \d+ of relation \S+, which was not dropped/, pages => $of_zeroes ],
	[ 'a source that breaks off', qr/terminating connection|server closed the connection/, before => $breaks_off ],
	[ 'a source that never answers', qr/^timed out while waiting for its answer/, before => q{pg_sleep(600)} ]);
$say->([ 'unreadable', @sound ], [ 'lost', @sound, pages => $lost ], [ 'breaks_off', @sound, before => $breaks_off ]);
repaired('a source that cannot read, one that has lost a file and one that breaks off first', [ $from_standby ],
	(map { "$liar application_name=$_" } 'unreadable', 'lost', 'breaks_off'), $standby);

$say->(@sound, before => q{pg_sleep(3)}, pages => "lend('" . $standby->connstr('postgres') =~ s/'/''/gr . " user=page_repair', \$1, \$2, \$3, \$4, \$5)");
repaired('a source that is slow', [ qr/taken from source "\S+:@{[$other->port]}\// ], $liar);

# Pages of a source that is not at the position it claims, from the future of this WAL; a standby whose file has been zeroed: that is
# not the content of any page
$ahead->promote;
$ahead->safe_psql('postgres', 'UPDATE t SET b = b - 7');
my $connection = $ahead->connstr('postgres') =~ s/'/''/gr;
$say->(@sound, pages => "lend('$connection user=page_repair', \$1, \$2, \$3, \$4, \$5)");
$ahead->safe_psql('postgres', 'CHECKPOINT');
{
	$standby->stop;
	my $zeroed = copy_instance('zeroed', $standby->data_dir);
	my $file = $zeroed->data_dir . "/$relation_path";
	my $size = -s $file;
	$zeroed->start;
	truncate($file, 0) && truncate($file, $size) or die "could not cut $file: $!";
	refused(
		[ 'a promoted standby', qr/^it is not a standby any more/, $ahead ],
		[ 'pages newer than their source', qr/^block \d+ of relation \S+ has position/, $liar ],
		[ 'a standby with a zeroed file', qr/^it has no content for block \d+ of relation \S+, which was not dropped/, $zeroed ]);
	$zeroed->stop;
	$standby->start;
}

$other->stop;
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'");
$primary->start;
is($primary->safe_psql('postgres', 'SELECT count(*), sum(a), sum(b) FROM t'), $truth, 'the crashed instance itself starts');
$primary->stop;
$standby->stop;
$ahead->stop;
done_testing();
