/*-------------------------------------------------------------------------
 *
 * recycle_area.c
 *	  The recycle area: a directory in each tablespace with the files of
 *	  relations that were deleted, and their descriptors.
 *
 * Its name begins as those of temporary files do: base backups, pg_rewind,
 * pg_checksums and other people's backup tools leave such names out.
 *
 * Without its descriptor a file means nothing.  Who removes a file holds an
 * exclusive lock on its descriptor, who reads one a shared lock; they go with
 * the process.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/recycle_area.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "catalog/pg_tablespace_d.h"
#include "common/file_perm.h"
#include "common/relpath.h"
#include "flashback_log.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

/* How often files of dropped databases are looked for */
#define RETENTION_LOOK_MS	10000

/* Takes one name of the area; false ends the walk */
typedef bool (*NameVisitor) (const FlashbackKeptName *name, void *arg);

static void
area_path(char *path, Oid tablespace)
{
	if (tablespace == DEFAULTTABLESPACE_OID)
		strlcpy(path, "base/" FLASHBACK_RECYCLE_DIR, MAXPGPATH);
	else if (tablespace == GLOBALTABLESPACE_OID)
		strlcpy(path, "global/" FLASHBACK_RECYCLE_DIR, MAXPGPATH);
	else
		snprintf(path, MAXPGPATH, PG_TBLSPC_DIR "/%u/" TABLESPACE_VERSION_DIRECTORY "/" FLASHBACK_RECYCLE_DIR,
				 tablespace);
}

/*
 * The path of something that belongs to a kept file; it has MAXPGPATH bytes.
 */
void
flashback_recycle_path(char *path, const FlashbackKeptName *name, const char *suffix)
{
	char		area[MAXPGPATH];

	area_path(area, name->rlocator.spcOid);
	snprintf(path, MAXPGPATH, "%.900s/%u_%u_%016" PRIX64 "%s", area, name->rlocator.dbOid,
			 name->rlocator.relNumber, name->commit_lsn, suffix);
}

/*
 * The path of a segment of a kept file.
 */
void
flashback_recycle_segment_path(char *path, const FlashbackKeptName *name, BlockNumber segno)
{
	char		suffix[16];

	snprintf(suffix, sizeof(suffix), ".%u", segno);
	flashback_recycle_path(path, name, suffix);
}

/*
 * The checksum of a descriptor.
 */
pg_crc32c
flashback_recycle_crc(const FlashbackKeptDescriptor *descriptor)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, descriptor, offsetof(FlashbackKeptDescriptor, crc));
	FIN_CRC32C(crc);
	return crc;
}

static bool
sync_path(const char *path, int flags)
{
	int			fd = BasicOpenFile(path, flags | PG_BINARY);
	bool		result = fd >= 0 && pg_fsync(fd) == 0;

	if (!result)
		snprintf(flashback_log_error, sizeof(flashback_log_error),
				 "could not fsync file \"%s\": %s", path, pg_strerror(errno));
	if (fd >= 0)
		close(fd);
	return result;
}

/*
 * Makes the names in an area durable.
 */
bool
flashback_recycle_sync_area(Oid tablespace)
{
	char		path[MAXPGPATH];

	area_path(path, tablespace);
	return sync_path(path, O_RDONLY);
}

/*
 * Makes sure that a tablespace has an area.
 */
bool
flashback_recycle_create_area(Oid tablespace)
{
	char		path[MAXPGPATH];
	struct stat st;

	area_path(path, tablespace);
	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return true;
	if (MakePGDirectory(path) != 0 && errno != EEXIST)
	{
		snprintf(flashback_log_error, sizeof(flashback_log_error),
				 "could not create directory \"%s\": %s", path, pg_strerror(errno));
		return false;
	}
	if (flashback_log_mode == FLASHBACK_LOG_SYNC)
	{
		get_parent_directory(path);
		return sync_path(path, O_RDONLY);
	}
	return true;
}

/*
 * Counts files and bytes that come or go.
 */
