/*-------------------------------------------------------------------------
 *
 * repair.c
 *	  Before replay starts, make sure that no page it will meet is torn.
 *
 * Everything happens in the process that recovers, before the first record is
 * replayed: the buffer pool is empty and nobody else touches a relation.  See
 * README.repair.md for why each page that is accepted is right; R with a
 * number is one of the invariants there.
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
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "postmaster/startup.h"
#include "repair.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/smgr.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Repaired pages that are logged one by one; the summary counts all */
#define LOGGED_REPAIRS 100

/* The hooks below have no other way to it; they hand it to everybody else */
static Recovery *this_recovery = NULL;

static void (*prev_rm_startup) (void) = NULL;
static void (*prev_rm_cleanup) (void) = NULL;
static void (*prev_xlog_redo) (XLogReaderState *record) = NULL;
static void (*original_redo[RM_MAX_ID + 1]) (XLogReaderState *record);

/*
 * Show how far it is.
 */
void
repair_publish_stats(Recovery *recovery)
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
void
repair_write_page(Recovery *recovery, SMgrRelation reln, ForkNumber forknum, BlockNumber blkno, char *page)
{
	if (!PageIsNew((Page) page))
		PageSetChecksumInplace((Page) page, blkno);
	smgroverwrite(reln, forknum, blkno, page, true);
	recovery->stats.last_at = GetCurrentTimestamp();
}

/*
 * Tell of one repaired page.
 */
void
repair_log(Recovery *recovery, const PageRepairBlock *block, const char *what)
{
	int			level = (recovery->logged++ < LOGGED_REPAIRS) ? LOG : DEBUG1;

	ereport(level,
			(errmsg("repaired block %u of relation \"%s\": %s",
					block->blkno,
					relpathperm(block->rlocator, block->forknum).str,
					what)));
}

/*
 * Know the history of this timeline.
 */
void
repair_follow_timeline(Recovery *recovery, TimeLineID timeline)
{
	MemoryContext old;

	if (recovery->history_of == timeline || timeline == 0)
		return;
	old = MemoryContextSwitchTo(recovery->context);
	list_free_deep(recovery->history);
	recovery->history = readTimeLineHistory(timeline);
	recovery->history_of = timeline;
	MemoryContextSwitchTo(old);
}

/*
 * There is a directory of copies: have its WAL here, and read on to its
 * position, because what it says of removed blocks is believed only with the
 * record (R21).
 */
static void
read_on_to_copies(Recovery *recovery, XLogRecPtr start)
{
	XLogRecPtr	upto = fetch_begin_copies(recovery, &recovery->sources[0]);

	if (XLogRecPtrIsInvalid(upto))
		return;

	/* Nobody is there who could give all pages */
	recovery->stats.policy = PAGE_REPAIR_CHECKSUM;
	ereport(LOG,
			(errmsg("page repair asks directory \"%s\" first, and replaces only pages that fail verification", COPIES_DIR)));
	recovery->limit = Max(recovery->limit, upto);
	recovery->end = page_repair_scan(&recovery->map, start, recovery->limit, recovery->history,
									 &recovery->wal);
}

/*
 * All torn pages have been found, and more is not wanted.
 */
static void
end_with_list(Recovery *recovery)
{
	uint64		listed;

	(void) torn_list_write(recovery, recovery->chunks, recovery->nchunks, FATAL, &listed);
	ereport(FATAL,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("torn pages have been listed in file \"%s\": %llu",
					TORN_LIST_FILE, (unsigned long long) listed),
			 errdetail("No page has been changed. WAL was read from %X/%X to %X/%X.",
					   LSN_FORMAT_ARGS(recovery->redo), LSN_FORMAT_ARGS(recovery->wal.end)),
			 errhint("Start the server with \"polar_page_repair_list_only\" off.")));
}

/*
 * Only a recovery that looks at pages can list those that are torn.
 */
static void
refuse_list(const char *why)
{
	ereport(FATAL,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("torn pages cannot be listed"),
			 errdetail("%s", why),
			 errhint("Start the server with \"polar_page_repair_list_only\" off.")));
}

/*
 * Make good what WAL names from "start" on, where the record is that is about
 * to be replayed, if there is one yet.
 */
