
=pod

=head1 NAME

Floe::Test::Power - a power failure by the rules of fsync: what was written and not synced is lost or torn, whatever file it is in

=head1 SYNOPSIS

  use Floe::Test::Power qw(unsynced);

  my $power = unsynced() or plan skip_all => 'no C compiler';
  local $ENV{LD_PRELOAD} = $power->{library};
  local $ENV{FLOE_UNSYNCED} = $power->{directory};
  ... start with fsync = on, work, crash($cluster) ...
  my $lost = $power->{fail}->($cluster);

=head1 DESCRIPTION

A small library put before the C library keeps what each write overwrites until that file is synced: relations, WAL, commit
status and multixacts, each by its inode. A sync only forgets; of WAL and
status it takes 5 ms, as a disk's would. After the crash each sector of 512 bytes
that was written and not synced gets any of the contents that it has had since the last sync. Sizes and names of files are as
the processes have left them, as if the file system had kept its own journal.

=cut

package Floe::Test::Power;

use strict;
use warnings FATAL => 'all';
use Carp;
use Exporter 'import';
use PostgreSQL::Test::Utils;
use Floe::Test::Library qw(build_library);
use Floe::Test::Torn qw(verifies);

our @EXPORT_OK = qw(unsynced);

my $sector = 512;
my $page_size = 8192;

