/*-------------------------------------------------------------------------
 *
 * flashback_fuzz.c
 *		Applies mutated records of WAL to pages that they do not fit to, and
 *		counts what they say.
 *
 * The code of flashback_table that does it is compiled into this module.  A
 * page lies between guards; whatever is left on it after a record was accepted
 * must be in order, and is taken apart as a scan would.
 *
 * engine/testkit/modules/flashback_fuzz/flashback_fuzz.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "page_check.c"
#include "page_redo.c"
#include "wal_pass.c"
#include "activity_pass.c"

#include "access/relation.h"
#include "access/xlog.h"
#include "access/xlogutils.h"
#include "common/pg_prng.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(flashback_fuzz);
PG_FUNCTION_INFO_V1(flashback_activity_fuzz);

/* What the code that is included reports to */
FlashbackProgress flashback_progress;

void
flashback_report(FlashbackPhase phase)
{
}

#define GUARD 0x5A

static pg_prng_state prng;
static char *guarded;			/* a page with a guard before and after */

#define PAGE (guarded + BLCKSZ)

static uint32
choose(uint32 n)
{
	return pg_prng_uint64_range(&prng, 0, n - 1);
}

/*
 * Values that are likely to hurt.
 */
static void
mutate(char *bytes, Size length)
{
	static const uint16 evil[] = {0, 1, 2, 7, 23, 24, 0x7FFF, 0x8000, 0xFFFF, 8191, 8192, 291, 292};
	int			n = 1 + choose(3);

	if (length == 0)
		return;
	while (n-- > 0)
	{
		Size		at = choose(choose(2) ? length : Min(length, 40));

		if (choose(2) && at + sizeof(uint16) <= length)
			memcpy(bytes + at, &evil[choose(lengthof(evil))], sizeof(uint16));
		else
			bytes[at] ^= 1 << choose(8);
	}
}

static void
check_guards(void)
{
	for (int i = 0; i < BLCKSZ; i++)
		if (guarded[i] != GUARD || guarded[2 * BLCKSZ + i] != GUARD)
			elog(PANIC, "a record wrote beyond its page");
}

static void
take_apart(TupleDesc desc, int64 *rows)
{
	const char *wrong = flashback_check_page(PAGE);
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	bool	   *nulls = palloc(desc->natts * sizeof(bool));

	if (wrong)
		elog(PANIC, "a record left a page of which %s", wrong);
	for (OffsetNumber i = 1; i <= PageGetMaxOffsetNumber((Page) PAGE); i++)
	{
		ItemId		lp = PageGetItemId((Page) PAGE, i);
		HeapTupleData tuple;

		if (!ItemIdIsNormal(lp))
			continue;
		tuple.t_data = (HeapTupleHeader) (PAGE + ItemIdGetOffset(lp));
		tuple.t_len = ItemIdGetLength(lp);
		if (flashback_check_tuple(desc, tuple.t_data, tuple.t_len) != NULL)
			continue;
		heap_deform_tuple(&tuple, desc, values, nulls);
		for (int a = 0; a < desc->natts; a++)
			if (!nulls[a] && TupleDescCompactAttr(desc, a)->attlen == -1 &&
				DatumGetPointer(values[a]) + VARSIZE_ANY(DatumGetPointer(values[a])) > (char *) tuple.t_data + tuple.t_len)
				elog(PANIC, "a column is longer than its tuple");
		(*rows)++;
	}
	pfree(values);
	pfree(nulls);
}

/*
 * One block of one record, mutated, on a page of the relation.
 */
static bool
try_record(XLogReaderState *reader, int id, Relation rel, int64 *rows)
{
	DecodedXLogRecord *record = reader->record;
	DecodedBkpBlock *block = &record->blocks[id];
	volatile bool applied = false;
	MemoryContext context = CurrentMemoryContext;
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);

	memset(guarded, GUARD, 3 * BLCKSZ);
	memset(PAGE, 0, BLCKSZ);
	if (nblocks > 0 && choose(8) > 0)
	{
		/* Often the page that the record is about, with changes of later */
		Buffer		buffer = ReadBuffer(rel, choose(2) && block->blkno < nblocks ? block->blkno : choose(nblocks));

		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		memcpy(PAGE, BufferGetPage(buffer), BLCKSZ);
		UnlockReleaseBuffer(buffer);
		PageSetLSN((Page) PAGE, 0);
	}
	if (choose(3) == 0)
		mutate(PAGE, BLCKSZ);
	if (flashback_check_page(PAGE) != NULL)
		return false;

	if (choose(4) > 0)
		mutate(record->main_data, record->main_data_len);
	if (block->has_data && choose(4) > 0)
		mutate(block->data, block->data_len);
	if (block->has_image && choose(2) > 0)
		mutate(block->bkp_image, block->bimg_len);
	if (choose(8) == 0 && record->main_data_len > 0)
		record->main_data_len = choose(record->main_data_len);
	if (choose(8) == 0 && block->has_data && block->data_len > 0)
		block->data_len = choose(block->data_len);
	if (choose(16) == 0)
		record->header.xl_info ^= 0x10 << choose(4);
	if (choose(16) == 0)
		record->header.xl_rmid = choose(2) ? RM_HEAP_ID : RM_HEAP2_ID;
	if (choose(16) == 0)
		block->flags ^= BKPBLOCK_WILL_INIT;
	if (choose(4) == 0)
		block->apply_image = block->has_image = false;

	PG_TRY();
	{
		if (flashback_redo_concerns(reader))
		{
			flashback_redo_block(reader, id, PAGE);
			applied = true;
		}
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	check_guards();
	if (applied)
		take_apart(RelationGetDescr(rel), rows);
	return applied;
}

