/*-------------------------------------------------------------------------
 *
 * page_redo.c
 *	  Applies WAL of heaps to pages that belong to this backend.
 *
 * Not the redo routines of the core (heapam_xlog.c), from which it follows what
 * a record does: these work on shared buffers, change visibility map and free
 * space map, and end the server when a record does not fit to a page.  Here a
 * record that does not fit, or is not known, is an ERROR, and nothing but the
 * page is written.  With wal_consistency_checking each page that is rebuilt is
 * compared with the one that the core had.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/page_redo.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam_xlog.h"
#include "access/heapam.h"
#include "access/rmgr.h"
#include "access/xlog_internal.h"
#include "catalog/pg_control.h"
#include "flashback_internal.h"
#include "storage/bufmgr.h"

/* One block of a record, while it is applied */
typedef struct Change
{
	XLogReaderState *record;
	uint8		block_id;
	char	   *page;
	BlockNumber blkno;
	char	   *data;			/* the main data of the record */
	Size		length;
	char	   *block_data;
	Size		block_length;
} Change;

pg_noreturn static void misfit(const Change *change, const char *what);

static void
misfit(const Change *change, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("WAL record at %X/%X does not fit to block %u of relation %u",
					LSN_FORMAT_ARGS(change->record->ReadRecPtr), change->blkno,
					XLogRecGetBlock(change->record, change->block_id)->rlocator.relNumber),
			 errdetail_internal("%s.", what)));
}

/*
 * The fixed part of a record.
 */
static void
get_data(const Change *change, void *to, Size size)
{
	if (change->length < size)
		misfit(change, "the record is too short");
	memcpy(to, change->data, size);
}

static HeapTupleHeader
get_tuple(const Change *change, OffsetNumber offset, uint32 *len)
{
	ItemId		lp;

	if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber((Page) change->page))
		misfit(change, "the tuple does not exist");
	lp = PageGetItemId((Page) change->page, offset);
	if (!ItemIdIsNormal(lp))
		misfit(change, "the line pointer has no tuple");
	if (len)
		*len = ItemIdGetLength(lp);
	return (HeapTupleHeader) (change->page + ItemIdGetOffset(lp));
}

static void
set_xmax_bits(HeapTupleHeader tuple, uint8 infobits)
{
	tuple->t_infomask &= ~(HEAP_XMAX_BITS | HEAP_MOVED);
	tuple->t_infomask2 &= ~HEAP_KEYS_UPDATED;
	if (infobits & XLHL_XMAX_IS_MULTI)
		tuple->t_infomask |= HEAP_XMAX_IS_MULTI;
	if (infobits & XLHL_XMAX_LOCK_ONLY)
		tuple->t_infomask |= HEAP_XMAX_LOCK_ONLY;
	if (infobits & XLHL_XMAX_EXCL_LOCK)
		tuple->t_infomask |= HEAP_XMAX_EXCL_LOCK;
	if (infobits & XLHL_XMAX_KEYSHR_LOCK)
		tuple->t_infomask |= HEAP_XMAX_KEYSHR_LOCK;
	if (infobits & XLHL_KEYS_UPDATED)
		tuple->t_infomask2 |= HEAP_KEYS_UPDATED;
}

static void
set_cmax(HeapTupleHeader tuple)
{
	tuple->t_choice.t_heap.t_field3.t_cid = FirstCommandId;
	tuple->t_infomask &= ~HEAP_COMBOCID;
}

/*
 * Puts a tuple, of which there is the header of WAL and the rest, onto the
 * page.
 */
