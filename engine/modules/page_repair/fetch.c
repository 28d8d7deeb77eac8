/*-------------------------------------------------------------------------
 *
 * fetch.c
 *	  Get pages from sources, and put them where torn ones are.
 *
 * The numbers R3 to R7 are those of README.repair.md: what must be true
 * of a page before it is written.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/fetch.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/timeline.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "common/relpath.h"
#include "decision.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "postmaster/startup.h"
#include "repair.h"
#include "storage/bufpage.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* Pages of one request: 2 MB, large enough that the way there and back does not matter */
#define BATCH_BLOCKS 256

typedef struct Batch
{
	int			nblocks;
	PageRepairBlock blocks[BATCH_BLOCKS];
	bool		done[BATCH_BLOCKS];
	int			left;
	uint32		asked;			/* sources that have answered, a bit for each */
} Batch;

/* What becomes of a block that a source was asked for */
typedef enum PageFate
{
	PAGE_GIVEN,					/* written over the torn one */
	PAGE_EMPTY,					/* the source is right that it has none */
	PAGE_KEPT,					/* what is on disk stays */
	PAGE_NOT_GIVEN,				/* the next source is asked, or give_up() */
	PAGE_IMPOSSIBLE,			/* and this one never again */
} PageFate;

#define PAGE_FATES (PAGE_IMPOSSIBLE + 1)

/* Why a source has not given a block */
typedef enum PageReason
{
	NO_REASON,
	NOT_READ,
	DAMAGED,
	TOO_NEW,
	NO_CONTENT,
} PageReason;

/*
 * Refuse a source for the rest of this recovery.
 */
void
refuse_source(PageSource *source, const char *format,...)
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
accept_header(Recovery *recovery, PageSource *source, PageSourceHeader *header)
{
	/* Crash recovery ends on the timeline of the WAL that is here */
	repair_follow_timeline(recovery, recovery->standby ? recoveryTargetTLI : recovery->map.timeline);
	header->end_lsn = page_repair_record_end(header->end_lsn);

	if (header->system_identifier != GetSystemIdentifier())
		refuse_source(source, "it belongs to another system, " UINT64_FORMAT, header->system_identifier);
	else if (!header->data_checksums)
		refuse_source(source, "it has no data checksums");
	else if (!recovery->standby && !header->in_recovery)
		refuse_source(source, "it is not a standby any more");
	else if (XLogRecPtrIsInvalid(header->end_lsn) || header->start_lsn > header->end_lsn)
		refuse_source(source, "its position makes no sense");
	else if (recovery->standby && header->timeline > recovery->history_of)
	{
		/* The history may be in pg_wal at the next attempt */
		recovery->unknown_timeline = header->timeline;
		snprintf(source->why, sizeof(source->why),
				 "it is on timeline %u, whose history this server does not have", header->timeline);
		source->next_try = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 1000);
	}
	else if (!tliInHistory(header->timeline, recovery->history) ||
			 tliOfPointInHistory(header->end_lsn - 1, recovery->history) != header->timeline)
		refuse_source(source, "it is on timeline %u at %X/%X, which is not in this server's history",
					  header->timeline, LSN_FORMAT_ARGS(header->end_lsn));
	else if (!recovery->standby && header->end_lsn > recovery->end)
		refuse_source(source, "it has replayed up to %X/%X, but this server's WAL ends at %X/%X",
					  LSN_FORMAT_ARGS(header->end_lsn), LSN_FORMAT_ARGS(recovery->end));
	else if (header->end_lsn > header->flush_lsn)
		refuse_source(source, "its position makes no sense");
	else if (header->start_lsn < recovery->least && source->copies)
		refuse_source(source, "it has all changes up to %X/%X only, recovery starts at %X/%X",
					  LSN_FORMAT_ARGS(header->start_lsn), LSN_FORMAT_ARGS(recovery->redo));
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
 * Could no other source have what this batch still lacks?
 */
static bool
all_are_asked(Recovery *recovery, const Batch *batch)
{
	for (int i = 0; i < recovery->nsources; i++)
	{
		if (!recovery->sources[i].refused && ((batch->asked | recovery->failed) & (1U << i)) == 0)
			return false;
	}
	return true;
}

