# One power failure tears primary and standby, and each waits for the other. A way out: the standby takes whole pages, and
# the WAL, from the primary's files, which nobody starts meanwhile; then the primary takes its pages from the standby. What is
# whole on neither side is named, and neither starts; a base backup that has been restored beside them gives it, or the files of
# another standby.
# FLOE_TEST_LONG=1 takes ten rounds of each way out instead of one.
use strict;
use warnings FATAL => 'all';
use Compress::Zlib ();
use File::Path qw(make_path remove_tree);
use POSIX qw(mkfifo);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Repair qw(attempt least_recovery_point new_repairable sound);
use Floe::Test::Standby qw(new_standby wait_for_replay);
use Floe::Test::Torn qw(remember_files forget_files tear_pages repair_source);
use Floe::Test::Wait qw(wait_until);

srand($ENV{FLOE_TEST_SEED} // 20);

my $rounds = $ENV{FLOE_TEST_LONG} ? 10 : 1;

my $missing = 0xFFFFFFFF;
my $query = 'SELECT count(*), sum(a), sum(b), md5(string_agg(c, NULL ORDER BY a)) FROM t';
my $primary = new_repairable('primary');
my $standby = new_standby($primary, 'standby');
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'\n");
$primary->reload;
$standby->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($primary) . "'\n");

# What an instance that is down says of itself: {header => text, blocks => [{key, number, path}]}, and its log
sub list_torn
{
	my ($cluster) = @_;
	$cluster->append_conf('postgresql.conf', 'polar_page_repair_list_only = on');
	my ($started, $log) = attempt($cluster);
	is($started, 0, $cluster->name . ': a list is made without a start');
	like($log, qr/torn pages have been listed in file "page_repair.torn": \d+/, $cluster->name . ': the log says so');
	$cluster->append_conf('postgresql.conf', 'polar_page_repair_list_only = off');
	return read_list($cluster);
}

sub read_list
{
	my ($cluster) = @_;
	my $text = slurp_file($cluster->data_dir . '/page_repair.torn');
	my ($header, $lines) = $text =~ /\A(.*?crc32: \S+\n)(.*)\z/s or die "not a list: $text";
	my @blocks = map { my @f = split / /; { key => [ @f[0 .. 4] ], number => $f[4], path => $f[5] } } split /\n/, $lines;
	return { header => $header, blocks => \@blocks };
}

sub value_of
{
	my ($list, $name) = @_;
	return $list->{header} =~ /^$name: (.*)$/m ? $1 : die "no $name in $list->{header}";
}

# The segment in which an instance's WAL ends
sub segment_of
{
	my ($list) = @_;
	my ($high, $low) = map { hex } split m{/}, value_of($list, 'end');
	return sprintf '%08X%08X%08X', 1, $high, $low / value_of($list, 'segment size');
}

# The header with other values, and a CRC that is right for them
sub header_with
{
	my ($list, %values) = @_;
	my ($text) = $list->{header} =~ /\A(.*)crc32/s;
	$text =~ s/^$_: .*$/$_: $values{$_}/m foreach keys %values;
	return $text . sprintf("crc32: %08X\n", Compress::Zlib::crc32($text));
}

