/*-------------------------------------------------------------------------
 *
 * repair.c
 *	  Before replay starts, make sure that no page it will meet is torn.
 *
 * Everything happens in the process that recovers, before the first record is
 * replayed: the buffer pool is empty and nobody else touches a relation.  See
 * README for why each page that is accepted is right; the numbers R1 to R12 in
 * here are those of the invariants.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/repair.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/rmgr.h"
#include "access/timeline.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "common/controldata_utils.h"
#include "common/relpath.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "page_repair.h"
#include "port/pg_bitutils.h"
#include "portability/instr_time.h"
#include "postmaster/startup.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/latch.h"
#include "storage/smgr.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* Pages of one request: 2 MB, large enough that the way there and back does not matter */
#define BATCH_BLOCKS 256

/* Blocks of one read */
#define READ_BLOCKS 16

/* Repaired pages that are logged one by one; the summary counts all */
#define LOGGED_REPAIRS 100

/* A source that needs longer for one batch is taken for dead */
#define ANSWER_MS 15000

typedef struct Batch
{
	int			nblocks;
	PageRepairBlock blocks[BATCH_BLOCKS];
	bool		done[BATCH_BLOCKS];
	int			left;
} Batch;

/* What this recovery is, and what has been done in it */
typedef struct Recovery
{
	MemoryContext context;
	bool		standby;		/* in archive recovery, with a point of
								 * consistency */
	XLogRecPtr	redo;			/* R */
	XLogRecPtr	least;			/* who is here has replayed all before R */
	XLogRecPtr	limit;			/* of a standby: blocks changed later cannot
								 * be torn */
	XLogRecPtr	end;			/* E, how far WAL has been scanned */
	XLogRecPtr	newest;			/* position that must be replayed before all
								 * is well */
	List	   *history;
	PageRepairMap map;
	PageSource *sources;
	int			nsources;
	int			current;		/* the source that answered last */
	char	   *read_buffer;
	PageRepairStats stats;
	int			logged;
} Recovery;

static Recovery *recovery = NULL;

static void (*prev_rm_startup) (void) = NULL;
static void (*prev_rm_cleanup) (void) = NULL;
static void (*original_redo[RM_MAX_ID + 1]) (XLogReaderState *record);

static void
publish_stats(void)
{
	SpinLockAcquire(&page_repair_shared->mutex);
	page_repair_shared->stats = recovery->stats;
	SpinLockRelease(&page_repair_shared->mutex);
}

static double
elapsed_ms(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_MILLISEC(now);
}

/*
 * Write a page over the one on disk.  The sync request goes to the checkpointer,
 * so the page is durable before the redo pointer moves.
 */
static void
write_page(SMgrRelation reln, ForkNumber forknum, BlockNumber blkno, char *page)
{
	if (!PageIsNew((Page) page))
		PageSetChecksumInplace((Page) page, blkno);
	smgrwrite(reln, forknum, blkno, page, false);
	recovery->stats.last_at = GetCurrentTimestamp();
}

static void
log_repair(const PageRepairBlock *block, const char *what)
{
	int			level = (recovery->logged++ < LOGGED_REPAIRS) ? LOG : DEBUG1;

	ereport(level,
			(errmsg("repaired block %u of relation \"%s\": %s",
					block->blkno,
					relpathperm(block->rlocator, block->forknum).str,
					what)));
}

/* ----------------------------------------------------------------------
 * Verifying
 * ----------------------------------------------------------------------
 */

/*
 * Call "each" for each of the blocks, which are consecutive, with its content.
 */
static void
read_run(SMgrRelation reln, ForkNumber forknum, BlockNumber first, int nblocks,
		 void (*each) (SMgrRelation reln, ForkNumber forknum, BlockNumber blkno, char *page, void *arg),
		 void *arg)
{
	while (nblocks > 0)
	{
		void	   *buffers[READ_BLOCKS];
		int			n = Min(nblocks, READ_BLOCKS);

		n = Min(n, (int) smgrmaxcombine(reln, forknum, first));
		for (int i = 0; i < n; i++)
			buffers[i] = recovery->read_buffer + (Size) i * BLCKSZ;
		smgrreadv(reln, forknum, first, buffers, n);
		recovery->stats.checked += n;
		for (int i = 0; i < n; i++)
			each(reln, forknum, first + i, buffers[i], arg);
		first += n;
		nblocks -= n;
	}
}