static void
add_tuple(const Change *change, OffsetNumber offset, const xl_heap_header *header,
		  const char *rest, Size length, TransactionId xmax)
{
	union
	{
		HeapTupleHeaderData header;
		char		data[BLCKSZ];
	}			tuple;
	Page		page = (Page) change->page;
	OffsetNumber limit = PageGetMaxOffsetNumber(page) + 1;

	if (PageIsNew(page))
		misfit(change, "the page is new");
	if (offset < FirstOffsetNumber || offset > limit || offset > MaxHeapTuplesPerPage)
		misfit(change, "the tuple would leave a gap");
	if (offset < limit)
	{
		ItemId		lp = PageGetItemId(page, offset);

		if (ItemIdIsUsed(lp) || ItemIdHasStorage(lp))
			misfit(change, "there is a tuple already");
	}
	if (length > MaxHeapTupleSize - SizeofHeapTupleHeader)
		misfit(change, "the tuple is too long");
	if (header->t_hoff < SizeofHeapTupleHeader || header->t_hoff > SizeofHeapTupleHeader + length)
		misfit(change, "the header of the tuple has a wrong length");

	memset(&tuple.header, 0, SizeofHeapTupleHeader);
	memcpy(tuple.data + SizeofHeapTupleHeader, rest, length);
	tuple.header.t_infomask2 = header->t_infomask2;
	tuple.header.t_infomask = header->t_infomask;
	tuple.header.t_hoff = header->t_hoff;
	tuple.header.t_choice.t_heap.t_xmin = XLogRecGetXid(change->record);
	tuple.header.t_choice.t_heap.t_xmax = xmax;
	set_cmax(&tuple.header);
	ItemPointerSet(&tuple.header.t_ctid, change->blkno, offset);

	if (PageAddItem(page, (Item) tuple.data, SizeofHeapTupleHeader + length,
					offset, true, true) == InvalidOffsetNumber)
		misfit(change, "there is no room for the tuple");
}

static void
redo_insert(const Change *change)
{
	xl_heap_insert insert;
	xl_heap_header header;

	get_data(change, &insert, SizeOfHeapInsert);
	if (change->block_length < SizeOfHeapHeader)
		misfit(change, "the record has no tuple");
	memcpy(&header, change->block_data, SizeOfHeapHeader);
	add_tuple(change, insert.offnum, &header, change->block_data + SizeOfHeapHeader,
			  change->block_length - SizeOfHeapHeader, InvalidTransactionId);
}

static void
redo_multi_insert(const Change *change)
{
	bool		init = (XLogRecGetInfo(change->record) & XLOG_HEAP_INIT_PAGE) != 0;
	uint16		ntuples;
	Size		at = 0;

	if (change->length < SizeOfHeapMultiInsert)
		misfit(change, "the record is too short");
	memcpy(&ntuples, change->data + offsetof(xl_heap_multi_insert, ntuples), sizeof(ntuples));
	if (!init && change->length < SizeOfHeapMultiInsert + ntuples * sizeof(OffsetNumber))
		misfit(change, "the record is too short");

	for (int i = 0; i < ntuples; i++)
	{
		OffsetNumber offset = FirstOffsetNumber + i;
		xl_multi_insert_tuple tuple;
		xl_heap_header header;

		if (!init)
			memcpy(&offset, change->data + SizeOfHeapMultiInsert + i * sizeof(OffsetNumber), sizeof(offset));
		/* The data begin at an aligned address */
		at = SHORTALIGN(at);
		if (at > change->block_length || change->block_length - at < SizeOfMultiInsertTuple)
			misfit(change, "a tuple is missing");
		memcpy(&tuple, change->block_data + at, SizeOfMultiInsertTuple);
		at += SizeOfMultiInsertTuple;
		if (tuple.datalen > change->block_length - at)
			misfit(change, "a tuple is longer than the record");
		header.t_infomask2 = tuple.t_infomask2;
		header.t_infomask = tuple.t_infomask;
		header.t_hoff = tuple.t_hoff;
		add_tuple(change, offset, &header, change->block_data + at, tuple.datalen, InvalidTransactionId);
		at += tuple.datalen;
	}
	if (at != change->block_length)
		misfit(change, "the record has more than its tuples");
}

static void
redo_delete(const Change *change)
{
	xl_heap_delete delete;
	HeapTupleHeader tuple;

	get_data(change, &delete, SizeOfHeapDelete);
	tuple = get_tuple(change, delete.offnum, NULL);
	set_xmax_bits(tuple, delete.infobits_set);
	tuple->t_infomask2 &= ~HEAP_HOT_UPDATED;
	if (delete.flags & XLH_DELETE_IS_SUPER)
		tuple->t_choice.t_heap.t_xmin = InvalidTransactionId;
	else
		tuple->t_choice.t_heap.t_xmax = delete.xmax;
	set_cmax(tuple);
	if (delete.flags & XLH_DELETE_IS_PARTITION_MOVE)
		HeapTupleHeaderSetMovedPartitions(tuple);
	else
		ItemPointerSet(&tuple->t_ctid, change->blkno, delete.offnum);
}

