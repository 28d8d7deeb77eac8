# Settings of preloaded modules may be named polar_* without a dot, wherever PostgreSQL takes a custom
# setting's name, and once modules are loaded a misspelt one is refused.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $unrecognized = qr/unrecognized configuration parameter "polar_names_user_sise"/;

my $instance = PostgreSQL::Test::Cluster->new('main');
$instance->init;
# Before the line that loads the module, in another case, misspelt, dotted, and of every context.
$instance->append_conf('postgresql.conf', <<'CONF');
polar_names_user_size = 256kB
POLAR_Names_Superuser_Size = 3
polar_names_reload_word = 'first'
polar_names_start_switch = on
polar_names_user_sise = 7
polar_names.dotted = 'as ever'
shared_preload_libraries = 'guc_names'
CONF
$instance->start;

sub show { return $instance->safe_psql('postgres', "SHOW $_[0]"); }

sub refused
{
	my ($sql, $message, $name) = @_;
	my ($status, undef, $stderr) = $instance->psql('postgres', $sql);
	isnt($status, 0, "$name is refused");
	like($stderr, $message, "$name is told why");
	return;
}

# postgresql.conf
is(show('polar_names_user_size'), '256kB', 'a line read before the module was loaded takes effect');
is(show('polar_names_superuser_size'), '24kB', 'upper and lower case are alike');
is(show('polar_names_start_switch'), 'on', 'a setting that needs a restart takes effect');
is(show('"polar_names.dotted"'), 'as ever', 'a dotted name stays an ordinary custom setting');
is( $instance->safe_psql('postgres',
		q{SELECT sourcefile LIKE '%/postgresql.conf' AND sourceline > 0 AND unit = '8kB' AND vartype = 'integer'
		  FROM pg_settings WHERE name = 'polar_names_user_size'}),
	't', 'pg_settings names the type, the unit and the line');
ok($instance->log_contains(qr/WARNING: .*unrecognized configuration parameter "polar_names_user_sise", removing it/),
	'a misspelt line is reported at start and does not keep the instance from starting');
is( $instance->safe_psql('postgres',
		q{SELECT applied, error FROM pg_file_settings WHERE name = 'polar_names_user_sise'}),
	'f|setting could not be applied', 'pg_file_settings shows the misspelt line');
is($instance->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name = 'polar_names_user_sise'}),
	'0', 'no setting is left of the misspelt line');

# reload, with the misspelt line still there
my $offset = -s $instance->logfile;
$instance->adjust_conf('postgresql.conf', 'polar_names_reload_word', "'second'");
$instance->reload;
ok($instance->poll_query_until('postgres', q{SELECT current_setting('polar_names_reload_word') = 'second'}),
	'a misspelt line does not hold back the changes beside it on a reload');
$instance->wait_for_log($unrecognized, $offset);
pass('a misspelt line is reported on a reload');

# SET and its relatives
is($instance->safe_psql('postgres', "SET polar_names_user_size = 5; SHOW polar_names_user_size"), '40kB', 'SET works');
is( $instance->safe_psql('postgres',
		"BEGIN; SET LOCAL polar_names_user_size = 5; SAVEPOINT s; SET LOCAL polar_names_user_size = 6; ROLLBACK TO s; SHOW polar_names_user_size; COMMIT; SHOW polar_names_user_size"),
	"40kB\n256kB", 'SET LOCAL follows savepoints and the transaction');
is( $instance->safe_psql('postgres', q{
		CREATE FUNCTION clause() RETURNS text LANGUAGE sql SET polar_names_user_size = 9 AS $$SELECT current_setting('polar_names_user_size')$$;
		SELECT clause()}),
	'72kB', 'the SET clause of a function works');
