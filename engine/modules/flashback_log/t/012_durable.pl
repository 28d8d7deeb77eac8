# What a restart relies on has been synced: the log when the server stops in order, or starts in sync mode after async mode, and
# the end of a window.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Disk qw(record_syncs);
use Floe::Test::Flashback qw(new_flashback checkpoint state continued);

my $syncs = record_syncs() or plan skip_all => 'no C compiler';
local $ENV{LD_PRELOAD} = $syncs->{library};
local $ENV{FLOE_SYNCS} = $syncs->{file};

my $node = new_flashback('node', "shared_buffers = 32MB\nfsync = on\npolar_enable_fast_recovery_area = on\npolar_flashback_log_compression = off\n");
my $log = $node->data_dir . '/polar_flog';
my $segments = sub { return sort grep { /^[0-9A-F]{16}$/ } slurp_dir($log); };
my $synced = sub { return join ' ', sort map { m{/polar_flog/([0-9A-F]{16})$} ? $1 : () } keys %{ { map { $_ => 1 } $syncs->{synced}->() } }; };
$node->safe_psql('postgres', q{CREATE TABLE t (a int, b text); INSERT INTO t SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 5000) g});
checkpoint($node);
$node->safe_psql('postgres', 'UPDATE t SET a = a + 1; CHECKPOINT') foreach 1 .. 3;
my @all = $segments->();
cmp_ok(scalar(@all), '>', 2, 'there are segments');

my $table = sub {
	$node->safe_psql('postgres', 'CREATE TABLE d (a int); INSERT INTO d VALUES (1)');
	my $number = $node->safe_psql('postgres', q{SELECT pg_relation_filenode('d')});
	checkpoint($node);
	$syncs->{synced}->();
	$node->safe_psql('postgres', 'DROP TABLE d');
	return $number;
};
my $kept = sub { my ($number) = @_; return join ' ', sort map { m{/pgsql_tmp_polar_recycle/\d+_${number}_\w+(\.\S+)$} ? $1 : m{/pgsql_tmp_polar_recycle$} ? 'area' : () } keys %{ { map { $_ => 1 } $syncs->{synced}->() } }; };
is($synced->(), '', 'async mode syncs none');
my $number = $table->();
is($kept->($number), '', 'nor the file of a deleted relation');
my $before = state($node);
$node->stop;
my @at_stop = $syncs->{synced}->();
foreach my $suffix ('0', 'kept')
{
	ok(scalar(grep { m{/pgsql_tmp_polar_recycle/\d+_${number}_\w+\.$suffix$} } @at_stop), "a stop in order does, $suffix");
}
$node->start;
$before = state($node);
$syncs->{synced}->();
$node->stop;
is($synced->(), join(' ', $segments->()), 'a stop in order syncs all');

$node->append_conf('postgresql.conf', 'polar_flashback_log_mode = sync');
@all = $segments->();
$node->start;
my %synced = map { $_ => 1 } split / /, $synced->();
is(join(' ', grep { $synced{$_} } @all), join(' ', @all), 'so does a start in sync mode');
continued($node, $before, 'in one window');
$number = $table->();
like($kept->($number), qr/^\.0 \.kept\.new area/, 'in sync mode the file of a deleted relation is synced before it goes');

$node->stop;
$syncs->{synced}->();
$node->append_conf('postgresql.conf', 'polar_enable_flashback_log = off');
$node->start;
ok(scalar(grep { m{/polar_flog$} } $syncs->{synced}->()), 'a server without the log makes sure that its state file is gone');
$node->stop;

done_testing();
