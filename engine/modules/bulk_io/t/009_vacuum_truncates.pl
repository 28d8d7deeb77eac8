# VACUUM asks for the lock to truncate a table only where something can be cut off: not for pages that were added ahead of need, also
# when it skipped all others as all-visible, nor for pages that came or were filled since it looked; for emptied ones it does.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

if (($ENV{enable_injection_points} // '') ne 'yes')
{
	plan skip_all => 'Injection points not supported by this build';
}

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "autovacuum = off\nfull_page_writes = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION injection_points; CREATE EXTENSION pg_freespacemap');

# A table of one row a page, whose rows are all-visible, with never-used pages at its end; how many
sub new_table
{
	my ($rows) = @_;
	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (a int, b text STORAGE PLAIN);
		INSERT INTO t SELECT g, repeat('x', 7000) FROM generate_series(1, $rows) g;
		VACUUM t});
	my $unused = $node->safe_psql('postgres', "SELECT pg_relation_size('t') / 8192 - $rows");
	cmp_ok($unused, '>', 20, "$unused pages ahead of $rows");
	return $unused;
}

sub blocks { return $node->safe_psql('postgres', q{SELECT pg_relation_size('t') / 8192}); }

# A transaction that only has written the table keeps the lock from VACUUM, which says so.
my $refused = qr/stopping truncate due to conflicting lock request/;

foreach my $case ([ 'filled', 0 ], [ 'grown', 1 ])
{
	my ($what, $more) = @$case;
	my $unused = new_table(1450);
	my $vacuum = $node->background_psql('postgres');
	$vacuum->query_safe(q{SELECT injection_points_set_local(); SELECT injection_points_attach('bulk-io-heap-freeable', 'wait')});
	$vacuum->query_until(qr/begun/, "\\echo begun\nVACUUM (VERBOSE) t;\n\\echo ended\n");
	$node->wait_for_event('client backend', 'bulk-io-heap-freeable');
	my $writer = $node->background_psql('postgres');
	$writer->query_safe("BEGIN; INSERT INTO t SELECT g, repeat('y', 7000) FROM generate_series(1, $unused + $more) g");
	my $before = blocks();
	if ($more) { cmp_ok($before, '>', 1450 + $unused, 'the table has grown since VACUUM looked') }
	else { is($before, 1450 + $unused, 'the last page was filled since VACUUM looked') }
	$node->safe_psql('postgres', q{SELECT injection_points_wakeup('bulk-io-heap-freeable')});
	$vacuum->query_until(qr/ended/, "\n");
	unlike($vacuum->{stderr}, $refused, "$what: VACUUM does not ask for the lock");
	like($vacuum->{stderr}, qr/finished vacuuming/, "$what: and ends");
	$writer->query_safe('COMMIT');
	$vacuum->quit;
	$writer->quit;
	is(blocks(), $before, "$what: nothing was cut off");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 1450 + $unused + $more, "$what: all rows are there");
}

# Undisturbed: never-used pages alone are no reason, with emptied ones before or after them they are
my $unused = new_table(1450);
my (undef, $stderr);
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN; SELECT count(*) FROM t');
$node->psql('postgres', 'VACUUM (VERBOSE) t', stderr => \$stderr);
unlike($stderr, $refused, 'pages ahead of need: VACUUM does not ask for the lock');
$reader->query_safe('COMMIT');
is(blocks(), 1450 + $unused, 'and leaves them');
$node->safe_psql('postgres', 'DELETE FROM t WHERE a > 1350');
$reader->query_safe('BEGIN; LOCK TABLE t IN ACCESS SHARE MODE');
$node->psql('postgres', 'VACUUM (VERBOSE) t', stderr => \$stderr);
like($stderr, $refused, 'behind emptied pages: it asks');
$reader->query_safe('COMMIT');
$reader->quit;
$node->safe_psql('postgres', 'VACUUM t');
is(blocks(), 1350, 'and all go');
$node->stop;

done_testing();
