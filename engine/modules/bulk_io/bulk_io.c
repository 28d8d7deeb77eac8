/*-------------------------------------------------------------------------
 *
 * bulk_io.c
 *	  How much a relation grows at once, and how much is written at once.
 *
 * PostgreSQL extends a heap by as many blocks as it is willing to take
 * buffers for, an index build by one block at a time and replay by exactly
 * what a WAL record needs.  This module decides how far the file grows beyond
 * that, behind hooks of the core.  write_runs.c combines writes; the size of
 * combined reads needs no code at all: it is io_combine_limit under a second
 * name.
 *
 * A table grows by at most a 16th of itself, and a small one as PostgreSQL
 * grows it.  So it keeps the plans it always had, and what it has not used yet
 * is never enough to make VACUUM truncate it.
 *
 * See README.invariants.md.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/bulk_io/bulk_io.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/statvfs.h>

#include "access/heapam.h"
#include "access/hio.h"
#include "access/rmgr.h"
#include "access/transam.h"
#include "access/xlogreader.h"
#include "access/xlogutils.h"
#include "bulk_io.h"
#include "catalog/catalog.h"
#include "catalog/storage.h"
#include "common/relpath.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/aio.h"
#include "storage/bufmgr.h"
#include "storage/bulk_write.h"
#include "storage/freespace.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/md.h"
#include "storage/proc.h"
#include "storage/smgr.h"
#include "utils/guc.h"
#include "utils/injection_point.h"
#include "utils/rel.h"

PG_MODULE_MAGIC_EXT(
					.name = "bulk_io",
					.version = "1.0"
);

#define BULK_EXTEND_DEFAULT		(4 * 1024 * 1024 / BLCKSZ)
#define BULK_EXTEND_MAX			(8 * 1024 * 1024 / BLCKSZ)

/* A heap below so many blocks grows as PostgreSQL grows it */
#define BULK_EXTEND_MIN_HEAP	512

/*
 * A step is at most one in so many of the blocks that a heap has, and no more
 * than that.  With both, never-used pages are below what lets VACUUM truncate
 * a heap: see REL_TRUNCATE_FRACTION and REL_TRUNCATE_MINIMUM in vacuumlazy.c.
 */
#define BULK_EXTEND_HEAP_SHARE	16
#define BULK_EXTEND_HEAP_MAX	936

/* From so many pages on VACUUM truncates, or from one in BULK_EXTEND_HEAP_SHARE */
#define BULK_TRUNCATE_MINIMUM	1000

/* Files below so many blocks are not extended ahead of a bulk writer */
#define BULK_WRITE_MIN_FILE		64

/* An extension takes buffers for at most one in so many of the buffer pool */
#define BULK_EXTEND_POOL_SHARE	32

/* ... and for at most so many if it has no ring of its own to take them from */
#define BULK_EXTEND_MAX_SHARED	64

/* Nothing is added ahead of need if there is less room than so many times it */
#define BULK_EXTEND_MIN_ROOM	16

/* How much shared memory the larger ceiling of combined I/O may cost */
#define COMBINE_MEMORY_MAX		(64 * 1024 * 1024)

/* Settings, all in blocks */
static int	bulk_extend_size = BULK_EXTEND_DEFAULT;
static int	index_create_bulk_extend_size = BULK_EXTEND_DEFAULT;
static int	recovery_bulk_extend_size = BULK_EXTEND_DEFAULT;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static recovery_extend_hook_type prev_recovery_extend_hook = NULL;

/*
 * Is there room enough to add so many blocks that nobody needs yet?
 *
 * On a file system that is nearly full, what is left is worth more to others:
 * to WAL, whose want of room stops the server.
 */
static bool
bulk_io_has_room(RelFileLocator rlocator, uint32 nblocks)
{
	char	   *path = GetDatabasePath(rlocator.dbOid, rlocator.spcOid);
	struct statvfs fs;
	int			rc = statvfs(path, &fs);

	pfree(path);
	if (rc != 0)
		return false;
	return (uint64) fs.f_bavail * fs.f_frsize >=
		(uint64) nblocks * BLCKSZ * BULK_EXTEND_MIN_ROOM;
}

