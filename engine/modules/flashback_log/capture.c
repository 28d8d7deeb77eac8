/*-------------------------------------------------------------------------
 *
 * capture.c
 *	  Keeps what is on disk before it is overwritten or truncated.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/capture.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <lz4.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "access/xlog.h"
#include "common/pg_lzcompress.h"
#include "common/relpath.h"
#include "flashback_log.h"
#include "miscadmin.h"
#include "port/pg_iovec.h"
#include "portability/instr_time.h"
#include "storage/buf_internals.h"
#include "storage/bufpage.h"
#include "storage/ipc.h"
#include "storage/md.h"
#include "storage/smgr.h"
#include "utils/injection_point.h"

static PGIOAlignedBlock old_page;

/*
 * Writers pass the gate, so that a point that wants the epoch is not kept
 * waiting by an endless stream of them.
 */
void
flashback_log_enter_epoch(void)
{
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_GATE), LW_SHARED);
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_EPOCH), LW_SHARED);
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_GATE));
}

/*
 * From here on a point may come.
 */
void
flashback_log_leave_epoch(void)
{
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_EPOCH));
}

/*
 * Whether images are wanted now.
 */
bool
flashback_log_is_wanted(void)
{
	bool		broken;

	SpinLockAcquire(&flashback_log_shared->mutex);
	broken = flashback_log_shared->broken;
	SpinLockRelease(&flashback_log_shared->mutex);
	return !broken && pg_atomic_read_u64(&flashback_log_shared->lsn) != InvalidXLogRecPtr;
}

static bool
is_zero(const char *page)
{
	const uint64 *words = (const uint64 *) page;

	for (int i = 0; i < BLCKSZ / sizeof(uint64); i++)
		if (words[i] != 0)
			return false;
	return true;
}

/*
 * The hole of a page, if it is one: bytes between the two ends that are all
 * zeroes, so that the image gives the page back to the last bit.
 */
static uint16
find_hole(const char *page, uint16 *offset)
{
	uint16		lower = ((const PageHeaderData *) page)->pd_lower;
	uint16		upper = ((const PageHeaderData *) page)->pd_upper;

	*offset = 0;
	if (lower < SizeOfPageHeaderData || upper <= lower || upper > BLCKSZ)
		return 0;
	for (uint16 i = lower; i < upper; i++)
		if (page[i] != 0)
			return 0;
	*offset = lower;
	return upper - lower;
}

/*
 * Compresses with a context that is made once; false if there is no memory for
 * it.  A length of 0 says that the result would not be shorter.
 */
static bool
compress_zstd(const char *from, char *to, uint32 size, int32 *length)
{
	static ZSTD_CCtx *context = NULL;
	size_t		result;

	if (context == NULL)
	{
		ZSTD_CCtx  *made = ZSTD_createCCtx();

		if (made == NULL)
			return false;
		/* A page is small, and somebody may wait for it */
		if (ZSTD_isError(ZSTD_CCtx_setParameter(made, ZSTD_c_compressionLevel, -1)) ||
			ZSTD_isError(ZSTD_CCtx_setParameter(made, ZSTD_c_contentSizeFlag, 0)))
		{
			ZSTD_freeCCtx(made);
			return false;
		}
		context = made;
	}
	result = ZSTD_compress2(context, to, size, from, size);
	if (!ZSTD_isError(result))
		*length = result;
	else if (ZSTD_getErrorCode(result) == ZSTD_error_dstSize_tooSmall)
		*length = 0;
	else
		return false;
	return true;
}

/*
 * Makes the payload of an image, and notes in the record what it is; valid
 * until the next.
 */
const char *
flashback_log_pack(const char *page, FlashbackLogRecord *record)
{
	static char dense[BLCKSZ];
	static char compressed[Max(LZ4_COMPRESSBOUND(BLCKSZ), PGLZ_MAX_OUTPUT(BLCKSZ))];
	FlashbackLogCompression how = flashback_log_compression;
	int32		length = -1;

	record->lsn = PageGetLSN((Page) page);
	record->hole_length = find_hole(page, &record->hole_offset);
	record->length = BLCKSZ - record->hole_length;
	memcpy(dense, page, record->hole_offset);
	memcpy(dense + record->hole_offset,
		   page + record->hole_offset + record->hole_length,
		   BLCKSZ - record->hole_offset - record->hole_length);

	if (how == FLASHBACK_LOG_ZSTD && !compress_zstd(dense, compressed, record->length, &length))
		how = FLASHBACK_LOG_LZ4;
	if (how == FLASHBACK_LOG_LZ4)
		length = LZ4_compress_default(dense, compressed, record->length, sizeof(compressed));
	else if (how == FLASHBACK_LOG_PGLZ)
		length = pglz_compress(dense, record->length, compressed, PGLZ_strategy_default);
	if (length <= 0 || length >= (int32) record->length)
		return dense;
	record->compression = how;
	record->length = length;
	return compressed;
}

