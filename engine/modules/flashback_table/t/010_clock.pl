# A clock that is set back is said, with the place.
use strict;
use warnings FATAL => 'all';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Floe::Test::Flashback qw(new_flashback checkpoint);
use Floe::Test::Library qw(build_library);

# While the file is there it is 100 s earlier
my $library = build_library(<<'C') or plan skip_all => 'no C compiler';
#include <sys/time.h>

int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	int (*next) (struct timeval *, void *) = NEXT(gettimeofday);
	int result = next(tv, tz);

	if (getenv("FLOE_CLOCK") != NULL && access(getenv("FLOE_CLOCK"), F_OK) == 0)
		tv->tv_sec -= 100;
	return result;
}
C
my $back = PostgreSQL::Test::Utils::tempdir('clock') . '/back';
local $ENV{LD_PRELOAD} = $library;
local $ENV{FLOE_CLOCK} = $back;
my $node = new_flashback('node', "polar_enable_fast_recovery_area = on\n");
delete local $ENV{LD_PRELOAD};
$node->safe_psql('postgres', 'CREATE EXTENSION flashback_table; CREATE TABLE t (a int)');
checkpoint($node);

sub count_now
{
	my $moment = $node->safe_psql('postgres', 'INSERT INTO t VALUES (0); SELECT clock_timestamp()');
	my ($out, $err);
	$node->psql('postgres', "SELECT polar_flashback_count('t', '$moment')", stdout => \$out, stderr => \$err);
	return ($out, $err);
}

my ($count, $said) = count_now();
is($count, 1, 'with a clock that goes on');
unlike($said, qr/WARNING/, 'nothing is said');
append_to_file($back, '');
$node->safe_psql('postgres', 'INSERT INTO t VALUES (1)');
unlink $back or die $!;
($count, $said) = count_now();
is($count, 3, 'later moments are what they are');
like($said, qr/WARNING:  the clock was set back by (?:[6-9]\d|100)\d{3} ms at [0-9A-F]+\/[0-9A-F]+\nDETAIL:  Which transactions had committed until a moment before that is ambiguous\./, 'but a clock that went back is said');
is(scalar(() = $said =~ /WARNING/g), 1, 'once');
$node->stop;

done_testing();