/*
 * Add nblocks all-zeroes blocks to the main fork, without buffers.  The caller
 * has made sure that nobody else extends it.
 *
 * Nobody needs these blocks yet, so a failure (a quota, a limit on the size of
 * files, a full disk after all) is none.  Returns the size of the fork, which
 * may have grown by a part of them.
 */
static BlockNumber
bulk_io_extend_file(SMgrRelation smgr, BlockNumber start, uint32 nblocks,
					IOContext io_context, bool skip_fsync)
{
	static bool reported = false;
	IOObject	io_object = SmgrIsTemp(smgr) ? IOOBJECT_TEMP_RELATION : IOOBJECT_RELATION;
	instr_time	io_start = pgstat_prepare_io_time(track_io_timing);
	MemoryContext context = CurrentMemoryContext;
	uint32		save_InterruptHoldoffCount = InterruptHoldoffCount;
	uint32		save_QueryCancelHoldoffCount = QueryCancelHoldoffCount;

	Assert(CritSectionCount == 0);

	PG_TRY();
	{
		smgrzeroextend(smgr, MAIN_FORKNUM, start, nblocks, skip_fsync);
		if (!skip_fsync)
			pgstat_count_io_op_time(io_object, io_context, IOOP_EXTEND,
									io_start, 1, (uint64) nblocks * BLCKSZ);
		reported = false;
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		/*
		 * smgrzeroextend() pins no buffers, and registering the fsync is all
		 * that it holds a lock for; only want of memory can fail there.
		 */
		if (geterrcode() == ERRCODE_OUT_OF_MEMORY)
			PG_RE_THROW();

		InterruptHoldoffCount = save_InterruptHoldoffCount;
		QueryCancelHoldoffCount = save_QueryCancelHoldoffCount;
		MemoryContextSwitchTo(context);
		edata = CopyErrorData();
		FlushErrorState();
		ereport(reported ? DEBUG1 : LOG,
				(errcode(edata->sqlerrcode),
				 errmsg("could not add %u blocks ahead of need: %s",
						nblocks, edata->message),
				 errdetail("The relation grows by what is needed.")));
		FreeErrorData(edata);
		reported = true;

		/* a part may have been added */
		smgr->smgr_cached_nblocks[MAIN_FORKNUM] = InvalidBlockNumber;
	}
	PG_END_TRY();

	return smgrnblocks(smgr, MAIN_FORKNUM);
}

/*
 * By how many blocks a heap of nblocks blocks grows at once, as far as a
 * setting goes; 0 as PostgreSQL grows it.
 */
static uint32
bulk_io_heap_step(BlockNumber nblocks, int setting)
{
	if (nblocks < BULK_EXTEND_MIN_HEAP)
		return 0;
	return Min(Min((uint32) setting, nblocks / BULK_EXTEND_HEAP_SHARE), BULK_EXTEND_HEAP_MAX);
}

/*
 * How many blocks to add at once to a heap, if this is more than the caller
 * needs; 0 to leave it to the core.
 *
 * All of them come with buffers: a page that has none is read back when it is
 * used, one by one, which costs more than its extension saved.  So the step is
 * no larger than what is no burden on the buffer pool (BULK_EXTEND_POOL_SHARE)
 * and on the statement, which may have to write what these buffers hold
 * (BULK_EXTEND_MAX_SHARED).  No pins are kept, so pin limits do not matter.
 *
 * Catalogs stay as they are: every new database copies them.  So does a
 * relation that skips WAL (wal_level = minimal), because its free space map
 * is not written back (see MarkBufferDirtyHint()) and would forget the pages.
 */
static uint32
bulk_io_heap_ahead(Relation relation, BufferAccessStrategy strategy, int num_pages)
{
	bool		local = RelationUsesLocalBuffers(relation);
	uint32		step;

	if (bulk_extend_size == 0 || IsCatalogRelation(relation) ||
		RelFileLocatorSkippingWAL(relation->rd_locator))
		return 0;

	step = bulk_io_heap_step(RelationGetNumberOfBlocks(relation), bulk_extend_size);
	step = Min(step, (local ? NLocBuffer : NBuffers) / BULK_EXTEND_POOL_SHARE);
	if (!local && strategy == NULL)
		step = Min(step, BULK_EXTEND_MAX_SHARED);

	if (step <= (uint32) num_pages || !bulk_io_has_room(relation->rd_locator, step))
		return 0;
	return step;
}