/*
 * The acceptance of a page (R4 to R8).
 *
 * Of a block that the source lacks, or has as zeroes: in crash recovery nobody
 * asks later whether a page that replay missed was dropped, so only our WAL is
 * believed.  A standby's replay asks, before it is consistent, with WAL that it
 * has not got yet; but not for a block that only hints have changed, and whoever
 * is right, a source that has the page knows better.  Replay writes no hints
 * there, so what verifies is whole, and who has dropped it need not be waited
 * for.
 */
static const struct
{
	Fact		facts[10];
	PageFate	fate;
	PageReason	reason;
}			acceptance[] = {

	/*
	 * read, content, verifies, after S', map, removed by WAL, standby,
	 * replayed, nobody else, whole here
	 */
	{{NO, ANY, ANY, ANY, ANY, ANY, ANY, ANY, ANY, ANY}, PAGE_NOT_GIVEN, NOT_READ},
	{{YES, YES, NO, ANY, ANY, ANY, ANY, ANY, ANY, ANY}, PAGE_NOT_GIVEN, DAMAGED},
	{{YES, YES, YES, YES, ANY, ANY, ANY, ANY, ANY, ANY}, PAGE_IMPOSSIBLE, TOO_NEW},
	{{YES, YES, YES, NO, ANY, ANY, ANY, ANY, ANY, ANY}, PAGE_GIVEN, NO_REASON},
	{{YES, NO, ANY, ANY, YES, ANY, ANY, ANY, ANY, ANY}, PAGE_EMPTY, NO_REASON},
	{{YES, NO, ANY, ANY, ANY, YES, ANY, ANY, ANY, ANY}, PAGE_EMPTY, NO_REASON},
	{{YES, NO, ANY, ANY, ANY, ANY, NO, ANY, ANY, ANY}, PAGE_NOT_GIVEN, NO_CONTENT},
	{{YES, NO, ANY, ANY, ANY, ANY, YES, YES, NO, ANY}, PAGE_NOT_GIVEN, NO_CONTENT},
	{{YES, NO, ANY, ANY, ANY, ANY, YES, YES, YES, ANY}, PAGE_EMPTY, NO_REASON},
	{{YES, NO, ANY, ANY, ANY, ANY, YES, NO, ANY, YES}, PAGE_KEPT, NO_REASON},
	{{YES, NO, ANY, ANY, ANY, ANY, YES, NO, ANY, NO}, PAGE_NOT_GIVEN, NO_CONTENT},
};

/*
 * Say of a source why it has not given a block.
 */
static void
explain(Recovery *recovery, PageSource *source, PageReason reason, const PageRepairBlock *block,
		XLogRecPtr lsn, const PageSourceHeader *header)
{
	RelPathStr	path = relpathperm(block->rlocator, block->forknum);

	switch (reason)
	{
		case NO_REASON:
			break;
		case NOT_READ:
			/* Of the flashback log its own message has said why */
			if (source != &recovery->log_source)
				snprintf(source->why, sizeof(source->why), source->copies ? "it has no whole copy of block %u of relation \"%s\"" :
						 "it could not read block %u of relation \"%s\"", block->blkno, path.str);
			break;
		case DAMAGED:
			snprintf(source->why, sizeof(source->why), "block %u of relation \"%s\" was damaged on its way",
					 block->blkno, path.str);
			break;
		case TOO_NEW:
			refuse_source(source, "block %u of relation \"%s\" has position %X/%X, after its own, %X/%X",
						  block->blkno, path.str, LSN_FORMAT_ARGS(lsn), LSN_FORMAT_ARGS(header->end_lsn));
			break;
		case NO_CONTENT:
			snprintf(source->why, sizeof(source->why), "it has no content for block %u of relation \"%s\", which was not dropped",
					 block->blkno, path.str);
			break;
	}
}

/*
 * Have a page of an answer at an address that is aligned, unless it is of zeroes.
 */
static bool
copy_content(PGIOAlignedBlock *copy, const char *content)
{
	if (pg_memory_is_all_zeros(content, BLCKSZ))
		return false;
	memcpy(copy->data, content, BLCKSZ);
	return true;
}

/*
 * What becomes of a block that a source was asked for?  A length of -1 says that
 * the source has not the block, 0 that it cannot give it.  The source's "why"
 * says why it has not given it; "newest" rises to the position of its page.
 */
