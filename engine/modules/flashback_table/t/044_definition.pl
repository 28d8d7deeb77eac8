# The definition of a dropped table lasts as long as its files: over a crash, on a standby, from a transaction that began long ago; it
# ends with a purge. Whatever stands in its place in WAL, the server goes on and does no more than make pieces; nobody else sees it.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback await_point checkpoint);

my $primary = new_flashback('primary', "polar_enable_fast_recovery_area = on\nwal_level = logical\nmax_prepared_transactions = 5\nmax_locks_per_transaction = 1000\n");
$primary->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE EXTENSION pg_walinspect;
	CREATE FUNCTION forge(cstring, bytea) RETURNS void AS 'flashback_forge', 'flashback_forge' LANGUAGE C;
	CREATE PUBLICATION p FOR ALL TABLES;
	CREATE TABLE up (id int PRIMARY KEY);
	INSERT INTO up VALUES (1);
	CREATE FUNCTION make(name) RETURNS void LANGUAGE plpgsql AS $$BEGIN
		EXECUTE format('CREATE TABLE %I (id int GENERATED ALWAYS AS IDENTITY, s serial, a int DEFAULT 7 CONSTRAINT positive CHECK (a > 0), up int DEFAULT 1 CONSTRAINT up REFERENCES up,
			twice int GENERATED ALWAYS AS (a * 2) STORED)', $1);
		EXECUTE format('CREATE INDEX ON %I ((a + 1)) WHERE a > 1', $1);
		EXECUTE format('INSERT INTO %I (a) SELECT generate_series(1, 100)', $1);
	END$$;
	CREATE FUNCTION is_like(t regclass) RETURNS text LANGUAGE sql AS $$
		SELECT concat_ws(' ', (SELECT string_agg(conname || ' ' || pg_get_constraintdef(oid), ', ' ORDER BY conname) FROM pg_constraint WHERE conrelid = t AND contype <> 'n'),
			(SELECT string_agg(concat_ws(' ', attname, pg_get_expr(adbin, adrelid), attidentity, attgenerated), ', ' ORDER BY attnum) FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = t AND attnum > 0),
			(SELECT string_agg(pg_get_indexdef(indexrelid), ', ') FROM pg_index WHERE indrelid = t)) $$});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;
checkpoint($primary);
$primary->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
await_point($standby);
$primary->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('decoded', 'pgoutput')});

my %was;
my $listed = q{SELECT string_agg(relation_name || ' ' || definition, chr(10) ORDER BY lsn, relation_name) FROM polar_flashback_dropped() WHERE kind = 'dropped'};

sub make
{
	my ($name) = @_;
	$primary->safe_psql('postgres', "SELECT make('$name')");
	return $was{$name} = $primary->safe_psql('postgres', "SELECT is_like('$name')");
}

sub is_back
{
	my ($node, $name, $how) = @_;
	my ($out, $err);
	$node->psql('postgres', "FLASHBACK TABLE $name TO BEFORE DROP", stdout => \$out, stderr => \$err);
	unlike($err, qr/WARNING|ERROR/, "$how: $name comes back");
	is($node->safe_psql('postgres', "SELECT is_like('$name')"), $was{$name}, "$how: $name as it was");
	is($node->safe_psql('postgres', "SELECT count(*), sum(a) FROM $name"), '100|5050', "$how: $name with its rows");
	return;
}

# The drop, and nothing after it but the end of the server
make('crashed');
$primary->safe_psql('postgres', 'DROP TABLE crashed');
crash($primary);
$primary->start;
is_back($primary, 'crashed', 'after a crash');

