/*-------------------------------------------------------------------------
 *
 * recycle.c
 *	  Keeps the files of relations that a commit deletes.
 *
 * The segments of the main fork get a second name (a hard link) in the recycle
 * area of their tablespace, then a descriptor says that they are all there,
 * and only then their first names go.  So at every moment either the relation
 * is whole where it was, and replay of the commit record begins again, or it
 * is whole in the area.  Renaming could not give that: a relation has many
 * segments.
 *
 * This runs after the commit: what fails is a warning, and the file is
 * unlinked as if there were no area.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/recycle.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/rmgr.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogreader.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_tablespace.h"
#include "catalog/storage_xlog.h"
#include "commands/tablespace.h"
#include "common/relpath.h"
#include "flashback_log.h"
#include "miscadmin.h"
#include "storage/bufpage.h"
#include "storage/fd.h"
#include "storage/md.h"
#include "storage/smgr.h"
#include "storage/sync.h"
#include "utils/hsearch.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define TOMBSTONE ".tombstone"

static object_access_hook_type prev_object_access_hook = NULL;
static void (*prev_redo[RM_MAX_BUILTIN_ID + 1]) (XLogReaderState *record);

/* In replay: when the transaction committed */
static TimestampTz replayed_commit_time = 0;

/* Before the point of consistency: the files that replay has touched */
typedef struct ReplayedFile
{
	RelFileLocator rlocator;	/* hash key, must be first */
	bool		begun_anew;		/* there was none */
} ReplayedFile;

static HTAB *replayed_files = NULL;

/* Of what failed last */
static int	failed_errno = 0;

static void
segment_path(char *path, const RelFileLocator *rlocator, BlockNumber segno)
{
	RelPathStr	first = relpathperm(*rlocator, MAIN_FORKNUM);

	if (segno == 0)
		strlcpy(path, first.str, MAXPGPATH);
	else
		snprintf(path, MAXPGPATH, "%s.%u", first.str, segno);
}

/*
 * Whether the file surely is no heap's: its first page is one with a special
 * space, which no heap has.  An index that cannot be told is kept for nothing.
 */
static bool
is_no_heap(const char *path)
{
	static PGIOAlignedBlock page;
	int			fd = BasicOpenFile(path, O_RDONLY | PG_BINARY);
	bool		whole;

	if (fd < 0)
		return false;
	whole = pg_pread(fd, page.data, BLCKSZ, 0) == BLCKSZ;
	close(fd);
	return whole && !PageIsNew((Page) page.data) &&
		PageIsVerified((Page) page.data, 0, 0, NULL) &&
		((PageHeader) page.data)->pd_special < BLCKSZ;
}

/*
 * An unlogged relation has an init fork; nothing of it is in the window.
 */
static bool
is_unlogged(const RelFileLocator *rlocator)
{
	return access(relpathperm(*rlocator, INIT_FORKNUM).str, F_OK) == 0;
}

static bool
failed(const char *what, const char *path)
{
	failed_errno = errno;
	snprintf(flashback_log_error, sizeof(flashback_log_error),
			 "could not %s file \"%s\": %s", what, path, pg_strerror(errno));
	return false;
}

/*
 * The number of blocks, as md.c counts them: a segment that is not full is the
 * last one.
 */
static bool
count_blocks(const RelFileLocator *rlocator, BlockNumber *nblocks, BlockNumber *nsegments)
{
	*nblocks = 0;
	for (BlockNumber segno = 0;; segno++)
	{
		char		path[MAXPGPATH];
		struct stat st;

		segment_path(path, rlocator, segno);
		if (lstat(path, &st) != 0)
		{
			if (errno == ENOENT)
				break;
			return failed("stat", path);
		}
		if (!S_ISREG(st.st_mode) || st.st_size > (off_t) RELSEG_SIZE * BLCKSZ)
		{
			errno = EINVAL;
			return failed("keep", path);
		}
		*nblocks += st.st_size / BLCKSZ;
		*nsegments = segno + 1;
		if (st.st_size < (off_t) RELSEG_SIZE * BLCKSZ)
			break;
	}
	return true;
}