/*
 * The part of an update that concerns the old tuple.
 */
static void
redo_update_old(const Change *change, const xl_heap_update *update, BlockNumber new_blkno, bool hot)
{
	HeapTupleHeader tuple = get_tuple(change, update->old_offnum, NULL);

	set_xmax_bits(tuple, update->old_infobits_set);
	if (hot)
		tuple->t_infomask2 |= HEAP_HOT_UPDATED;
	else
		tuple->t_infomask2 &= ~HEAP_HOT_UPDATED;
	tuple->t_choice.t_heap.t_xmax = update->old_xmax;
	set_cmax(tuple);
	ItemPointerSet(&tuple->t_ctid, new_blkno, update->new_offnum);
}

static void
redo_update_new(const Change *change, const xl_heap_update *update, bool same_page)
{
	char		data[BLCKSZ];
	const char *from = change->block_data;
	Size		left = change->block_length;
	uint16		prefix = 0;
	uint16		suffix = 0;
	xl_heap_header header;
	Size		bitmap;
	Size		length;

	if ((update->flags & (XLH_UPDATE_PREFIX_FROM_OLD | XLH_UPDATE_SUFFIX_FROM_OLD)) && !same_page)
		misfit(change, "a part of the tuple is on another page");
	if (update->flags & XLH_UPDATE_PREFIX_FROM_OLD)
	{
		if (left < sizeof(uint16))
			misfit(change, "the record is too short");
		memcpy(&prefix, from, sizeof(uint16));
		from += sizeof(uint16);
		left -= sizeof(uint16);
	}
	if (update->flags & XLH_UPDATE_SUFFIX_FROM_OLD)
	{
		if (left < sizeof(uint16))
			misfit(change, "the record is too short");
		memcpy(&suffix, from, sizeof(uint16));
		from += sizeof(uint16);
		left -= sizeof(uint16);
	}
	if (left < SizeOfHeapHeader)
		misfit(change, "the record has no tuple");
	memcpy(&header, from, SizeOfHeapHeader);
	from += SizeOfHeapHeader;
	left -= SizeOfHeapHeader;

	if (header.t_hoff < SizeofHeapTupleHeader)
		misfit(change, "the header of the tuple has a wrong length");
	bitmap = header.t_hoff - SizeofHeapTupleHeader;
	length = left + prefix + suffix;
	if (bitmap > left || length > MaxHeapTupleSize - SizeofHeapTupleHeader)
		misfit(change, "the tuple has a wrong length");

	if (prefix + suffix > 0)
	{
		uint32		old_length;
		HeapTupleHeader old = get_tuple(change, update->old_offnum, &old_length);

		if (old->t_hoff < SizeofHeapTupleHeader || old->t_hoff > old_length ||
			prefix > old_length - old->t_hoff || suffix > old_length - old->t_hoff)
			misfit(change, "the old tuple is too short");
		memcpy(data, from, bitmap);
		memcpy(data + bitmap, (char *) old + old->t_hoff, prefix);
		memcpy(data + bitmap + prefix, from + bitmap, left - bitmap);
		memcpy(data + left + prefix, (char *) old + old_length - suffix, suffix);
		from = data;
	}
	add_tuple(change, update->new_offnum, &header, from, length, update->new_xmax);
}

static void
redo_update(const Change *change, bool hot)
{
	xl_heap_update update;
	BlockNumber new_blkno;
	bool		same_page;

	get_data(change, &update, SizeOfHeapUpdate);
	new_blkno = XLogRecGetBlock(change->record, HEAP_UPDATE_BLKREF_HEAP_NEW)->blkno;
	same_page = !XLogRecHasBlockRef(change->record, HEAP_UPDATE_BLKREF_HEAP_OLD) ||
		XLogRecGetBlock(change->record, HEAP_UPDATE_BLKREF_HEAP_OLD)->blkno == new_blkno;
	if (hot && !same_page)
		misfit(change, "a heap-only tuple is on another page");

	if (change->block_id == HEAP_UPDATE_BLKREF_HEAP_OLD || same_page)
		redo_update_old(change, &update, new_blkno, hot);
	if (change->block_id == HEAP_UPDATE_BLKREF_HEAP_NEW)
		redo_update_new(change, &update, same_page);
}

