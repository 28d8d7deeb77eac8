# pg_upgrade carries settings named polar_* of roles, databases and functions to the new instance.
use strict;
use warnings FATAL => 'all';
use File::Path qw(make_path);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @instances = map { PostgreSQL::Test::Cluster->new($_) } qw(old new);
$_->init for @instances;
my ($old, $new) = @instances;
$old->start;
$old->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN;
	ALTER ROLE alice SET polar_bulk_extend_size = 11;
	ALTER DATABASE postgres SET polar_index_create_bulk_extend_size = 12;
	CREATE FUNCTION clause() RETURNS text LANGUAGE sql SET polar_bulk_extend_size = 9
		AS $$SELECT current_setting('polar_bulk_extend_size')$$;
});
$old->stop;

my $bin = $new->config_data('--bindir');
my $room = $new->basedir . '/upgrade';
make_path($room);
chdir $room or die "could not change to $room: $!";
command_ok(
	[ 'pg_upgrade', '--no-sync', '--old-datadir', $old->data_dir, '--new-datadir', $new->data_dir,
		'--old-bindir', $bin, '--new-bindir', $bin, '--socketdir', $new->host,
		'--old-port', $old->port, '--new-port', $new->port, '--copy' ],
	'pg_upgrade succeeds');

$new->start;
is($new->safe_psql('postgres', 'SHOW polar_bulk_extend_size', extra_params => [ '-U', 'alice' ]), '88kB', q(a role's setting is carried over));
is($new->safe_psql('postgres', 'SHOW polar_index_create_bulk_extend_size'), '96kB', q(a database's setting is carried over));
is($new->safe_psql('postgres', 'SELECT clause()'), '72kB', q(a function's SET clause is carried over));
$new->stop;
done_testing();
