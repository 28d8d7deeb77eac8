# The window counts only for the data directory as the server left it: not for copies of a running one, restored backups, what
# another program or a server without the log has changed, or in async mode after a stop of the operating system.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback await_point checkpoint state continued configuration);

my $node = new_flashback('node', "shared_buffers = 32MB\n");
my $log = $node->data_dir . '/polar_flog';
$node->safe_psql('postgres', 'CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10000) g');
checkpoint($node);
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1');
checkpoint($node);

# What ends it
sub ends
{
	my ($why, $how, $act) = @_;
	$node->safe_psql('postgres', 'UPDATE t SET a = a + 1; CHECKPOINT; UPDATE t SET a = a + 1; CHECKPOINT');
	my $before = state($node);
	crash($node) if $how eq 'crash';
	$node->stop if $how eq 'stop';
	$act->();
	$node->start;
	await_point($node);
	my $now = state($node);
	ok($now->{ended} >= 1 && ",$now->{points}," !~ /,\Q$before->{points}\E,/, "the window ends: $why");
	like($now->{why}, qr/$why/, 'and the view says why');
	return;
}

# PostgreSQL's CRC-32C
sub crc32c
{
	my ($bytes) = @_;
	my $crc = 0xFFFFFFFF;
	foreach my $byte (unpack 'C*', $bytes)
	{
		$crc ^= $byte;
		$crc = $crc & 1 ? ($crc >> 1) ^ 0x82F63B78 : $crc >> 1 foreach 1 .. 8;
	}
	return $crc ^ 0xFFFFFFFF;
}

# Changes the state file in its place, with its checksum or without: at offsets, bytes
my $write = sub {
	my ($state, $right) = @_;
	substr($state, -4) = pack('V', crc32c(substr($state, 0, -4))) if $right;
	open my $out, '+<:raw', "$log/state" or die $!;
	truncate $out, 0 or die $!;
	print $out $state;
	close $out or die $!;
	return;
};
my $patch = sub {
	my ($right, %bytes) = @_;
	my $state = slurp_file("$log/state");
	substr($state, $_, length $bytes{$_}) = $bytes{$_} foreach keys %bytes;
	$write->($state, $right);
	return;
};
# Of FlashbackLogState, and in each of its identities
my ($boot_at, @identities_at) = (40, 432, 592);
my %at = (device => 0, inode => 8, born => 16, handle_length => 28, handle => 32);
my @other_run = ($boot_at => '00000000-0000-0000-0000-000000000000');
my $identity = sub { my ($what, $value, @which) = @_; return map { $_ + $at{$what} => $value } @which ? @which : @identities_at };
my @other_device = $identity->('device', pack('Q<', 0xABCDEF));
ends('the state file is damaged', 'crash', sub { $patch->(0, @other_run) });
ends('the operating system stopped', 'crash', sub { $patch->(1, @other_run) });
ends('there is no state file', 'crash', sub { unlink "$log/state" });
ends('data checksums were switched', 'stop', sub {
	command_ok([ 'pg_checksums', '--disable', '-D', $node->data_dir ], 'checksums are switched off');
});
ends('the last checkpoint is not a point', 'stop', sub {
	command_ok([ 'pg_resetwal', '-f', '-D', $node->data_dir ], 'pg_resetwal');
});
ends('segments are missing', 'stop', sub { unlink glob("$log/0*") });

# A stop in order outlives the operating system
my $orderly = state($node);
$node->stop;
$patch->(1, @other_run);
$node->start;
continued($node, $orderly, 'after a stop in order the window continues in another run of the operating system');

# A server without the log in between
my $before = state($node);
$node->stop;
$node->append_conf('postgresql.conf', 'polar_enable_flashback_log = off');
$node->start;
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1; CHECKPOINT');
$node->append_conf('postgresql.conf', 'polar_enable_flashback_log = on');
$node->restart;
await_point($node);
isnt(state($node)->{points}, $before->{points}, 'a server without the log ends the window');