refused('SET polar_names_user_sise = 5', $unrecognized, 'SET of a misspelt name');
refused('SET "POLAR_names_user_sise" = 5', qr/unrecognized configuration parameter/, 'SET of a misspelt name in upper case');
refused('SHOW polar_names_user_sise', $unrecognized, 'SHOW of a misspelt name');
refused(q{SELECT set_config('polar_', 'x', false)}, qr/unrecognized configuration parameter "polar_"/, 'the bare prefix');
refused(q{SELECT set_config('polar_a b', 'x', false)}, qr/unrecognized configuration parameter "polar_a b"/, 'a name with a blank');
refused('SET polar_names_user_size = 129', qr/outside the valid range/, 'a value out of range');

# ALTER SYSTEM
refused('ALTER SYSTEM SET polar_names_user_sise = 5', $unrecognized, 'ALTER SYSTEM of a misspelt name');
refused('ALTER SYSTEM SET polar_names_user_size = 129', qr/outside the valid range/, 'ALTER SYSTEM of a value out of range');
$instance->safe_psql('postgres', 'ALTER SYSTEM SET polar_names_user_size = 33');
$instance->safe_psql('postgres', 'ALTER SYSTEM SET polar_names_start_switch = off');
$instance->restart;
is(show('polar_names_user_size'), '264kB', 'ALTER SYSTEM survives a restart');
is(show('polar_names_start_switch'), 'off', 'ALTER SYSTEM of a setting that needs a restart survives one');
$instance->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
$instance->reload;
ok($instance->poll_query_until('postgres', q{SELECT current_setting('polar_names_user_size') = '256kB'}),
	'ALTER SYSTEM RESET ALL and a reload bring the line in postgresql.conf back');

# ALTER ROLE and ALTER DATABASE
$instance->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN;
	CREATE DATABASE sales;
	ALTER ROLE alice SET polar_names_user_size = 11;
	ALTER DATABASE sales SET polar_names_user_size = 12;
	ALTER ROLE alice IN DATABASE sales SET polar_names_user_size = 13;
});
is($instance->safe_psql('postgres', 'SHOW polar_names_user_size', extra_params => [ '-U', 'alice' ]), '88kB', 'ALTER ROLE SET works');
is($instance->safe_psql('sales', 'SHOW polar_names_user_size'), '96kB', 'ALTER DATABASE SET works');
is($instance->safe_psql('sales', 'SHOW polar_names_user_size', extra_params => [ '-U', 'alice' ]), '104kB', 'ALTER ROLE IN DATABASE SET works');
refused('ALTER ROLE alice SET polar_names_user_sise = 5', $unrecognized, 'ALTER ROLE SET of a misspelt name');
refused('ALTER DATABASE sales SET polar_names_user_sise = 5', $unrecognized, 'ALTER DATABASE SET of a misspelt name');

# Privileges are those of the setting, not of its name
my ($status, undef, $stderr) = $instance->psql('postgres', 'SET polar_names_superuser_size = 1', extra_params => [ '-U', 'alice' ]);
isnt($status, 0, 'an ordinary user may not SET a superuser setting');
like($stderr, qr/permission denied to set parameter/, 'an ordinary user is told that the permission is missing');
$instance->safe_psql('postgres', 'GRANT SET ON PARAMETER polar_names_superuser_size TO alice');
is( $instance->safe_psql('postgres', 'SET polar_names_superuser_size = 1; SHOW polar_names_superuser_size', extra_params => [ '-U', 'alice' ]),
	'8kB', 'GRANT SET ON PARAMETER works');
refused('GRANT SET ON PARAMETER polar_names_user_sise TO alice', $unrecognized, 'GRANT on a misspelt name');

# Connection options
{
	local $ENV{PGOPTIONS} = '-c polar_names_user_size=21';
	is(show('polar_names_user_size'), '168kB', 'a connection option works');
	local $ENV{PGOPTIONS} = '-c polar_names_user_sise=21';
	($status, undef, $stderr) = $instance->psql('postgres', 'SELECT 1');
	isnt($status, 0, 'a misspelt connection option is refused');
	like($stderr, $unrecognized, 'a misspelt connection option is told why');
}