void
flashback_recycle_count(int files, int64 bytes)
{
	SpinLockAcquire(&flashback_log_shared->mutex);
	flashback_log_shared->recycled_files += files;
	flashback_log_shared->recycled_bytes += bytes;
	SpinLockRelease(&flashback_log_shared->mutex);
}

/*
 * Whether the areas have more than they may have.
 */
bool
flashback_recycle_is_over_limit(void)
{
	uint64		limit = (uint64) flashback_recycle_max_size * 1024 * 1024;
	uint64		bytes;

	SpinLockAcquire(&flashback_log_shared->mutex);
	bytes = flashback_log_shared->recycled_bytes;
	SpinLockRelease(&flashback_log_shared->mutex);
	return limit > 0 && bytes > limit;
}

/*
 * A number as we write it: decimal, without leading zeros, and an underscore
 * after it.  Returns what follows, or NULL.
 */
static const char *
parse_number(const char *at, uint32 *number)
{
	uint64		value = 0;
	const char *from = at;

	if (at[0] == '0' && at[1] != '_')
		return NULL;
	for (; *at >= '0' && *at <= '9' && value <= PG_UINT32_MAX; at++)
		value = value * 10 + (*at - '0');
	if (at == from || value > PG_UINT32_MAX || *at != '_')
		return NULL;
	*number = (uint32) value;
	return at + 1;
}

/*
 * Takes a name of the area apart; what follows it is left in *suffix.  Only
 * what this module would have written passes.  There may be very many names:
 * the library's conversions would take most of the time of a walk.
 */
static bool
parse_name(const char *file, Oid tablespace, FlashbackKeptName *name, const char **suffix)
{
	const char *at;

	memset(name, 0, sizeof(*name));
	name->rlocator.spcOid = tablespace;
	at = parse_number(file, &name->rlocator.dbOid);
	if (at)
		at = parse_number(at, &name->rlocator.relNumber);
	if (at == NULL)
		return false;
	for (int i = 0; i < 16; i++, at++)
	{
		int			digit;

		if (*at >= '0' && *at <= '9')
			digit = *at - '0';
		else if (*at >= 'A' && *at <= 'F')
			digit = *at - 'A' + 10;
		else
			return false;
		name->commit_lsn = name->commit_lsn << 4 | digit;
	}
	*suffix = at;
	return true;
}

/*
 * Visits the descriptors of an area.  Neither raises errors nor allocates
 * memory of the server's.
 */
static bool
visit_area(Oid tablespace, NameVisitor visit, void *arg)
{
	char		path[MAXPGPATH];
	DIR		   *dir;
	struct dirent *de;
	bool		result = true;

	area_path(path, tablespace);
	dir = opendir(path);
	if (dir == NULL)
		return true;
	while (result && (de = readdir(dir)) != NULL)
	{
		FlashbackKeptName name;
		const char *suffix;

		if (parse_name(de->d_name, tablespace, &name, &suffix) &&
			strcmp(suffix, FLASHBACK_RECYCLE_DESCRIPTOR) == 0)
			result = visit(&name, arg);
	}
	closedir(dir);
	return result;
}

/*
 * Calls a function for each tablespace; false ends that.
 */
static bool
for_each_tablespace(bool (*call) (Oid tablespace, void *arg), void *arg)
{
	DIR		   *dir;
	struct dirent *de;
	bool		result = call(DEFAULTTABLESPACE_OID, arg) && call(GLOBALTABLESPACE_OID, arg);

	dir = result ? opendir(PG_TBLSPC_DIR) : NULL;
	if (dir == NULL)
		return result;
	while (result && (de = readdir(dir)) != NULL)
	{
		char	   *end;
		Oid			tablespace = strtoul(de->d_name, &end, 10);

		if (*end == '\0' && end != de->d_name && OidIsValid(tablespace))
			result = call(tablespace, arg);
	}
	closedir(dir);
	return result;
}

typedef struct Visit
{
	NameVisitor visit;
	void	   *arg;
} Visit;