static void
repair_from(Recovery *recovery, XLogRecPtr start, XLogReaderState *record)
{
	MemoryContext old = MemoryContextSwitchTo(recovery->context);
	PageRepairChunk **chunks;
	int			nchunks;
	instr_time	started;

	INSTR_TIME_SET_CURRENT(started);
	begin_startup_progress_phase();
	repair_follow_timeline(recovery, recoveryTargetTLI);
	recovery->end = page_repair_scan(&recovery->map, start, recovery->limit, recovery->history,
									 &recovery->wal);

	if (record == NULL && recovery->copies)
		read_on_to_copies(recovery, start);

	/*
	 * Replay may have WAL that the scan does not find, and the part that is
	 * not there yet must not be looked for again with each record
	 */
	if (record != NULL && recovery->end <= record->ReadRecPtr)
	{
		page_repair_map_record(&recovery->map, record);
		recovery->end = record->EndRecPtr;
	}
	recovery->stats.end_lsn = recovery->end;
	recovery->stats.referenced = recovery->map.referenced;
	recovery->stats.scan_ms += elapsed_ms(started);

	INSTR_TIME_SET_CURRENT(started);
	begin_startup_progress_phase();
	chunks = verify_sorted_chunks(recovery, &nchunks);
	recovery->chunks = chunks;
	recovery->nchunks = nchunks;
	for (int i = 0; i < nchunks; i++)
	{
		ereport_startup_progress("page repair verifies pages, elapsed time: %ld.%02d s, part %d of %d, %llu pages read, %llu torn",
								 i + 1, nchunks, (unsigned long long) recovery->stats.checked,
								 (unsigned long long) recovery->stats.torn);
		if (page_repair_sweep_first(&recovery->map, &chunks[i]->key.rlocator) && !page_repair_list_only)
			verify_sweep_maps(recovery, chunks[i]->key.rlocator);
		verify_chunk(recovery, chunks[i]);
	}
	if (record == NULL && !page_repair_list_only)
		verify_sweep_written_maps(recovery, recovery->redo_time);
	recovery->stats.check_ms += elapsed_ms(started);
	repair_publish_stats(recovery);
	if (page_repair_list_only)
		end_with_list(recovery);

	INSTR_TIME_SET_CURRENT(started);
	fetch_all(recovery, chunks, nchunks);
	recovery->stats.fetch_ms += elapsed_ms(started);

	/*
	 * What has been dealt with must not be again: replay changes it from now
	 * on
	 */
	for (int i = 0; i < nchunks; i++)
		memset(chunks[i]->check, 0, sizeof(chunks[i]->check));
	pfree(chunks);
	recovery->chunks = NULL;
	recovery->nchunks = 0;
	repair_publish_stats(recovery);

	/* A standby's replay tells of none; another's does in a phase of its own */
	if (StandbyMode)
		disable_startup_progress_timeout();
	else
		begin_startup_progress_phase();
	MemoryContextSwitchTo(old);
}

/*
 * Nothing more is to be done in this recovery.
 */
static void
finish_repair(Recovery *recovery)
{
	PageRepairStats *stats = &recovery->stats;

	if (recovery->map.chunks == NULL)
		return;
	stats->ended_at = GetCurrentTimestamp();
	SpinLockAcquire(&page_repair_shared->mutex);
	page_repair_shared->whole = (stats->policy == PAGE_REPAIR_ALWAYS || page_repair_shared->stopped_whole);
	SpinLockRelease(&page_repair_shared->mutex);
	if (!recovery->imaged)
	{
		repair_publish_stats(recovery);
		ereport(LOG,
				(errmsg("page repair: %llu blocks named by WAL, %llu read and verified, %llu torn",
						(unsigned long long) stats->referenced, (unsigned long long) stats->checked,
						(unsigned long long) stats->torn),
				 errdetail("%llu taken from sources (%llu bytes; %llu pages from the flashback log, which left %llu others as they are), %llu zeroed as dropped, %llu visibility map pages initialized, %llu free space map pages zeroed; scan %.1f ms, check %.1f ms, fetch %.1f ms.",
						   (unsigned long long) stats->repaired, (unsigned long long) stats->bytes,
						   (unsigned long long) stats->log_pages, (unsigned long long) stats->log_kept,
						   (unsigned long long) stats->missing, (unsigned long long) stats->vm_initialized,
						   (unsigned long long) stats->fsm_reset,
						   stats->scan_ms, stats->check_ms, stats->fetch_ms)));
	}
	page_repair_close_sources(recovery->sources, recovery->nsources);
	recovery->sources = NULL;
	recovery->nsources = 0;
	if (recovery->log)
		log_source_close(recovery->log);
	recovery->log = NULL;
	hash_destroy(recovery->map.chunks);
	recovery->map.chunks = NULL;
}