/*
 * Enter the blocks [start, end) of a heap into its free space map.
 */
static void
bulk_io_record_free_pages(Relation relation, BlockNumber start,
						  BlockNumber end)
{
	if (start == end)
		return;
	for (BlockNumber blkno = start; blkno < end; blkno++)
		RecordPageWithFreeSpace(relation, blkno,
								BLCKSZ - SizeOfPageHeaderData);
	FreeSpaceMapVacuumRange(relation, start, end);
}

/*
 * Does another backend extend the heap right now?
 */
static bool
bulk_io_extension_lock_is_held(Relation relation)
{
	if (!ConditionalLockRelationForExtension(relation, ExclusiveLock))
		return true;
	UnlockRelationForExtension(relation, ExclusiveLock);
	return false;
}

/*
 * Add blocks to a heap.
 *
 * The first num_pages are the caller's, as in RelationAddBlocks(): they are
 * used at once, or remembered in the BulkInsertState.  All others are entered
 * into the free space map, before anything that can fail is done.
 *
 * All this is an optional extra, so it gives way to other backends: if one of
 * them extends the relation too, its pages will serve us as well.
 */
static BlockNumber
bulk_io_heap_extend(Relation relation, BulkInsertState bistate, int num_pages)
{
	BufferAccessStrategy strategy = bistate ? bistate->strategy : NULL;
	uint32		step = bulk_io_heap_ahead(relation, strategy, num_pages);
	BlockNumber first = InvalidBlockNumber;
	BlockNumber end = InvalidBlockNumber;
	uint32		own = bistate ? num_pages : 1;

	while (step > 0)
	{
		Buffer		buffers[64];
		uint32		nbuffers = Min(step, lengthof(buffers));
		BlockNumber start;

		if (!RelationUsesLocalBuffers(relation) && bulk_io_extension_lock_is_held(relation))
			break;
		start = ExtendBufferedRelBy(BMR_REL(relation), MAIN_FORKNUM, strategy,
									0, nbuffers, buffers, &nbuffers);
		for (uint32 i = 0; i < nbuffers; i++)
			ReleaseBuffer(buffers[i]);

		INJECTION_POINT("bulk-io-heap-extended", NULL);
		bulk_io_record_free_pages(relation, Min(start + own, start + nbuffers),
								  start + nbuffers);

		/* If others extended in between, our pages are for everyone. */
		if (first != InvalidBlockNumber && start != end)
			break;
		if (first == InvalidBlockNumber)
			first = start;
		end = start + nbuffers;
		own -= Min(own, nbuffers);
		step -= Min(step, nbuffers);
	}

	if (bistate && first != InvalidBlockNumber)
	{
		bistate->next_free = (end - first > 1) ? first + 1 : InvalidBlockNumber;
		bistate->last_free = (end - first > 1) ? end - 1 : InvalidBlockNumber;
		bistate->already_extended_by += end - first;
	}

	return first;
}

typedef enum PageKind
{
	PAGE_NEVER_USED,
	PAGE_EMPTIED,
	PAGE_IN_USE,
} PageKind;

/*
 * What is in a page of a heap?
 */
static PageKind
bulk_io_page_kind(Relation relation, BlockNumber blkno, BufferAccessStrategy strategy)
{
	Buffer		buffer = ReadBufferExtended(relation, MAIN_FORKNUM, blkno, RBM_NORMAL, strategy);
	Page		page = BufferGetPage(buffer);
	PageKind	kind = PAGE_EMPTIED;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (PageIsNew(page))
		kind = PAGE_NEVER_USED;
	else
	{
		OffsetNumber last = PageGetMaxOffsetNumber(page);

		for (OffsetNumber offnum = FirstOffsetNumber; offnum <= last; offnum++)
		{
			if (ItemIdIsUsed(PageGetItemId(page, offnum)))
			{
				kind = PAGE_IN_USE;
				break;
			}
		}
	}
	UnlockReleaseBuffer(buffer);
	return kind;
}

