/*-------------------------------------------------------------------------
 *
 * former.c
 *	  What relations were at a moment: their files, columns and owners.
 *
 * pg_class and pg_attribute are read as of the moment like any other table.
 * The file that pg_class names is the relation's present one, or has been
 * deleted since; then it can be read if flashback_log has kept it.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/former.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/commit_ts.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/catalog.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_tablespace_d.h"
#include "catalog/pg_type_d.h"
#include "catalog/storage.h"
#include "common/relpath.h"
#include "flashback_internal.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "utils/array.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* How long a file that a commit is deleting is waited for */
#define KEEP_TIMEOUT_MS 10000
#define KEEP_POLL_MS 10

/* A TOAST relation in pg_class as of the moment */
typedef struct ToastRow
{
	Oid			oid;			/* hash key, must be first */
	RelFileLocator rlocator;
} ToastRow;

/*
 * A column of a row of a catalog that is never null.
 */
Datum
flashback_catalog_value(TupleTableSlot *slot, AttrNumber attnum)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, attnum, &isnull);

	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("a row of a catalog as of the target time lacks column %d", attnum)));
	return value;
}

/*
 * Whether this version of a catalog row was there at the moment.  In doubt it
 * was not.
 */
bool
flashback_row_is_older(HeapTuple row, const FlashbackMoment *moment)
{
	TransactionId xmin = HeapTupleHeaderGetRawXmin(row->t_data);
	TimestampTz at;

	if (!TransactionIdIsNormal(xmin))
		return true;
	if (TransactionIdGetCommitTsData(xmin, &at, NULL))
		return at <= moment->time;
	return HeapTupleHeaderXminFrozen(row->t_data) ||
		TransactionIdPrecedes(xmin, moment->settled_xid);
}

/*
 * Whether this database existed.  CREATE DATABASE may copy the files of
 * another one, with pages of before.
 */
static bool
database_existed(const FlashbackMoment *moment)
{
	HeapTuple	row = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
	Relation	database;
	FlashbackScan *scan;
	TupleTableSlot *slot;
	bool		found;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	found = flashback_row_is_older(row, moment);
	ReleaseSysCache(row);
	if (found)
		return true;

	/* Its row has been changed since, or it was not there */
	database = table_open(DatabaseRelationId, AccessShareLock);
	scan = flashback_scan_catalog(database, NULL, moment);
	slot = flashback_scan_slot(scan);
	while (flashback_scan_next(scan, slot))
	{
		if (DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_database_oid)) == MyDatabaseId)
			found = true;
	}
	ExecDropSingleTupleTableSlot(slot);
	flashback_scan_end(scan);
	table_close(database, NoLock);
	return found;
}

static int
compare_formers(const void *a, const void *b)
{
	Oid			x = ((const FlashbackFormer *) a)->relid;
	Oid			y = ((const FlashbackFormer *) b)->relid;

	return x < y ? -1 : x > y;
}

void
flashback_formers_sort(FlashbackFormers *formers)
{
	qsort(formers->items, formers->n, sizeof(FlashbackFormer), compare_formers);
}

/*
 * One of the relations that were found; NULL if it was not.
 */
FlashbackFormer *
flashback_former_of(FlashbackFormers *formers, Oid relid)
{
	FlashbackFormer key = {.relid = relid};

	return bsearch(&key, formers->items, formers->n, sizeof(FlashbackFormer), compare_formers);
}

static RelFileLocator
get_locator(TupleTableSlot *slot)
{
	RelFileLocator rlocator;
	Oid			tablespace = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_class_reltablespace));
	bool		shared = DatumGetBool(flashback_catalog_value(slot, Anum_pg_class_relisshared));

	rlocator.spcOid = OidIsValid(tablespace) ? tablespace : MyDatabaseTableSpace;
	rlocator.dbOid = shared ? InvalidOid : MyDatabaseId;
	rlocator.relNumber = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_class_relfilenode));
	return rlocator;
}

