// SPDX-License-Identifier: Apache-2.0
/*
 * floe-tree: the agent's door to directory trees that belong to another user.
 *
 * The agent is root. What lies in an instance's tree belongs to a user whose superuser is a stranger, and that user may
 * swap any file or directory for a link at any moment. So root does nothing there: this program switches its
 * file-system identity (setfsuid, setfsgid, no supplementary groups) to the tree's owner, gives up every capability that
 * it does not need, and lets the kernel's own permission checks decide. What a planted link could make it do, the owner
 * could have done alone. Its real, effective and saved user stay root's, so that the owner can neither signal, stop nor
 * trace it.
 *
 * Always true:
 * - no last component is followed when it is a link, and nothing below a tree's root is reached through one
 * - no mount is crossed below a tree's root
 * - every open is non-blocking, so that a pipe or a lease in a file's place never holds it up
 * - descriptors and memory are bounded, however deep a tree is
 * - exit status 0 means done and on disk (clone and fill excepted: who makes a tree syncs it once, at its end); 1 means
 *   failed, with one line on standard error: floe-tree: ERRNAME: verb "path": reason; 2 means called wrongly
 *
 * hand-over is the one verb that acts as root. It gives what it has opened and looked at, by that descriptor, and
 * refuses all that could reach beyond the tree. Sockets are refused like links: a stopped server leaves none there.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <grp.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum {
  /* A directory that others still write to is read so many times before it is given up. */
  ATTEMPTS = 200,
  /* So many directories are open at once. remove() moves what lies deeper up to the root of its tree. */
  DEPTH = 64,
  SHOWN_PATH = PATH_MAX + DEPTH * (NAME_MAX + 1) + 2,
  RANDOM_BYTES = 6,
  /* ".", twelve hexadecimal digits, ".tmp" */
  TEMPORARY_SUFFIX = 1 + 2 * RANDOM_BYTES + 4,
  PROGRESS_MS = 100,
  LEASE_WAIT_MS = 2000,
  LEASE_PAUSE_MS = 10,
  FILL_MAX = 1 << 20,
};

struct identity {
  uid_t uid;
  gid_t gid;
};

/* A path's parent directory, open, and the name in it. */
struct place {
  int parent;
  char name[NAME_MAX + 1];
};

/* One open directory on the way down a tree. */
struct frame {
  DIR *entries;
  char name[NAME_MAX + 1];
  unsigned seen;
  unsigned again;
};

static const char *verb = "";
static const char *root_path = "";
static struct frame frames[DEPTH];
static int depth;
/* The temporary file of replace or fill, or the file that clone is making: removed when the program fails. */
static struct {
  int parent;
  const char *name;
} unfinished = {-1, NULL};
static volatile sig_atomic_t told_to_end;

/* ---- saying what went wrong ---- */

static void say_quoted(FILE *out, const char *text)
{
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char) *text;
    if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
      fprintf(out, "\\%03o", c);
    else
      fputc(c, out);
  }
}

static _Noreturn void end_with(const char *name, const char *path, const char *reason)
{
  if (unfinished.name != NULL)
    unlinkat(unfinished.parent, unfinished.name, 0);
  /* one write, so that it is one line whoever else writes there */
  static char line[4 * SHOWN_PATH + 512];
  FILE *out = fmemopen(line, sizeof line, "w");
  if (out != NULL) {
    fprintf(out, "floe-tree: %s: %s \"", name, verb);
    say_quoted(out, path);
    fprintf(out, "\": %s\n", reason);
    fclose(out);
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void) written;
  }
  _exit(1);
}

static _Noreturn void fail(int error, const char *path)
{
  const char *name = strerrorname_np(error);
  end_with(name != NULL ? name : "EIO", path, strerror(error));
}

static _Noreturn __attribute__((format(printf, 2, 3))) void misfit(const char *path, const char *format, ...)
{
  char reason[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  end_with("MISFIT", path, reason);
}

static _Noreturn void usage(void)
{
  fputs("usage: floe-tree [--as UID:GID] VERB\n"
        "  replace [--mode OCTAL] PATH             standard input becomes the file\n"
        "  write --at OFFSET ROOT PATH             standard input stands in the file there, which lies below ROOT, from that byte on\n"
        "  fill DIRECTORY                          standard input holds NAME NUL TEXT NUL of files directly in there; not synced\n"
        "  remove [--inside] PATH                  the file or directory and all below; --inside keeps the directory\n"
        "  mkdir [--mode OCTAL] PATH\n"
        "  rename FROM TO\n"
        "  clone --from UID:GID SOURCE TARGET      files named on standard input (NUL-separated) share their blocks;\n"
        "                                          prints those that are missing\n"
        "  hand-over --from UID --to UID:GID [--check] PATH\n"
        "                                          as root: gives a stopped instance's tree to another user\n",
        stderr);
  exit(2);
}

/* The path of an entry of the innermost open directory (NULL: of that directory). */
static const char *path_of(const char *entry)
{
  static char path[SHOWN_PATH];
  size_t used = (size_t) snprintf(path, sizeof path, "%s", root_path);
  for (int i = 1; i < depth && used < sizeof path; i++)
    used += (size_t) snprintf(path + used, sizeof path - used, "/%s", frames[i].name);
  if (entry != NULL && depth > 0 && used < sizeof path)
    snprintf(path + used, sizeof path - used, "/%s", entry);
  return path;
}

/* ---- who acts ---- */

static uint64_t capability(int number)
{
  return UINT64_C(1) << number;
}

/* Gives up for good all capabilities but those named; verified, for everything here rests on it. */
static void keep_capabilities(uint64_t kept)
{
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &header, data) != 0)
    fail(errno, root_path);
  for (int i = 0; i < 2; i++) {
    data[i].permitted &= (uint32_t) (kept >> (32 * i));
    data[i].effective = data[i].permitted;
    data[i].inheritable = 0;
  }
  if (syscall(SYS_capset, &header, data) != 0 || syscall(SYS_capget, &header, data) != 0)
    fail(errno, root_path);
  for (int i = 0; i < 2; i++)
    if ((data[i].permitted & ~(uint32_t) (kept >> (32 * i))) != 0)
      fail(EPERM, root_path);
}

