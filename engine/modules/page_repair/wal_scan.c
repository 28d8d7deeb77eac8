/*-------------------------------------------------------------------------
 *
 * wal_scan.c
 *	  Which blocks does WAL change first without bringing their content?
 *
 * A reader of its own runs over the local WAL before replay does.  The result
 * is a bitmap for each 1024 blocks of a fork: a table of 100 GB of which
 * every page is named costs a few megabytes, and files can be read in order.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/wal_scan.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/rmgr.h"
#include "access/timeline.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogreader.h"
#include "access/xlogrecord.h"
#include "catalog/pg_control.h"
#include "catalog/storage_xlog.h"
#include "commands/dbcommands_xlog.h"
#include "page_repair.h"
#include "postmaster/startup.h"
#include "storage/fd.h"

/* How much of a segment is read at once */
#define SCAN_READ_SIZE (64 * XLOG_BLCKSZ)

typedef struct WalScan
{
	List	   *history;
	TimeLineID	tli;			/* of the open segment */
	char	   *buffer;			/* part of the open segment */
	XLogRecPtr	buffer_start;
	int			buffer_length;
} WalScan;

static void
scan_close(XLogReaderState *reader)
{
	if (reader->seg.ws_file >= 0)
		CloseTransientFile(reader->seg.ws_file);
	reader->seg.ws_file = -1;
}

/*
 * Opens a segment, from the newest timeline that may have it and not from one
 * older than that of the segment before, as replay will.
 */
static bool
scan_open(XLogReaderState *reader, WalScan *scan, XLogSegNo segno)
{
	ListCell   *cell;

	scan_close(reader);
	scan->buffer_length = 0;
	foreach(cell, scan->history)
	{
		TimeLineHistoryEntry *entry = (TimeLineHistoryEntry *) lfirst(cell);
		char		path[MAXPGPATH];

		if (entry->tli < scan->tli)
			break;
		if (!XLogRecPtrIsInvalid(entry->begin))
		{
			XLogSegNo	begin;

			XLByteToSeg(entry->begin, begin, wal_segment_size);
			if (segno < begin)
				continue;
		}
		XLogFilePath(path, entry->tli, segno, wal_segment_size);
		reader->seg.ws_file = OpenTransientFile(path, O_RDONLY | PG_BINARY);
		if (reader->seg.ws_file >= 0)
		{
			reader->seg.ws_segno = segno;
			reader->seg.ws_tli = scan->tli = entry->tli;
			return true;
		}
		if (errno != ENOENT)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not open file \"%s\": %m", path)));
	}
	return false;
}

/*
 * XLogReader's page_read callback
 */
