/*-------------------------------------------------------------------------
 *
 * page_copy.c
 *	  Makes the file of a new table from the pages of another one as of a
 *	  moment.
 *
 * Tuples are copied as they are stored, page after page, past shared buffers,
 * by one process or several (README.parallel.md).  The file gets no other
 * content than what the rows would have been inserted as, except that
 *
 * - they are frozen at once.  The table has been made in this very call, so
 *   no snapshot of this transaction has been taken, and no cursor of it
 *   opened, while the table was there without them; if the transaction fails,
 *   the file goes with it.  (COPY FREEZE asks for the same.)  As after that, a
 *   snapshot of another session that is older than our commit sees the table
 *   with its rows, not without any.
 * - TOAST values stay under the ids, and compressed as, they were stored.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/page_copy.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/heapam.h"
#include "access/heaptoast.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "common/hashfn.h"
#include "flashback_copy.h"
#include "flashback_sql.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/smgr.h"
#include "utils/guc.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"
#include "utils/relcache.h"
#include "utils/tuplestore.h"
#include "varatt.h"

/* How many pages are put into one record of WAL, and written at once */
#define BATCH_PAGES XLR_MAX_BLOCK_ID

/* How many pages are written before WAL is */
#define WAKE_EVERY (1024 * 1024 / BLCKSZ)

/*
 * A new file that grows by batches of pages, perhaps with those of other
 * participants in between.  A tuple gets its place when its page gets a number.
 */
typedef struct PageWriter
{
	Relation	rel;
	FlashbackNewFile *file;
	FlashbackNewFile own_file;	/* if there are no others */
	bool		use_wal;
	TransactionId xid;
	char	   *pages;			/* room for a batch */
	int			npages;			/* begun, the last one is filled */
	int			unflushed;		/* written since the WAL writer was told */
	uint64		tuples;
} PageWriter;

#define SH_PREFIX value
#define SH_ELEMENT_TYPE FlashbackValue
#define SH_KEY_TYPE Oid
#define SH_KEY id
#define SH_HASH_KEY(table, key) murmurhash32(key)
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef struct PageCopy
{
	FlashbackScan *scan;
	FlashbackStored from;
	Relation	result;
	FlashbackTeam *team;		/* NULL: we are alone */
	PageWriter	writer;			/* of the result */
	uint64		chunks;			/* that have been copied */
	int			least_natts;	/* one with fewer lacks a column that has a
								 * default */
	value_hash *values;			/* that rows have; NULL: none yet, or in the
								 * team's hands */
	Tuplestorestate *large;		/* rows that no page can hold; NULL: none */
	Datum	   *datums;
	bool	   *nulls;
} PageCopy;

/*
 * Page images in WAL are compressed while a result is written: much less of it
 * has to be written and synced, and replay gives the same pages.
 */
