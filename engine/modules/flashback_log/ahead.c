/*-------------------------------------------------------------------------
 *
 * ahead.c
 *	  Sync mode: keeps blocks, many with one sync, before somebody has to
 *	  overwrite them and would wait for a sync of his own.
 *
 * The images are of blocks as they are on disk, so what becomes of the buffers
 * meanwhile does not matter; see the claim P15.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/ahead.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xlog.h"
#include "common/relpath.h"
#include "flashback_log.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/buf_internals.h"
#include "storage/bufpage.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/injection_point.h"
#include "utils/wait_event.h"

/* Buffers in front of the clock's hand that are looked at, at least */
#define LEAST_AHEAD 1024

/* Of one batch, so that a point need not wait for long */
#define BATCH 64

/* Blocks after one that must be waited for that are kept with it */
#define NEIGHBOURS 31

/* Between two turns while the hand moves, and while it does not */
#define BUSY_NAP_MS 20
#define IDLE_NAP_MS 500

StaticAssertDecl(BATCH <= FLASHBACK_LOG_MAX_BATCH && MAX_IO_COMBINE_LIMIT + NEIGHBOURS <= FLASHBACK_LOG_MAX_BATCH &&
				 CHECKPOINT_BATCH_BUFFERS <= FLASHBACK_LOG_MAX_BATCH, "a batch must have room");

/* Where tests stop the process that looks ahead, and nobody else */
#define WRITER_POINT(name) \
	do { \
		if (AmBackgroundWorkerProcess()) \
			INJECTION_POINT(name, NULL); \
	} while (0)

/* The file that a batch has read from last */
static int	batch_file = -1;
static BufferTag batch_file_tag;

static void
close_batch_file(void)
{
	if (batch_file >= 0)
		close(batch_file);
	batch_file = -1;
}

/*
 * Opens the file of a block by name: it may be gone, which is no error.
 */
static bool
open_batch_file(const BufferTag *tag)
{
	char		path[MAXPGPATH];
	RelFileLocator rlocator = BufTagGetRelFileLocator(tag);
	BlockNumber segment = tag->blockNum / RELSEG_SIZE;

	if (batch_file >= 0 && BufTagMatchesRelFileLocator(&batch_file_tag, &rlocator) &&
		batch_file_tag.blockNum / RELSEG_SIZE == segment)
		return true;
	close_batch_file();
	if (segment == 0)
		strlcpy(path, relpathperm(rlocator, MAIN_FORKNUM).str, sizeof(path));
	else
		snprintf(path, sizeof(path), "%s.%u", relpathperm(rlocator, MAIN_FORKNUM).str, segment);
	batch_file = BasicOpenFile(path, O_RDONLY | PG_BINARY);
	batch_file_tag = *tag;
	return batch_file >= 0;
}

/*
 * Whether a buffer holds, not yet written, a block that images are kept of.
 * Nobody is writing it.
 */
static bool
is_unwritten(uint32 state)
{
	return (state & (BM_DIRTY | BM_VALID | BM_TAG_VALID | BM_PERMANENT | BM_IO_IN_PROGRESS)) ==
		(BM_DIRTY | BM_VALID | BM_TAG_VALID | BM_PERMANENT);
}

/*
 * Adds the image of a buffer's block, if it needs one and it can be had
 * without the buffer's own lock: a page that someone begins to write may be
 * seen half written; the checksum tells, and so does the buffer.
 */