# Points between the drop and its commit, in a transaction and in one that is prepared; in a subtransaction, after one that was undone
make($_) foreach qw(early prepared nested);
my $session = $primary->background_psql('postgres');
$session->query_safe('BEGIN; DROP TABLE early');
checkpoint($primary) foreach 1 .. 3;
$session->query_safe('COMMIT');
$session->quit;
$primary->safe_psql('postgres', q{BEGIN; DROP TABLE prepared; PREPARE TRANSACTION 'x'});
checkpoint($primary) foreach 1 .. 3;
$primary->safe_psql('postgres', q{COMMIT PREPARED 'x'});
$primary->safe_psql('postgres', q{BEGIN; SAVEPOINT a; ALTER TABLE nested ALTER a SET DEFAULT 9; DROP TABLE nested; ROLLBACK TO a; SAVEPOINT b; DROP TABLE nested; RELEASE b; COMMIT});
is_back($primary, $_, 'with points in between') foreach qw(early prepared);
is_back($primary, 'nested', 'in a subtransaction');

# Nobody who decodes gets it; what SQL emits is passed on
make('decoded');
$primary->safe_psql('postgres', q{BEGIN; SELECT pg_logical_emit_message(true, 'polar_flashback_definition', 'of mine'); DROP TABLE decoded; COMMIT});
is($primary->safe_psql('postgres', q{SELECT count(*), min(convert_from(substr(data, length(data) - 6), 'UTF8'))
	FROM pg_logical_slot_get_binary_changes('decoded', NULL, NULL, 'proto_version', '1', 'publication_names', 'p', 'messages', 'true') WHERE get_byte(data, 0) = ascii('M')}),
	'1|of mine', 'logical decoding passes on what SQL wrote, and nothing of the module');
$primary->safe_psql('postgres', q{SELECT pg_drop_replication_slot('decoded')});
is_back($primary, 'decoded', 'beside a message of SQL');

# A piece that cannot be put into words: the DROP works, the rest is kept
make('broken');
$primary->safe_psql('postgres', q{CREATE FUNCTION fits(int) RETURNS bool LANGUAGE sql RETURN $1 > 0; ALTER TABLE broken ADD CONSTRAINT fitting CHECK (fits(a))});
my $offset = -s $primary->logfile;
$primary->safe_psql('postgres', q{SET allow_system_table_mods = on; DELETE FROM pg_proc WHERE proname = 'fits'});
$primary->safe_psql('postgres', 'DROP TABLE broken');
like(slurp_file($primary->logfile, $offset), qr/LOG:  part of the definition of a table that is being dropped is not kept: cache lookup failed/, 'a piece that cannot be put into words is told to the log');
my $err;
$primary->psql('postgres', 'FLASHBACK TABLE broken TO BEFORE DROP', stderr => \$err);
like($err, qr/It lacks constraint "fitting"\./, 'and to who has the table back');
is($primary->safe_psql('postgres', "SELECT is_like('broken')"), $was{broken}, 'which has the rest');

# Many at once
$primary->safe_psql('postgres', q{CREATE SCHEMA many; SET search_path = many, public; SELECT make(('t' || g)::name) FROM generate_series(1, 300) g});
$was{'many.t150'} = $primary->safe_psql('postgres', "SELECT is_like('many.t150')");
$primary->safe_psql('postgres', 'DROP SCHEMA many CASCADE');
is($primary->safe_psql('postgres', q{SELECT count(*) FROM polar_flashback_dropped() WHERE schema_name = 'many' AND definition LIKE '%CHECK ((a > 0))%REFERENCES public.up(id)%'}), 300, 'a schema with 300 tables');

# A standby has all of it, and gives it back when it is promoted; a purge ends it
make($_) foreach qw(moved purged);
my $oid = $primary->safe_psql('postgres', q{SELECT 'purged'::regclass::oid});
$primary->safe_psql('postgres', 'DROP TABLE moved; DROP TABLE purged');
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', $listed), $primary->safe_psql('postgres', $listed), 'a standby lists the same definitions');
$primary->safe_psql('postgres', "SELECT polar_flashback_purge($oid)");
unlike($primary->safe_psql('postgres', $listed), qr/^purged/m, 'a purged one is not listed');
isnt($primary->psql('postgres', 'FLASHBACK TABLE purged TO BEFORE DROP', stderr => \$err), 0, 'nor had back');

# What others put in its place
$primary->safe_psql('postgres', 'CREATE TABLE witness (a int)');

