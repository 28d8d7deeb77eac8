# Settings named polar_* of the build's own modules are known wherever PostgreSQL's own are, and an
# unknown one is refused as PostgreSQL refuses it.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $unrecognized = qr/unrecognized configuration parameter "polar_bulk_extend_sise"/;

my $instance = PostgreSQL::Test::Cluster->new('main');
# initdb starts the server with these in its files.
$instance->init(extra => [ '-c', 'polar_index_create_bulk_extend_size=2MB', '-c', 'polar_enable_flashback_log=off' ]);
# Of every context, in another case, and in front of a list of the user's own.
$instance->append_conf('postgresql.conf', <<'CONF');
polar_bulk_extend_size = 256kB
POLAR_Recovery_Bulk_Extend_Size = 24
polar_flashback_log_mode = sync
polar_names.dotted = 'as ever'
shared_preload_libraries = ''
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
is(show('polar_bulk_extend_size'), '256kB', 'a line takes effect');
is(show('polar_recovery_bulk_extend_size'), '192kB', 'upper and lower case are alike');
is(show('polar_flashback_log_mode'), 'sync', 'a setting that needs a restart takes effect');
is(show('polar_index_create_bulk_extend_size'), '2MB', 'initdb takes a setting');
is(show('"polar_names.dotted"'), 'as ever', 'a dotted name stays an ordinary custom setting');
is( $instance->safe_psql('postgres',
		q{SELECT sourcefile LIKE '%/postgresql.conf' AND sourceline > 0 AND unit = '8kB' AND vartype = 'integer'
		  FROM pg_settings WHERE name = 'polar_bulk_extend_size'}),
	't', 'pg_settings names the type, the unit and the line');

# A misspelt line is an error in the file, at a reload and at a start.
$instance->append_conf('postgresql.conf', 'polar_bulk_extend_sise = 7');
my $offset = -s $instance->logfile;
$instance->reload;
$instance->wait_for_log(qr/configuration file ".*" contains errors; no changes were applied|contains errors; unaffected changes were applied/, $offset);
ok($instance->log_contains($unrecognized, $offset), 'a misspelt line is reported on a reload');
is( $instance->safe_psql('postgres',
		q{SELECT applied, error FROM pg_file_settings WHERE name = 'polar_bulk_extend_sise'}),
	'f|unrecognized configuration parameter', 'pg_file_settings shows the misspelt line');
$instance->stop;
$offset = -s $instance->logfile;
is($instance->start(fail_ok => 1), 0, 'a misspelt line keeps the instance from starting');
ok($instance->log_contains($unrecognized, $offset), 'and is named');
$instance->adjust_conf('postgresql.conf', 'polar_bulk_extend_sise', undef);

# So is a value that the setting refuses.
$instance->append_conf('postgresql.conf', 'polar_bulk_write_size = 2MB');
$offset = -s $instance->logfile;
is($instance->start(fail_ok => 1), 0, 'a value out of range keeps the instance from starting');
ok($instance->log_contains(qr/outside the valid range for parameter "polar_bulk_write_size"/, $offset), 'and is named');
$instance->adjust_conf('postgresql.conf', 'polar_bulk_write_size', undef);
$instance->start;

# SET and its relatives
is($instance->safe_psql('postgres', "SET polar_bulk_extend_size = 5; SHOW polar_bulk_extend_size"), '40kB', 'SET works');
is( $instance->safe_psql('postgres',
		"BEGIN; SET LOCAL polar_bulk_extend_size = 5; SAVEPOINT s; SET LOCAL polar_bulk_extend_size = 6; ROLLBACK TO s; SHOW polar_bulk_extend_size; COMMIT; SHOW polar_bulk_extend_size"),
	"40kB\n256kB", 'SET LOCAL follows savepoints and the transaction');
is( $instance->safe_psql('postgres', q{
		CREATE FUNCTION clause() RETURNS text LANGUAGE sql SET polar_bulk_extend_size = 9 AS $$SELECT current_setting('polar_bulk_extend_size')$$;
		SELECT clause()}),
	'72kB', 'the SET clause of a function works');
refused('SET polar_bulk_extend_sise = 5', $unrecognized, 'SET of a misspelt name');
refused('SET "POLAR_bulk_extend_sise" = 5', qr/unrecognized configuration parameter/, 'SET of a misspelt name in upper case');
refused('SHOW polar_bulk_extend_sise', $unrecognized, 'SHOW of a misspelt name');
refused('SET polar_bulk_extend_size = 1025', qr/outside the valid range/, 'a value out of range');

# ALTER SYSTEM
refused('ALTER SYSTEM SET polar_bulk_extend_sise = 5', $unrecognized, 'ALTER SYSTEM of a misspelt name');
refused('ALTER SYSTEM SET polar_bulk_extend_size = 1025', qr/outside the valid range/, 'ALTER SYSTEM of a value out of range');
$instance->safe_psql('postgres', 'ALTER SYSTEM SET polar_bulk_extend_size = 33');
$instance->safe_psql('postgres', 'ALTER SYSTEM SET polar_flashback_log_mode = async');
$instance->restart;
is(show('polar_bulk_extend_size'), '264kB', 'ALTER SYSTEM survives a restart');
is(show('polar_flashback_log_mode'), 'async', 'ALTER SYSTEM of a setting that needs a restart survives one');
$instance->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
$instance->reload;
ok($instance->poll_query_until('postgres', q{SELECT current_setting('polar_bulk_extend_size') = '256kB'}),
	'ALTER SYSTEM RESET ALL and a reload bring the line in postgresql.conf back');