static bool
keep_ahead(FlashbackLogBatch *batch, BufferDesc *buffer, uint32 wanted)
{
	static PGIOAlignedBlock page;
	uint32		state = LockBufHdr(buffer);
	BufferTag	tag = buffer->tag;
	FlashbackLogBlock *block = &batch->blocks[batch->n];
	instr_time	before;
	bool		result;

	UnlockBufHdr(buffer, state);
	if (!is_unwritten(state) || (state & wanted) != wanted ||
		BufTagGetForkNum(&tag) != MAIN_FORKNUM)
		return true;
	block->rlocator = BufTagGetRelFileLocator(&tag);
	block->blkno = tag.blockNum;
	block->position = 0;
	if (flashback_log_is_kept(&block->rlocator, block->blkno, batch->point) || !open_batch_file(&tag))
		return true;

	INSTR_TIME_SET_CURRENT(before);
	if (pg_pread(batch_file, page.data, BLCKSZ, (off_t) (tag.blockNum % RELSEG_SIZE) * BLCKSZ) != BLCKSZ ||
		PageIsNew((Page) page.data) ||
		PageGetLSN((Page) page.data) > batch->lsn ||
		!PageIsVerified((Page) page.data, tag.blockNum, 0, NULL))
		return true;
	state = LockBufHdr(buffer);
	UnlockBufHdr(buffer, state);
	if (!is_unwritten(state) || !BufferTagsEqual(&tag, &buffer->tag))
		return true;

	WRITER_POINT("flashback-log-ahead-read");
	result = flashback_log_append_page(&block->rlocator, block->blkno, page.data, &block->position);
	flashback_log_count_look(before);
	if (result)
		batch->n++;
	return result;
}

/*
 * Begins a batch; false if there can be none now.  Until it is ended no point
 * comes: what was read before one must not be added after it.
 */
static bool
begin_batch(FlashbackLogBatch *batch)
{
	batch->n = 0;
	if (!DataChecksumsEnabled())
		return false;
	flashback_log_enter_epoch();
	if (!flashback_log_is_wanted())
	{
		flashback_log_leave_epoch();
		return false;
	}
	batch->lsn = pg_atomic_read_u64(&flashback_log_shared->lsn);
	batch->point = flashback_log_shared->point_number;
	return true;
}

/*
 * Ends a batch, and then makes its images durable.  They count for the point
 * at which it began; what could not be kept does not count.
 */
static void
end_batch(FlashbackLogBatch *batch)
{
	close_batch_file();
	flashback_log_leave_epoch();
	WRITER_POINT("flashback-log-ahead-added");
	if (!flashback_log_sync_batch(batch))
		return;
	for (int i = 0; i < batch->n; i++)
		flashback_log_note_kept(&batch->blocks[i].rlocator, batch->blocks[i].blkno, batch->point);
	WRITER_POINT("flashback-log-ahead-durable");
}

/*
 * Sync mode: the buffers that a checkpoint writes next.
 */
void
flashback_log_keep_checkpoint_batch(const CkptSortItem *items, int nitems)
{
	static FlashbackLogBatch batch;

	if (flashback_log_mode != FLASHBACK_LOG_SYNC || !begin_batch(&batch))
		return;
	for (int i = 0; i < nitems; i++)
		if (!keep_ahead(&batch, GetBufferDescriptor(items[i].buf_id), BM_CHECKPOINT_NEEDED))
			break;
	end_batch(&batch);
}

/*
 * Who must wait for a sync has the blocks that follow made durable by it, too,
 * if they are to be written: VACUUM, COPY and others write in that order.  The
 * caller holds the epoch, and syncs.
 */
void
flashback_log_keep_neighbours(FlashbackLogBatch *batch)
{
	RelFileLocator rlocator = batch->blocks[0].rlocator;
	BlockNumber blkno = batch->blocks[batch->n - 1].blkno;

	if (!DataChecksumsEnabled())
		return;
	for (int i = 0; i < NEIGHBOURS && ++blkno != InvalidBlockNumber; i++)
	{
		BufferTag	tag;
		uint32		hash;
		int			id;

		InitBufferTag(&tag, &rlocator, MAIN_FORKNUM, blkno);
		hash = BufTableHashCode(&tag);
		LWLockAcquire(BufMappingPartitionLock(hash), LW_SHARED);
		id = BufTableLookup(&tag, hash);
		LWLockRelease(BufMappingPartitionLock(hash));
		if (id < 0)
			break;
		if (!keep_ahead(batch, GetBufferDescriptor(id), 0))
			break;
	}
	close_batch_file();
}