/*
 * Which relations are wanted: those with these Oids, or else the tables that
 * had a file that a commit has deleted, and partitioned tables that it has
 * dropped.
 */
typedef struct ClassQuery
{
	const List *relids;
	HTAB	   *files;			/* of FlashbackDeletedFile */
	const FlashbackCommit *commit;
	int			nfound;			/* of what the commit has dropped */
} ClassQuery;

static bool
is_wanted(ClassQuery *query, HTAB *relids, TupleTableSlot *slot)
{
	Oid			oid = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_class_oid));
	char		kind;
	bool		dropped;
	RelFileLocator rlocator;

	if (query->commit == NULL)
		return hash_search(relids, &oid, HASH_FIND, NULL) != NULL;
	dropped = flashback_has_dropped(query->commit, oid);
	query->nfound += dropped;
	if (oid < FirstNormalObjectId)
		return false;
	kind = DatumGetChar(flashback_catalog_value(slot, Anum_pg_class_relkind));
	if (kind == RELKIND_PARTITIONED_TABLE)
		return dropped;
	if (kind != RELKIND_RELATION && kind != RELKIND_MATVIEW)
		return false;
	rlocator = get_locator(slot);
	return hash_search(query->files, &rlocator, HASH_FIND, NULL) != NULL;
}

/*
 * The storage parameters of an index: nobody asks for those of others.
 */
static Datum
get_options(char kind, TupleTableSlot *slot)
{
	ArrayType  *options;
	bool		isnull;
	Datum		value;

	if (kind != RELKIND_INDEX && kind != RELKIND_PARTITIONED_INDEX)
		return (Datum) 0;
	value = slot_getattr(slot, Anum_pg_class_reloptions, &isnull);
	if (isnull)
		return (Datum) 0;
	options = DatumGetArrayTypePCopy(value);
	if (ARR_NDIM(options) > 1 || ARR_HASNULL(options) || ARR_ELEMTYPE(options) != TEXTOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("an index has impossible storage parameters in pg_class as of the target time")));
	return PointerGetDatum(options);
}

/*
 * Takes over what a row of pg_class says.
 */
void
flashback_former_take(FlashbackFormer *former, TupleTableSlot *slot)
{
	former->relid = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_class_oid));
	former->name = *DatumGetName(flashback_catalog_value(slot, Anum_pg_class_relname));
	former->namespace = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_class_relnamespace));
	former->owner = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_class_relowner));
	former->am = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_class_relam));
	former->kind = DatumGetChar(flashback_catalog_value(slot, Anum_pg_class_relkind));
	former->persistence = DatumGetChar(flashback_catalog_value(slot, Anum_pg_class_relpersistence));
	former->partition = DatumGetBool(flashback_catalog_value(slot, Anum_pg_class_relispartition));
	former->natts = DatumGetInt16(flashback_catalog_value(slot, Anum_pg_class_relnatts));
	former->toastrelid = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_class_reltoastrelid));
	former->file.rlocator = get_locator(slot);
	former->options = get_options(former->kind, slot);
	if (former->natts < 0 || former->natts > MaxHeapAttributeNumber)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("relation %u has %d columns in pg_class as of the target time",
						former->relid, former->natts)));
}

/*
 * The TOAST relations of those that were found are where they were.
 */
static void
take_toasts(FlashbackFormers *formers, HTAB *toasts)
{
	for (int i = 0; i < formers->n; i++)
	{
		FlashbackFormer *former = &formers->items[i];
		ToastRow   *toast;

		if (!OidIsValid(former->toastrelid))
			continue;
		toast = hash_search(toasts, &former->toastrelid, HASH_FIND, NULL);
		if (toast)
			former->toast.rlocator = toast->rlocator;
	}
}

/*
 * Reads pg_class from a file (NULL: the present one).  False if that was not
 * pg_class at the moment: then its own row is missing.
 */