static PageFate
judge_page(Recovery *recovery, PageSource *source, const Batch *batch, const PageRepairBlock *block,
		   const char *content, int length, const PageSourceHeader *header, XLogRecPtr *newest)
{
	PGIOAlignedBlock copy;
	bool		page = (length == BLCKSZ);
	bool		has_content = page && copy_content(&copy, content);
	XLogRecPtr	lsn = has_content ? PageGetLSN((Page) copy.data) : InvalidXLogRecPtr;
	bool		lacking = (page || length == -1) && !has_content;
	bool		map = (block->forknum == VISIBILITYMAP_FORKNUM);
	bool		removed = lacking && page_repair_removed(&recovery->map, block);
	bool		replayed = lacking && page_repair_replayed(&recovery->map, block);

	/* The disk is asked only where a row asks for it */
	bool		look_here = lacking && !map && !removed && recovery->standby && !replayed;
	const Fact	facts[lengthof(acceptance[0].facts)] = {
		FACT(page || length == -1),
		FACT(has_content),
		FACT(has_content && PageIsVerified((PageData *) copy.data, block->blkno, 0, NULL)),
		FACT(lsn > header->end_lsn),
		FACT(map),
		FACT(removed),
		FACT(recovery->standby),
		FACT(replayed),
		FACT(source->copies == NULL && all_are_asked(recovery, batch)),
		FACT(look_here && verify_is_whole(recovery, block)),
	};

	for (int i = 0; i < lengthof(acceptance); i++)
	{
		PageFate	fate = acceptance[i].fate;

		if (!row_applies(acceptance[i].facts, facts, lengthof(facts)))
			continue;
		if (acceptance[i].reason != NO_REASON)
			explain(recovery, source, acceptance[i].reason, block, lsn, header);
		if (fate == PAGE_GIVEN)
			*newest = Max(*newest, lsn);
		/* Zeroes that a source has are a page of its own */
		return fate == PAGE_EMPTY && page ? PAGE_GIVEN : fate;
	}
	pg_unreachable();
}

/*
 * Put a page, or an empty one, where a torn one is.
 */
static void
replace_page(Recovery *recovery, const PageSource *source, const PageRepairBlock *block, PageFate fate,
			 const char *content, const PageSourceHeader *header)
{
	bool		from_log = (source == &recovery->log_source);
	bool		map = (block->forknum == VISIBILITYMAP_FORKNUM);
	PGIOAlignedBlock page;

	if (fate == PAGE_GIVEN)
	{
		memcpy(page.data, content, BLCKSZ);
		recovery->stats.repaired++;
		recovery->stats.bytes += BLCKSZ;
		if (from_log)
			recovery->stats.log_pages++;
	}
	else
	{
		memset(page.data, 0, BLCKSZ);
		if (map && from_log)
			recovery->stats.vm_initialized++;
		else
			recovery->stats.missing++;
	}
	/* Replay takes a visibility map page of zeroes for a missing one (R8) */
	if (map && PageIsNew((Page) page.data))
		PageInit((Page) page.data, BLCKSZ, 0);
	repair_write_page(recovery, smgropen(block->rlocator, INVALID_PROC_NUMBER), block->forknum, block->blkno, page.data);
	if (recovery->stats.policy == PAGE_REPAIR_CHECKSUM)
	{
		char		what[256];

		if (fate == PAGE_EMPTY)
			snprintf(what, sizeof(what), "zeroed, source \"%s\" has no such block at %X/%X",
					 source->name, LSN_FORMAT_ARGS(header->end_lsn));
		else
			snprintf(what, sizeof(what), "taken from source \"%s\", page LSN %X/%X",
					 source->name, LSN_FORMAT_ARGS(PageGetLSN((Page) page.data)));
		repair_log(recovery, block, what);
	}
}

/*
 * Put pages where torn ones are, if all is right with them.  Blocks of the batch
 * that have got their page are marked.  Returns false when the source must not
 * be asked further now.
 */
