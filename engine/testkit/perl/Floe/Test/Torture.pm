
=pod

=head1 NAME

Floe::Test::Torture - load of many kinds, a crash at a random moment, torn pages, and everything checked

=head1 SYNOPSIS

  use Floe::Test::Torture qw(load_settings pool_for prepare_load run_until_crash started check_everything);

  my $primary = new_primary('primary', load_settings());
  prepare_load($primary);
  my $round = run_until_crash($primary, crash => $primary, seconds => 3, checkpoint => 1);
  tear_pages($primary, $round->{before});
  $primary->append_conf('postgresql.conf', pool_for(2));
  started($primary, 'crash 1', \%figures) or die;
  my @faults = check_everything($primary, $round);

=head1 DESCRIPTION

The load: TPC-B with pgbench, inserts into a table with an index of each access method (splits), deletes from it,
updates of values that lie in TOAST, VACUUM, index builds, truncation, drops, prepared transactions; COPY, CREATE TABLE AS and
VACUUM of more than their rings hold, so that their blocks leave in runs. The indexes' pages are
evicted now and then, so that they are written, not synced, before the crash. A ledger runs beside it: a
session inserts 1, 2, 3, … each in a transaction of its own, and prints the number when the commit has been
confirmed. Whatever it has printed must be there afterwards. FLOE_TORTURE_LOAD=full lets all of it run as fast as it can.

=cut

package Floe::Test::Torture;

use strict;
use warnings FATAL => 'all';
use Carp;
use Exporter 'import';
use File::Path qw(remove_tree);
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Torn qw(remember_files forget_files redo_pointer);
use Floe::Test::Wait qw(wait_until);
use Time::HiRes qw(time);

our @EXPORT_OK = qw(load_settings pool_for prepare_load run_until_crash started add_written runs_were_written written_figures check_everything index_files);

=pod

=over

=item load_settings()

The configuration that the load wants, with the pool of the first round. Processes are so few that each may pin 17 buffers of a pool
of 16 MB at once: 1 + shared_buffers / (all processes, 81) - 8 blocks are the longest run.

=cut

sub load_settings
{
	return q{
autovacuum_naptime = 1s
full_page_writes = off
polar_page_repair_timeout = 60s
max_prepared_transactions = 20
checkpoint_timeout = 1h
max_wal_size = 8GB
wal_keep_size = 2GB
wal_init_zero = off
log_statement = none
max_connections = 25
autovacuum_worker_slots = 3
max_wal_senders = 5
max_worker_processes = 8
} . pool_for(1);
}

=pod

=item pool_for(round)

A line of configuration. The pool is always smaller than the tables, so that pages are written soon; in two rounds of three it is
large enough for runs of blocks, in the third each is written by itself.

=cut

sub pool_for
{
	my ($round) = @_;
	return 'shared_buffers = ' . ($round % 3 == 2 ? '2MB' : '16MB') . "\n";
}

sub _writes_in_runs
{
	my ($cluster) = @_;
	return $cluster->safe_psql('postgres', 'SHOW shared_buffers') eq '16MB';
}

=pod

=item prepare_load(cluster)

Creates the tables in database postgres, anew if they are there; the cluster must be running.

=cut

