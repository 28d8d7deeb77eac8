/*-------------------------------------------------------------------------
 *
 * serve.c
 *	  The source's side: give pages away without disturbing anything.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/serve.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/htup_details.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_database_d.h"
#include "catalog/pg_tablespace_d.h"
#include "catalog/pg_type.h"
#include "common/relpath.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "page_repair.h"
#include "pgstat.h"
#include "replication/walreceiver.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/fd.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/array.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
#include "varatt.h"

PG_FUNCTION_INFO_V1(polar_page_repair_read);

/* An answer has to fit into memory on both sides, and soon be there */
#define SERVE_MAX_BLOCKS 1024

/* Tablespaces, databases, relations, forks, blocks */
#define SERVE_ARGUMENTS 5

/* How often a page that does not verify is read again: somebody may be writing it */
#define SERVE_TRIES 200

/*
 * What all the reading again may take in one call, in milliseconds.  Who asks
 * waits longer than this, or the good pages would be lost with the others.
 */
#define SERVE_RETRY_MS 2000

typedef enum ServeResult
{
	SERVE_PAGE,
	SERVE_MISSING,				/* no such block */
	SERVE_UNREADABLE,
} ServeResult;

/* What has been found out about a block of the request */
typedef struct ServeBlock
{
	ServeResult result;
	bool		settled;		/* this is the answer */
	bool		buffered;		/* it comes from the pool */
	char	   *page;			/* NULL until one was read */
} ServeBlock;

/* The file that was read last stays open until the end of the call */
typedef struct ServeFile
{
	int			fd;
	RelFileLocator rlocator;
	ForkNumber	forknum;
	BlockNumber segno;
} ServeFile;

/*
 * Returns the buffer that holds the block, InvalidBuffer if none does.  The
 * answer may be outdated at once; ReadRecentBuffer() looks again.
 */
static Buffer
serve_lookup(BufferTag *tag)
{
	uint32		hash = BufTableHashCode(tag);
	LWLock	   *lock = BufMappingPartitionLock(hash);
	int			id;

	LWLockAcquire(lock, LW_SHARED);
	id = BufTableLookup(tag, hash);
	LWLockRelease(lock);
	return id + 1;
}

static void
serve_close(ServeFile *file)
{
	if (file->fd >= 0)
		CloseTransientFile(file->fd);
	file->fd = -1;
}

/*
 * Reads the block from its file, or with no page to fill announces that.  Not
 * through smgr: that keeps file sizes and descriptors in mind, which only a
 * lock on the relation would keep true.
 */
static ServeResult
serve_from_file(ServeFile *file, const PageRepairBlock *block, char *page)
{
	BlockNumber segno = block->blkno / ((BlockNumber) RELSEG_SIZE);
	off_t		offset = (off_t) BLCKSZ * (block->blkno % ((BlockNumber) RELSEG_SIZE));
	ssize_t		got;
	int			error;

	if (file->fd < 0 || file->segno != segno || file->forknum != block->forknum ||
		!RelFileLocatorEquals(file->rlocator, block->rlocator))
	{
		RelPathStr	path = relpathperm(block->rlocator, block->forknum);
		char		name[MAXPGPATH];

		serve_close(file);
		if (segno == 0)
			strlcpy(name, path.str, sizeof(name));
		else
			snprintf(name, sizeof(name), "%s.%u", path.str, segno);
		file->fd = OpenTransientFile(name, O_RDONLY | PG_BINARY);
		if (file->fd < 0)
		{
			if (errno == ENOENT)
				return SERVE_MISSING;
			if (page == NULL)
				return SERVE_UNREADABLE;
			ereport(WARNING,
					(errcode_for_file_access(),
					 errmsg("could not open file \"%s\": %m", name)));
			return SERVE_UNREADABLE;
		}
		file->rlocator = block->rlocator;
		file->forknum = block->forknum;
		file->segno = segno;
	}

	/* Only a hint to the kernel that it will be read soon */
	if (page == NULL)
	{
#if defined(USE_POSIX_FADVISE) && defined(POSIX_FADV_WILLNEED)
		error = posix_fadvise(file->fd, offset, BLCKSZ, POSIX_FADV_WILLNEED);
#else
		error = 0;
#endif
		return error == 0 ? SERVE_PAGE : SERVE_UNREADABLE;
	}

	got = pg_pread(file->fd, page, BLCKSZ, offset);
	if (got == BLCKSZ)
		return SERVE_PAGE;
	/* Beyond the end; an extension under way may show a part of a page */
	return got == 0 ? SERVE_MISSING : SERVE_UNREADABLE;
}

