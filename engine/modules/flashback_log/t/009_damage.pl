# What is damaged in the log is found, and never taken for the end of it or for a page that was not kept.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback await_point checkpoint state continued);

my $node = new_flashback('node', "shared_buffers = 32MB\npolar_enable_fast_recovery_area = on\npolar_flashback_log_compression = off\n");
$node->safe_psql('postgres', q{
	CREATE TABLE t (a int, b text);
	INSERT INTO t SELECT g, repeat(md5(g::text), 3) FROM generate_series(1, 20000) g});
my $first = checkpoint($node);
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1; CHECKPOINT; UPDATE t SET a = a + 1; CHECKPOINT');
my $log = $node->data_dir . '/polar_flog';
ok($node->poll_query_until('postgres', q{SELECT count(*) > 2 AND bool_and(indexed) FROM (SELECT * FROM polar_flashback_log_verify() ORDER BY segment DESC OFFSET 1) s}),
	'closed segments are indexed');

# Bytes at a place of a file
my $spoil = sub {
	my ($file, $at, $bytes) = @_;
	open my $out, '+<:raw', $file or die "$file: $!";
	sysseek $out, $at, 0;
	syswrite $out, $bytes;
	close $out;
	return;
};
my @segments = sort grep { /^[0-9A-F]{16}$/ } slurp_dir($log);
my $images = "SELECT sum(images) FROM polar_flashback_log_get_images($first)";
my $all = $node->safe_psql('postgres', $images);
cmp_ok($all, '>', 300, 'there are images');

# An index is not needed
$spoil->("$log/$segments[0].idx", 100, 'XXXXXXXX');
is($node->safe_psql('postgres', $images), $all, 'a damaged index is not believed');
unlink "$log/$segments[1].idx";
ok($node->poll_query_until('postgres', "SELECT indexed FROM polar_flashback_log_verify() WHERE segment = '$segments[1]'"), 'a missing one is made again');
is($node->safe_psql('postgres', $images), $all, 'and right');

# A record
$spoil->("$log/$segments[0]", 300_000, 'XXXXXXXX');
is($node->safe_psql('postgres', 'SELECT array_agg(segment) FROM polar_flashback_log_verify() WHERE damage IS NOT NULL'), "{$segments[0]}", 'a damaged record is found');
my ($out, $err);
isnt($node->psql('postgres', $images, stderr => \$err), 0, 'without an index nothing is believed of its segment');
like($err, qr/the flashback log is damaged/, 'which is said');

# With the index, only the one page cannot be had
unlink "$log/$segments[0].idx";
my $state = state($node);
ok($node->poll_query_until('postgres', "SELECT min(number) > $first FROM polar_flashback_points"), 'when its index is to be made, the points that need it go');
is(state($node)->{ended}, $state->{ended} + 1, 'visibly');
like(state($node)->{why}, qr/a record of segment .* is damaged/, 'with the reason');

# The active segment, and one that ends in the middle of a record
checkpoint($node);
my $newest = checkpoint($node);
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1 WHERE a < 2000; CHECKPOINT');
$images =~ s/\d+\)$/$newest)/;
$all = $node->safe_psql('postgres', $images);
$state = state($node);
crash($node);
@segments = sort grep { /^[0-9A-F]{16}$/ } slurp_dir($log);
$node->start;
continued($node, $state, 'after a crash the window continues');
is($node->safe_psql('postgres', $images), $all, 'with all images');

# A segment that ended in order must have all its records, however often the server has been started since
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1 WHERE a < 2000');
$node->restart;
crash($node);
@segments = sort grep { /^[0-9A-F]{16}$/ } slurp_dir($log);
unlink "$log/$segments[-1].idx";
$spoil->("$log/$segments[-1]", 200, 'XXXXXXXX');
$node->start;
ok($node->poll_query_until('postgres', qq{SELECT last_end_reason ~ 'a record of segment $segments[-1] |a record of segment @{[ $segments[-1] =~ s/^0+//r ]} ' FROM polar_stat_flashback_log}),
	'what is missing in a segment that ended in order is damage, also after a crash');
await_point($node);

# A segment that is gone, or another one
foreach my $how ('removed', 'of another place')
{
	$node->safe_psql('postgres', 'UPDATE t SET a = a + 1; CHECKPOINT; UPDATE t SET a = a + 1; CHECKPOINT');
	$state = state($node);
	$node->stop;
	@segments = sort grep { /^[0-9A-F]{16}$/ } slurp_dir($log);
	my $victim = "$log/$segments[-2]";
	my $other = slurp_file("$log/$segments[-3]");
	unlink $victim;
	append_to_file($victim, $other) if $how ne 'removed';
	$node->start;
	await_point($node);
	my ($oldest) = split /,/, $state->{points};
	unlike(',' . state($node)->{points} . ',', qr/,$oldest,/, "a segment that is $how ends the points before it");
}

# Whatever the bytes of a segment or an index are, also with checksums that are right: an error, or what they say. FLOE_TEST_LONG=1
# makes a million mutations.
$node->safe_psql('postgres', q{CREATE FUNCTION flashback_log_fuzz(seed int, rounds int, OUT refused int8, OUT unpacked int8, OUT images int8, OUT damaged int8)
	AS 'flashback_log_fuzz' LANGUAGE C});
my $seed = $ENV{FLOE_TEST_SEED} // 1;
my $rounds = $ENV{FLOE_TEST_LONG} ? 1_000_000 : 100_000;
my ($refused, $unpacked, $read, $said) = split /\|/, $node->safe_psql('postgres', "SELECT * FROM flashback_log_fuzz($seed, $rounds)");
cmp_ok($refused, '>', $rounds / 20, "$refused mutated records were refused");
cmp_ok($unpacked, '>', $rounds / 20, "$unpacked gave a page");
cmp_ok($read, '>', $rounds / 100, "$read images were read from mutated files");
cmp_ok($said, '>', $rounds / 10_000, "$said files were said to be damaged");

done_testing();
