# Pages belong to one history and one time: who shall stay behind gets none of now, who finds less or more WAL than it has
# looked at does not start, and a timeline counts only for who is on the way to it.
use strict;
use warnings FATAL => 'all';
use File::Copy qw(copy);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Repair qw(attempt copy_instance least_recovery_point liar new_repairable reasons sound start_only tear_standby);
use Floe::Test::Standby qw(new_primary new_standby wait_for_replay);
use Floe::Test::Torn qw(remember_files tear_pages repair_source);
use Floe::Test::Wait qw(wait_until);

srand($ENV{FLOE_TEST_SEED} // 8);

my $query = 'SELECT count(*), sum(a), sum(b), md5(string_agg(c, NULL ORDER BY a)) FROM t';
# Long enough for whoever is to answer on a busy machine; of those who never will, few are waited for
my $primary = new_repairable('primary', "wal_retrieve_retry_interval = 100ms\npolar_page_repair_timeout = 15s");
my $sysid = $primary->safe_psql('postgres', 'SELECT system_identifier FROM pg_control_system()');
my $standby = new_standby($primary, 'standby');
my $second = new_standby($primary, 'second');
my $other = new_primary('other', 'fsync = off');
my $lie = liar($other, $sysid);
my $own_source = repair_source($primary);
my $lying_source = repair_source($other) =~ s/user=\S+//r;
sub set
{
	my ($cluster, $name, $value) = @_;
	$cluster->safe_psql('postgres', "ALTER SYSTEM SET $name = '$value'");
	$cluster->reload;
	$cluster->poll_query_until('postgres', "SHOW $name", $value) or die "$name is not $value";
	return;
}

# streams_from(cluster, name): how the standby of that name follows it
sub streams_from
{
	my ($from, $name) = @_;
	return "primary_conninfo = '" . $from->connstr =~ s/'/''/gr . " application_name=$name'\n";
}

# ---- A standby that is to stay behind
my $torn = tear_standby($primary, $standby);
cmp_ok($torn->{torn}, '>', 20, "the standby's pages are torn: $torn->{torn}");
my $least = least_recovery_point($standby);
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1000');
foreach my $case (
	[ 'a delay', "recovery_min_apply_delay = '1h'", qr/No source is asked: "recovery_min_apply_delay" is set/ ],
	[ 'a target', "recovery_target_time = '2100-01-01 00:00:00'", qr/No source is asked: recovery has a target/ ])
{
	my ($what, $setting, $reason) = @$case;
	my $name = 'behind_' . $what =~ s/^a //r;
	my $late = copy_instance($name, $standby->data_dir, streams_from($primary, $name) . "$setting\npolar_page_repair_sources = '$own_source'\n");
	my ($started, $log) = attempt($late);
	is($started, 0, "$what: no page of now is taken");
	like($log, $reason, "$what: the log says why");
	like($log, qr/HINT: .*Start once without a recovery target/, "$what: and what to do");
	is(least_recovery_point($late), $least, "$what: the minimum recovery point has not moved");
	$late->append_conf('postgresql.conf', "recovery_min_apply_delay = 0\nrecovery_target_time = ''");
	$late->start;
	wait_for_replay($primary, $late);
	is(sound($late), '', "$what: without it everything is sound");
	cmp_ok($late->safe_psql('postgres', 'SELECT repaired FROM polar_stat_page_repair'), '>', 20, "$what: without it the pages come from the primary");
	$late->stop('immediate');
}

# One that is whole needs nobody, even if nothing on its disk is to be believed
$second->append_conf('postgresql.conf', "recovery_min_apply_delay = '1h'\npolar_page_repair_policy = always\npolar_page_repair_sources = 'host=/nonexistent'");
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1');
crash($second);
is((attempt($second))[0], 1, 'a delayed standby that is whole starts without its source');
$second->append_conf('postgresql.conf', "recovery_min_apply_delay = 0\npolar_page_repair_policy = checksum\npolar_page_repair_sources = ''");
$second->reload;

# ---- Images that ended after the redo pointer: its checkpoint's flag says nothing about the WAL that follows
{
	my $flipped = new_repairable('flipped', 'full_page_writes = on');
	my $bare = new_standby($flipped, 'bare');
	$flipped->safe_psql('postgres', 'CREATE TABLE hinted AS SELECT g AS a, md5(g::text) AS b FROM generate_series(1, 20000) g; CHECKPOINT');
	wait_for_replay($flipped, $bare);
	$bare->safe_psql('postgres', 'CHECKPOINT');
	is($bare->safe_psql('postgres', 'SELECT state FROM polar_page_repair_status'), 'full_page_writes', 'images until here: the standby says so');
	my $hinted = $flipped->safe_psql('postgres', q{SELECT pg_relation_filepath('hinted')});
	my ($mine, $its) = (remember_files($flipped), remember_files($bare));
	set($flipped, 'full_page_writes', 'off');
	$flipped->poll_query_until('postgres', 'SELECT images_in_force FROM polar_page_repair_status', 'f') or die 'images do not end';
	$flipped->safe_psql('postgres', 'SELECT count(*) FROM hinted; UPDATE t SET b = b + 1');
	wait_for_replay($flipped, $bare);
	is($bare->safe_psql('postgres', 'SELECT full_page_writes FROM pg_control_checkpoint()'), 't', 'the redo pointer was taken with images');
	is($bare->safe_psql('postgres', 'SELECT state FROM polar_page_repair_status'), 'exposed', 'the standby does not call itself protected by images that ended');
	crash($_) foreach $flipped, $bare;
	cmp_ok(tear_pages($bare, $its, sector => 512)->{torn}, '>', 20, "a standby's pages are torn");
	cmp_ok(tear_pages($flipped, $mine, sector => 512, only => qr/$hinted\z/)->{torn}, '>', 20, 'pages that only hints have changed are torn');
	my $found = qr/is torn, and no page repair source could give it/;
	my ($started, $log) = attempt($flipped);
	is($started, 0, 'images ended: no start with torn pages');
	like($log, qr/$found.*\n.*"polar_page_repair_sources" is empty/, 'images ended: torn pages are found without sources');
	($started, $log) = attempt($bare);
	is($started, 0, 'images ended: nor of a standby');
	like($log, $found, 'images ended: it finds them, too');
	$bare->append_conf('postgresql.conf', "recovery_min_apply_delay = '1h'\npolar_page_repair_sources = '$own_source'");
	($started, $log) = attempt($bare);
	is($started, 0, 'images ended: nor of a delayed one');
	like($log, qr/$found.*\n.*No source is asked/, 'images ended: it finds them, too');
}

# ---- Images that ended while the server was stopped: no record says so
{
	my $edited = new_repairable('edited', 'full_page_writes = on');
	$edited->safe_psql('postgres', 'CREATE TABLE hinted AS SELECT g AS a, md5(g::text) AS b FROM generate_series(1, 20000) g');
	my $hinted = $edited->safe_psql('postgres', q{SELECT pg_relation_filepath('hinted')});
	$edited->restart;
	$edited->safe_psql('postgres', 'UPDATE t SET b = b + 1 WHERE a < 100');
	crash($edited);
	my ($started, $log) = attempt($edited);
	unlike($log, qr/page repair:/, 'images from start to crash: recovery is that of PostgreSQL');
	# Hash indexes have records without images all the same
	$edited->safe_psql('postgres', 'CREATE INDEX by_hash ON t USING hash (c); UPDATE t SET b = b + 1');
	$edited->restart;
	$edited->safe_psql('postgres', q{INSERT INTO t SELECT g, 0, 'c' || g % 10 FROM generate_series(100001, 101000) g; DELETE FROM t WHERE a % 2 = 0; VACUUM t});
	crash($edited);
	($started, $log) = attempt($edited);
	is($started, 1, 'changes that have no image by nature: it starts');
	$edited->stop;
	$edited->append_conf('postgresql.conf', 'full_page_writes = off');
	$edited->start;
	is($edited->safe_psql('postgres', 'SELECT full_page_writes FROM pg_control_checkpoint()'), 't', 'the redo pointer was taken with images');
	my $whole = remember_files($edited);
	$edited->safe_psql('postgres', 'SELECT count(*) FROM hinted');
	crash($edited);
	cmp_ok(tear_pages($edited, $whole, sector => 512, only => qr/$hinted\z/)->{torn}, '>', 20, 'pages that only hints have changed are torn');
	($started, $log) = attempt($edited);
	is($started, 0, 'images ended before the start: no start with torn pages');
	like($log, qr/is torn, and no page repair source could give it.*\n.*"polar_page_repair_sources" is empty/, 'images ended before the start: torn pages are found');
}

# ---- A source that lies to a standby
my $flushed = $primary->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
my $garbage = q{array_fill(decode(repeat('01', 8192), 'hex'), ARRAY[cardinality($1)])};
my $lent = "lend('" . $primary->connstr('postgres') =~ s/'/''/gr . " user=page_repair', \$1, \$2, \$3, \$4, \$5)";
my $number = 0;
# Whose WAL is none, or is gone, is asked beside those who give none either: what one has given the next need not give
foreach my $lies (
	[
		[ 'another system', qr/^it belongs to another system/, system_identifier => 4711 ],
		[ 'a source without checksums', qr/^it has no data checksums/, data_checksums => 'false' ],
		[ 'a position that it has not flushed', qr/^its position makes no sense/, end_lsn => q{'F/0'}, flush_lsn => "'$flushed'", pages => $lent ],
		[ 'WAL that is none', qr/^it could not give WAL at/, pages => $lent, wal => q{array_fill(decode(repeat('01', 8192), 'hex'), ARRAY[cardinality($1)])} ],
		[ 'no WAL', qr/^it has removed WAL segment/, pages => $lent, wal => q{array_fill(NULL::bytea, ARRAY[cardinality($1)])} ],
		[ 'a timeline that nobody knows', qr/it is on timeline 7, whose history this server does not have/, timeline => 7 ]
	],
	[
		[ 'pages newer than it', qr/^block \d+ of relation \S+ has position/, end_lsn => "'$least'", pages => $lent ],
		[ 'damaged pages', qr/was damaged on its way/, pages => $garbage ],
		[ 'unreadable pages', qr/^it could not read block/ ]
	])
{
	my $name = 'told_' . ++$number;
	my @names = map { "liar_$_" } 1 .. @$lies;
	$lie->(map { my (undef, undef, %answer) = @{ $lies->[$_] }; [ $names[$_], start_lsn => "'$least'", end_lsn => "'$flushed'", in_recovery => 'false', wal => $lent, %answer ] } 0 .. $#$lies);
	my $victim = copy_instance($name, $standby->data_dir, "polar_page_repair_sources = '" . join(';', map { "$lying_source application_name=$_" } @names) . "'\n");
	my ($started, $log) = attempt($victim);
	is($started, 0, "$name: the standby does not start");
	my @reasons = reasons($log);
	is(scalar @reasons, scalar @$lies, "$name: it says why of each") or diag($log);
	like(shift @reasons // '', $_->[1], "$_->[0]: it says why") foreach @$lies;
	is(least_recovery_point($victim), $least, "$name: the minimum recovery point has not moved");
}
{
	$lie->(system_identifier => 4711);
	my $victim = copy_instance('told_truth', $standby->data_dir, streams_from($primary, 'told_truth') . "polar_page_repair_sources = '$lying_source;$own_source'\n");
	is((attempt($victim))[0], 1, 'a liar first, the primary second: the standby starts');
	$victim->stop('immediate');
}
# One that has lost the pages: whoever has them is believed, at once or later
foreach my $case ([ 'a source without files', 'NULL::bytea' ], [ 'a source of zeroes', q{decode(repeat('00', 8192), 'hex')} ])
{
	my ($what, $page) = @$case;
	$lie->(start_lsn => "'$least'", end_lsn => "'$flushed'", in_recovery => 'false', wal => $lent, pages => "array_fill($page, ARRAY[cardinality(\$1)])");
	my $name = 'lost_' . ++$number;
	my $victim = copy_instance($name, $standby->data_dir, streams_from($primary, $name) . "polar_page_repair_sources = '$lying_source;$own_source'\n");
	is((attempt($victim))[0], 1, "$what first: the standby starts");
	wait_for_replay($primary, $victim);
	is($victim->safe_psql('postgres', $query), $primary->safe_psql('postgres', $query), "$what first: it has the primary's contents");
	$victim->stop('immediate');

	$name = 'lost_' . ++$number;
	$victim = copy_instance($name, $standby->data_dir, streams_from($primary, $name) . "polar_page_repair_sources = '$lying_source'\n");
	my ($started, $log) = attempt($victim);
	is($started, 0, "$what alone: no start");
	like($log, qr/PANIC: .*WAL contains references to invalid pages/, "$what alone: replay does not believe it");
	$victim->append_conf('postgresql.conf', "polar_page_repair_sources = '$own_source'");
	is((attempt($victim))[0], 1, "$what alone: with a good one the standby starts");
	wait_for_replay($primary, $victim);
	is($victim->safe_psql('postgres', $query), $primary->safe_psql('postgres', $query), "$what alone: it has the primary's contents then");
	is(sound($victim), '', "$what alone: and is sound");
	$victim->stop('immediate');
}
$standby->append_conf('postgresql.conf', "polar_page_repair_sources = '$own_source'");
$standby->start;
wait_for_replay($primary, $standby);
is(sound($standby), '', 'the standby itself is repaired');

# The same for blocks that only hints have changed: replay does not ask for them, so nobody would notice
$primary->safe_psql('postgres', 'CREATE TABLE hinted AS SELECT g AS a, md5(g::text) AS b FROM generate_series(1, 20000) g; CHECKPOINT');
wait_for_replay($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
my $hinted = $primary->safe_psql('postgres', q{SELECT count(*) FROM hinted; SELECT pg_relation_filenode('hinted')}) =~ s/.*\n//sr;
# What is written after the hints makes them count
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1');
wait_for_replay($primary, $standby);
$flushed = $primary->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
crash($standby);
$lie->(start_lsn => "'$flushed'", end_lsn => "'$flushed'", in_recovery => 'false',
	pages => "(SELECT array_agg(CASE WHEN r <> $hinted THEN p END ORDER BY i) FROM unnest(\$3, $lent) WITH ORDINALITY u(r, p, i))");
{
	my $victim = copy_instance('hints', $standby->data_dir, "polar_page_repair_policy = always\npolar_page_repair_sources = '$lying_source'\n");
	my ($started, $log) = attempt($victim);
	is($started, 1, 'hints, a source without the file: the standby starts');
	cmp_ok($log =~ /page repair: (\d+) blocks named/ ? $1 : 0, '>', 300, 'hints, a source without the file: its blocks are asked for');
	is($victim->safe_psql('postgres', 'SELECT count(*) FROM hinted'), '20000', 'hints, a source without the file: no row is lost');
	$victim->stop('immediate');
}
$standby->start;

# ---- Crash recovery that cannot see all of its WAL, or sees more later
wait_for_replay($primary, $_) foreach $standby, $second;
$primary->safe_psql('postgres', 'CHECKPOINT');
my $before = remember_files($primary);
# Nothing of the next segment must reach this one, not even a snapshot of running transactions
my $bgwriter = $primary->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'});
kill 'STOP', $bgwriter;
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1; SELECT pg_switch_wal()');
wait_for_replay($primary, $second);
$second->stop;
kill 'CONT', $bgwriter;
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1');
my $truth = $primary->safe_psql('postgres', $query);
my $end = $primary->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
my $segment = $primary->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_lsn())');
wait_for_replay($primary, $standby);
crash($primary);
$torn = tear_pages($primary, $before, sector => 512);
cmp_ok($torn->{torn}, '>', 20, "the primary's pages are torn: $torn->{torn}");
$second->append_conf('postgresql.conf', "primary_conninfo = ''");
my ($victim, $started, $log, $offset);
foreach my $signal ('', 'standby.signal')
{
	my $what = $signal ? 'a former primary made a standby: ' : '';
	$victim = copy_instance($signal ? 'surprised_former' : 'surprised', $primary->data_dir,
		"polar_page_repair_timeout = 3min\npolar_page_repair_sources = '" . repair_source($second) . "'\n");
	append_to_file($victim->data_dir . "/$signal", '') if $signal;
	my $wal = $victim->data_dir . '/pg_wal';

	rename "$wal/$segment", "$wal/kept" or die "could not rename: $!";
	mkdir "$wal/$segment" or die "could not make a directory: $!";
	($started, $log) = attempt($victim);
	is($started, 0, "${what}WAL that cannot be read: no start");
	like($log, qr/FATAL: .*could not read WAL segment/, "${what}WAL that cannot be read: it is not taken for its end");
	rmdir "$wal/$segment" or die "could not remove a directory: $!";

	$offset = start_only($victim);
	wait_until(sub { slurp_file($victim->logfile, $offset) =~ /recovery waits for a page repair source|database system is shut down/ }, 'recovery to wait for a source');
	rename "$wal/kept", "$wal/$segment" or die "could not rename: $!";
	$second->start;
	wait_until(sub { slurp_file($victim->logfile, $offset) =~ /database system is shut down|ready to accept (read-only )?connections/ }, 'recovery to end');
	# Replay may first touch a torn page that was not looked at: its checksum ends recovery before the end of WAL does
	like(slurp_file($victim->logfile, $offset), qr/FATAL: .*(recovery came to \S+, but WAL was read ahead up to|invalid page in block)/,
		"${what}WAL that came when it had been read ahead: no start with pages that nobody has looked at");
	unlike(slurp_file($victim->logfile, $offset), qr/ready to accept/, "${what}WAL that came later: nobody was let in");
	$victim->_update_pid(-1);
	$victim->stop('immediate') if $victim->{_pid};
	$victim->start;
	is($victim->safe_psql('postgres', $query), $truth, "${what}the next start looks at all of it");
	is(sound($victim), '', "${what}and everything is sound");
	$victim->stop;
	$second->stop if !$signal;
}

# ---- A former primary, made a standby, is not given pages of the timeline that its successor is on
$victim = copy_instance('former', $primary->data_dir, "polar_page_repair_sources = '$lying_source'\nrecovery_target_timeline = latest\n");
append_to_file($victim->data_dir . '/standby.signal', '');
# The successor branched off in the middle of what this one has
my ($waldump) = run_command([ 'pg_waldump', '-p', $primary->data_dir . '/pg_wal', '-s', $before->{redo}, '-n', '200' ]);
my @positions = $waldump =~ m{lsn: ([0-9A-F]+/[0-9A-F]+)}g;
append_to_file($victim->data_dir . '/pg_wal/00000002.history', "1\t$positions[-1]\tno recovery target specified\n");
$lie->(timeline => 2, start_lsn => "'$end'", end_lsn => "'$end'");
($started, $log) = attempt($victim);
is($started, 0, 'a former primary: it does not start');
like($log, qr/refused: it is on timeline 2 at \S+, which is not in this server's history/, 'a former primary: pages of the new timeline are not put under its own WAL');

# ---- The timeline changes while a standby comes back
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'");
$primary->start;
$second->append_conf('postgresql.conf', streams_from($primary, 'second'));
$second->reload;
wait_for_replay($primary, $_) foreach $standby, $second;
$primary->safe_psql('postgres', 'CHECKPOINT');
wait_for_replay($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
$before = remember_files($standby);
# The WAL that names torn pages begins with a segment
$primary->safe_psql('postgres', q{SELECT pg_logical_emit_message(false, '', ''), pg_switch_wal()});
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1; VACUUM t');
$segment = $primary->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_lsn())');
wait_for_replay($primary, $_) foreach $standby, $second;
crash($standby);
$torn = tear_pages($standby, $before, sector => 512);
cmp_ok($torn->{torn}, '>', 20, "the standby's pages are torn again: $torn->{torn}");
$primary->stop('immediate');
$second->promote;
$second->safe_psql('postgres', 'UPDATE t SET b = b + 1');
my $new_source = "polar_page_repair_sources = '" . repair_source($second) . "'\n";
my $without = "primary_conninfo = ''\n";

# With all of its WAL, but without the history
$victim = copy_instance('without_history', $standby->data_dir, streams_from($second, 'without_history') . $new_source);
($started, $log) = attempt($victim);
is($started, 0, 'a timeline without its history: no start');
like($log, qr/it is on timeline 2, whose history this server does not have/, 'a timeline without its history: it says so');
like($log, qr/HINT: .*Copy "00000002.history"/, 'a timeline without its history: and what to do');
copy($second->data_dir . '/pg_wal/00000002.history', $victim->data_dir . '/pg_wal/00000002.history') or die "could not copy: $!";
system_or_bail('chmod', '0600', $victim->data_dir . '/pg_wal/00000002.history');
is((attempt($victim))[0], 1, 'a timeline without its history: with the file it starts');
wait_for_replay($second, $victim);
is($victim->safe_psql('postgres', $query), $second->safe_psql('postgres', $query), 'a timeline without its history: it has what the new primary has');
is(sound($victim), '', 'a timeline without its history: it is sound');
$victim->stop('immediate');

# The WAL it needs comes on the new timeline, while it recovers
my $archive = PostgreSQL::Test::Utils::tempdir('archive');
$victim = copy_instance('on_the_way', $standby->data_dir, "$without${new_source}restore_command = 'cp \"$archive/%f\" \"%p\"'\nwal_retrieve_retry_interval = 100ms\n");
foreach my $file (glob($victim->data_dir . '/pg_wal/0*'))
{
	my ($name) = $file =~ m{/([0-9A-F]{24})$} or next;
	unlink $file if $name ge $segment;
}
$offset = start_only($victim);
wait_until(sub { slurp_file($victim->logfile, $offset) =~ /waiting for WAL to become available|database system is shut down/ }, 'local WAL to be replayed');
$second->safe_psql('postgres', 'SELECT pg_switch_wal()');
foreach my $file (glob($second->data_dir . '/pg_wal/00000002*'))
{
	my ($name) = $file =~ m{/(00000002[0-9A-F]{16})$} or next;
	copy($file, "$archive/incoming") && rename("$archive/incoming", "$archive/$name") or die "could not copy: $!";
}
copy($second->data_dir . '/pg_wal/00000002.history', "$archive/incoming") && rename("$archive/incoming", "$archive/00000002.history") or die "could not copy: $!";
wait_until(sub { slurp_file($victim->logfile, $offset) =~ /new target timeline is 2|shut down/ }, 'the new timeline to be seen');
$victim->append_conf('postgresql.conf', streams_from($second, 'on_the_way'));
wait_until(sub { slurp_file($victim->logfile, $offset) =~ /page repair: \d+ blocks|database system is shut down/ }, 'pages to be repaired');
$victim->_update_pid(-1);
$victim->reload if $victim->{_pid};
wait_until(sub { slurp_file($victim->logfile, $offset) =~ /ready to accept read-only connections|database system is shut down/ }, 'the standby to be consistent');
$victim->_update_pid(-1);
ok($victim->{_pid}, 'a new timeline on the way: the standby comes up');
SKIP:
{
	skip 'it did not come up', 3 unless $victim->{_pid};
	cmp_ok($victim->safe_psql('postgres', 'SELECT repaired FROM polar_stat_page_repair'), '>', 20, 'a new timeline on the way: pages were repaired');
	wait_for_replay($second, $victim);
	is($victim->safe_psql('postgres', $query), $second->safe_psql('postgres', $query), 'a new timeline on the way: it has what the new primary has');
	is(sound($victim), '', 'a new timeline on the way: it is sound');
	$victim->stop('immediate');
}
$second->stop('immediate');
$other->stop('immediate');
done_testing();