# Drops a table with a forgery of its definition behind the right one, and has it back; returns what that says
sub forged
{
	my ($forge) = @_;
	$primary->safe_psql('postgres', q{DROP TABLE IF EXISTS victim; SELECT make('victim');
		ALTER TABLE victim DROP CONSTRAINT positive, ADD CONSTRAINT positive CHECK (a > 0 AND a < 11111111 AND a <> 222222222 AND a <> 333333333 AND a <> 444444444)});
	my $from = $primary->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	$primary->safe_psql('postgres', 'BEGIN; DROP TABLE victim; ROLLBACK; CHECKPOINT');
	my $description = $primary->safe_psql('postgres', qq{SELECT description FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn()) WHERE resource_manager = 'LogicalMessage'});
	my ($hex) = $description =~ /prefix "polar_flashback_definition"; payload \(\d+ bytes\): ([0-9A-F ]+)/ or die "no payload in $description";
	my $forgery = $forge->(pack 'H*', $hex =~ s/ //gr);
	$primary->safe_psql('postgres', sprintf q{BEGIN; DROP TABLE victim; SELECT forge('polar_flashback_definition', '\x%s'); COMMIT}, unpack('H*', $forgery));
	my $said;
	$primary->psql('postgres', 'SELECT count(definition) FROM polar_flashback_dropped(); FLASHBACK TABLE victim TO BEFORE DROP', stderr => \$said);
	is($primary->safe_psql('postgres', 'SELECT count(*), sum(a) FROM victim'), '100|5050', 'the table is back') or diag($said);
	return $said;
}
unlike(forged(sub { $_[0] }), qr/WARNING|lacks/, 'with what it was');
foreach my $injection ('CHECK (true); DROP TABLE witness', 'CHECK (true), DROP COLUMN a', 'CHECK (true), ADD COLUMN z int', 'UNIQUE (a)', 'FOREIGN KEY (a) REFERENCES witness', 'PRIMARY KEY USING INDEX x', 'CHECK ((SELECT true))', 'CHECK (a > 1000)')
{
	my $said = forged(sub { $_[0] =~ s/(CHECK \(\(\(a > 0\).*?444444444\)\)\))/sprintf '%-*s', length $1, $injection/esr });
	like($said, qr/WARNING:  table "victim" is given back without constraint "positive"/, "no more than its piece: $injection");
	unlike($said, qr/without foreign key/, "and no less than the others: $injection");
	is($primary->safe_psql('postgres', q{SELECT to_regclass('witness') IS NOT NULL, count(*) FROM pg_attribute WHERE attrelid = 'victim'::regclass AND attnum > 0}), 't|5', "and nothing else: $injection");
}
like(forged(sub { substr $_[0], 0, length($_[0]) - 1 }), qr/WARNING:  the definition of dropped table \d+ is damaged/, 'one that is cut off');
srand 1;
my $rounds = $ENV{FLOE_TEST_LONG} ? 1000 : 25;
for my $round (1 .. $rounds)
{
	forged(sub {
		my ($forgery) = @_;
		substr $forgery, 12 + int(rand(length($forgery) - 12)), 1, pack('C', (0, 1, 127, 128, 255, 39, 59)[ int(rand(7)) ]) foreach 0 .. int(rand(4));
		return $forgery;
	});
}
is($primary->safe_psql('postgres', 'SELECT count(*) FROM witness'), 0, 'the server goes on');

$primary->wait_for_catchup($standby);
$primary->stop;
$standby->promote;
is_back($standby, 'moved', 'promoted');
$standby->safe_psql('postgres', 'CREATE SCHEMA many');
$standby->safe_psql('postgres', q{DO $$DECLARE r record; BEGIN SELECT relation, lsn INTO r FROM polar_flashback_dropped() WHERE schema_name = 'many' AND relation_name = 't150'; PERFORM polar_flashback_before_drop(r.relation, r.lsn, result_schema => 'many'); END$$});
is($standby->safe_psql('postgres', "SELECT is_like('many.t150')"), $was{'many.t150'}, 'promoted: one of many');
$standby->stop;
done_testing();
