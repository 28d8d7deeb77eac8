/*-------------------------------------------------------------------------
 *
 * page_copy.c
 *	  Makes the file of a new table from the pages of another one as of a
 *	  moment.
 *
 * Tuples are copied as they are stored, page after page, past shared buffers,
 * with the core's bulk writer.  The file gets no other content than what the
 * rows would have been inserted as, except that
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
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "common/hashfn.h"
#include "flashback_internal.h"
#include "flashback_sql.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bulk_write.h"
#include "utils/guc.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"
#include "utils/relcache.h"
#include "utils/tuplestore.h"
#include "varatt.h"

/* How many pages are written before WAL is */
#define WAKE_EVERY (1024 * 1024 / BLCKSZ)

/* A new file, that grows page by page */
typedef struct PageWriter
{
	Relation	rel;
	BulkWriteState *bulk;
	BulkWriteBuffer buffer;		/* the page that is filled, or NULL */
	BlockNumber blkno;			/* its number */
	TransactionId xid;
	uint64		tuples;
} PageWriter;

/* A TOAST value that some row has */
typedef struct Value
{
	Oid			id;				/* hash key */
	char		status;
	uint32		size;			/* of all its chunks */
	int32		chunks;			/* of them have been copied */
} Value;

#define SH_PREFIX value
#define SH_ELEMENT_TYPE Value
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
	PageWriter	writer;			/* of the result */
	int			least_natts;	/* one with fewer lacks a column that has a
								 * default */
	value_hash *values;			/* that rows have; NULL: none yet */
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
begin_file(PageWriter *writer, Relation rel)
{
	writer->rel = rel;
	writer->bulk = smgr_bulk_start_rel(rel, MAIN_FORKNUM);
	writer->buffer = NULL;
	writer->blkno = 0;
	writer->xid = GetCurrentTransactionId();
	writer->tuples = 0;
}

static void
write_page(PageWriter *writer)
{
	smgr_bulk_write(writer->bulk, writer->blkno, writer->buffer, true);
	writer->buffer = NULL;
	writer->blkno++;
	flashback_progress.bytes_written += BLCKSZ;

	/* The WAL writer goes to work while the next pages are made */
	if (writer->blkno % WAKE_EVERY == 0 && XactLastRecEnd != InvalidXLogRecPtr)
		XLogSetAsyncXactLSN(XactLastRecEnd);
}

/*
 * Adds a tuple as a frozen one; returns the copy.
 */
static HeapTupleHeader
add_tuple(PageWriter *writer, HeapTupleHeader tuple, uint32 length)
{
	OffsetNumber offset;
	HeapTupleHeader copy;

	if (writer->buffer != NULL && PageGetHeapFreeSpace((Page) writer->buffer) < MAXALIGN(length))
		write_page(writer);
	if (writer->buffer == NULL)
	{
		writer->buffer = smgr_bulk_get_buf(writer->bulk);
		PageInit((Page) writer->buffer, BLCKSZ, 0);
	}
	offset = PageAddItem((Page) writer->buffer, (Item) tuple, length, InvalidOffsetNumber, false, true);
	if (offset == InvalidOffsetNumber)
		elog(ERROR, "could not add a tuple of %u bytes to a page", length);
	writer->tuples++;

	/* As heap_insert() does it with HEAP_INSERT_FROZEN */
	copy = (HeapTupleHeader) PageGetItem((Page) writer->buffer, PageGetItemId((Page) writer->buffer, offset));
	copy->t_infomask &= ~HEAP_XACT_MASK;
	copy->t_infomask2 &= ~HEAP2_XACT_MASK;
	copy->t_infomask |= HEAP_XMAX_INVALID;
	HeapTupleHeaderSetXmin(copy, writer->xid);
	HeapTupleHeaderSetXminFrozen(copy);
	HeapTupleHeaderSetCmin(copy, FirstCommandId);
	HeapTupleHeaderSetXmax(copy, InvalidTransactionId);
	ItemPointerSet(&copy->t_ctid, writer->blkno, offset);
	return copy;
}

static void
end_file(PageWriter *writer)
{
	if (writer->buffer != NULL)
		write_page(writer);
	smgr_bulk_finish(writer->bulk);
	pgstat_count_heap_insert(writer->rel, writer->tuples);
}

