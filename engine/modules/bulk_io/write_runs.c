/*-------------------------------------------------------------------------
 *
 * write_runs.c
 *	  Consecutive dirty blocks are written with one call.
 *
 * FlushBuffer() calls us where it would write one block: that block's buffer is
 * pinned, locked and marked as being written, and WAL is flushed up to its
 * position.  We add the blocks that follow and write all of them.
 *
 * Only what is likely to have neighbours is written like this: what leaves the
 * ring of COPY, CREATE TABLE AS or VACUUM, which was filled in order, and what
 * a checkpoint has to write, which it has sorted.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/bulk_io/write_runs.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "bulk_io.h"
#include "common/relpath.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"

int			bulk_io_write_size = BULK_WRITE_DEFAULT;

/*
 * The longest run of a checkpoint.  The resource owner of an auxiliary process
 * is used again after an error, which works as long as all that it owned was in
 * its array (RESOWNER_ARRAY_SIZE): entries of its hash table that it released
 * are never cleared.  A buffer that is written is two resources.
 */
#define CHECKPOINT_RUN_MAX		16

/* Buffers of consecutive blocks that this process is writing */
typedef struct WriteRun
{
	int			nblocks;
	BufferDesc *buffers[MAX_IO_COMBINE_LIMIT];
} WriteRun;

/*
 * Error context callback for errors while a run of blocks is written.
 */
static void
write_run_error_callback(void *arg)
{
	WriteRun   *run = (WriteRun *) arg;
	BufferTag  *tag = &run->buffers[0]->tag;

	/* Buffers are pinned, so the tag can be read without the spinlock */
	errcontext("writing blocks %u..%u of relation \"%s\"",
			   tag->blockNum, tag->blockNum + run->nblocks - 1,
			   relpathperm(BufTagGetRelFileLocator(tag), BufTagGetForkNum(tag)).str);
}

/*
 * Take the buffer of the block that follows a run, if there is one that has all
 * wanted flags.
 *
 * I/O is in progress on the other buffers of the run, so this must not wait
 * for anyone who might wait for them.
 */
static bool
extend_run(WriteRun *run, uint32 wanted)
{
	BufferTag	tag = run->buffers[0]->tag;
	uint32		hash;
	LWLock	   *partition_lock;
	int			buf_id;

	tag.blockNum += run->nblocks;
	hash = BufTableHashCode(&tag);
	partition_lock = BufMappingPartitionLock(hash);

	LWLockAcquire(partition_lock, LW_SHARED);
	buf_id = BufTableLookup(&tag, hash);
	LWLockRelease(partition_lock);

	/* The buffer may hold another block by now, which the core looks at */
	if (buf_id < 0 || !StartBufferWrite(GetBufferDescriptor(buf_id), &tag, wanted))
		return false;
	run->buffers[run->nblocks++] = GetBufferDescriptor(buf_id);
	return true;
}

/*
 * Where pages get their checksums; see PageSetChecksumCopy().  NULL if there is
 * no memory, which must be no error here.
 */
static char *
copies_of_pages(void)
{
	static char *copies = NULL;

	if (copies == NULL)
		copies = MemoryContextAllocAligned(TopMemoryContext,
										   MAX_IO_COMBINE_LIMIT * BLCKSZ,
										   PG_IO_ALIGN_SIZE, MCXT_ALLOC_NO_OOM);
	return copies;
}

/*
 * Count what FlushBuffer() does not, which counts one write of one block, and
 * have the kernel begin to write the blocks behind the first.
 */
static void
count_run(WriteRun *run, IOContext io_context)
{
	bool		checkpoint = (io_context == IOCONTEXT_NORMAL);
	int			more = run->nblocks - 1;
	BufferTag	tag = run->buffers[0]->tag;

	pgstat_count_io_op(IOOBJECT_RELATION, io_context, IOOP_WRITE, 0, (uint64) more * BLCKSZ);
	pgBufferUsage.shared_blks_written += more;
	if (checkpoint)
	{
		PendingCheckpointerStats.buffers_written += more;
		CheckpointStats.ckpt_bufs_written += more;
	}

	for (int i = 0; i < more; i++)
	{
		tag.blockNum++;
		ScheduleBufferTagForWriteback(checkpoint ? checkpoint_writeback_context :
									  &BackendWritebackContext, io_context, &tag);
	}
}