static bool
read_class(ClassQuery *query, const FlashbackFile *file, const FlashbackMoment *moment,
		   FlashbackFormers *formers)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(ToastRow),.hcxt = CurrentMemoryContext};
	HTAB	   *toasts = hash_create("former TOAST relations", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	HTAB	   *relids = hash_create("former relations", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	Relation	class = table_open(RelationRelationId, AccessShareLock);
	FlashbackScan *scan = flashback_scan_catalog(class, file, moment);
	TupleTableSlot *slot = flashback_scan_slot(scan);
	int			allocated = 16;
	bool		complete = false;

	foreach_oid(relid, query->relids)
		(void) hash_search(relids, &relid, HASH_ENTER, NULL);
	query->nfound = 0;
	formers->n = 0;
	formers->items = palloc0_array(FlashbackFormer, allocated);
	while (flashback_scan_next(scan, slot))
	{
		Oid			oid = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_class_oid));

		if (oid == RelationRelationId)
			complete = true;
		if (is_wanted(query, relids, slot))
		{
			if (formers->n == allocated)
			{
				formers->items = repalloc0_array(formers->items, FlashbackFormer, allocated, allocated * 2);
				allocated *= 2;
			}
			flashback_former_take(&formers->items[formers->n++], slot);
		}
		if (DatumGetChar(flashback_catalog_value(slot, Anum_pg_class_relkind)) == RELKIND_TOASTVALUE)
		{
			ToastRow   *toast = hash_search(toasts, &oid, HASH_ENTER, NULL);

			toast->rlocator = get_locator(slot);
		}
	}
	ExecDropSingleTupleTableSlot(slot);
	flashback_scan_end(scan);
	table_close(class, NoLock);

	flashback_formers_sort(formers);
	for (int i = 1; i < formers->n; i++)
	{
		if (formers->items[i - 1].relid == formers->items[i].relid)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("relation %u is twice in pg_class as of the target time",
							formers->items[i].relid)));
	}
	take_toasts(formers, toasts);
	hash_destroy(toasts);
	hash_destroy(relids);
	return complete;
}

static FlashbackFormers *
read_formers(ClassQuery *query, const FlashbackMoment *moment, FlashbackRefusal *refusal)
{
	FlashbackFormers *formers = palloc0(sizeof(FlashbackFormers));
	FlashbackFile file;

	memset(refusal, 0, sizeof(*refusal));
	refusal->sqlerrcode = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
	refusal->nearest_time = DT_NOEND;
	if (!database_existed(moment))
	{
		snprintf(refusal->reason, sizeof(refusal->reason),
				 "the database did not exist at the target time, or pg_database was rewritten since");
		return NULL;
	}
	if (!read_class(query, NULL, moment, formers) &&
		!(flashback_mapped_file(RelationRelationId, moment, &file) &&
		  read_class(query, &file, moment, formers)))
	{
		snprintf(refusal->reason, sizeof(refusal->reason),
				 "pg_class was rewritten since the target time");
		snprintf(refusal->detail, sizeof(refusal->detail),
				 "Its file of before is not kept, or cannot be told.");
		return NULL;
	}
	return formers;
}

/*
 * What these relations were at a moment; NULL, with the reason, if that cannot
 * be known.  Those that did not exist are not among them.
 */
FlashbackFormers *
flashback_formers_read(const List *relids, const FlashbackMoment *moment, FlashbackRefusal *refusal)
{
	ClassQuery	query = {.relids = relids};

	return read_formers(&query, moment, refusal);
}

/*
 * The tables of users that had these files just before a commit, and the
 * partitioned ones that it has dropped; NULL, with the reason, if that cannot
 * be known.  *nnew is how many of the dropped ones were not there yet.
 */
FlashbackFormers *
flashback_formers_of_files(HTAB *files, const FlashbackCommit *commit, int *nnew,
						   const FlashbackMoment *moment, FlashbackRefusal *refusal)
{
	ClassQuery	query = {.files = files,.commit = commit};
	FlashbackFormers *formers = read_formers(&query, moment, refusal);

	*nnew = commit->ndropped - query.nfound;
	return formers;
}

/*
 * Whether a file has not lost its content yet: a commit deletes files after
 * others see what it did.
 */
