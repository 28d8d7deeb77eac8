
=pod

=head1 NAME

Floe::Test::Disk - blocks that a disk does not give any more, what was synced, and what a power failure takes

=head1 SYNOPSIS

  use Floe::Test::Disk qw(bad_sectors);

  my $disk = bad_sectors() or plan skip_all => 'no C compiler';
  local $ENV{LD_PRELOAD} = $disk->{library};
  local $ENV{FLOE_BAD_SECTORS} = $disk->{directory};
  $disk->{spoil}->('base/5/16384', 3);

=head1 DESCRIPTION

A write that was cut short within a sector leaves one that the disk refuses to read (EIO) until it is written
again. A small library put before the C library does the same for blocks that are named by files in a directory.

=cut

package Floe::Test::Disk;

use strict;
use warnings FATAL => 'all';
use Carp;
use Exporter 'import';
use PostgreSQL::Test::Utils;
use Floe::Test::Library qw(build_library);

our @EXPORT_OK = qw(bad_sectors record_syncs losable held_removals);

my $library = <<'C';
/* The mark of a block: <directory>/<path with _ for />@<block>.  Reading fails; writing takes the mark away. */
static int
marked(int fd, off_t offset, size_t length, int writing)
{
	const char *directory = getenv("FLOE_BAD_SECTORS");
	char path[PATH_SIZE], mark[8192];
	char *relation;
	int any = 0;

	if (directory == NULL || !path_of(fd, path))
		return 0;
	relation = strstr(path, "/pgdata/base/");
	if (relation == NULL)
		return 0;
	relation += strlen("/pgdata/");
	for (char *c = relation; *c; c++)
		if (*c == '/')
			*c = '_';
	for (off_t block = offset / 8192; block * 8192 < offset + (off_t) length; block++)
	{
		snprintf(mark, sizeof(mark), "%s/%s@%lld", directory, relation, (long long) block);
		if (writing)
			unlink(mark);
		else if (access(mark, F_OK) == 0)
			any = 1;
	}
	return any;
}

static void
take_marks_away(int fd, off_t offset, size_t length)
{
	marked(fd, offset, length, 1);
}

#define READ(name) \
ssize_t name(int fd, void *buffer, size_t length, off_t offset) \
{ \
	ssize_t (*next) (int, void *, size_t, off_t) = NEXT(name); \
	if (marked(fd, offset, length, 0)) { errno = EIO; return -1; } \
	return next(fd, buffer, length, offset); \
}
#define READV(name) \
ssize_t name(int fd, const struct iovec *iov, int n, off_t offset) \
{ \
	ssize_t (*next) (int, const struct iovec *, int, off_t) = NEXT(name); \
	if (marked(fd, offset, total(iov, n), 0)) { errno = EIO; return -1; } \
	return next(fd, iov, n, offset); \
}
READ(pread) READ(pread64) READV(preadv) READV(preadv64)
BEFORE_WRITES(take_marks_away)
C