/* From here on the kernel decides about files as it would for this user. */
static void become(struct identity who)
{
  setfsgid(who.gid);
  setfsuid(who.uid);
  if ((gid_t) setfsgid((gid_t) -1) != who.gid || (uid_t) setfsuid((uid_t) -1) != who.uid)
    fail(EPERM, root_path);
}

/* ---- opening ---- */

/* True where the kernel itself keeps a walk below a directory (Linux 5.6). */
static bool has_openat2(void)
{
#ifdef WITHOUT_OPENAT2
  return false;
#else
  static int known = -1;
  if (known < 0) {
    struct open_how how = {.flags = O_PATH | O_CLOEXEC};
    int fd = (int) syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how);
    known = fd >= 0;
    if (fd >= 0)
      close(fd);
  }
  return known == 1;
#endif
}

static int open_by(int directory, const char *path, int flags, mode_t mode, uint64_t resolve)
{
  struct open_how how = {.flags = (uint64_t) flags, .mode = (flags & O_CREAT) != 0 ? mode : 0, .resolve = resolve};
  int fd;
  int tries = 0;
  do
    fd = (int) syscall(SYS_openat2, directory, path, &how, sizeof how);
  while (fd < 0 && (errno == EINTR || errno == EAGAIN) && ++tries < 10);
  return fd;
}

/*
 * Opens what lies at a relative path below a directory: through no link, out of it by no path, over no mount. Without
 * openat2 component by component, each checked. Answers -1 and errno; ELOOP is a link, EXDEV a mount.
 */
static int open_below(int directory, const char *path, int flags, mode_t mode)
{
  flags |= O_CLOEXEC | O_NOFOLLOW;
  if ((flags & O_PATH) == 0)
    flags |= O_NONBLOCK | O_NOCTTY;
  if (has_openat2())
    return open_by(directory, path, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);

  struct stat root, found;
  if (fstat(directory, &root) != 0)
    return -1;
  int at = directory;
  for (;;) {
    char name[NAME_MAX + 1];
    size_t length = strcspn(path, "/");
    bool last = path[length] == '\0';
    if (length == 0 || length > NAME_MAX) {
      errno = length == 0 ? ENOENT : ENAMETOOLONG;
      break;
    }
    memcpy(name, path, length);
    name[length] = '\0';
    int next = openat(at, name, last ? flags : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, mode);
    int error = errno;
    if (next < 0 && error == ENOTDIR && fstatat(at, name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode))
      error = ELOOP;
    if (next >= 0 && (fstat(next, &found) != 0 || found.st_dev != root.st_dev)) {
      error = EXDEV;
      close(next);
      next = -1;
    }
    if (at != directory)
      close(at);
    if (next < 0 || last) {
      errno = error;
      return next;
    }
    at = next;
    path += length + 1;
  }
  int error = errno;
  if (at != directory)
    close(at);
  errno = error;
  return -1;
}

/* Opens a directory by a path that is not to be trusted further than the identity of the moment. */
static int open_directory(const char *path, int flags)
{
  flags |= O_DIRECTORY | O_CLOEXEC;
  if (has_openat2())
    return open_by(AT_FDCWD, path, flags, 0, RESOLVE_NO_MAGICLINKS);
  return open(path, flags);
}

/* As open_directory, but refuses a link anywhere in an absolute path. */
static int open_without_links(const char *path, int flags)
{
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0)
    return -1;
  while (*path == '/')
    path++;
  if (*path == '\0')
    return root;
  int fd;
  if (has_openat2())
    fd = open_by(root, path, flags | O_CLOEXEC | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
  else {
    fd = root;
    while (fd >= 0 && *path != '\0') {
      char name[NAME_MAX + 1];
      size_t length = strcspn(path, "/");
      if (length > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
      }
      memcpy(name, path, length);
      name[length] = '\0';
      path += length + strspn(path + length, "/");
      int next = openat(fd, name, (*path == '\0' ? flags : O_PATH | O_DIRECTORY) | O_CLOEXEC | O_NOFOLLOW);
      close(fd);
      fd = next;
    }
    return fd;
  }
  int error = errno;
  close(root);
  errno = error;
  return fd;
}