/*
 * A block of a chunk: what verifies need not be fetched.
 */
static void
verify_block(SMgrRelation reln, ForkNumber forknum, BlockNumber blkno, char *page, void *arg)
{
	PageRepairChunk *chunk = (PageRepairChunk *) arg;

	if (PageIsVerified((PageData *) page, blkno, 0, NULL))
		chunk->check[(blkno % PAGE_REPAIR_CHUNK_BLOCKS) / 64] &= ~(UINT64CONST(1) << (blkno % 64));
	else
		recovery->stats.torn++;
}

/*
 * A block of a visibility map or free space map (R8).
 */
static void
sweep_block(SMgrRelation reln, ForkNumber forknum, BlockNumber blkno, char *page, void *arg)
{
	PageRepairBlock block = {reln->smgr_rlocator.locator, forknum, blkno};

	if (PageIsVerified((PageData *) page, blkno, 0, NULL))
		return;
	recovery->stats.torn++;
	if (forknum == VISIBILITYMAP_FORKNUM)
	{
		PageInit((Page) page, BLCKSZ, 0);
		recovery->stats.vm_initialized++;
		log_repair(&block, "all bits cleared");
	}
	else
	{
		memset(page, 0, BLCKSZ);
		recovery->stats.fsm_reset++;
		log_repair(&block, "zeroed");
	}
	write_page(reln, forknum, blkno, page);
}

static void
sweep_maps(RelFileLocator rlocator)
{
	SMgrRelation reln = smgropen(rlocator, INVALID_PROC_NUMBER);

	for (ForkNumber forknum = FSM_FORKNUM; forknum <= VISIBILITYMAP_FORKNUM; forknum++)
	{
		if (smgrexists(reln, forknum))
			read_run(reln, forknum, 0, smgrnblocks(reln, forknum), sweep_block, NULL);
	}
}

static int
compare_chunks(const void *a, const void *b)
{
	const PageRepairChunkKey *x = &(*(PageRepairChunk *const *) a)->key;
	const PageRepairChunkKey *y = &(*(PageRepairChunk *const *) b)->key;

#define COMPARE(field) \
	if (x->field != y->field) \
		return x->field < y->field ? -1 : 1

	COMPARE(rlocator.spcOid);
	COMPARE(rlocator.dbOid);
	COMPARE(rlocator.relNumber);
	COMPARE(forknum);
	COMPARE(number);
#undef COMPARE
	return 0;
}

/*
 * The chunks in the order of the files.
 */
static PageRepairChunk **
sorted_chunks(int *nchunks)
{
	HASH_SEQ_STATUS status;
	PageRepairChunk *chunk;
	PageRepairChunk **chunks;
	int			n = 0;

	chunks = palloc_extended(sizeof(PageRepairChunk *) *
							 Max(hash_get_num_entries(recovery->map.chunks), 1),
							 MCXT_ALLOC_HUGE);
	hash_seq_init(&status, recovery->map.chunks);
	while ((chunk = hash_seq_search(&status)) != NULL)
		chunks[n++] = chunk;
	qsort(chunks, n, sizeof(PageRepairChunk *), compare_chunks);
	*nchunks = n;
	return chunks;
}

/*
 * How many blocks from here on are to be checked, one after the other.
 */
static int
run_length(PageRepairChunk *chunk, int from)
{
	int			n = from;

	while (n < PAGE_REPAIR_CHUNK_BLOCKS && (chunk->check[n / 64] & (UINT64CONST(1) << (n % 64))))
		n++;
	return n - from;
}

/*
 * The next block to be checked, from this one on; PAGE_REPAIR_CHUNK_BLOCKS when there is none.
 */
static int
next_checked(PageRepairChunk *chunk, int from)
{
	while (from < PAGE_REPAIR_CHUNK_BLOCKS)
	{
		uint64		word = chunk->check[from / 64] >> (from % 64);

		if (word != 0)
			return from + pg_rightmost_one_pos64(word);
		from = (from / 64 + 1) * 64;
	}
	return PAGE_REPAIR_CHUNK_BLOCKS;
}