/*
 * Look for the block once.  In "buffered" comes whether the page is from the
 * pool; what is from the file is true only if nobody is removing it.
 */
static ServeResult
serve_block(ServeFile *file, const PageRepairBlock *block, char *page, bool *buffered)
{
	BufferTag	tag;
	Buffer		buffer;
	ServeResult result;
	struct stat st;

	InitBufferTag(&tag, &block->rlocator, block->forknum, block->blkno);
	*buffered = false;
	buffer = serve_lookup(&tag);
	if (BufferIsValid(buffer))
	{
		if (!ReadRecentBuffer(block->rlocator, block->forknum, block->blkno, buffer))
			return SERVE_UNREADABLE;
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		memcpy(page, BufferGetPage(buffer), BLCKSZ);
		UnlockReleaseBuffer(buffer);
		*buffered = true;
		return SERVE_PAGE;
	}

	/*
	 * What the file says is true only while the block is in no buffer, and
	 * while the file has its name.
	 */
	result = serve_from_file(file, block, page);
	if (BufferIsValid(serve_lookup(&tag)) ||
		(file->fd >= 0 && (fstat(file->fd, &st) != 0 || st.st_nlink == 0)))
	{
		serve_close(file);
		return SERVE_UNREADABLE;
	}
	if (result == SERVE_PAGE && !PageIsVerified((PageData *) page, block->blkno, 0, NULL))
		return SERVE_UNREADABLE;
	return result;
}

/*
 * Does replay wait for queries of this standby?  Then the record at hand has
 * not removed anything yet: records do that after they have resolved their
 * conflicts.  We must not wait for it, because it may wait for us.
 */
static bool
replay_waits_for_queries(void)
{
	for (int i = 0; i < NUM_AUXILIARY_PROCS; i++)
	{
		uint32		event = *(volatile uint32 *) &GetPGProcByNumber(MaxBackends + i)->wait_event_info;

		/* Among the auxiliary processes only the one that recovers has these */
		if ((event & 0xFF000000) == PG_WAIT_LOCK ||
			(event & 0xFF000000) == PG_WAIT_BUFFERPIN ||
			event == WAIT_EVENT_RECOVERY_CONFLICT_SNAPSHOT ||
			event == WAIT_EVENT_RECOVERY_CONFLICT_TABLESPACE)
			return true;
	}
	return false;
}

/*
 * Wait until the record that is being replayed has been, or at least has not
 * begun to remove anything.  Returns false at the deadline.
 */
static bool
wait_for_record(TimestampTz deadline)
{
	XLogRecPtr	current = GetCurrentReplayRecPtr(NULL);

	while (GetXLogReplayRecPtr(NULL) < current)
	{
		CHECK_FOR_INTERRUPTS();
		if (replay_waits_for_queries() && GetXLogReplayRecPtr(NULL) < current &&
			GetCurrentReplayRecPtr(NULL) == current)
			return true;
		if (GetCurrentTimestamp() >= deadline)
			return false;
		pg_usleep(1000);
	}
	return true;
}

/*
 * Read all blocks of a request.
 *
 * Replay drops the buffers of a relation, written or not, before it removes or
 * cuts the file.  In between the file looks like the truth and may be older
 * than our position.  So on a standby a page from a file counts when no record
 * was being replayed meanwhile, or when it is still the same after the record
 * that was: the file is gone or shorter then, or has other pages.
 */