static bool
visit_tablespace(Oid tablespace, void *arg)
{
	Visit	   *visit = arg;

	return visit_area(tablespace, visit->visit, visit->arg);
}

static void
visit_all(NameVisitor visitor, void *arg)
{
	Visit		visit = {.visit = visitor,.arg = arg};

	(void) for_each_tablespace(visit_tablespace, &visit);
}

/*
 * Reads a descriptor from an open file.
 */
bool
flashback_recycle_read_descriptor(int fd, const FlashbackKeptName *name, FlashbackKeptFile *file)
{
	FlashbackKeptDescriptor descriptor;

	if (pg_pread(fd, &descriptor, sizeof(descriptor), 0) != sizeof(descriptor) ||
		descriptor.magic != FLASHBACK_RECYCLE_MAGIC ||
		descriptor.version != FLASHBACK_LOG_VERSION ||
		!EQ_CRC32C(descriptor.crc, flashback_recycle_crc(&descriptor)) ||
		descriptor.system_identifier != GetSystemIdentifier() ||
		descriptor.segment_blocks != RELSEG_SIZE ||
		!RelFileLocatorEquals(descriptor.file.rlocator, name->rlocator) ||
		descriptor.file.commit_lsn != name->commit_lsn)
		return false;
	*file = descriptor.file;
	return true;
}

/*
 * Whether there is a descriptor of this name.
 */
bool
flashback_recycle_exists(const FlashbackKeptName *name)
{
	char		path[MAXPGPATH];

	flashback_recycle_path(path, name, FLASHBACK_RECYCLE_DESCRIPTOR);
	return access(path, F_OK) == 0;
}

static void
remove_segments(const FlashbackKeptName *name)
{
	for (BlockNumber segno = 0;; segno++)
	{
		char		path[MAXPGPATH];
		struct stat st;

		flashback_recycle_segment_path(path, name, segno);
		if (lstat(path, &st) != 0)
			break;

		/*
		 * Idle backends may have the file open; but where it has its first
		 * name still, it is not ours to truncate.
		 */
		if (st.st_nlink == 1 && truncate(path, 0) != 0)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not truncate file \"%s\": %m", path)));
		if (unlink(path) != 0)
		{
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not remove file \"%s\": %m", path)));
			break;
		}
	}
}

/*
 * Removes what is there of a file that was not kept after all; its first name
 * is where it was.
 */
void
flashback_recycle_discard(const FlashbackKeptName *name)
{
	static const char *const suffixes[] = {FLASHBACK_RECYCLE_DESCRIPTOR, FLASHBACK_RECYCLE_DESCRIPTOR ".new", ".tombstone"};
	char		path[MAXPGPATH];

	for (int i = 0; i < lengthof(suffixes); i++)
	{
		flashback_recycle_path(path, name, suffixes[i]);
		(void) unlink(path);
	}
	for (BlockNumber segno = 0;; segno++)
	{
		flashback_recycle_segment_path(path, name, segno);
		if (unlink(path) != 0)
			break;
	}
}

/*
 * Removes a kept file, the descriptor first.  False if that could not be, or
 * somebody reads it; with FLASHBACK_RECYCLE_FORCE he gets errors.
 */
bool
flashback_recycle_remove(const FlashbackKeptName *name, int flags)
{
	char		path[MAXPGPATH];
	FlashbackKeptFile file;
	struct stat st;
	bool		valid;
	int			fd;

	flashback_recycle_path(path, name, FLASHBACK_RECYCLE_DESCRIPTOR);
	fd = BasicOpenFile(path, O_RDWR | PG_BINARY);
	if (fd < 0)
		return errno == ENOENT;
	if (!(flags & FLASHBACK_RECYCLE_FORCE) && flock(fd, LOCK_EX | LOCK_NB) != 0)
	{
		close(fd);
		return false;
	}
	valid = flashback_recycle_read_descriptor(fd, name, &file);

	/* Another process may have removed it just now */
	if (fstat(fd, &st) != 0 || st.st_nlink == 0)
	{
		close(fd);
		return true;
	}
	if (unlink(path) != 0)
	{
		bool		gone = (errno == ENOENT);

		if (!gone)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not remove file \"%s\": %m", path)));
		close(fd);
		return gone;
	}
	if (valid)
		flashback_recycle_count(-1, -(int64) file.nblocks * BLCKSZ);
	remove_segments(name);
	close(fd);
	return true;
}

