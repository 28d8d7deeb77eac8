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

#include <fcntl.h>
#include <lz4.h>
#include <unistd.h>

#include "access/xlog.h"
#include "common/pg_lzcompress.h"
#include "common/relpath.h"
#include "flashback_log.h"
#include "miscadmin.h"
#include "port/pg_iovec.h"
#include "portability/instr_time.h"
#include "storage/buf_internals.h"
#include "storage/bufpage.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/md.h"
#include "storage/smgr.h"
#include "utils/injection_point.h"

/*
 * Blocks whose image the checkpointer has made durable ahead of writing them;
 * a ring, as the batches of several tablespaces take turns.
 */
#define BATCH_RING (4 * CHECKPOINT_BATCH_BUFFERS)
static BufferTag batch[BATCH_RING];
static int	batch_used = 0;
static int	batch_next = 0;

static PGIOAlignedBlock old_page;

/*
 * Writers pass the gate, so that a point that wants the epoch is not kept
 * waiting by an endless stream of them.
 */
static void
enter_epoch(void)
{
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_GATE), LW_SHARED);
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_EPOCH), LW_SHARED);
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_GATE));
}

static void
leave_epoch(void)
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
 * Adds an image, or the note that there is none to be had.
 */
static bool
append_image(const RelFileLocator *rlocator, BlockNumber blkno,
			 FlashbackImageKind kind, const char *page, uint64 *position)
{
	static char dense[BLCKSZ];
	static char compressed[Max(LZ4_COMPRESSBOUND(BLCKSZ), PGLZ_MAX_OUTPUT(BLCKSZ))];
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
		int32		length = -1;

		record.lsn = PageGetLSN((Page) page);
		record.hole_length = find_hole(page, &record.hole_offset);
		record.length = BLCKSZ - record.hole_length;
		memcpy(dense, page, record.hole_offset);
		memcpy(dense + record.hole_offset,
			   page + record.hole_offset + record.hole_length,
			   BLCKSZ - record.hole_offset - record.hole_length);
		payload = dense;

		if (flashback_log_compression == FLASHBACK_LOG_LZ4)
			length = LZ4_compress_default(dense, compressed, record.length, sizeof(compressed));
		else if (flashback_log_compression == FLASHBACK_LOG_PGLZ)
			length = pglz_compress(dense, record.length, compressed, PGLZ_strategy_default);
		if (length > 0 && length < (int32) record.length)
		{
			record.compression = flashback_log_compression;
			record.length = length;
			payload = compressed;
		}
		pg_atomic_fetch_add_u64(&shared->raw_bytes, BLCKSZ);
	}

	if (!flashback_log_append(&record, payload ? payload : ""))
		return false;
	pg_atomic_fetch_add_u64(kind == FLASHBACK_IMAGE_PAGE ? &shared->images : &shared->unreadable, 1);
	*position = record.position;
	return true;
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
 * Keeps the present content of a block if it is the one of the last point.
 * Returns false if that could not be done; else sets *position when something
 * was added.  The caller holds the epoch.
 */