/*
 * Leave only those blocks in the chunk that have to be fetched.
 */
static void
verify_chunk(PageRepairChunk *chunk)
{
	SMgrRelation reln = smgropen(chunk->key.rlocator, INVALID_PROC_NUMBER);
	ForkNumber	forknum = chunk->key.forknum;
	BlockNumber base = chunk->key.number * PAGE_REPAIR_CHUNK_BLOCKS;
	BlockNumber nblocks;
	bool		always = (recovery->stats.policy == PAGE_REPAIR_ALWAYS);

	/* The sweep looks at all of these */
	if (forknum == FSM_FORKNUM || (forknum == VISIBILITYMAP_FORKNUM && !always))
	{
		memset(chunk->check, 0, sizeof(chunk->check));
		return;
	}

	/* What lies beyond the end cannot be torn (R9) */
	nblocks = smgrexists(reln, forknum) ? smgrnblocks(reln, forknum) : 0;
	for (int i = 0; i < PAGE_REPAIR_CHUNK_WORDS; i++)
	{
		BlockNumber first = base + i * 64;

		if (first >= nblocks)
			chunk->check[i] = 0;
		else if (nblocks - first < 64)
			chunk->check[i] &= (UINT64CONST(1) << (nblocks - first)) - 1;
	}
	if (always)
		return;

	for (int from = next_checked(chunk, 0); from < PAGE_REPAIR_CHUNK_BLOCKS;)
	{
		int			n = run_length(chunk, from);

		smgrprefetch(reln, forknum, base + from, n);
		from = next_checked(chunk, from + n);
	}
	for (int from = next_checked(chunk, 0); from < PAGE_REPAIR_CHUNK_BLOCKS;)
	{
		int			n = run_length(chunk, from);

		ProcessStartupProcInterrupts();
		read_run(reln, forknum, base + from, n, verify_block, chunk);
		from = next_checked(chunk, from + n);
	}
}

/* ----------------------------------------------------------------------
 * Fetching
 * ----------------------------------------------------------------------
 */

/*
 * Refuse a source for the rest of this recovery.
 */
static void
pg_attribute_printf(2, 3)
refuse(PageSource *source, const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(source->why, sizeof(source->why), format, arguments);
	va_end(arguments);
	source->refused = true;
	page_source_disconnect(source);
	ereport(LOG,
			(errmsg("page repair source \"%s\" is refused: %s", source->name, source->why)));
}

/*
 * May pages with this header be used?  (R3, R4, R5)
 */
static bool
accept_header(PageSource *source, const PageSourceHeader *header)
{
	if (header->system_identifier != GetSystemIdentifier())
		refuse(source, "it belongs to another system, " UINT64_FORMAT, header->system_identifier);
	else if (!header->data_checksums)
		refuse(source, "it has no data checksums");
	else if (!recovery->standby && !header->in_recovery)
		refuse(source, "it is not a standby any more");
	else if (XLogRecPtrIsInvalid(header->end_lsn) || header->start_lsn > header->end_lsn)
		refuse(source, "its position makes no sense");
	else if (!tliInHistory(header->timeline, recovery->history) ||
			 tliOfPointInHistory(header->end_lsn - 1, recovery->history) != header->timeline)
		refuse(source, "it is on timeline %u at %X/%X, which is not in this server's history",
			   header->timeline, LSN_FORMAT_ARGS(header->end_lsn));
	else if (!recovery->standby && header->end_lsn > recovery->end)
		refuse(source, "it has replayed up to %X/%X, but this server's WAL ends at %X/%X",
			   LSN_FORMAT_ARGS(header->end_lsn), LSN_FORMAT_ARGS(recovery->end));
	else if (header->start_lsn < recovery->least)
	{
		/* It may still come */
		snprintf(source->why, sizeof(source->why),
				 "it has replayed up to %X/%X only, recovery starts at %X/%X",
				 LSN_FORMAT_ARGS(header->start_lsn), LSN_FORMAT_ARGS(recovery->redo));
		source->next_try = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 200);
	}
	else
		return true;
	return false;
}

