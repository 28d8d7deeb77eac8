/*-------------------------------------------------------------------------
 *
 * rebuild.c
 *	  The pages of a heap as of a position in WAL.
 *
 * A page in shared buffers that has not changed since is taken as it is.  The
 * others are remembered while the heap is read, and rebuilt together with one
 * pass over WAL: from the image that the log has of them since the point, from
 * disk if they have not been written since, or from zeroes.
 *
 * A file that has been deleted since, and kept, has nothing in shared buffers,
 * and what it holds may lack changes of before the moment: those that were
 * never written.  So each page is rebuilt, but only those that have an image,
 * or that WAL changes, are remembered; others are as the file has them.
 *
 * Several processes can read the same file, each its share of the blocks: a
 * block is rebuilt from what concerns it alone.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/rebuild.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/xlog_internal.h"
#include "catalog/storage_xlog.h"
#include "common/hashfn.h"
#include "flashback_internal.h"
#include "utils/memutils.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "storage/read_stream.h"
#include "storage/smgr.h"
#include "utils/injection_point.h"

/* Where the content of a block is */
typedef enum BlockSource
{
	BLOCK_UNKNOWN,				/* not yet decided */
	BLOCK_ZEROES,
	BLOCK_IMAGE,				/* in the log */
	BLOCK_STORED,				/* among our pages */
	BLOCK_TORN,					/* what is on disk does not verify */
	BLOCK_UNREADABLE,			/* not known: it could not be read when it was
								 * overwritten, or is torn */
} BlockSource;

typedef struct FlashbackBlock
{
	BlockNumber blkno;			/* hash key */
	char		status;
	bool		done;			/* it is as of the position */
	bool		cut_off;		/* WAL of before the point changes it, but the
								 * point has nothing of it */
	BlockSource source;
	uint32		slot;			/* if stored */
	FlashbackImage image;		/* if from the log */
} FlashbackBlock;

/* How often a page that is perhaps being written is read */
#define READ_ATTEMPTS 10

#define SH_PREFIX block
#define SH_ELEMENT_TYPE FlashbackBlock
#define SH_KEY_TYPE BlockNumber
#define SH_KEY blkno
#define SH_HASH_KEY(table, key) murmurhash32(key)
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* A truncation of a kept file before the moment */
typedef struct Cut
{
	BlockNumber blkno;
	XLogRecPtr	end;			/* of its record */
} Cut;

struct FlashbackHeap
{
	MemoryContext context;
	Relation	rel;			/* NULL: a kept file */
	FlashbackKept *kept;		/* NULL: the present file of rel */
	XLogRecPtr	deleted;		/* when, if kept */
	List	   *cuts;			/* of Cut, if kept */
	RelFileLocator rlocator;
	const FlashbackMoment *moment;
	FlashbackPhase phase;
	BlockNumber nblocks;		/* of the file, when we began */
	BufferAccessStrategy strategy;
	ReadStream *stream;			/* NULL: all that is on disk has been read */
	FlashbackShare share;		/* of the blocks, that are read */
	BlockNumber ahead;			/* the next block for the stream */
	BlockNumber position;		/* the next block that is not yet taken */
	block_hash *blocks;			/* to rebuild, or rebuilt */
	FlashbackPageStore *store;
	FlashbackImageReader *reader;	/* NULL: no image was needed yet */
	BlockNumber *order;			/* of what was rebuilt */
	uint32		norder;
	uint32		next;
	char	   *page;			/* aligned for reads from disk */
	char	   *present;		/* the page of now beside it; NULL: not needed
								 * yet */
};

static void rebuild(FlashbackHeap *heap);

/*
 * Opens the kept file, which may have been removed since it was found.
 */