# The page of a block from the files of an instance that is down; undef when it has no such block
sub page_of
{
	my ($cluster, $block) = @_;
	my $segment = int($block->{number} / 131072);
	my $path = $cluster->data_dir . "/$block->{path}" . ($segment ? ".$segment" : '');
	open my $in, '<:raw', $path or return undef;
	seek $in, ($block->{number} % 131072) * 8192, 0 or die "seek: $!";
	read $in, my $page, 8192;
	close $in;
	return length($page // '') == 8192 ? $page : undef;
}

sub record
{
	my ($block, $page) = @_;
	my $text = pack('N6', @{ $block->{key} }, defined $page ? 8192 : $missing) . ($page // "\0" x 8192);
	return $text . pack('N', Compress::Zlib::crc32($text));
}

# The directory of copies. What does not verify may be in it: the standby looks at each.
sub bring_copies
{
	my ($target, $origin, $list, $header, %options) = @_;
	my $directory = $target->data_dir . '/page_repair.copies';
	remove_tree($directory);
	make_path("$directory/wal");
	foreach my $path (grep { m{/[0-9A-F]{24}$} } glob($origin->data_dir . '/pg_wal/*'))
	{
		my ($name) = $path =~ m{([^/]+)$};
		# Nobody writes it before the directory is gone
		link($path, "$directory/wal/$name") or die "link: $!" unless grep { $_ eq $name } @{ $options{without_wal} // [] };
	}
	open my $out, '>:raw', "$directory/pages" or die "pages: $!";
	foreach my $block (@{ $list->{blocks} })
	{
		my $giver = $options{other} && $options{torn}{"@{$block->{key}}"} ? $options{other} : $origin;
		my $record = record($block, page_of($giver, $block));
		$record = $options{edit}->($record) if $options{edit};
		print $out $record;
	}
	close $out or die "pages: $!";
	append_to_file("$directory/origin", $header);
	return;
}

# Checkpoint of both, then more on the primary, which the standby writes as well and nobody syncs; both end at once and are
# torn. The standby starts recovery further back than the primary does. So does another standby, but not as far.
sub tear_both
{
	my (%options) = @_;
	wait_for_replay($primary, $standby);
	$primary->safe_psql('postgres', 'CHECKPOINT');
	wait_for_replay($primary, $standby);
	$standby->safe_psql('postgres', 'CHECKPOINT');
	my $before_standby = remember_files($standby);
	$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1 WHERE a % 3 = 0; VACUUM t; CHECKPOINT');
	my @other = $options{other} ? $options{other} : ();
	my $before_other;
	foreach (@other)
	{
		wait_for_replay($primary, $_);
		$_->safe_psql('postgres', 'CHECKPOINT');
		$before_other = remember_files($_);
		$primary->safe_psql('postgres', 'CHECKPOINT');
	}
	my $before = remember_files($primary);
	$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1; VACUUM t');
	wait_for_replay($primary, $_) foreach $standby, @other;
	foreach ($standby, @other)
	{
		$_->append_conf('postgresql.conf', "primary_conninfo = ''\n");
		$_->reload;
	}
	wait_until(sub { $primary->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_replication') == 0 }, 'the standby to stream no more');
	$primary->safe_psql('postgres', 'SELECT pg_switch_wal(); UPDATE t SET b = b + 1 WHERE a % 7 = 0; SELECT pg_switch_wal(); UPDATE t SET b = b + 1 WHERE a % 11 = 0');
	my $truth = $primary->safe_psql('postgres', $query);
	crash($_) foreach $primary, $standby, @other;
	my $torn = tear_pages($primary, $before, sector => 512, share => 0.3, only => $options{primary});
	cmp_ok($torn->{torn}, '>', 5, "the primary's pages are torn: $torn->{torn}");
	$torn = tear_pages($standby, $before_standby, sector => 512, share => 0.3, only => $options{standby});
	cmp_ok($torn->{torn}, '>', 5, "the standby's pages are torn: $torn->{torn}");
	foreach (@other)
	{
		$torn = tear_pages($_, $before_other, sector => 512, share => 0.3, only => $options{of_other});
		cmp_ok($torn->{torn}, '>', 5, "the other standby's pages are torn: $torn->{torn}");
		forget_files($before_other);
	}
	forget_files($before);
	forget_files($before_standby);
	return $truth;
}

my ($heap, $index) = map { $primary->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") } 't', 't_pkey';
my $truth = tear_both(primary => qr/^\Q$heap\E$/, standby => qr/^(?!\Q$heap\E(?:_|$))/);

# ---- Each alone does not start, and says what it needs
foreach my $cluster ($primary, $standby)
{
	my ($started, $log) = attempt($cluster);
	is($started, 0, $cluster->name . ' does not start alone');
	like($log, qr/is torn, and no page repair source could give it/, $cluster->name . ': why');
	like($log, qr/DETAIL: .*File "page_repair.torn" lists all blocks/, $cluster->name . ': the blocks are listed');
	unlike($log, qr/HINT: .*(?:restore a backup|base backup)/, $cluster->name . ': nobody is told to throw anything away');
}

# ---- That it cannot be written does not hide what it would have said
{
	my $in_the_way = $standby->data_dir . '/page_repair.torn.tmp';
	mkdir $in_the_way or die "mkdir: $!";
	my ($started, $log) = attempt($standby);
	is($started, 0, 'no place for the list: no start');
	like($log, qr/could not create file "page_repair.torn.tmp"/, 'no place for the list: the log says so');
	like($log, qr/FATAL: .*is torn, and no page repair source could give it.*\d+ blocks are still to be replaced/s, 'no place for the list: and why there is no start');
	rmdir $in_the_way or die "rmdir: $!";
}
my $of_primary = list_torn($primary);
my $of_standby = list_torn($standby);
cmp_ok(scalar @{ $of_primary->{blocks} }, '>', 5, 'what is torn on the primary is listed');
is(scalar(grep { $_->{path} ne $heap } @{ $of_primary->{blocks} }), 0, 'and nothing else');
is(scalar(grep { $_->{path} eq $heap } @{ $of_standby->{blocks} }), 0, 'another part is torn on the standby');
is(value_of($of_primary, 'role') . value_of($of_standby, 'role'), 'primarystandby', 'the lists say of whom they are');
isnt(value_of($of_primary, 'redo'), value_of($of_standby, 'redo'), 'the standby starts further back');

# ---- What is not proven is refused, and nothing is written
my $least = least_recovery_point($standby);
my $header = $of_primary->{header};
my ($from, $last) = map { segment_of($_) } $of_standby, $of_primary;
my ($segment) = sort grep { $_ ge $from && $_ le $last && !-e $standby->data_dir . "/pg_wal/$_" } map { m{([0-9A-F]{24})$} ? $1 : () } glob($primary->data_dir . '/pg_wal/*');
ok($segment, 'the standby lacks a segment of WAL');
bring_copies($standby, $primary, $of_standby, $header, without_wal => [$segment]);
my ($started, $log) = attempt($standby);
is($started, 0, 'a segment that is not brought: refused');
like($log, qr/it has removed WAL segment $segment/, 'a segment that is not brought: the log names it');
like($log, qr{HINT: .*"page_repair.copies/wal"}, 'a segment that is not brought: and says where to bring it');
is(least_recovery_point($standby), $least, 'a segment that is not brought: the minimum recovery point has not moved');
is_deeply(read_list($standby)->{blocks}, $of_standby->{blocks}, 'a segment that is not brought: no page was touched');

# A file of the directory that is none
sub refuse_odd
{
	my ($name, $what, $why) = @_;
	bring_copies($standby, $primary, $of_standby, $header);
	my $path = $standby->data_dir . "/page_repair.copies/$name";
	rename $path, "$path.real" or die "rename: $!";
	($what eq 'pipe' ? mkfifo($path, 0600) : symlink("$path.real", $path)) or die "$what: $!";
	my ($started, $log) = attempt($standby);
	is($started, 0, "$name is a $what: refused");
	like($log, $why, "$name is a $what: the log says why");
	return;
}
refuse_odd("wal/$segment", 'pipe', qr/it could not give WAL at/);
my $high = 'FFFF/FFFFFF00';
my @refused = (
	[ 'another system', header_with($of_primary, 'system identifier' => 1), qr/it belongs to another system, 1/ ],
	[ 'changes that are missing', header_with($of_primary, redo => '0/1'), qr/it has all changes up to 0\/1 only, recovery starts at/ ],
	[ 'WAL that is missing', header_with($of_primary, end => $high), qr/is refused: / ],
	[ 'a header that is damaged', $header =~ s/timeline: 1/timeline: 2/r, qr/its file "origin" is damaged/ ],
	[ 'another timeline', header_with($of_primary, timeline => 2), qr/timeline 2/ ],
	[ 'copies of a standby', header_with($of_primary, role => 'standby'), qr/it is not of a primary/ ],
	[ 'positions that make no sense', header_with($of_primary, redo => value_of($of_primary, 'end'), end => value_of($of_primary, 'redo')), qr/its position makes no sense/ ],
	[ 'a release to come', header_with($of_primary, version => 2), qr/of another release/ ]);
foreach my $case (@refused)
{
	my ($what, $with, $why) = @$case;
	bring_copies($standby, $primary, $of_standby, $with);
	($started, $log) = attempt($standby);
	is($started, 0, "$what: refused");
	like($log, $why, "$what: the log says why");
	is(least_recovery_point($standby), $least, "$what: the minimum recovery point has not moved");
}
my @edits = (
	[ 'pages that were changed on the way', sub { my ($r) = @_; substr($r, 4000, 1) ^= "\1"; return $r } ],
	[ 'pages that do not verify', sub { my ($r) = @_; substr($r, 24 + 4000, 1) ^= "\1"; my $t = substr($r, 0, -4); return $t . pack('N', Compress::Zlib::crc32($t)) } ],
	[ 'pages of zeroes', sub { my ($r) = @_; my $t = substr($r, 0, 24) . "\0" x 8192; return $t . pack('N', Compress::Zlib::crc32($t)) } ],
	[ 'blocks that no record removes', sub { my ($r) = @_; my $t = substr($r, 0, 20) . pack('N', $missing) . "\0" x 8192; return $t . pack('N', Compress::Zlib::crc32($t)) } ]);
foreach my $case (@edits)
{
	my ($what, $edit) = @$case;
	bring_copies($standby, $primary, $of_standby, $header, edit => $edit);
	($started, $log) = attempt($standby);
	is($started, 0, "$what: refused");
	like($log, qr/is torn, and no page repair source could give it/, "$what: the torn page is named");
	is_deeply(read_list($standby)->{blocks}, $of_standby->{blocks}, "$what: all are torn as before");
}
bring_copies($standby, $primary, $of_standby, $header);
truncate $standby->data_dir . '/page_repair.copies/pages', 12345 or die "truncate: $!";
($started, $log) = attempt($standby);
is($started, 0, 'a file that was cut: refused');
like($log, qr/its file "pages" is not complete/, 'a file that was cut: the log says why');

# ---- Nothing but plain files is read, or waited for
refuse_odd('origin', 'pipe', qr/its file "origin" cannot be read/);
refuse_odd('pages', 'pipe', qr/its file "pages" cannot be opened/);
refuse_odd('pages', 'link', qr/its file "pages" cannot be opened/);

# ---- With what the primary has, the standby is whole and consistent alone; then it gives the primary its pages
sub both_come_up
{
	my ($what) = @_;
	($started, $log) = attempt($standby);
	is($started, 1, "$what: the standby starts without its primary") or diag($log);
	like($log, qr/taken from source "page_repair.copies"/, "$what: pages came from the directory");
	ok(!-e $standby->data_dir . '/page_repair.torn', "$what: the list is gone");
	# a standby that has just started may answer slowly on a busy machine
	$primary->append_conf('postgresql.conf', 'polar_page_repair_timeout = 60s');
	($started, $log) = attempt($primary);
	is($started, 1, "$what: the primary starts with the standby's pages") or diag($log);
	$primary->append_conf('postgresql.conf', 'polar_page_repair_timeout = 2s');
	is($primary->safe_psql('postgres', $query), $truth, "$what: the primary has all that was committed");
	is(sound($primary), '', "$what: heap and index are sound");
	remove_tree($standby->data_dir . '/page_repair.copies');
	$standby->append_conf('postgresql.conf', "primary_conninfo = '" . $primary->connstr =~ s/'/''/gr . " application_name=standby'\n");
	$standby->reload;
	wait_for_replay($primary, $standby);
	is($standby->safe_psql('postgres', $query), $truth, "$what: so has the standby");
	is(sound($standby), '', "$what: and they are sound there");
	return;
}
bring_copies($standby, $primary, $of_standby, $header);
both_come_up('disjoint');

# The same from the beginning, of the standby these files
sub tear_both_and_come_up
{
	my ($what, $torn) = @_;
	$truth = tear_both(primary => qr/^\Q$heap\E$/, standby => $torn);
	$of_primary = list_torn($primary);
	$of_standby = list_torn($standby);
	bring_copies($standby, $primary, $of_standby, $of_primary->{header});
	both_come_up($what);
	return;
}
tear_both_and_come_up("disjoint, round $_", qr/^(?!\Q$heap\E(?:_|$))/) foreach 2 .. $rounds;

# ---- The policy that believes no checksum: there is nobody else to ask
$standby->append_conf('postgresql.conf', 'polar_page_repair_policy = always');
$standby->reload;
tear_both_and_come_up("always, round $_", qr/^\Q$index\E$/) foreach 1 .. $rounds;
$standby->append_conf('postgresql.conf', 'polar_page_repair_policy = checksum');
$standby->reload;

# ---- The same pages torn on both: they are named, and nobody starts
$primary->backup('kept');
$truth = tear_both(primary => qr/^\Q$heap\E$/, standby => qr/^\Q$heap\E$/);
$of_primary = list_torn($primary);
$of_standby = list_torn($standby);
my %torn = map { ("@{$_->{key}}" => 1) } @{ $of_primary->{blocks} };
my @lost = grep { $torn{"@{$_->{key}}"} } @{ $of_standby->{blocks} };
cmp_ok(scalar @lost, '>', 0, 'some pages are whole on neither side: ' . scalar @lost);
cmp_ok(scalar @lost, '<', scalar @{ $of_standby->{blocks} }, 'and others are');
bring_copies($standby, $primary, $of_standby, $of_primary->{header});
($started, $log) = attempt($standby);
is($started, 0, 'whole on neither side: the standby does not start');
like($log, qr/it has no whole copy of block|was damaged on its way/, 'whole on neither side: the log says why');
my %left = map { ("@{$_->{key}}" => 1) } @{ read_list($standby)->{blocks} };
is(scalar(grep { !$left{"@{$_->{key}}"} } @lost), 0, 'whole on neither side: each is named in the list');
is(scalar(keys %left), scalar @lost, 'whole on neither side: and nothing else');
my ($number) = map { $_->{number} } @lost;
like(slurp_file($standby->data_dir . '/page_repair.torn'), qr/ $number \Q$heap\E$/m, 'whole on neither side: by file and block');
($started, $log) = attempt($primary);
is($started, 0, 'whole on neither side: nor does the primary');

# ---- What is whole nowhere comes from a base backup that replays the primary's WAL: it is a source like any other, and loses nothing
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($primary, 'kept');
$restored->append_conf('postgresql.conf', "polar_page_repair_sources = ''\nrestore_command = 'cp \"" . $primary->data_dir . "/pg_wal/%f\" \"%p\"'\n");
$restored->set_standby_mode;
$restored->start;
my $redo = value_of($of_primary, 'redo');
$restored->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$redo'") or die 'the restored backup does not get to the redo location';
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($restored) . "'\npolar_page_repair_timeout = 60s\n");
($started, $log) = attempt($primary);
is($started, 1, 'a restored backup: the primary starts with its pages') or diag($log);
is($log =~ /(\d+) taken from sources/ && $1, scalar @{ $of_primary->{blocks} }, 'a restored backup: it gives all that is torn, and nothing else');
is($primary->safe_psql('postgres', $query), $truth, 'a restored backup: the primary has all that was committed');
is(sound($primary), '', 'a restored backup: heap and index are sound');
$restored->stop;
remove_tree($standby->data_dir . '/page_repair.copies');
$standby->append_conf('postgresql.conf', "polar_page_repair_timeout = 60s\nprimary_conninfo = '" . $primary->connstr =~ s/'/''/gr . " application_name=standby'\n");
($started, $log) = attempt($standby);
is($started, 1, "a restored backup: the standby starts with the primary's") or diag($log);
wait_for_replay($primary, $standby);
is($standby->safe_psql('postgres', $query), $truth, 'a restored backup: the standby has all that was committed');
is(sound($standby), '', 'a restored backup: heap and index are sound there');

# ---- What is torn on the primary and on one standby is whole on another one, which begins recovery later than that one: its
# pages have all changes from before it begins, and none that the standby will not replay
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($standby) . "'\n");
$primary->reload;
my $other_standby = new_standby($primary, 'other_standby');
$other_standby->append_conf('postgresql.conf', "polar_page_repair_sources = '" . repair_source($primary) . "'\n");
$other_standby->reload;
$truth = tear_both(primary => qr/^\Q$heap\E$/, standby => qr/^\Q$heap\E$/, other => $other_standby, of_other => qr/^\Q$index\E$/);
($of_primary, $of_standby) = map { list_torn($_) } $primary, $standby;
my $of_other = list_torn($other_standby);
my ($redo_standby, $redo_other, $redo_primary) = map { value_of($_, 'redo') } $of_standby, $of_other, $of_primary;
isnt($redo_other, $_, "the other standby begins at $redo_other, not at $_") foreach $redo_standby, $redo_primary;
%torn = map { ("@{$_->{key}}" => 1) } @{ $of_primary->{blocks} };
@lost = grep { $torn{"@{$_->{key}}"} } @{ $of_standby->{blocks} };
cmp_ok(scalar @lost, '>', 0, 'some pages are torn on the primary and on the standby: ' . scalar @lost);
cmp_ok(scalar @lost, '<', scalar @{ $of_standby->{blocks} }, 'and others are not');
is(scalar(grep { $_->{path} eq $heap } @{ $of_other->{blocks} }), 0, 'none of them on the other standby');
bring_copies($standby, $primary, $of_standby, $of_primary->{header}, other => $other_standby, torn => \%torn);
both_come_up('with pages of another standby');
$other_standby->append_conf('postgresql.conf', "polar_page_repair_timeout = 60s\nprimary_conninfo = '" . $primary->connstr =~ s/'/''/gr . " application_name=other_standby'\n");
($started, $log) = attempt($other_standby);
is($started, 1, 'the other standby starts after that') or diag($log);
wait_for_replay($primary, $other_standby);
is($other_standby->safe_psql('postgres', $query), $truth, 'and has all that was committed');
is(sound($other_standby), '', 'and is sound');

# ---- What is listed is never a start in disguise
my $other = new_repairable('other', '', 100);
$other->stop;
$other->append_conf('postgresql.conf', 'polar_page_repair_list_only = on');
($started, $log) = attempt($other);
is($started, 0, 'after a clean stop nothing is started to be listed');
like($log, qr/there are no torn pages to be listed/, 'and the log says so');
done_testing();