static bool
use_pages(Recovery *recovery, PageSource *source, PageRepairSourceState *state, Batch *batch,
		  const char **pages, const int *lengths, const PageSourceHeader *header)
{
	bool		from_log = (source == &recovery->log_source);
	PageFate	fates[BATCH_BLOCKS];
	int			counts[PAGE_FATES] = {0};
	XLogRecPtr	newest = InvalidXLogRecPtr;

	/* Look at all pages before the first is written */
	for (int i = 0; i < batch->nblocks; i++)
	{
		if (batch->done[i])
			continue;
		fates[i] = judge_page(recovery, source, batch, &batch->blocks[i], pages[i], lengths[i], header, &newest);
		counts[fates[i]]++;
		if (fates[i] == PAGE_IMPOSSIBLE)
			return false;
		if (fates[i] == PAGE_KEPT)
		{
			batch->done[i] = true;
			batch->left--;
		}
	}

	/*
	 * Nobody may read before this has been replayed (R6).  What was on this
	 * server's own disk is no newer than its point of consistency.
	 */
	if (!from_log)
		newest = header->end_lsn;
	if (counts[PAGE_GIVEN] + counts[PAGE_EMPTY] > 0 && newest > recovery->newest)
	{
		recovery->newest = newest;
		if (recovery->standby && !from_log)
			RaiseMinRecoveryPoint(newest, header->timeline);
	}

	for (int i = 0; i < batch->nblocks; i++)
	{
		if (batch->done[i] || fates[i] == PAGE_NOT_GIVEN)
			continue;
		replace_page(recovery, source, &batch->blocks[i], fates[i], pages[i], header);
		batch->done[i] = true;
		batch->left--;
	}
	if (counts[PAGE_GIVEN] > 0)
	{
		SpinLockAcquire(&page_repair_shared->mutex);
		state->pages += counts[PAGE_GIVEN];
		state->bytes += (uint64) counts[PAGE_GIVEN] * BLCKSZ;
		state->last_at = recovery->stats.last_at;
		SpinLockRelease(&page_repair_shared->mutex);
	}
	repair_publish_stats(recovery);
	return counts[PAGE_NOT_GIVEN] == 0;
}

/*
 * May this answer be used?  For a standby the WAL that its pages need is brought
 * here first, so the connection must be idle.
 */
static bool
accept_answer(Recovery *recovery, PageSource *source, PageSourceHeader *header)
{
	if (accept_header(recovery, source, header) &&
		(!recovery->standby || wal_fetch(recovery, source, header)))
		return true;
	recovery->failed |= 1U << (source - recovery->sources);
	/* A directory does not change */
	if (source->copies && !source->refused)
	{
		char	   *why = pstrdup(source->why);

		refuse_source(source, "%s", why);
		pfree(why);
	}
	if (!source->refused && source->next_try < GetCurrentTimestamp())
		source->next_try = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 200);
	return false;
}

/*
 * Make the directory of copies ready: have its WAL here (R18, R21).  Returns its
 * position, up to which this server is going to replay, or an invalid one when
 * it is refused.
 */
XLogRecPtr
fetch_begin_copies(Recovery *recovery, PageSource *source)
{
	PageSourceHeader header;
	PGresult   *result;

	if (!page_source_connect(source, 0) || !page_source_send(source, NULL, 0))
		return InvalidXLogRecPtr;
	result = page_source_receive(source, 0, &header);
	if (result == NULL)
		return InvalidXLogRecPtr;
	PQclear(result);
	return accept_answer(recovery, source, &header) ? header.end_lsn : InvalidXLogRecPtr;
}

/*
 * Use an answer that has been accepted.  Returns false when the source must not
 * be asked further now.
 */
static bool
apply_answer(Recovery *recovery, PageSource *source, Batch *batch, PGresult *result, const PageSourceHeader *header)
{
	const char **pages = palloc(batch->nblocks * sizeof(char *));
	int		   *lengths = palloc(batch->nblocks * sizeof(int));
	uint32		bit = 1U << (source - recovery->sources);
	bool		used;

	if (!page_source_pages(result, batch->nblocks, pages, lengths))
	{
		refuse_source(source, "its answer has another shape");
		return false;
	}
	recovery->failed &= ~bit;
	batch->asked |= bit;
	used = use_pages(recovery, source, &page_repair_shared->sources[source - recovery->sources],
					 batch, pages, lengths, header);
	pfree(pages);
	pfree(lengths);
	if (!used && !source->refused)
		source->next_try = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 200);
	return used;
}

/*
 * The chunk of a block that WAL names, or NULL.
 */
static PageRepairChunk *
find_chunk(Recovery *recovery, const PageRepairBlock *block)
{
	PageRepairChunkKey key = {
		.rlocator = block->rlocator,
		.forknum = block->forknum,
		.number = block->blkno / PAGE_REPAIR_CHUNK_BLOCKS,
	};

	return hash_search(recovery->map.chunks, &key, HASH_FIND, NULL);
}