static void
serve_all(const PageRepairBlock *blocks, ServeBlock *answers, int nblocks, bool standby)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), SERVE_RETRY_MS);
	ServeFile	file = {.fd = -1};
	PGAlignedBlock page;
	int			left = nblocks;

	for (int i = 0; i < SERVE_TRIES && left > 0; i++)
	{
		XLogRecPtr	replayed = standby ? GetXLogReplayRecPtr(NULL) : InvalidXLogRecPtr;
		bool	   *same = palloc0(nblocks * sizeof(bool));
		bool		quiet;

		for (int b = 0; b < nblocks; b++)
		{
			ServeBlock *answer = &answers[b];

			CHECK_FOR_INTERRUPTS();
			if (answer->settled)
				continue;
			answer->result = serve_block(&file, &blocks[b], page.data, &answer->buffered);
			if (answer->result == SERVE_PAGE)
			{
				if (answer->page == NULL)
					answer->page = palloc(BLCKSZ);
				else
					same[b] = (memcmp(answer->page, page.data, BLCKSZ) == 0);
				memcpy(answer->page, page.data, BLCKSZ);
			}
			else if (answer->page != NULL)
			{
				pfree(answer->page);
				answer->page = NULL;
			}
			if (answer->result == SERVE_MISSING ||
				(answer->result == SERVE_PAGE && (answer->buffered || !standby)))
			{
				answer->settled = true;
				left--;
			}
		}

		quiet = (standby && GetCurrentReplayRecPtr(NULL) == replayed);
		for (int b = 0; b < nblocks; b++)
		{
			ServeBlock *answer = &answers[b];

			if (!answer->settled && answer->result == SERVE_PAGE && (quiet || same[b]))
			{
				answer->settled = true;
				left--;
			}
		}
		pfree(same);
		if (left == 0 || GetCurrentTimestamp() >= deadline)
			break;
		if (standby && !wait_for_record(deadline))
			break;
		/* What was opened before may have been removed and made again */
		serve_close(&file);
		if (i > 0)
			pg_usleep(1000);
	}
	serve_close(&file);
}

/*
 * The end of all WAL that has been generated.  The insert position may lie
 * behind the header of a page that does not exist yet.
 */
static XLogRecPtr
generated_lsn(void)
{
	return page_repair_record_end(GetXLogInsertRecPtr());
}

/*
 * Is the database being dropped, or moved to another tablespace?  Then its
 * files go before the record that says so is inserted, and no position of ours
 * covers what is missing.
 */
static bool
database_is_going(Oid database)
{
	if (!OidIsValid(database))
		return false;
	if (!ConditionalLockSharedObject(DatabaseRelationId, database, 0, AccessShareLock))
		return true;
	UnlockSharedObject(DatabaseRelationId, database, 0, AccessShareLock);
	return false;
}

static PageRepairBlock
requested_block(Datum *const *arguments, int i)
{
	PageRepairBlock block;

	block.rlocator.spcOid = DatumGetObjectId(arguments[0][i]);
	block.rlocator.dbOid = DatumGetObjectId(arguments[1][i]);
	block.rlocator.relNumber = DatumGetObjectId(arguments[2][i]);
	block.forknum = (ForkNumber) DatumGetInt32(arguments[3][i]);
	block.blkno = (BlockNumber) DatumGetInt64(arguments[4][i]);
	return block;
}

/* What stands before the pages of an answer */
typedef struct ServeHeader
{
	TimeLineID	timeline;
	bool		standby;
	XLogRecPtr	start_lsn;
	XLogRecPtr	end_lsn;
	XLogRecPtr	flush_lsn;
} ServeHeader;