/*
 * Adds an image, or the note that there is none to be had.
 */
static bool
append_image(const RelFileLocator *rlocator, BlockNumber blkno,
			 FlashbackImageKind kind, const char *page, uint64 *position)
{
	FlashbackLogShared *shared = flashback_log_shared;
	FlashbackLogRecord record;
	const char *payload = NULL;

	memset(&record, 0, sizeof(record));
	record.rlocator = *rlocator;
	record.blkno = blkno;
	record.kind = kind;
	record.point = shared->point_number;

	if (kind == FLASHBACK_IMAGE_PAGE)
	{
		payload = flashback_log_pack(page, &record);
		pg_atomic_fetch_add_u64(&shared->raw_bytes, BLCKSZ);
	}

	if (!flashback_log_append(&record, payload ? payload : ""))
		return false;
	pg_atomic_fetch_add_u64(kind == FLASHBACK_IMAGE_PAGE ? &shared->images : &shared->unreadable, 1);
	*position = record.position;
	return true;
}

/*
 * Adds the image of a page.  The caller holds the epoch.
 */
bool
flashback_log_append_page(const RelFileLocator *rlocator, BlockNumber blkno,
						  const char *page, uint64 *position)
{
	return append_image(rlocator, blkno, FLASHBACK_IMAGE_PAGE, page, position);
}

/*
 * Reads the block from the file as it is; false when it has none.
 *
 * Not smgrread(): a bad sector must not keep a block from being overwritten,
 * which is how PostgreSQL gets rid of it.
 */
static bool
read_block(SMgrRelation reln, BlockNumber blkno, char *page, bool *readable)
{
	uint32		offset;
	int			fd;
	ssize_t		n;

	/* Replay may have buffers of blocks that a file does not have yet */
	if (RecoveryInProgress() && blkno >= smgrnblocks(reln, MAIN_FORKNUM))
		return false;

	HOLD_INTERRUPTS();
	fd = mdfd(reln, MAIN_FORKNUM, blkno, &offset);
	do
		n = pg_pread(fd, page, BLCKSZ, offset);
	while (n < 0 && errno == EINTR);
	RESUME_INTERRUPTS();

	*readable = (n == BLCKSZ);
	return n != 0;
}

/*
 * Counts a block that was looked at since then.
 */
void
flashback_log_count_look(instr_time since)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, since);
	pg_atomic_fetch_add_u64(&flashback_log_shared->looks, 1);
	pg_atomic_fetch_add_u64(&flashback_log_shared->capture_us, INSTR_TIME_GET_MICROSEC(now));
}

/*
 * Keeps the present content of a block if it is the one of the last point.
 * Returns false if that could not be done; else sets *position when something
 * was added.  The caller holds the epoch.
 */
static bool
keep_block(SMgrRelation reln, BlockNumber blkno, uint64 *position)
{
	FlashbackLogShared *shared = flashback_log_shared;
	instr_time	before;
	bool		there;
	bool		readable;
	bool		zero = false;
	bool		verified = false;
	bool		result = true;

	INSTR_TIME_SET_CURRENT(before);

	/* A truncation may see a page half written, for a moment */
	for (int attempt = 0; attempt < 3 && !zero && !verified; attempt++)
	{
		there = read_block(reln, blkno, old_page.data, &readable);
		if (!there || !readable)
			break;
		zero = is_zero(old_page.data);
		verified = !zero && PageIsVerified((Page) old_page.data, blkno, 0, NULL);
	}

	if (!there)
		;						/* there is nothing */
	else if (zero)
		pg_atomic_fetch_add_u64(&shared->zeroes, 1);
	else if (!verified)
		result = append_image(&reln->smgr_rlocator.locator, blkno,
							  FLASHBACK_IMAGE_UNREADABLE, NULL, position);
	else if (PageGetLSN((Page) old_page.data) <= pg_atomic_read_u64(&shared->lsn))
		result = append_image(&reln->smgr_rlocator.locator, blkno,
							  FLASHBACK_IMAGE_PAGE, old_page.data, position);

	flashback_log_count_look(before);
	return result;
}

/*
 * Makes durable what a group of images waits for, as far as one segment goes:
 * a sync reaches no other.  Position 0 ends the group.
 */
static bool
sync_group(uint64 *pending, uint64 position)
{
	if (*pending != 0 && flashback_log_mode == FLASHBACK_LOG_SYNC &&
		*pending / FLASHBACK_LOG_SEGMENT_SIZE != position / FLASHBACK_LOG_SEGMENT_SIZE &&
		!flashback_log_sync(*pending))
	{
		flashback_log_abandon(*pending / FLASHBACK_LOG_SEGMENT_SIZE);
		return false;
	}
	*pending = position;
	return true;
}

