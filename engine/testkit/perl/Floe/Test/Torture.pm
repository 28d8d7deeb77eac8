
=pod

=head1 NAME

Floe::Test::Torture - load of many kinds, a crash at a random moment, torn pages, and everything checked

=head1 SYNOPSIS

  use Floe::Test::Torture qw(prepare_load run_until_crash check_everything);

  prepare_load($primary);
  my $round = run_until_crash($primary, crash => $primary, seconds => 3);
  tear_pages($primary, $round->{before});
  $primary->start;
  my @faults = check_everything($primary, $round);

=head1 DESCRIPTION

The load: TPC-B with pgbench, inserts into a table with an index of each access method (splits), deletes from it,
updates of values that lie in TOAST, VACUUM, index builds, truncation, drops, prepared transactions. The indexes' pages are
evicted now and then, so that they are written, not synced, before the crash. A ledger runs beside it: a
session inserts 1, 2, 3, … each in a transaction of its own, and prints the number when the commit has been
confirmed. Whatever it has printed must be there afterwards.

=cut

package Floe::Test::Torture;

use strict;
use warnings FATAL => 'all';
use Carp;
use Exporter 'import';
use File::Path qw(remove_tree);
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Floe::Test::Crash qw(crash);
use Floe::Test::Torn qw(remember_files);
use Floe::Test::Wait qw(wait_until);
use Time::HiRes qw(time);

our @EXPORT_OK = qw(prepare_load run_until_crash check_everything index_files);

=pod

=over

=item prepare_load(cluster)

Creates the tables in database postgres, anew if they are there; the cluster must be running.

=cut

sub prepare_load
{
	my ($cluster) = @_;
	_settle($cluster);
	$cluster->safe_psql('postgres', 'DROP TABLE IF EXISTS ledger, split, long, shrinking, two_phase, passing');
	$cluster->command_ok([ 'pgbench', '--initialize', '--quiet', '--scale', '2', '--foreign-keys', 'postgres' ], 'pgbench has its tables');
	$cluster->safe_psql('postgres', q{
		CREATE TABLE ledger (n int PRIMARY KEY, filler text);
		CREATE EXTENSION IF NOT EXISTS pg_buffercache;
		CREATE TABLE split (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), n bigint GENERATED ALWAYS AS IDENTITY, a int, b text);
		-- No two can answer the same question
		CREATE INDEX split_btree ON split (a);
		CREATE INDEX split_hash ON split USING hash (lower(b));
		CREATE INDEX split_gin_words ON split USING gin (to_tsvector('simple', b)) WITH (gin_pending_list_limit = 64);
		CREATE INDEX split_gin_lists ON split USING gin ((ARRAY[a % 10])) WITH (gin_pending_list_limit = 64);
		CREATE INDEX split_gist ON split USING gist (int4range(a, a, '[]'));
		CREATE INDEX split_brin ON split USING brin (n) WITH (pages_per_range = 1, autosummarize = on);
		CREATE TABLE long (id int PRIMARY KEY, total int, value text);
		ALTER TABLE long ALTER value SET STORAGE EXTERNAL;
		INSERT INTO long SELECT g, 0, repeat(md5(g::text), 200) FROM generate_series(1, 300) g;
		CREATE TABLE shrinking (a int, b text);
		CREATE TABLE two_phase (id int PRIMARY KEY, side int, amount int);
		INSERT INTO two_phase SELECT g, g % 2, 1000 FROM generate_series(1, 100) g});
	return;
}

=pod

=item index_files(cluster)

The files of the indexes of the table that has one of each access method, as {path in the data directory => access method}.

=cut

sub index_files
{
	my ($cluster) = @_;
	return { map { split /\|/ } split /\n/, $cluster->safe_psql('postgres', q{
		SELECT pg_relation_filepath(c.oid), a.amname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
		WHERE i.indrelid = 'split'::regclass}) };
}

my %scripts = (
	split => q{
INSERT INTO split (a, b) SELECT (random() * 1000000)::int, md5(random()::text) FROM generate_series(1, 20);
},
	long => q{
\set id random(1, 300)
BEGIN;
UPDATE long SET value = repeat(md5((:id + total)::text), 150 + total % 100), total = total + 1 WHERE id = :id;
COMMIT;
},
	maintain => q{
VACUUM long;
CREATE INDEX CONCURRENTLY IF NOT EXISTS split_b2 ON split (b, a);
INSERT INTO shrinking SELECT g, repeat('s', 300) FROM generate_series(1, 2000) g;
DELETE FROM shrinking WHERE a > 100;
VACUUM shrinking;
DROP INDEX IF EXISTS split_b2;
DELETE FROM split WHERE n < (SELECT max(n) - 30000 FROM split);
VACUUM split;
CREATE TABLE passing AS SELECT * FROM two_phase, generate_series(1, 20);
CREATE INDEX ON passing (id);
DROP TABLE passing;
TRUNCATE shrinking;
VACUUM pgbench_branches;
VACUUM pgbench_accounts;
SELECT count(*) FROM split;
},
	evict => q{
SELECT pg_buffercache_evict_relation(oid) FROM pg_class WHERE relname ~ '^split_(pkey|btree|hash|gin|gist|brin)';
\sleep 100 ms
},
	two_phase => q{
\set one random(1, 50)
\set amount random(1, 10)
\set gid random(1, 1000000000)
BEGIN;
UPDATE two_phase SET amount = amount - :amount WHERE id = 2 * :one;
UPDATE two_phase SET amount = amount + :amount WHERE id = 2 * :one - 1;
PREPARE TRANSACTION 'torture_:gid';
COMMIT PREPARED 'torture_:gid';
},
);