/*
 * Use an answer.  Blocks of the batch that have got their page are marked.
 * Returns false when the source must not be asked further now.
 */
static bool
apply_answer(PageSource *source, Batch *batch, PGresult *result, const PageSourceHeader *header)
{
	const char **pages = palloc(batch->nblocks * sizeof(char *));
	int		   *lengths = palloc(batch->nblocks * sizeof(int));
	bool		unreadable = false;
	PageRepairSourceState *state = &page_repair_shared->sources[source - recovery->sources];
	uint64		given = 0;

	if (!accept_header(source, header))
		return false;
	if (!page_source_pages(result, batch->nblocks, pages, lengths))
	{
		refuse(source, "its answer has another shape");
		return false;
	}

	/* Look at all pages before the first is written */
	for (int i = 0; i < batch->nblocks; i++)
	{
		const PageRepairBlock *block = &batch->blocks[i];
		PGIOAlignedBlock page;
		XLogRecPtr	lsn;

		if (batch->done[i])
			continue;

		/*
		 * R7.  In crash recovery nobody asks later whether a page that replay
		 * missed was dropped, so WAL must say so now.  A standby's replay
		 * checks that before it is consistent, with WAL that it has not yet.
		 */
		if (!recovery->standby && block->forknum != VISIBILITYMAP_FORKNUM &&
			(lengths[i] == -1 || (lengths[i] == BLCKSZ && pg_memory_is_all_zeros(pages[i], BLCKSZ))) &&
			!page_repair_removed(&recovery->map, block))
		{
			unreadable = true;
			snprintf(source->why, sizeof(source->why), "it has no content for block %u of relation \"%s\", which was not dropped",
					 block->blkno, relpathperm(block->rlocator, block->forknum).str);
			lengths[i] = 0;
			continue;
		}
		if (lengths[i] == -1)
			continue;
		if (lengths[i] != BLCKSZ)
		{
			unreadable = true;
			snprintf(source->why, sizeof(source->why), "it could not read block %u of relation \"%s\"",
					 block->blkno, relpathperm(block->rlocator, block->forknum).str);
			continue;
		}
		memcpy(page.data, pages[i], BLCKSZ);
		if (!PageIsVerified((PageData *) page.data, block->blkno, 0, NULL))
		{
			unreadable = true;
			lengths[i] = 0;
			snprintf(source->why, sizeof(source->why), "block %u of relation \"%s\" was damaged on its way",
					 block->blkno, relpathperm(block->rlocator, block->forknum).str);
			continue;
		}
		lsn = PageGetLSN((Page) page.data);
		if (lsn > header->end_lsn)
		{
			refuse(source, "block %u of relation \"%s\" has position %X/%X, after its own, %X/%X",
				   block->blkno, relpathperm(block->rlocator, block->forknum).str,
				   LSN_FORMAT_ARGS(lsn), LSN_FORMAT_ARGS(header->end_lsn));
			return false;
		}
	}

	/* Nobody may read before this has been replayed (R6) */
	if (header->end_lsn > recovery->newest)
	{
		recovery->newest = header->end_lsn;
		if (recovery->standby)
			RaiseMinRecoveryPoint(header->end_lsn, header->timeline);
	}

	for (int i = 0; i < batch->nblocks; i++)
	{
		const PageRepairBlock *block = &batch->blocks[i];
		SMgrRelation reln;
		PGIOAlignedBlock page;

		if (batch->done[i] || lengths[i] == 0)
			continue;
		reln = smgropen(block->rlocator, INVALID_PROC_NUMBER);
		if (lengths[i] == -1)
		{
			/* R7; for a visibility map R8 */
			memset(page.data, 0, BLCKSZ);
			if (block->forknum == VISIBILITYMAP_FORKNUM)
				PageInit((Page) page.data, BLCKSZ, 0);
			recovery->stats.missing++;
		}
		else
		{
			memcpy(page.data, pages[i], BLCKSZ);
			recovery->stats.repaired++;
			recovery->stats.bytes += BLCKSZ;
			given++;
		}
		write_page(reln, block->forknum, block->blkno, page.data);
		if (recovery->stats.policy == PAGE_REPAIR_CHECKSUM)
		{
			char		what[256];

			if (lengths[i] == -1)
				snprintf(what, sizeof(what), "zeroed, source \"%s\" has no such block at %X/%X",
						 source->name, LSN_FORMAT_ARGS(header->end_lsn));
			else
				snprintf(what, sizeof(what), "taken from source \"%s\", page LSN %X/%X",
						 source->name, LSN_FORMAT_ARGS(PageGetLSN((Page) page.data)));
			log_repair(block, what);
		}
		batch->done[i] = true;
		batch->left--;
	}
	if (given > 0)
	{
		SpinLockAcquire(&page_repair_shared->mutex);
		state->pages += given;
		state->bytes += given * BLCKSZ;
		state->last_at = recovery->stats.last_at;
		SpinLockRelease(&page_repair_shared->mutex);
	}
	publish_stats();
	pfree(pages);
	pfree(lengths);
	if (unreadable)
		source->next_try = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 200);
	return !unreadable;
}