static int
compress_images(void)
{
	int			nestlevel = NewGUCNestLevel();

#ifdef USE_LZ4
	if (wal_compression == WAL_COMPRESSION_NONE)
		(void) set_config_option("wal_compression", "lz4", PGC_SUSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
#endif
	return nestlevel;
}

static void
begin_file(PageWriter *writer, Relation rel, TransactionId xid, FlashbackNewFile *file)
{
	memset(writer, 0, sizeof(*writer));
	writer->rel = rel;
	writer->file = file ? file : &writer->own_file;
	writer->use_wal = RelationNeedsWAL(rel);
	writer->xid = xid;
	writer->pages = palloc_aligned(BATCH_PAGES * BLCKSZ, PG_IO_ALIGN_SIZE, 0);
}

/*
 * Lets the file grow; returns the first of the new blocks.  Nobody writes past
 * its end, so that its segments come to be one after the other.
 */
static BlockNumber
extend_file(PageWriter *writer, int npages)
{
	BlockNumber first;

	LockRelationForExtension(writer->rel, ExclusiveLock);
	first = writer->file->nblocks;
	smgrzeroextend(RelationGetSmgr(writer->rel), MAIN_FORKNUM, first, npages, true);
	writer->file->nblocks = first + npages;
	UnlockRelationForExtension(writer->rel, ExclusiveLock);
	return first;
}

/*
 * Gives the pages their numbers, and the tuples their places.
 */
static void
number_pages(PageWriter *writer, BlockNumber first, BlockNumber *blknos, Page *pages)
{
	for (int i = 0; i < writer->npages; i++)
	{
		Page		page = (Page) (writer->pages + i * BLCKSZ);
		OffsetNumber last = PageGetMaxOffsetNumber(page);

		blknos[i] = first + i;
		pages[i] = page;
		for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
		{
			HeapTupleHeader tuple = (HeapTupleHeader) PageGetItem(page, PageGetItemId(page, offset));

			ItemPointerSet(&tuple->t_ctid, blknos[i], offset);
		}
	}
}

static void
write_batch(PageWriter *writer)
{
	SMgrRelation smgr;
	BlockNumber blknos[BATCH_PAGES];
	Page		pages[BATCH_PAGES];
	int			n = writer->npages;
	int			run;

	if (n == 0)
		return;
	number_pages(writer, extend_file(writer, n), blknos, pages);
	if (writer->use_wal)
		log_newpages(&writer->rel->rd_locator, MAIN_FORKNUM, n, blknos, pages, true);
	smgr = RelationGetSmgr(writer->rel);
	for (int i = 0; i < n; i += run)
	{
		run = Min(n - i, smgrmaxcombine(smgr, MAIN_FORKNUM, blknos[i]));
		for (int k = i; k < i + run; k++)
			PageSetChecksumInplace(pages[k], blknos[k]);
		smgrwritev(smgr, MAIN_FORKNUM, blknos[i], (const void **) &pages[i], run, true);
	}
	writer->npages = 0;
	flashback_progress.bytes_written += (uint64) n * BLCKSZ;

	/* The WAL writer goes to work while the next pages are made */
	writer->unflushed += n;
	if (writer->unflushed >= WAKE_EVERY && XactLastRecEnd != InvalidXLogRecPtr)
	{
		XLogSetAsyncXactLSN(XactLastRecEnd);
		writer->unflushed = 0;
	}
}

/*
 * Adds a tuple as a frozen one; returns the copy.
 */
static HeapTupleHeader
add_tuple(PageWriter *writer, HeapTupleHeader tuple, uint32 length)
{
	Page		page = NULL;
	OffsetNumber offset;
	HeapTupleHeader copy;

	if (writer->npages > 0)
		page = (Page) (writer->pages + (writer->npages - 1) * BLCKSZ);
	if (page == NULL || PageGetHeapFreeSpace(page) < MAXALIGN(length))
	{
		if (writer->npages == BATCH_PAGES)
			write_batch(writer);
		page = (Page) (writer->pages + writer->npages++ * BLCKSZ);
		PageInit(page, BLCKSZ, 0);
	}
	offset = PageAddItem(page, (Item) tuple, length, InvalidOffsetNumber, false, true);
	if (offset == InvalidOffsetNumber)
		elog(ERROR, "could not add a tuple of %u bytes to a page", length);
	writer->tuples++;

	/* As heap_insert() does it with HEAP_INSERT_FROZEN */
	copy = (HeapTupleHeader) PageGetItem(page, PageGetItemId(page, offset));
	copy->t_infomask &= ~HEAP_XACT_MASK;
	copy->t_infomask2 &= ~HEAP2_XACT_MASK;
	copy->t_infomask |= HEAP_XMAX_INVALID;
	HeapTupleHeaderSetXmin(copy, writer->xid);
	HeapTupleHeaderSetXminFrozen(copy);
	HeapTupleHeaderSetCmin(copy, FirstCommandId);
	HeapTupleHeaderSetXmax(copy, InvalidTransactionId);
	return copy;
}

static void
end_file(PageWriter *writer)
{
	write_batch(writer);
	pfree(writer->pages);
}

/*
 * Sees to it that a file that all participants have written is on disk in
 * time, as the core's bulk writer does: by the next checkpoint, or now if one
 * has begun since, which may not have known of pages whose WAL is before it.
 */
static void
sync_file(Relation rel, XLogRecPtr redo)
{
	SMgrRelation smgr = RelationGetSmgr(rel);

	/* Without WAL it is synced at the commit */
	if (!RelationNeedsWAL(rel))
		return;
	Assert((MyProc->delayChkptFlags & DELAY_CHKPT_START) == 0);
	MyProc->delayChkptFlags |= DELAY_CHKPT_START;
	if (redo == GetRedoRecPtr())
	{
		smgrregistersync(smgr, MAIN_FORKNUM);
		MyProc->delayChkptFlags &= ~DELAY_CHKPT_START;
		return;
	}
	MyProc->delayChkptFlags &= ~DELAY_CHKPT_START;
	smgrimmedsync(smgr, MAIN_FORKNUM);
}

pg_noreturn static void refuse_value(void *arg, Oid id, const char *what);

static void
refuse_value(void *arg, Oid id, const char *what)
{
	const PageCopy *copy = arg;

	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("TOAST value %u of table \"%s\" cannot be copied as of the target time",
					id, copy->from.name),
			 errdetail_internal("%s.", what)));
}

