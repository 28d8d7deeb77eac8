/*-------------------------------------------------------------------------
 *
 * wal_pass.c
 *	  Reads the WAL from one position to another.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/wal_pass.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogutils.h"
#include "flashback_internal.h"
#include "utils/memutils.h"
#include "miscadmin.h"

/* Progress is shown each time that so much has been read */
#define REPORT_EVERY ((uint64) 4 * 1024 * 1024)

struct FlashbackWalPass
{
	MemoryContext context;
	XLogReaderState *reader;
	XLogRecPtr	start;
	XLogRecPtr	end;
	XLogRecPtr	reported;
	MemoryContextCallback callback;
};

/*
 * The open segment is no file that the resource owner knows.
 */
static void
close_segment(void *arg)
{
	FlashbackWalPass *pass = arg;

	if (pass->reader && pass->reader->seg.ws_file >= 0)
		close(pass->reader->seg.ws_file);
}

/*
 * Begins to read the records that start at or after start, and end at or
 * before end.
 */
FlashbackWalPass *
flashback_wal_begin(XLogRecPtr start, XLogRecPtr end)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "flashback WAL", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	FlashbackWalPass *pass = palloc0(sizeof(FlashbackWalPass));

	pass->context = context;
	pass->start = start;
	pass->end = end;
	pass->reported = start;
	pass->reader = XLogReaderAllocate(wal_segment_size, NULL,
									  XL_ROUTINE(.page_read = &read_local_xlog_page_no_wait,
												 .segment_open = &wal_segment_open,
												 .segment_close = &wal_segment_close),
									  palloc0(sizeof(ReadLocalXLogPageNoWaitPrivate)));
	if (pass->reader == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed while allocating a WAL reading processor.")));
	pass->callback.func = close_segment;
	pass->callback.arg = pass;
	MemoryContextRegisterResetCallback(context, &pass->callback);
	XLogBeginRead(pass->reader, start);
	MemoryContextSwitchTo(old_context);

	flashback_progress.wal_bytes_total = end - start;
	flashback_progress.wal_bytes_done = 0;
	return pass;
}

/*
 * Goes on at the first record that starts at or after a position, which need
 * not be the start of one; false if none does.
 */
bool
flashback_wal_seek(FlashbackWalPass *pass, XLogRecPtr position)
{
	MemoryContext old_context = MemoryContextSwitchTo(pass->context);
	XLogRecPtr	found = XLogFindNextRecord(pass->reader, position);

	MemoryContextSwitchTo(old_context);
	return !XLogRecPtrIsInvalid(found);
}

/*
 * The next record, or NULL if none is left.  That WAL ends too early is an
 * error: what is missing might have changed a page.
 */
XLogReaderState *
flashback_wal_next(FlashbackWalPass *pass)
{
	XLogReaderState *reader = pass->reader;
	MemoryContext old_context;
	XLogRecord *record;
	char	   *error = NULL;

	CHECK_FOR_INTERRUPTS();

	/* Between two records lies at most the header of a page */
	if (reader->EndRecPtr + SizeOfXLogLongPHD >= pass->end &&
		(reader->EndRecPtr >= pass->end || pass->end % XLOG_BLCKSZ <= SizeOfXLogLongPHD))
		return NULL;
	old_context = MemoryContextSwitchTo(pass->context);
	record = XLogReadRecord(reader, &error);
	MemoryContextSwitchTo(old_context);
	if (record == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("could not read WAL at %X/%X", LSN_FORMAT_ARGS(reader->EndRecPtr)),
				 error ? errdetail_internal("%s", error) :
				 errdetail("WAL is needed up to %X/%X.", LSN_FORMAT_ARGS(pass->end))));
	if (reader->EndRecPtr > pass->end)
		return NULL;

	if (reader->EndRecPtr - pass->reported >= REPORT_EVERY)
	{
		pass->reported = reader->EndRecPtr;
		flashback_progress.wal_bytes_done = reader->EndRecPtr - pass->start;
		flashback_report(flashback_progress.phase);
	}
	return reader;
}

/*
 * The end of the record that was read last, or where reading begins.
 */
XLogRecPtr
flashback_wal_position(const FlashbackWalPass *pass)
{
	return pass->reader->EndRecPtr;
}

void
flashback_wal_end(FlashbackWalPass *pass)
{
	MemoryContextDelete(pass->context);
}