/*
 * Each source's last words, for the error that ends the attempt.
 */
static char *
all_reasons(void)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < recovery->nsources; i++)
		appendStringInfo(&text, "%s\"%s\": %s.", i > 0 ? " " : "",
						 recovery->sources[i].name,
						 recovery->sources[i].why[0] ? recovery->sources[i].why : "not asked");
	if (recovery->nsources == 0)
		appendStringInfoString(&text, "\"polar_page_repair_sources\" is empty.");
	return text.data;
}

static void
give_up(const Batch *batch)
{
	const PageRepairBlock *block = NULL;

	for (int i = 0; i < batch->nblocks && block == NULL; i++)
	{
		if (!batch->done[i])
			block = &batch->blocks[i];
	}
	ereport(FATAL,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 recovery->stats.policy == PAGE_REPAIR_ALWAYS ?
			 errmsg("could not get block %u of relation \"%s\" from any page repair source",
					block->blkno, relpathperm(block->rlocator, block->forknum).str) :
			 errmsg("block %u of relation \"%s\" is torn, and no page repair source could give it",
					block->blkno, relpathperm(block->rlocator, block->forknum).str),
			 errdetail("%s", all_reasons()),
			 errhint("Recovery can be tried again as often as needed: start a source named in \"polar_page_repair_sources\", or add another one, and start this server again. If there is none any more, restore a backup.")));
}

/*
 * Get what is left of a batch from whatever source, wait when none can serve
 * now, and give up at the deadline, or when none ever will.
 */
static void
fetch_slowly(Batch *batch)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), page_repair_timeout);
	TimestampTz next_report = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 10000);

	while (batch->left > 0)
	{
		bool		hope = false;

		for (int i = 0; i < recovery->nsources && batch->left > 0; i++)
		{
			PageSource *source = &recovery->sources[i];
			TimestampTz answer_by = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ANSWER_MS);
			PGresult   *result;
			PageSourceHeader header;

			if (source->refused)
				continue;
			hope = true;
			if (GetCurrentTimestamp() < source->next_try)
				continue;
			answer_by = Min(answer_by, Max(deadline, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 1000)));
			if (!page_source_connect(source, answer_by) ||
				!page_source_send(source, batch->blocks, batch->nblocks))
				continue;
			result = page_source_receive(source, answer_by, &header);
			if (result == NULL)
				continue;
			if (apply_answer(source, batch, result, &header))
				recovery->current = i;
			PQclear(result);
		}
		if (batch->left == 0)
			break;
		if (!hope || GetCurrentTimestamp() >= deadline)
			give_up(batch);
		if (GetCurrentTimestamp() >= next_report)
		{
			ereport(LOG,
					(errmsg("recovery waits for a page repair source"),
					 errdetail("%s", all_reasons())));
			next_report = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 10000);
		}
		ProcessStartupProcInterrupts();
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | (IsUnderPostmaster ? WL_EXIT_ON_PM_DEATH : 0),
						 100, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

/*
 * Fill a batch with the next blocks that are to be fetched.
 */