static bool
create_tombstone(const FlashbackKeptName *name)
{
	char		path[MAXPGPATH];
	int			fd;

	flashback_recycle_path(path, name, TOMBSTONE);
	(void) unlink(path);
	fd = BasicOpenFile(path, O_WRONLY | O_CREAT | O_EXCL | PG_BINARY);
	if (fd < 0)
		return failed("create", path);
	close(fd);
	return true;
}

/*
 * The checkpointer must not look for a file that goes.
 */
static void
forget_syncs(const RelFileLocator *rlocator, BlockNumber segno)
{
	FileTag		tag;

	memset(&tag, 0, sizeof(tag));
	tag.handler = SYNC_HANDLER_MD;
	tag.rlocator = *rlocator;
	tag.forknum = MAIN_FORKNUM;
	tag.segno = segno;
	RegisterSyncRequest(&tag, SYNC_FORGET_REQUEST, true);
}

/*
 * Takes the first names away, never truncating: they are those of the same
 * files.  What is left for md.c is nothing in replay, else an empty first
 * segment, which keeps the number from being used again; the two change places
 * in one step.
 */
static bool
remove_originals(const FlashbackKeptName *name, bool is_redo)
{
	const RelFileLocator *rlocator = &name->rlocator;
	char		path[MAXPGPATH];
	BlockNumber segno = 0;
	struct stat st;

	/* Also those beyond the last one, which a truncation leaves empty */
	for (;; segno++)
	{
		segment_path(path, rlocator, segno);
		if (lstat(path, &st) != 0)
			break;
	}
	while (segno-- > 0)
	{
		segment_path(path, rlocator, segno);
		if (segno > 0 || is_redo)
		{
			forget_syncs(rlocator, segno);
			if (unlink(path) != 0)
				return failed("remove", path);
		}
		else
		{
			char		tombstone[MAXPGPATH];

			INJECTION_POINT("flashback-recycle-tombstone", NULL);
			flashback_recycle_path(tombstone, name, TOMBSTONE);
			if (rename(tombstone, path) != 0)
				return failed("replace", path);
		}
	}
	return true;
}

static bool
sync_fd(int fd, const char *path)
{
	bool		result = pg_fsync(fd) == 0;

	if (!result)
		failed("fsync", path);
	close(fd);
	return result;
}

/*
 * Gives the segments their second names.
 */
static bool
link_segments(const FlashbackKeptName *name, BlockNumber nsegments)
{
	for (BlockNumber segno = 0; segno < nsegments; segno++)
	{
		char		path[MAXPGPATH];
		char		kept[MAXPGPATH];
		int			fd;

		segment_path(path, &name->rlocator, segno);
		flashback_recycle_segment_path(kept, name, segno);
		if (link(path, kept) != 0 &&
			(errno != EEXIST || unlink(kept) != 0 || link(path, kept) != 0))
			return failed("link", path);

		/*
		 * The next checkpoint will not sync what loses its name, and may be
		 * the one that makes a point count for which these pages are needed.
		 */
		if (flashback_log_mode == FLASHBACK_LOG_SYNC)
		{
			fd = BasicOpenFile(kept, O_RDWR | PG_BINARY);
			if (fd < 0)
				return failed("open", kept);
			if (!sync_fd(fd, kept))
				return false;
		}
		INJECTION_POINT("flashback-recycle-linked", NULL);
	}
	return true;
}

static bool
write_descriptor(const FlashbackKeptName *name, const FlashbackKeptDescriptor *descriptor)
{
	char		path[MAXPGPATH];
	char		new_path[MAXPGPATH];
	int			fd;

	flashback_recycle_path(path, name, FLASHBACK_RECYCLE_DESCRIPTOR);
	flashback_recycle_path(new_path, name, FLASHBACK_RECYCLE_DESCRIPTOR ".new");
	fd = BasicOpenFile(new_path, O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY);
	if (fd < 0)
		return failed("create", new_path);
	errno = ENOSPC;
	if (IS_INJECTION_POINT_ATTACHED("flashback-recycle-fails") ||
		write(fd, descriptor, sizeof(*descriptor)) != sizeof(*descriptor))
	{
		failed("write", new_path);
		close(fd);
		return false;
	}
	if (flashback_log_mode != FLASHBACK_LOG_SYNC)
		close(fd);
	else if (!sync_fd(fd, new_path))
		return false;
	if (rename(new_path, path) != 0)
		return failed("rename", new_path);
	return flashback_log_mode != FLASHBACK_LOG_SYNC || flashback_recycle_sync_area(name->rlocator.spcOid);
}

