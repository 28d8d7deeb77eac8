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

#include "access/heapam.h"
#include "flashback_internal.h"
#include "storage/predicate.h"
#include "utils/memutils.h"

struct FlashbackScan
{
	MemoryContext context;
	MemoryContext row_context;
	Relation	rel;			/* NULL: it has been dropped since */
	Oid			relid;
	NameData	name;
	TupleDesc	desc;			/* of the tuples on its pages */
	TupleDesc	shape;			/* of the rows that are returned */
	FlashbackMoment moment;
	FlashbackFile file;
	FlashbackHeap *heap;
	FlashbackVisibility *visibility;
	Oid			toastrelid;		/* that the relation had at the moment */
	FlashbackFile toast_file;
	FlashbackToast *toast;		/* NULL: not needed yet */
	int			natts;			/* that the relation had at the moment */
	bool		has_dropped;
	const char *page;			/* NULL: none yet */
	BlockNumber blkno;
	bool		rebuilt;
	int			nvisible;		/* tuples of the page that are rows of then */
	OffsetNumber visible[MaxHeapTuplesPerPage];
	int			next;			/* of these */
	HeapTupleData tuple;
	Datum	   *values;
	bool	   *nulls;

	/* Only if both sides are read */
	Snapshot	snapshot;		/* NULL: they are not */
	FlashbackPagePair *pair;
	int			next_now;
	HeapTupleData now_tuple;
	bool		ended;
	int64		then;			/* rows of then so far, the same ones included */
	int64		same;
};

/*
 * Begins to read a relation as it was, of which the files have been found.
 */
static FlashbackScan *
begin(const FlashbackFormer *former, Relation rel, TupleDesc desc, TupleDesc shape,
	  const FlashbackMoment *moment, FlashbackPhase phase)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "flashback scan", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	FlashbackScan *scan = palloc0(sizeof(FlashbackScan));
	int			natts = Max(desc->natts, shape->natts);

	scan->context = context;
	scan->row_context = AllocSetContextCreate(context, "flashback row", ALLOCSET_DEFAULT_SIZES);
	scan->rel = rel;
	scan->relid = former->relid;
	scan->name = former->name;
	scan->desc = desc;
	scan->shape = shape;
	scan->moment = *moment;
	scan->natts = former->natts;
	scan->toastrelid = former->toastrelid;
	scan->toast_file = former->toast;
	scan->file = former->file;
	for (int i = 0; i < desc->natts; i++)
		if (TupleDescCompactAttr(desc, i)->attisdropped)
			scan->has_dropped = true;
	for (int i = 0; i < shape->natts; i++)
		if (TupleDescCompactAttr(shape, i)->attisdropped)
			scan->has_dropped = true;
	scan->values = palloc(natts * sizeof(Datum));
	scan->nulls = palloc(natts * sizeof(bool));
	scan->visibility = flashback_visibility_create(&scan->moment);
	scan->heap = flashback_heap_open(&former->file, rel, &scan->moment, phase);
	MemoryContextSwitchTo(old_context);
	return scan;
}

/*
 * Begins to read a catalog, from a file other than its present one if one is
 * given.
 */
FlashbackScan *
flashback_scan_catalog(Relation rel, const FlashbackFile *file, const FlashbackMoment *moment)
{
	FlashbackFormer former = {0};

	former.relid = RelationGetRelid(rel);
	former.name = rel->rd_rel->relname;
	former.natts = RelationGetNumberOfAttributes(rel);
	former.toastrelid = rel->rd_rel->reltoastrelid;
	former.file.rlocator = rel->rd_locator;
	if (file)
		former.file = *file;
	return begin(&former, rel, RelationGetDescr(rel), RelationGetDescr(rel), moment,
				 FLASHBACK_READING_CATALOG);
}

FlashbackScan *
flashback_scan_begin(const FlashbackFormer *former, Relation rel, bool then,
					 const FlashbackMoment *moment)
{
	TupleDesc	desc = former->desc ? former->desc : RelationGetDescr(rel);

	return begin(former, rel, desc, then ? desc : RelationGetDescr(rel), moment,
				 FLASHBACK_READING_TABLE);
}

/*
 * Takes part in a scan of another process, with our share of its blocks.
 */