static void
next_batch(Batch *batch, PageRepairChunk **chunks, int nchunks, int *chunk, int *from)
{
	batch->nblocks = 0;
	while (batch->nblocks < BATCH_BLOCKS && *chunk < nchunks)
	{
		PageRepairChunk *at = chunks[*chunk];
		int			i = next_checked(at, *from);

		if (i == PAGE_REPAIR_CHUNK_BLOCKS)
		{
			(*chunk)++;
			*from = 0;
			continue;
		}
		batch->blocks[batch->nblocks].rlocator = at->key.rlocator;
		batch->blocks[batch->nblocks].forknum = at->key.forknum;
		batch->blocks[batch->nblocks].blkno = at->key.number * PAGE_REPAIR_CHUNK_BLOCKS + i;
		batch->done[batch->nblocks] = false;
		batch->nblocks++;
		*from = i + 1;
	}
	batch->left = batch->nblocks;
}

/*
 * Fetch all blocks that are left in the chunks.  While one answer is written,
 * the source works on the next.
 */
static void
fetch_all(PageRepairChunk **chunks, int nchunks)
{
	Batch	   *batch = palloc(sizeof(Batch));
	Batch	   *next = palloc(sizeof(Batch));
	int			chunk = 0;
	int			from = 0;

	next_batch(batch, chunks, nchunks, &chunk, &from);
	while (batch->nblocks > 0)
	{
		PageSource *source = recovery->nsources > 0 ? &recovery->sources[recovery->current] : NULL;
		PageSourceHeader header;
		PGresult   *result = NULL;
		MemoryContext old;

		ProcessStartupProcInterrupts();

		/*
		 * The first request of all, and those after trouble, find a source
		 * first
		 */
		if (source != NULL && source->conn != NULL && !source->busy)
			page_source_send(source, batch->blocks, batch->nblocks);
		if (source != NULL && source->busy)
			result = page_source_receive(source, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ANSWER_MS),
										 &header);
		next_batch(next, chunks, nchunks, &chunk, &from);
		if (result != NULL)
		{
			if (next->nblocks > 0)
				page_source_send(source, next->blocks, next->nblocks);
			old = MemoryContextSwitchTo(recovery->context);
			(void) apply_answer(source, batch, result, &header);
			MemoryContextSwitchTo(old);
			PQclear(result);
			/* An answer to a question that will be asked again is of no use */
			if (batch->left > 0)
				page_source_disconnect(source);
		}
		if (batch->left > 0)
			fetch_slowly(batch);

		{
			Batch	   *swap = batch;

			batch = next;
			next = swap;
		}
	}
	pfree(batch);
	pfree(next);
}

/* ----------------------------------------------------------------------
 * The whole
 * ----------------------------------------------------------------------
 */

/*
 * Make good what WAL names from "start" on.
 */
static void
repair_from(XLogRecPtr start)
{
	MemoryContext old = MemoryContextSwitchTo(recovery->context);
	PageRepairChunk **chunks;
	int			nchunks;
	instr_time	started;

	INSTR_TIME_SET_CURRENT(started);
	recovery->end = page_repair_scan(&recovery->map, start, recovery->limit, recovery->history);
	recovery->stats.end_lsn = recovery->end;
	recovery->stats.referenced = recovery->map.referenced;
	recovery->stats.scan_ms += elapsed_ms(started);

	INSTR_TIME_SET_CURRENT(started);
	chunks = sorted_chunks(&nchunks);
	for (int i = 0; i < nchunks;)
	{
		bool		swept = false;
		int			first = i;

		/* The chunks of one relation */
		for (; i < nchunks && RelFileLocatorEquals(chunks[i]->key.rlocator, chunks[first]->key.rlocator); i++)
		{
			swept |= chunks[i]->swept;
			chunks[i]->swept = true;
			verify_chunk(chunks[i]);
		}
		if (!swept)
			sweep_maps(chunks[first]->key.rlocator);
	}
	recovery->stats.check_ms += elapsed_ms(started);
	publish_stats();

	INSTR_TIME_SET_CURRENT(started);
	fetch_all(chunks, nchunks);
	recovery->stats.fetch_ms += elapsed_ms(started);

	/*
	 * What has been dealt with must not be again: replay changes it from now
	 * on
	 */
	for (int i = 0; i < nchunks; i++)
		memset(chunks[i]->check, 0, sizeof(chunks[i]->check));
	pfree(chunks);
	publish_stats();
	MemoryContextSwitchTo(old);
}