static void
redo_confirm(const Change *change)
{
	xl_heap_confirm confirm;

	get_data(change, &confirm, SizeOfHeapConfirm);
	ItemPointerSet(&get_tuple(change, confirm.offnum, NULL)->t_ctid, change->blkno, confirm.offnum);
}

static void
redo_lock(const Change *change)
{
	xl_heap_lock lock;
	HeapTupleHeader tuple;

	get_data(change, &lock, SizeOfHeapLock);
	tuple = get_tuple(change, lock.offnum, NULL);
	set_xmax_bits(tuple, lock.infobits_set);
	if (HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_infomask))
	{
		tuple->t_infomask2 &= ~HEAP_HOT_UPDATED;
		ItemPointerSet(&tuple->t_ctid, change->blkno, lock.offnum);
	}
	tuple->t_choice.t_heap.t_xmax = lock.xmax;
	set_cmax(tuple);
}

static void
redo_lock_updated(const Change *change)
{
	xl_heap_lock_updated lock;
	HeapTupleHeader tuple;

	get_data(change, &lock, SizeOfHeapLockUpdated);
	tuple = get_tuple(change, lock.offnum, NULL);
	set_xmax_bits(tuple, lock.infobits_set);
	tuple->t_choice.t_heap.t_xmax = lock.xmax;
}

static void
redo_inplace(const Change *change)
{
	xl_heap_inplace inplace;
	HeapTupleHeader tuple;
	uint32		length;

	get_data(change, &inplace, offsetof(xl_heap_inplace, dbId));
	tuple = get_tuple(change, inplace.offnum, &length);
	if (tuple->t_hoff < SizeofHeapTupleHeader || tuple->t_hoff > length ||
		length - tuple->t_hoff != change->block_length)
		misfit(change, "the tuple has another length");
	memcpy((char *) tuple + tuple->t_hoff, change->block_data, change->block_length);
}

/*
 * Takes a number of items of a record to prune; returns where they are.
 */
static const char *
take_items(const Change *change, Size *at, Size size, Size n)
{
	const char *result = change->block_data + *at;

	if (n > (change->block_length - *at) / size)
		misfit(change, "the record is too short");
	*at += n * size;
	return result;
}

static uint16
take_number(const Change *change, Size *at)
{
	uint16		n;

	memcpy(&n, take_items(change, at, sizeof(uint16), 1), sizeof(n));
	return n;
}

static OffsetNumber
offset_at(const Change *change, const char *offsets, int i)
{
	OffsetNumber offset;

	memcpy(&offset, offsets + i * sizeof(OffsetNumber), sizeof(offset));
	if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber((Page) change->page))
		misfit(change, "a line pointer does not exist");
	return offset;
}

