/*-------------------------------------------------------------------------
 *
 * scan.c
 *	  The rows of a heap as of a moment.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/scan.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/commit_ts.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "flashback_internal.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

struct FlashbackScan
{
	MemoryContext context;
	MemoryContext row_context;
	Relation	rel;
	FlashbackMoment moment;
	FlashbackHeap *heap;
	FlashbackVisibility *visibility;
	FlashbackToast *toast;		/* NULL: not needed yet */
	int			natts;			/* that the relation had at the moment */
	bool		has_dropped;
	const char *page;			/* NULL: none yet */
	BlockNumber blkno;
	bool		rebuilt;
	OffsetNumber offset;		/* the next on the page */
	HeapTupleData tuple;
	Datum	   *values;
	bool	   *nulls;
};

static FlashbackScan *
begin(Relation rel, const FlashbackMoment *moment, int natts, FlashbackPhase phase)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "flashback scan", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	FlashbackScan *scan = palloc0(sizeof(FlashbackScan));
	TupleDesc	desc = RelationGetDescr(rel);

	scan->context = context;
	scan->row_context = AllocSetContextCreate(context, "flashback row", ALLOCSET_DEFAULT_SIZES);
	scan->rel = rel;
	scan->moment = *moment;
	scan->natts = natts;
	for (int i = 0; i < desc->natts; i++)
		if (TupleDescCompactAttr(desc, i)->attisdropped)
			scan->has_dropped = true;
	scan->values = palloc(desc->natts * sizeof(Datum));
	scan->nulls = palloc(desc->natts * sizeof(bool));
	scan->visibility = flashback_visibility_create(&scan->moment);
	scan->heap = flashback_heap_open(rel, &scan->moment, phase);
	MemoryContextSwitchTo(old_context);
	return scan;
}

/*
 * What pg_class had at the moment of a relation, and of its TOAST relation.
 */
typedef struct OldRelation
{
	bool		exists;
	RelFileNumber file;
	int			natts;
	Oid			toast;
} OldRelation;

static void
read_class(Oid relid, Oid toastrelid, const FlashbackMoment *moment,
		   OldRelation *old, OldRelation *old_toast, bool *complete)
{
	Relation	class = table_open(RelationRelationId, AccessShareLock);
	FlashbackScan *scan = begin(class, moment, Natts_pg_class, FLASHBACK_READING_CATALOG);
	TupleTableSlot *slot = flashback_scan_slot(scan);

	memset(old, 0, sizeof(*old));
	memset(old_toast, 0, sizeof(*old_toast));
	*complete = false;
	while (flashback_scan_next(scan, slot))
	{
		bool		isnull;
		Oid			oid = DatumGetObjectId(slot_getattr(slot, Anum_pg_class_oid, &isnull));
		OldRelation *to;

		if (oid == RelationRelationId)
			*complete = true;
		if (oid == relid)
			to = old;
		else if (oid == toastrelid)
			to = old_toast;
		else
			continue;
		to->exists = true;
		to->file = DatumGetObjectId(slot_getattr(slot, Anum_pg_class_relfilenode, &isnull));
		to->natts = DatumGetInt16(slot_getattr(slot, Anum_pg_class_relnatts, &isnull));
		to->toast = DatumGetObjectId(slot_getattr(slot, Anum_pg_class_reltoastrelid, &isnull));
	}
	ExecDropSingleTupleTableSlot(slot);
	flashback_scan_end(scan);
	table_close(class, NoLock);
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
	TransactionId xmin;
	TimestampTz at;
	bool		found;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	xmin = HeapTupleHeaderGetRawXmin(row->t_data);
	if (!TransactionIdIsNormal(xmin))
		found = true;
	else if (TransactionIdGetCommitTsData(xmin, &at, NULL))
		found = (at <= moment->time);
	else
		found = HeapTupleHeaderXminFrozen(row->t_data) ||
			TransactionIdPrecedes(xmin, moment->settled_xid);
	ReleaseSysCache(row);
	if (found)
		return true;

	/* Its row has been changed since, or it was not there */
	database = table_open(DatabaseRelationId, AccessShareLock);
	scan = begin(database, moment, Natts_pg_database, FLASHBACK_READING_CATALOG);
	slot = flashback_scan_slot(scan);
	while (flashback_scan_next(scan, slot))
	{
		bool		isnull;

		if (DatumGetObjectId(slot_getattr(slot, Anum_pg_database_oid, &isnull)) == MyDatabaseId)
			found = true;
	}
	ExecDropSingleTupleTableSlot(slot);
	flashback_scan_end(scan);
	table_close(database, NoLock);
	return found;
}