FlashbackScan *
flashback_scan_join(const FlashbackFormer *former, Relation rel, TupleDesc desc, TupleDesc shape,
					const FlashbackMoment *moment, const FlashbackShare *share)
{
	FlashbackScan *scan = begin(former, rel, desc, shape, moment, FLASHBACK_READING_TABLE);

	flashback_scan_share(scan, share);
	return scan;
}

/*
 * Leaves blocks to other participants.  Nothing has been read yet.
 */
void
flashback_scan_share(FlashbackScan *scan, const FlashbackShare *share)
{
	flashback_heap_share(scan->heap, share);
}

/*
 * What a participant needs to know; it has no descriptors of its own.
 */
void
flashback_scan_former(const FlashbackScan *scan, FlashbackFormer *former)
{
	memset(former, 0, sizeof(*former));
	former->relid = scan->relid;
	former->name = scan->name;
	former->natts = scan->natts;
	former->file = scan->file;
	former->toastrelid = scan->toastrelid;
	former->toast = scan->toast_file;
}

BlockNumber
flashback_scan_size(const FlashbackScan *scan)
{
	return flashback_heap_size(scan->heap);
}

const FlashbackMoment *
flashback_scan_moment(const FlashbackScan *scan)
{
	return &scan->moment;
}

Relation
flashback_scan_relation(const FlashbackScan *scan)
{
	return scan->rel;
}

TupleTableSlot *
flashback_scan_slot(FlashbackScan *scan)
{
	return MakeSingleTupleTableSlot(scan->shape, &TTSOpsHeapTuple);
}

/*
 * What is on its pages, for whoever takes tuples as they are stored.
 */
void
flashback_scan_describe(const FlashbackScan *scan, FlashbackStored *stored)
{
	stored->name = NameStr(scan->name);
	stored->desc = scan->desc;
	stored->shape = scan->shape;
	stored->natts = scan->natts;
	stored->toastrelid = scan->toastrelid;
}

/*
 * The TOAST relation as of the moment; it belongs to the scan's memory.
 */
FlashbackToast *
flashback_scan_open_toast(FlashbackScan *scan)
{
	MemoryContext old_context = MemoryContextSwitchTo(scan->context);
	FlashbackToast *toast;

	if (!OidIsValid(scan->toastrelid))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("table \"%s\" has a TOAST value but no TOAST table",
						NameStr(scan->name))));
	flashback_heap_pause(scan->heap);
	toast = flashback_toast_open(scan->toastrelid, &scan->toast_file,
								 &scan->moment, scan->visibility);
	MemoryContextSwitchTo(old_context);
	return toast;
}

/*
 * Brings a tuple into the shape that is returned.  Its TOAST values are
 * fetched, or else stay pointers.  The result is valid until the next call.
 */
HeapTuple
flashback_scan_reshape(FlashbackScan *scan, HeapTuple tuple, bool fetch)
{
	TupleDesc	shape = scan->shape;
	MemoryContext old_context;
	HeapTuple	result;

	MemoryContextReset(scan->row_context);
	old_context = MemoryContextSwitchTo(scan->row_context);

	/* Columns that it lacks get the value they were added with ... */
	heap_deform_tuple(tuple, scan->desc, scan->values, scan->nulls);
	for (int i = 0; i < shape->natts; i++)
	{
		CompactAttribute *att = TupleDescCompactAttr(shape, i);
		struct varlena *value;

		/* ... but those of later none */
		if (i >= scan->desc->natts || i >= scan->natts || att->attisdropped ||
			TupleDescCompactAttr(scan->desc, i)->attisdropped)
			scan->nulls[i] = true;
		if (scan->nulls[i] || att->attlen != -1 || !fetch)
			continue;
		value = (struct varlena *) DatumGetPointer(scan->values[i]);
		if (!VARATT_IS_EXTERNAL_ONDISK(value))
			continue;
		if (scan->toast == NULL)
			scan->toast = flashback_scan_open_toast(scan);
		scan->values[i] = PointerGetDatum(flashback_toast_fetch(scan->toast, value));
	}
	result = heap_form_tuple(shape, scan->values, scan->nulls);
	result->t_self = tuple->t_self;
	result->t_tableOid = tuple->t_tableOid;
	MemoryContextSwitchTo(old_context);
	return result;
}

/*
 * Finds the tuples of the page that are rows of then.
 */