/*
 * Write a block together with those that follow.
 *
 * A run ends before the first block that has no buffer, or whose buffer need
 * not be written or is used by anyone.  It has no more blocks than
 * polar_bulk_write_size, than this process may pin, and than the segment has.
 *
 * The run is written after WAL up to the highest LSN of all of its pages.  If
 * that fails all buffers remain dirty, and their state is cleaned up as that
 * of a single one, by the resource owner.
 */
bool
bulk_io_write_run(SMgrRelation smgr, BufferDesc *first, const void *page,
				  IOContext io_context)
{
	WriteRun	run;
	const void *pages[MAX_IO_COMBINE_LIMIT] = {page};
	ForkNumber	forknum = BufTagGetForkNum(&first->tag);
	BlockNumber blkno = first->tag.blockNum;
	bool		permanent = (pg_atomic_read_u32(&first->state) & BM_PERMANENT) != 0;
	uint32		wanted = BM_VALID | BM_DIRTY;
	uint32		limit = bulk_io_write_size;
	char	   *copies = NULL;
	XLogRecPtr	recptr = InvalidXLogRecPtr;
	ErrorContextCallback *single_errcallback = error_context_stack;
	ErrorContextCallback errcallback;

	if (io_context == IOCONTEXT_NORMAL && AmCheckpointerProcess())
	{
		wanted |= BM_CHECKPOINT_NEEDED;
		limit = Min(limit, CHECKPOINT_RUN_MAX);
	}
	else if (io_context != IOCONTEXT_BULKWRITE && io_context != IOCONTEXT_VACUUM)
		return false;

	if (limit <= 1)
		return false;
	limit = Min(limit, 1 + GetAdditionalPinLimit());
	limit = Min(limit, smgrmaxcombine(smgr, forknum, blkno));
	if (limit <= 1 || (DataChecksumsEnabled() && (copies = copies_of_pages()) == NULL))
		return false;

	run.nblocks = 1;
	run.buffers[0] = first;
	while (run.nblocks < limit && extend_run(&run, wanted))
		;
	if (run.nblocks == 1)
		return false;

	/* Instead of FlushBuffer()'s, which names the first block only */
	errcallback.callback = write_run_error_callback;
	errcallback.arg = &run;
	errcallback.previous = single_errcallback->previous;
	error_context_stack = &errcallback;

	/* See FlushBuffer() for all of this */
	for (int i = 1; i < run.nblocks; i++)
	{
		BufferDesc *buf = run.buffers[i];
		uint32		buf_state = LockBufHdr(buf);

		pages[i] = BufferGetPage(BufferDescriptorGetBuffer(buf));
		recptr = Max(recptr, PageGetLSN((Page) pages[i]));
		buf_state &= ~BM_JUST_DIRTIED;
		UnlockBufHdr(buf, buf_state);
	}

	/* All blocks of a fork are permanent, or none is */
	if (permanent)
		XLogFlush(recptr);

	for (int i = 1; copies && i < run.nblocks; i++)
	{
		char	   *copy = copies + i * BLCKSZ;

		memcpy(copy, pages[i], BLCKSZ);
		PageSetChecksumInplace((Page) copy, blkno + i);
		pages[i] = copy;
	}

#ifdef USE_INJECTION_POINTS
	/* As far as a write may have come when a crash ends it */
	if (IS_INJECTION_POINT_ATTACHED("bulk-io-write-part"))
	{
		smgroverwritev(smgr, forknum, blkno, pages, run.nblocks / 2, permanent);
		INJECTION_POINT("bulk-io-write-part", NULL);
	}
#endif
	smgroverwritev(smgr, forknum, blkno, pages, run.nblocks, permanent);

	for (int i = 1; i < run.nblocks; i++)
		FinishBufferWrite(run.buffers[i]);
	error_context_stack = single_errcallback;

	count_run(&run, io_context);
	return true;
}