/*
 * What the mode promises when an image cannot be kept: in async mode the
 * window ends, visibly, and work goes on; in sync mode nothing is overwritten.
 */
static void
could_not_keep(SMgrRelation reln, BlockNumber blkno, BlockNumber nblocks)
{
	RelPathStr	path = relpathperm(reln->smgr_rlocator.locator, MAIN_FORKNUM);

	pg_atomic_fetch_add_u64(&flashback_log_shared->failures, 1);

	if (flashback_log_mode == FLASHBACK_LOG_ASYNC)
	{
		flashback_log_break(flashback_log_error);
		return;
	}

	ereport(ERROR,
			(errcode(ERRCODE_IO_ERROR),
			 nblocks == 1 ?
			 errmsg("could not keep block %u of relation \"%s\" in the flashback log",
					blkno, path.str) :
			 errmsg("could not keep blocks %u..%u of relation \"%s\" in the flashback log",
					blkno, blkno + nblocks - 1, path.str),
			 errdetail("%s.", flashback_log_error),
			 errhint("With polar_flashback_log_mode = sync no block is overwritten before its old content is durable.")));
}

/*
 * Sync mode: makes the images of a batch durable, each segment for itself; a
 * segment whose file fails is given up, and the batch does not count.
 */
bool
flashback_log_sync_batch(const FlashbackLogBatch *batch)
{
	for (int i = 0; i < batch->n; i++)
	{
		uint64		segment = batch->blocks[i].position / FLASHBACK_LOG_SEGMENT_SIZE;

		/* The last of each: a segment is where it is from there on, too */
		if (i + 1 < batch->n && batch->blocks[i + 1].position / FLASHBACK_LOG_SEGMENT_SIZE == segment)
			continue;
		if (batch->blocks[i].position != 0 && !flashback_log_sync(batch->blocks[i].position))
		{
			flashback_log_abandon(segment);
			return false;
		}
	}
	return true;
}

/*
 * Sync mode: adds what a run of blocks replaces to a batch, except what is kept
 * already or was nothing.  Returns false if that could not be done.
 */
static bool
add_run(SMgrRelation reln, BlockNumber blkno, BlockNumber nblocks, FlashbackLogBatch *batch)
{
	batch->n = 0;
	batch->lsn = pg_atomic_read_u64(&flashback_log_shared->lsn);
	batch->point = flashback_log_shared->point_number;
	for (BlockNumber i = 0; i < nblocks; i++)
	{
		FlashbackLogBlock *block = &batch->blocks[batch->n];

		block->rlocator = reln->smgr_rlocator.locator;
		block->blkno = blkno + i;
		block->position = 0;
		if (flashback_log_is_kept(&block->rlocator, block->blkno, batch->point))
			continue;
		if (!keep_block(reln, block->blkno, &block->position))
			return false;
		if (block->position != 0)
			batch->n++;
		else
			flashback_log_note_kept(&block->rlocator, block->blkno, batch->point);
	}
	return true;
}

/*
 * Sync mode: keeps a run of blocks durably, and those that follow with it; a
 * segment whose file fails is given up for another one, once.
 */
static bool
keep_run_durably(SMgrRelation reln, BlockNumber blkno, BlockNumber nblocks)
{
	static FlashbackLogBatch batch;

	for (int attempt = 0; attempt < 2; attempt++)
	{
		if (!add_run(reln, blkno, nblocks, &batch))
			continue;
		if (batch.n > 0)
		{
			if (attempt == 0)
				flashback_log_keep_neighbours(&batch);
			if (!flashback_log_sync_batch(&batch))
				continue;
			INJECTION_POINT("flashback-log-image-durable", NULL);
			flashback_log_wake_writer();
		}
		for (int i = 0; i < batch.n; i++)
			flashback_log_note_kept(&batch.blocks[i].rlocator, batch.blocks[i].blkno, batch.point);
		return true;
	}
	return false;
}

/*
 * Keeps what is about to be overwritten, if that has not been done since the
 * last point.  The caller holds the epoch.
 */
static void
keep_overwritten(SMgrRelation reln, BlockNumber blkno, BlockNumber nblocks)
{
	uint64		point = flashback_log_shared->point_number;

	if (flashback_log_mode == FLASHBACK_LOG_SYNC)
	{
		if (!keep_run_durably(reln, blkno, nblocks))
			could_not_keep(reln, blkno, nblocks);
		return;
	}
	for (BlockNumber end = blkno + nblocks; blkno < end; blkno++)
	{
		uint64		position = 0;

		if (flashback_log_is_kept(&reln->smgr_rlocator.locator, blkno, point))
			continue;
		if (!keep_block(reln, blkno, &position))
		{
			could_not_keep(reln, blkno, 1);
			return;
		}
		flashback_log_note_kept(&reln->smgr_rlocator.locator, blkno, point);
	}
}

