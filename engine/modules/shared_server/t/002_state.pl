# Whatever a session says and sets, it finds again in another worker: a random stream of statements gets the same answers on a
# session that changes its worker after each transaction as on a native one.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session);

my $node = new_shared('shared', 'polar_ss_debug_force_migrate = on');
my $port = port($node);
my $seed = $ENV{FLOE_TEST_SEED} // time;
my $length = $ENV{FLOE_TEST_STATEMENTS} // ($ENV{FLOE_TEST_LONG} ? 100_000 : 400);
note "seed $seed";
srand $seed;

$node->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, v text);
	INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 10) i;
	CREATE ROLE r1; CREATE ROLE r2;
	ALTER DATABASE postgres SET statement_timeout = '10min';
	ALTER DATABASE postgres SET app.tenant = 'default';
	CREATE FUNCTION tenant() RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN current_setting('app.tenant'); END $$});

# What is compiled with a function keeps the meaning of its first call, natively for good: each is called under one setting only.
my @zone = ('UTC', 'Europe/Zurich', '<+03>-03');
$node->safe_psql('postgres', qq{
	CREATE FUNCTION noon_$_() RETURNS timestamp LANGUAGE plpgsql AS \$\$ BEGIN RETURN '2020-07-01 12:00'::timestamptz AT TIME ZONE 'UTC'; END \$\$;
	CREATE FUNCTION tenant_$_() RETURNS text LANGUAGE plpgsql AS \$\$ BEGIN RETURN tenant(); END \$\$}) foreach 0 .. $#zone;
$node->safe_psql('postgres', "CREATE SEQUENCE s_$_ CACHE 5") foreach qw(native shared);

my @session = (
	[ native => Floe::Test::Protocol->new($node, application_name => 'one', options => '-c work_mem=5MB -c app.mine=1') ],
	[ shared => Floe::Test::Protocol->to_port($port, application_name => 'one', options => '-c work_mem=5MB -c app.mine=1') ],
);

sub one_of { return $_[ int rand @_ ]; }

my %in_transaction;

# Statements whose constant means what it did when they were prepared. What makes the stock code analyze it again, by the settings of
# its next use, is not played while there are any.
my $constants = 0;
my $meaning_changes = qr/search_path|RESET ALL|DISCARD|CREATE TEMP/;
sub prepare_constant { return $in_transaction{native} || $in_transaction{shared} ? 'SELECT 1' : 'PREPARE c' . int(rand 2) . q{ AS SELECT '2020-07-01 12:00'::timestamptz AT TIME ZONE 'UTC', $1::int}; }
sub call_function
{
	my $number = int rand @zone;
	return one_of("SET LOCAL TimeZone = '$zone[$number]'; SELECT noon_$number()", "SET LOCAL app.tenant = '$number'; SELECT tenant_$number()");
}