bool
flashback_relation_is_same(Relation rel, const FlashbackMoment *moment,
						   int *natts, FlashbackRefusal *refusal)
{
	Oid			toastrelid = rel->rd_rel->reltoastrelid;
	OldRelation old;
	OldRelation old_toast;
	bool		complete;

	*natts = RelationGetNumberOfAttributes(rel);
	memset(refusal, 0, sizeof(*refusal));
	refusal->sqlerrcode = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
	refusal->nearest_time = DT_NOEND;
	if (!database_existed(moment))
	{
		snprintf(refusal->reason, sizeof(refusal->reason),
				 "the database did not exist at the target time, or pg_database was rewritten since");
		return false;
	}

	read_class(RelationGetRelid(rel), toastrelid, moment, &old, &old_toast, &complete);
	*natts = old.natts;

	/* Without its own row it is not the file that it was */
	if (!complete)
		snprintf(refusal->reason, sizeof(refusal->reason),
				 "pg_class was rewritten since the target time");
	else if (!old.exists)
		snprintf(refusal->reason, sizeof(refusal->reason),
				 "table \"%s\" did not exist at the target time", RelationGetRelationName(rel));
	else if (old.file != rel->rd_locator.relNumber || old.natts > *natts ||
			 (OidIsValid(old.toast) && old.toast != toastrelid))
		snprintf(refusal->reason, sizeof(refusal->reason),
				 "table \"%s\" was rewritten or truncated since the target time", RelationGetRelationName(rel));
	else if (OidIsValid(old.toast))
	{
		Relation	toast = table_open(toastrelid, AccessShareLock);
		bool		same = (old_toast.exists && old_toast.file == toast->rd_locator.relNumber);

		table_close(toast, NoLock);
		if (!same)
			snprintf(refusal->reason, sizeof(refusal->reason),
					 "the TOAST table of \"%s\" was rewritten since the target time", RelationGetRelationName(rel));
	}
	return refusal->reason[0] == '\0';
}

FlashbackScan *
flashback_scan_begin(Relation rel, const FlashbackMoment *moment)
{
	FlashbackRefusal refusal;
	int			natts;

	if (rel->rd_rel->relam != HEAP_TABLE_AM_OID || !RelationIsPermanent(rel) ||
		!RELKIND_HAS_STORAGE(rel->rd_rel->relkind))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a permanent heap", RelationGetRelationName(rel))));
	if (!flashback_relation_is_same(rel, moment, &natts, &refusal))
		flashback_refuse(&refusal);
	return begin(rel, moment, natts, FLASHBACK_READING_TABLE);
}

TupleTableSlot *
flashback_scan_slot(FlashbackScan *scan)
{
	return MakeSingleTupleTableSlot(RelationGetDescr(scan->rel), &TTSOpsHeapTuple);
}

/*
 * Brings the row into the shape of now, with its TOAST values.
 */