/*
 * What has been replaced is not to be fetched any more.
 */
static void
forget_fetched(Recovery *recovery, const Batch *batch)
{
	for (int i = 0; i < batch->nblocks; i++)
	{
		const PageRepairBlock *block = &batch->blocks[i];

		if (!batch->done[i])
			continue;
		find_chunk(recovery, block)->check[(block->blkno % PAGE_REPAIR_CHUNK_BLOCKS) / 64] &= ~(UINT64CONST(1) << (block->blkno % 64));
		recovery->fetched++;
	}
}

/*
 * With "always" this is nearly all that a start does.
 */
static void
tell_progress(const Recovery *recovery)
{
	ereport_startup_progress("page repair fetches pages, elapsed time: %ld.%02d s, %llu of %llu pages",
							 (unsigned long long) recovery->fetched, (unsigned long long) recovery->to_fetch);
}

/*
 * Each source's last words, for the error that ends the attempt.
 */
static char *
all_reasons(Recovery *recovery)
{
	StringInfoData text;

	initStringInfo(&text);
	if (log_source_is_enabled())
		appendStringInfo(&text, "\"%s\": %s. ", LOG_SOURCE_NAME, recovery->log_source.why);
	for (int i = 0; i < recovery->nsources; i++)
		appendStringInfo(&text, "%s\"%s\": %s.", i > 0 ? " " : "",
						 recovery->sources[i].name,
						 recovery->sources[i].why[0] ? recovery->sources[i].why : "not asked");
	if (recovery->withheld)
		appendStringInfo(&text, "No source is asked: %s.", recovery->withheld);
	else if (recovery->nsources == 0)
		appendStringInfoString(&text, "\"polar_page_repair_sources\" is empty.");
	return text.data;
}

static void
give_up(Recovery *recovery, const Batch *batch)
{
	const PageRepairBlock *block = NULL;
	uint64		torn;
	bool		listed;

	for (int i = 0; i < batch->nblocks && block == NULL; i++)
	{
		if (!batch->done[i])
			block = &batch->blocks[i];
	}
	forget_fetched(recovery, batch);

	/* A full disk must not hide why this server does not start */
	listed = torn_list_write(recovery, recovery->chunks, recovery->nchunks, LOG, &torn);
	ereport(FATAL,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 recovery->stats.policy == PAGE_REPAIR_ALWAYS ?
			 errmsg("could not get block %u of relation \"%s\" from any page repair source",
					block->blkno, relpathperm(block->rlocator, block->forknum).str) :
			 errmsg("block %u of relation \"%s\" is torn, and no page repair source could give it",
					block->blkno, relpathperm(block->rlocator, block->forknum).str),
			 listed ?
			 errdetail("%s File \"%s\" lists all blocks that are still to be replaced: %llu.",
					   all_reasons(recovery), TORN_LIST_FILE, (unsigned long long) torn) :
			 errdetail("%s %llu blocks are still to be replaced; file \"%s\" could not be written to list them.",
					   all_reasons(recovery), (unsigned long long) torn, TORN_LIST_FILE),
			 recovery->withheld && !StandbyMode ?
			 errhint("What is being restored can be restored once more from the same backup and archive, into another directory.") :
			 recovery->withheld ?
			 errhint("Start once without a recovery target and without \"recovery_min_apply_delay\".") :
			 recovery->wal_gone && recovery->copies ?
			 errhint("Copy the missing WAL segments to \"%s/wal\" or to this server's directory pg_wal, or set \"restore_command\", and start this server again.",
					 COPIES_DIR) :
			 recovery->wal_gone ?
			 errhint("Copy the missing WAL segments from an archive to this server's directory pg_wal, or set \"restore_command\", and start this server again; or take a new base backup for it.") :
			 recovery->unknown_timeline > 0 ?
			 errhint("Copy \"%08X.history\" from the source's directory pg_wal to this server's, and start this server again.",
					 recovery->unknown_timeline) :
			 errhint("Recovery needs a whole copy of each page that is listed, loses nothing by waiting, and can be tried again as often as needed: bring up a source named in \"polar_page_repair_sources\", or name another one that has these pages. A source that cannot start because it waits for this server was torn as well: keep both data directories, because each may have whole copies of pages that the other lacks, and a standby takes those of its primary from a directory \"%s\".",
					 COPIES_DIR)));
}

