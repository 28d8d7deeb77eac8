# Nothing of one session is found by another that the same worker serves: settings, also custom ones that a row security policy
# trusts, sequences, names of custom settings.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Protocol;
use Floe::Test::SharedServer qw(new_shared port ask session);

my $node = new_shared('shared', "polar_ss_debug_force_migrate = on\npolar_ss_backend_max_count = 5");
my $port = port($node);
$node->safe_psql('postgres', q{
	CREATE TABLE secrets (tenant text, secret text);
	INSERT INTO secrets SELECT 't' || i, 'secret of t' || i FROM generate_series(0, 9) i;
	ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
	CREATE POLICY own ON secrets USING (tenant = current_setting('app.tenant', true));
	CREATE ROLE u0 LOGIN; CREATE ROLE u1 LOGIN;
	ALTER ROLE u1 SET app.role_wide = 'u1';
	GRANT SELECT ON secrets TO u0, u1;
	CREATE SEQUENCE s; GRANT USAGE ON s TO u0, u1});

my @client = map { { user => 'u' . $_ % 2, tenant => "t$_", client => Floe::Test::Protocol->to_port($port, user => 'u' . $_ % 2) } } 0 .. 9;
my $leaks = 0;
my $asked = 0;

sub expect
{
	my ($of, $statement, $expected) = @_;
	my $answer = ask($of->{client}, $statement);
	$asked++;
	return if $answer eq $expected;
	$leaks++;
	diag("$of->{tenant}, $statement: got $answer, expected $expected");
	return;
}

# half of them have a tenant, the others never name one
foreach my $of (@client[ 0 .. 4 ]) { expect($of, "SET app.tenant = '$of->{tenant}'", ''); }
my $rounds = $ENV{FLOE_TEST_LONG} ? 2000 : 12;
for my $round (1 .. $rounds)
{
	foreach my $of (sort { rand() <=> 0.5 } @client)
	{
		my $has = $of->{tenant} =~ /[0-4]/;
		expect($of, 'SELECT secret FROM secrets', $has ? "secret of $of->{tenant}" : '');
		expect($of, 'SHOW app.tenant', $has ? $of->{tenant} : 'ERROR: unrecognized configuration parameter "app.tenant"');
		expect($of, q{SELECT current_setting('app.role_wide', true)}, $of->{user} eq 'u1' ? 'u1' : '');
		expect($of, 'SELECT session_user, current_user', "$of->{user}|$of->{user}");
		expect($of, 'SELECT lastval()', $of->{last} // 'ERROR: lastval is not yet defined in this session');
		$of->{last} = ask($of->{client}, q{SELECT nextval('s')}) if $has && rand() < 0.3;
		expect($of, 'SHOW work_mem', $of->{work_mem} // '4MB');
		if (rand() < 0.3)
		{
			$of->{work_mem} = 1 + int(rand 9) . 'MB';
			expect($of, "SET work_mem = '$of->{work_mem}'", '');
		}
	}
}
is($leaks, 0, "no leak in $asked answers");
my $sessions = $node->safe_psql('postgres', 'SELECT count(*) FROM polar_stat_session');
my $workers = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND usename LIKE 'u_'});
is($sessions, 10, 'ten sessions');
cmp_ok($workers, '<=', 7, "on $workers workers");
cmp_ok($node->safe_psql('postgres', 'SELECT parks FROM polar_stat_dispatcher'), '>', $rounds * 20, 'which they have changed');

# a role sees its own sessions
is($node->safe_psql('postgres', 'SET ROLE u0; SELECT DISTINCT usename FROM polar_stat_session'), 'u0', 'a role sees its own sessions');
$node->stop;
append_to_file($ENV{FLOE_TEST_RESULT}, "answers $asked\nleaks $leaks\n") if $ENV{FLOE_TEST_RESULT};
done_testing();
