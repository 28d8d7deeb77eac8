
=pod

=head1 NAME

Floe::Test::Library - a small library that is put before the C library

=head1 SYNOPSIS

  use Floe::Test::Library qw(build_library);

  my $library = build_library($code) or plan skip_all => 'no C compiler';
  local $ENV{LD_PRELOAD} = $library;

=head1 DESCRIPTION

What the code begins with:

  static int path_of(int fd, char *path);    /* at least PATH_SIZE bytes; 0 if it has none */
  BEFORE_WRITES(act)    /* act(fd, offset, length) before each pwrite and its like */
  BEFORE_SYNCS(act)     /* act(fd) before each fsync and fdatasync */
  NEXT(name)            /* the C library's own */
  total(iov, n)         /* the bytes of a vector */

=cut

package Floe::Test::Library;

use strict;
use warnings FATAL => 'all';
use Exporter 'import';
use PostgreSQL::Test::Utils;

our @EXPORT_OK = qw(build_library);

my $prelude = <<'C';
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define PATH_SIZE 4097
#define NEXT(name) dlsym(RTLD_NEXT, #name)

static inline int
path_of(int fd, char *path)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_SIZE - 1);
	if (n <= 0)
		return 0;
	path[n] = '\0';
	return 1;
}

static inline size_t
total(const struct iovec *iov, int n)
{
	size_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += iov[i].iov_len;
	return sum;
}

#define WRITE(name, act) \
ssize_t name(int fd, const void *buffer, size_t length, off_t offset) \
{ \
	ssize_t (*next) (int, const void *, size_t, off_t) = NEXT(name); \
	act(fd, offset, length); \
	return next(fd, buffer, length, offset); \
}
#define WRITEV(name, act) \
ssize_t name(int fd, const struct iovec *iov, int n, off_t offset) \
{ \
	ssize_t (*next) (int, const struct iovec *, int, off_t) = NEXT(name); \
	act(fd, offset, total(iov, n)); \
	return next(fd, iov, n, offset); \
}
#define BEFORE_WRITES(act) \
	WRITE(pwrite, act) WRITE(pwrite64, act) WRITEV(pwritev, act) WRITEV(pwritev64, act)

#define SYNC(name, act) \
int name(int fd) \
{ \
	int (*next) (int) = NEXT(name); \
	act(fd); \
	return next(fd); \
}
#define BEFORE_SYNCS(act) SYNC(fsync, act) SYNC(fdatasync, act)
C

=pod

=over

=item build_library(code)

The path of a library made of the C code, or undef without a compiler.

=back

=cut

sub build_library
{
	my ($code) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir('library');
	append_to_file("$directory/library.c", "$prelude#line 1 \"library\"\n$code");
	return system('gcc', '-shared', '-fPIC', '-O1', '-o', "$directory/library.so", "$directory/library.c", '-ldl') == 0
	  ? "$directory/library.so"
	  : undef;
}

1;
