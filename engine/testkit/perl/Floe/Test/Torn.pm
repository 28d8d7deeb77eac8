
=pod

=head1 NAME

Floe::Test::Torn - what a power failure does to pages that were written and not synced

=head1 SYNOPSIS

  use Floe::Test::Torn qw(remember_files forget_files tear_pages redo_pointer);

  $cluster->safe_psql('postgres', 'CHECKPOINT');
  my $before = remember_files($cluster);
  ... work, crash($cluster) ...
  my $torn = tear_pages($cluster, $before, sector => 512);
  forget_files($before);

=head1 DESCRIPTION

After a checkpoint everything written before it is on the disk. What is written later is there, in the
order of the disk's choice, sector by sector, only when it has been synced. So each sector of a page that
differs from what it was after the checkpoint may have its old or its new content. C<tear_pages> decides
by lot for each sector; nothing that a checkpoint has synced is touched.

=cut

package Floe::Test::Torn;

use strict;
use warnings FATAL => 'all';
use Carp;
use Exporter 'import';
use PostgreSQL::Test::Utils;

our @EXPORT_OK = qw(remember_files forget_files tear_pages redo_pointer relation_files repair_source verifies);

my $page_size = 8192;

# PostgreSQL's page checksum (storage/checksum_impl.h)
my @base_offsets = (
	0x5B1F36E9, 0xB8525960, 0x02AB50AA, 0x1DE66D2A, 0x79FF467A, 0x9BB9F8A3, 0x217E7CD2, 0x83E13D2C,
	0xF8D4474F, 0xE39EB970, 0x42C6AE16, 0x993216FA, 0x7B093B5D, 0x98DAFF3C, 0xF718902A, 0x0B1C9CDB,
	0xE58F764B, 0x187636BC, 0x5D7B3BB1, 0xE73DE7DE, 0x92BEC979, 0xCCA6C0B2, 0x304A0979, 0x85AA43D4,
	0x783125BB, 0x6CA8EAA2, 0xE407EAC6, 0x4B5CFC3E, 0x9FBF8C76, 0x15CA20BE, 0xF2CA9FD3, 0x959BD756);

=pod

=over

=item verifies(page, block)

Whether the checksum in the page is right for it.

=back

=cut

sub verifies
{
	my ($page, $block) = @_;
	# Half the time of floating point; 64 bits are enough for each step
	use integer;
	my ($stored) = unpack 'x8 v', $page;
	substr($page, 8, 2) = "\0\0";
	my @words = (unpack('V*', $page), (0) x 64);
	my @sums = @base_offsets;
	my $at = 0;
	while ($at < @words)
	{
		foreach my $sum (@sums)
		{
			my $mixed = $sum ^ $words[ $at++ ];
			$sum = (($mixed * 16777619) & 0xFFFFFFFF) ^ ($mixed >> 17);
		}
	}
	my $checksum = $block;
	$checksum ^= $_ foreach @sums;
	return ($checksum % 65535) + 1 == $stored;
}

=pod

=over

=item redo_pointer(cluster)

The redo pointer in pg_control, as text; the instance may be down.

=cut

sub redo_pointer
{
	my ($cluster) = @_;
	my ($out, $err) = run_command([ 'pg_controldata', '-D', $cluster->data_dir ]);
	return $1 if $out =~ /^Latest checkpoint's REDO location:\s+(\S+)$/m;
	croak "pg_controldata tells no redo pointer: $err";
}

=pod

=item relation_files(directory)

The files below base, global and pg_tblspc that hold relations, relative to the directory.

=cut

sub relation_files
{
	my ($directory) = @_;
	my @files;
	foreach my $path (glob("$directory/base/*/* $directory/global/* $directory/pg_tblspc/*/PG_*/*/*"))
	{
		push @files, substr($path, length($directory) + 1)
		  if $path =~ m{/\d+(?:_(?:fsm|vm|init))?(?:\.\d+)?$} && -f $path;
	}
	return @files;
}

sub _read
{
	my ($path) = @_;
	open my $in, '<:raw', $path or croak "could not read $path: $!";
	local $/;
	my $content = <$in>;
	close $in;
	return $content // '';
}

=pod

=item remember_files(cluster)

Copies the files of all relations, into one. To be called after a checkpoint; writes may go on meanwhile, because
whatever is read was written after the checkpoint's sync or is what it synced.

=cut

sub remember_files
{
	my ($cluster) = @_;
	my %before = (redo => redo_pointer($cluster), path => PostgreSQL::Test::Utils::tempdir('before') . '/files', files => {});
	open my $out, '>:raw', $before{path} or croak "could not write $before{path}: $!";
	my $at = 0;
	foreach my $file (relation_files($cluster->data_dir))
	{
		my $source = $cluster->data_dir . "/$file";
		# It may be dropped while we copy
		open my $in, '<:raw', $source or next;
		local $/;
		my $content = <$in> // '';
		close $in;
		print $out $content;
		$before{files}{$file} = [ $at, length $content ];
		$at += length $content;
	}
	close $out or croak "could not write $before{path}: $!";
	return \%before;
}