/*
 * Keeps the file of one relation; false, with the reason in
 * flashback_log_error, when it is where it was and md.c is to unlink it.
 */
static bool
keep(const FlashbackKeptName *name, bool is_redo)
{
	FlashbackKeptDescriptor descriptor;
	BlockNumber nblocks = 0;
	BlockNumber nsegments = 0;
	uint64		limit = (uint64) flashback_recycle_max_size * 1024 * 1024;
	char		path[MAXPGPATH];

	segment_path(path, &name->rlocator, 0);
	if (access(path, F_OK) != 0 || is_unlogged(&name->rlocator) || is_no_heap(path))
		return true;
	if (!count_blocks(&name->rlocator, &nblocks, &nsegments))
		return false;
	if (limit > 0 && (uint64) nblocks * BLCKSZ > limit)
	{
		snprintf(flashback_log_error, sizeof(flashback_log_error),
				 "it is larger than polar_flashback_recycle_max_size");
		return false;
	}

	memset(&descriptor, 0, sizeof(descriptor));
	descriptor.magic = FLASHBACK_RECYCLE_MAGIC;
	descriptor.version = FLASHBACK_LOG_VERSION;
	descriptor.system_identifier = GetSystemIdentifier();
	descriptor.segment_blocks = RELSEG_SIZE;
	descriptor.file.rlocator = name->rlocator;
	descriptor.file.commit_lsn = name->commit_lsn;
	descriptor.file.dropped_at = is_redo ? replayed_commit_time : GetCurrentTimestamp();
	descriptor.file.nblocks = nblocks;
	descriptor.crc = flashback_recycle_crc(&descriptor);

	if (flashback_recycle_create_area(name->rlocator.spcOid) &&
		link_segments(name, nsegments) &&
		(is_redo || create_tombstone(name)) &&
		write_descriptor(name, &descriptor))
	{
		INJECTION_POINT("flashback-recycle-described", NULL);
		flashback_recycle_count(1, (int64) nblocks * BLCKSZ);
		if (remove_originals(name, is_redo))
			return true;
		(void) flashback_recycle_remove(name, FLASHBACK_RECYCLE_FORCE);
		failed_errno = 0;
		return false;
	}

	/* md.c truncates what it unlinks, so it must have the only names */
	flashback_recycle_discard(name);
	return false;
}

/*
 * Whether there is no file, or an empty one, which may be what a deletion has
 * left to keep the number from being used again.
 */
static bool
has_no_content(const RelFileLocator *rlocator)
{
	struct stat st;

	return lstat(relpathperm(*rlocator, MAIN_FORKNUM).str, &st) != 0 || st.st_size == 0;
}

/*
 * Notes whether a file is there before replay touches it for the first time.
 */
