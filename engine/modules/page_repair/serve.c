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
#include <unistd.h>

#include "access/htup_details.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_type.h"
#include "common/relpath.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "page_repair.h"
#include "replication/walreceiver.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/fd.h"
#include "utils/array.h"
#include "utils/pg_lsn.h"
#include "varatt.h"

PG_FUNCTION_INFO_V1(polar_page_repair_read);

/* An answer has to fit into memory on both sides, and soon be there */
#define SERVE_MAX_BLOCKS 1024

/* How often a page that does not verify is read again: somebody may be writing it */
#define SERVE_TRIES 200

typedef enum ServeResult
{
	SERVE_PAGE,
	SERVE_MISSING,				/* no such block */
	SERVE_UNREADABLE,
} ServeResult;

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

/*
 * Reads the block from its file, or with no page to fill announces that.  Not
 * through smgr: that keeps file sizes and
 * descriptors in mind, which only a lock on the relation would keep true.
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

		if (file->fd >= 0)
			CloseTransientFile(file->fd);
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

static ServeResult
serve_block(ServeFile *file, const PageRepairBlock *block, char *page)
{
	BufferTag	tag;
	ServeResult result = SERVE_UNREADABLE;

	InitBufferTag(&tag, &block->rlocator, block->forknum, block->blkno);
	for (int i = 0; i < SERVE_TRIES; i++)
	{
		Buffer		buffer = serve_lookup(&tag);

		CHECK_FOR_INTERRUPTS();
		if (BufferIsValid(buffer) &&
			ReadRecentBuffer(block->rlocator, block->forknum, block->blkno, buffer))
		{
			LockBuffer(buffer, BUFFER_LOCK_SHARE);
			memcpy(page, BufferGetPage(buffer), BLCKSZ);
			UnlockReleaseBuffer(buffer);
			result = SERVE_PAGE;
			break;
		}

		/*
		 * What the file says is true only while the block is in no buffer; if
		 * one came or is being filled, look there again.
		 */
		result = serve_from_file(file, block, page);
		if (BufferIsValid(serve_lookup(&tag)))
		{
			/* A file that was removed meanwhile must not be read again */
			if (file->fd >= 0)
				CloseTransientFile(file->fd);
			file->fd = -1;
			result = SERVE_UNREADABLE;
		}
		else if (result == SERVE_MISSING)
			break;
		else if (result == SERVE_PAGE)
		{
			if (PageIsVerified((PageData *) page, block->blkno, 0, NULL))
				break;
			result = SERVE_UNREADABLE;
		}
		if (i > 0)
			pg_usleep(1000);
	}

	/*
	 * From a buffer it has an old checksum; with it the reader can tell what
	 * happened on the way
	 */
	if (result == SERVE_PAGE)
		PageSetChecksumInplace((Page) page, block->blkno);
	return result;
}

/*
 * The end of all WAL that has been generated.  The insert position may lie
 * behind the header of a page that does not exist yet.
 */
