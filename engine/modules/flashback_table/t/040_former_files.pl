# Tables that were truncated, rewritten or dropped, across crashes and restarts; while their files are being kept; and with kept
# files that are damaged, cut off or missing, which are errors.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Crash qw(crash);
use Floe::Test::Flashback qw(new_flashback await_point checkpoint in_background);
use Floe::Test::Wait qw(wait_until);

my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\nshared_buffers = 16MB\nmax_prepared_transactions = 2\nfull_page_writes = off\npolar_page_repair_guard = off\nlogging_collector = off\n");
$node->safe_psql('postgres', q{
	CREATE EXTENSION flashback_table;
	CREATE EXTENSION pageinspect;
	CREATE FUNCTION make(name text) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE format('CREATE TABLE %I (id int PRIMARY KEY, n int, body text)', name);
		EXECUTE format('ALTER TABLE %I ALTER body SET STORAGE EXTERNAL', name);
		EXECUTE format('INSERT INTO %I SELECT g, g, CASE WHEN g %% 10 = 0 THEN repeat(md5(g::text), 150) ELSE md5(g::text) END FROM generate_series(1, 2000) g', name);
	END $$});
my $digest = q{SELECT count(*) || ' ' || md5(string_agg(t::text, chr(10) ORDER BY id))};

sub moment
{
	return $node->safe_psql('postgres', 'SELECT clock_timestamp()');
}

sub fails
{
	my ($sql, $like, $name) = @_;
	my ($out, $err);
	isnt($node->psql('postgres', $sql, stdout => \$out, stderr => \$err), 0, $name);
	return like($err, $like, 'with the reason');
}