/*
 * How many pages VACUUM may count as freeable.
 *
 * It found none in use from nonempty_pages on, but takes those that it skipped
 * as all-visible for empty.  If the heap ends with pages that were never used,
 * only what is free from its end is a reason for a lock; with emptied ones
 * among them, these count together.  Pages that came or were filled since
 * VACUUM looked leave nothing to be cut off.
 */
static BlockNumber
bulk_io_heap_freeable(Relation relation, BlockNumber rel_pages, BlockNumber nonempty_pages)
{
	BlockNumber freeable = rel_pages - nonempty_pages;
	BlockNumber enough = Min(BULK_TRUNCATE_MINIMUM, rel_pages / BULK_EXTEND_HEAP_SHARE);
	BlockNumber blkno = rel_pages;
	BufferAccessStrategy strategy;

	/* Where a heap is too small for pages ahead, or VACUUM is content */
	if (rel_pages < BULK_EXTEND_MIN_HEAP || freeable < enough)
		return freeable;
	INJECTION_POINT("bulk-io-heap-freeable", NULL);
	if (RelationGetNumberOfBlocks(relation) != rel_pages)
		return 0;

	strategy = GetAccessStrategy(BAS_VACUUM);
	while (blkno > nonempty_pages && rel_pages - blkno < enough)
	{
		PageKind	kind = bulk_io_page_kind(relation, blkno - 1, strategy);

		if (kind == PAGE_IN_USE)
		{
			freeable = rel_pages - blkno;
			break;
		}
		if (kind == PAGE_EMPTIED && blkno == rel_pages)
			break;
		blkno--;
	}
	FreeAccessStrategy(strategy);

	return freeable;
}

/*
 * By how many blocks to extend a relation that is written in bulk: an index
 * that is being built, or a heap that is being rewritten.
 */
static BlockNumber
bulk_io_bulk_write_ahead(Relation relation)
{
	if (IsCatalogRelation(relation))
		return 0;
	return relation->rd_rel->relkind == RELKIND_INDEX ?
		index_create_bulk_extend_size : bulk_extend_size;
}

/*
 * Make the file of a relation that is written in bulk as large as needed, and
 * larger as far as there is room.  The bulk writer registers the fsync itself,
 * and pg_stat_io does not count its writes.
 *
 * The file grows by no more than its size, nor past the end of a segment
 * unless a page lies there: a segment file would stay behind when the rest is
 * cut off.
 */
static void
bulk_io_bulk_write_extend(SMgrRelation smgr, BlockNumber filesize,
						  BlockNumber needed, BlockNumber ahead)
{
	uint64		segment_end = (uint64) ((needed - 1) / RELSEG_SIZE + 1) * RELSEG_SIZE;
	uint64		target = filesize;

	if (filesize >= BULK_WRITE_MIN_FILE)
		target += Min(ahead, filesize);
	target = Min(target, Min(segment_end, MaxBlockNumber));

	if (target > needed && bulk_io_has_room(smgr->smgr_rlocator.locator, target - filesize))
		filesize = bulk_io_extend_file(smgr, filesize, target - filesize, IOCONTEXT_BULKWRITE, true);
	INJECTION_POINT("bulk-write-extended", NULL);

	/* Without room for all of that, at least what is needed */
	if (needed > filesize)
		smgrzeroextend(smgr, MAIN_FORKNUM, filesize, needed - filesize, true);
}

/*
 * Write sorted pages in runs, after the file has been made large enough, and
 * free them.  Nothing of this relation is in shared buffers.
 */