typedef struct Removal
{
	int			flags;
	bool		(*which) (const FlashbackKeptName *name, const void *arg);
	const void *arg;
	int			removed;
	bool		done;			/* nothing is left */
} Removal;

static bool
remove_matching(const FlashbackKeptName *name, void *arg)
{
	Removal    *removal = arg;

	if (removal->which && !removal->which(name, removal->arg))
		return true;
	if (flashback_recycle_remove(name, removal->flags))
		removal->removed++;
	else
		removal->done = false;
	return true;
}

/*
 * Removes the area of a tablespace that is dropped.
 */
bool
flashback_recycle_drop_area(Oid tablespace, int flags)
{
	Removal		removal = {.flags = flags,.done = true};
	char		path[MAXPGPATH];

	(void) visit_area(tablespace, remove_matching, &removal);
	area_path(path, tablespace);
	if (removal.done && rmdir(path) != 0 && errno != ENOENT)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not remove directory \"%s\": %m", path)));
	return removal.done;
}

static bool
is_relation(const FlashbackKeptName *name, const void *arg)
{
	return RelFileLocatorEquals(name->rlocator, *(const RelFileLocator *) arg);
}

/*
 * Removes the kept files of one relation for good, whoever reads them; returns
 * how many there were.
 */
int
flashback_recycle_remove_relation(const RelFileLocator *rlocator)
{
	Removal		removal = {.flags = FLASHBACK_RECYCLE_FORCE,.which = is_relation,.arg = rlocator,.done = true};

	(void) visit_area(rlocator->spcOid, remove_matching, &removal);
	if (removal.removed > 0 && !flashback_recycle_sync_area(rlocator->spcOid))
		removal.done = false;
	if (!removal.done)
		ereport(ERROR,
				(errcode(ERRCODE_IO_ERROR),
				 errmsg("could not remove all kept files of relation %u", rlocator->relNumber)));
	return removal.removed;
}

typedef struct NameList
{
	FlashbackKeptName *names;
	int			n;
	int			allocated;
} NameList;

static bool
add_name(const FlashbackKeptName *name, void *arg)
{
	NameList   *list = arg;

	if (list->n == list->allocated)
	{
		list->allocated *= 2;
		list->names = repalloc_array(list->names, FlashbackKeptName, list->allocated);
	}
	list->names[list->n++] = *name;
	return true;
}

static int
compare_names(const void *a, const void *b)
{
	XLogRecPtr	x = ((const FlashbackKeptName *) a)->commit_lsn;
	XLogRecPtr	y = ((const FlashbackKeptName *) b)->commit_lsn;

	return x < y ? -1 : x > y;
}

typedef struct FirstAfter
{
	const RelFileLocator *rlocator;
	XLogRecPtr	lsn;
	FlashbackKeptName *name;
	bool		found;
} FirstAfter;

static bool
find_first_after(const FlashbackKeptName *name, void *arg)
{
	FirstAfter *first = arg;

	if (RelFileLocatorEquals(name->rlocator, *first->rlocator) && name->commit_lsn > first->lsn &&
		(!first->found || name->commit_lsn < first->name->commit_lsn))
	{
		*first->name = *name;
		first->found = true;
	}
	return true;
}

/*
 * The first kept file of a relation that was deleted after a position; false
 * if there is none.
 */
bool
flashback_recycle_find(const RelFileLocator *rlocator, XLogRecPtr lsn, FlashbackKeptName *name)
{
	FirstAfter	first = {.rlocator = rlocator,.lsn = lsn,.name = name};

	(void) visit_area(rlocator->spcOid, find_first_after, &first);
	return first.found;
}