static bool
is_being_deleted(const RelFileLocator *rlocator)
{
	struct stat st;

	return stat(relpathperm(*rlocator, MAIN_FORKNUM).str, &st) == 0 && st.st_size > 0;
}

static bool
is_kept(FlashbackFile *file, const FlashbackMoment *moment)
{
	FlashbackKeptFile description;
	FlashbackKept *kept = flashback_log()->recycle->open(&file->rlocator, moment->lsn, &description);

	if (kept == NULL)
		return false;
	flashback_log()->recycle->close(kept);
	file->nblocks = description.nblocks;
	return true;
}

/*
 * Whether our own transaction is going to delete a file.
 */
static bool
is_deleted_by_us(const RelFileLocator *rlocator)
{
	RelFileLocator *pending;
	int			n = smgrGetPendingDeletes(true, &pending);

	for (int i = 0; i < n; i++)
	{
		if (RelFileLocatorEquals(pending[i], *rlocator))
			return true;
	}
	return false;
}

/*
 * Finds a relation's file: its present one (rel may be NULL), or a kept one.
 * Once its present one is another, what was deleted is kept soon or never,
 * except by our own transaction.
 */
static bool
find_file(FlashbackFile *file, Relation rel, const FlashbackMoment *moment)
{
	bool		ours = (rel && rel->rd_firstRelfilelocatorSubid != InvalidSubTransactionId) ||
		is_deleted_by_us(&file->rlocator);

	file->kept = false;
	if (rel && RelFileLocatorEquals(rel->rd_locator, file->rlocator))
	{
		file->nblocks = RelationGetNumberOfBlocks(rel);
		return true;
	}
	file->kept = true;
	for (int waited = 0;; waited += KEEP_POLL_MS)
	{
		/* In this order: it is kept before it loses its content */
		bool		wait = !ours && is_being_deleted(&file->rlocator);

		if (is_kept(file, moment))
			return true;
		if (!wait || waited >= KEEP_TIMEOUT_MS)
			return false;
		CHECK_FOR_INTERRUPTS();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 KEEP_POLL_MS, WAIT_EVENT_PG_SLEEP);
		ResetLatch(MyLatch);
	}
}

/*
 * When the row of a relation in pg_class came to be as it is; DT_NOEND if that
 * is not known.
 */
static TimestampTz
changed_at(Oid relid)
{
	HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	TransactionId xmin;
	TimestampTz at;

	if (!HeapTupleIsValid(row))
		return DT_NOEND;
	xmin = HeapTupleHeaderGetRawXmin(row->t_data);
	if (!TransactionIdIsNormal(xmin) || !TransactionIdGetCommitTsData(xmin, &at, NULL))
		at = DT_NOEND;
	ReleaseSysCache(row);
	return at;
}

/*
 * Says why a file of before cannot be read.
 */
static void
explain_missing(const FlashbackFile *file, Relation rel, const FlashbackMoment *moment,
				FlashbackRefusal *refusal)
{
	const char *area = GetConfigOption("polar_enable_fast_recovery_area", true, false);
	TimestampTz at;

	if (!flashback_log()->may_read(&moment->point, &file->rlocator))
		snprintf(refusal->detail, sizeof(refusal->detail), "What it had before has been purged.");
	else if ((rel && rel->rd_firstRelfilelocatorSubid != InvalidSubTransactionId) ||
			 is_deleted_by_us(&file->rlocator))
		snprintf(refusal->detail, sizeof(refusal->detail), "The transaction that did so has not ended.");
	else if (area == NULL || strcmp(area, "on") != 0)
		snprintf(refusal->detail, sizeof(refusal->detail),
				 "Files of before are kept only while polar_enable_fast_recovery_area is on.");
	else
		snprintf(refusal->detail, sizeof(refusal->detail),
				 "Its file of before is not kept: it was too large for polar_flashback_recycle_max_size, gave way to others, or was lost in a crash.");
	if (rel == NULL || (at = changed_at(RelationGetRelid(rel))) == DT_NOEND || at <= moment->time)
		return;
	refusal->nearest_time = at;
	snprintf(refusal->hint, sizeof(refusal->hint), "It can be read as of %s.", timestamptz_to_str(at));
}