/*
 * Whether a buffer is one that the clock's hand will take when it comes.
 */
static bool
is_victim(BufferDesc *buffer)
{
	uint32		state = pg_atomic_read_u32(&buffer->state);

	return is_unwritten(state) && BUF_STATE_GET_REFCOUNT(state) == 0 && BUF_STATE_GET_USAGECOUNT(state) == 0;
}

/*
 * Keeps the blocks of buffers that are in front of the clock's hand.  Returns
 * whether the hand has moved since the last turn.
 */
static bool
look_ahead(void)
{
	static FlashbackLogBatch batch;
	static uint64 last = 0;
	uint32		passes;
	int			hand = StrategySyncStart(&passes, NULL);
	uint64		now = (uint64) passes * NBuffers + hand;
	uint64		ahead = Min(Max(LEAST_AHEAD, 4 * (now - last)), NBuffers);
	bool		moved = (now != last);

	last = now;
	for (uint64 i = 0; i < ahead;)
	{
		CHECK_FOR_INTERRUPTS();
		while (i < ahead && !is_victim(GetBufferDescriptor((hand + i) % NBuffers)))
			i++;
		if (i == ahead || !begin_batch(&batch))
			break;
		for (; i < ahead && batch.n < BATCH; i++)
		{
			BufferDesc *buffer = GetBufferDescriptor((hand + i) % NBuffers);

			if (is_victim(buffer) && !keep_ahead(&batch, buffer, 0))
				break;
		}
		end_batch(&batch);
		if (i < ahead && batch.n < BATCH)
			break;
	}
	return moved;
}

static void
writer_exit(int code, Datum arg)
{
	SpinLockAcquire(&flashback_log_shared->mutex);
	flashback_log_shared->writer = INVALID_PROC_NUMBER;
	SpinLockRelease(&flashback_log_shared->mutex);
}

/*
 * The entry of the process that looks ahead.
 */
void
flashback_log_writer_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	/* Not in the middle of a record, which would be missing then */
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	/*
	 * To be seen in pg_stat_activity with what it waits for, though it has no
	 * database
	 */
	InitProcessPhase2();
	pgstat_beinit();
	pgstat_bestart_initial();
	pgstat_report_activity(STATE_UNDEFINED, NULL);

	SpinLockAcquire(&flashback_log_shared->mutex);
	flashback_log_shared->writer = MyProcNumber;
	SpinLockRelease(&flashback_log_shared->mutex);
	before_shmem_exit(writer_exit, 0);

	for (;;)
	{
		bool		moved;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		moved = look_ahead();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 moved ? BUSY_NAP_MS : IDLE_NAP_MS, flashback_log_wait_event);
		ResetLatch(MyLatch);
	}
}

/*
 * Somebody had to wait.
 */
void
flashback_log_wake_writer(void)
{
	ProcNumber	writer;

	SpinLockAcquire(&flashback_log_shared->mutex);
	writer = flashback_log_shared->writer;
	SpinLockRelease(&flashback_log_shared->mutex);
	if (writer != INVALID_PROC_NUMBER)
		SetLatch(&GetPGProcByNumber(writer)->procLatch);
}

/*
 * Has the postmaster start the process, in sync mode.
 */
void
flashback_log_install_ahead(void)
{
	BackgroundWorker worker;

	if (flashback_log_mode != FLASHBACK_LOG_SYNC)
		return;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = 5;
	strlcpy(worker.bgw_library_name, "$libdir/flashback_log", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "flashback_log_writer_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "flashback log writer", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "flashback log writer", sizeof(worker.bgw_type));
	if (IsPostmasterEnvironment)
		RegisterBackgroundWorker(&worker);
}