static void
find_visible(FlashbackScan *scan)
{
	OffsetNumber last;

	last = PageGetMaxOffsetNumber((Page) scan->page);
	if (last > MaxHeapTuplesPerPage)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("invalid page in block %u of table \"%s\"", scan->blkno, NameStr(scan->name))));
	for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
	{
		ItemId		lp = PageGetItemId((Page) scan->page, offset);

		if (ItemIdIsNormal(lp) &&
			flashback_tuple_is_visible(scan->visibility,
									   (HeapTupleHeader) (scan->page + ItemIdGetOffset(lp))))
			scan->visible[scan->nvisible++] = offset;
	}
	flashback_progress.rows += scan->nvisible;
}

/*
 * The next page as of the moment, and which of its tuples are rows of then;
 * NULL at the end.  What is in it is valid until the next call.
 */
const char *
flashback_scan_next_page(FlashbackScan *scan, const OffsetNumber **visible, int *nvisible)
{
	scan->nvisible = scan->next = 0;
	scan->page = flashback_heap_next(scan->heap, &scan->blkno, &scan->rebuilt);
	if (scan->page == NULL)
	{
		flashback_scan_check_complete(scan);
		return NULL;
	}
	find_visible(scan);
	*visible = scan->visible;
	*nvisible = scan->nvisible;
	return scan->page;
}

/*
 * A tuple of the page.
 */
HeapTuple
flashback_scan_tuple(FlashbackScan *scan, OffsetNumber offset)
{
	ItemId		lp = PageGetItemId((Page) scan->page, offset);
	const char *wrong;

	ItemPointerSet(&scan->tuple.t_self, scan->blkno, offset);
	scan->tuple.t_tableOid = scan->relid;
	scan->tuple.t_data = (HeapTupleHeader) (scan->page + ItemIdGetOffset(lp));
	scan->tuple.t_len = ItemIdGetLength(lp);
	if (scan->rebuilt &&
		(wrong = flashback_check_tuple(scan->desc, scan->tuple.t_data, scan->tuple.t_len)) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("invalid tuple (%u,%u) of table \"%s\"", scan->blkno, offset,
						NameStr(scan->name)),
				 errdetail_internal("%s.", wrong)));
	return &scan->tuple;
}

/*
 * Whatever has been read counts only after this.
 */
void
flashback_scan_check_complete(FlashbackScan *scan)
{
	FlashbackRefusal refusal;
	FlashbackFormer former;

	if (!flashback_moment_lasts(&scan->moment))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the target time has left the window of the flashback log meanwhile"),
				 errhint("Choose a later time, or a longer window with polar_fast_recovery_area_rotation.")));

	flashback_scan_former(scan, &former);
	if (!flashback_may_read(&former, &scan->moment.point))
	{
		flashback_refuse_purged(&former, NameStr(scan->name), &refusal);
		flashback_refuse(&refusal);
	}
}

/*
 * Puts the row before the next one into a slot.
 */
static void
store_row(FlashbackScan *scan, TupleTableSlot *slot)
{
	HeapTuple	tuple;

	tuple = flashback_scan_tuple(scan, scan->visible[scan->next - 1]);
	ExecClearTuple(slot);
	if (scan->has_dropped || HeapTupleHasExternal(tuple) ||
		HeapTupleHeaderGetNatts(tuple->t_data) != scan->shape->natts ||
		scan->natts != scan->shape->natts)
		tuple = flashback_scan_reshape(scan, tuple, true);
	ExecStoreHeapTuple(tuple, slot, false);
}

bool
flashback_scan_next(FlashbackScan *scan, TupleTableSlot *slot)
{
	while (scan->next == scan->nvisible)
	{
		const OffsetNumber *visible;
		int			nvisible;

		if (flashback_scan_next_page(scan, &visible, &nvisible) == NULL)
		{
			if (slot)
				ExecClearTuple(slot);
			return false;
		}
	}
	scan->next++;
	if (slot)
		store_row(scan, slot);
	return true;
}

bool
flashback_scan_pair(FlashbackScan *scan, Snapshot snapshot)
{
	if (!flashback_heap_is_present(scan->heap))
		return false;
	scan->snapshot = snapshot;
	scan->pair = MemoryContextAlloc(scan->context, sizeof(FlashbackPagePair));
	scan->pair->nnow = 0;
	PredicateLockRelation(scan->rel, snapshot);
	return true;
}

