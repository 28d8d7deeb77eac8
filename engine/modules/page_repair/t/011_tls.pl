# Pages come over TLS: a source that lets the role in by hostssl and SCRAM only, and whose certificate libpq verifies. One of
# another authority, of another name, without TLS, or asked without it gives none: recovery waits, then it ends with the reason.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Repair qw(copy_instance new_repairable sound);
use Floe::Test::Standby qw(new_standby wait_for_replay);
use Floe::Test::Torn qw(remember_files tear_pages);
use Floe::Test::Wait qw(wait_until);

plan skip_all => 'the engine is built without OpenSSL' unless check_pg_config('#define USE_OPENSSL 1');
plan skip_all => 'there is no program "openssl" to make certificates with' unless grep { -x "$_/openssl" } split /:/, $ENV{PATH};

srand($ENV{FLOE_TEST_SEED} // 11);

# Certificates: two authorities, and one certificate of each for this machine
my $room = PostgreSQL::Test::Utils::tempdir('tls');
append_to_file("$room/names", "subjectAltName = DNS:localhost\n");
my @key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes');
foreach my $authority ('ours', 'theirs')
{
	my $file = "$room/$authority";
	system_log('openssl', 'req', '-x509', @key, '-days', '2', '-subj', "/CN=authority $authority", '-keyout', "$file-ca.key", '-out', "$file-ca.crt") == 0
	  and system_log('openssl', 'req', @key, '-subj', '/CN=localhost', '-keyout', "$file.key", '-out', "$file.csr") == 0
	  and system_log('openssl', 'x509', '-req', '-in', "$file.csr", '-CA', "$file-ca.crt", '-CAkey', "$file-ca.key", '-CAcreateserial',
		'-days', '2', '-extfile', "$room/names", '-out', "$file.crt") == 0
	  or die 'openssl made no certificate';
	chmod 0600, "$file.key" or die $!;
}

my $primary = new_repairable('primary', '', 40000);
my $standby = new_standby($primary, 'standby');
$primary->safe_psql('postgres', q{SET password_encryption = 'scram-sha-256'; ALTER ROLE page_repair PASSWORD 'tiger'});
wait_for_replay($primary, $standby);

# certificate(authority): what the standby shows from its next start or reload
sub certificate
{
	my ($authority) = @_;
	$standby->append_conf('postgresql.conf', "ssl_cert_file = '$room/$authority.crt'\nssl_key_file = '$room/$authority.key'");
	return;
}
open my $hba, '>', $standby->data_dir . '/pg_hba.conf' or die $!;
print $hba "local all page_repair reject\nlocal all all trust\nhostssl postgres page_repair 127.0.0.1/32 scram-sha-256\n";
close $hba;
$standby->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'\nlog_connections = on\nssl = on");
certificate('ours');
$standby->restart;

append_to_file("$room/pass", 'localhost:' . $standby->port . ":*:page_repair:tiger\n");
append_to_file("$room/wrong", 'localhost:' . $standby->port . ":*:page_repair:lion\n");
chmod 0600, "$room/pass", "$room/wrong" or die $!;

# over_tls(words): the connection string as it should be, with these words of libpq's changed
sub over_tls
{
	my (%words) = (
		host => 'localhost', hostaddr => '127.0.0.1', port => $standby->port, dbname => 'postgres', user => 'page_repair',
		passfile => "$room/pass", sslmode => 'verify-full', sslrootcert => "$room/ours-ca.crt", @_);
	return join(' ', map { "$_=$words{$_}" } sort keys %words);
}

# The guard's worker
$primary->append_conf('postgresql.conf', "polar_page_repair_sources = '@{[over_tls()]}'");
$primary->reload;
$primary->poll_query_until('postgres', 'SELECT healthy FROM polar_page_repair_sources') or die 'the source is not healthy';
is($standby->safe_psql('postgres', q{
		SELECT bool_and(ssl), bool_and(version ~ '^TLSv1\.[23]$'), count(*) > 0 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'page_repair'}),
	't|t|t', 'the guard asks over TLS');
is($standby->safe_psql('postgres', q{SELECT string_agg(DISTINCT p.proname, ',') FROM pg_proc p
		WHERE has_function_privilege('page_repair', p.oid, 'EXECUTE') AND NOT has_function_privilege('public', p.oid, 'EXECUTE')}),
	'polar_page_repair_read', 'and its role may do only this');

$primary->safe_psql('postgres', 'CHECKPOINT');
my $before = remember_files($primary);
$primary->safe_psql('postgres', 'UPDATE t SET b = b + 1 WHERE a % 2 = 0; VACUUM t');
my $truth = $primary->safe_psql('postgres', 'SELECT count(*), sum(a), sum(b), md5(string_agg(c, NULL ORDER BY a)) FROM t');
wait_for_replay($primary, $standby);
crash($primary);
my $torn = tear_pages($primary, $before);
cmp_ok($torn->{torn}, '>', 100, "pages are torn: $torn->{torn}");
my $saved = PostgreSQL::Test::Utils::tempdir('torn') . '/pgdata';
PostgreSQL::Test::RecursiveCopy::copypath($primary->data_dir, $saved);
unlink "$saved/postmaster.pid";

# attempt(source [, configuration]): the crashed instance as it was; returns whether it starts, it, its log and what the source logged
my $attempts = 0;
sub attempt
{
	my ($source, $configuration) = @_;
	my $instance = copy_instance('attempt_' . ++$attempts, $saved, "polar_page_repair_sources = '$source'\n" . ($configuration // ''));
	my $offset = -s $standby->logfile;
	my $started = $instance->start(fail_ok => 1);
	return ($started, $instance, slurp_file($instance->logfile), slurp_file($standby->logfile, $offset));
}

sub refused
{
	my ($what, $pattern, $source) = @_;
	my ($started, $instance, $log, $of_source) = attempt($source);
	is($started, 0, "$what: recovery does not end");
	like($log, qr/FATAL: .*block \d+ of relation "base\/\d+\/\d+" is torn, and no page repair source could give it/, "$what: it names the page");
	like($log, $pattern, "$what: and the reason");
	unlike($of_source, qr/connection authorized: user=page_repair/, "$what: the source gave nothing");
	$instance->stop('immediate') if $started;
	return;
}

sub repaired
{
	my ($what, $source, $configuration) = @_;
	my ($started, $instance, $log, $of_source) = attempt($source, $configuration);
	is($started, 1, "$what: recovery ends");
	diag($log) unless $started;
	return unless $started;
	is($instance->safe_psql('postgres', 'SELECT count(*), sum(a), sum(b), md5(string_agg(c, NULL ORDER BY a)) FROM t'), $truth, "$what: all is there");
	is(sound($instance), '', "$what: heap and index are sound");
	my $pages = $instance->safe_psql('postgres', 'SELECT pages FROM polar_page_repair_sources');
	cmp_ok($pages, '>=', 100, "$what: the source gave $pages pages");
	like($of_source, qr/connection authorized: user=page_repair database=postgres application_name=page_repair SSL enabled \(protocol=TLSv1\.[23],/,
		"$what: over TLS, the source's log says");
	unlike($of_source, qr/connection authorized: user=page_repair (?!.*SSL enabled)/, "$what: and never without");
	$instance->stop;
	return;
}

refused('verified by another authority', qr/certificate verify failed/, over_tls(sslrootcert => "$room/theirs-ca.crt"));
refused('another name', qr/server certificate for "localhost".* does not match host name "elsewhere\.example"/,
	over_tls(host => 'elsewhere.example'));
refused('asked without TLS', qr/no pg_hba\.conf entry for host "127\.0\.0\.1", user "page_repair", database "postgres", no encryption/,
	over_tls(sslmode => 'disable'));
refused('another password', qr/password authentication failed for user "page_repair"/, over_tls(passfile => "$room/wrong"));
repaired('torn pages', over_tls());
# Batches of 256 pages, each longer than the records of TLS and the buffers at both ends
repaired('all pages', over_tls(), "polar_page_repair_policy = always\n");

# The source's own certificate
certificate('theirs');
$standby->restart;
refused('a source of another authority', qr/certificate verify failed/, over_tls());

# Recovery waits for it: it comes back with the right one when it has been refused
{
	my $offset = -s $standby->logfile;
	my $pid = fork() // die $!;
	if ($pid == 0)
	{
		wait_until(sub { slurp_file($standby->logfile, $offset) =~ /could not accept SSL connection/ }, 'the first refusal');
		certificate('ours');
		system('pg_ctl', '-s', '-D', $standby->data_dir, 'reload');
		require POSIX;
		POSIX::_exit(0);
	}
	repaired('a source whose certificate is changed meanwhile', over_tls(), "polar_page_repair_timeout = 60s\n");
	waitpid($pid, 0);
}

$standby->append_conf('postgresql.conf', 'ssl = off');
$standby->restart;
refused('a source without TLS', qr/server does not support SSL, but SSL was required/, over_tls(sslmode => 'require'));
refused('a source without TLS, to be verified', qr/server does not support SSL, but SSL was required/, over_tls());

# The crashed instance itself
$standby->append_conf('postgresql.conf', 'ssl = on');
$standby->restart;
$primary->start;
is($primary->safe_psql('postgres', 'SELECT count(*), sum(a), sum(b), md5(string_agg(c, NULL ORDER BY a)) FROM t'), $truth, 'the crashed instance itself starts');
$primary->stop;
$standby->stop;
command_ok([ 'pg_checksums', '--check', '-D', $primary->data_dir ], 'every page on disk verifies');
done_testing();