# Each file that is synced is written down, by its path.
my $sync_library = <<'C';
static void
note(int fd)
{
	char path[PATH_SIZE];
	ssize_t n;
	int out;

	if (getenv("FLOE_SYNCS") == NULL || !path_of(fd, path))
		return;
	n = strlen(path);
	path[n] = '\n';
	out = open(getenv("FLOE_SYNCS"), O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (out < 0 || write(out, path, n + 1) != n + 1)
		abort();
	close(out);
}

BEFORE_SYNCS(note)
C

# What a file below polar_flog holds when it is synced is copied, by its inode; of a directory the names.
my $shadow_library = <<'C';
#include <dirent.h>

static void
keep(int fd)
{
	char path[PATH_SIZE], copy[4200], new[4300];
	static char buffer[65536];
	struct stat st;
	ssize_t n;
	off_t at = 0;
	FILE *out;

	if (getenv("FLOE_DURABLE") == NULL || !path_of(fd, path) || fstat(fd, &st) != 0 || strstr(path, "/polar_flog") == NULL)
		return;
	snprintf(copy, sizeof(copy), "%s/%llu", getenv("FLOE_DURABLE"), (unsigned long long) st.st_ino);
	snprintf(new, sizeof(new), "%s.%d", copy, (int) getpid());
	out = fopen(new, "w");
	if (out == NULL)
		abort();
	if (S_ISDIR(st.st_mode))
	{
		DIR *dir = opendir(path);
		struct dirent *de;

		while (dir && (de = readdir(dir)) != NULL)
			fprintf(out, "%s\n", de->d_name);
		if (dir)
			closedir(dir);
	}
	else
	{
		/* The descriptor may be for writing alone */
		int in = open(path, O_RDONLY);

		while (in >= 0 && (n = pread(in, buffer, sizeof(buffer), at)) > 0)
		{
			fwrite(buffer, 1, n, out);
			at += n;
		}
		if (in >= 0)
			close(in);
	}
	if (fclose(out) != 0 || rename(new, copy) != 0)
		abort();
}

BEFORE_SYNCS(keep)
C

# Whoever removes a file of this name waits while there is the mark
my $holding_library = <<'C';
int
unlink(const char *path)
{
	int (*next) (const char *) = NEXT(unlink);
	const char *mark = getenv("FLOE_HELD_REMOVALS");
	size_t length = strlen(path);

	if (mark != NULL && length > 5 && strcmp(path + length - 5, "/held") == 0)
		while (access(mark, F_OK) == 0)
			usleep(10000);
	return next(path);
}
C

=pod

=over

=item bad_sectors()

Returns undef without a C compiler, else {library, directory, spoil, left}: spoil(path, blocks...) makes blocks of a relation's
file below the data directory unreadable, left() is the number of those that are still.

=back

=cut

sub bad_sectors
{
	my $directory = PostgreSQL::Test::Utils::tempdir('bad');
	my $target = build_library($library);
	return undef unless $target;
	return {
		library => $target,
		directory => $directory,
		spoil => sub {
			my ($path, @blocks) = @_;
			append_to_file("$directory/" . ($path =~ tr{/}{_}r) . "\@$_", '') foreach @blocks;
			return;
		},
		left => sub { return scalar(() = glob("$directory/*\@*")) },
	};
}

=pod

=over

=item record_syncs()

Returns undef without a C compiler, else {library, file, synced}: with the library preloaded and FLOE_SYNCS set to the file,
synced() gives the paths of all files that were synced since its last call.

=back

=cut

sub record_syncs
{
	my $target = build_library($sync_library);
	return undef unless $target;
	my $file = PostgreSQL::Test::Utils::tempdir('syncs') . '/syncs';
	return {
		library => $target,
		file => $file,
		synced => sub {
			my @paths = -e $file ? split(/\n/, slurp_file($file)) : ();
			unlink $file;
			return @paths;
		},
	};
}

=pod

=over

=item losable()

Returns undef without a C compiler, else {library, directory, lose}: with the library preloaded and FLOE_DURABLE set to the
directory, lose(cluster) does to the flashback log of a crashed instance the worst that a power failure can: each file has what
it held when it was synced last, and files are gone whose names were not synced. Returns how many files lost something.

=back

=cut

sub losable
{
	my $target = build_library($shadow_library);
	return undef unless $target;
	my $directory = PostgreSQL::Test::Utils::tempdir('durable');
	my $inode = sub { return (stat $_[0])[1] };
	return {
		library => $target,
		directory => $directory,
		lose => sub {
			my ($cluster) = @_;
			my $log = $cluster->data_dir . '/polar_flog';
			my $names = "$directory/" . $inode->($log);
			my %durable = map { $_ => 1 } -e $names ? split(/\n/, slurp_file($names)) : ();
			my $lost = 0;
			foreach my $name (grep { !/^\.+$/ } slurp_dir($log))
			{
				my $path = "$log/$name";
				my $copy = "$directory/" . $inode->($path);
				my $is = slurp_file($path);
				my $was = -e $copy ? slurp_file($copy) : "\0" x length $is;
				if (!$durable{$name})
				{
					unlink $path or croak "could not remove $path: $!";
				}
				elsif ($is ne $was)
				{
					# In its place: it stays the same file
					open my $out, '+<:raw', $path or croak "could not write $path: $!";
					truncate $out, length $was or croak "truncate: $!";
					print $out $was;
					close $out or croak "could not write $path: $!";
				}
				else { next }
				$lost++;
			}
			return $lost;
		},
	};
}

=pod

=over

=item held_removals()

Returns undef without a C compiler, else {library, mark, hold, release}: with the library preloaded and FLOE_HELD_REMOVALS set to the
mark, whoever removes a file named "held" waits from hold() until release().

=back

=cut

sub held_removals
{
	my $target = build_library($holding_library);
	return undef unless $target;
	my $mark = PostgreSQL::Test::Utils::tempdir('held') . '/mark';
	return {
		library => $target,
		mark => $mark,
		hold => sub { append_to_file($mark, ''); return; },
		release => sub { unlink $mark or croak "could not remove $mark: $!"; return; },
	};
}

1;