static Datum
make_answer(TupleDesc tupdesc, const ServeHeader *header, Datum *pages, bool *missing, int npages)
{
	Datum		values[9];
	bool		nulls[9] = {0};
	int			dims[1] = {npages};
	int			bounds[1] = {1};

	values[0] = Int64GetDatum((int64) GetSystemIdentifier());
	values[1] = Int32GetDatum((int32) header->timeline);
	values[2] = BoolGetDatum(RecoveryInProgress());
	values[3] = BoolGetDatum(header->standby && WalRcvStreaming());
	values[4] = BoolGetDatum(DataChecksumsEnabled());
	values[5] = LSNGetDatum(header->start_lsn);
	values[6] = LSNGetDatum(header->end_lsn);
	values[7] = LSNGetDatum(header->flush_lsn);
	values[8] = PointerGetDatum(npages == 0 ? construct_empty_array(BYTEAOID) :
								construct_md_array(pages, missing, 1, dims, bounds,
												   BYTEAOID, -1, false, TYPALIGN_INT));
	return HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls));
}

/*
 * Is the request for WAL?  Then all of it is.
 */
static bool
is_for_wal(Datum *const *arguments, int n)
{
	int			pages = 0;

	for (int i = 0; i < n; i++)
	{
		if (DatumGetInt32(arguments[3][i]) == PAGE_REPAIR_WAL_FORK)
			pages++;
	}
	if (pages > 0 && pages < n)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("pages of WAL and blocks of relations cannot be read at once")));
	return pages > 0;
}

/*
 * Read a page of WAL from its file, which stays open in *fd for the next.  A file
 * that is not there, or has been recycled, is missing.
 */
static ServeResult
serve_wal_page(int *fd, TimeLineID timeline, XLogRecPtr at, char *page)
{
	static char path[MAXPGPATH];
	char		wanted[MAXPGPATH];
	XLogSegNo	segno;

	XLByteToSeg(at, segno, wal_segment_size);
	XLogFilePath(wanted, timeline, segno, wal_segment_size);
	if (*fd < 0 || strcmp(wanted, path) != 0)
	{
		if (*fd >= 0)
			CloseTransientFile(*fd);
		strlcpy(path, wanted, sizeof(path));
		*fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
		if (*fd < 0 && errno == ENOENT)
			return SERVE_MISSING;
		if (*fd < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not open file \"%s\": %m", path)));
	}
	if (pg_pread(*fd, page, XLOG_BLCKSZ, XLogSegmentOffset(at, wal_segment_size)) != XLOG_BLCKSZ)
		return SERVE_UNREADABLE;

	/* The rest of a segment after a switch is of zeroes, headers included */
	return ((XLogPageHeader) page)->xlp_pageaddr == at || pg_memory_is_all_zeros(page, XLOG_BLCKSZ) ?
		SERVE_PAGE : SERVE_MISSING;
}

/*
 * Answer a request for WAL: the timeline comes as the tablespace, the number of
 * a page of XLOG_BLCKSZ as the block.  What is not flushed here cannot be read.
 */
static Datum
serve_wal(TupleDesc tupdesc, Datum *const *arguments, int n)
{
	ServeHeader header = {.standby = RecoveryInProgress()};
	Datum	   *pages = palloc(n * sizeof(Datum));
	bool	   *missing = palloc0(n * sizeof(bool));
	int			fd = -1;

	/* To the end of a record, and so that who waits for it gets it */
	if (!header.standby)
	{
		XLogFlush(generated_lsn());
		header.start_lsn = header.end_lsn = header.flush_lsn = GetFlushRecPtr(&header.timeline);
	}
	else
	{
		header.start_lsn = header.end_lsn = GetXLogReplayRecPtr(&header.timeline);
		header.flush_lsn = Max(header.end_lsn, GetWalRcvFlushRecPtr(NULL, NULL));
	}
	for (int i = 0; i < n; i++)
	{
		int64		number = DatumGetInt64(arguments[4][i]);
		XLogRecPtr	at = (XLogRecPtr) number * XLOG_BLCKSZ;
		ServeResult result = SERVE_UNREADABLE;
		int			length;
		bytea	   *image;

		CHECK_FOR_INTERRUPTS();
		if (number < 0 || number > PG_INT64_MAX / XLOG_BLCKSZ)
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("invalid page of WAL")));
		image = palloc(VARHDRSZ + XLOG_BLCKSZ);
		if (at < header.flush_lsn)
			result = serve_wal_page(&fd, DatumGetObjectId(arguments[0][i]), at, VARDATA(image));
		length = (result == SERVE_PAGE) ? XLOG_BLCKSZ : 0;
		missing[i] = (result == SERVE_MISSING);
		SET_VARSIZE(image, VARHDRSZ + length);
		pages[i] = PointerGetDatum(image);
	}
	if (fd >= 0)
		CloseTransientFile(fd);
	return make_answer(tupdesc, &header, pages, missing, n);
}