static int
scan_page_read(XLogReaderState *reader, XLogRecPtr targetPagePtr, int reqLen,
			   XLogRecPtr targetRecPtr, char *readBuf)
{
	WalScan    *scan = (WalScan *) reader->private_data;
	XLogSegNo	segno;

	XLByteToSeg(targetPagePtr, segno, wal_segment_size);
	if (reader->seg.ws_file < 0 || reader->seg.ws_segno != segno)
	{
		if (!scan_open(reader, scan, segno))
			return -1;
	}
	if (scan->buffer_length == 0 || targetPagePtr < scan->buffer_start ||
		targetPagePtr + XLOG_BLCKSZ > scan->buffer_start + scan->buffer_length)
	{
		uint32		offset = XLogSegmentOffset(targetPagePtr, wal_segment_size);
		ssize_t		got;

		ProcessStartupProcInterrupts();
		got = pg_pread(reader->seg.ws_file, scan->buffer,
					   Min(SCAN_READ_SIZE, wal_segment_size - offset), offset);
		if (got < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read WAL segment " UINT64_FORMAT ": %m", segno)));
		if (got < XLOG_BLCKSZ)
			return -1;
		scan->buffer_start = targetPagePtr;
		scan->buffer_length = got;
	}
	memcpy(readBuf, scan->buffer + (targetPagePtr - scan->buffer_start), XLOG_BLCKSZ);
	return XLOG_BLCKSZ;
}

/*
 * Create an empty map in the current memory context.
 */
void
page_repair_map_create(PageRepairMap *map)
{
	HASHCTL		ctl;

	ctl.keysize = sizeof(PageRepairChunkKey);
	ctl.entrysize = sizeof(PageRepairChunk);
	ctl.hcxt = CurrentMemoryContext;
	map->chunks = hash_create("page repair blocks", 1024, &ctl,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	ctl.keysize = sizeof(RelFileLocator);
	ctl.entrysize = sizeof(PageRepairRemoval);
	map->removals = hash_create("page repair removals", 128, &ctl,
								HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	memset(map->recent, 0, sizeof(map->recent));
	map->referenced = 0;
	map->fresh = NIL;
	map->timeline = 0;
	map->imageless = false;
}

static PageRepairChunk *map_chunk(PageRepairMap *map, const RelFileLocator *rlocator,
								  ForkNumber forknum, BlockNumber blkno);

static void
note_removal(PageRepairMap *map, RelFileLocator rlocator, BlockNumber from)
{
	bool		found;
	PageRepairRemoval *removal = hash_search(map->removals, &rlocator, HASH_ENTER, &found);

	if (!found || from < removal->from)
		removal->from = from;
}

/*
 * Does WAL say why a source has not this block any more?
 */
bool
page_repair_removed(PageRepairMap *map, const PageRepairBlock *block)
{
	RelFileLocator rlocator = block->rlocator;
	PageRepairRemoval *removal = hash_search(map->removals, &rlocator, HASH_FIND, NULL);

	if (removal != NULL && removal->from <= block->blkno)
		return true;
	rlocator.relNumber = InvalidRelFileNumber;
	return hash_search(map->removals, &rlocator, HASH_FIND, NULL) != NULL;
}

/*
 * Does replay of the WAL that has been read ask for this block?  It does not
 * for one that only hints have changed.
 */
bool
page_repair_replayed(PageRepairMap *map, const PageRepairBlock *block)
{
	PageRepairChunk *chunk = map_chunk(map, &block->rlocator, block->forknum, block->blkno);

	return (chunk->replayed[(block->blkno % PAGE_REPAIR_CHUNK_BLOCKS) / 64] &
			(UINT64CONST(1) << (block->blkno % 64))) != 0;
}

/*
 * Note what a record truncates or drops.
 */
static void
scan_removals(PageRepairMap *map, XLogReaderState *reader)
{
	uint8		info = XLogRecGetInfo(reader) & ~XLR_INFO_MASK;

	switch (XLogRecGetRmid(reader))
	{
		case RM_SMGR_ID:
			if (info == XLOG_SMGR_TRUNCATE)
			{
				xl_smgr_truncate *truncate = (xl_smgr_truncate *) XLogRecGetData(reader);

				/*
				 * pg_truncate_visibility_map() leaves the relation itself
				 * alone
				 */
				if ((truncate->flags & SMGR_TRUNCATE_HEAP) != 0)
					note_removal(map, truncate->rlocator, truncate->blkno);
			}
			break;
		case RM_XACT_ID:
			info &= XLOG_XACT_OPMASK;
			if (info == XLOG_XACT_COMMIT || info == XLOG_XACT_COMMIT_PREPARED)
			{
				xl_xact_parsed_commit parsed;

				ParseCommitRecord(XLogRecGetInfo(reader), (xl_xact_commit *) XLogRecGetData(reader), &parsed);
				for (int i = 0; i < parsed.nrels; i++)
					note_removal(map, parsed.xlocators[i], 0);
			}
			else if (info == XLOG_XACT_ABORT || info == XLOG_XACT_ABORT_PREPARED)
			{
				xl_xact_parsed_abort parsed;

				ParseAbortRecord(XLogRecGetInfo(reader), (xl_xact_abort *) XLogRecGetData(reader), &parsed);
				for (int i = 0; i < parsed.nrels; i++)
					note_removal(map, parsed.xlocators[i], 0);
			}
			break;
		case RM_DBASE_ID:
			if (info == XLOG_DBASE_DROP)
			{
				xl_dbase_drop_rec *drop = (xl_dbase_drop_rec *) XLogRecGetData(reader);

				for (int i = 0; i < drop->ntablespaces; i++)
				{
					RelFileLocator rlocator = {drop->tablespace_ids[i], drop->db_id, InvalidRelFileNumber};

					note_removal(map, rlocator, 0);
				}
			}
			break;
		default:
			break;
	}
}

/*
 * Find or make the chunk of a block.  A new one is to be looked at, if only for
 * the relation's maps.
 */
static PageRepairChunk *
map_chunk(PageRepairMap *map, const RelFileLocator *rlocator, ForkNumber forknum,
		  BlockNumber blkno)
{
	PageRepairChunkKey key;
	PageRepairChunk **chunk;
	bool		found;

	StaticAssertStmt(sizeof(PageRepairChunkKey) == sizeof(RelFileLocator) + 2 * sizeof(uint32),
					 "the key must not have padding");
	key.rlocator = *rlocator;
	key.forknum = forknum;
	key.number = blkno / PAGE_REPAIR_CHUNK_BLOCKS;
	chunk = &map->recent[(key.rlocator.relNumber * 31 + key.forknum * 7 + key.number) % PAGE_REPAIR_RECENT_CHUNKS];
	if (*chunk == NULL || memcmp(&(*chunk)->key, &key, sizeof(key)) != 0)
	{
		*chunk = hash_search(map->chunks, &key, HASH_ENTER, &found);
		if (!found)
		{
			memset((*chunk)->seen, 0, sizeof((*chunk)->seen));
			memset((*chunk)->check, 0, sizeof((*chunk)->check));
			memset((*chunk)->replayed, 0, sizeof((*chunk)->replayed));
			(*chunk)->swept = false;
			(*chunk)->fresh = true;
			map->fresh = lappend(map->fresh, *chunk);
		}
	}
	return *chunk;
}

/*
 * Enter what a record names.
 */
static void
scan_record(PageRepairMap *map, XLogReaderState *reader)
{
	bool		hint = (XLogRecGetRmid(reader) == RM_XLOG_ID &&
						(XLogRecGetInfo(reader) & ~XLR_INFO_MASK) == XLOG_FPI_FOR_HINT);

	for (int id = 0; id <= XLogRecMaxBlockId(reader); id++)
	{
		DecodedBkpBlock *ref;
		PageRepairChunk *chunk;
		int			word;
		uint64		bit;

		if (!XLogRecHasBlockRef(reader, id))
			continue;
		ref = XLogRecGetBlock(reader, id);
		chunk = map_chunk(map, &ref->rlocator, ref->forknum, ref->blkno);
		word = (ref->blkno % PAGE_REPAIR_CHUNK_BLOCKS) / 64;
		bit = UINT64CONST(1) << (ref->blkno % 64);
		if (!hint || ref->apply_image)
			chunk->replayed[word] |= bit;
		if (chunk->seen[word] & bit)
			continue;
		chunk->seen[word] |= bit;
		map->referenced++;

		/* Replay overwrites these without having read them */
		if (ref->apply_image || (ref->flags & BKPBLOCK_WILL_INIT) != 0)
			continue;
		chunk->check[word] |= bit;
		map->imageless = true;
		if (!chunk->fresh)
		{
			chunk->fresh = true;
			map->fresh = lappend(map->fresh, chunk);
		}
	}

	/*
	 * Its replay changes visibility map and free space map without naming
	 * blocks
	 */
	if (XLogRecGetRmid(reader) == RM_SMGR_ID &&
		(XLogRecGetInfo(reader) & ~XLR_INFO_MASK) == XLOG_SMGR_TRUNCATE)
	{
		xl_smgr_truncate *truncate = (xl_smgr_truncate *) XLogRecGetData(reader);

		map_chunk(map, &truncate->rlocator, VISIBILITYMAP_FORKNUM, 0);
	}
}

/*
 * Are records from this one on without full-page images?
 */
bool
page_repair_is_end_of_images(XLogReaderState *record)
{
	bool		images;

	if (XLogRecGetRmid(record) != RM_XLOG_ID ||
		(XLogRecGetInfo(record) & ~XLR_INFO_MASK) != XLOG_FPW_CHANGE)
		return false;
	memcpy(&images, XLogRecGetData(record), sizeof(bool));
	return !images;
}

/*
 * Enter a record that is in somebody else's hands.
 */
void
page_repair_map_record(PageRepairMap *map, XLogReaderState *record)
{
	scan_record(map, record);
	scan_removals(map, record);
}

/*
 * Enter only the relations of a record.  A standby dirties free space maps
 * without raising its minimum recovery point, so those that were written may
 * belong to any record.
 */
static void
scan_relations(PageRepairMap *map, XLogReaderState *reader)
{
	for (int id = 0; id <= XLogRecMaxBlockId(reader); id++)
	{
		if (XLogRecHasBlockRef(reader, id))
			map_chunk(map, &XLogRecGetBlock(reader, id)->rlocator, FSM_FORKNUM, 0);
	}
}

/*
 * Returns true when this is called for the first time for the relation.
 */
bool
page_repair_sweep_first(PageRepairMap *map, const RelFileLocator *rlocator)
{
	PageRepairChunk *chunk = map_chunk(map, rlocator, FSM_FORKNUM, 0);
	bool		first = !chunk->swept;

	chunk->swept = true;
	return first;
}

/*
 * A record that fills its page ends where the page does, not where the next
 * record starts.
 */
XLogRecPtr
page_repair_record_end(XLogRecPtr position)
{
	uint32		header = XLogSegmentOffset(position, wal_segment_size) < XLOG_BLCKSZ ?
		SizeOfXLogLongPHD : SizeOfXLogShortPHD;

	return position % XLOG_BLCKSZ == header ? position - header : position;
}

static XLogReaderState *
scan_begin(WalScan *scan, List *history, XLogRecPtr start)
{
	XLogReaderState *reader;

	memset(scan, 0, sizeof(*scan));
	scan->history = history;
	scan->buffer = palloc(SCAN_READ_SIZE);
	reader = XLogReaderAllocate(wal_segment_size, NULL,
								XL_ROUTINE(.page_read = scan_page_read,
										   .segment_open = NULL,
										   .segment_close = scan_close),
								scan);
	if (reader == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed while allocating a WAL reading processor.")));
	reader->system_identifier = GetSystemIdentifier();
	XLogBeginRead(reader, start);
	return reader;
}

static void
scan_end(WalScan *scan, XLogReaderState *reader)
{
	scan_close(reader);
	XLogReaderFree(reader);
	pfree(scan->buffer);
}

/*
 * More WAL has been brought here: find its new end.  From the last record on,
 * because only a record that follows another is checked for following it.
 */
void
page_repair_read_on(PageRepairWalEnd *wal, List *history)
{
	WalScan		scan;
	XLogReaderState *reader = scan_begin(&scan, history, wal->last);
	char	   *error;

	while (XLogReadRecord(reader, &error) != NULL)
	{
		wal->last = reader->ReadRecPtr;
		wal->end = reader->EndRecPtr;
		wal->timeline = scan.tli;
	}
	scan_end(&scan, reader);
}

/*
 * Read the local WAL from the record at "start" to its end.  Of records that
 * start at or after "limit", if that is valid, only the relations are entered.
 *
 * Returns the end of the last record that was entered in full, "start" if none
 * was; *wal says where the WAL itself ends.
 */
XLogRecPtr
page_repair_scan(PageRepairMap *map, XLogRecPtr start, XLogRecPtr limit, List *history,
				 PageRepairWalEnd *wal)
{
	WalScan		scan;
	XLogReaderState *reader = scan_begin(&scan, history, start);
	XLogRecPtr	end = start;
	char	   *error;

	wal->last = start;
	wal->end = start;
	wal->timeline = 0;
	while (XLogReadRecord(reader, &error) != NULL)
	{
		wal->last = reader->ReadRecPtr;
		wal->end = reader->EndRecPtr;
		wal->timeline = scan.tli;
		ereport_startup_progress("page repair reads WAL ahead, elapsed time: %ld.%02d s, current LSN: %X/%X",
								 LSN_FORMAT_ARGS(reader->ReadRecPtr));
		if (!XLogRecPtrIsInvalid(limit) && reader->ReadRecPtr >= limit)
		{
			scan_relations(map, reader);
			continue;
		}
		page_repair_map_record(map, reader);
		end = reader->EndRecPtr;
		map->timeline = reader->latestPageTLI;
	}
	scan_end(&scan, reader);
	return end;
}