static bool
keep_block(SMgrRelation reln, BlockNumber blkno, uint64 *position)
{
	FlashbackLogShared *shared = flashback_log_shared;
	instr_time	before,
				after;
	bool		there;
	bool		readable;
	bool		zero = false;
	bool		verified = false;
	bool		result = true;

	INSTR_TIME_SET_CURRENT(before);
	pg_atomic_fetch_add_u64(&shared->looks, 1);

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

	INSTR_TIME_SET_CURRENT(after);
	INSTR_TIME_SUBTRACT(after, before);
	pg_atomic_fetch_add_u64(&shared->capture_us, INSTR_TIME_GET_MICROSEC(after));
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
could_not_keep(SMgrRelation reln, BlockNumber blkno)
{
	pg_atomic_fetch_add_u64(&flashback_log_shared->failures, 1);

	if (flashback_log_mode == FLASHBACK_LOG_ASYNC)
		flashback_log_break(flashback_log_error);
	else
		ereport(ERROR,
				(errcode(ERRCODE_IO_ERROR),
				 errmsg("could not keep block %u of relation \"%s\" in the flashback log",
						blkno,
						relpathperm(reln->smgr_rlocator.locator, MAIN_FORKNUM).str),
				 errdetail("%s.", flashback_log_error),
				 errhint("With polar_flashback_log_mode = sync no block is overwritten before its old content is durable.")));
}

/*
 * Keeps a block, durably in sync mode; a segment whose file fails is given up
 * for another one, once.
 */
static bool
keep_block_durably(SMgrRelation reln, BlockNumber blkno)
{
	for (int attempt = 0; attempt < 2; attempt++)
	{
		uint64		position = 0;

		if (keep_block(reln, blkno, &position))
		{
			if (position == 0 || flashback_log_mode == FLASHBACK_LOG_ASYNC)
				return true;
			if (flashback_log_sync(position))
			{
				INJECTION_POINT("flashback-log-image-durable", NULL);
				return true;
			}
			flashback_log_abandon(position / FLASHBACK_LOG_SEGMENT_SIZE);
		}
		else if (flashback_log_mode == FLASHBACK_LOG_ASYNC)
			break;
	}
	return false;
}

/*
 * Whether this block's image has been made durable with its batch.
 */
static bool
in_batch(SMgrRelation reln, BlockNumber blkno)
{
	for (int i = 0; i < batch_used; i++)
		if (batch[i].blockNum == blkno &&
			BufTagMatchesRelFileLocator(&batch[i], &reln->smgr_rlocator.locator))
			return true;
	return false;
}

/*
 * Writes a block of a permanent relation.  See the claims P3 and P4.
 */
static void
overwrite(SMgrRelation reln, ForkNumber forknum, BlockNumber blkno, const void *buffer)
{
	if (forknum != MAIN_FORKNUM || SmgrIsTemp(reln))
	{
		smgrwrite(reln, forknum, blkno, buffer, false);
		return;
	}

	enter_epoch();
	if (flashback_log_is_wanted() && !in_batch(reln, blkno) && !keep_block_durably(reln, blkno))
		could_not_keep(reln, blkno);
	INJECTION_POINT("flashback-log-overwrite", NULL);
	smgrwrite(reln, forknum, blkno, buffer, false);
	leave_epoch();
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
		enter_epoch();
		if (flashback_log_is_wanted() &&
			(!keep_block(reln, blkno, &position) ||
			 (position != 0 && !sync_group(&pending, position)) ||
			 (blkno + 1 == old_nblocks && !sync_group(&pending, 0))))
			could_not_keep(reln, blkno);
		leave_epoch();
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
 * Opens the file of a block by name: it may be gone, which is no error.
 */
static int
open_batch_file(const BufferTag *tag)
{
	char		path[MAXPGPATH];
	RelFileLocator rlocator = BufTagGetRelFileLocator(tag);
	BlockNumber segment = tag->blockNum / RELSEG_SIZE;

	if (segment == 0)
		strlcpy(path, relpathperm(rlocator, MAIN_FORKNUM).str, sizeof(path));
	else
		snprintf(path, sizeof(path), "%s.%u", relpathperm(rlocator, MAIN_FORKNUM).str, segment);
	return BasicOpenFile(path, O_RDONLY | PG_BINARY);
}

/*
 * Sync mode: makes the images of the buffers that a checkpoint writes next
 * durable with one sync.  These are reads beside the buffers' own locks: a
 * page that someone is writing may be seen half written; the checksum tells,
 * and then overwrite() looks again.
 */
static void
keep_batch(const CkptSortItem *items, int nitems)
{
	uint64		pending = 0;
	bool		durable = true;
	int			fd = -1;
	BufferTag	last = {0};
	XLogRecPtr	lsn;

	if (flashback_log_mode != FLASHBACK_LOG_SYNC || !DataChecksumsEnabled() || !flashback_log_is_wanted())
		return;

	enter_epoch();
	lsn = pg_atomic_read_u64(&flashback_log_shared->lsn);
	for (int i = 0; i < nitems && durable; i++)
	{
		BufferDesc *buffer = GetBufferDescriptor(items[i].buf_id);
		uint32		state = LockBufHdr(buffer);
		BufferTag	tag = buffer->tag;
		RelFileLocator rlocator = BufTagGetRelFileLocator(&tag);
		uint64		position = 0;

		UnlockBufHdr(buffer, state);
		if ((state & BM_CHECKPOINT_NEEDED) == 0 || (state & BM_PERMANENT) == 0 ||
			BufTagGetForkNum(&tag) != MAIN_FORKNUM)
			continue;

		if (fd < 0 || !BufTagMatchesRelFileLocator(&last, &rlocator) ||
			last.blockNum / RELSEG_SIZE != tag.blockNum / RELSEG_SIZE)
		{
			if (fd >= 0)
				close(fd);
			fd = open_batch_file(&tag);
			if (fd < 0)
				continue;
			last = tag;
		}

		pg_atomic_fetch_add_u64(&flashback_log_shared->looks, 1);
		if (pg_pread(fd, old_page.data, BLCKSZ, (off_t) (tag.blockNum % RELSEG_SIZE) * BLCKSZ) != BLCKSZ ||
			PageIsNew((Page) old_page.data) ||
			PageGetLSN((Page) old_page.data) > lsn ||
			!PageIsVerified((Page) old_page.data, tag.blockNum, 0, NULL))
			continue;

		if (!append_image(&rlocator, tag.blockNum, FLASHBACK_IMAGE_PAGE, old_page.data, &position))
			break;
		durable = sync_group(&pending, position);
		batch[batch_next] = tag;
		batch_next = (batch_next + 1) % BATCH_RING;
		batch_used = Min(batch_used + 1, BATCH_RING);
	}
	if (fd >= 0)
		close(fd);
	durable = durable && sync_group(&pending, 0);
	leave_epoch();

	/* What is not durable does not count; overwrite() decides for each block */
	if (!durable)
		flashback_log_forget_batch();
}

/*
 * Images count for one point only.
 */
void
flashback_log_forget_batch(void)
{
	batch_used = 0;
	batch_next = 0;
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
	checkpoint_batch_hook = keep_batch;
}