# A copy of a directory at rest is as good as the original; the copy of a running one is not
checkpoint($node);
$before = state($node);
$node->stop;
my $copy;
my $take = sub {
	my ($name) = @_;
	my $to = PostgreSQL::Test::Cluster->new($name);
	PostgreSQL::Test::RecursiveCopy::copypath($node->data_dir, $to->data_dir);
	chmod 0700, $to->data_dir;
	$to->append_conf('postgresql.conf', 'port = ' . $to->port);
	return $to;
};
$copy = $take->('at_rest');
$copy->start;
continued($copy, $before, 'a copy of a stopped instance has its window');
$copy->stop;
$node->start;
checkpoint($node);
crash($node);
$copy = $take->('running');
$copy->start;
await_point($copy);
like(state($copy)->{why}, qr/a copy of a running one/, 'a copy of one that runs has not');
$copy->stop;
$node->start;

# After the operating system was started again the device of the file system may have another number; the log is in its place all
# the same, if it is what it was by all that the file system tells. Sync mode: async mode ends there anyway.
$node->append_conf('postgresql.conf', "polar_flashback_log_mode = sync\n");
$node->restart;
sub continues
{
	my ($how, $act) = @_;
	$node->safe_psql('postgres', 'UPDATE t SET a = a + 1; CHECKPOINT; UPDATE t SET a = a + 1; CHECKPOINT');
	my $was = state($node);
	crash($node);
	$act->();
	$node->start;
	continued($node, $was, "the window continues: $how");
	return;
}
my $copied = 'the data directory is a copy of a running one';
my @nothing_known = ($identity->('born', pack('Q<', 0)), $identity->('handle_length', pack('V', 0)));
my ($born, $handle_length) = unpack "x$identities_at[0] x16 q< x4 V", slurp_file("$log/state");
note("born: $born, length of the handle: $handle_length");
continues('another run of the operating system', sub { $patch->(1, @other_run) });
continues('of which the file system tells no more than its device and inode', sub { $patch->(1, @other_run, @nothing_known) });
continues('as the version before wrote it', sub {
	my $state = slurp_file("$log/state");
	substr($state, 432, 320) = '';
	substr($state, 4, 4) = pack('V', 1);
	$write->($state, 1);
});
SKIP:
{
	skip 'this file system tells neither birth nor handle', 5 unless $born || $handle_length;
	continues('another run of the operating system, with another device', sub { $patch->(1, @other_run, @other_device) });
	ends($copied, 'crash', sub { $patch->(1, @other_device) });
	ends($copied, 'crash', sub { $patch->(1, @other_run, @other_device, @nothing_known) });
}
foreach my $which (@identities_at)
{
	ends($copied, 'crash', sub { $patch->(1, @other_run, $identity->('inode', pack('Q<', 12), $which)) });
	ends($copied, 'crash', sub { $patch->(1, @other_run, $identity->('born', pack('Q<', $born + 1), $which)) }) if $born;
	ends($copied, 'crash', sub { $patch->(1, @other_run, @other_device, $identity->('handle', 'XXXXXXXX', $which)) }) if $handle_length;
}
# Files that were put back, into the same directory
ends($copied, 'crash', sub {
	my $state = slurp_file("$log/state");
	append_to_file("$log/state.put_back", $state);
	rename "$log/state.put_back", "$log/state" or die $!;
});

# Base backups
$node->backup('backup');
is_deeply([ grep { !/^\.+$/ } slurp_dir($node->backup_dir . '/backup/polar_flog') ], [], 'a base backup has nothing of the log');
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($node, 'backup');
$restored->start;
await_point($restored);
is($restored->safe_psql('postgres', 'SELECT windows_ended FROM polar_stat_flashback_log'), 0, 'and begins a window of its own');
$restored->stop;

done_testing();