static HeapTuple
reshape(FlashbackScan *scan)
{
	TupleDesc	desc = RelationGetDescr(scan->rel);
	MemoryContext old_context = MemoryContextSwitchTo(scan->row_context);
	HeapTuple	result;

	/* Columns that it lacks get the value they were added with ... */
	heap_deform_tuple(&scan->tuple, desc, scan->values, scan->nulls);
	for (int i = 0; i < desc->natts; i++)
	{
		CompactAttribute *att = TupleDescCompactAttr(desc, i);
		struct varlena *value = (struct varlena *) DatumGetPointer(scan->values[i]);

		/* ... but those of later none */
		if (att->attisdropped || i >= scan->natts)
			scan->nulls[i] = true;
		if (scan->nulls[i] || att->attlen != -1 || !VARATT_IS_EXTERNAL_ONDISK(value))
			continue;
		if (scan->toast == NULL)
		{
			if (!OidIsValid(scan->rel->rd_rel->reltoastrelid))
				ereport(ERROR,
						(errcode(ERRCODE_DATA_CORRUPTED),
						 errmsg("table \"%s\" has a TOAST value but no TOAST table",
								RelationGetRelationName(scan->rel))));
			flashback_heap_pause(scan->heap);
			MemoryContextSwitchTo(scan->context);
			scan->toast = flashback_toast_open(scan->rel->rd_rel->reltoastrelid,
											   &scan->moment, scan->visibility);
			MemoryContextSwitchTo(scan->row_context);
		}
		scan->values[i] = PointerGetDatum(flashback_toast_fetch(scan->toast, value));
	}
	result = heap_form_tuple(desc, scan->values, scan->nulls);
	result->t_self = scan->tuple.t_self;
	result->t_tableOid = scan->tuple.t_tableOid;
	MemoryContextSwitchTo(old_context);
	return result;
}

bool
flashback_scan_next(FlashbackScan *scan, TupleTableSlot *slot)
{
	TupleDesc	desc = RelationGetDescr(scan->rel);

	for (;;)
	{
		ItemId		lp;
		const char *wrong;

		if (scan->page == NULL || scan->offset > PageGetMaxOffsetNumber((Page) scan->page))
		{
			scan->page = flashback_heap_next(scan->heap, &scan->blkno, &scan->rebuilt);
			scan->offset = FirstOffsetNumber;
			if (scan->page == NULL)
				break;
			continue;
		}

		ItemPointerSet(&scan->tuple.t_self, scan->blkno, scan->offset);
		lp = PageGetItemId((Page) scan->page, scan->offset++);
		if (!ItemIdIsNormal(lp))
			continue;
		scan->tuple.t_tableOid = RelationGetRelid(scan->rel);
		scan->tuple.t_data = (HeapTupleHeader) (scan->page + ItemIdGetOffset(lp));
		scan->tuple.t_len = ItemIdGetLength(lp);
		if (!flashback_tuple_is_visible(scan->visibility, scan->tuple.t_data))
			continue;
		flashback_progress.rows++;
		if (slot == NULL)
			return true;

		if (scan->rebuilt && (wrong = flashback_check_tuple(desc, scan->tuple.t_data, scan->tuple.t_len)) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("invalid tuple (%u,%u) of table \"%s\"", scan->blkno, scan->offset - 1,
							RelationGetRelationName(scan->rel)),
					 errdetail_internal("%s.", wrong)));
		ExecClearTuple(slot);
		MemoryContextReset(scan->row_context);
		if (scan->has_dropped || HeapTupleHasExternal(&scan->tuple) ||
			HeapTupleHeaderGetNatts(scan->tuple.t_data) != desc->natts || scan->natts != desc->natts)
			ExecStoreHeapTuple(reshape(scan), slot, false);
		else
			ExecStoreHeapTuple(&scan->tuple, slot, false);
		return true;
	}

	if (slot)
		ExecClearTuple(slot);
	if (!flashback_moment_lasts(&scan->moment))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the target time has left the window of the flashback log meanwhile"),
				 errhint("Choose a later time, or a longer window with polar_fast_recovery_area_rotation.")));
	return false;
}

void
flashback_scan_end(FlashbackScan *scan)
{
	if (scan->toast)
		flashback_toast_close(scan->toast);
	flashback_heap_close(scan->heap);
	MemoryContextDelete(scan->context);
}
