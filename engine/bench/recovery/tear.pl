# Tears pages of a crashed instance: tear.pl <data directory> <its base and global at the checkpoint> <redo pointer> <share> <seed>.
# Prints how many are torn.
use strict;
use warnings FATAL => 'all';
use Test::More;
use Floe::Test::Torn qw(remember_files forget_files tear_pages);

package Crashed
{
	sub data_dir { return $_[0]{directory} }
}

my ($directory, $before, $redo, $share, $seed) = @ARGV;
srand($seed);
my $remembered = remember_files(bless { directory => $before }, 'Crashed');
is($remembered->{redo}, $redo, 'the files are those of the checkpoint');
my $torn = tear_pages(bless({ directory => $directory }, 'Crashed'), $remembered, share => $share);
forget_files($remembered);
ok($torn->{torn} > 0, 'pages are torn');
note("torn $torn->{torn}");
done_testing();