static bool
bulk_io_bulk_write(Relation relation, SMgrRelation smgr, BlockNumber *relsize,
				   const BlockNumber *blknos, const Page *pages, int npages)
{
	BlockNumber ahead = bulk_io_bulk_write_ahead(relation);
	BlockNumber needed = blknos[npages - 1] + 1;

	if (ahead == 0)
		return false;

	if (needed > *relsize)
	{
		BlockNumber filesize = smgrnblocks(smgr, MAIN_FORKNUM);

		if (needed > filesize)
			bulk_io_bulk_write_extend(smgr, filesize, needed, ahead);
		*relsize = needed;
	}

	for (int i = 0, n; i < npages; i += n)
	{
		BlockNumber blkno = blknos[i];
		int			max = Min(npages - i, smgrmaxcombine(smgr, MAIN_FORKNUM, blkno));

		for (n = 0; n < max && blknos[i + n] == blkno + n; n++)
			PageSetChecksumInplace(pages[i + n], blkno + n);
		smgrwritev(smgr, MAIN_FORKNUM, blkno, (const void **) (pages + i), n, true);
		for (int j = 0; j < n; j++)
			pfree(pages[i + j]);
	}
	return true;
}

/*
 * Cut off what was added ahead of need, when a bulk writer is done.
 *
 * Not smgrtruncate(): nobody else has the file, and no buffers need to be
 * looked for.  Looking at the size opens all segments again that a release of
 * the handle may have closed since, which mdtruncate() relies on.
 */
static void
bulk_io_bulk_write_finish(SMgrRelation smgr, BlockNumber relsize)
{
	BlockNumber filesize = smgrnblocks(smgr, MAIN_FORKNUM);

	if (filesize <= relsize)
		return;
	HOLD_INTERRUPTS();
	smgr->smgr_cached_nblocks[MAIN_FORKNUM] = InvalidBlockNumber;
	mdtruncate(smgr, MAIN_FORKNUM, filesize, relsize);
	smgr->smgr_cached_nblocks[MAIN_FORKNUM] = relsize;
	RESUME_INTERRUPTS();
}

static const BulkWriteRoutine bulk_io_bulk_write_routine = {
	.write = bulk_io_bulk_write,
	.finish = bulk_io_bulk_write_finish,
};

/*
 * Enter the blocks [start, end) of a heap into its free space map during
 * replay, which has no relation cache.
 *
 * The map is not WAL-logged: if it is lost in a crash, VACUUM enters these
 * pages again.
 */
static void
bulk_io_replay_free_pages(RelFileLocator rlocator, BlockNumber start,
						  BlockNumber end)
{
	Relation	relation;

	for (BlockNumber blkno = start; blkno < end; blkno++)
		XLogRecordPageWithFreeSpace(rlocator, blkno,
									BLCKSZ - SizeOfPageHeaderData);

	relation = CreateFakeRelcacheEntry(rlocator);
	FreeSpaceMapVacuumRange(relation, start, end);
	FreeFakeRelcacheEntry(relation);
}

/*
 * Extend a heap during replay, from nblocks to at least needed blocks.
 *
 * Heaps only, told by the record, because only their free pages can be found
 * again, and because an index that is larger on a standby changes its plans.
 * Catalogs stay as they are, as far as their file's number tells.
 *
 * No extension lock is needed: in recovery only the startup process extends
 * permanent relations.  It may hold locks of other buffers of the record.
 */
static bool
bulk_io_extend_in_recovery(XLogReaderState *record, SMgrRelation smgr,
						   BlockNumber nblocks, BlockNumber needed)
{
	uint32		step = bulk_io_heap_step(nblocks, recovery_bulk_extend_size);
	uint64		target = (uint64) nblocks + step;
	RelFileLocator rlocator = smgr->smgr_rlocator.locator;
	BlockNumber end;

	if (record == NULL ||
		(XLogRecGetRmid(record) != RM_HEAP_ID &&
		 XLogRecGetRmid(record) != RM_HEAP2_ID) ||
		target <= needed || target >= MaxBlockNumber ||
		rlocator.relNumber < FirstNormalObjectId ||
		!bulk_io_has_room(rlocator, step))
		return prev_recovery_extend_hook &&
			prev_recovery_extend_hook(record, smgr, nblocks, needed);

	end = bulk_io_extend_file(smgr, nblocks, target - nblocks, IOCONTEXT_NORMAL,
							  false);

	INJECTION_POINT("bulk-io-replay-extended", NULL);

	/* Without room for all of them, the core adds what is needed. */
	if (end < needed)
		return false;

	bulk_io_replay_free_pages(rlocator, needed, end);

	return true;
}