# Parallel workers
is( $instance->safe_psql('postgres', q{
		SET debug_parallel_query = on; SET polar_names_user_size = 77;
		SELECT current_setting('polar_names_user_size')}),
	'616kB', q(a parallel worker sees its leader's value));

# A session that loads another copy of nothing: LOAD of a module that is already there changes nothing
is($instance->safe_psql('postgres', "LOAD 'guc_names'; SHOW polar_names_user_size"), '256kB', 'LOAD of a preloaded module changes nothing');

# pg_dumpall carries the settings of roles and databases to another instance
my $dump = $instance->basedir . '/dump.sql';
$instance->command_ok([ 'pg_dumpall', '--no-sync', '--port', $instance->port, '--file', $dump ], 'pg_dumpall succeeds');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init;
$copy->append_conf('postgresql.conf', "shared_preload_libraries = 'guc_names'");
$copy->start;
$copy->command_ok([ 'psql', '--no-psqlrc', '--port', $copy->port, '--file', $dump, 'postgres' ], 'its output can be replayed');
is($copy->safe_psql('sales', 'SHOW polar_names_user_size', extra_params => [ '-U', 'alice' ]), '104kB', 'pg_dumpall carries them over');
$copy->stop;

# postgres -C, on a running and on a stopped instance, of settings set and not set
sub computed
{
	my ($setting, @arguments) = @_;
	my ($stdout, $errors);
	IPC::Run::run [ 'postgres', '-D', $instance->data_dir, @arguments, '-C', $setting ], '>', \$stdout, '2>', \$errors;
	chomp $stdout;
	return $stdout;
}
is(computed('polar_names_user_size'), '256kB', 'postgres -C prints a setting of a running instance');
$instance->stop;
is(computed('polar_names_user_size', '-c', 'polar_names_user_size=1MB'), '1MB', 'postgres -C takes the command line');
is(computed('polar_names_user_size', '--polar-names-user-size=512kB'), '512kB', 'a long option works');

# Single-user mode
my ($output, $errors);
IPC::Run::run [ 'postgres', '--single', '-D', $instance->data_dir, '-c', 'polar_names_start_switch=off', 'postgres' ],
  '<', \"SHOW polar_names_user_size\nSHOW polar_names_start_switch\nSET polar_names_user_sise = 1\n", '>', \$output, '2>', \$errors;
like($output, qr/polar_names_user_size = "256kB"/, 'single-user mode reads postgresql.conf');
like($output, qr/polar_names_start_switch = "off"/, 'single-user mode takes the command line');
like($errors, $unrecognized, 'single-user mode refuses a misspelt name');

# Without the module the same files and catalogs do no harm
$instance->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$instance->start;
ok($instance->log_contains(qr/unrecognized configuration parameter "polar_names_user_size", removing it/),
	'settings of a module that is gone are reported');
($status, $output, $stderr) = $instance->psql('sales', 'SELECT 1', extra_params => [ '-U', 'alice' ]);
is($output, '1', 'a role with settings of a module that is gone can log in');
like($stderr, qr/WARNING: .*unrecognized configuration parameter "polar_names_user_size"/, 'and is warned');
$instance->safe_psql('postgres', 'ALTER ROLE alice RESET polar_names_user_size; ALTER ROLE alice IN DATABASE sales RESET polar_names_user_size; ALTER DATABASE sales RESET polar_names_user_size');
is($instance->safe_psql('postgres', q{SELECT count(*) FROM pg_db_role_setting WHERE setconfig::text LIKE '%polar_%'}),
	'0', 'settings of a module that is gone can be reset');
is($instance->safe_psql('postgres', "LOAD 'guc_names'; SET polar_names_user_size = 4; SHOW polar_names_user_size"),
	'32kB', 'a module that a session loads may own such settings too');

$instance->stop;
done_testing();