/*
 * The five arrays of the arguments; returns how long each of them is.
 */
static int
read_arguments(FunctionCallInfo fcinfo, Datum **arguments)
{
	static const Oid types[SERVE_ARGUMENTS] = {OIDOID, OIDOID, OIDOID, INT4OID, INT8OID};
	int			nblocks = 0;

	for (int i = 0; i < SERVE_ARGUMENTS; i++)
	{
		bool	   *nullp;
		int			n;
		ArrayType  *array = PG_GETARG_ARRAYTYPE_P(i);

		if (types[i] == INT8OID)
			deconstruct_array(array, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
							  &arguments[i], &nullp, &n);
		else
			deconstruct_array_builtin(array, types[i], &arguments[i], &nullp, &n);
		if (array_contains_nulls(array) || (i > 0 && n != nblocks))
			ereport(ERROR,
					(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
					 errmsg("arrays must be of equal length and without nulls")));
		nblocks = n;
	}
	if (nblocks > SERVE_MAX_BLOCKS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("at most %d blocks can be read at once", SERVE_MAX_BLOCKS)));
	return nblocks;
}

/*
 * The blocks that are asked for, each of which can exist.
 */
static PageRepairBlock *
requested_blocks(Datum *const *arguments, int nblocks)
{
	PageRepairBlock *blocks = palloc(Max(nblocks, 1) * sizeof(PageRepairBlock));

	for (int i = 0; i < nblocks; i++)
	{
		int32		forknum = DatumGetInt32(arguments[3][i]);
		int64		blkno = DatumGetInt64(arguments[4][i]);

		if (forknum < 0 || forknum > MAX_FORKNUM || blkno < 0 || blkno > MaxBlockNumber)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid fork or block number")));
		blocks[i] = requested_block(arguments, i);
		if (blocks[i].rlocator.spcOid == GLOBALTABLESPACE_OID && OidIsValid(blocks[i].rlocator.dbOid))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("a relation in tablespace %u belongs to no database",
							GLOBALTABLESPACE_OID)));
	}
	return blocks;
}

/*
 * Many of the blocks may lie on a slow disk; let it fetch them together.
 */
static void
announce_blocks(const PageRepairBlock *blocks, int nblocks)
{
	ServeFile	file = {.fd = -1};

	for (int i = 0; i < nblocks; i++)
	{
		BufferTag	tag;

		InitBufferTag(&tag, &blocks[i].rlocator, blocks[i].forknum, blocks[i].blkno);
		if (!BufferIsValid(serve_lookup(&tag)))
			(void) serve_from_file(&file, &blocks[i], NULL);
	}
	/* What counts is opened after our position is known */
	serve_close(&file);
}

/*
 * A block that is missing because its database is going is none that this
 * server knows to be missing.
 */