static void
redo_prune(const Change *change)
{
	Page		page = (Page) change->page;
	xl_heap_prune prune;
	Size		at = 0;
	uint16		nplans = 0;
	uint16		nredirected = 0;
	uint16		ndead = 0;
	uint16		nunused = 0;
	const char *plans = NULL;
	const char *redirected = NULL;
	const char *dead = NULL;
	const char *unused = NULL;

	get_data(change, &prune, SizeOfHeapPrune);
	if (PageIsNew(page))
		misfit(change, "the page is new");
	if (prune.flags & XLHP_HAS_FREEZE_PLANS)
	{
		nplans = take_number(change, &at);
		at = offsetof(xlhp_freeze_plans, plans);
		if (at > change->block_length)
			misfit(change, "the record is too short");
		plans = take_items(change, &at, sizeof(xlhp_freeze_plan), nplans);
	}
	if (prune.flags & XLHP_HAS_REDIRECTIONS)
	{
		nredirected = take_number(change, &at);
		redirected = take_items(change, &at, 2 * sizeof(OffsetNumber), nredirected);
	}
	if (prune.flags & XLHP_HAS_DEAD_ITEMS)
	{
		ndead = take_number(change, &at);
		dead = take_items(change, &at, sizeof(OffsetNumber), ndead);
	}
	if (prune.flags & XLHP_HAS_NOW_UNUSED_ITEMS)
	{
		nunused = take_number(change, &at);
		unused = take_items(change, &at, sizeof(OffsetNumber), nunused);
	}
	if (!(prune.flags & XLHP_CLEANUP_LOCK) && (nredirected > 0 || ndead > 0))
		misfit(change, "it prunes without having locked the page");

	for (int i = 0; i < nredirected; i++)
	{
		ItemId		from = PageGetItemId(page, offset_at(change, redirected, 2 * i));
		OffsetNumber to = offset_at(change, redirected, 2 * i + 1);

		if (!ItemIdIsNormal(from) && !ItemIdIsRedirected(from))
			misfit(change, "a line pointer that it redirects is not used");
		if (!HeapTupleHeaderIsHeapOnly(get_tuple(change, to, NULL)))
			misfit(change, "it redirects to a tuple that is not heap-only");
		ItemIdSetRedirect(from, to);
	}
	for (int i = 0; i < ndead; i++)
	{
		ItemId		lp = PageGetItemId(page, offset_at(change, dead, i));

		if (!ItemIdIsNormal(lp) && !ItemIdIsRedirected(lp))
			misfit(change, "a line pointer that it marks dead is not used");
		ItemIdSetDead(lp);
	}
	for (int i = 0; i < nunused; i++)
	{
		ItemId		lp = PageGetItemId(page, offset_at(change, unused, i));

		if ((prune.flags & XLHP_CLEANUP_LOCK) ? !ItemIdIsUsed(lp) : !ItemIdIsDead(lp))
			misfit(change, "a line pointer that it frees is in use");
		ItemIdSetUnused(lp);
	}
	if (nredirected > 0 || ndead > 0 || nunused > 0)
	{
		if (prune.flags & XLHP_CLEANUP_LOCK)
			PageRepairFragmentation(page);
		else
			PageTruncateLinePointerArray(page);
	}

	for (int p = 0; p < nplans; p++)
	{
		xlhp_freeze_plan plan;
		const char *offsets;

		memcpy(&plan, plans + p * sizeof(xlhp_freeze_plan), sizeof(plan));
		offsets = take_items(change, &at, sizeof(OffsetNumber), plan.ntuples);
		for (int i = 0; i < plan.ntuples; i++)
		{
			HeapTupleHeader tuple = get_tuple(change, offset_at(change, offsets, i), NULL);

			tuple->t_choice.t_heap.t_xmax = plan.xmax;
			if (plan.frzflags & XLH_FREEZE_XVAC)
				tuple->t_choice.t_heap.t_field3.t_xvac = FrozenTransactionId;
			if (plan.frzflags & XLH_INVALID_XVAC)
				tuple->t_choice.t_heap.t_field3.t_xvac = InvalidTransactionId;
			tuple->t_infomask = plan.t_infomask;
			tuple->t_infomask2 = plan.t_infomask2;
		}
	}
	if (at != change->block_length)
		misfit(change, "the record has more than it says");
}

static void
redo_heap(const Change *change)
{
	switch (XLogRecGetInfo(change->record) & XLOG_HEAP_OPMASK)
	{
		case XLOG_HEAP_INSERT:
			redo_insert(change);
			break;
		case XLOG_HEAP_DELETE:
			redo_delete(change);
			break;
		case XLOG_HEAP_UPDATE:
			redo_update(change, false);
			break;
		case XLOG_HEAP_HOT_UPDATE:
			redo_update(change, true);
			break;
		case XLOG_HEAP_CONFIRM:
			redo_confirm(change);
			break;
		case XLOG_HEAP_LOCK:
			redo_lock(change);
			break;
		case XLOG_HEAP_INPLACE:
			redo_inplace(change);
			break;
		default:
			misfit(change, "its kind is not known");
	}
}