/*
 * Reads WAL from the last point before a time over and over.
 */
Datum
flashback_fuzz(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessShareLock);
	const FlashbackLogApi *api = *find_rendezvous_variable(FLASHBACK_LOG_API);
	int			rounds = PG_GETARG_INT32(3);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fuzz", ALLOCSET_DEFAULT_SIZES);
	FlashbackPoint point;
	XLogRecPtr	end = GetFlushRecPtr(NULL);
	TupleDesc	desc;
	Datum		values[3];
	bool		nulls[3] = {0};
	int64		applied = 0;
	int64		refused = 0;
	int64		rows = 0;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (!api->find_point(PG_GETARG_TIMESTAMPTZ(1), &point))
		elog(ERROR, "no point");
	pg_prng_seed(&prng, PG_GETARG_INT32(2));
	guarded = palloc_aligned(3 * BLCKSZ, PG_IO_ALIGN_SIZE, 0);

	/* What refuses a record may say so; here it would say it a million times */
	log_min_messages = FATAL;
	client_min_messages = ERROR;
	while (applied + refused < rounds)
	{
		XLogReaderState *reader;
		char	   *error;
		int64		before = applied + refused;

		reader = XLogReaderAllocate(wal_segment_size, NULL,
									XL_ROUTINE(.page_read = &read_local_xlog_page_no_wait,
											   .segment_open = &wal_segment_open,
											   .segment_close = &wal_segment_close),
									palloc0(sizeof(ReadLocalXLogPageNoWaitPrivate)));
		XLogBeginRead(reader, point.redo);
		while (applied + refused < rounds && reader->EndRecPtr < end &&
			   XLogReadRecord(reader, &error) != NULL)
		{
			MemoryContext old_context = MemoryContextSwitchTo(context);

			CHECK_FOR_INTERRUPTS();
			for (int id = 0; id <= XLogRecMaxBlockId(reader); id++)
			{
				if (!XLogRecHasBlockRef(reader, id) ||
					XLogRecGetBlock(reader, id)->forknum != MAIN_FORKNUM ||
					!RelFileLocatorEquals(XLogRecGetBlock(reader, id)->rlocator, rel->rd_locator))
					continue;
				if (try_record(reader, id, rel, &rows))
					applied++;
				else
					refused++;
			}
			MemoryContextSwitchTo(old_context);
			MemoryContextReset(context);
		}
		XLogReaderFree(reader);
		if (applied + refused == before)
			elog(ERROR, "WAL has nothing of the relation");
	}
	relation_close(rel, NoLock);

	values[0] = Int64GetDatum(applied);
	values[1] = Int64GetDatum(refused);
	values[2] = Int64GetDatum(rows);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * A record whose data are not what they were.  They end where their memory
 * does, so that a sanitizer sees who reads beyond.
 */
static void
count_mutated(Activity *activity, XLogReaderState *reader)
{
	static const RmgrId rmgrs[] = {RM_HEAP_ID, RM_HEAP2_ID, RM_XACT_ID, RM_STANDBY_ID, RM_SMGR_ID};
	DecodedXLogRecord *record = reader->record;
	Size		length = record->main_data_len;
	char	   *data;

	if (choose(4) == 0)
		length = choose(length + 1);
	data = malloc(Max(length, 1));
	if (data == NULL)
		elog(ERROR, "out of memory");
	if (length > 0)
		memcpy(data, record->main_data, length);
	if (choose(8) > 0)
		mutate(data, length);
	record->main_data = data;
	record->main_data_len = length;
	if (choose(8) == 0)
		record->header.xl_info ^= 0x10 << choose(4);
	if (choose(16) == 0)
		record->header.xl_rmid = rmgrs[choose(lengthof(rmgrs))];
	if (choose(16) == 0)
		record->header.xl_xid = choose(2) ? choose(1000) : pg_prng_uint32(&prng);
	if (choose(64) == 0)
		record->max_block_id = -1;
	read_record(activity, reader);
	free(data);
}

/*
 * Counts mutated records of the WAL that is there, over and over; returns how
 * many events they made.
 */
Datum
flashback_activity_fuzz(PG_FUNCTION_ARGS)
{
	const FlashbackLogApi *api = *find_rendezvous_variable(FLASHBACK_LOG_API);
	int			rounds = PG_GETARG_INT32(1);
	XLogRecPtr	end = GetFlushRecPtr(NULL);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fuzz", ALLOCSET_DEFAULT_SIZES);
	FlashbackPoint point;
	int64		events = 0;

	if (!api->find_point(GetCurrentTimestamp(), &point))
		elog(ERROR, "no point");
	pg_prng_seed(&prng, PG_GETARG_INT32(0));
	while (rounds > 0)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);
		Activity   *activity = flashback_activity_read(end, end, end, end, 1 + choose(100));
		FlashbackWalPass *pass = flashback_wal_begin(point.redo, end);
		XLogReaderState *reader;
		int			before = rounds;

		while (rounds > 0 && (reader = flashback_wal_next(pass)) != NULL)
		{
			count_mutated(activity, reader);
			rounds--;
		}
		if (rounds == before)
			elog(ERROR, "WAL has nothing after the point");
		events += list_length(activity->changes) + list_length(activity->definitions);
		flashback_wal_end(pass);
		MemoryContextSwitchTo(old_context);
		MemoryContextReset(context);
	}
	PG_RETURN_INT64(events);
}
