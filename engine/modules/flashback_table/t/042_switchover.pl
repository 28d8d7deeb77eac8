# After a planned switchover the new primary answers from its own window: for moments of before it, too.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback await_point checkpoint);

my $first = new_flashback('first', "polar_enable_fast_recovery_area = on\n");
$first->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE TABLE t (id int PRIMARY KEY, v text);
	ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
	INSERT INTO t SELECT g, CASE WHEN g % 100 = 0 THEN repeat(md5(g::text), 100) ELSE md5(g::text) END FROM generate_series(1, 5000) g});
my $too_early = $first->safe_psql('postgres', 'SELECT clock_timestamp()');
$first->backup('b');
my $second = PostgreSQL::Test::Cluster->new('second');
$second->init_from_backup($first, 'b', has_streaming => 1);
$second->start;
checkpoint($first);
$first->wait_for_catchup($second);
$second->safe_psql('postgres', 'CHECKPOINT');
await_point($second);

my $digest = 'SELECT count(*), md5(string_agg(r::text, chr(10) ORDER BY id))';
my @known;

sub note_moment
{
	my ($node, $change) = @_;
	$node->safe_psql('postgres', $change);
	push @known, [ $node->safe_psql('postgres', 'SELECT clock_timestamp()'), $node->safe_psql('postgres', "$digest FROM t r"), $change ];
	return;
}
sub oldest { my ($node) = @_; return $node->safe_psql('postgres', 'SELECT oldest_time FROM polar_stat_flashback_log') }

note_moment($first, $_) for 'UPDATE t SET v = upper(v) WHERE id % 3 = 0', 'DELETE FROM t WHERE id % 4 = 0', 'VACUUM t', q{UPDATE t SET v = repeat(v, 200) WHERE id % 7 = 0 AND length(v) < 50};
my $gone = $first->safe_psql('postgres', 'SELECT clock_timestamp()');
my $was = $first->safe_psql('postgres', "$digest FROM t r");
$first->safe_psql('postgres', 'DELETE FROM t WHERE id <= 1000; UPDATE t SET v = NULL WHERE id BETWEEN 2000 AND 2100');

# The rows are gone, and then the primary changes
$first->wait_for_catchup($second);
$first->stop('fast');
$second->promote;
$first->set_standby_mode;
$first->enable_streaming($second);
$first->append_conf('postgresql.conf', "recovery_target_timeline = 'latest'");
$first->start;
note_moment($second, $_) for q{INSERT INTO t SELECT g, 'after' FROM generate_series(6001, 6100) g}, 'UPDATE t SET v = v || v WHERE id % 500 = 1', 'VACUUM (FREEZE) t';
$second->safe_psql('postgres', 'CHECKPOINT; DELETE FROM t WHERE id > 6050');

for my $known (@known)
{
	my ($moment, $is, $change) = @$known;
	is($second->safe_psql('postgres', "$digest FROM polar_flashback_rows(NULL::t, '$moment') r"), $is, "after $change");
}
isnt(oldest($second), '', 'the new primary says where its own window begins');
cmp_ok($second->safe_psql('postgres', "SELECT oldest_time < '$gone' FROM polar_stat_flashback_log"), 'eq', 't', 'which is before the switchover');

# All that a person does about lost rows, on the new primary, about rows that the old one lost
is($second->safe_psql('postgres', "SELECT kind, rows FROM polar_flashback_compare('t', '$gone', samples => 0) WHERE kind = 'removed'"), 'removed|750', 'rows that were lost before it are found');
my $result = $second->safe_psql('postgres', "SELECT result FROM polar_flashback_table('t', '$gone')");
is($second->safe_psql('postgres', "$digest FROM $result r"), $was, 'and are in a table');
$second->safe_psql('postgres', "SELECT polar_flashback_merge('$result', 't', true, true, true)");
is($second->safe_psql('postgres', "$digest FROM t r"), $was, 'and merged');

# Its window, not that of the old one
my $err;
$second->psql('postgres', "SELECT polar_flashback_count('t', '$too_early')", stderr => \$err);
like($err, qr/ERROR:  .*window|ERROR:  .*oldest/s, 'what only the old primary could tell is refused');

# The old one goes on as a standby, with a window of its own
$second->wait_for_catchup($first);
my ($moment, $is) = @{ $known[-1] };
my ($out, $status);
$status = $first->psql('postgres', "$digest FROM polar_flashback_rows(NULL::t, '$moment') r", stdout => \$out, stderr => \$err);
ok(($status == 0 && $out eq $is) || $err =~ /window|not been replayed|oldest/, 'the old primary gives the same rows, or says that it cannot') or diag("$out $err");
$first->stop;
$second->stop;
done_testing();
