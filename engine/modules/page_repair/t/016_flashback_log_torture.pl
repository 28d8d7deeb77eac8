# The torture of 005_torture.pl with the flashback log as the only source, the guard on, for a primary and for a standby with a log of
# its own.
use strict;
use warnings FATAL => 'all';
use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{FLOE_TORTURE_SOURCE} = 'flashback-log';
$ENV{FLOE_TORTURE_STANDBY_CRASHES} //= $ENV{FLOE_TEST_LONG} ? 4 : 1;
my $done = do "$FindBin::Bin/005_torture.pl";
die $@ if $@;
die "could not read 005_torture.pl: $!" unless defined $done;