/*
 * Lets the TOAST pointers of a copied tuple point to the TOAST relation of the
 * result, and notes the values that it has to get.
 */
static void
move_pointers(PageCopy *copy, HeapTupleHeader tuple, uint32 length)
{
	TupleDesc	desc = copy->from.desc;
	int			natts = Min(HeapTupleHeaderGetNatts(tuple), desc->natts);
	HeapTupleData data;

	data.t_data = tuple;
	data.t_len = length;
	heap_deform_tuple(&data, desc, copy->datums, copy->nulls);
	for (int i = 0; i < natts; i++)
	{
		struct varatt_external pointer;
		struct varlena *at = (struct varlena *) DatumGetPointer(copy->datums[i]);
		FlashbackValue *value;
		bool		found;

		if (copy->nulls[i] || TupleDescCompactAttr(desc, i)->attlen != -1 || !VARATT_IS_EXTERNAL(at))
			continue;
		if (!VARATT_IS_EXTERNAL_ONDISK(at))
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("table \"%s\" has an invalid TOAST pointer", copy->from.name)));
		VARATT_EXTERNAL_GET_POINTER(pointer, at);
		if (pointer.va_toastrelid != copy->from.toastrelid)
			refuse_value(copy, pointer.va_valueid, "It is of another TOAST relation");
		if (!OidIsValid(pointer.va_valueid))
			refuse_value(copy, pointer.va_valueid, "It has no number");

		if (copy->values == NULL)
			copy->values = value_create(CurrentMemoryContext, 1024, NULL);
		value = value_insert(copy->values, pointer.va_valueid, &found);
		if (!found)
		{
			value->size = VARATT_EXTERNAL_GET_EXTSIZE(pointer);
			pg_atomic_init_u32(&value->chunks, 0);
		}
		else if (value->size != VARATT_EXTERNAL_GET_EXTSIZE(pointer))
			refuse_value(copy, pointer.va_valueid, "Two rows have it, of different sizes");
		pointer.va_toastrelid = copy->result->rd_rel->reltoastrelid;
		memcpy(VARDATA_EXTERNAL(at), &pointer, sizeof(pointer));
	}
}

static void
put_large(PageCopy *copy, HeapTuple tuple)
{
	if (copy->large == NULL)
		copy->large = tuplestore_begin_heap(false, false, work_mem);
	tuplestore_puttuple(copy->large, tuple);
}

static void
copy_tuple(PageCopy *copy, HeapTuple tuple)
{
	int			natts = HeapTupleHeaderGetNatts(tuple->t_data);
	HeapTupleHeader header;

	/* Null is what shorter ones have in the result */
	if (natts < copy->least_natts || natts > copy->from.natts)
	{
		HeapTuple	stored = tuple;

		tuple = flashback_scan_reshape(copy->scan, stored, false);
		if (tuple->t_len > MaxHeapTupleSize)
		{
			tuple = flashback_scan_reshape(copy->scan, stored, true);
			if (copy->team)
				flashback_team_put_large(copy->team, tuple);
			else
				put_large(copy, tuple);
			return;
		}
	}
	header = add_tuple(&copy->writer, tuple->t_data, tuple->t_len);
	if (HeapTupleHeaderHasExternal(header))
		move_pointers(copy, header, tuple->t_len);
}

/*
 * Copies the chunks of the noted values, or our share of them.  No other is
 * needed: the row that had it does not count.
 */
static void
copy_values(PageCopy *copy)
{
	FlashbackTeam *team = copy->team;
	Relation	to = table_open(copy->result->rd_rel->reltoastrelid, RowExclusiveLock);
	FlashbackToast *toast = flashback_scan_open_toast(copy->scan);
	PageWriter	writer;
	FlashbackChunk chunk;

	begin_file(&writer, to, copy->writer.xid, team ? flashback_team_file(team, FLASHBACK_TOAST) : NULL);
	if (team)
	{
		FlashbackShare share;

		flashback_team_share(team, FLASHBACK_TOAST, &share);
		flashback_toast_share(toast, &share);
	}
	INJECTION_POINT("flashback-table-copy-toast", NULL);
	while (flashback_toast_next_chunk(toast, &chunk))
	{
		FlashbackValue *value = team ? flashback_team_find_value(team, chunk.value) :
			value_lookup(copy->values, chunk.value);
		uint64		before;

		if (value == NULL)
			continue;
		before = (uint64) pg_atomic_fetch_add_u32(&value->chunks, 1) * TOAST_MAX_CHUNK_SIZE;
		if (before >= value->size)
			flashback_toast_corrupted(toast, chunk.value, "it has too many chunks");
		if (chunk.number < 0 || chunk.number > (value->size - 1) / TOAST_MAX_CHUNK_SIZE ||
			chunk.size != Min(TOAST_MAX_CHUNK_SIZE,
							  value->size - (uint32) chunk.number * TOAST_MAX_CHUNK_SIZE))
			flashback_toast_corrupted(toast, chunk.value, "a chunk does not fit");
		(void) add_tuple(&writer, chunk.tuple, chunk.tuple_length);
	}
	end_file(&writer);
	copy->chunks = writer.tuples;
	if (team)
		flashback_team_copied(team, FLASHBACK_TOAST, writer.tuples);
	flashback_toast_close(toast);
	table_close(to, NoLock);
}