/*
 * Replay has, or ends with, other WAL than the scan has seen (R5).
 */
static void
refuse_replay(Recovery *recovery, XLogRecPtr at)
{
	ereport(FATAL,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("recovery came to %X/%X, but WAL was read ahead up to %X/%X",
					LSN_FORMAT_ARGS(at), LSN_FORMAT_ARGS(recovery->end)),
			 errdetail("Pages that are named in between have not been looked at, or WAL that was there is not any more."),
			 errhint("Start the server again.")));
}

/*
 * Note what the next record names; false when it is the first change of a block
 * without an image (R20).
 */
static bool
follow_images(Recovery *recovery, XLogReaderState *record)
{
	MemoryContext old = MemoryContextSwitchTo(recovery->context);

	page_repair_map_record(&recovery->map, record);
	MemoryContextSwitchTo(old);
	return !recovery->map.imageless;
}

/*
 * Stands before each record's replay as long as all WAL has had its images.
 * What a standby replays behind its point of consistency, and a crashed primary
 * that is to be one behind its own WAL, had not been written.
 */
static void
imaged_redo(Recovery *recovery, XLogReaderState *record)
{
	if (recovery->standby ? reachedConsistency || record->ReadRecPtr >= recovery->limit : InArchiveRecovery)
		finish_repair(recovery);
	else if (!follow_images(recovery, record))
	{
		recovery->imaged = false;
		ereport(LOG,
				(errmsg("page repair: WAL is read ahead from %X/%X, where a page is changed first without a full-page image",
						LSN_FORMAT_ARGS(record->ReadRecPtr))));
		repair_from(recovery, record->ReadRecPtr, record);
	}
}

/*
 * Stands before each record's replay while a standby has not got all WAL that
 * it needs for consistency: what comes later is looked at when it is there.  A
 * crashed primary that is to be a standby has all that it had written.
 */
static void
repair_redo(XLogReaderState *record)
{
	Recovery   *recovery = this_recovery;

	if (recovery->imaged)
	{
		if (recovery->map.chunks != NULL)
			imaged_redo(recovery, record);
		original_redo[XLogRecGetRmid(record)] (record);
		return;
	}
	if (!recovery->standby && !InArchiveRecovery && record->ReadRecPtr >= recovery->end)
		refuse_replay(recovery, record->ReadRecPtr);
	if (recovery->map.chunks != NULL)
	{
		if (reachedConsistency || recovery->end >= recovery->limit)
			finish_repair(recovery);
		else if (record->ReadRecPtr >= recovery->end)
			repair_from(recovery, record->ReadRecPtr, record);
	}
	original_redo[XLogRecGetRmid(record)] (record);
}

/*
 * Put the directory of copies, if there is one, before all other sources.
 */
static bool
add_copies(PageSource **sources, int *nsources)
{
	PageSource	found;

	if (!copies_open(&found))
		return false;
	if (*nsources == PAGE_REPAIR_MAX_SOURCES)
	{
		ereport(LOG,
				(errmsg("page repair source \"%s\" is not asked, because directory \"%s\" is there",
						(*sources)[*nsources - 1].name, COPIES_DIR)));
		(*nsources)--;
	}
	memmove(*sources + 1, *sources, *nsources * sizeof(PageSource));
	(*sources)[0] = found;
	(*nsources)++;
	return true;
}

/*
 * Can torn pages be told at all?
 */
static bool
has_checksums(const ControlFileData *control)
{
	if (DataChecksumsEnabled())
		return true;
	if (page_repair_list_only)
		refuse_list("Data checksums are off.");
	if (page_repair_source_list[0] != '\0' || !control->checkPointCopy.fullPageWrites)
		ereport(WARNING,
				(errmsg("torn pages cannot be found, because data checksums are off"),
				 errdetail("\"%s\" has no effect; recovery goes on as if all pages were whole.",
						   page_repair_source_list[0] != '\0' ? "polar_page_repair_sources" : "polar_page_repair_policy"),
				 errhint("Stop the server and enable them with pg_checksums.")));
	return false;
}

/*
 * Note from where this recovery starts, and that it begins with nothing torn
 * (R19).
 */
static void
publish_whole(XLogRecPtr redo)
{
	SpinLockAcquire(&page_repair_shared->mutex);
	page_repair_shared->whole = true;
	page_repair_shared->recovered_from = redo;
	SpinLockRelease(&page_repair_shared->mutex);
}