static void
note_touched(const RelFileLocator *rlocator, bool created)
{
	ReplayedFile *file;
	bool		found;

	if (replayed_files == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(RelFileLocator),.entrysize = sizeof(ReplayedFile),.hcxt = TopMemoryContext};

		replayed_files = hash_create("files touched by replay", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	file = hash_search(replayed_files, rlocator, HASH_ENTER, &found);
	if (!found)
		file->begun_anew = !created && has_no_content(rlocator);
}

/*
 * Before the point of consistency, replay makes files again that were deleted
 * later in the WAL, with those blocks that it has images of.  Such a file must
 * not pass for the relation's.  One that a record creates is complete.
 */
static void
note_files(XLogReaderState *record)
{
	uint8		info = XLogRecGetInfo(record) & ~XLR_INFO_MASK;

	if (XLogRecGetRmid(record) == RM_SMGR_ID && info == XLOG_SMGR_CREATE)
	{
		const xl_smgr_create *create = (const xl_smgr_create *) XLogRecGetData(record);

		if (create->forkNum == MAIN_FORKNUM)
			note_touched(&create->rlocator, true);
	}
	if (XLogRecGetRmid(record) == RM_SMGR_ID && info == XLOG_SMGR_TRUNCATE)
		note_touched(&((const xl_smgr_truncate *) XLogRecGetData(record))->rlocator, false);
	for (int i = 0; i <= XLogRecMaxBlockId(record); i++)
	{
		RelFileLocator rlocator;
		ForkNumber	forknum;

		if (XLogRecGetBlockTagExtended(record, i, &rlocator, &forknum, NULL, NULL) && forknum == MAIN_FORKNUM)
			note_touched(&rlocator, false);
	}
}

static bool
is_begun_anew(const RelFileLocator *rlocator)
{
	ReplayedFile *file = NULL;

	if (reachedConsistency)
		return false;
	if (replayed_files)
		file = hash_search(replayed_files, rlocator, HASH_FIND, NULL);
	return file ? file->begun_anew : has_no_content(rlocator);
}

/*
 * A commit has deleted these relations.  Nobody writes them any more: their
 * buffers are gone.
 */
static void
unlink_relations(const RelFileLocatorBackend *rlocators, int nrels, bool is_redo,
				 XLogRecPtr commit_lsn)
{
	for (int i = 0; i < nrels; i++)
	{
		FlashbackKeptName name = {.rlocator = rlocators[i].locator,.commit_lsn = commit_lsn};
		bool		done;

		if (RelFileLocatorBackendIsTemp(rlocators[i]))
			continue;

		/*
		 * Replayed again, the file that was kept is the relation's; what is
		 * in its old place, if anything, is the same file, or one that replay
		 * has begun anew.
		 */
		if (is_redo && flashback_recycle_exists(&name))
		{
			done = remove_originals(&name, true);
			if (!done)
				(void) flashback_recycle_remove(&name, FLASHBACK_RECYCLE_FORCE);
		}
		else if (is_redo && is_begun_anew(&name.rlocator))
			continue;
		else if (flashback_log_purged_before(&name.rlocator) >= commit_lsn)
			continue;
		else if (flashback_log_is_wanted())
		{
			failed_errno = 0;
			done = keep(&name, is_redo);
			if (!done && failed_errno == ENOSPC && flashback_recycle_make_room(name.rlocator.spcOid))
				done = keep(&name, is_redo);
		}
		else
			continue;
		if (!done)
			ereport(WARNING,
					(errcode(ERRCODE_IO_ERROR),
					 errmsg("could not keep file \"%s\" of a deleted relation for flashback",
							relpathperm(name.rlocator, MAIN_FORKNUM).str),
					 errdetail("%s.", flashback_log_error)));
	}
	if (flashback_recycle_is_over_limit())
		flashback_log_wake_worker();
}

/*
 * DROP TABLESPACE, permitted and with nothing that depends on it: its
 * directory must be empty.
 */
static void
drop_object(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, classId, objectId, subId, arg);

	if (access == OAT_DROP && classId == TableSpaceRelationId &&
		!flashback_recycle_drop_area(objectId, 0))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("files of deleted relations in this tablespace are being read for flashback"),
				 errhint("Try again when that has ended.")));
}

static void
replay(XLogReaderState *record)
{
	RmgrId		rmid = XLogRecGetRmid(record);

	if (!reachedConsistency)
		note_files(record);
	else if (replayed_files)
	{
		hash_destroy(replayed_files);
		replayed_files = NULL;
	}

	if (rmid == RM_XACT_ID)
	{
		uint8		info = XLogRecGetInfo(record) & XLOG_XACT_OPMASK;

		if (info == XLOG_XACT_COMMIT || info == XLOG_XACT_COMMIT_PREPARED)
			replayed_commit_time = ((const xl_xact_commit *) XLogRecGetData(record))->xact_time;
	}
	if (rmid == RM_TBLSPC_ID && (XLogRecGetInfo(record) & ~XLR_INFO_MASK) == XLOG_TBLSPC_DROP)
		(void) flashback_recycle_drop_area(((const xl_tblspc_drop_rec *) XLogRecGetData(record))->ts_id,
										   FLASHBACK_RECYCLE_FORCE);
	prev_redo[rmid] (record);
}

/*
 * Installs the hooks that see files go.
 */
void
flashback_log_install_recycle(void)
{
	smgr_unlink_hook = unlink_relations;
	prev_object_access_hook = object_access_hook;
	object_access_hook = drop_object;
	for (int i = 0; i <= RM_MAX_BUILTIN_ID; i++)
	{
		prev_redo[i] = RmgrTable[i].rm_redo;
		if (prev_redo[i])
			RmgrTable[i].rm_redo = replay;
	}
}