/*
 * Get what is left of a batch from whatever source, wait when none can serve
 * now, and give up at the deadline, or when none ever will.
 */
static void
fetch_slowly(Recovery *recovery, Batch *batch)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), page_repair_timeout);
	TimestampTz next_report = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 10000);

	while (batch->left > 0)
	{
		bool		hope = false;

		for (int i = 0; i < recovery->nsources && batch->left > 0; i++)
		{
			PageSource *source = &recovery->sources[i];
			TimestampTz answer_by = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), PAGE_REPAIR_ANSWER_MS);
			PGresult   *result;
			PageSourceHeader header;

			if (source->refused || (source->copies && (batch->asked & (1U << i)) != 0))
				continue;
			hope = true;
			if (GetCurrentTimestamp() < source->next_try)
				continue;
			answer_by = Min(answer_by, Max(deadline, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 1000)));
			recovery->failed |= 1U << i;
			if (!page_source_connect(source, answer_by) ||
				!page_source_send(source, batch->blocks, batch->nblocks))
				continue;
			result = page_source_receive(source, answer_by, &header);
			if (result == NULL)
				continue;
			if (accept_answer(recovery, source, &header) && apply_answer(recovery, source, batch, result, &header))
				recovery->current = i;
			PQclear(result);
		}
		if (batch->left == 0)
			break;
		if (!hope || GetCurrentTimestamp() >= deadline)
			give_up(recovery, batch);
		if (GetCurrentTimestamp() >= next_report)
		{
			ereport(LOG,
					(errmsg("recovery waits for a page repair source"),
					 errdetail("%s", all_reasons(recovery))));
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
		int			i = verify_next_checked(at, *from);

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
	batch->asked = 0;
}

static bool
is_to_be_fetched(const PageRepairBlock *block, void *arg)
{
	PageRepairChunk *chunk = find_chunk((Recovery *) arg, block);

	return chunk != NULL &&
		(chunk->check[(block->blkno % PAGE_REPAIR_CHUNK_BLOCKS) / 64] & (UINT64CONST(1) << (block->blkno % 64))) != 0;
}

/*
 * The log is needed: look up what it has.  Returns false if it is no source.
 */
static bool
prepare_log(Recovery *recovery)
{
	PageSource *source = &recovery->log_source;

	if (recovery->log_ready)
		return !source->refused;
	recovery->log_ready = true;
	if (recovery->log == NULL)
	{
		source->refused = true;
		if (log_source_is_enabled())
			ereport(LOG,
					(errmsg("the flashback log is no page repair source: %s", source->why)));
	}
	/* R5 */
	else if (!recovery->standby && log_source_lsn(recovery->log) > recovery->end)
		refuse_source(source, "it has pages of up to %X/%X, but this server's WAL ends at %X/%X",
					  LSN_FORMAT_ARGS(log_source_lsn(recovery->log)), LSN_FORMAT_ARGS(recovery->end));
	else if (!log_source_index(recovery->log, recovery->standby ? NULL : is_to_be_fetched, recovery,
							   source->why, sizeof(source->why)))
		ereport(LOG,
				(errmsg("the flashback log is damaged and may not have all pages"),
				 errdetail("%s.", source->why)));
	strlcpy(recovery->stats.log_why, source->why, sizeof(recovery->stats.log_why));
	return !source->refused;
}

/*
 * Is what is on disk from the point?  Without an image the block has not been
 * written since, unless it held nothing then; and it had content if WAL from
 * before changes it and does not remove it.
 */
static bool
is_from_point(Recovery *recovery, const PageRepairBlock *block)
{
	return recovery->stats.policy == PAGE_REPAIR_ALWAYS &&
		!page_repair_removed(&recovery->map, block) &&
		verify_is_whole(recovery, block) &&
		PageGetLSN((Page) recovery->read_buffer) <= log_source_lsn(recovery->log);
}

/*
 * Take what the flashback log has; those blocks are left in the chunks that
 * other sources are to be asked for.
 */