static HeapTuple
present_tuple(FlashbackScan *scan, OffsetNumber offset)
{
	FlashbackPagePair *pair = scan->pair;
	ItemId		lp = PageGetItemId((Page) pair->now, offset);

	ItemPointerSet(&scan->now_tuple.t_self, pair->blkno, offset);
	scan->now_tuple.t_tableOid = scan->relid;
	scan->now_tuple.t_data = (HeapTupleHeader) (pair->now + ItemIdGetOffset(lp));
	scan->now_tuple.t_len = ItemIdGetLength(lp);
	return &scan->now_tuple;
}

/*
 * Whether a place has the same row then and now: a tuple of the same
 * transaction, with the same bytes.
 */
static bool
is_same_row(FlashbackScan *scan, OffsetNumber offset)
{
	const Size	from = offsetof(HeapTupleHeaderData, t_bits);
	HeapTuple	then;
	HeapTuple	now;

	if (scan->pair->then == scan->pair->now)
		return true;
	then = flashback_scan_tuple(scan, offset);
	now = present_tuple(scan, offset);
	return then->t_len == now->t_len &&
		HeapTupleHeaderGetRawXmin(then->t_data) == HeapTupleHeaderGetRawXmin(now->t_data) &&
		HeapTupleHeaderGetNatts(then->t_data) == HeapTupleHeaderGetNatts(now->t_data) &&
		then->t_data->t_hoff == now->t_data->t_hoff &&
		HeapTupleHasNulls(then) == HeapTupleHasNulls(now) &&
		memcmp((char *) then->t_data + from, (char *) now->t_data + from, then->t_len - from) == 0;
}

/*
 * Goes on to the next block; false if there is none.
 */
static bool
next_pair(FlashbackScan *scan)
{
	FlashbackPagePair *pair = scan->pair;
	int			nthen = 0;
	int			nnow = 0;
	int			at = 0;

	scan->nvisible = scan->next = scan->next_now = pair->nnow = 0;
	if (scan->ended)
		return false;
	if (!flashback_heap_next_pair(scan->heap, scan->snapshot, pair))
	{
		flashback_scan_check_complete(scan);
		scan->ended = true;
		return false;
	}
	scan->page = pair->then;
	scan->blkno = pair->blkno;
	scan->rebuilt = pair->rebuilt;
	find_visible(scan);
	scan->then += scan->nvisible;

	/* Leaves only those that are not on both sides */
	for (int i = 0; i < scan->nvisible; i++)
	{
		while (at < pair->nnow && pair->now_visible[at] < scan->visible[i])
			pair->now_visible[nnow++] = pair->now_visible[at++];
		if (at < pair->nnow && pair->now_visible[at] == scan->visible[i] &&
			is_same_row(scan, scan->visible[i]))
		{
			scan->same++;
			at++;
		}
		else
			scan->visible[nthen++] = scan->visible[i];
	}
	while (at < pair->nnow)
		pair->now_visible[nnow++] = pair->now_visible[at++];
	scan->nvisible = nthen;
	pair->nnow = nnow;
	return true;
}

FlashbackNext
flashback_scan_next_then(FlashbackScan *scan, TupleTableSlot *slot)
{
	ExecClearTuple(slot);
	while (scan->next == scan->nvisible)
	{
		if (scan->next_now < scan->pair->nnow)
			return FLASHBACK_NEXT_OTHER;
		if (!next_pair(scan))
			return FLASHBACK_NEXT_END;
	}
	scan->next++;
	store_row(scan, slot);
	return FLASHBACK_NEXT_ROW;
}

FlashbackNext
flashback_scan_next_now(FlashbackScan *scan, TupleTableSlot *slot)
{
	ExecClearTuple(slot);
	while (scan->next_now == scan->pair->nnow)
	{
		if (scan->next < scan->nvisible)
			return FLASHBACK_NEXT_OTHER;
		if (!next_pair(scan))
			return FLASHBACK_NEXT_END;
	}
	ExecStoreHeapTuple(present_tuple(scan, scan->pair->now_visible[scan->next_now++]), slot, false);
	return FLASHBACK_NEXT_ROW;
}

/*
 * How many rows of then there were, once both sides have ended.
 */
int64
flashback_scan_then(const FlashbackScan *scan)
{
	return scan->then;
}

/*
 * How many rows were the same, once both sides have ended.
 */
int64
flashback_scan_same(const FlashbackScan *scan)
{
	return scan->same;
}

void
flashback_scan_end(FlashbackScan *scan)
{
	if (scan->toast)
		flashback_toast_close(scan->toast);
	flashback_heap_close(scan->heap);
	MemoryContextDelete(scan->context);
}