sub prepare_load
{
	my ($cluster) = @_;
	_settle($cluster);
	$cluster->safe_psql('postgres', 'DROP TABLE IF EXISTS ledger, split, long, shrinking, two_phase, passing, loaded, made');
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
		-- All rows of a COPY have its transaction's number
		CREATE TABLE loaded (batch bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint, a int, b text NOT NULL DEFAULT repeat('l', 300));
		CREATE TABLE made AS SELECT * FROM loaded;
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
	# Each writes more than its ring of 2 MB holds, and no more WAL than a standby can follow; what is in the pool would not go through
	# the ring of VACUUM
	runs => q{
COPY loaded (a) FROM PROGRAM 'seq 1 8000';
BEGIN;
DROP TABLE made;
CREATE TABLE made AS SELECT * FROM loaded WHERE batch = (SELECT max(batch) FROM loaded);
COMMIT;
DELETE FROM loaded WHERE batch < (SELECT max(batch) FROM loaded);
SELECT pg_buffercache_evict_relation('loaded');
VACUUM (BUFFER_USAGE_LIMIT '256kB') loaded;
SELECT pg_stat_force_next_flush();
\sleep 500 ms
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

# Transactions in a second of those that would take all there is of the machine, and of what they write a standby could replay only
# when they stop. What is late on a busy machine is left out.
my $full = ($ENV{FLOE_TORTURE_LOAD} // '') eq 'full';
my %rates = $full ? () : (tpcb => 150, split => 25, long => 40, two_phase => 40);
$scripts{maintain} .= "\\sleep 300 ms\n" unless $full;

sub _pgbench
{
	my ($cluster, $output, $name, @options) = @_;
	push @options, "--rate=$rates{$name}", '--latency-limit=200' if $rates{$name};
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

=item run_until_crash(cluster, crash => cluster, seconds => S [, each => code, checkpoint => 1, cut => 1, forget => 1])

Checkpoints both, remembers the files of the instance that will crash (not with C<forget>), puts load on the cluster, which writes in
runs where the pool allows it, for a random
time up to S seconds, and crashes the other one under load; for a standby, load goes on until it is down.
With C<checkpoint> both make a checkpoint under load before that time, with C<cut> the crash of a primary cuts one short.
Returns {before, acknowledged, overtaken, written}: the files, the last number that the ledger has confirmed, whether the checkpoint
that was to be cut was faster (then nothing that the files lack is to be torn), and {kind => [requests, blocks]} of what was
written by COPY and CREATE TABLE AS, by VACUUM and by checkpoints while runs were possible.

=cut

# What has been written since the statistics were reset, as {kind => [requests, blocks]}
sub _written
{
	my ($cluster, @kinds) = @_;
	return {} unless _writes_in_runs($cluster);
	my %written = map { my ($kind, @counts) = split /\|/; ($kind => \@counts) } split /\n/, $cluster->safe_psql('postgres', q{
		SELECT CASE backend_type WHEN 'checkpointer' THEN 'checkpoint' ELSE context END, sum(writes), (sum(write_bytes) / 8192)::bigint
		FROM pg_stat_io WHERE object = 'relation' AND (context IN ('bulkwrite', 'vacuum') OR backend_type = 'checkpointer')
		GROUP BY 1 HAVING sum(writes) > 0});
	return { map { $_ => $written{$_} } grep { $written{$_} } @kinds };
}

# The load has begun to write in each way that makes runs
sub _wait_for_runs
{
	my ($cluster) = @_;
	return unless _writes_in_runs($cluster);
	wait_until(sub { keys %{ _written($cluster, 'bulkwrite', 'vacuum') } == 2 }, 'COPY and VACUUM to write what leaves their rings');
	return;
}

# A checkpoint under load, of both where two are given
sub _checkpoint
{
	my ($cluster, $victim) = @_;
	# The guard lets one fail whose position no source has reached in time
	note('a checkpoint under load failed') if $cluster->psql('postgres', 'CHECKPOINT') != 0;
	if ($victim != $cluster)
	{
		$cluster->wait_for_replay_catchup($victim);
		$victim->safe_psql('postgres', 'CHECKPOINT');
	}
	wait_until(sub { _written($victim, 'checkpoint')->{checkpoint} }, 'the checkpoint to be counted') if _writes_in_runs($victim);
	return;
}

sub _bytes_written
{
	my ($pid) = @_;
	my ($bytes) = slurp_file("/proc/$pid/io") =~ /^wchar: (\d+)$/m or croak "process $pid does not tell what it has written";
	return $bytes;
}

# A checkpoint that stops when it has written up to an eighth of the pool, by lot, or all that there is; the session that waits for it
sub _begin_checkpoint
{
	my ($cluster) = @_;
	my ($checkpointer, $pool) = split /\|/, $cluster->safe_psql('postgres', q{
		SELECT pid, (SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers')
		FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
	my $session = $cluster->background_psql('postgres', on_error_stop => 0);
	kill 'STOP', $checkpointer;
	$session->query_until(qr/go/, "\\echo go\nCHECKPOINT;\n");
	$cluster->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'CheckpointStart'})
	  or croak 'nobody waits for a checkpoint';
	my $enough = _bytes_written($checkpointer) + rand($pool / 8);
	my $deadline = time + 1;
	# So that this process is not the slower one
	setpriority(0, $checkpointer, 19);
	kill 'CONT', $checkpointer;
	# It takes milliseconds, so nothing is waited between two looks
	1 until _bytes_written($checkpointer) > $enough || time > $deadline;
	kill 'STOP', $checkpointer;
	return $session;
}

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
	my $before = $options{forget} ? undef : remember_files($victim);
	$_->safe_psql('postgres', q{SELECT pg_stat_reset_shared('io')}) foreach $cluster, $victim;

	my @runs = (_pgbench($cluster, "$directory/tpcb.out", 'tpcb', '--client', '4', '--time', '600'));
	foreach my $name (sort keys %scripts)
	{
		open my $script, '>', "$directory/$name.sql" or croak $!;
		print $script $scripts{$name};
		close $script;
		push @runs, _pgbench($cluster, "$directory/$name.out", $name, '--client', $name =~ /maintain|evict|runs/ ? '1' : '2', '--time', '600',
			'--max-tries', '100', '--file', "$directory/$name.sql");
	}
	my $ledger = "$directory/ledger.out";
	open my $statements, '>', "$directory/ledger.sql" or croak $!;
	for (my $n = $last + 1; $n < $last + ($full ? 200000 : 50000); $n++)
	{
		print $statements "INSERT INTO ledger VALUES ($n, repeat('l', 100));\n\\echo $n\n";
		print $statements "DO 'BEGIN PERFORM pg_sleep(0.02); END';\n" unless $full || $n % 10;
	}
	close $statements;
	push @runs, IPC::Run::start(
		[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', $cluster->host, '-p', $cluster->port, '-d', 'postgres', '-f', "$directory/ledger.sql" ],
		'<', '/dev/null', '>', $ledger, '2>', "$directory/ledger.err");
	wait_until(sub { -s $ledger }, 'the load to begin');
	_wait_for_runs($cluster);
	if ($options{checkpoint})
	{
		_checkpoint($cluster, $victim);
		if ($before)
		{
			forget_files($before);
			$before = remember_files($victim);
		}
	}

	my $end = time + 0.5 + rand($options{seconds} // 2);
	wait_until(sub { $options{each}->() if $options{each}; time > $end }, 'the moment of the crash');
	my $written = { %{ _written($cluster, 'bulkwrite', 'vacuum') }, %{ _written($victim, 'checkpoint') } };
	my $cut = $options{cut} && $victim == $cluster ? _begin_checkpoint($victim) : undef;
	crash($victim);
	eval { $cut->quit } if $cut;

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
	return {
		before => $before,
		acknowledged => $acknowledged // $last,
		overtaken => $before && redo_pointer($victim) ne $before->{redo},
		written => $written };
}

=pod

=item started(cluster, name, figures)

Whether the instance starts after its crash. If not, the check C<name> fails, with what the instance has logged, and the figures have
one C<stuck> more when it is still at it when pg_ctl's time is over, else one C<unrepaired>.

=cut

sub started
{
	my ($cluster, $name, $figures) = @_;
	my $offset = -s $cluster->logfile;
	# Who repairs much, or fetches much WAL, on a busy machine is late, not stuck
	local $ENV{PGCTLTIMEOUT} = $ENV{PGCTLTIMEOUT} // 300;
	return 1 if $cluster->start(fail_ok => 1);
	# Who has ended has removed its pid file
	$figures->{ defined $cluster->{_pid} ? 'stuck' : 'unrepaired' }++;
	fail("$name: " . $cluster->name . ' starts');
	diag(slurp_file($cluster->logfile, $offset));
	return 0;
}

=pod

=item add_written(sums, round)

Adds what was written in a round.

=cut

sub add_written
{
	my ($sums, $round) = @_;
	foreach my $kind (keys %{ $round->{written} })
	{
		$sums->{$kind}[$_] += $round->{written}{$kind}[$_] foreach 0, 1;
	}
	return;
}

=pod

=item written_figures(sums)

The requests and the blocks of all kinds, for write_figures().

=cut

sub written_figures
{
	my ($sums) = @_;
	my %figures = (run_requests => 0, run_blocks => 0);
	foreach my $counts (values %$sums)
	{
		$figures{run_requests} += $counts->[0];
		$figures{run_blocks} += $counts->[1];
	}
	return %figures;
}

=pod

=item runs_were_written(sums)

Fails unless COPY and CREATE TABLE AS, and VACUUM, have written more than two blocks with a request, on average, and checkpoints
more than 1.25; without runs it is one. It is not 16, because a run ends at a page that somebody uses or has written, and because
VACUUM and checkpoints find many that have no dirty neighbour.

=cut

sub runs_were_written
{
	my ($sums) = @_;
	my %least = (bulkwrite => 2, vacuum => 2, checkpoint => 1.25);
	foreach my $kind (sort keys %least)
	{
		my ($requests, $blocks) = @{ $sums->{$kind} // [ 0, 0 ] };
		cmp_ok($blocks, '>', $least{$kind} * $requests, "$kind: $blocks blocks were written with $requests requests");
	}
	return;
}

=pod

=item check_everything(cluster, round)

Returns what is wrong, nothing if all is well: sums, ledger, amcheck of all heaps, B-trees and GIN indexes, and the rows that
each index of the table with one of each access method finds, key by key, which must be those of the heap.

=back

=cut

# What an index is asked for each key k, the key of a row, and the keys. Ranges and lists cover the whole index; of the single
# values it is one row in so many, others in each round.
my $ranges = 'SELECT generate_series(0, 20)';
my $share = $full ? 4 : 16;
my $values = "SELECT b FROM split WHERE n % $share = %d";
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
	my $residue = $round->{acknowledged} % $share;
	my $only = $keys eq $values ? "WHERE n % $share = $residue" : '';
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
		(map { ("all rows of each COPY that table $_ has" =>
			"SELECT coalesce(bool_and(rows = 8000 AND sum = 32004000 AND whole), true)
			FROM (SELECT count(*) AS rows, sum(a) AS sum, bool_and(b = repeat('l', 300)) AS whole FROM $_ GROUP BY batch) x") } 'loaded', 'made'),
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