# Across a crash and a restart, with changes that were never written
my %then;
for my $table (qw(truncated dropped prepared))
{
	$node->safe_psql('postgres', "SELECT make('$table')");
	checkpoint($node);
	$node->safe_psql('postgres', "UPDATE $table SET n = -n WHERE id % 3 = 0; DELETE FROM $table WHERE id % 7 = 0; UPDATE $table SET body = repeat('b', 5000) WHERE id = 1");
	$then{$table} = [ moment(), $node->safe_psql('postgres', "$digest FROM $table t") ];
	$node->safe_psql('postgres', "UPDATE $table SET n = 0 WHERE id < 50");
}
$node->safe_psql('postgres', $_) for 'TRUNCATE truncated', 'INSERT INTO truncated (id) SELECT generate_series(1, 10000)';
my $before_drop = $node->safe_psql('postgres', "$digest FROM dropped t");
$node->safe_psql('postgres', 'DROP TABLE dropped');
my $before_prepared = $node->safe_psql('postgres', "$digest FROM prepared t");
$node->safe_psql('postgres', q{BEGIN; DROP TABLE prepared; PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'});

# A number in the name tells the rounds apart
my $round = 0;
for my $how ('at first', 'after a crash', 'after a restart', 'after a checkpoint', 'after VACUUM FULL of all')
{
	crash($node) if $how =~ /crash/;
	$node->stop if $how =~ /restart/;
	$node->start if $how =~ /crash|restart/;
	checkpoint($node) if $how =~ /checkpoint/;
	$node->safe_psql('postgres', 'VACUUM FULL') if $how =~ /VACUUM/;
	is($node->safe_psql('postgres', "$digest FROM polar_flashback_rows(NULL::truncated, '$then{truncated}[0]') t"), $then{truncated}[1], "$how: the truncated table");
	$round++;
	for (['dropped', $before_drop], ['prepared', $before_prepared])
	{
		my ($table, $is) = @$_;
		$node->safe_psql('postgres', "FLASHBACK TABLE $table TO BEFORE DROP RENAME TO ${table}_$round");
		is($node->safe_psql('postgres', "$digest FROM ${table}_$round t"), $is, "$how: the $table table");
		$node->safe_psql('postgres', "DROP TABLE ${table}_$round");
	}
	is($node->safe_psql('postgres', q{SELECT string_agg(relation_name || ' ' || kind, ', ' ORDER BY relation_name COLLATE "C") FROM polar_flashback_dropped() WHERE relation_name IN ('truncated', 'dropped', 'prepared') AND kind <> 'rewritten'}),
		'dropped dropped, prepared dropped, truncated truncated', "$how: the list");
}

# Created between a checkpoint's redo location and its point, not kept when it was dropped, made anew by replay, and kept then: most
# of its pages never left the buffers, so the file has zeroes where the point had pages
$node->safe_psql('postgres', q{SELECT make('anew')});
my $checkpoint = in_background($node, 'flashback-log-before-point', 'CHECKPOINT');
$node->safe_psql('postgres', 'VACUUM FULL anew');
$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-log-before-point'); SELECT injection_points_wakeup('flashback-log-before-point')});
$checkpoint->query_until(qr/completed/, '');
$checkpoint->quit;
my $anew = $node->safe_psql('postgres', q{SELECT pg_relation_filenode('anew')});
$node->safe_psql('postgres', 'UPDATE anew SET n = -n WHERE id % 3 = 0; DELETE FROM anew WHERE id % 7 = 0');
my $before = $node->safe_psql('postgres', "$digest FROM anew t");
$node->safe_psql('postgres', q{SELECT injection_points_attach('flashback-recycle-fails', 'notice'); DROP TABLE anew});
is($node->safe_psql('postgres', "SELECT count(*) FROM polar_flashback_recycled WHERE relfilenode = $anew"), 0, 'a file that could not be kept');
crash($node);
$node->start;
my ($made) = glob($node->data_dir . "/base/pgsql_tmp_polar_recycle/*_${anew}_*.0");
is(unpack('H*', substr slurp_file($made), 0, 8), '0' x 16, 'made anew by replay, and kept with a page of zeroes');
$node->safe_psql('postgres', 'FLASHBACK TABLE anew TO BEFORE DROP');
is($node->safe_psql('postgres', "$digest FROM anew t"), $before, 'gives all rows');

# A transaction that lasts longer than the WAL that is read for a moment
$node->safe_psql('postgres', q{CREATE SCHEMA old; SELECT make('long'); ALTER TABLE long SET SCHEMA old});
my $long = $node->safe_psql('postgres', "$digest FROM old.long t");
my $transaction = $node->background_psql('postgres');
$transaction->query_safe('BEGIN; UPDATE old.long SET n = 0; SET client_min_messages = warning; DROP SCHEMA old CASCADE; CREATE TABLE passing (a int); DROP TABLE passing');
checkpoint($node) for 1 .. 2;
$transaction->query_safe('COMMIT');
$transaction->quit;
my ($oid, $lsn, $definition) = split /\|/, $node->safe_psql('postgres', q{SELECT relation, lsn, definition FROM polar_flashback_dropped() WHERE relation_name = 'long' AND schema_name = 'old' AND kind = 'dropped'});
is($definition, "CREATE TABLE old.long (\n    id integer NOT NULL,\n    n integer,\n    body pg_catalog.text\n);\nALTER TABLE old.long ADD CONSTRAINT long_pkey PRIMARY KEY (id);", 'what a long transaction has dropped is listed, too');
$node->safe_psql('postgres', "SELECT polar_flashback_before_drop($oid, '$lsn', result_schema => 'public')");
is($node->safe_psql('postgres', "$digest FROM long t"), $long, 'and given back');

# While the commit is keeping the file, others see the new one already
$node->safe_psql('postgres', q{SELECT make('held')});
my $held = moment();
my $is = $node->safe_psql('postgres', "$digest FROM held t");
my $session = in_background($node, 'flashback-recycle-linked', 'TRUNCATE held');
is($node->safe_psql('postgres', 'SELECT count(*) FROM held'), 0, 'it is truncated');
my $reader = $node->background_psql('postgres', on_error_stop => 0);
$reader->query_until(qr/started/, "\\echo started\n$digest FROM polar_flashback_rows(NULL::held, '$held') t;\n");
wait_until(sub { $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'}) eq '1' }, 'the reader to wait');
$node->safe_psql('postgres', q{SELECT injection_points_detach('flashback-recycle-linked'); SELECT injection_points_wakeup('flashback-recycle-linked')});
$reader->query_until(qr/\Q$is\E/, '');
pass('whoever reads waits for the file');
$session->query_until(qr/completed/, '');
$_->quit for $session, $reader;

# TOAST rewritten alone, both, and the heap alone
my $toast = $node->safe_psql('postgres', q{SELECT make('t'); SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 't'}) =~ s/^\n//r;
my $first = moment();
$is = $node->safe_psql('postgres', "$digest FROM t");
for my $command ('UPDATE t SET body = NULL WHERE id % 20 = 0', "VACUUM FULL $toast", 'VACUUM FULL t', 'UPDATE t SET body = n', "VACUUM t; VACUUM FULL $toast", 'CLUSTER t USING t_pkey', 'TRUNCATE t')
{
	$node->safe_psql('postgres', $_) for split /; /, $command;
	is($node->safe_psql('postgres', "$digest FROM polar_flashback_rows(NULL::t, '$first') t"), $is, "after $command");
}

# Damage.  The pages are those of the file: nothing has changed them since the point.
$node->safe_psql('postgres', q{SELECT make('hurt')});
checkpoint($node);
my $hurt = moment();
$is = $node->safe_psql('postgres', "$digest FROM hurt t");
my $number = $node->safe_psql('postgres', q{SELECT pg_relation_filenode('hurt')});
$node->safe_psql('postgres', 'TRUNCATE hurt');
my ($path) = glob($node->data_dir . "/base/pgsql_tmp_polar_recycle/*_${number}_*.0");
my $good = slurp_file($path);
my $sql = "$digest FROM polar_flashback_rows(NULL::hurt, '$hurt') t";

sub put
{
	my ($content) = @_;
	open my $file, '+<', $path or die "$path: $!";
	binmode $file;
	truncate $file, 0 or die $!;
	print $file $content;
	close $file or die $!;
	return;
}
is($node->safe_psql('postgres', $sql), $is, 'the file is whole');
my $bad = $good;
substr($bad, 5 * 8192 + 5000, 4, 'oops');
put($bad);
fails($sql, qr/ERROR:  invalid page in block 5 of kept file/, 'a damaged page');
put(substr($good, 0, 3 * 8192 + 100));
fails($sql, qr/ERROR:  invalid page in block 3 of kept file/, 'a file that was cut off');
unlink $path or die $!;
fails($sql, qr/ERROR:  could not open file/, 'a file that has gone');
append_to_file($path, '');
fails($sql, qr/ERROR:  invalid page in block 0 of kept file/, 'an empty one');
put($good);
is($node->safe_psql('postgres', $sql), $is, 'the file is whole again');

# Bytes that a checksum vouches for; FLOE_TEST_LONG=1 makes more of them
srand(4711);
my $damages = $ENV{FLOE_TEST_LONG} ? 1000 : 60;
my ($errors, $rows) = (0, 0);
for my $round (1 .. $damages)
{
	my $page = substr($good, 8192 * 2, 8192);
	my $length = $round % 3 == 0 ? 8192 : $round % 3 == 1 ? 24 : 600;
	substr($page, 8 + int(rand($length - 8)), 1, chr(int(rand(256)))) for 0 .. int(rand(4));
	my $sum = $node->safe_psql('postgres', q{SELECT page_checksum('\x} . unpack('H*', $page) . q{'::bytea, 2)});
	substr($page, 8, 2, pack('s', $sum));
	my $content = $good;
	substr($content, 8192 * 2, 8192, $page);
	put($content);
	my ($out, $err);
	$node->psql('postgres', $sql, stdout => \$out, stderr => \$err) == 0 ? $rows++ : $errors++;
	# The next question would not be answered
	last if $err =~ /server closed the connection/;
}
is($errors + $rows, $damages, "$damages damaged pages: $errors errors, $rows times rows");
is($node->safe_psql('postgres', 'SELECT 1'), '1', 'and the server is there');
cmp_ok($errors, '>', 20, 'many are noticed');
put($good);
is($node->safe_psql('postgres', $sql), $is, 'the server goes on');
my ($descriptor) = glob($node->data_dir . "/base/pgsql_tmp_polar_recycle/*_${number}_*.kept");
my $kept = slurp_file($descriptor);
open my $file, '+<', $descriptor or die $!;
print $file 'nonsense';
close $file;
isnt($node->psql('postgres', $sql), 0, 'a damaged descriptor is an error');

# What is not kept
$node->append_conf('postgresql.conf', 'polar_flashback_recycle_max_size = 1MB');
$node->reload;
$node->safe_psql('postgres', q{SELECT make('large'); INSERT INTO large SELECT id + 10000, n, repeat('x', 1000) FROM large});
my $large = moment();
$node->safe_psql('postgres', 'CHECKPOINT; TRUNCATE large');
fails("SELECT polar_flashback_count('large', '$large')", qr/ERROR:  table "large" was rewritten or truncated since.*\nDETAIL:  Its file of before is not kept: it was too large.*\nHINT:  It can be read as of/, 'one that is too large');
$node->append_conf('postgresql.conf', "polar_flashback_recycle_max_size = 1GB\npolar_enable_fast_recovery_area = off\n");
$node->restart;
await_point($node);
$node->safe_psql('postgres', 'INSERT INTO large VALUES (1)');
$large = moment();
$node->safe_psql('postgres', 'TRUNCATE large');
fails("SELECT polar_flashback_count('large', '$large')", qr/ERROR:  table "large" was rewritten.*\nDETAIL:  Files of before are kept only while polar_enable_fast_recovery_area is on/, 'without a recovery area');
$node->safe_psql('postgres', 'DROP TABLE large');
fails('FLASHBACK TABLE large TO BEFORE DROP', qr/ERROR:  there is no dropped table "large".*\nDETAIL:  Files of dropped tables are kept only while/, 'nor can a dropped one be given back');
is($node->safe_psql('postgres', 'SELECT count(*) FROM polar_flashback_dropped()'), 0, 'and none is listed');
$node->stop;
done_testing();