static void
fetch_from_log(Recovery *recovery, PageRepairChunk **chunks, int nchunks)
{
	PageSource *source = &recovery->log_source;
	Batch	   *batch = palloc(sizeof(Batch));
	const char **pages = palloc(BATCH_BLOCKS * sizeof(char *));
	int		   *lengths = palloc(BATCH_BLOCKS * sizeof(int));
	char	   *buffer = palloc(BATCH_BLOCKS * BLCKSZ);
	PageSourceHeader header = {0};
	int			chunk = 0;
	int			from = 0;

	next_batch(batch, chunks, nchunks, &chunk, &from);
	while (batch->nblocks > 0 && prepare_log(recovery))
	{
		ProcessStartupProcInterrupts();
		tell_progress(recovery);
		header.timeline = log_source_timeline(recovery->log);
		header.start_lsn = log_source_redo(recovery->log);
		header.end_lsn = log_source_lsn(recovery->log);
		if (recovery->standby)
			header.end_lsn = Min(header.end_lsn, recovery->limit);

		for (int i = 0; i < batch->nblocks; i++)
		{
			const PageRepairBlock *block = &batch->blocks[i];

			pages[i] = buffer + (Size) i * BLCKSZ;
			lengths[i] = log_source_read(recovery->log, block, buffer + (Size) i * BLCKSZ,
										 source->why, sizeof(source->why));
			if (lengths[i] != LOG_SOURCE_KEEP)
				continue;
			lengths[i] = LOG_SOURCE_NO_CONTENT;
			if (is_from_point(recovery, block))
			{
				batch->done[i] = true;
				batch->left--;
				recovery->stats.log_kept++;
			}
		}
		if (!log_source_is_complete(recovery->log))
		{
			refuse_source(source, "it has lost its point while it was read");
			break;
		}
		(void) use_pages(recovery, source, &page_repair_shared->log, batch, pages, lengths, &header);
		forget_fetched(recovery, batch);
		strlcpy(recovery->stats.log_why, source->why, sizeof(recovery->stats.log_why));
		next_batch(batch, chunks, nchunks, &chunk, &from);
	}
	pfree(batch);
	pfree(pages);
	pfree(lengths);
	pfree(buffer);
}

/*
 * Fetch all blocks that are left in the chunks, from the flashback log first.
 * While one answer is written, the source works on the next.
 */
void
fetch_all(Recovery *recovery, PageRepairChunk **chunks, int nchunks)
{
	Batch	   *batch = palloc(sizeof(Batch));
	Batch	   *next = palloc(sizeof(Batch));
	int			chunk = 0;
	int			from = 0;

	recovery->to_fetch = recovery->fetched = 0;
	for (int i = 0; i < nchunks; i++)
		recovery->to_fetch += pg_popcount((char *) chunks[i]->check, sizeof(chunks[i]->check));
	begin_startup_progress_phase();
	fetch_from_log(recovery, chunks, nchunks);
	next_batch(batch, chunks, nchunks, &chunk, &from);
	while (batch->nblocks > 0)
	{
		PageSource *source = recovery->nsources > 0 ? &recovery->sources[recovery->current] : NULL;
		PageSourceHeader header;
		PGresult   *result = NULL;
		MemoryContext old;

		ProcessStartupProcInterrupts();
		tell_progress(recovery);

		/*
		 * The first request of all, and those after trouble, find a source
		 * first
		 */
		if (source != NULL && source->conn != NULL && !source->busy)
			page_source_send(source, batch->blocks, batch->nblocks);
		if (source != NULL && source->busy)
			result = page_source_receive(source, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), PAGE_REPAIR_ANSWER_MS),
										 &header);
		next_batch(next, chunks, nchunks, &chunk, &from);
		if (result != NULL)
		{
			old = MemoryContextSwitchTo(recovery->context);
			if (accept_answer(recovery, source, &header))
			{
				if (next->nblocks > 0 && source->conn != NULL)
					page_source_send(source, next->blocks, next->nblocks);
				(void) apply_answer(recovery, source, batch, result, &header);
			}
			MemoryContextSwitchTo(old);
			PQclear(result);
			/* An answer to a question that will be asked again is of no use */
			if (batch->left > 0)
				page_source_disconnect(source);
		}
		if (batch->left > 0)
			fetch_slowly(recovery, batch);
		forget_fetched(recovery, batch);

		{
			Batch	   *swap = batch;

			batch = next;
			next = swap;
		}
	}
	pfree(batch);
	pfree(next);
}