/*
 * Let polar_bulk_read_size use its whole range without a second setting to
 * know about, as far as shared memory for that many combined blocks stays
 * within COMBINE_MEMORY_MAX.  Whoever sets io_max_combine_limit overrides
 * this; who sets a larger read size for the whole server gets it.
 */
static void
bulk_io_choose_max_combine_limit(void)
{
	int			procs = MaxBackends + NUM_AUXILIARY_PROCS;
	int			concurrency = io_max_concurrency;
	uint64		block_cost;
	int			limit = DEFAULT_IO_COMBINE_LIMIT;
	char		value[16];

	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	/* as AioChooseMaxConcurrency() */
	if (concurrency < 0)
		concurrency = Min(Max(NBuffers / procs, 1), 64);
	/* as AioHandleIOVShmemSize() and AioHandleDataShmemSize() */
	block_cost = (uint64) procs * concurrency * (sizeof(struct iovec) + sizeof(uint64));

	while (limit * 2 <= MAX_IO_COMBINE_LIMIT &&
		   limit * 2 * block_cost <= COMBINE_MEMORY_MAX)
		limit *= 2;
	limit = Max(limit, io_combine_limit_guc);

	snprintf(value, sizeof(value), "%d", limit);
	SetConfigOption("io_max_combine_limit", value,
					PGC_POSTMASTER, PGC_S_DYNAMIC_DEFAULT);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("module \"%s\" must be loaded at server start", "bulk_io"),
				 errhint("Add it to \"shared_preload_libraries\".")));

	DefineCustomIntVariable("polar_bulk_extend_size",
							gettext_noop("How much a table grows at once under INSERT and COPY."),
							gettext_noop("Also when it is rewritten by VACUUM FULL or CLUSTER. "
										 "A table grows by at most a 16th of its size, below 4MB as PostgreSQL grows it. "
										 "0 extends it as PostgreSQL does by itself."),
							&bulk_extend_size,
							BULK_EXTEND_DEFAULT, 0, BULK_EXTEND_MAX,
							PGC_USERSET, GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);

	DefineCustomIntVariable("polar_index_create_bulk_extend_size",
							gettext_noop("How much an index grows at once while it is built."),
							gettext_noop("Concerns B-tree and sorted GiST builds. "
										 "0 extends it block by block."),
							&index_create_bulk_extend_size,
							BULK_EXTEND_DEFAULT, 0, BULK_EXTEND_MAX,
							PGC_USERSET, GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);

	DefineCustomIntVariable("polar_bulk_write_size",
							gettext_noop("How much COPY, CREATE TABLE AS, VACUUM and checkpoints write at once."),
							gettext_noop("Consecutive blocks that have to be written go out together. "
										 "0 writes each block by itself, as PostgreSQL does."),
							&bulk_io_write_size,
							BULK_WRITE_DEFAULT, 0, MAX_IO_COMBINE_LIMIT,
							PGC_USERSET, GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);

	DefineCustomIntVariable("polar_recovery_bulk_extend_size",
							gettext_noop("How much a table grows at once during WAL replay."),
							gettext_noop("A table grows by at most a 16th of its size, below 4MB as PostgreSQL grows it. "
										 "0 extends it as PostgreSQL does by itself."),
							&recovery_bulk_extend_size,
							BULK_EXTEND_DEFAULT, 0, BULK_EXTEND_MAX,
							PGC_SIGHUP, GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = bulk_io_choose_max_combine_limit;
	heap_extend_hook = bulk_io_heap_extend;
	heap_freeable_hook = bulk_io_heap_freeable;
	bulk_write_routine = &bulk_io_bulk_write_routine;
	buffer_write_hook = bulk_io_write_run;
	prev_recovery_extend_hook = recovery_extend_hook;
	recovery_extend_hook = bulk_io_extend_in_recovery;
}