my $code = <<'C';
/* Where the versions of this file are kept; 0 if nobody wants them */
static int
kept(int fd, char *name, size_t size)
{
	const char *directory = getenv("FLOE_UNSYNCED");
	char path[PATH_SIZE];
	struct stat st;

	if (directory == NULL || !path_of(fd, path))
		return 0;
	if (strstr(path, "/pgdata/base/") == NULL && strstr(path, "/pgdata/global/") == NULL &&
		strstr(path, "/pgdata/pg_wal/0") == NULL && strstr(path, "/pgdata/pg_xact/") == NULL &&
		strstr(path, "/pgdata/pg_multixact/") == NULL)
		return 0;
	if (strstr(path, "pg_control") != NULL || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	snprintf(name, size, "%s/%llu", directory, (unsigned long long) st.st_ino);
	return 1;
}

static void
keep(int fd, off_t offset, size_t length)
{
	char name[4200];
	struct { uint64_t offset, length; } head = {offset, length};
	struct iovec parts[2];
	char *old;
	ssize_t got = 0, n;
	int saved = errno, out;

	if (length == 0 || !kept(fd, name, sizeof(name)))
		return;
	old = calloc(1, length);
	if (old == NULL)
		abort();
	/* What lies beyond the end is zeroes */
	while (got < (ssize_t) length && (n = pread(fd, old + got, length - got, offset + got)) > 0)
		got += n;
	out = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (out < 0)
		abort();
	parts[0].iov_base = &head;
	parts[0].iov_len = sizeof(head);
	parts[1].iov_base = old;
	parts[1].iov_len = length;
	if (writev(out, parts, 2) != (ssize_t) (sizeof(head) + length))
		abort();
	close(out);
	free(old);
	errno = saved;
}

BEFORE_WRITES(keep)

/* Else WAL and commit status would hardly ever be written and not synced at a crash */
static void
take_time(int fd)
{
	char path[PATH_SIZE];

	if (path_of(fd, path) && strstr(path, "/pgdata/pg_") != NULL)
		usleep(5000);
}

/* Instead of a sync, what is kept is forgotten */
#define FORGET(name) \
int name(int fd) \
{ \
	int (*next) (int) = NEXT(name); \
	char file[4200]; \
	if (!kept(fd, file, sizeof(file))) \
		return next(fd); \
	take_time(fd); \
	unlink(file); \
	return 0; \
}
FORGET(fsync) FORGET(fdatasync)

/* Another file may get its inode */
int
unlink(const char *path)
{
	int (*next) (const char *) = NEXT(unlink);
	const char *directory = getenv("FLOE_UNSYNCED");
	struct stat st;
	char name[4200];

	if (directory != NULL && stat(path, &st) == 0 && st.st_nlink == 1)
	{
		snprintf(name, sizeof(name), "%s/%llu", directory, (unsigned long long) st.st_ino);
		next(name);
	}
	return next(path);
}
C

# The files that lose something, relative to the data directory
sub _files
{
	my ($directory) = @_;
	return map { substr($_, length($directory) + 1) } grep { -f $_ }
	  glob("$directory/base/*/* $directory/global/* $directory/pg_wal/0* $directory/pg_xact/* $directory/pg_multixact/*/*");
}

# versions(file of kept contents): {page number => [versions of the page's sectors: { sector => content }, oldest first]}
sub _overwritten
{
	my ($path) = @_;
	my %pages;
	my $records = slurp_file($path);
	for (my $at = 0; $at + 16 <= length $records;)
	{
		my ($offset, $length) = unpack 'Q< Q<', substr($records, $at, 16);
		my $old = substr($records, $at + 16, $length);
		$at += 16 + $length;
		# A writer that was killed before it could write
		last if length $old < $length;
		for (my $from = $offset - $offset % $page_size; $from < $offset + $length; $from += $page_size)
		{
			my %sectors;
			for (my $s = $from; $s < $from + $page_size; $s += $sector)
			{
				# A sector of which only a part was overwritten has its rest from then, which a later write may have changed: left out
				$sectors{ $s - $from } = substr($old, $s - $offset, $sector) if $s >= $offset && $s + $sector <= $offset + $length;
			}
			push @{ $pages{ $from / $page_size } }, \%sectors if %sectors;
		}
	}
	return \%pages;
}

# One page after the failure, by one of the ways in which disks tear
sub _after
{
	my ($is, $versions, $how) = @_;
	my $page = $is;
	# What each sector may hold beside what it holds
	my %oldest;
	my %any;
	foreach my $version (@$versions)
	{
		foreach my $at (keys %$version)
		{
			$oldest{$at} //= $version->{$at};
			push @{ $any{$at} }, $version->{$at};
		}
	}
	my $cut = $sector * (1 + int rand($page_size / $sector - 1));
	my $half = rand() < 0.5 ? 0 : 4096;
	foreach my $at (keys %any)
	{
		next if $at + $sector > length $page;
		my $old = $oldest{$at};
		if ($how eq 'mixed')
		{
			next if rand() < 0.5;
			$old = $any{$at}[ int rand(@{ $any{$at} }) ];
		}
		next if $how eq 'cut' && $at < $cut;
		next if $how eq 'half' && ($at < 4096 ? 0 : 4096) != $half;
		substr($page, $at, $sector) = $old;
	}
	return $page;
}

=pod

=over

=item unsynced()

Returns undef without a C compiler, else {library, directory, fail}: with the library preloaded and FLOE_UNSYNCED set to the
directory, fail(cluster) does to the files of a crashed instance what a power failure may. Each page with sectors that were not
synced is, by lot, whole, wholly old, mixed of all versions of each sector, new up to a point, or new in one half of 4 kB. A page
of a relation that verifies although it is neither old nor new is torn otherwise: nothing that looks at checksums can see it.
Returns how many pages were changed of each kind: {relation, torn, wal, status}; C<torn> are those of relations that are mixed.

=back

=cut

sub unsynced
{
	my $target = build_library($code);
	return undef unless $target;
	my $directory = PostgreSQL::Test::Utils::tempdir('unsynced');
	my $fail = sub {
		my ($cluster) = @_;
		my %result = (relation => 0, torn => 0, wal => 0, status => 0);
		foreach my $file (_files($cluster->data_dir))
		{
			my $path = $cluster->data_dir . "/$file";
			my $kept = "$directory/" . (stat $path)[1];
			next unless -s $kept;
			my $kind = $file =~ /^pg_wal/ ? 'wal' : $file =~ /^pg_/ ? 'status' : 'relation';
			my $pages = _overwritten($kept);
			open my $out, '+<:raw', $path or croak "could not open $path: $!";
			foreach my $number (sort { $a <=> $b } keys %$pages)
			{
				my $is = '';
				seek $out, $number * $page_size, 0 or croak "seek: $!";
				read($out, $is, $page_size) // croak "could not read $path: $!";
				my $block = $number + ($file =~ /\.(\d+)$/ ? $1 * 131072 : 0);
				my $how = (qw(whole old mixed mixed cut half))[ int rand(6) ];
				next if $how eq 'whole';
				my $old = _after($is, $pages->{$number}, 'old');
				my $after;
				for (my $tries = 0; ; $tries++)
				{
					$after = _after($is, $pages->{$number}, $tries < 10 ? $how : 'old');
					last if $kind ne 'relation' || $after eq $is || $after eq $old || length $after < $page_size || !verifies($after, $block);
				}
				next if $after eq $is;
				seek $out, $number * $page_size, 0 or croak "seek: $!";
				print $out $after;
				$result{$kind}++;
				$result{torn}++ if $kind eq 'relation' && $after ne $old;
			}
			close $out or croak "could not write $path: $!";
			unlink $kept;
		}
		return \%result;
	};
	return { library => $target, directory => $directory, fail => $fail };
}

1;
