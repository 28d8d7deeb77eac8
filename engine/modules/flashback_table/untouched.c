/*-------------------------------------------------------------------------
 *
 * untouched.c
 *	  Results that nobody has changed since a flashback made them.
 *
 * The rows of such a result are those of its table at the moment, so that the
 * pages of the table alone say in what it differs from them.  All that is
 * needed for the proof is in the tuples: what the flashback copied says that
 * its transaction did it, as its first command, and that nobody deleted it.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/untouched.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_description.h"
#include "flashback_console.h"
#include "flashback_sql.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "storage/read_stream.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/*
 * The transaction that wrote a row of a catalog, and released it.
 */
static TransactionId
writer_of(HeapTuple tuple)
{
	TransactionId xid = InvalidTransactionId;

	if (HeapTupleIsValid(tuple))
	{
		xid = HeapTupleHeaderGetRawXmin(tuple->t_data);
		ReleaseSysCache(tuple);
	}
	return xid;
}

static bool
comment_is_of(Oid relid, TransactionId xid)
{
	Relation	description = table_open(DescriptionRelationId, AccessShareLock);
	ScanKeyData keys[3];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		result = false;

	ScanKeyInit(&keys[0], Anum_pg_description_objoid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	ScanKeyInit(&keys[1], Anum_pg_description_classoid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&keys[2], Anum_pg_description_objsubid, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(0));
	scan = systable_beginscan(description, DescriptionObjIndexId, true, NULL, 3, keys);
	if (HeapTupleIsValid(tuple = systable_getnext(scan)))
		result = HeapTupleHeaderGetRawXmin(tuple->t_data) == xid;
	systable_endscan(scan);
	table_close(description, AccessShareLock);
	return result;
}

/*
 * Whether the result has the columns of the table, in their order and with
 * their names, as that transaction made them.
 */
static bool
columns_are_of(Relation result, Relation rel, int natts, TransactionId xid)
{
	TupleDesc	from = RelationGetDescr(rel);
	TupleDesc	to = RelationGetDescr(result);
	int			n = 0;

	if (natts != from->natts)
		return false;
	for (int i = 0; i < from->natts; i++)
	{
		Form_pg_attribute a = TupleDescAttr(from, i);
		Form_pg_attribute b;

		if (a->attisdropped)
			continue;
		if (n >= to->natts)
			return false;
		b = TupleDescAttr(to, n++);
		if (b->attisdropped || strcmp(NameStr(a->attname), NameStr(b->attname)) != 0 ||
			a->atttypid != b->atttypid || a->atttypmod != b->atttypmod ||
			a->attcollation != b->attcollation ||
			writer_of(SearchSysCache2(ATTNUM, ObjectIdGetDatum(RelationGetRelid(result)),
									  Int16GetDatum(n))) != xid)
			return false;
	}
	return n == to->natts;
}

/*
 * Counts the rows, if all are as that transaction copied them.
 */
static bool
rows_are_of(Relation result, TransactionId xid, int64 *rows)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	BlockRangeReadStreamPrivate range = {0};
	ReadStream *stream;
	Buffer		buffer;
	bool		untouched = true;

	*rows = 0;
	range.last_exclusive = RelationGetNumberOfBlocks(result);
	stream = read_stream_begin_relation(READ_STREAM_FULL | READ_STREAM_SEQUENTIAL | READ_STREAM_USE_BATCHING,
										strategy, result, MAIN_FORKNUM,
										block_range_read_stream_cb, &range, 0);
	while (untouched && BufferIsValid(buffer = read_stream_next_buffer(stream, NULL)))
	{
		Page		page = BufferGetPage(buffer);
		OffsetNumber last;

		CHECK_FOR_INTERRUPTS();
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		last = PageGetMaxOffsetNumber(page);
		for (OffsetNumber offset = FirstOffsetNumber; offset <= last && untouched; offset++)
		{
			ItemId		lp = PageGetItemId(page, offset);
			HeapTupleHeader tuple;

			if (!ItemIdIsNormal(lp))
				continue;
			tuple = (HeapTupleHeader) PageGetItem(page, lp);
			untouched = HeapTupleHeaderXminFrozen(tuple) &&
				HeapTupleHeaderGetRawXmin(tuple) == xid &&
				(tuple->t_infomask & HEAP_XMAX_INVALID) != 0 &&
				!TransactionIdIsValid(HeapTupleHeaderGetRawXmax(tuple)) &&
				(tuple->t_infomask & HEAP_COMBOCID) == 0 &&
				HeapTupleHeaderGetRawCommandId(tuple) == FirstCommandId;
			(*rows)++;
		}
		UnlockReleaseBuffer(buffer);
	}
	read_stream_end(stream);
	FreeAccessStrategy(strategy);
	return untouched;
}