static bool
find_files(FlashbackFormer *former, Relation rel, const FlashbackMoment *moment,
		   FlashbackRefusal *refusal)
{
	const char *name = rel ? RelationGetRelationName(rel) : former ? NameStr(former->name) : "";
	Relation	toast;
	bool		found;

	memset(refusal, 0, sizeof(*refusal));
	refusal->sqlerrcode = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
	refusal->nearest_time = DT_NOEND;
	if (former == NULL)
	{
		snprintf(refusal->reason, sizeof(refusal->reason),
				 "table \"%s\" did not exist at the target time", name);
		return false;
	}
	if (former->kind == RELKIND_PARTITIONED_TABLE && (rel == NULL || rel->rd_rel->relkind == former->kind))
		return true;
	else if ((former->kind != RELKIND_RELATION && former->kind != RELKIND_MATVIEW) ||
			 former->am != HEAP_TABLE_AM_OID)
		snprintf(refusal->reason, sizeof(refusal->reason),
				 "table \"%s\" was no heap at the target time", name);
	else if (former->persistence != RELPERSISTENCE_PERMANENT)
		snprintf(refusal->reason, sizeof(refusal->reason),
				 "table \"%s\" was not a permanent table at the target time", name);

	/* Where a mapped catalog is, its row does not say */
	if (refusal->reason[0] == '\0' && !RelFileNumberIsValid(former->file.rlocator.relNumber))
	{
		if (rel == NULL || !RelationIsMapped(rel))
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("relation %u has no file in pg_class as of the target time", former->relid)));
		former->file.rlocator = rel->rd_locator;
	}
	if (refusal->reason[0] == '\0' && !find_file(&former->file, rel, moment))
	{
		if (rel)
			snprintf(refusal->reason, sizeof(refusal->reason),
					 "table \"%s\" was rewritten or truncated since the target time", name);
		else
			snprintf(refusal->reason, sizeof(refusal->reason),
					 "table \"%s\" was dropped or rewritten since the target time", name);
		explain_missing(&former->file, rel, moment, refusal);
	}
	if (refusal->reason[0] != '\0' || !OidIsValid(former->toastrelid))
		return refusal->reason[0] == '\0';

	if (!RelFileNumberIsValid(former->toast.rlocator.relNumber))
	{
		/* Only a catalog has one whose place its row does not say */
		if (rel && IsCatalogRelation(rel))
			return true;
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("TOAST relation %u is not in pg_class as of the target time", former->toastrelid)));
	}
	toast = try_table_open(former->toastrelid, AccessShareLock);
	if (toast && toast->rd_rel->relkind != RELKIND_TOASTVALUE)
	{
		table_close(toast, AccessShareLock);
		toast = NULL;
	}
	found = find_file(&former->toast, toast, moment);
	if (!found)
	{
		snprintf(refusal->reason, sizeof(refusal->reason),
				 "the TOAST table of \"%s\" was rewritten since the target time", name);
		explain_missing(&former->toast, rel, moment, refusal);
	}
	if (toast)
		table_close(toast, NoLock);
	return found;
}

/*
 * Finds the files of a relation (NULL: it did not exist) and its TOAST
 * relation; false, with the reason, if one of them cannot be read, or may not
 * since it was purged.  The present relation (NULL: it has been dropped) is
 * locked.
 */
bool
flashback_former_find_files(FlashbackFormer *former, Relation rel, const FlashbackMoment *moment,
							FlashbackRefusal *refusal)
{
	const char *name = rel ? RelationGetRelationName(rel) : former ? NameStr(former->name) : "";
	bool		may = (former == NULL || flashback_may_read_any(former, &moment->point));

	if (may && !find_files(former, rel, moment, refusal))
		return false;
	if (may && flashback_may_read(former, &moment->point))
		return true;
	flashback_refuse_purged(former, name, refusal);
	return false;
}