pg_noreturn static void
refuse_value(PageCopy *copy, Oid id, const char *what)
{
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
		Value	   *value;
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

		if (copy->values == NULL)
			copy->values = value_create(CurrentMemoryContext, 1024, NULL);
		value = value_insert(copy->values, pointer.va_valueid, &found);
		if (!found)
		{
			value->size = VARATT_EXTERNAL_GET_EXTSIZE(pointer);
			value->chunks = 0;
		}
		else if (value->size != VARATT_EXTERNAL_GET_EXTSIZE(pointer))
			refuse_value(copy, pointer.va_valueid, "Two rows have it, of different sizes");
		pointer.va_toastrelid = copy->result->rd_rel->reltoastrelid;
		memcpy(VARDATA_EXTERNAL(at), &pointer, sizeof(pointer));
	}
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
			if (copy->large == NULL)
				copy->large = tuplestore_begin_heap(false, false, work_mem);
			tuplestore_puttuple(copy->large, flashback_scan_reshape(copy->scan, stored, true));
			return;
		}
	}
	header = add_tuple(&copy->writer, tuple->t_data, tuple->t_len);
	if (HeapTupleHeaderHasExternal(header))
		move_pointers(copy, header, tuple->t_len);
}

/*
 * Copies the chunks of the noted values.  No other is needed: the row that had
 * it does not count.
 */
static void
copy_values(PageCopy *copy)
{
	Relation	to = table_open(copy->result->rd_rel->reltoastrelid, AccessExclusiveLock);
	FlashbackToast *toast = flashback_scan_open_toast(copy->scan);
	List	   *indexes = RelationGetIndexList(to);
	PageWriter	writer;
	FlashbackChunk chunk;
	value_iterator iterator;
	Value	   *value;
	ReindexParams params = {0};

	begin_file(&writer, to);
	while (flashback_toast_next_chunk(toast, &chunk))
	{
		uint32		before;

		value = value_lookup(copy->values, chunk.value);
		if (value == NULL)
			continue;
		before = (uint32) value->chunks * TOAST_MAX_CHUNK_SIZE;
		if (before >= value->size)
			flashback_toast_corrupted(toast, chunk.value, "it has too many chunks");
		if (chunk.number < 0 || chunk.number > (value->size - 1) / TOAST_MAX_CHUNK_SIZE ||
			chunk.size != Min(TOAST_MAX_CHUNK_SIZE,
							  value->size - (uint32) chunk.number * TOAST_MAX_CHUNK_SIZE))
			flashback_toast_corrupted(toast, chunk.value, "a chunk does not fit");
		value->chunks++;
		(void) add_tuple(&writer, chunk.tuple, chunk.tuple_length);
	}
	end_file(&writer);

	/* With as many as it must have, and none twice, it has all */
	value_start_iterate(copy->values, &iterator);
	while ((value = value_iterate(copy->values, &iterator)) != NULL)
	{
		if ((uint64) value->chunks * TOAST_MAX_CHUNK_SIZE < value->size)
			flashback_toast_corrupted(toast, value->id, "a chunk is missing");
	}
	flashback_toast_close(toast);
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
 * Copies all rows of a scan that has not begun into a table that this
 * subtransaction has made, and nobody else can have opened; returns their
 * number.
 */
uint64
flashback_copy_pages(FlashbackScan *scan, Relation result)
{
	PageCopy	copy = {.scan = scan,.result = result};
	const OffsetNumber *visible;
	int			nvisible;
	uint64		rows;
	int			nestlevel;

	if (result->rd_createSubid != GetCurrentSubTransactionId() || RelationGetNumberOfBlocks(result) != 0)
		elog(ERROR, "table \"%s\" is not new", RelationGetRelationName(result));
	flashback_scan_describe(scan, &copy.from);
	copy.datums = palloc_array(Datum, copy.from.desc->natts);
	copy.nulls = palloc_array(bool, copy.from.desc->natts);
	for (int i = 0; i < Min(copy.from.natts, copy.from.desc->natts); i++)
		if (TupleDescAttr(copy.from.desc, i)->atthasmissing)
			copy.least_natts = i + 1;

	nestlevel = compress_images();
	begin_file(&copy.writer, result);
	while (flashback_scan_next_page(scan, &visible, &nvisible) != NULL)
	{
		for (int i = 0; i < nvisible; i++)
			copy_tuple(&copy, flashback_scan_tuple(scan, visible[i]));
		flashback_progress_rows(copy.writer.tuples);
	}
	end_file(&copy.writer);
	INJECTION_POINT("flashback-table-copied", NULL);
	rows = copy.writer.tuples;

	if (copy.values)
	{
		copy_values(&copy);
		flashback_scan_check_complete(scan);
		value_destroy(copy.values);
	}
	if (copy.large)
	{
		rows += tuplestore_tuple_count(copy.large);
		insert_large(&copy);
	}
	AtEOXact_GUC(true, nestlevel);
	flashback_progress_rows(rows);
	pfree(copy.datums);
	pfree(copy.nulls);
	return rows;
}