static void
doubt_missing(const PageRepairBlock *blocks, ServeBlock *answers, int nblocks)
{
	bool		going = false;
	Oid			looked_at = InvalidOid;

	for (int i = 0; i < nblocks; i++)
	{
		if (answers[i].result != SERVE_MISSING)
			continue;
		/* Blocks of one database mostly stand together */
		if (looked_at != blocks[i].rlocator.dbOid)
			going = database_is_going(blocks[i].rlocator.dbOid);
		looked_at = blocks[i].rlocator.dbOid;
		if (going)
			answers[i].result = SERVE_UNREADABLE;
	}
}

/*
 * Has this server met pages of the database that fail verification since it
 * started?  Whoever set ignore_checksum_failure in a session has them in the
 * pool now, and nothing in the buffer tells.
 */
static bool
damage_was_met(Oid database)
{
	PgStat_StatDBEntry *stats = pgstat_fetch_stat_dbentry(database);

	return stats != NULL && stats->last_checksum_failure >= PgStartTime;
}

/*
 * Does the block verify in its file?  While somebody writes it, it may not.
 */
static bool
verifies_on_disk(ServeFile *file, const PageRepairBlock *block, TimestampTz deadline)
{
	PGAlignedBlock page;

	while (true)
	{
		CHECK_FOR_INTERRUPTS();
		if (serve_from_file(file, block, page.data) == SERVE_PAGE &&
			PageIsVerified((PageData *) page.data, block->blkno, 0, NULL))
			return true;
		if (GetCurrentTimestamp() >= deadline)
			return false;
		serve_close(file);
		pg_usleep(1000);
	}
}

/*
 * Takes back the pages from the pool that may have been read although they were
 * damaged: in a database where that can be, those that are damaged on disk.
 */
static void
doubt_buffered(const PageRepairBlock *blocks, ServeBlock *answers, int nblocks)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), SERVE_RETRY_MS);
	ServeFile	file = {.fd = -1};
	bool		doubtful = false;
	const PageRepairBlock *last = NULL;

	/* Newer than the pages, whatever this transaction has seen before */
	pgstat_clear_snapshot();
	for (int i = 0; i < nblocks; i++)
	{
		if (answers[i].result != SERVE_PAGE || !answers[i].settled || !answers[i].buffered)
			continue;
		/* Blocks of one database mostly stand together */
		if (last == NULL || last->rlocator.dbOid != blocks[i].rlocator.dbOid)
			doubtful = damage_was_met(blocks[i].rlocator.dbOid);
		last = &blocks[i];
		if (doubtful && !verifies_on_disk(&file, &blocks[i], deadline))
			answers[i].result = SERVE_UNREADABLE;
	}
	serve_close(&file);
}

/*
 * Takes back the pages with a position that this server has not reached, which
 * ends at "possible".  Such a position is garbage, and so may be the rest; it
 * must not become anybody's point of consistency.  Returns the newest position
 * of the others.
 */
static XLogRecPtr
check_positions(const PageRepairBlock *blocks, ServeBlock *answers, int nblocks, XLogRecPtr possible)
{
	XLogRecPtr	newest = InvalidXLogRecPtr;

	for (int i = 0; i < nblocks; i++)
	{
		ServeBlock *answer = &answers[i];
		XLogRecPtr	lsn;

		if (answer->result != SERVE_PAGE || !answer->settled)
			continue;
		lsn = PageGetLSN((Page) answer->page);
		if (lsn > possible)
		{
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("block %u of relation \"%s\" has position %X/%X, but this server is at %X/%X",
							blocks[i].blkno,
							relpathperm(blocks[i].rlocator, blocks[i].forknum).str,
							LSN_FORMAT_ARGS(lsn), LSN_FORMAT_ARGS(possible))));
			answer->result = SERVE_UNREADABLE;
		}
		else
			newest = Max(newest, lsn);
	}
	return newest;
}

/*
 * The pages that were found as they are sent; of a block that cannot be read
 * none of its bytes, and null for one that is missing.
 */