sub _pgbench
{
	my ($cluster, $output, @options) = @_;
	return IPC::Run::start(
		[ 'pgbench', '--no-vacuum', '--host', $cluster->host, '--port', $cluster->port, @options, 'postgres' ],
		'<', '/dev/null', '>', $output, '2>', $output);
}

# What clients that were killed, or a crash, have left: sessions that wait, and prepared transactions that hold locks.
sub _settle
{
	my ($cluster) = @_;
	$cluster->safe_psql('postgres', q{
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND application_name = 'pgbench'});
	foreach my $gid (split /\n/, $cluster->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts'))
	{
		$cluster->safe_psql('postgres', "COMMIT PREPARED '$gid'");
	}
	return;
}

=pod

=item run_until_crash(cluster, crash => cluster, seconds => S [, each => code])

Checkpoints both, remembers the files of the instance that will crash, puts load on the cluster for a random
time up to S seconds, and crashes the other one under load; for a standby, load goes on until it is down.
Returns {before, acknowledged}: the files, and the last number that the ledger has confirmed.

=cut

sub run_until_crash
{
	my ($cluster, %options) = @_;
	my $victim = $options{crash};
	my $directory = PostgreSQL::Test::Utils::tempdir('load');

	_settle($cluster);
	# An interrupted concurrent build leaves an invalid index
	$cluster->safe_psql('postgres', 'DROP INDEX IF EXISTS split_b2; DROP TABLE IF EXISTS passing');
	my $last = $cluster->safe_psql('postgres', 'SELECT coalesce(max(n), 0) FROM ledger');
	$cluster->safe_psql('postgres', 'CHECKPOINT');
	if ($victim != $cluster)
	{
		$cluster->wait_for_replay_catchup($victim);
		$victim->safe_psql('postgres', 'CHECKPOINT');
	}
	my $before = remember_files($victim);

	my @runs = (_pgbench($cluster, "$directory/tpcb.out", '--client', '4', '--time', '600'));
	foreach my $name (sort keys %scripts)
	{
		open my $script, '>', "$directory/$name.sql" or croak $!;
		print $script $scripts{$name};
		close $script;
		push @runs, _pgbench($cluster, "$directory/$name.out", '--client', $name =~ /maintain|evict/ ? '1' : '2', '--time', '600',
			'--max-tries', '100', '--file', "$directory/$name.sql");
	}
	my $ledger = "$directory/ledger.out";
	open my $statements, '>', "$directory/ledger.sql" or croak $!;
	for (my $n = $last + 1; $n < $last + 200000; $n++)
	{
		print $statements "INSERT INTO ledger VALUES ($n, repeat('l', 100));\n\\echo $n\n";
	}
	close $statements;
	push @runs, IPC::Run::start(
		[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', $cluster->host, '-p', $cluster->port, '-d', 'postgres', '-f', "$directory/ledger.sql" ],
		'<', '/dev/null', '>', $ledger, '2>', "$directory/ledger.err");
	wait_until(sub { -s $ledger }, 'the load to begin');

	my $end = time + 0.5 + rand($options{seconds} // 2);
	wait_until(sub { $options{each}->() if $options{each}; time > $end }, 'the moment of the crash');
	crash($victim);

	# A primary's clients end by themselves; a standby's crash does not touch them
	foreach my $run (@runs)
	{
		if ($victim == $cluster)
		{
			eval { $run->finish };
		}
		else
		{
			eval { $run->kill_kill };
		}
	}
	_settle($cluster) if $victim != $cluster;
	my ($acknowledged) = slurp_file($ledger) =~ /(\d+)\n\z/;
	remove_tree($directory);
	return { before => $before, acknowledged => $acknowledged // $last };
}

=pod

=item check_everything(cluster, round)

Returns what is wrong, nothing if all is well: sums, ledger, amcheck of all heaps, B-trees and GIN indexes, and the rows that
each index of the table with one of each access method finds, key by key, which must be those of the heap.

=back

=cut

# What an index is asked for each key k, the key of a row, and the keys. Ranges and lists cover the whole index; of the single
# values it is one row in four, others in each round.
my $ranges = 'SELECT generate_series(0, 20)';
my $values = 'SELECT b FROM split WHERE n % 4 = %d';
my %by_index = (
	split_btree => [ 'a >= k * 50000 AND a < (k + 1) * 50000', 'a / 50000', $ranges ],
	split_gist => [ 'int4range(a, a, $$[]$$) && int4range(k * 50000, (k + 1) * 50000)', 'a / 50000', $ranges ],
	split_brin => [ 'n >= k * 1000 AND n < (k + 1) * 1000', 'n / 1000', 'SELECT generate_series(min(n) / 1000, max(n) / 1000) FROM split' ],
	split_gin_lists => [ 'ARRAY[a % 10] @> ARRAY[k]', 'a % 10', 'SELECT generate_series(0, 9)' ],
	split_gin_words => [ 'to_tsvector($$simple$$, b) @@ plainto_tsquery($$simple$$, k) AND b || $$$$ = k', 'b', $values ],
	split_hash => [ 'lower(b) = k', 'b', $values ]);

# What is wrong with the rows that the index finds
sub _check_index
{
	my ($cluster, $index, $round) = @_;
	my ($condition, $key, $keys) = @{ $by_index{$index} };
	my $residue = $round->{acknowledged} % 4;
	my $only = $keys eq $values ? "WHERE n % 4 = $residue" : '';
	$keys =~ s/%d/$residue/;
	my $sum = 'count(*) AS found, sum(hashtextextended(s::text, 0)) AS sum';
	my $result = q{SELECT count(*) || ' keys, ' || coalesce(sum(found), 0) || ' rows, ' || coalesce(md5(string_agg(k || ':' || found || ':' || sum, ',' ORDER BY k)), '-')};
	my %queries = (
		index => "WITH keys(k) AS MATERIALIZED ($keys) $result FROM keys, LATERAL (SELECT $sum FROM split s WHERE $condition) x WHERE found > 0",
		heap => "$result FROM (SELECT $key AS k, $sum FROM split s $only GROUP BY 1) x");
	# A bitmap needs a condition that the index can answer, so no other is read from end to end instead
	my %off = (index => 'enable_seqscan enable_indexscan enable_indexonlyscan', heap => 'enable_indexscan enable_indexonlyscan enable_bitmapscan');
	my %plan = (index => qr/Bitmap Index Scan on $index\b/, heap => qr/Seq Scan on split\b/);
	my %found;
	foreach my $by ('index', 'heap')
	{
		my ($out, $err);
		my $settings = join('', map { "SET $_ = off;" } split / /, $off{$by});
		my $status = $cluster->psql('postgres', "SET max_parallel_workers_per_gather = 0; $settings EXPLAIN (COSTS OFF) $queries{$by}; $queries{$by}",
			stdout => \$out, stderr => \$err);
		return "$index, by $by: $err" if $status != 0;
		return "$index, by $by, has another plan: $out" if $out !~ $plan{$by};
		($found{$by}) = $out =~ /^(\d+ keys, .*)\z/m;
	}
	return "$index finds $found{index}, the heap has $found{heap}" if $found{index} ne $found{heap};
	return;
}

sub check_everything
{
	my ($cluster, $round) = @_;
	my $standby = $cluster->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';

	_settle($cluster) unless $standby;
	my @checks = (
		'TPC-B sums' => q{SELECT (SELECT sum(abalance) FROM pgbench_accounts) = coalesce((SELECT sum(delta) FROM pgbench_history), 0)
			AND (SELECT sum(tbalance) FROM pgbench_tellers) = coalesce((SELECT sum(delta) FROM pgbench_history), 0)
			AND (SELECT sum(bbalance) FROM pgbench_branches) = coalesce((SELECT sum(delta) FROM pgbench_history), 0)},
		'ledger' => qq{SELECT max(n) >= $round->{acknowledged} AND count(*) = max(n) AND min(length(filler)) = 100 FROM ledger},
		'long values' => q{SELECT coalesce(bool_and(value = repeat(md5((id + greatest(total - 1, 0))::text), 150 + (total - 1) % 100)), true) FROM long WHERE total > 0},
		'long values never written' => q{SELECT coalesce(bool_and(value = repeat(md5(id::text), 200)), true) FROM long WHERE total = 0},
		'prepared transactions' => q{SELECT sum(amount) = 100000 FROM two_phase},
		'heaps' => q{SELECT count(*) = 0 FROM pg_class c, LATERAL verify_heapam(c.oid) WHERE relkind IN ('r', 'm', 't') AND relpersistence = 'p'},
		'B-trees' => $standby
		? q{SELECT count(bt_index_check(i.indexrelid, true)) > 0 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relam = 403 AND c.relpersistence = 'p' AND i.indisvalid}
		: q{SELECT count(bt_index_parent_check(i.indexrelid, true, true)) > 0 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relam = 403 AND c.relpersistence = 'p' AND i.indisvalid},
		'GIN' => q{SELECT count(gin_index_check(i.indexrelid)) > 0 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relam = 2742 AND i.indisvalid},
	);
	my @faults;
	while (my ($what, $sql) = splice(@checks, 0, 2))
	{
		my ($out, $err);
		# Index scans where there is a choice
		my $status = $cluster->psql('postgres', "SET enable_seqscan = off; $sql", stdout => \$out, stderr => \$err);
		push @faults, "$what: " . ($status == 0 ? $out : $err) unless $status == 0 && $out eq 't';
	}
	push @faults, map { _check_index($cluster, $_, $round) } sort keys %by_index;
	return @faults;
}

1;