/*
 * A standby that is consistent before the first record has written nothing that
 * a later record has changed, so there is nothing to be looked at.
 */
static void
publish_consistent(void)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);

	if (crc_ok)
		publish_whole(control->checkPointCopy.redo);
	pfree(control);
}

/*
 * Is this a base backup that is being restored?  Images were forced while it was
 * taken (R12).
 */
static bool
is_base_backup(const ControlFileData *control)
{
	if (XLogRecPtrIsInvalid(control->backupStartPoint) &&
		XLogRecPtrIsInvalid(control->backupEndPoint) && !control->backupEndRequired)
		return false;
	if (page_repair_list_only)
		refuse_list("This is a base backup, whose WAL has images until its end.");
	publish_whole(control->checkPointCopy.redo);
	return true;
}

/*
 * Who shall stay behind must not get pages of now: torn ones are found, not
 * replaced (R13).  Returns why, or NULL.
 */
static const char *
why_withheld(void)
{
	if (!InArchiveRecovery)
		return NULL;
	if (!StandbyMode)
		return "this is a recovery from an archive, which must not get pages of now";
	if (recoveryTarget != RECOVERY_TARGET_UNSET)
		return "recovery has a target, and a source's pages may be newer";
	if (recovery_min_apply_delay > 0)
		return "\"recovery_min_apply_delay\" is set, and a source's pages may be newer";
	return NULL;
}

/*
 * The policy of this recovery.
 */
static int
policy_in_force(const char *withheld)
{
	if (withheld != NULL)
		return PAGE_REPAIR_CHECKSUM;
	/* R19 */
	if (page_repair_policy == PAGE_REPAIR_ALWAYS && InArchiveRecovery && page_repair_shared->stopped_whole)
	{
		ereport(LOG,
				(errmsg("this server was stopped with all that it had written on disk, so only pages that fail verification are replaced")));
		return PAGE_REPAIR_CHECKSUM;
	}
	return page_repair_list_only ? PAGE_REPAIR_CHECKSUM : page_repair_policy;
}

/*
 * Who may be asked in this recovery.
 */
static void
choose_sources(Recovery *recovery)
{
	recovery->withheld = why_withheld();
	if (recovery->withheld != NULL)
	{
		page_repair_close_sources(recovery->sources, recovery->nsources);
		recovery->sources = NULL;
		recovery->nsources = 0;
	}
	else
		recovery->copies = !page_repair_list_only && InArchiveRecovery &&
			add_copies(&recovery->sources, &recovery->nsources);

	/*
	 * What is in the log is older than what was on disk, so who shall stay
	 * behind may have it
	 */
	recovery->log = log_source_open(recovery->redo, recovery->log_source.why, sizeof(recovery->log_source.why));
	recovery->log_source.name = LOG_SOURCE_NAME;
}

/*
 * Show in the views that a recovery has begun.
 */
static void
publish_start(const Recovery *recovery)
{
	SpinLockAcquire(&page_repair_shared->mutex);
	for (int i = 0; i < PAGE_REPAIR_MAX_SOURCES; i++)
	{
		PageRepairSourceState *state = &page_repair_shared->sources[i];

		memset(state, 0, sizeof(*state));
		if (i < recovery->nsources)
			strlcpy(state->name, recovery->sources[i].name, sizeof(state->name));
	}
	memset(&page_repair_shared->log, 0, sizeof(page_repair_shared->log));
	page_repair_shared->recovered_from = recovery->redo;
	SpinLockRelease(&page_repair_shared->mutex);
}

/*
 * What this recovery is and may do, or NULL when nothing is looked at in it.
 */