static void
redo_heap2(const Change *change)
{
	switch (XLogRecGetInfo(change->record) & XLOG_HEAP_OPMASK)
	{
		case XLOG_HEAP2_PRUNE_ON_ACCESS:
		case XLOG_HEAP2_PRUNE_VACUUM_SCAN:
		case XLOG_HEAP2_PRUNE_VACUUM_CLEANUP:
			redo_prune(change);
			break;
		case XLOG_HEAP2_MULTI_INSERT:
			redo_multi_insert(change);
			break;
		case XLOG_HEAP2_LOCK_UPDATED:
			redo_lock_updated(change);
			break;
		default:
			misfit(change, "its kind is not known");
	}
}

/*
 * Whether a record changes the content of blocks of heaps that it names.  Bits
 * of the visibility map, and what only logical decoding reads, do not.
 */
bool
flashback_redo_concerns(XLogReaderState *record)
{
	uint8		op = XLogRecGetInfo(record) & XLOG_HEAP_OPMASK;

	if (XLogRecGetRmid(record) == RM_HEAP2_ID)
		return op != XLOG_HEAP2_VISIBLE && op != XLOG_HEAP2_NEW_CID && op != XLOG_HEAP2_REWRITE;
	return true;
}

/*
 * Whether the block has after the record a content that does not depend on
 * what it was.
 */
bool
flashback_redo_makes_page(XLogReaderState *record, uint8 block_id)
{
	DecodedBkpBlock *block = XLogRecGetBlock(record, block_id);

	return block->apply_image || (block->flags & BKPBLOCK_WILL_INIT) != 0;
}

/*
 * With wal_consistency_checking a record has the page as the core left it.
 */
static void
compare(const Change *change)
{
	RmgrData	rmgr = GetRmgr(XLogRecGetRmid(change->record));
	PGAlignedBlock expected;
	PGAlignedBlock found;

	if (!RestoreBlockImage(change->record, change->block_id, expected.data))
		misfit(change, change->record->errormsg_buf);
	if (rmgr.rm_mask == NULL || flashback_check_page(expected.data) != NULL)
		misfit(change, "the image of the record is damaged");
	memcpy(found.data, change->page, BLCKSZ);
	rmgr.rm_mask(expected.data, change->blkno);
	rmgr.rm_mask(found.data, change->blkno);
	if (memcmp(expected.data, found.data, BLCKSZ) != 0)
		misfit(change, "the rebuilt page is not the one that the record shows");
}

/*
 * Applies one block of a record.  After an ERROR the page is in an undefined,
 * but harmless, state.
 */
void
flashback_redo_block(XLogReaderState *record, uint8 block_id, char *page)
{
	DecodedBkpBlock *block = XLogRecGetBlock(record, block_id);
	RmgrId		rmid = XLogRecGetRmid(record);
	uint8		op = XLogRecGetInfo(record) & ~XLR_INFO_MASK;
	Change		change;
	const char *wrong;

	change.record = record;
	change.block_id = block_id;
	change.page = page;
	change.blkno = block->blkno;
	change.data = XLogRecGetData(record);
	change.length = XLogRecGetDataLen(record);
	change.block_data = XLogRecGetBlockData(record, block_id, &change.block_length);
	if (change.block_data == NULL)
		change.block_length = 0;

	if (block->apply_image)
	{
		PGAlignedBlock image;

		if (!RestoreBlockImage(record, block_id, image.data))
			misfit(&change, record->errormsg_buf);
		if ((wrong = flashback_check_page(image.data)) != NULL)
			misfit(&change, wrong);
		memcpy(page, image.data, BLCKSZ);
	}
	else if (rmid == RM_XLOG_ID && op == XLOG_FPI_FOR_HINT)
		return;					/* full-page images were off */
	else
	{
		if (block->flags & BKPBLOCK_WILL_INIT)
			PageInit((Page) page, BLCKSZ, 0);
		else if (PageGetLSN((Page) page) >= record->EndRecPtr)
			return;
		if (rmid == RM_HEAP_ID && block_id <= HEAP_UPDATE_BLKREF_HEAP_OLD)
			redo_heap(&change);
		else if (rmid == RM_HEAP2_ID && block_id == 0)
			redo_heap2(&change);
		else
			misfit(&change, "it is not of a heap");
	}
	if (!PageIsNew((Page) page))
		PageSetLSN((Page) page, record->EndRecPtr);
	if (block->has_image && !block->apply_image)
		compare(&change);
}