/*
 * The names of all kept files, oldest first.
 */
FlashbackKeptName *
flashback_recycle_list(int *n)
{
	NameList	list = {.allocated = 64};

	list.names = palloc_array(FlashbackKeptName, list.allocated);
	visit_all(add_name, &list);
	qsort(list.names, list.n, sizeof(FlashbackKeptName), compare_names);
	*n = list.n;
	return list.names;
}

/*
 * A database that was dropped, or moved to another tablespace, takes its kept
 * files along.
 */
static bool
database_is_gone(const RelFileLocator *rlocator)
{
	char		path[MAXPGPATH];
	struct stat st;

	if (!OidIsValid(rlocator->dbOid))
		return false;
	if (rlocator->spcOid == DEFAULTTABLESPACE_OID)
		snprintf(path, sizeof(path), "base/%u", rlocator->dbOid);
	else
		snprintf(path, sizeof(path), PG_TBLSPC_DIR "/%u/" TABLESPACE_VERSION_DIRECTORY "/%u",
				 rlocator->spcOid, rlocator->dbOid);
	return lstat(path, &st) != 0 && errno == ENOENT;
}

/*
 * Whether names are worth a look: there may be very many, and what decides
 * seldom changes.  Databases are dropped without telling us.
 */
static bool
is_retention_due(XLogRecPtr oldest_lsn)
{
	static XLogRecPtr looked_with = InvalidXLogRecPtr;
	static TimestampTz looked_at = 0;
	TimestampTz now = GetCurrentTimestamp();

	if (looked_at <= now && oldest_lsn == looked_with &&
		!TimestampDifferenceExceeds(looked_at, now, RETENTION_LOOK_MS) &&
		!flashback_recycle_is_over_limit())
		return false;
	looked_with = oldest_lsn;
	looked_at = now;
	return true;
}

/*
 * The worker: removes what no point needs, and the oldest of what is too much.
 */
void
flashback_recycle_retain(XLogRecPtr oldest_lsn)
{
	RelFileLocator last = {0};
	bool		gone = false;
	FlashbackKeptName *names;
	int64		files;
	int			n;

	SpinLockAcquire(&flashback_log_shared->mutex);
	files = flashback_log_shared->recycled_files;
	SpinLockRelease(&flashback_log_shared->mutex);
	if (files <= 0 || !is_retention_due(oldest_lsn))
		return;

	names = flashback_recycle_list(&n);
	for (int i = 0; i < n; i++)
	{
		const RelFileLocator *rlocator = &names[i].rlocator;

		if (i == 0 || rlocator->spcOid != last.spcOid || rlocator->dbOid != last.dbOid)
		{
			gone = database_is_gone(rlocator);
			last = *rlocator;
		}
		if (gone || names[i].commit_lsn <= oldest_lsn || flashback_recycle_is_over_limit())
			(void) flashback_recycle_remove(&names[i], gone ? FLASHBACK_RECYCLE_FORCE : 0);
	}
	pfree(names);
}

typedef struct AreaVisit
{
	void		(*visit) (const char *path, void *arg);
	void	   *arg;
} AreaVisit;

static bool
visit_path(Oid tablespace, void *arg)
{
	AreaVisit  *visit = arg;
	char		path[MAXPGPATH];

	area_path(path, tablespace);
	visit->visit(path, visit->arg);
	return true;
}

/*
 * Visits the directories in which there may be kept files, if there are any.
 */
void
flashback_recycle_visit_areas(void (*visit) (const char *path, void *arg), void *arg)
{
	AreaVisit	area_visit = {.visit = visit,.arg = arg};
	int64		files;

	SpinLockAcquire(&flashback_log_shared->mutex);
	files = flashback_log_shared->recycled_files;
	SpinLockRelease(&flashback_log_shared->mutex);
	if (files > 0)
		(void) for_each_tablespace(visit_path, &area_visit);
}