static Recovery *
begin_recovery(MemoryContext context)
{
	Recovery   *recovery = palloc0(sizeof(Recovery));
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);
	char	   *error;

	if (!crc_ok)
		ereport(FATAL,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("incorrect checksum in control file")));
	if (!has_checksums(control))
		return NULL;
	if (!page_repair_parse_sources(page_repair_source_list, &recovery->sources, &recovery->nsources, &error))
		ereport(FATAL,
				(errcode(ERRCODE_CONFIG_FILE_ERROR),
				 errmsg("invalid value for parameter \"%s\"", "polar_page_repair_sources"),
				 errdetail("%s", error)));
	if (is_base_backup(control))
	{
		page_repair_close_sources(recovery->sources, recovery->nsources);
		return NULL;
	}

	recovery->context = context;
	recovery->standby = InArchiveRecovery;
	recovery->redo = control->checkPointCopy.redo;

	/* A file's time may be a tick behind the clock that gives this one */
	recovery->redo_time = control->checkPointCopy.time - 1;
	recovery->least = page_repair_record_end(recovery->redo);

	/*
	 * What was changed by a later record has not been written, except for
	 * free space maps
	 */
	recovery->limit = InArchiveRecovery ? Max(control->minRecoveryPoint, recovery->redo) : InvalidXLogRecPtr;
	choose_sources(recovery);

	/*
	 * R20.  The log must be read before recovery adds to it, and a standby's
	 * sources before it has come to the end of its WAL.
	 */
	recovery->imaged = !page_repair_list_only && control->checkPointCopy.fullPageWrites &&
		recovery->log == NULL && (recovery->nsources == 0 || !recovery->standby);
	recovery->read_buffer = palloc_aligned(REPAIR_READ_BUFFER, PG_IO_ALIGN_SIZE, 0);
	recovery->stats.started_at = GetCurrentTimestamp();
	recovery->stats.standby = recovery->standby;
	recovery->stats.policy = policy_in_force(recovery->withheld);
	recovery->stats.redo_lsn = recovery->redo;
	page_repair_map_create(&recovery->map);
	publish_start(recovery);
	return recovery;
}

/*
 * Before the first record is replayed
 */
static void
repair_startup(void)
{
	Recovery   *recovery;
	MemoryContext context;
	MemoryContext old;

	if (prev_rm_startup)
		prev_rm_startup();
	if (page_repair_list_only && (page_repair_shared == NULL || reachedConsistency))
		refuse_list("Replay starts with a consistent database.");
	if (page_repair_shared == NULL)
		return;
	if (reachedConsistency)
	{
		publish_consistent();
		return;
	}
	if (page_repair_policy == PAGE_REPAIR_OFF && !page_repair_list_only)
		return;
	torn_list_remove();

	context = AllocSetContextCreate(TopMemoryContext, "page repair", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	recovery = begin_recovery(context);
	MemoryContextSwitchTo(old);
	if (recovery == NULL)
	{
		MemoryContextDelete(context);
		return;
	}
	this_recovery = recovery;

	if (!recovery->imaged)
	{
		repair_from(recovery, recovery->redo, NULL);
		if (!recovery->standby || recovery->end >= recovery->limit)
			finish_repair(recovery);
	}
	if (recovery->imaged || (recovery->standby ? recovery->end < recovery->limit : ArchiveRecoveryRequested))
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
	Recovery   *recovery = this_recovery;

	if (recovery != NULL)
	{
		XLogRecPtr	end = GetXLogReplayRecPtr(NULL);

		if (recovery->newest > end)
			ereport(FATAL,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("recovery ended at %X/%X, but pages from page repair sources are as of %X/%X",
							LSN_FORMAT_ARGS(end), LSN_FORMAT_ARGS(recovery->newest)),
					 errhint("WAL is missing, or a recovery target lies before that position.")));
		if (!recovery->standby && !recovery->imaged && !ArchiveRecoveryRequested && end != recovery->end)
			refuse_replay(recovery, end);
		finish_repair(recovery);
	}
	if (prev_rm_cleanup)
		prev_rm_cleanup();
}

/*
 * Stands before the replay of xlog's records: whether images have ended since
 * the redo pointer is nowhere else to be found.
 */
static void
note_end_of_images(XLogReaderState *record)
{
	if (page_repair_shared != NULL && page_repair_is_end_of_images(record))
	{
		SpinLockAcquire(&page_repair_shared->mutex);
		page_repair_shared->images_ended = record->ReadRecPtr;
		SpinLockRelease(&page_repair_shared->mutex);
	}
	prev_xlog_redo(record);
}

/*
 * Called once, when the module is preloaded.
 */
void
page_repair_install_recovery(void)
{
	prev_xlog_redo = RmgrTable[RM_XLOG_ID].rm_redo;
	RmgrTable[RM_XLOG_ID].rm_redo = note_end_of_images;
	prev_rm_startup = RmgrTable[RM_XLOG_ID].rm_startup;
	RmgrTable[RM_XLOG_ID].rm_startup = repair_startup;
	prev_rm_cleanup = RmgrTable[RM_XLOG_ID].rm_cleanup;
	RmgrTable[RM_XLOG_ID].rm_cleanup = repair_cleanup;
}