static bool
is_untouched(Relation result, Relation rel, const FlashbackOrigin *origin, int64 *rows)
{
	Oid			relid = RelationGetRelid(result);
	TransactionId xid = writer_of(SearchSysCache1(RELOID, ObjectIdGetDatum(relid)));

	return origin->relid == RelationGetRelid(rel) &&
		!XLogRecPtrIsInvalid(origin->lsn) &&
		rel->rd_rel->relkind == RELKIND_RELATION && !rel->rd_rel->relhassubclass &&
		TransactionIdIsNormal(xid) && comment_is_of(relid, xid) &&
		columns_are_of(result, rel, origin->natts, xid) &&
		rows_are_of(result, xid, rows);
}

/* What is tried */
typedef struct Untouched
{
	FlashbackShape *shape;
	int64		result_rows;
	const FlashbackOrigin *origin;
	Snapshot	snapshot;
	MemoryContext context;
	FlashbackDifferenceCallback callback;
	void	   *arg;
	FlashbackDifferenceCounts counts;
	bool		found;
} Untouched;

/*
 * Errors that say that the log does not give the rows of then: the moment is
 * not to be had, what would be read is damaged, or a file is not there or
 * cannot be read.
 */
static const int errors_of_log[] = {
	ERRCODE_INVALID_PARAMETER_VALUE,
	ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
	ERRCODE_WRONG_OBJECT_TYPE,
	ERRCODE_FEATURE_NOT_SUPPORTED,
	ERRCODE_DATA_CORRUPTED,
	ERRCODE_INDEX_CORRUPTED,
	ERRCODE_INSUFFICIENT_PRIVILEGE, /* of the server, to read the file */
	FLASHBACK_CLASS(ERRCODE_SYSTEM_ERROR),
	0
};

/*
 * Finds the differences, unless the pages of now do not tell them.
 */
static void
find_differences(void *arg)
{
	Untouched  *untouched = arg;
	FlashbackShape *shape = untouched->shape;
	const FlashbackOrigin *origin = untouched->origin;
	FlashbackDifferenceCounts *counts = &untouched->counts;
	MemoryContext old_context = MemoryContextSwitchTo(untouched->context);
	FlashbackRows *rows = flashback_rows_begin(shape->rel, origin->time, NULL, FLASHBACK_OWNED);
	FlashbackRowSource then;
	FlashbackRowSource now;

	if (flashback_rows_moment(rows)->lsn != origin->lsn ||
		flashback_rows_former(rows)->natts != origin->natts ||
		!flashback_paired_sources(&then, &now, rows, untouched->snapshot))
	{
		flashback_rows_end(rows);
		flashback_progress_end();
	}
	else
	{
		counts->unique = flashback_find_differences(shape, &then, &now, untouched->callback,
													untouched->arg, &counts->same);
		counts->then = flashback_source_then(&then);
		flashback_source_end(&now);
		flashback_source_end(&then);
		untouched->found = counts->then == untouched->result_rows;
	}
	MemoryContextSwitchTo(old_context);
}

/*
 * Finds the differences between a result and its table without reading the
 * rows that both have.  False if that cannot be done: then nothing that was
 * called back counts, and the rows of the result have to be read.  The log is
 * not needed for that, so no error of it is one of the caller's.
 */
bool
flashback_find_untouched(FlashbackShape *shape, Relation result, const FlashbackOrigin *origin,
						 Snapshot snapshot, FlashbackDifferenceCallback callback, void *arg,
						 int64 *same, bool *unique)
{
	Untouched	untouched = {
		.shape = shape,
		.origin = origin,
		.snapshot = snapshot,
		.callback = callback,
		.arg = arg,
	};
	ErrorData  *error;

	/* That nobody has written it is read of it, too */
	PredicateLockRelation(result, snapshot);
	if (!is_untouched(result, shape->rel, origin, &untouched.result_rows))
		return false;

	untouched.context = AllocSetContextCreate(CurrentMemoryContext, "flashback by pages",
											  ALLOCSET_DEFAULT_SIZES);
	error = flashback_attempt(find_differences, &untouched, false, errors_of_log);
	if (error)
	{
		ereport(DEBUG1, (errmsg_internal("rows are not compared by pages: %s", error->message)));
		FreeErrorData(error);
	}
	if (error || !untouched.found)
	{
		MemoryContextDelete(untouched.context);
		return false;
	}
	ereport(DEBUG1, (errmsg_internal("rows are compared by pages")));
	*same = untouched.counts.same;
	*unique = untouched.counts.unique;
	return true;
}