static void
open_kept(FlashbackHeap *heap)
{
	FlashbackKeptFile file;

	heap->kept = flashback_log()->recycle->open(&heap->rlocator, heap->moment->lsn, &file);
	if (heap->kept == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the kept file of relation %u has been removed meanwhile", heap->rlocator.relNumber)));
	heap->nblocks = file.nblocks;
	heap->deleted = file.commit_lsn;
}

/*
 * Whether a block is ours, and not another participant's.
 */
static bool
is_ours(const FlashbackHeap *heap, BlockNumber blkno)
{
	const FlashbackShare *share = &heap->share;

	return share->of <= 1 || (int) (blkno / share->run % share->of) == share->number;
}

static BlockNumber
next_of_stream(ReadStream *stream, void *callback_private_data, void *per_buffer_data)
{
	FlashbackHeap *heap = callback_private_data;

	while (heap->ahead < heap->nblocks && !is_ours(heap, heap->ahead))
		heap->ahead++;
	return heap->ahead < heap->nblocks ? heap->ahead++ : InvalidBlockNumber;
}

/*
 * Begins to read a heap from a file: the present one of a relation, which must
 * be locked, or one that was kept.
 */
FlashbackHeap *
flashback_heap_open(const FlashbackFile *file, Relation rel, const FlashbackMoment *moment,
					FlashbackPhase phase)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "flashback heap", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	FlashbackHeap *heap = palloc0(sizeof(FlashbackHeap));

	heap->context = context;
	heap->page = palloc_aligned(BLCKSZ, PG_IO_ALIGN_SIZE, 0);
	heap->rlocator = file->rlocator;
	heap->moment = moment;
	heap->phase = phase;
	heap->blocks = block_create(context, 256, NULL);
	heap->store = flashback_store_create();
	if (file->kept)
		open_kept(heap);
	else
	{
		Assert(RelFileLocatorEquals(rel->rd_locator, file->rlocator));
		heap->rel = rel;
		heap->nblocks = RelationGetNumberOfBlocks(rel);
		heap->strategy = GetAccessStrategy(BAS_BULKREAD);
		heap->stream = read_stream_begin_relation(READ_STREAM_FULL | READ_STREAM_SEQUENTIAL | READ_STREAM_USE_BATCHING,
												  heap->strategy, rel, MAIN_FORKNUM,
												  next_of_stream, heap, 0);
	}
	MemoryContextSwitchTo(old_context);

	flashback_progress.blocks_total = heap->nblocks;
	flashback_progress.blocks_done = 0;
	flashback_report(phase);
	return heap;
}

/*
 * Leaves blocks to other participants, that read the same file.  Nothing has
 * been read yet.
 */
void
flashback_heap_share(FlashbackHeap *heap, const FlashbackShare *share)
{
	Assert(heap->position == 0 && heap->order == NULL && heap->blocks->members == 0);
	heap->share = *share;
	flashback_store_share(heap->store, share->of);
}

/*
 * Whether a page has nothing, and no position of its own either.  Then nothing
 * is known of before: it may have been cut off, with rows, and added again.
 */
static bool
is_blank(Page page)
{
	return PageIsNew(page) ||
		(XLogRecPtrIsInvalid(PageGetLSN(page)) && PageGetMaxOffsetNumber(page) == 0);
}

/*
 * Copies a page out of shared buffers; returns whether it has not changed
 * since the moment.  Its changes are all there: they are made under the lock,
 * which is held until the page has the position of their record.
 */
static bool
copy_if_old(FlashbackHeap *heap, Buffer buffer, bool copy_newer)
{
	Page		page = BufferGetPage(buffer);
	bool		old;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	old = !is_blank(page) && PageGetLSN(page) <= heap->moment->lsn;
	if (old || copy_newer)
		memcpy(heap->page, page, BLCKSZ);
	UnlockReleaseBuffer(buffer);
	return old;
}

static void
read_image(FlashbackHeap *heap, const FlashbackBlock *block, char *page)
{
	if (heap->reader == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(heap->context);

		heap->reader = flashback_log()->begin_reading();
		MemoryContextSwitchTo(old_context);
	}
	flashback_log()->read_next(heap->reader, &block->image, page);
}

static FlashbackBlock *
want(FlashbackHeap *heap, BlockNumber blkno)
{
	bool		found;
	FlashbackBlock *block = block_insert(heap->blocks, blkno, &found);

	if (!found)
	{
		block->done = false;
		block->cut_off = false;
		block->source = BLOCK_UNKNOWN;
		flashback_progress.blocks_rebuilt++;
	}
	return block;
}

pg_noreturn static void refuse_block(const FlashbackHeap *heap, BlockNumber blkno, const char *wrong);

static void
refuse_block(const FlashbackHeap *heap, BlockNumber blkno, const char *wrong)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("could not rebuild block %u of relation %u", blkno, heap->rlocator.relNumber),
			 errdetail_internal("%s.", wrong)));
}