# What a file was; empty if it was not there
sub _remembered
{
	my ($before, $file) = @_;
	my ($at, $length) = @{ $before->{files}{$file} // return '' };
	$before->{handle} //= do { open my $in, '<:raw', $before->{path} or croak "could not read $before->{path}: $!"; $in };
	seek $before->{handle}, $at, 0 or croak "seek: $!";
	read($before->{handle}, my $content, $length) // croak "could not read $before->{path}: $!";
	return $content;
}

=pod

=item forget_files(before)

Removes what remember_files() has copied; else it goes with the test, and a test of many crashes fills the disk.

=cut

sub forget_files
{
	my ($before) = @_;
	close delete $before->{handle} if $before->{handle};
	unlink $before->{path};
	return;
}

=pod

=item tear_pages(cluster, before, options)

For the files of a crashed instance. Options: C<sector> (default 4096), C<share> of the changed pages that
are torn (default 0.5), C<unseen>: whether a torn page may verify by accident, one in 65,535 does (default no: it is
torn otherwise, as nothing that looks at checksums alone can find it), C<undo>: whether truncations and removals are undone, too (default no), C<only>: a
pattern of file names. Returns {torn, unseen, lost, whole, forks => {fork => torn}, written => {file => pages that differ}, undone}: torn
pages are neither the old nor the new one; unseen is how often one verified all the same; lost ones are the old.

=cut

sub tear_pages
{
	my ($cluster, $before, %options) = @_;
	my $sector = $options{sector} // 4096;
	my $share = $options{share} // 0.5;
	my $only = $options{only} // qr/./;
	my %result = (torn => 0, lost => 0, whole => 0, undone => 0, unseen => 0, forks => {}, written => {});

	my $redo = redo_pointer($cluster);
	croak "a checkpoint came between: redo pointer was $before->{redo}, is $redo" if $redo ne $before->{redo};

	my %now = map { $_ => 1 } relation_files($cluster->data_dir);
	my @files = sort keys %now;
	if ($options{undo})
	{
		push @files, grep { !$now{$_} } sort keys %{ $before->{files} };
	}
	foreach my $file (@files)
	{
		next unless $file =~ $only;
		my $path = $cluster->data_dir . "/$file";
		my $old = _remembered($before, $file);
		my $new = -e $path ? _read($path) : '';
		next if $old eq $new;
		my ($fork) = $file =~ /_(fsm|vm|init)/;
		$fork //= 'main';
		my $changed = 0;

		if ($options{undo} && length($old) > length($new))
		{
			# a removed file's content, or the tail that was cut off, is back
			substr($new, length($new)) = substr($old, length($new));
			$changed = 1;
			$result{undone}++;
		}
		for (my $at = 0; $at + $page_size <= length($new); $at += $page_size)
		{
			my $was = $at < length($old) ? substr($old, $at, $page_size) : "";
			my $is = substr($new, $at, $page_size);
			next if $was eq $is;
			$was .= "\0" x ($page_size - length($was));
			next if $was eq $is;
			$result{written}{$file}++;
			if (rand() >= $share)
			{
				$result{whole}++;
				next;
			}
			my $block = $at / $page_size + ($file =~ /\.(\d+)$/ ? $1 * 131072 : 0);
			my $mixed;
			while (1)
			{
				$mixed = $is;
				for (my $s = 0; $s < $page_size; $s += $sector)
				{
					substr($mixed, $s, $sector) = substr($was, $s, $sector) if rand() < 0.5;
				}
				last if $mixed eq $is || $mixed eq $was || !verifies($mixed, $block);
				$result{unseen}++;
				last if $options{unseen};
			}
			if ($mixed eq $is) { $result{whole}++; next; }
			elsif ($mixed eq $was) { $result{lost}++ }
			else
			{
				$result{torn}++;
				$result{forks}{$fork}++;
			}
			substr($new, $at, $page_size) = $mixed;
			$changed = 1;
		}
		next unless $changed;
		open my $out, '>:raw', $path or croak "could not write $path: $!";
		print $out $new;
		close $out or croak "could not write $path: $!";
	}
	return \%result;
}

=pod

=item repair_source(cluster)

A connection string for polar_page_repair_sources, without quotes, for the role page_repair.

=back

=cut

sub repair_source
{
	my ($cluster) = @_;
	return 'host=' . $cluster->host . ' port=' . $cluster->port . ' dbname=postgres user=page_repair';
}

1;