static bool
is_on_device(Oid tablespace, dev_t device)
{
	char		path[MAXPGPATH];
	struct stat st;

	area_path(path, tablespace);
	return stat(path, &st) == 0 && st.st_dev == device;
}

/*
 * What the file system gets back when a kept file is removed.
 */
static uint64
space_of(const FlashbackKeptName *name)
{
	uint64		total = 0;

	for (BlockNumber segno = 0;; segno++)
	{
		char		path[MAXPGPATH];
		struct stat st;

		flashback_recycle_segment_path(path, name, segno);
		if (lstat(path, &st) != 0)
			break;
		total += (uint64) st.st_blocks * 512;
	}
	return total;
}

/*
 * A file system has too little room: gives up the oldest kept files on it that
 * nobody reads, until it has so many bytes more.  Returns how many it got, and
 * for how many files.
 */
uint64
flashback_recycle_give_up(dev_t device, uint64 bytes, int *files)
{
	FlashbackKeptName *names;
	Oid			tablespace = InvalidOid;
	bool		there = false;
	uint64		freed = 0;
	int64		any;
	int			n;

	*files = 0;
	SpinLockAcquire(&flashback_log_shared->mutex);
	any = flashback_log_shared->recycled_files;
	SpinLockRelease(&flashback_log_shared->mutex);
	if (any <= 0)
		return 0;

	names = flashback_recycle_list(&n);
	for (int i = 0; i < n && freed < bytes; i++)
	{
		uint64		space;

		if (names[i].rlocator.spcOid != tablespace)
		{
			tablespace = names[i].rlocator.spcOid;
			there = is_on_device(tablespace, device);
		}
		if (!there)
			continue;
		space = space_of(&names[i]);
		if (!flashback_recycle_remove(&names[i], 0))
			continue;
		freed += space;
		(*files)++;
	}
	pfree(names);
	return freed;
}

typedef struct Oldest
{
	FlashbackKeptName name;
	XLogRecPtr	after;
	bool		found;
} Oldest;

static bool
find_oldest(const FlashbackKeptName *name, void *arg)
{
	Oldest	   *oldest = arg;

	if (name->commit_lsn > oldest->after &&
		(!oldest->found || name->commit_lsn < oldest->name.commit_lsn))
	{
		oldest->found = true;
		oldest->name = *name;
	}
	return true;
}

/*
 * A disk is full: gives up the oldest kept file of a tablespace that nobody
 * reads.
 */
bool
flashback_recycle_make_room(Oid tablespace)
{
	Oldest		oldest = {0};

	for (;;)
	{
		oldest.found = false;
		(void) visit_area(tablespace, find_oldest, &oldest);
		if (!oldest.found)
			return false;
		if (flashback_recycle_remove(&oldest.name, 0))
			return true;
		oldest.after = oldest.name.commit_lsn;
	}
}

static bool
make_room_beside_log(Oid tablespace, void *arg)
{
	char		path[MAXPGPATH];
	struct stat area;
	struct stat log;

	area_path(path, tablespace);
	return stat(path, &area) != 0 || stat(FLASHBACK_LOG_DIR, &log) != 0 ||
		area.st_dev != log.st_dev || !flashback_recycle_make_room(tablespace);
}

/*
 * The log has no room: gives up a kept file on the same disk.
 */
bool
flashback_recycle_make_room_for_log(void)
{
	return !for_each_tablespace(make_room_beside_log, NULL);
}

/*
 * Whether a kept file has all its blocks, and was not about to be removed for
 * good.
 */
