/*-------------------------------------------------------------------------
 *
 * purge.c
 *	  Ends what can be read of a relation's past, after personal data was
 *	  erased.
 *
 * Kept files of the relation are removed.  Its images stay in the log until
 * that is rotated, as repair may need them; who reads it for flashback is
 * refused for points of before.  The list of such relations is durable, and
 * without it the window does not continue.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/purge.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/relation.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_class_d.h"
#include "flashback_log.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgwriter.h"
#include "storage/fd.h"
#include "utils/injection_point.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(polar_flashback_purge);
PG_FUNCTION_INFO_V1(polar_flashback_purge_file);

#define PURGED FLASHBACK_LOG_DIR "/purged"
#define NEW_PURGED PURGED ".new"

/* The file */
typedef struct PurgedList
{
	uint32		magic;
	uint32		version;
	uint64		system_identifier;
	uint32		npurged;
	pg_crc32c	crc;			/* with this field zero */
	FlashbackPurged purged[FLASHBACK_LOG_MAX_PURGED];
} PurgedList;

#define LIST_LENGTH(n) (offsetof(PurgedList, purged) + (n) * sizeof(FlashbackPurged))

static pg_crc32c
list_crc(PurgedList *list)
{
	pg_crc32c	in_file = list->crc;
	pg_crc32c	crc;

	list->crc = 0;
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, list, LIST_LENGTH(list->npurged));
	FIN_CRC32C(crc);
	list->crc = in_file;
	return crc;
}

/*
 * Stores a list, durably.
 */
static void
write_list(PurgedList *list)
{
	int			fd;

	list->magic = FLASHBACK_LOG_MAGIC;
	list->version = FLASHBACK_LOG_VERSION;
	list->system_identifier = GetSystemIdentifier();
	list->crc = list_crc(list);

	fd = OpenTransientFile(NEW_PURGED, O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY);
	errno = 0;
	if (fd < 0 || write(fd, list, LIST_LENGTH(list->npurged)) != (ssize_t) LIST_LENGTH(list->npurged))
	{
		if (errno == 0)
			errno = ENOSPC;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", NEW_PURGED)));
	}
	CloseTransientFile(fd);
	(void) durable_rename(NEW_PURGED, PURGED, ERROR);
}

/*
 * At the start of a window that continues: takes over the list.  False if it
 * is damaged.
 */
bool
flashback_log_read_purged(void)
{
	PurgedList *list = palloc0(sizeof(PurgedList));
	int			fd = BasicOpenFile(PURGED, O_RDONLY | PG_BINARY);
	ssize_t		n;
	bool		valid;

	if (fd < 0)
	{
		pfree(list);
		return errno == ENOENT;
	}
	n = read(fd, list, sizeof(PurgedList));
	close(fd);
	valid = n >= (ssize_t) LIST_LENGTH(0) &&
		list->magic == FLASHBACK_LOG_MAGIC &&
		list->version == FLASHBACK_LOG_VERSION &&
		list->system_identifier == GetSystemIdentifier() &&
		list->npurged <= FLASHBACK_LOG_MAX_PURGED &&
		n == (ssize_t) LIST_LENGTH(list->npurged) &&
		EQ_CRC32C(list->crc, list_crc(list));
	if (valid)
	{
		flashback_log_shared->npurged = list->npurged;
		memcpy(flashback_log_shared->purged, list->purged, list->npurged * sizeof(FlashbackPurged));
	}
	pfree(list);
	return valid;
}

/*
 * The position before which nothing of a relation may be read, or 0.
 */
XLogRecPtr
flashback_log_purged_before(const RelFileLocator *rlocator)
{
	FlashbackLogShared *shared = flashback_log_shared;
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	/* Seldom is there any, and most callers saw to it that it matters */
	if (*(volatile int *) &shared->npurged == 0)
		return lsn;
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_SHARED);
	for (int i = 0; i < shared->npurged; i++)
		if (RelFileLocatorEquals(shared->purged[i].rlocator, *rlocator))
			lsn = Max(lsn, shared->purged[i].lsn);
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	return lsn;
}

/*
 * Adds relations to the list, those first that no point knows any more go.
 */
static void
add_purged(const RelFileLocator *rlocators, int n)
{
	FlashbackLogShared *shared = flashback_log_shared;
	PurgedList *list = palloc0(sizeof(PurgedList));
	XLogRecPtr	lsn = RecoveryInProgress() ? GetCurrentReplayRecPtr(NULL) : GetXLogInsertEndRecPtr();

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_EXCLUSIVE);
	for (int i = 0; i < shared->npurged; i++)
	{
		FlashbackPurged *entry = &shared->purged[i];
		bool		again = false;

		for (int k = 0; k < n; k++)
			again |= RelFileLocatorEquals(entry->rlocator, rlocators[k]);
		if (!again && (shared->npoints == 0 || shared->points[0].lsn < entry->lsn))
			list->purged[list->npurged++] = *entry;
	}
	if (list->npurged + n > FLASHBACK_LOG_MAX_PURGED)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("no more than %d relations can be purged in the time that the flashback log reaches back",
						FLASHBACK_LOG_MAX_PURGED),
				 errhint("Restart the server with polar_enable_flashback_log = off, which removes all of the log.")));
	for (int k = 0; k < n; k++)
	{
		list->purged[list->npurged].rlocator = rlocators[k];
		list->purged[list->npurged++].lsn = Max(lsn, pg_atomic_read_u64(&shared->lsn) + 1);
	}
	write_list(list);
	INJECTION_POINT("flashback-purge-listed", NULL);
	shared->npurged = list->npurged;
	memcpy(shared->purged, list->purged, list->npurged * sizeof(FlashbackPurged));
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	pfree(list);
}

static int
purge(const RelFileLocator *rlocators, int n)
{
	int			removed = 0;

	if (!flashback_log_enabled)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the flashback log is switched off")));
	add_purged(rlocators, n);
	for (int i = 0; i < n; i++)
		removed += flashback_recycle_remove_relation(&rlocators[i]);
	return removed;
}

/*
 * Purges a relation that exists, with its TOAST table, as it is stored now.
 * A checkpoint then begins the time for which it can be read again.
 */
Datum
polar_flashback_purge(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), ShareLock);
	RelFileLocator rlocators[2];
	int			n = 0;
	int			removed;

	if (!RELKIND_HAS_STORAGE(rel->rd_rel->relkind))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("relation \"%s\" has no storage", RelationGetRelationName(rel))));
	rlocators[n++] = rel->rd_locator;
	if (OidIsValid(rel->rd_rel->reltoastrelid))
	{
		Relation	toast = relation_open(rel->rd_rel->reltoastrelid, AccessShareLock);

		rlocators[n++] = toast->rd_locator;
		relation_close(toast, AccessShareLock);
	}
	removed = purge(rlocators, n);
	relation_close(rel, ShareLock);
	RequestCheckpoint(CHECKPOINT_IMMEDIATE | CHECKPOINT_WAIT | CHECKPOINT_FORCE);
	PG_RETURN_INT32(removed);
}

/*
 * Purges a file, kept or not.
 */
Datum
polar_flashback_purge_file(PG_FUNCTION_ARGS)
{
	RelFileLocator rlocator;

	rlocator.spcOid = PG_GETARG_OID(0);
	rlocator.dbOid = PG_GETARG_OID(1);
	rlocator.relNumber = PG_GETARG_OID(2);
	if (!OidIsValid(rlocator.spcOid) || !RelFileNumberIsValid(rlocator.relNumber))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid file of a relation")));
	PG_RETURN_INT32(purge(&rlocator, 1));
}
