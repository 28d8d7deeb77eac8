/*
 * Storage on which a request is dear, made of one on which it is not: a library that is loaded before
 * the C library's and makes each request to a file of a database wait, FLOE_DEAR_US microseconds and
 * one second for each FLOE_DEAR_BYTES bytes.  WAL and everything else is left alone.
 *
 * It counts what it did, in the file FLOE_DEAR_COUNTS that all processes share, so that the benchmark
 * can prove that each request really took as long.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind
{
	READ, WRITE, EXTEND, KINDS
};

struct counts
{
	_Atomic uint64_t requests, bytes, nanoseconds;
};

static struct counts *counts;
static long per_request_ns, bytes_per_second;

__attribute__((constructor)) static void
start(void)
{
	const char *us = getenv("FLOE_DEAR_US"), *bytes = getenv("FLOE_DEAR_BYTES"), *path = getenv("FLOE_DEAR_COUNTS");
	int			fd;

	if (!us || !bytes || !path || (fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
		return;
	per_request_ns = atol(us) * 1000;
	bytes_per_second = atol(bytes);
	counts = mmap(NULL, KINDS * sizeof(struct counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counts == MAP_FAILED)
		counts = NULL;
	close(fd);
}

/* Files of relations: …/base/<database>/<number> */
static int
is_relation(int fd)
{
	char		link[64], path[4096], *base;
	ssize_t		n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return 0;
	path[n] = '\0';
	base = strstr(path, "/base/");
	return base && base[6] >= '0' && base[6] <= '9';
}

static uint64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
dear(int fd, enum kind kind, size_t bytes)
{
	int			saved = errno;
	uint64_t	before = now(), wait;
	struct timespec t;

	if (!counts || !is_relation(fd))
		return;
	wait = per_request_ns + (uint64_t) bytes * 1000000000 / bytes_per_second;
	t.tv_sec = wait / 1000000000;
	t.tv_nsec = wait % 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
	counts[kind].requests++;
	counts[kind].bytes += bytes;
	counts[kind].nanoseconds += now() - before;
	errno = saved;
}

static size_t
total(const struct iovec *iov, int n)
{
	size_t		bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

#define ONE(name, constant, kind) \
ssize_t name(int fd, constant void *buffer, size_t length, off_t offset) \
{ \
	ssize_t (*next) (int, constant void *, size_t, off_t) = dlsym(RTLD_NEXT, #name); \
	dear(fd, kind, length); \
	return next(fd, buffer, length, offset); \
}
#define MANY(name, kind) \
ssize_t name(int fd, const struct iovec *iov, int n, off_t offset) \
{ \
	ssize_t (*next) (int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, #name); \
	dear(fd, kind, total(iov, n)); \
	return next(fd, iov, n, offset); \
}
#define GROW(name) \
int name(int fd, off_t offset, off_t length) \
{ \
	int (*next) (int, off_t, off_t) = dlsym(RTLD_NEXT, #name); \
	dear(fd, EXTEND, 0); \
	return next(fd, offset, length); \
}

ONE(pread,, READ) ONE(pread64,, READ) MANY(preadv, READ) MANY(preadv64, READ)
ONE(pwrite, const, WRITE) ONE(pwrite64, const, WRITE) MANY(pwritev, WRITE) MANY(pwritev64, WRITE)
GROW(posix_fallocate) GROW(posix_fallocate64)