/*
 * Nothing more is to be done in this recovery.
 */
static void
finish_repair(void)
{
	PageRepairStats *stats = &recovery->stats;

	if (recovery->map.chunks == NULL)
		return;
	stats->ended_at = GetCurrentTimestamp();
	publish_stats();
	ereport(LOG,
			(errmsg("page repair: %llu blocks named by WAL, %llu read and verified, %llu torn",
					(unsigned long long) stats->referenced, (unsigned long long) stats->checked,
					(unsigned long long) stats->torn),
			 errdetail("%llu taken from sources (%llu bytes), %llu zeroed as dropped, %llu visibility map pages initialized, %llu free space map pages zeroed; scan %.1f ms, check %.1f ms, fetch %.1f ms.",
					   (unsigned long long) stats->repaired, (unsigned long long) stats->bytes,
					   (unsigned long long) stats->missing, (unsigned long long) stats->vm_initialized,
					   (unsigned long long) stats->fsm_reset,
					   stats->scan_ms, stats->check_ms, stats->fetch_ms)));
	page_repair_close_sources(recovery->sources, recovery->nsources);
	recovery->sources = NULL;
	recovery->nsources = 0;
	hash_destroy(recovery->map.chunks);
	recovery->map.chunks = NULL;
}

/*
 * Stands before each record's replay while a standby has not got all WAL that
 * it needs for consistency: what comes later is looked at when it is there.
 */
static void
repair_redo(XLogReaderState *record)
{
	if (recovery->map.chunks != NULL)
	{
		if (reachedConsistency || recovery->end >= recovery->limit)
			finish_repair();
		else if (record->ReadRecPtr >= recovery->end)
		{
			repair_from(record->ReadRecPtr);

			/*
			 * A part that is not there yet must not be looked for again with
			 * each record
			 */
			recovery->end = Max(recovery->end, record->EndRecPtr);
		}
	}
	original_redo[XLogRecGetRmid(record)] (record);
}

/*
 * Before the first record is replayed
 */