static Datum *
make_pages(const PageRepairBlock *blocks, const ServeBlock *answers, int nblocks, bool *missing)
{
	Datum	   *pages = palloc(Max(nblocks, 1) * sizeof(Datum));

	for (int i = 0; i < nblocks; i++)
	{
		const ServeBlock *answer = &answers[i];
		bytea	   *image;
		int			length = 0;

		missing[i] = (answer->result == SERVE_MISSING);
		if (missing[i])
			continue;
		if (answer->result == SERVE_PAGE && answer->settled)
			length = BLCKSZ;
		image = (bytea *) palloc(VARHDRSZ + length);
		SET_VARSIZE(image, VARHDRSZ + length);
		if (length > 0)
		{
			memcpy(VARDATA(image), answer->page, length);

			/*
			 * From a buffer it has an old checksum; with it the reader can
			 * tell what happened on the way
			 */
			PageSetChecksumInplace((Page) VARDATA(image), blocks[i].blkno);
		}
		pages[i] = PointerGetDatum(image);
	}
	return pages;
}

/*
 * Answer a request for blocks of relations.
 */
static Datum
serve_blocks(TupleDesc tupdesc, Datum *const *arguments, int nblocks)
{
	PageRepairBlock *blocks = requested_blocks(arguments, nblocks);
	ServeBlock *answers = palloc0(Max(nblocks, 1) * sizeof(ServeBlock));
	bool	   *missing = palloc0(Max(nblocks, 1) * sizeof(bool));
	ServeHeader header = {.standby = RecoveryInProgress()};
	TimeLineID	start_tli = 0;
	XLogRecPtr	possible;
	XLogRecPtr	newest;
	bool		any_missing = false;
	Datum	   *pages;

	announce_blocks(blocks, nblocks);

	/* Before any page */
	header.start_lsn = header.standby ? GetXLogReplayRecPtr(&start_tli) : GetFlushRecPtr(&start_tli);

	serve_all(blocks, answers, nblocks, header.standby);
	doubt_buffered(blocks, answers, nblocks);

	/*
	 * The record that is being replayed may have removed a file already; so
	 * may a transaction that aborts, before its record is flushed.
	 */
	possible = header.standby ? GetCurrentReplayRecPtr(&header.timeline) : GetXLogInsertRecPtr();
	if (!header.standby)
		doubt_missing(blocks, answers, nblocks);
	newest = check_positions(blocks, answers, nblocks, possible);
	pages = make_pages(blocks, answers, nblocks, missing);
	for (int i = 0; i < nblocks; i++)
		any_missing |= missing[i];

	/*
	 * After the last one.  A standby that takes them must find their WAL with
	 * us for ever.
	 */
	if (header.standby)
	{
		header.end_lsn = possible;
		header.flush_lsn = Max(header.end_lsn, GetWalRcvFlushRecPtr(NULL, NULL));
	}
	else
	{
		if (any_missing)
			newest = Max(newest, generated_lsn());
		if (newest > GetFlushRecPtr(NULL))
			XLogFlush(newest);
		header.end_lsn = header.flush_lsn = GetFlushRecPtr(&header.timeline);
	}
	if (start_tli != header.timeline || header.standby != RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the timeline changed while pages were read")));
	return make_answer(tupdesc, &header, pages, missing, nblocks);
}

/*
 * polar_page_repair_read(tablespaces, databases, relations, forks, blocks)
 *		One row: who we are, where we are, and the pages.
 */
Datum
polar_page_repair_read(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	Datum	   *arguments[SERVE_ARGUMENTS];
	int			nblocks;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	nblocks = read_arguments(fcinfo, arguments);

	/* Its pool may hold damaged pages, and would give them as whole */
	if (ignore_checksum_failure)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("no page is given away while \"%s\" is on", "ignore_checksum_failure")));

	PG_RETURN_DATUM(is_for_wal(arguments, nblocks) ?
					serve_wal(tupdesc, arguments, nblocks) :
					serve_blocks(tupdesc, arguments, nblocks));
}