/*
 * What a kept file says of a block that has no image and that no record of WAL
 * has changed up to where we are: it is newer than the point only if it came
 * to be after it.
 */
static const char *
read_kept(FlashbackHeap *heap, BlockNumber blkno)
{
	Page		page = (Page) heap->page;
	const char *wrong;

	flashback_log()->recycle->read(heap->kept, blkno, heap->page);
	wrong = flashback_check_page(heap->page);
	if (wrong != NULL)
		refuse_block(heap, blkno, wrong);
	if (!PageIsNew(page) && PageGetLSN(page) > heap->moment->point.lsn)
		memset(heap->page, 0, BLCKSZ);
	foreach_ptr(Cut, cut, heap->cuts)
	{
		if (cut->blkno <= blkno && !PageIsNew(page) && PageGetLSN(page) < cut->end)
			memset(heap->page, 0, BLCKSZ);
	}
	return heap->page;
}

/*
 * The next page of a kept file that is as the file has it, or NULL.
 */
static const char *
next_kept(FlashbackHeap *heap, BlockNumber *blkno)
{
	while (heap->position < heap->nblocks)
	{
		const char *page;

		CHECK_FOR_INTERRUPTS();
		*blkno = heap->position++;
		if (!is_ours(heap, *blkno))
			continue;
		if ((++flashback_progress.blocks_done & 1023) == 0)
			flashback_report(heap->phase);
		if (block_lookup(heap->blocks, *blkno) != NULL)
			continue;
		page = read_kept(heap, *blkno);
		if (!PageIsNew((Page) page))
			return page;
	}
	return NULL;
}

/*
 * The next page that is as of the moment, in no particular order, or NULL.
 * *rebuilt tells whether it does not come from shared buffers as it is.
 */
const char *
flashback_heap_next(FlashbackHeap *heap, BlockNumber *blkno, bool *rebuilt)
{
	while (heap->stream)
	{
		Buffer		buffer = read_stream_next_buffer(heap->stream, NULL);

		CHECK_FOR_INTERRUPTS();
		if (!BufferIsValid(buffer))
		{
			read_stream_end(heap->stream);
			heap->stream = NULL;
			INJECTION_POINT("flashback-table-rebuild", NULL);
			rebuild(heap);
			flashback_report(FLASHBACK_READING_REBUILT);
			break;
		}
		*blkno = BufferGetBlockNumber(buffer);
		*rebuilt = false;
		heap->position = *blkno + 1;
		if ((++flashback_progress.blocks_done & 1023) == 0)
			flashback_report(heap->phase);
		if (copy_if_old(heap, buffer, false))
			return heap->page;
		want(heap, *blkno);
	}
	if (heap->kept)
	{
		const char *page;

		if (heap->order == NULL)
			rebuild(heap);
		*rebuilt = true;
		if ((page = next_kept(heap, blkno)) != NULL)
			return page;
	}
	while (heap->next < heap->norder)
	{
		bool		newer;
		const char *page;

		CHECK_FOR_INTERRUPTS();
		*blkno = heap->order[heap->next++];
		*rebuilt = true;
		page = flashback_heap_fetch(heap, *blkno, &newer);
		if (!PageIsNew((Page) page))
			return page;
	}
	return NULL;
}

/*
 * Whether the heap is the present file of its relation, so that each page has
 * one of now.
 */
bool
flashback_heap_is_present(const FlashbackHeap *heap)
{
	return heap->kept == NULL;
}

/*
 * Notes which tuples of a page a snapshot sees.  It is locked, as hints may be
 * set on it.
 */
static void
note_visible(FlashbackHeap *heap, Buffer buffer, Snapshot snapshot, FlashbackPagePair *pair)
{
	Page		page = BufferGetPage(buffer);
	bool		all_visible = PageIsAllVisible(page) && !snapshot->takenDuringRecovery;
	bool		serializable = CheckForSerializableConflictOutNeeded(heap->rel, snapshot);
	OffsetNumber last = PageGetMaxOffsetNumber(page);

	Assert(last <= MaxHeapTuplesPerPage);
	pair->nnow = 0;
	for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
	{
		ItemId		lp = PageGetItemId(page, offset);
		HeapTupleData tuple;
		bool		visible;

		if (!ItemIdIsNormal(lp))
			continue;
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, lp);
		tuple.t_len = ItemIdGetLength(lp);
		tuple.t_tableOid = RelationGetRelid(heap->rel);
		ItemPointerSet(&tuple.t_self, pair->blkno, offset);
		visible = all_visible || HeapTupleSatisfiesVisibility(&tuple, snapshot, buffer);
		if (serializable)
			HeapCheckForSerializableConflictOut(visible, heap->rel, &tuple, buffer, snapshot);
		if (visible)
			pair->now_visible[pair->nnow++] = offset;
	}
}