/*
 * Writes blocks of a permanent relation.  See the claims P3, P4, P6 and P15.
 */
static void
overwrite(SMgrRelation reln, ForkNumber forknum, BlockNumber blkno,
		  const void **buffers, BlockNumber nblocks)
{
	if (forknum != MAIN_FORKNUM || SmgrIsTemp(reln))
	{
		smgrwritev(reln, forknum, blkno, buffers, nblocks, false);
		return;
	}

	flashback_log_enter_epoch();
	if (flashback_log_is_wanted())
		keep_overwritten(reln, blkno, nblocks);
	INJECTION_POINT("flashback-log-overwrite", NULL);
#ifdef USE_INJECTION_POINTS
	/* As far as a write of several blocks may have come when a crash ends it */
	if (nblocks > 1 && IS_INJECTION_POINT_ATTACHED("flashback-log-write-part"))
	{
		smgrwritev(reln, forknum, blkno, buffers, nblocks / 2, false);
		INJECTION_POINT("flashback-log-write-part", NULL);
	}
#endif
	smgrwritev(reln, forknum, blkno, buffers, nblocks, false);
	flashback_log_leave_epoch();
}

/*
 * With assertions: a block that is written in another way must hold nothing
 * that should have been kept.
 */
static void
check_overwrite(SMgrRelation reln, ForkNumber forknum, BlockNumber blkno, BlockNumber nblocks)
{
	if (forknum != MAIN_FORKNUM || SmgrIsTemp(reln) || !flashback_log_is_wanted())
		return;

	for (BlockNumber i = 0; i < nblocks; i++)
	{
		bool		readable;

		if (read_block(reln, blkno + i, old_page.data, &readable) &&
			readable && !is_zero(old_page.data) &&
			PageGetLSN((Page) old_page.data) <= pg_atomic_read_u64(&flashback_log_shared->lsn))
			elog(PANIC, "block %u of relation \"%s\" is overwritten past the flashback log",
				 blkno + i, relpathperm(reln->smgr_rlocator.locator, MAIN_FORKNUM).str);
	}
}

/*
 * No point comes between this call and the next: the caller need not hold the
 * epoch, which a writer whom it waits for may be waiting for.
 */
static void
begin_truncation(void)
{
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_GATE), LW_SHARED);
	SpinLockAcquire(&flashback_log_shared->mutex);
	flashback_log_shared->truncations++;
	SpinLockRelease(&flashback_log_shared->mutex);
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_GATE));
}

static void
end_truncation(int code, Datum arg)
{
	SpinLockAcquire(&flashback_log_shared->mutex);
	flashback_log_shared->truncations--;
	SpinLockRelease(&flashback_log_shared->mutex);
	ConditionVariableBroadcast(&flashback_log_shared->truncations_done);
}

static void
keep_truncated(SMgrRelation reln, BlockNumber old_nblocks, BlockNumber nblocks)
{
	uint64		pending = 0;

	for (BlockNumber blkno = nblocks; blkno < old_nblocks; blkno++)
	{
		uint64		position = 0;

		CHECK_FOR_INTERRUPTS();
		flashback_log_enter_epoch();
		if (flashback_log_is_wanted() &&
			((!flashback_log_is_kept(&reln->smgr_rlocator.locator, blkno, flashback_log_shared->point_number) &&
			  !keep_block(reln, blkno, &position)) ||
			 (position != 0 && !sync_group(&pending, position)) ||
			 (blkno + 1 == old_nblocks && !sync_group(&pending, 0))))
			could_not_keep(reln, blkno, 1);
		flashback_log_leave_epoch();
	}
}

/*
 * Around the truncation of a relation.
 */
static void
truncate_relation(SMgrRelation reln, BlockNumber old_nblocks, BlockNumber nblocks, bool before)
{
	if (SmgrIsTemp(reln))
		return;
	if (!before)
	{
		end_truncation(0, 0);
		return;
	}

	begin_truncation();
	PG_ENSURE_ERROR_CLEANUP(end_truncation, 0);
	{
		keep_truncated(reln, old_nblocks, nblocks);
		INJECTION_POINT("flashback-log-truncate", NULL);
	}
	PG_END_ENSURE_ERROR_CLEANUP(end_truncation, 0);
}

/*
 * Installs the hooks that see each block before it goes.
 */
void
flashback_log_install_capture(void)
{
	smgr_overwrite_hook = overwrite;
	smgr_overwrite_check_hook = check_overwrite;
	smgr_truncate_hook = truncate_relation;
	checkpoint_batch_hook = flashback_log_keep_checkpoint_batch;
}