# ALTER ROLE and ALTER DATABASE
$instance->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN;
	CREATE DATABASE sales;
	ALTER ROLE alice SET polar_bulk_extend_size = 11;
	ALTER DATABASE sales SET polar_bulk_extend_size = 12;
	ALTER ROLE alice IN DATABASE sales SET polar_bulk_extend_size = 13;
});
is($instance->safe_psql('postgres', 'SHOW polar_bulk_extend_size', extra_params => [ '-U', 'alice' ]), '88kB', 'ALTER ROLE SET works');
is($instance->safe_psql('sales', 'SHOW polar_bulk_extend_size'), '96kB', 'ALTER DATABASE SET works');
is($instance->safe_psql('sales', 'SHOW polar_bulk_extend_size', extra_params => [ '-U', 'alice' ]), '104kB', 'ALTER ROLE IN DATABASE SET works');
refused('ALTER ROLE alice SET polar_bulk_extend_sise = 5', $unrecognized, 'ALTER ROLE SET of a misspelt name');
refused('ALTER DATABASE sales SET polar_bulk_extend_sise = 5', $unrecognized, 'ALTER DATABASE SET of a misspelt name');

# Privileges are those of the setting, not of its name
my ($status, undef, $stderr) = $instance->psql('postgres', 'SHOW polar_page_repair_sources', extra_params => [ '-U', 'alice' ]);
isnt($status, 0, 'an ordinary user may not see a setting of superusers');
like($stderr, qr/permission denied to examine "polar_page_repair_sources"/, 'and is told so');
($status, undef, $stderr) = $instance->psql('postgres', 'ALTER SYSTEM SET polar_bulk_extend_size = 1', extra_params => [ '-U', 'alice' ]);
isnt($status, 0, 'an ordinary user may not ALTER SYSTEM');
$instance->safe_psql('postgres', 'GRANT ALTER SYSTEM ON PARAMETER polar_bulk_extend_size TO alice');
$instance->safe_psql('postgres', 'ALTER SYSTEM SET polar_bulk_extend_size = 1', extra_params => [ '-U', 'alice' ]);
$instance->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
refused('GRANT SET ON PARAMETER polar_bulk_extend_sise TO alice', qr/invalid parameter name "polar_bulk_extend_sise"|$unrecognized/, 'GRANT on a misspelt name');

# Connection options
{
	local $ENV{PGOPTIONS} = '-c polar_bulk_extend_size=21';
	is(show('polar_bulk_extend_size'), '168kB', 'a connection option works');
	local $ENV{PGOPTIONS} = '-c polar_bulk_extend_sise=21';
	($status, undef, $stderr) = $instance->psql('postgres', 'SELECT 1');
	isnt($status, 0, 'a misspelt connection option is refused');
	like($stderr, $unrecognized, 'a misspelt connection option is told why');
}

# Parallel workers
is( $instance->safe_psql('postgres', q{
		SET debug_parallel_query = on; SET polar_bulk_extend_size = 77;
		SELECT current_setting('polar_bulk_extend_size')}),
	'616kB', q(a parallel worker sees its leader's value));

# pg_dumpall carries the settings of roles and databases to another instance
my $dump = $instance->basedir . '/dump.sql';
$instance->command_ok([ 'pg_dumpall', '--no-sync', '--port', $instance->port, '--file', $dump ], 'pg_dumpall succeeds');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init;
$copy->start;
$copy->command_ok([ 'psql', '--no-psqlrc', '--port', $copy->port, '--file', $dump, 'postgres' ], 'its output can be replayed');
is($copy->safe_psql('sales', 'SHOW polar_bulk_extend_size', extra_params => [ '-U', 'alice' ]), '104kB', 'pg_dumpall carries them over');
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
# As of PostgreSQL's own settings, numbers are in the setting's unit.
is(computed('polar_bulk_extend_size'), '32', 'postgres -C prints a setting of a running instance');
$instance->stop;
is(computed('polar_bulk_extend_size', '-c', 'polar_bulk_extend_size=1MB'), '128', 'postgres -C takes the command line');
is(computed('polar_bulk_extend_size', '--polar-bulk-extend-size=512kB'), '64', 'a long option works');

# Single-user mode
my ($output, $errors);
IPC::Run::run [ 'postgres', '--single', '-D', $instance->data_dir, '-c', 'polar_flashback_log_mode=async', 'postgres' ],
  '<', \"SHOW polar_bulk_extend_size\nSHOW polar_flashback_log_mode\nSET polar_bulk_extend_sise = 1\n", '>', \$output, '2>', \$errors;
like($output, qr/polar_bulk_extend_size = "256kB"/, 'single-user mode reads postgresql.conf');
like($output, qr/polar_flashback_log_mode = "async"/, 'single-user mode takes the command line');
like($errors, $unrecognized, 'single-user mode refuses a misspelt name');

# What a role has of a module that is gone does no harm.
$instance->start;
$instance->safe_psql('postgres', q{
	SET allow_system_table_mods = on;
	UPDATE pg_db_role_setting SET setconfig = '{polar_gone_size=1}' WHERE setdatabase = 0});
($status, $output, $stderr) = $instance->psql('postgres', 'SELECT 1', extra_params => [ '-U', 'alice' ]);
is($output, '1', 'a role with settings of a module that is gone can log in');
like($stderr, qr/WARNING: .*unrecognized configuration parameter "polar_gone_size"/, 'and is warned');
$instance->safe_psql('postgres', 'ALTER ROLE alice RESET ALL');

$instance->stop;
done_testing();