static void
repair_startup(void)
{
	ControlFileData *control;
	bool		crc_ok;
	PageSource *sources = NULL;
	int			nsources = 0;
	char	   *error;
	bool		skip = false;
	int			policy = page_repair_policy;
	MemoryContext context;
	MemoryContext old;

	if (prev_rm_startup)
		prev_rm_startup();
	if (page_repair_shared == NULL || page_repair_policy == PAGE_REPAIR_OFF ||
		!DataChecksumsEnabled() || reachedConsistency)
		return;

	context = AllocSetContextCreate(TopMemoryContext, "page repair", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	control = get_controlfile(DataDir, &crc_ok);
	if (!crc_ok)
		ereport(FATAL,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("incorrect checksum in control file")));
	if (!page_repair_parse_sources(page_repair_source_list, &sources, &nsources, &error))
		ereport(FATAL,
				(errcode(ERRCODE_CONFIG_FILE_ERROR),
				 errmsg("invalid value for parameter \"%s\"", "polar_page_repair_sources"),
				 errdetail("%s", error)));

	/* As PostgreSQL, unless somebody has asked for something else */
	if (nsources == 0 && control->checkPointCopy.fullPageWrites)
		skip = true;

	/* R12 */
	if (!XLogRecPtrIsInvalid(control->backupStartPoint) ||
		!XLogRecPtrIsInvalid(control->backupEndPoint) || control->backupEndRequired)
		skip = true;

	/* Nothing has been written that was changed by WAL after the redo pointer */
	if (InArchiveRecovery && control->minRecoveryPoint <= control->checkPointCopy.redo)
		skip = true;

	/*
	 * Who shall stay behind must not get pages of now: torn ones are found,
	 * not replaced
	 */
	if (InArchiveRecovery &&
		(!StandbyMode || recoveryTarget != RECOVERY_TARGET_UNSET || recovery_min_apply_delay > 0))
	{
		page_repair_close_sources(sources, nsources);
		sources = NULL;
		nsources = 0;
		policy = PAGE_REPAIR_CHECKSUM;
		if (control->checkPointCopy.fullPageWrites)
			skip = true;
	}
	if (skip)
	{
		page_repair_close_sources(sources, nsources);
		MemoryContextSwitchTo(old);
		MemoryContextDelete(context);
		return;
	}

	recovery = palloc0(sizeof(Recovery));
	recovery->context = context;
	recovery->standby = InArchiveRecovery;
	recovery->redo = control->checkPointCopy.redo;

	/*
	 * A record that fills its page ends where the page does, not where the
	 * next record starts
	 */
	recovery->least = recovery->redo;
	if (recovery->redo % XLOG_BLCKSZ ==
		(XLogSegmentOffset(recovery->redo, wal_segment_size) < XLOG_BLCKSZ ? SizeOfXLogLongPHD : SizeOfXLogShortPHD))
		recovery->least -= recovery->redo % XLOG_BLCKSZ;
	recovery->limit = InArchiveRecovery ? control->minRecoveryPoint : InvalidXLogRecPtr;
	recovery->history = readTimeLineHistory(recoveryTargetTLI);
	recovery->sources = sources;
	recovery->nsources = nsources;
	recovery->read_buffer = palloc_aligned(READ_BLOCKS * BLCKSZ, PG_IO_ALIGN_SIZE, 0);
	recovery->stats.started_at = GetCurrentTimestamp();
	recovery->stats.standby = recovery->standby;
	recovery->stats.policy = policy;
	recovery->stats.redo_lsn = recovery->redo;
	page_repair_map_create(&recovery->map);
	SpinLockAcquire(&page_repair_shared->mutex);
	for (int i = 0; i < PAGE_REPAIR_MAX_SOURCES; i++)
	{
		PageRepairSourceState *state = &page_repair_shared->sources[i];

		memset(state, 0, sizeof(*state));
		if (i < nsources)
			strlcpy(state->name, sources[i].name, sizeof(state->name));
	}
	SpinLockRelease(&page_repair_shared->mutex);
	MemoryContextSwitchTo(old);

	repair_from(recovery->redo);
	if (!recovery->standby || recovery->end >= recovery->limit)
		finish_repair();
	else
	{
		/* The table is complete now, custom resource managers included */
		for (int i = 0; i <= RM_MAX_ID; i++)
		{
			if (!RmgrIdExists(i) || RmgrTable[i].rm_redo == repair_redo)
				continue;
			original_redo[i] = RmgrTable[i].rm_redo;
			RmgrTable[i].rm_redo = repair_redo;
		}
	}
}

/*
 * After the last record
 */
static void
repair_cleanup(void)
{
	if (recovery != NULL)
	{
		XLogRecPtr	end = GetXLogReplayRecPtr(NULL);

		if (recovery->newest > end)
			ereport(FATAL,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("recovery ended at %X/%X, but pages from page repair sources are as of %X/%X",
							LSN_FORMAT_ARGS(end), LSN_FORMAT_ARGS(recovery->newest)),
					 errhint("WAL is missing, or a recovery target lies before that position.")));
		if (!recovery->standby && !ArchiveRecoveryRequested && end > recovery->end)
			ereport(FATAL,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("recovery ended at %X/%X, but WAL was read ahead up to %X/%X only",
							LSN_FORMAT_ARGS(end), LSN_FORMAT_ARGS(recovery->end)),
					 errhint("Start the server again.")));
		finish_repair();
	}
	if (prev_rm_cleanup)
		prev_rm_cleanup();
}

/*
 * Called once, when the module is preloaded.
 */
void
page_repair_install_recovery(void)
{
	prev_rm_startup = RmgrTable[RM_XLOG_ID].rm_startup;
	RmgrTable[RM_XLOG_ID].rm_startup = repair_startup;
	prev_rm_cleanup = RmgrTable[RM_XLOG_ID].rm_cleanup;
	RmgrTable[RM_XLOG_ID].rm_cleanup = repair_cleanup;
}