static XLogRecPtr
generated_lsn(void)
{
	XLogRecPtr	lsn = GetXLogInsertRecPtr();
	uint32		header = XLogSegmentOffset(lsn, wal_segment_size) < XLOG_BLCKSZ ?
		SizeOfXLogLongPHD : SizeOfXLogShortPHD;

	return lsn % XLOG_BLCKSZ == header ? lsn - header : lsn;
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

/*
 * polar_page_repair_read(tablespaces, databases, relations, forks, blocks)
 *		One row: who we are, where we are, and the pages.
 */
Datum
polar_page_repair_read(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	Datum	   *arguments[5];
	int			nblocks = 0;
	static const Oid types[5] = {OIDOID, OIDOID, OIDOID, INT4OID, INT8OID};
	bool		standby = RecoveryInProgress();
	TimeLineID	start_tli = 0;
	TimeLineID	end_tli = 0;
	XLogRecPtr	start_lsn;
	XLogRecPtr	end_lsn;
	XLogRecPtr	flush_lsn;
	XLogRecPtr	newest = InvalidXLogRecPtr;
	bool		any_missing = false;
	ServeFile	file = {.fd = -1};
	Datum	   *pages;
	bool	   *missing;
	Datum		values[9];
	bool		nulls[9] = {0};
	int			dims[1];
	int			bounds[1] = {1};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	for (int i = 0; i < 5; i++)
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
	for (int i = 0; i < nblocks; i++)
	{
		int32		forknum = DatumGetInt32(arguments[3][i]);
		int64		blkno = DatumGetInt64(arguments[4][i]);

		if (forknum < 0 || forknum > MAX_FORKNUM || blkno < 0 || blkno > MaxBlockNumber)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid fork or block number")));
	}

	/* Many of them may lie on a slow disk; let it fetch them together */
	for (int i = 0; i < nblocks; i++)
	{
		PageRepairBlock block = requested_block(arguments, i);
		BufferTag	tag;

		InitBufferTag(&tag, &block.rlocator, block.forknum, block.blkno);
		if (!BufferIsValid(serve_lookup(&tag)))
			(void) serve_from_file(&file, &block, NULL);
	}
	/* What counts is opened after our position is known */
	if (file.fd >= 0)
		CloseTransientFile(file.fd);
	file.fd = -1;

	/* Before any page */
	start_lsn = standby ? GetXLogReplayRecPtr(&start_tli) : GetFlushRecPtr(&start_tli);

	pages = palloc(Max(nblocks, 1) * sizeof(Datum));
	missing = palloc0(Max(nblocks, 1) * sizeof(bool));
	for (int i = 0; i < nblocks; i++)
	{
		PageRepairBlock block = requested_block(arguments, i);
		PGAlignedBlock page;
		bytea	   *image;
		int			length = 0;

		switch (serve_block(&file, &block, page.data))
		{
			case SERVE_MISSING:
				missing[i] = true;
				any_missing = true;
				continue;
			case SERVE_PAGE:
				length = BLCKSZ;
				newest = Max(newest, PageGetLSN((Page) page.data));
				break;
			case SERVE_UNREADABLE:
				break;
		}
		image = (bytea *) palloc(VARHDRSZ + length);
		SET_VARSIZE(image, VARHDRSZ + length);
		memcpy(VARDATA(image), page.data, length);
		pages[i] = PointerGetDatum(image);
	}
	if (file.fd >= 0)
		CloseTransientFile(file.fd);

	/*
	 * After the last one.  A standby that takes them must find their WAL with
	 * us for ever.
	 */
	if (standby)
	{
		/* The record that is being replayed may have removed a file already */
		end_lsn = GetCurrentReplayRecPtr(&end_tli);
		if (newest > end_lsn)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("a page has position %X/%X, after the replay position %X/%X",
							LSN_FORMAT_ARGS(newest), LSN_FORMAT_ARGS(end_lsn))));
	}
	else
	{
		/* So may a transaction that aborts, before its record is flushed */
		if (any_missing)
			newest = Max(newest, generated_lsn());
		if (newest > GetFlushRecPtr(NULL))
			XLogFlush(newest);
		end_lsn = GetFlushRecPtr(&end_tli);
	}
	flush_lsn = standby ? Max(end_lsn, GetWalRcvFlushRecPtr(NULL, NULL)) : end_lsn;
	if (start_tli != end_tli || standby != RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the timeline changed while pages were read")));

	values[0] = Int64GetDatum((int64) GetSystemIdentifier());
	values[1] = Int32GetDatum((int32) end_tli);
	values[2] = BoolGetDatum(RecoveryInProgress());
	values[3] = BoolGetDatum(standby && WalRcvStreaming());
	values[4] = BoolGetDatum(DataChecksumsEnabled());
	values[5] = LSNGetDatum(start_lsn);
	values[6] = LSNGetDatum(end_lsn);
	values[7] = LSNGetDatum(flush_lsn);
	dims[0] = nblocks;
	values[8] = PointerGetDatum(nblocks == 0 ? construct_empty_array(BYTEAOID) :
								construct_md_array(pages, missing, 1, dims, bounds,
												   BYTEAOID, -1, false, TYPALIGN_INT));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