/*
 * The chunks of all values have been copied: checks that none is missing, and
 * makes them be found.
 */
static void
finish_values(PageCopy *copy, XLogRecPtr redo)
{
	Relation	to = table_open(copy->result->rd_rel->reltoastrelid, AccessExclusiveLock);
	List	   *indexes = RelationGetIndexList(to);
	ReindexParams params = {0};

	pgstat_count_heap_insert(to, copy->chunks);
	sync_file(to, redo);
	table_close(to, NoLock);

	/* That none is there twice is for the unique index to say */
	foreach_oid(indexid, indexes)
	{
		reindex_index(NULL, indexid, false, RELPERSISTENCE_PERMANENT, &params);
	}
	CommandCounterIncrement();
	list_free(indexes);
}

/*
 * With as many chunks as it must have, and none twice, a value has all.
 */
static void
check_value(PageCopy *copy, FlashbackValue *value)
{
	if ((uint64) pg_atomic_read_u32(&value->chunks) * TOAST_MAX_CHUNK_SIZE < value->size)
		refuse_value(copy, value->id, "A chunk is missing");
}

static void
check_values(PageCopy *copy)
{
	FlashbackValue *value;

	if (copy->team)
	{
		uint64		position = 0;

		while ((value = flashback_team_next_value(copy->team, &position)) != NULL)
			check_value(copy, value);
	}
	else
	{
		value_iterator iterator;

		value_start_iterate(copy->values, &iterator);
		while ((value = value_iterate(copy->values, &iterator)) != NULL)
			check_value(copy, value);
	}
}

/*
 * Inserts the few rows that are too long with a default of later.
 */
static void
insert_large(PageCopy *copy)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(copy->result), &TTSOpsMinimalTuple);
	CommandId	cid = GetCurrentCommandId(true);

	while (tuplestore_gettupleslot(copy->large, true, false, slot))
	{
		CHECK_FOR_INTERRUPTS();
		table_tuple_insert(copy->result, slot, cid, TABLE_INSERT_SKIP_FSM | TABLE_INSERT_NO_LOGICAL, NULL);
	}
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_end(copy->large);
}

/*
 * Whether the tuples of a scan can be stored in the result as they are.
 */
bool
flashback_pages_fit(const FlashbackScan *scan, Relation result)
{
	FlashbackStored from;
	TupleDesc	to = RelationGetDescr(result);

	flashback_scan_describe(scan, &from);
	if (from.shape->natts != to->natts)
		return false;
	for (int i = 0; i < to->natts; i++)
	{
		Form_pg_attribute a = TupleDescAttr(from.shape, i);
		Form_pg_attribute b = TupleDescAttr(to, i);
		Form_pg_attribute c = i < from.desc->natts ? TupleDescAttr(from.desc, i) : NULL;

		/* One that is computed when a row is read is stored in the result */
		if (a->attisdropped || a->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL ||
			a->atttypid != b->atttypid)
			return false;
		if (c && (c->attisdropped || c->atttypid != b->atttypid || c->attlen != b->attlen ||
				  c->attbyval != b->attbyval || c->attalign != b->attalign))
			return false;
	}
	return !OidIsValid(from.toastrelid) || OidIsValid(result->rd_rel->reltoastrelid);
}

/*
 * Gives the values that we have found to the team.
 */
static void
give_values(PageCopy *copy)
{
	FlashbackValue *to = flashback_team_give_values(copy->team, copy->values ? copy->values->members : 0);
	value_iterator iterator;
	FlashbackValue *value;

	if (copy->values == NULL)
		return;
	value_start_iterate(copy->values, &iterator);
	while ((value = value_iterate(copy->values, &iterator)) != NULL)
		*to++ = *value;
	value_destroy(copy->values);
	copy->values = NULL;
}

/*
 * Copies what is ours of the rows and of their values; returns whether there
 * are values.
 */
