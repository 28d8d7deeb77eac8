# Every instance of the engine has the build's own modules loaded, whatever its user configures.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $list = $ENV{FLOE_BUILTIN_PRELOAD};
my @modules = map { s{.*/}{}r } split /, /, $list;

my $instance = PostgreSQL::Test::Cluster->new('main');
$instance->init;
$instance->start;

sub show { return $instance->safe_psql('postgres', "SHOW $_[0]"); }

# The library files that the postmaster has loaded, without directories and suffix.
sub loaded
{
	my %files = map { s{.*/}{}r =~ s/\.so$//r => 1 }
	  split /\n/, $instance->safe_psql('postgres', 'SELECT file_name FROM pg_get_loaded_modules()');
	return \%files;
}

sub all_loaded
{
	my ($name, @also) = @_;
	my $loaded = loaded();
	is_deeply([ grep { !$loaded->{$_} } @modules, @also ], [], $name);
	return;
}

is(show('builtin_preload_libraries'), $list, 'the engine shows what it was built to preload');
my ($includes) = run_command([ 'pg_config', '--includedir-server' ]);
like(slurp_file("$includes/utils/builtin_preload.h"), qr/^#define BUILTIN_PRELOAD_LIBRARIES "\Q$list\E"$/m, 'and its build says so where no server runs');
is(show('shared_preload_libraries'), '', q(the user's own list stays the user's own));
all_loaded('nothing needs to be configured');

$instance->append_conf('postgresql.conf', "shared_preload_libraries = 'auto_explain'\ndynamic_library_path = '/nonexistent'");
$instance->restart(fail_ok => 1);
ok($instance->log_contains(qr/could not access file "auto_explain"/), q(the user's list obeys dynamic_library_path));
$instance->append_conf('postgresql.conf', q(shared_preload_libraries = '$libdir/auto_explain'));
$instance->start;
all_loaded(q(the user's list adds to the engine's, which obeys no search path), 'auto_explain');
is(show('shared_preload_libraries'), '$libdir/auto_explain', q(the user's list shows what the user set));

$instance->append_conf('postgresql.conf', "shared_preload_libraries = '$list'");
$instance->restart;
all_loaded(q(naming the engine's own modules does no harm));

my (undef, undef, $stderr) = $instance->psql('postgres', "ALTER SYSTEM SET builtin_preload_libraries = ''");
like($stderr, qr/cannot be changed/, 'the list cannot be changed');

# postgres -C answers for the modules' settings although nothing sets them and the instance runs
foreach my $line (split /\n/, $instance->safe_psql('postgres', q{SELECT name, setting = '' FROM pg_settings WHERE name LIKE 'polar\_%' AND source = 'default' ORDER BY 1}))
{
	my ($setting, $empty) = split /\|/, $line;
	$instance->command_like([ 'postgres', '-D', $instance->data_dir, '-C', $setting ],
		$empty eq 't' ? qr/^\n$/ : qr/\S/, "postgres -C $setting answers while the instance runs");
}

$instance->stop;
done_testing();