/*
 * The next block, in no particular order, as it was at the moment and as it is
 * now, with the tuples of now that a snapshot sees, which has been registered
 * before the heap was opened; false at the end.
 */
bool
flashback_heap_next_pair(FlashbackHeap *heap, Snapshot snapshot, FlashbackPagePair *pair)
{
	bool		newer;
	Buffer		buffer;

	Assert(heap->kept == NULL);
	if (heap->present == NULL)
		heap->present = MemoryContextAllocAligned(heap->context, BLCKSZ, PG_IO_ALIGN_SIZE, 0);
	while (heap->stream)
	{
		bool		old;

		buffer = read_stream_next_buffer(heap->stream, NULL);
		CHECK_FOR_INTERRUPTS();
		if (!BufferIsValid(buffer))
		{
			read_stream_end(heap->stream);
			heap->stream = NULL;
			rebuild(heap);
			flashback_report(FLASHBACK_READING_REBUILT);
			break;
		}
		pair->blkno = BufferGetBlockNumber(buffer);
		heap->position = pair->blkno + 1;
		if ((++flashback_progress.blocks_done & 1023) == 0)
			flashback_report(heap->phase);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		old = !is_blank(BufferGetPage(buffer)) &&
			PageGetLSN(BufferGetPage(buffer)) <= heap->moment->lsn;
		if (old)
		{
			note_visible(heap, buffer, snapshot, pair);
			memcpy(heap->page, BufferGetPage(buffer), BLCKSZ);
		}
		UnlockReleaseBuffer(buffer);
		if (old)
		{
			pair->rebuilt = false;
			pair->then = pair->now = heap->page;
			return true;
		}
		want(heap, pair->blkno);
	}
	if (heap->next >= heap->norder)
		return false;

	CHECK_FOR_INTERRUPTS();
	pair->blkno = heap->order[heap->next++];
	pair->rebuilt = true;
	pair->then = flashback_heap_fetch(heap, pair->blkno, &newer);
	pair->now = NULL;
	pair->nnow = 0;
	if (pair->blkno >= heap->nblocks)
		return true;

	/* What the snapshot sees is still there, and was then */
	buffer = ReadBufferExtended(heap->rel, MAIN_FORKNUM, pair->blkno, RBM_NORMAL, heap->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	note_visible(heap, buffer, snapshot, pair);
	memcpy(heap->present, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	pair->now = heap->present;
	return true;
}

/*
 * A page of its own, rebuilt or not.  *newer: it could not be had as of the
 * moment without being rebuilt, and is as it is now.
 */
const char *
flashback_heap_fetch(FlashbackHeap *heap, BlockNumber blkno, bool *newer)
{
	FlashbackBlock *block = block_lookup(heap->blocks, blkno);
	const char *page = heap->page;
	const char *wrong;

	*newer = false;
	if (block == NULL && heap->kept)
		return read_kept(heap, blkno);
	if (block == NULL || !block->done)
	{
		*newer = !copy_if_old(heap, ReadBufferExtended(heap->rel, MAIN_FORKNUM, blkno,
													   RBM_NORMAL, heap->strategy), true);
		return page;
	}
	switch (block->source)
	{
		case BLOCK_ZEROES:
			memset(heap->page, 0, BLCKSZ);
			break;
		case BLOCK_IMAGE:
			read_image(heap, block, heap->page);
			break;
		case BLOCK_STORED:
			page = flashback_store_page(heap->store, block->slot, false);
			break;
		default:
			elog(ERROR, "block %u of relation %u was not rebuilt", blkno, heap->rlocator.relNumber);
	}
	wrong = flashback_check_page(page);
	if (wrong == NULL && PageGetLSN((Page) page) > heap->moment->lsn)
		wrong = "it is newer";
	if (wrong != NULL)
		refuse_block(heap, blkno, wrong);
	return page;
}

/*
 * Rebuilds whatever has changed since the moment and is not rebuilt yet.
 */
void
flashback_heap_rebuild_newer(FlashbackHeap *heap)
{
	for (BlockNumber blkno = 0; blkno < heap->nblocks; blkno++)
	{
		CHECK_FOR_INTERRUPTS();
		if (block_lookup(heap->blocks, blkno) == NULL &&
			!copy_if_old(heap, ReadBufferExtended(heap->rel, MAIN_FORKNUM, blkno,
												  RBM_NORMAL, heap->strategy), false))
			want(heap, blkno);
	}
	rebuild(heap);
}

/*
 * The number of blocks of the file.
 */
BlockNumber
flashback_heap_size(const FlashbackHeap *heap)
{
	return heap->nblocks;
}

/*
 * Lets go of pages that were read ahead: something else takes its time now,
 * and VACUUM may wait for them.
 */
void
flashback_heap_pause(FlashbackHeap *heap)
{
	if (heap->stream == NULL)
		return;
	read_stream_reset(heap->stream);
	heap->ahead = heap->position;
}

void
flashback_heap_close(FlashbackHeap *heap)
{
	if (heap->stream)
		read_stream_end(heap->stream);
	if (heap->reader)
		flashback_log()->end_reading(heap->reader);
	flashback_store_free(heap->store);
	if (heap->kept)
		flashback_log()->recycle->close(heap->kept);
	else
		FreeAccessStrategy(heap->strategy);
	MemoryContextDelete(heap->context);
}

/*
 * Looks up the first images of the blocks that are wanted.  What lay beyond
 * the end of the file and has an image is wanted, too; of a kept file all that
 * has one, unless another relation had the number after it.
 */
static void
find_images(FlashbackHeap *heap, bool also_read)
{
	const FlashbackLogApi *api = flashback_log();
	FlashbackImages *images = api->begin_images(&heap->moment->point, &heap->rlocator);
	FlashbackImage image;

	while (api->next_image(images, &image))
	{
		FlashbackBlock *block;

		if (!is_ours(heap, image.blkno) || (heap->kept && image.lsn >= heap->deleted))
			continue;
		if (image.blkno >= heap->nblocks || heap->kept)
			block = want(heap, image.blkno);
		else
			block = block_lookup(heap->blocks, image.blkno);
		if (block == NULL || block->done ||
			block->source == BLOCK_IMAGE || block->source == BLOCK_UNREADABLE ||
			(block->source != BLOCK_UNKNOWN && !also_read))
			continue;
		block->source = (image.kind == FLASHBACK_IMAGE_PAGE ? BLOCK_IMAGE : BLOCK_UNREADABLE);
		block->image = image;
	}
	api->end_images(images);
}

/*
 * Reads a block beside shared buffers; false if it does not verify, also not
 * after whoever may have been writing it has had time to end.
 */
static bool
read_from_disk(FlashbackHeap *heap, SMgrRelation smgr, BlockNumber blkno)
{
	for (int attempt = 0; attempt < READ_ATTEMPTS; attempt++)
	{
		CHECK_FOR_INTERRUPTS();
		smgrread(smgr, MAIN_FORKNUM, blkno, heap->page);
		if (PageIsVerified((Page) heap->page, blkno, 0, NULL))
			return true;
	}
	return false;
}

/*
 * Decides where the content of the wanted blocks at the point comes from.
 */
static void
find_bases(FlashbackHeap *heap)
{
	SMgrRelation smgr;
	block_iterator iterator;
	FlashbackBlock *block;
	bool		read = false;

	flashback_report(FLASHBACK_READING_IMAGES);
	find_images(heap, false);

	/* Of a kept file the others are read when they are needed */
	if (heap->kept)
		return;
	smgr = RelationGetSmgr(heap->rel);

	/*
	 * One without an image has not been overwritten since the point, or was
	 * zeroes then.  An image is kept before its block is overwritten: one
	 * that has none after we read it was not overwritten while we did.
	 */
	block_start_iterate(heap->blocks, &iterator);
	while ((block = block_iterate(heap->blocks, &iterator)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (block->done || block->source != BLOCK_UNKNOWN)
			continue;
		read = true;
		block->source = BLOCK_ZEROES;
		if (block->blkno >= heap->nblocks)
			continue;
		if (!read_from_disk(heap, smgr, block->blkno))
		{
			block->source = BLOCK_TORN;
			continue;
		}
		if (PageIsNew((Page) heap->page) ||
			PageGetLSN((Page) heap->page) > heap->moment->point.lsn)
			continue;
		block->source = BLOCK_STORED;
		block->slot = flashback_store_add(heap->store);
		memcpy(flashback_store_page(heap->store, block->slot, true), heap->page, BLCKSZ);
	}
	if (read)
	{
		INJECTION_POINT("flashback-table-read", NULL);
		find_images(heap, true);
	}

	block_start_iterate(heap->blocks, &iterator);
	while ((block = block_iterate(heap->blocks, &iterator)) != NULL)
	{
		bool		checksum_failure;

		CHECK_FOR_INTERRUPTS();
		if (block->done)
			continue;
		if (block->source == BLOCK_TORN)
			block->source = BLOCK_UNREADABLE;
		if (block->source == BLOCK_STORED)
		{
			/* The check masks the checksum while it computes it */
			memcpy(heap->page, flashback_store_page(heap->store, block->slot, false), BLCKSZ);
			if (!PageIsVerified((Page) heap->page, block->blkno, 0, &checksum_failure) ||
				flashback_check_page(heap->page) != NULL)
				ereport(ERROR,
						(errcode(ERRCODE_DATA_CORRUPTED),
						 errmsg("invalid page in block %u of relation %u", block->blkno, heap->rlocator.relNumber)));
		}
	}
}

/*
 * The page of a block, to be changed; with its content of now, if that matters.
 */
static char *
get_page(FlashbackHeap *heap, FlashbackBlock *block, bool content)
{
	char	   *page;
	const char *wrong;

	if (block->source == BLOCK_STORED)
		return flashback_store_page(heap->store, block->slot, true);
	block->slot = flashback_store_add(heap->store);
	page = flashback_store_page(heap->store, block->slot, true);
	if (block->source == BLOCK_IMAGE && content)
	{
		read_image(heap, block, page);
		wrong = flashback_check_page(page);
		if (wrong == NULL && PageGetLSN((Page) page) > heap->moment->point.lsn)
			wrong = "its image is newer than the point";
		if (wrong != NULL)
			refuse_block(heap, block->blkno, wrong);
	}
	block->source = BLOCK_STORED;
	return page;
}

/*
 * A truncation takes the blocks away that are older than it.
 */
static void
truncate_blocks(FlashbackHeap *heap, XLogReaderState *record)
{
	xl_smgr_truncate truncation;
	block_iterator iterator;
	FlashbackBlock *block;

	if (XLogRecGetDataLen(record) < sizeof(truncation))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("invalid truncation record in WAL at %X/%X", LSN_FORMAT_ARGS(record->ReadRecPtr))));
	memcpy(&truncation, XLogRecGetData(record), sizeof(truncation));
	if (!RelFileLocatorEquals(truncation.rlocator, heap->rlocator) ||
		(truncation.flags & SMGR_TRUNCATE_HEAP) == 0)
		return;
	if (heap->kept)
	{
		Cut		   *cut = palloc(sizeof(Cut));

		cut->blkno = truncation.blkno;
		cut->end = record->EndRecPtr;
		heap->cuts = lappend(heap->cuts, cut);
	}

	block_start_iterate(heap->blocks, &iterator);
	while ((block = block_iterate(heap->blocks, &iterator)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (block->done || block->blkno < truncation.blkno)
			continue;
		block->cut_off = false;
		if (block->source == BLOCK_UNREADABLE && record->EndRecPtr > heap->moment->point.lsn)
			block->source = BLOCK_ZEROES;
		else if (block->source == BLOCK_IMAGE && block->image.lsn < record->EndRecPtr)
			block->source = BLOCK_ZEROES;
		else if (block->source == BLOCK_STORED)
		{
			char	   *page = flashback_store_page(heap->store, block->slot, true);

			if (PageGetLSN((Page) page) < record->EndRecPtr)
				memset(page, 0, BLCKSZ);
		}
	}
}

/*
 * Replays what WAL has of the wanted blocks between the point and the moment.
 */
static void
replay(FlashbackHeap *heap)
{
	FlashbackWalPass *pass = flashback_wal_begin(heap->moment->point.redo, heap->moment->lsn);
	XLogReaderState *record;

	INJECTION_POINT("flashback-table-replay", NULL);
	flashback_report(FLASHBACK_REPLAYING_WAL);
	while ((record = flashback_wal_next(pass)) != NULL)
	{
		if (XLogRecGetRmid(record) == RM_SMGR_ID)
		{
			if ((XLogRecGetInfo(record) & ~XLR_INFO_MASK) == XLOG_SMGR_TRUNCATE)
				truncate_blocks(heap, record);
			continue;
		}
		for (int id = 0; id <= XLogRecMaxBlockId(record); id++)
		{
			DecodedBkpBlock *named = XLogRecGetBlock(record, id);
			FlashbackBlock *block;
			char	   *page;
			bool		makes_page;

			if (!named->in_use || named->forknum != MAIN_FORKNUM ||
				!RelFileLocatorEquals(named->rlocator, heap->rlocator) ||
				!is_ours(heap, named->blkno) || !flashback_redo_concerns(record))
				continue;
			block = block_lookup(heap->blocks, named->blkno);
			makes_page = flashback_redo_makes_page(record, id);
			if (block == NULL)
			{
				/* Of the file it has not changed since; else it was cut off */
				if (named->blkno < heap->nblocks && !heap->kept)
					continue;
				block = want(heap, named->blkno);
				block->source = BLOCK_ZEROES;
				if (named->blkno < heap->nblocks && !makes_page &&
					!PageIsNew((Page) read_kept(heap, named->blkno)))
				{
					block->source = BLOCK_STORED;
					block->slot = flashback_store_add(heap->store);
					memcpy(flashback_store_page(heap->store, block->slot, true), heap->page, BLCKSZ);
				}
			}

			/* What is not known may yet be made anew, or cut off */
			if (block->done || (block->source == BLOCK_UNREADABLE && !makes_page))
				continue;
			page = get_page(heap, block, !makes_page);
			if (makes_page)
				block->cut_off = false;
			else if (is_blank((Page) page) && XLogRecGetRmid(record) != RM_XLOG_ID &&
					 record->EndRecPtr <= heap->moment->point.lsn)
			{
				block->cut_off = true;
				continue;
			}
			flashback_redo_block(record, id, page);
		}
	}
	flashback_wal_end(pass);
}

static int
compare_blocks(const void *a, const void *b)
{
	BlockNumber x = *(const BlockNumber *) a;
	BlockNumber y = *(const BlockNumber *) b;

	return x < y ? -1 : x > y;
}

/*
 * Refuses blocks of which WAL has not brought to light what they were.
 */
static void
check_rebuilt(FlashbackHeap *heap)
{
	block_iterator iterator;
	FlashbackBlock *block;

	block_start_iterate(heap->blocks, &iterator);
	while ((block = block_iterate(heap->blocks, &iterator)) != NULL)
	{
		if (block->done || (block->source != BLOCK_UNREADABLE && !block->cut_off))
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("could not rebuild block %u of relation %u", block->blkno, heap->rlocator.relNumber),
				 block->cut_off ?
				 errdetail("WAL changes it, but there was nothing.") :
				 errdetail("It cannot be read, or could not be when it was overwritten.")));
	}
}

/*
 * Rebuilds the wanted blocks.
 */
static void
rebuild(FlashbackHeap *heap)
{
	MemoryContext old_context = MemoryContextSwitchTo(heap->context);
	block_iterator iterator;
	FlashbackBlock *block;

	find_bases(heap);
	replay(heap);
	check_rebuilt(heap);

	heap->norder = 0;
	heap->order = palloc_extended(Max((Size) heap->blocks->members, 1) * sizeof(BlockNumber), MCXT_ALLOC_HUGE);
	block_start_iterate(heap->blocks, &iterator);
	while ((block = block_iterate(heap->blocks, &iterator)) != NULL)
	{
		block->done = true;
		heap->order[heap->norder++] = block->blkno;
	}
	qsort(heap->order, heap->norder, sizeof(BlockNumber), compare_blocks);
	MemoryContextSwitchTo(old_context);
}