static bool
copy_share(PageCopy *copy, TransactionId xid)
{
	const OffsetNumber *visible;
	int			nvisible;
	bool		with_values;

	flashback_scan_describe(copy->scan, &copy->from);
	copy->datums = palloc_array(Datum, copy->from.desc->natts);
	copy->nulls = palloc_array(bool, copy->from.desc->natts);
	for (int i = 0; i < Min(copy->from.natts, copy->from.desc->natts); i++)
		if (TupleDescAttr(copy->from.desc, i)->atthasmissing)
			copy->least_natts = i + 1;

	begin_file(&copy->writer, copy->result, xid,
			   copy->team ? flashback_team_file(copy->team, FLASHBACK_TABLE) : NULL);
	INJECTION_POINT("flashback-table-copy", NULL);
	while (flashback_scan_next_page(copy->scan, &visible, &nvisible) != NULL)
	{
		for (int i = 0; i < nvisible; i++)
			copy_tuple(copy, flashback_scan_tuple(copy->scan, visible[i]));
		flashback_progress_rows(copy->writer.tuples);
	}
	end_file(&copy->writer);
	INJECTION_POINT("flashback-table-copied", NULL);

	if (copy->team)
	{
		give_values(copy);
		flashback_team_copied(copy->team, FLASHBACK_TABLE, copy->writer.tuples);
		with_values = flashback_team_meet(copy->team, refuse_value, copy);
	}
	else
		with_values = (copy->values != NULL);
	if (with_values)
	{
		copy_values(copy);
		flashback_scan_check_complete(copy->scan);
	}
	pfree(copy->datums);
	pfree(copy->nulls);
	return with_values;
}

/*
 * The part of a worker.
 */
void
flashback_copy_share(FlashbackScan *scan, Relation result, TransactionId xid, FlashbackTeam *team)
{
	PageCopy	copy = {.scan = scan,.result = result,.team = team};

	(void) copy_share(&copy, xid);
}

/*
 * Waits for the workers, and takes what is left to us: rows that are too long
 * for a page.  Nothing that they have read counts before the log is asked.
 */
static uint64
finish_team(PageCopy *copy)
{
	FlashbackTeam *team = copy->team;
	uint64		tuples;
	MinimalTuple large;

	flashback_team_finish(team);
	tuples = flashback_team_tuples(team, FLASHBACK_TABLE);
	copy->chunks = flashback_team_tuples(team, FLASHBACK_TOAST);
	if ((large = flashback_team_next_large(team, true)) != NULL)
	{
		TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(copy->result), &TTSOpsMinimalTuple);

		copy->large = tuplestore_begin_heap(false, false, work_mem);
		for (; large != NULL; large = flashback_team_next_large(team, false))
			tuplestore_puttupleslot(copy->large, ExecStoreMinimalTuple(large, slot, false));
		ExecDropSingleTupleTableSlot(slot);
	}
	return tuples;
}

/*
 * Copies all rows of a scan that has not begun into a table that this
 * subtransaction has made, and nobody else can have opened; returns their
 * number.
 */
uint64
flashback_copy_pages(FlashbackScan *scan, Relation result, int workers)
{
	PageCopy	copy = {.scan = scan,.result = result};
	TransactionId xid = GetCurrentTransactionId();
	XLogRecPtr	redo = GetRedoRecPtr();
	bool		with_values;
	uint64		rows;
	int			nestlevel;

	if (result->rd_createSubid != GetCurrentSubTransactionId() || RelationGetNumberOfBlocks(result) != 0)
		elog(ERROR, "table \"%s\" is not new", RelationGetRelationName(result));

	/* Workers get our settings, too */
	nestlevel = compress_images();
	copy.team = flashback_team_begin(scan, result, xid, workers);
	if (copy.team)
	{
		FlashbackShare share;

		flashback_team_share(copy.team, FLASHBACK_TABLE, &share);
		flashback_scan_share(scan, &share);
	}
	with_values = copy_share(&copy, xid);
	rows = copy.team ? finish_team(&copy) : copy.writer.tuples;
	if (with_values)
		check_values(&copy);
	if (copy.team)
	{
		flashback_team_end(copy.team);
		copy.team = NULL;
		flashback_scan_check_complete(scan);
	}
	else if (copy.values)
		value_destroy(copy.values);
	pgstat_count_heap_insert(result, rows);
	sync_file(result, redo);
	if (with_values)
		finish_values(&copy, redo);
	if (copy.large)
	{
		rows += tuplestore_tuple_count(copy.large);
		insert_large(&copy);
	}
	AtEOXact_GUC(true, nestlevel);
	flashback_progress_all_rows(rows);
	return rows;
}