/* The very file behind an O_PATH descriptor, opened for use. */
static int reopen(int fd, int flags)
{
  char path[sizeof "/proc/self/fd/" + 12];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Splits a path, for verbs that change the entry itself. Answers false when the parent is missing. */
static bool find_place(const char *given, int (*open_parent)(const char *, int), int flags, struct place *place)
{
  char path[PATH_MAX];
  size_t length = strlen(given);
  while (length > 1 && given[length - 1] == '/')
    length--;
  if (length == 0 || length >= sizeof path)
    fail(length == 0 ? ENOENT : ENAMETOOLONG, given);
  memcpy(path, given, length);
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  const char *name = slash == NULL ? path : slash + 1;
  if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
    fail(EINVAL, given);
  if (strlen(name) > NAME_MAX)
    fail(ENAMETOOLONG, given);
  strcpy(place->name, name);
  if (slash == NULL)
    strcpy(path, ".");
  else if (slash == path)
    path[1] = '\0';
  else
    *slash = '\0';
  place->parent = open_parent(path, flags);
  if (place->parent < 0 && errno == ENOENT)
    return false;
  if (place->parent < 0)
    fail(errno, given);
  return true;
}

static struct place place_of(const char *path)
{
  struct place place;
  if (!find_place(path, open_directory, O_RDONLY, &place))
    fail(ENOENT, path);
  return place;
}

static void sync_directory(int fd, const char *path)
{
  if (fsync(fd) != 0)
    fail(errno, path);
}

static void random_name(char hex[2 * RANDOM_BYTES + 1])
{
  unsigned char bytes[RANDOM_BYTES];
  if (getrandom(bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
    fail(EIO, root_path);
  for (int i = 0; i < RANDOM_BYTES; i++)
    snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
}

/* ---- reading standard input ---- */

/* Some bytes of standard input; 0 at its end. A pipe that another process made non-blocking is waited for. */
static size_t read_input(char *buffer, size_t size)
{
  for (;;) {
    if (told_to_end)
      fail(EINTR, root_path);
    ssize_t got = read(STDIN_FILENO, buffer, size);
    if (got >= 0)
      return (size_t) got;
    if (errno == EAGAIN) {
      struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
      poll(&input, 1, -1);
    } else if (errno != EINTR)
      fail(errno, root_path);
  }
}

/* The next NUL-terminated path of standard input (the last may lack its NUL); false at the end. */
static bool next_path(char path[PATH_MAX])
{
  static char buffer[1 << 16];
  static size_t have, at;
  size_t length = 0;
  for (;;) {
    if (at == have) {
      at = 0;
      have = read_input(buffer, sizeof buffer);
      if (have == 0) {
        path[length] = '\0';
        return length > 0;
      }
    }
    char c = buffer[at++];
    path[length] = c;
    if (c == '\0') {
      if (length > 0)
        return true;
    } else if (++length == PATH_MAX) {
      path[PATH_MAX - 1] = '\0';
      fail(ENAMETOOLONG, path);
    }
  }
}

static void print(const char *text, size_t length)
{
  while (length > 0) {
    ssize_t done = write(STDOUT_FILENO, text, length);
    if (done >= 0) {
      text += done;
      length -= (size_t) done;
    } else if (errno == EAGAIN) {
      struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
      poll(&output, 1, -1);
    } else if (errno != EINTR)
      return; /* whoever read it is gone; the work is not */
  }
}

/* ---- replace, write, fill, mkdir, rename ---- */

/* A temporary file beside the name whose text it is to become. */
static int begin_file(const struct place *place, char temporary[NAME_MAX + 1], const char *path)
{
  char hex[2 * RANDOM_BYTES + 1];
  random_name(hex);
  snprintf(temporary, NAME_MAX + 1, "%.*s.%s.tmp", NAME_MAX - TEMPORARY_SUFFIX, place->name, hex);
  int fd = open_below(place->parent, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (fd < 0)
    fail(errno, path);
  unfinished.parent = place->parent;
  unfinished.name = temporary;
  return fd;
}

static void put(int fd, const char *text, size_t length, const char *path)
{
  while (length > 0) {
    ssize_t written = write(fd, text, length);
    if (written >= 0) {
      text += written;
      length -= (size_t) written;
    } else if (errno != EINTR)
      fail(errno, path);
  }
}

static void finish_file(int fd, const struct place *place, const char *temporary, const char *path)
{
  if (close(fd) != 0)
    fail(errno, path);
  if (told_to_end)
    fail(EINTR, path);
  if (renameat(place->parent, temporary, place->parent, place->name) != 0)
    fail(errno, path);
  unfinished.name = NULL;
}

static void replace(const char *path, mode_t mode)
{
  struct place place = place_of(path);
  char temporary[NAME_MAX + 1];
  int fd = begin_file(&place, temporary, path);
  static char buffer[1 << 16];
  for (size_t have; (have = read_input(buffer, sizeof buffer)) > 0;)
    put(fd, buffer, have, path);
  if (fchmod(fd, mode) != 0 || fsync(fd) != 0)
    fail(errno, path);
  finish_file(fd, &place, temporary, path);
  sync_directory(place.parent, path);
}

/* True for a relative path that leads nowhere but down. */
static bool leads_down(const char *path)
{
  if (*path == '\0' || *path == '/')
    return false;
  for (;;) {
    size_t length = strcspn(path, "/");
    if (length == 0 || (length == 1 && path[0] == '.') || (length == 2 && path[0] == '.' && path[1] == '.'))
      return false;
    if (path[length] == '\0')
      return true;
    path += length + 1;
  }
}

/* Puts standard input into a file below a directory, made where it is missing; nothing on the way may be a link. */
static void write_at(const char *root, const char *path, off_t offset)
{
  if (!leads_down(path))
    misfit(path, "is not a path below the root");
  int directory = open_directory(root, O_PATH | O_NOFOLLOW);
  if (directory < 0)
    fail(errno, root);
  bool made = false;
  int fd = open_below(directory, path, O_WRONLY, 0);
  if (fd < 0 && errno == ENOENT) {
    fd = open_below(directory, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    made = true;
  }
  struct stat found;
  if (fd < 0 || fstat(fd, &found) != 0)
    fail(errno, path);
  if (!S_ISREG(found.st_mode))
    misfit(path, "is not a regular file");
  if (found.st_nlink != 1)
    misfit(path, "has %lu links", (unsigned long) found.st_nlink);
  if (lseek(fd, offset, SEEK_SET) != offset)
    fail(errno, path);
  static char buffer[1 << 16];
  for (size_t have; (have = read_input(buffer, sizeof buffer)) > 0;)
    put(fd, buffer, have, path);
  if (fsync(fd) != 0 || close(fd) != 0)
    fail(errno, path);
  if (!made)
    return;
  const char *slash = strrchr(path, '/');
  char above[PATH_MAX];
  snprintf(above, sizeof above, "%.*s", slash == NULL ? 0 : (int) (slash - path), path);
  int parent = slash == NULL ? reopen(directory, O_RDONLY | O_DIRECTORY) : open_below(directory, above, O_RDONLY | O_DIRECTORY, 0);
  if (parent < 0)
    fail(errno, path);
  sync_directory(parent, path);
}

/* The bytes up to the next NUL of what was read; fails where there is none. */
static char *next_piece(char **at, const char *end)
{
  char *piece = *at, *nul = memchr(piece, '\0', (size_t) (end - piece));
  if (nul == NULL)
    misfit(root_path, "standard input ends in the middle");
  *at = nul + 1;
  return piece;
}

static void fill(const char *path)
{
  static char input[FILL_MAX];
  size_t length = 0;
  for (size_t have; (have = read_input(input + length, sizeof input - length)) > 0;)
    if ((length += have) == sizeof input)
      misfit(path, "standard input has more than %d bytes", FILL_MAX - 1);
  struct place place = {.parent = open_directory(path, O_RDONLY | O_NOFOLLOW)};
  if (place.parent < 0)
    fail(errno, path);
  for (char *at = input, *end = input + length; at < end;) {
    const char *name = next_piece(&at, end), *text = next_piece(&at, end);
    if (*name == '\0' || strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
      misfit(path, "a name on standard input is none of a file");
    if (strlen(name) > NAME_MAX)
      fail(ENAMETOOLONG, path);
    snprintf(place.name, sizeof place.name, "%s", name);
    char temporary[NAME_MAX + 1];
    int fd = begin_file(&place, temporary, path);
    put(fd, text, strlen(text), path);
    finish_file(fd, &place, temporary, path);
  }
}

static void make_directory(const char *path, mode_t mode)
{
  struct place place = place_of(path);
  if (mkdirat(place.parent, place.name, 0700) == 0) {
    int fd = open_below(place.parent, place.name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 || fchmod(fd, mode) != 0)
      fail(errno, path);
  } else {
    struct stat found;
    if (errno != EEXIST)
      fail(errno, path);
    if (fstatat(place.parent, place.name, &found, AT_SYMLINK_NOFOLLOW) != 0)
      fail(errno, path);
    if (!S_ISDIR(found.st_mode))
      fail(S_ISLNK(found.st_mode) ? ELOOP : ENOTDIR, path);
  }
  sync_directory(place.parent, path);
}

static void rename_entry(const char *from, const char *to)
{
  struct place source = place_of(from), target = place_of(to);
  if (renameat(source.parent, source.name, target.parent, target.name) != 0)
    fail(errno, from);
  sync_directory(target.parent, to);
  sync_directory(source.parent, from);
}

/* ---- walking down a tree ---- */

static void descend(int fd, const char *name)
{
  struct frame *frame = &frames[depth];
  frame->entries = fdopendir(fd);
  if (frame->entries == NULL)
    fail(errno, path_of(name));
  snprintf(frame->name, sizeof frame->name, "%s", name);
  frame->seen = frame->again = 0;
  depth++;
}

static void ascend(void)
{
  depth--;
  closedir(frames[depth].entries);
}

/* The next entry of the innermost directory; NULL at its end. */
static struct dirent *next_entry(void)
{
  struct frame *frame = &frames[depth - 1];
  for (;;) {
    errno = 0;
    struct dirent *entry = readdir(frame->entries);
    /* a directory that was removed under our hands has no entries */
    if (entry == NULL && errno != 0 && errno != ENOENT)
      fail(errno, path_of(NULL));
    if (entry == NULL)
      return NULL;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    frame->seen++;
    return entry;
  }
}

/* ---- remove ---- */

/* Opens a directory to empty it; its owner's lack of permission on it is mended first. */
static int open_to_empty(int parent, const char *name)
{
  int fd = open_below(parent, name, O_RDONLY | O_DIRECTORY, 0);
  if (fd < 0 && errno == EACCES) {
    int path = open_below(parent, name, O_PATH | O_DIRECTORY, 0);
    if (path < 0)
      return -1;
    char link[sizeof "/proc/self/fd/" + 12];
    snprintf(link, sizeof link, "/proc/self/fd/%d", path);
    int error = chmod(link, 0700) == 0 ? 0 : EACCES;
    close(path);
    if (error != 0) {
      errno = error;
      return -1;
    }
    fd = open_below(parent, name, O_RDONLY | O_DIRECTORY, 0);
  }
  struct stat found;
  if (fd >= 0 && fstat(fd, &found) == 0 && (found.st_mode & 0700) != 0700) {
    /* where it is not ours to change, removing what is in it says so */
    int changed = fchmod(fd, 0700);
    (void) changed;
  }
  return fd;
}

/* Removes an entry of the innermost directory, or descends into it. */
static void remove_entry(const char *name, bool directory)
{
  int parent = dirfd(frames[depth - 1].entries);
  for (int i = 0; i < ATTEMPTS; i++) {
    if (!directory) {
      if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return;
      if (errno != EISDIR)
        fail(errno, path_of(name));
    }
    int fd = open_to_empty(parent, name);
    if (fd >= 0 && depth < DEPTH) {
      descend(fd, name);
      return;
    }
    if (fd >= 0) {
      /* too deep for open descriptors: it becomes the root's entry and is found there */
      close(fd);
      char hex[2 * RANDOM_BYTES + 1];
      random_name(hex);
      if (renameat(parent, name, dirfd(frames[0].entries), hex) == 0) {
        frames[0].again = 0;
        return;
      }
    }
    if (errno == ENOENT)
      return;
    if (errno == EXDEV || errno == EBUSY)
      misfit(path_of(name), "is a mount point");
    /* somebody else's, which its parent's owner may remove while it is empty */
    if (errno == EACCES) {
      if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return;
      if (errno != ENOTDIR)
        fail(EACCES, path_of(name));
    }
    if (errno != ENOTDIR && errno != ELOOP)
      fail(errno, path_of(name));
    /* it was swapped for something else */
    directory = false;
  }
  fail(ENOTEMPTY, path_of(NULL));
}

static void remove_tree(const char *path, bool inside)
{
  struct place place;
  if (!find_place(path, open_directory, inside ? O_PATH : O_RDONLY, &place))
    return;
  struct stat found;
  if (fstatat(place.parent, place.name, &found, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT)
      return;
    fail(errno, path);
  }
  if (!S_ISDIR(found.st_mode)) {
    if (inside)
      fail(S_ISLNK(found.st_mode) ? ELOOP : ENOTDIR, path);
    if (unlinkat(place.parent, place.name, 0) != 0 && errno != ENOENT)
      fail(errno, path);
    sync_directory(place.parent, path);
    return;
  }
  int top = open_to_empty(place.parent, place.name);
  if (top < 0 && errno == EXDEV && inside)
    top = openat(place.parent, place.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (top < 0 && errno == EXDEV)
    misfit(path, "is a mount point");
  if (top < 0)
    fail(errno, path);
  descend(top, place.name);

  while (depth > 0) {
    struct frame *frame = &frames[depth - 1];
    struct dirent *entry = next_entry();
    if (told_to_end)
      fail(EINTR, path);
    if (entry != NULL) {
      remove_entry(entry->d_name, entry->d_type == DT_DIR);
      continue;
    }
    if (inside && depth == 1) {
      if (frame->seen == 0)
        break;
      errno = ENOTEMPTY;
    } else {
      int parent = depth > 1 ? dirfd(frames[depth - 2].entries) : place.parent;
      if (unlinkat(parent, frame->name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
        ascend();
        continue;
      }
      /* swapped for a file or a link after it was opened: that is what lies there now */
      if (errno == ENOTDIR && (unlinkat(parent, frame->name, 0) == 0 || errno == ENOENT)) {
        ascend();
        continue;
      }
    }
    if (errno == EBUSY)
      misfit(path_of(NULL), "is a mount point or in use by the system");
    if (errno != ENOTEMPTY && errno != EEXIST && errno != EISDIR)
      fail(errno, path_of(NULL));
    if (++frame->again > ATTEMPTS)
      fail(ENOTEMPTY, path_of(NULL));
    frame->seen = 0;
    rewinddir(frame->entries);
  }
  if (inside)
    sync_directory(dirfd(frames[0].entries), path);
  else
    sync_directory(place.parent, path);
}

/* ---- clone ---- */

/* The directory below `root` that holds `path`, made where it is missing; stays open for the next file beside it. */
static int directory_for(int root, const char *path)
{
  static char last[PATH_MAX];
  static int open_last = -1;
  const char *slash = strrchr(path, '/');
  if (slash == NULL)
    return root;
  size_t length = (size_t) (slash - path);
  if (open_last >= 0 && strlen(last) == length && memcmp(last, path, length) == 0)
    return open_last;
  if (open_last >= 0)
    close(open_last);
  memcpy(last, path, length);
  last[length] = '\0';
  open_last = open_below(root, last, O_PATH | O_DIRECTORY, 0);
  if (open_last < 0 && errno == ENOENT) {
    for (char *at = last; at != NULL; ) {
      at = strchr(at, '/');
      if (at != NULL)
        *at = '\0';
      const char *above = strrchr(last, '/');
      int parent = root;
      if (above != NULL) {
        char upper[PATH_MAX];
        snprintf(upper, sizeof upper, "%.*s", (int) (above - last), last);
        parent = open_below(root, upper, O_PATH | O_DIRECTORY, 0);
      }
      if (parent < 0 || (mkdirat(parent, above == NULL ? last : above + 1, 0700) != 0 && errno != EEXIST))
        fail(errno, last);
      if (parent != root)
        close(parent);
      if (at != NULL)
        *at++ = '/';
    }
    open_last = open_below(root, last, O_PATH | O_DIRECTORY, 0);
  }
  if (open_last < 0)
    fail(errno, path);
  return open_last;
}

static void clone_files(struct identity from, struct identity to, const char *source_path, const char *target_path)
{
  become(from);
  int source = open_directory(source_path, O_PATH | O_NOFOLLOW);
  if (source < 0)
    fail(errno, source_path);
  become(to);
  int target = open_directory(target_path, O_PATH | O_NOFOLLOW);
  if (target < 0)
    fail(errno, target_path);

  char path[PATH_MAX];
  while (next_path(path)) {
    if (!leads_down(path))
      misfit(path, "is not a path below the source");
    become(from);
    int in = open_below(source, path, O_RDONLY, 0);
    int error = errno;
    become(to);
    if (in < 0 && error == ENOENT) {
      print(path, strlen(path) + 1);
      continue;
    }
    if (in < 0)
      fail(error, path);
    struct stat found;
    if (fstat(in, &found) != 0)
      fail(errno, path);
    if (!S_ISREG(found.st_mode))
      misfit(path, "is not a regular file");
    int parent = directory_for(target, path);
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    int out = open_below(parent, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (out < 0)
      fail(errno, path);
    unfinished.parent = parent;
    unfinished.name = name;
    if (ioctl(out, FICLONE, in) != 0 || fchmod(out, found.st_mode & 0700) != 0)
      fail(errno, path);
    unfinished.name = NULL;
    close(out);
    close(in);
  }
}

/* ---- hand-over ---- */

static uid_t old_owner;
static struct identity new_owner;
static dev_t tree_device;
static uint64_t entries_found, entries_done;

/* Refuses what could reach beyond the tree, or what the old owner could still reach afterwards. */
static void examine(const struct stat *found, const char *path)
{
  if (!S_ISREG(found->st_mode) && !S_ISDIR(found->st_mode))
    misfit(path, "is a %s", S_ISLNK(found->st_mode) ? "symbolic link" : S_ISSOCK(found->st_mode) ? "socket"
                            : S_ISFIFO(found->st_mode) ? "pipe" : "device");
  if (found->st_dev != tree_device)
    misfit(path, "lies on another file system");
  if (found->st_uid != old_owner && found->st_uid != new_owner.uid)
    misfit(path, "belongs to user %u", found->st_uid);
  if ((found->st_mode & (S_ISUID | S_ISGID)) != 0)
    misfit(path, "has the set-user-id or set-group-id bit");
  if (S_ISREG(found->st_mode) && found->st_nlink != 1)
    misfit(path, "has %lu links", (unsigned long) found->st_nlink);
}

/*
 * A descriptor or a mapping that the old owner keeps would outlive the change. The kernel grants a write lease only when
 * nobody else has the file open (before Linux 5.3: for writing). Who only looks at it for a moment is waited for.
 */
static void refuse_openers(int fd, const char *path)
{
  for (int waited = 0; fcntl(fd, F_SETLEASE, F_WRLCK) != 0; waited += LEASE_PAUSE_MS) {
    if (errno != EAGAIN)
      return; /* a file system without leases */
    if (waited >= LEASE_WAIT_MS)
      misfit(path, "is open in another process");
    poll(NULL, 0, LEASE_PAUSE_MS);
  }
  fcntl(fd, F_SETLEASE, F_UNLCK);
}

static void give(int fd, const struct stat *found, const char *path)
{
  struct stat now;
  if (fchown(fd, new_owner.uid, new_owner.gid) != 0 || fstat(fd, &now) != 0)
    fail(errno, path);
  /* a link that was made between the look and the gift: the gift is taken back */
  if (S_ISREG(now.st_mode) && now.st_nlink != 1) {
    if (fchown(fd, found->st_uid, found->st_gid) != 0)
      fail(errno, path);
    misfit(path, "has %lu links", (unsigned long) now.st_nlink);
  }
  /* an access control list could name the old owner, who cannot make another one now */
  static const char *const lists[] = {"system.posix_acl_access", "system.posix_acl_default"};
  for (int i = 0; i < 2; i++)
    if (fremovexattr(fd, lists[i]) != 0 && errno != ENODATA && errno != EOPNOTSUPP)
      fail(errno, path);
  if (fstat(fd, &now) != 0)
    fail(errno, path);
  if ((now.st_mode & S_IWOTH) != 0 && fchmod(fd, now.st_mode & 07777 & ~(mode_t) S_IWOTH) != 0)
    fail(errno, path);
  if (S_ISREG(now.st_mode))
    refuse_openers(fd, path);
}

static void report_progress(bool last)
{
  static int64_t said;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t ms = (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
  if (!last && ms - said < PROGRESS_MS)
    return;
  said = ms;
  char line[64];
  int length = snprintf(line, sizeof line, "done %llu of %llu\n", (unsigned long long) entries_done,
                        (unsigned long long) entries_found);
  print(line, (size_t) length);
}

static bool only_looks;

/* Looks at one entry and, where asked, gives it away; descends into a directory. Closes the descriptor. */
static void hand_over_entry(int handle, const char *name, bool change)
{
  const char *path = depth == 0 ? root_path : path_of(name);
  struct stat found;
  if (fstat(handle, &found) != 0)
    fail(errno, path);
  examine(&found, path);
  bool directory = S_ISDIR(found.st_mode);
  int fd = reopen(handle, O_RDONLY | (directory ? O_DIRECTORY : 0));
  if (fd < 0)
    fail(errno, path);
  close(handle);
  /* a look at an instance that runs: its server has files open, and ends before the change */
  if (!directory && !only_looks)
    refuse_openers(fd, path);
  if (change) {
    give(fd, &found, path);
    entries_done++;
    report_progress(false);
  } else
    entries_found++;
  if (!directory) {
    close(fd);
    return;
  }
  if (depth == DEPTH)
    misfit(path, "lies more than %d directories deep", DEPTH);
  descend(fd, name);
}

static void walk_to_hand_over(const struct place *place, bool change)
{
  struct stat root;
  int handle = open_below(place->parent, place->name, O_PATH, 0);
  if (handle < 0 && errno == EXDEV)
    misfit(root_path, "is a mount point");
  if (handle < 0 || fstat(handle, &root) != 0)
    fail(errno, root_path);
  tree_device = root.st_dev;
  /* the root first: a server of the old owner refuses to start in a tree that is half another's */
  hand_over_entry(handle, place->name, change);
  while (depth > 0) {
    if (told_to_end)
      fail(EINTR, root_path);
    struct dirent *entry = next_entry();
    if (entry == NULL) {
      ascend();
      continue;
    }
    handle = open_below(dirfd(frames[depth - 1].entries), entry->d_name, O_PATH, 0);
    if (handle < 0 && errno == ENOENT)
      continue;
    if (handle < 0 && errno == EXDEV)
      misfit(path_of(entry->d_name), "is a mount point");
    /* O_PATH with O_NOFOLLOW opens a link itself, but openat2 refuses it */
    if (handle < 0 && errno == ELOOP)
      misfit(path_of(entry->d_name), "is a symbolic link");
    if (handle < 0)
      fail(errno, path_of(entry->d_name));
    hand_over_entry(handle, entry->d_name, change);
  }
}

static void hand_over(const char *path, bool only_check)
{
  only_looks = only_check;
  struct place place;
  if (*path != '/')
    fail(EINVAL, path);
  if (!find_place(path, open_without_links, O_PATH | O_DIRECTORY, &place))
    fail(ENOENT, path);
  walk_to_hand_over(&place, false);
  if (only_check)
    return;
  walk_to_hand_over(&place, true);
  report_progress(true);
  int parent = reopen(place.parent, O_RDONLY | O_DIRECTORY);
  if (parent < 0 || syncfs(parent) != 0)
    fail(errno, path);
}

/* ---- the command line ---- */

/* A number at most `most`, without sign, space or anything after it. */
static unsigned long number(const char *text, int base, unsigned long most, char end, const char **rest)
{
  char *after;
  if (*text < '0' || *text > '9')
    usage();
  errno = 0;
  unsigned long value = strtoul(text, &after, base);
  if (errno != 0 || value > most || *after != end)
    usage();
  if (rest != NULL)
    *rest = after + 1;
  return value;
}

/* -1 means "unchanged" to the kernel and is nobody's. */
static struct identity identity_of(const char *text)
{
  struct identity who;
  const char *rest;
  who.uid = (uid_t) number(text, 10, UINT32_MAX - 1, ':', &rest);
  who.gid = (gid_t) number(rest, 10, UINT32_MAX - 1, '\0', NULL);
  return who;
}

static void end_soon(int signal)
{
  (void) signal;
  told_to_end = 1;
}

static void prepare_process(void)
{
  /* a file that is opened later must not become standard error */
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
      _exit(1);
  /* a writer that meets a lease of hand-over signals it; a reader that went away must not end the work */
  signal(SIGIO, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  struct sigaction action = {.sa_handler = end_soon};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGHUP, &action, NULL);
  umask(077);
  /* nobody but root looks into this process */
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int main(int count, char **words)
{
  struct identity as = {geteuid(), getegid()}, from = as;
  bool has_as = false, has_from = false, has_to = false, has_mode = false, inside = false, check = false;
  mode_t mode = 0;
  off_t offset = 0;
  bool has_offset = false;
  int at = 1;

  prepare_process();
  if (at + 1 < count && strcmp(words[at], "--as") == 0) {
    as = identity_of(words[at + 1]);
    has_as = true;
    at += 2;
  }
  if (at >= count)
    usage();
  verb = words[at++];
  bool replaces = strcmp(verb, "replace") == 0, removes = strcmp(verb, "remove") == 0;
  bool fills = strcmp(verb, "fill") == 0, writes = strcmp(verb, "write") == 0;
  bool makes = strcmp(verb, "mkdir") == 0, renames = strcmp(verb, "rename") == 0;
  bool clones = strcmp(verb, "clone") == 0, hands_over = strcmp(verb, "hand-over") == 0;
  while (at < count && strncmp(words[at], "--", 2) == 0) {
    const char *option = words[at++];
    if (strcmp(option, "--") == 0)
      break;
    if (strcmp(option, "--inside") == 0 && removes)
      inside = true;
    else if (strcmp(option, "--check") == 0 && hands_over)
      check = true;
    else if (at == count)
      usage();
    else if (strcmp(option, "--mode") == 0 && (replaces || makes)) {
      mode = (mode_t) number(words[at++], 8, 0777, '\0', NULL);
      has_mode = true;
    } else if (strcmp(option, "--at") == 0 && writes) {
      offset = (off_t) number(words[at++], 10, INT64_MAX, '\0', NULL);
      has_offset = true;
    } else if (strcmp(option, "--from") == 0 && clones) {
      from = identity_of(words[at++]);
      has_from = true;
    } else if (strcmp(option, "--from") == 0 && hands_over) {
      old_owner = (uid_t) number(words[at++], 10, UINT32_MAX - 1, '\0', NULL);
      has_from = true;
    } else if (strcmp(option, "--to") == 0 && hands_over) {
      new_owner = identity_of(words[at++]);
      has_to = true;
    } else
      usage();
  }
  if (count - at != (renames || clones || writes ? 2 : 1) ||
      !(replaces || fills || (writes && has_offset) || removes || makes || renames || (clones && has_from) || (hands_over && has_from && has_to)))
    usage();
  root_path = words[at];

  if (hands_over) {
    /* nothing of root's is given away, and nothing is given to root */
    if (has_as || old_owner == 0 || new_owner.uid == 0 || old_owner == new_owner.uid)
      usage();
    if (geteuid() != 0)
      fail(EPERM, root_path);
    keep_capabilities(capability(CAP_CHOWN) | capability(CAP_DAC_OVERRIDE) | capability(CAP_DAC_READ_SEARCH) |
                      capability(CAP_FOWNER) | capability(CAP_LEASE));
    hand_over(root_path, check);
    return 0;
  }
  /* whoever acts as somebody else does so with that one's rights only: root's are no owner's */
  if (geteuid() == 0 && ((has_as && as.uid == 0) || (clones && (!has_as || from.uid == 0))))
    usage();
  if (has_as && geteuid() == 0) {
    if (setgroups(0, NULL) != 0)
      fail(errno, root_path);
    keep_capabilities(capability(CAP_SETUID) | capability(CAP_SETGID));
  }
  become(as);
  if (has_as && geteuid() == 0 && !clones)
    keep_capabilities(0);

  if (replaces)
    replace(root_path, has_mode ? mode : 0600);
  else if (writes)
    write_at(words[at], words[at + 1], offset);
  else if (fills)
    fill(root_path);
  else if (removes)
    remove_tree(root_path, inside);
  else if (makes)
    make_directory(root_path, has_mode ? mode : 0700);
  else if (renames)
    rename_entry(words[at], words[at + 1]);
  else
    clone_files(from, as, words[at], words[at + 1]);
  return 0;
}