static bool
is_whole(const FlashbackKeptName *name)
{
	char		path[MAXPGPATH];
	FlashbackKeptFile file;
	BlockNumber left;
	int			fd;
	bool		valid;

	flashback_recycle_path(path, name, FLASHBACK_RECYCLE_DESCRIPTOR);
	fd = BasicOpenFile(path, O_RDONLY | PG_BINARY);
	if (fd < 0)
		return false;
	valid = flashback_recycle_read_descriptor(fd, name, &file);
	close(fd);
	if (!valid || flashback_log_purged_before(&name->rlocator) >= name->commit_lsn)
		return false;

	left = file.nblocks;
	for (BlockNumber segno = 0;; segno++)
	{
		BlockNumber here = Min(left, RELSEG_SIZE);
		struct stat st;

		flashback_recycle_segment_path(path, name, segno);
		if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t) here * BLCKSZ)
			return false;
		left -= here;
		if (left == 0)
			break;
	}
	flashback_recycle_count(1, (int64) file.nblocks * BLCKSZ);
	return true;
}

static bool
sync_kept(const FlashbackKeptName *name, void *arg)
{
	char		path[MAXPGPATH];

	for (BlockNumber segno = 0;; segno++)
	{
		flashback_recycle_segment_path(path, name, segno);
		if (access(path, F_OK) != 0)
			break;
		if (!sync_path(path, O_RDWR))
			return false;
	}
	flashback_recycle_path(path, name, FLASHBACK_RECYCLE_DESCRIPTOR);
	return sync_path(path, O_RDWR);
}

static bool
sync_tablespace(Oid tablespace, void *arg)
{
	char		path[MAXPGPATH];

	area_path(path, tablespace);
	if (access(path, F_OK) != 0)
		return true;
	if (!visit_area(tablespace, sync_kept, NULL) || !sync_path(path, O_RDONLY))
		return false;
	get_parent_directory(path);
	return sync_path(path, O_RDONLY);
}

/*
 * Makes durable what async mode has not.
 */
bool
flashback_recycle_sync(void)
{
	return for_each_tablespace(sync_tablespace, NULL);
}

/*
 * Clears an area of what means nothing, or of everything, while nobody uses
 * it.  Nothing is truncated: it may be a file that has its first name still.
 */
static bool
clear_area(Oid tablespace, void *arg)
{
	bool		all = *(const bool *) arg;
	char		area[MAXPGPATH];

	area_path(area, tablespace);

	/* First descriptors, then what has none */
	for (int pass = 0; pass < 2; pass++)
	{
		DIR		   *dir = opendir(area);
		struct dirent *de;

		if (dir == NULL)
			return true;
		while ((de = readdir(dir)) != NULL)
		{
			FlashbackKeptName name;
			const char *suffix = "";
			char		path[MAXPGPATH];
			bool		known = parse_name(de->d_name, tablespace, &name, &suffix);
			bool		descriptor = known && strcmp(suffix, FLASHBACK_RECYCLE_DESCRIPTOR) == 0;
			bool		useful;

			if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
				continue;
			if (pass == 0)
				useful = !descriptor || (!all && is_whole(&name));
			else
				useful = descriptor ||
					(known && suffix[0] == '.' && strspn(suffix + 1, "0123456789") == strlen(suffix + 1) &&
					 flashback_recycle_exists(&name));
			if (useful)
				continue;
			snprintf(path, sizeof(path), "%.700s/%s", area, de->d_name);
			if (unlink(path) != 0)
				ereport(WARNING,
						(errcode_for_file_access(),
						 errmsg("could not remove file \"%s\": %m", path)));
		}
		closedir(dir);
	}
	if (all)
		(void) rmdir(area);
	return true;
}

/*
 * Before anything is written: takes over what was kept, or removes it.
 */
void
flashback_recycle_begin(bool keep)
{
	bool		all = !keep;

	(void) for_each_tablespace(clear_area, &all);
	if (keep && flashback_log_mode == FLASHBACK_LOG_SYNC && !flashback_recycle_sync())
	{
		ereport(LOG,
				(errmsg("kept files of deleted relations are removed"),
				 errdetail("%s.", flashback_log_error)));
		all = true;
		(void) for_each_tablespace(clear_area, &all);
		flashback_log_shared->recycled_files = 0;
		flashback_log_shared->recycled_bytes = 0;
	}
}