my @statements = (
	\&call_function,
	\&prepare_constant,
	sub { 'EXECUTE c' . int(rand 2) . '(1)' },
	sub { 'SET work_mem = ' . one_of(64, 1000, 5000, 100000) },
	sub { 'SET ' . one_of('', 'SESSION ', 'LOCAL ') . 'DateStyle = ' . one_of('German', 'SQL', 'ISO', q{'Postgres, DMY'}) },
	sub { 'SET TimeZone = ' . one_of(q{'UTC'}, q{'Europe/Zurich'}, '-7', q{'<+03>-03'}, 'DEFAULT') },
	sub { 'SET client_encoding = ' . one_of('LATIN1', 'UTF8', 'SQL_ASCII', 'WIN1252') },
	sub { 'SET application_name = ' . one_of(q{'a'}, q{'b c'}, q{''}) },
	sub { 'SET app.' . one_of(qw(tenant mine x y)) . ' = ' . one_of(q{'1'}, q{''}, q{'it''s'}) },
	sub { 'RESET app.' . one_of(qw(tenant mine x y z)) },
	sub { 'SHOW app.' . one_of(qw(tenant mine x y z)) },
	sub { 'SELECT current_setting($$app.' . one_of(qw(tenant mine x y z)) . '$$, true) IS NULL' },
	sub { 'SELECT set_config($$' . one_of('app.x', 'search_path', 'extra_float_digits') . '$$, $$' . one_of(1, 0) . '$$, ' . one_of('true', 'false') . ')' },
	sub { 'SET search_path = ' . one_of('public', 'pg_catalog, public', q{'$user', public}, 'DEFAULT') },
	sub { 'RESET ' . one_of(qw(work_mem DateStyle TimeZone client_encoding application_name search_path ALL)) },
	sub { 'SHOW ' . one_of(qw(work_mem DateStyle TimeZone client_encoding application_name search_path statement_timeout)) },
	sub { 'SET seq_page_cost = ' . one_of('1.1', '0.30000000000000004', 'DEFAULT') },
	sub { 'SET default_transaction_isolation = ' . one_of(q{'serializable'}, q{'read committed'}, 'DEFAULT') },
	sub { 'SHOW transaction_isolation' },
	sub { 'SELECT current_user = session_user, current_user' },
	sub { 'SELECT nextval($$s_NAME$$)' },
	sub { 'SELECT currval($$s_NAME$$)' },
	sub { 'SELECT lastval()' },
	sub { 'SELECT setval($$s_NAME$$, ' . int(rand 1000 + 1) . ')' },
	sub { 'SET ROLE ' . one_of(qw(r1 r2 NONE)) },
	sub { 'RESET ROLE' },
	sub { 'SET SESSION AUTHORIZATION ' . one_of(qw(r1 DEFAULT)) },
	sub { 'RESET SESSION AUTHORIZATION' },
	sub { 'PREPARE p' . int(rand 3) . ' AS SELECT v FROM t WHERE id = $1' },
	sub { 'EXECUTE p' . int(rand 3) . '(' . (1 + int rand 10) . ')' },
	sub { 'DEALLOCATE ' . one_of('p0', 'p1', 'p2', 'ALL') },
	sub { 'SELECT name, statement, parameter_types FROM pg_prepared_statements ORDER BY 1' },
	sub { 'parse:' . one_of('', 'e1', 'e2') . ':' . one_of('SELECT v FROM t WHERE id = $1', 'SELECT $1::int + 1, current_user', 'SHOW work_mem', '') },
	sub { 'run:' . one_of('', 'e1', 'e2') . ':' . one_of(1, 5, 11) },
	sub { 'describe:' . one_of('', 'e1', 'e2') },
	sub { 'close:' . one_of('', 'e1', 'e2') },
	sub { 'ALTER TABLE t ALTER v TYPE ' . one_of('text', 'varchar(20)') },
	sub { 'BEGIN' },
	sub { 'COMMIT' },
	sub { 'ROLLBACK' },
	sub { 'SAVEPOINT a' },
	sub { 'ROLLBACK TO a' },
	sub { 'SELECT 1 / 0' },
	sub { 'UPDATE t SET v = v WHERE id = 1' },
	sub { 'DISCARD ' . one_of(qw(ALL PLANS SEQUENCES TEMP)) },
	sub { 'SELECT name, setting, source, reset_val, boot_val FROM pg_settings WHERE source NOT IN ($$default$$, $$override$$) ORDER BY name' },
);
my @pinning = (
	sub { 'CREATE TEMP TABLE IF NOT EXISTS temporary AS SELECT 1 AS a' },
	sub { 'SELECT count(*) FROM temporary' },
	sub { 'DROP TABLE IF EXISTS temporary' },
	sub { 'DECLARE c CURSOR WITH HOLD FOR SELECT v FROM t ORDER BY id' },
	sub { 'FETCH 2 FROM c' },
	sub { 'CLOSE ' . one_of('c', 'ALL') },
	sub { 'SELECT pg_advisory_lock_shared(' . int(rand 3) . ')' },
	sub { 'SELECT pg_advisory_unlock_shared(' . int(rand 3) . ')' },
	sub { 'SELECT pg_advisory_unlock_all()' },
	sub { 'LISTEN l' . int(rand 2) },
	sub { 'UNLISTEN ' . one_of('l0', '*') },
	sub { 'SELECT * FROM pg_listening_channels() ORDER BY 1' },
);
my @release = (
	'ROLLBACK', 'RESET SESSION AUTHORIZATION', 'RESET ROLE', 'DEALLOCATE ALL', 'DISCARD TEMP', 'CLOSE ALL', 'SELECT pg_advisory_unlock_all()', 'UNLISTEN *',
);

# A transaction that holds a lock on t would stop the other session.
my $differences = 0;
my @said;
for my $n (1 .. $length)
{
	# stretches that move, stretches with what pins, and what lets go again
	my $stretch = $n % 100;
	my $statement = $stretch < @release ? $release[$stretch] : $stretch < 60 || rand() < 0.5 ? one_of(@statements)->() : one_of(@pinning)->();
	$statement = 'DEALLOCATE ALL' if $constants && $statement =~ $meaning_changes;
	@said = () if !$stretch;
	push @said, $statement;
	my %answer;
	foreach (@session)
	{
		my ($name, $client) = @$_;
		my $text = $statement =~ s/NAME/$name/r;
		$text = 'SELECT 1' if $text =~ /^(UPDATE|ALTER)/ && $in_transaction{$name};
		if ($text =~ /^(parse|run|describe|close):(\w*):?(.*)/) { $client->$1($2, $3); }
		else { $client->query($text); }
		my @messages = $client->until_ready;
		$in_transaction{$name} = $messages[-1] ne 'Z I';
		$answer{$name} = join "\n", map { s/s_$name/s_NAME/gr } @messages, map { "$_=" . $client->status->{$_} } sort keys %{ $client->status };
	}
	if ($answer{native} =~ /^C (PREPARE|DEALLOCATE ALL|DISCARD ALL)$/m) { $constants = $1 eq 'PREPARE' ? $constants || $statement =~ /^PREPARE c/ : 0; }
	next if $answer{native} eq $answer{shared};
	fail("statement $n: $statement");
	diag("native: $answer{native}\nshared: $answer{shared}");
	diag(join "\n", 'said before:', @said);
	last if ++$differences == 3;
}
is($differences, 0, "$length statements get the same answers");
my ($binds, $parks) = split /\|/, $node->safe_psql('postgres', 'SELECT binds, parks FROM polar_stat_dispatcher');
cmp_ok($binds, '>', $length / 20, "and the session has moved: $binds times");
$node->stop;
append_to_file($ENV{FLOE_TEST_RESULT}, "statements $length\ndifferences $differences\nmoves $binds\n") if $ENV{FLOE_TEST_RESULT};
done_testing();
