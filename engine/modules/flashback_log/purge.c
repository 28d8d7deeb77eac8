/*-------------------------------------------------------------------------
 *
 * purge.c
 *	  Ends what can be read of a relation's past, after personal data was
 *	  erased.
 *
 * Kept files of the relation are removed.  Its images stay in the log until
 * that is rotated, as repair may need them; who reads it for flashback is
 * refused for points of before.  The list of such relations is durable, and
 * without it the window does not continue.  It has relations by their OID, as
 * they may have had any number of files, and files.
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
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "flashback_log.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgwriter.h"
#include "storage/fd.h"
#include "utils/injection_point.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

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

static void
require_enabled(void)
{
	if (!flashback_log_enabled)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the flashback log is switched off")));
}

static int
purge(const RelFileLocator *rlocators, int n)
{
	int			removed = 0;

	require_enabled();
	add_purged(rlocators, n);
	for (int i = 0; i < n; i++)
	{
		/* What stands for a relation has no file */
		if (OidIsValid(rlocators[i].spcOid))
			removed += flashback_recycle_remove_relation(&rlocators[i]);
	}
	return removed;
}

/* What is to be purged together */
typedef struct PurgeList
{
	RelFileLocator *items;
	int			n;
	int			allocated;
} PurgeList;

static void
add_file(PurgeList *list, RelFileLocator rlocator)
{
	for (int i = 0; i < list->n; i++)
		if (RelFileLocatorEquals(list->items[i], rlocator))
			return;
	if (list->items == NULL)
		list->items = palloc_array(RelFileLocator, list->allocated = 16);
	else if (list->n == list->allocated)
		list->items = repalloc_array(list->items, RelFileLocator, list->allocated *= 2);
	list->items[list->n++] = rlocator;
}

/*
 * A relation, whatever files it had, and if it exists its present ones.
 */
static void
add_relation(PurgeList *list, Oid relid, LOCKMODE lockmode)
{
	Relation	rel = try_relation_open(relid, lockmode);

	add_file(list, flashback_any_file_of(MyDatabaseId, relid));
	if (rel == NULL)
		return;
	if (RELKIND_HAS_STORAGE(rel->rd_rel->relkind))
		add_file(list, rel->rd_locator);
	if (OidIsValid(rel->rd_rel->reltoastrelid))
	{
		Relation	toast = relation_open(rel->rd_rel->reltoastrelid, AccessShareLock);

		add_file(list, toast->rd_locator);
		relation_close(toast, AccessShareLock);
	}
	relation_close(rel, NoLock);
}

/*
 * Purges the relation as it is, if it is there, with its partitions; returns
 * how many kept files that removed.  *relids are those that were purged.
 */
static int
purge_present(Oid relid, LOCKMODE lockmode, List **relids)
{
	Relation	rel = try_relation_open(relid, lockmode);
	PurgeList	list = {0};

	*relids = NIL;
	if (rel == NULL)
		return 0;
	if (!RELKIND_HAS_STORAGE(rel->rd_rel->relkind) &&
		rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("relation \"%s\" has no storage", RelationGetRelationName(rel))));
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		*relids = find_all_inheritors(relid, lockmode, NULL);
	else
		*relids = list_make1_oid(relid);
	foreach_oid(member, *relids)
		add_relation(&list, member, lockmode);
	relation_close(rel, NoLock);
	return purge(list.items, list.n);
}

/*
 * Purges what else is known of the past: partitions that it had, and the files
 * that it and they had before.
 */
static int
purge_past(Oid relid, LOCKMODE lockmode, List *done)
{
	FlashbackPastFinder find = *(FlashbackPastFinder *) find_rendezvous_variable(FLASHBACK_PAST);
	FlashbackPast past = {0};
	PurgeList	list = {0};

	if (find)
		find(relid, &past);
	if (done == NIL && !past.existed)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("there is no relation with OID %u, and none is known that was dropped", relid)));
	if (done == NIL)
		add_relation(&list, relid, lockmode);
	foreach_oid(member, past.relids)
	{
		if (list_member_oid(done, member))
			continue;
		add_relation(&list, member, lockmode);
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(member)))
			ereport(NOTICE,
					(errmsg("relation \"%s\", which was a partition before, is purged, too",
							get_rel_name(member))));
	}
	foreach_ptr(RelFileLocator, file, past.files)
		add_file(&list, *file);
	if (past.nunknown > 0)
		ereport(WARNING,
				(errmsg_plural("%d kept file stays of which it is not known whose it was",
							   "%d kept files stay of which it is not known whose they were",
							   past.nunknown, past.nunknown),
				 errdetail("As a file of this relation it cannot be read any more."),
				 errhint("See polar_flashback_recycled; polar_flashback_purge(tablespace, database, relfilenode) removes one.")));
	return list.n > 0 ? purge(list.items, list.n) : 0;
}

/*
 * Purges a relation with its TOAST table and its partitions: by its OID, so
 * whatever files it had.  It may have been dropped.  What is there now comes
 * first, for which nothing needs to be read.  A checkpoint then begins the
 * time for which it can be read again.
 */
Datum
polar_flashback_purge(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	LOCKMODE	lockmode = RecoveryInProgress() ? AccessShareLock : ShareLock;
	List	   *done;
	int			removed;

	require_enabled();
	removed = purge_present(relid, lockmode, &done);
	removed += purge_past(relid, lockmode, done);
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
