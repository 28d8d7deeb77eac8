/*-------------------------------------------------------------------------
 *
 * history.c
 *	  Whose files many commits have deleted, with one pass over WAL.
 *
 * A commit that deletes a file has deleted or updated the row of pg_class that
 * named it.  So the pages of the catalogs that WAL changes are rebuilt from a
 * point on, and the rows that a transaction deletes or updates are noted until
 * it ends: those that it has not made itself are what there was before it.
 *
 * What is not certain is left to be read as of the commit: rows that were
 * deleted before the point's WAL begins, pages that are not known, and what
 * comes after the catalogs themselves were rewritten.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/history.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam_xlog.h"
#include "access/table.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/storage_xlog.h"
#include "flashback_definition.h"
#include "flashback_events.h"
#include "flashback_internal.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* How often a page that is perhaps being written is read */
#define READ_ATTEMPTS 10

typedef enum CatalogIndex
{
	HISTORY_CLASS,
	HISTORY_ATTRIBUTE,
	HISTORY_NAMESPACE,
	HISTORY_NCATALOGS,
} CatalogIndex;

typedef struct HistoryBlock
{
	BlockNumber blkno;			/* hash key, must be first */
	bool		known;
	uint32		slot;
} HistoryBlock;

typedef struct HistoryCatalog
{
	Relation	rel;
	FlashbackFile file;			/* that it had at the point */
	FlashbackKept *kept;		/* NULL: that is its present one */
	XLogRecPtr	deleted;		/* when, if kept */
	HTAB	   *blocks;
	TupleTableSlot *slot;
} HistoryCatalog;

/* The rows that a (sub)transaction has deleted or updated */
typedef struct HistoryRows
{
	TransactionId xid;			/* hash key, must be first */
	bool		incomplete;		/* one could not be had */
	List	   *tuples[HISTORY_NCATALOGS];
} HistoryRows;

typedef struct History
{
	const FlashbackPoint *point;
	FlashbackPageStore *store;
	HistoryCatalog catalogs[HISTORY_NCATALOGS];
	HTAB	   *rows;
	HTAB	   *created;		/* numbers of files */
	List	   *definitions;	/* of FlashbackDefinitionPlace: of
								 * transactions that have not ended yet */
	char	   *page;
	XLogRecPtr	end;			/* what comes from here on is not certain */
} History;

static void
open_catalog(History *history, CatalogIndex index, Oid relid)
{
	HASHCTL		ctl = {.keysize = sizeof(BlockNumber),.entrysize = sizeof(HistoryBlock),.hcxt = CurrentMemoryContext};
	HistoryCatalog *catalog = &history->catalogs[index];

	catalog->rel = table_open(relid, AccessShareLock);
	catalog->file.rlocator = catalog->rel->rd_locator;
	catalog->file.nblocks = RelationGetNumberOfBlocks(catalog->rel);
	catalog->blocks = hash_create("catalog blocks", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	catalog->slot = MakeSingleTupleTableSlot(RelationGetDescr(catalog->rel), &TTSOpsHeapTuple);
}

/*
 * The first image of a block, unless another relation had the number later.
 */
static FlashbackImageKind
read_image(const History *history, const HistoryCatalog *catalog, BlockNumber blkno, char *page)
{
	FlashbackImageKind kind = flashback_log()->first_image(history->point, &catalog->file.rlocator, blkno, page);

	if (kind == FLASHBACK_IMAGE_PAGE && catalog->kept && PageGetLSN((Page) page) >= catalog->deleted)
		return FLASHBACK_IMAGE_NONE;
	return kind;
}

/*
 * The content of a block at the point; false if it is not known.
 */
static bool
read_base(History *history, HistoryCatalog *catalog, BlockNumber blkno, char *page)
{
	FlashbackImageKind kind = read_image(history, catalog, blkno, page);
	bool		verified = false;

	if (kind == FLASHBACK_IMAGE_NONE && blkno < catalog->file.nblocks && catalog->kept)
	{
		flashback_log()->recycle->read(catalog->kept, blkno, history->page);
		verified = true;
	}
	else if (kind == FLASHBACK_IMAGE_NONE && blkno < catalog->file.nblocks)
	{
		for (int i = 0; i < READ_ATTEMPTS && !verified; i++)
		{
			CHECK_FOR_INTERRUPTS();
			smgrread(RelationGetSmgr(catalog->rel), MAIN_FORKNUM, blkno, history->page);
			verified = PageIsVerified((Page) history->page, blkno, 0, NULL);
		}

		/* What has no image now was not overwritten while it was read */
		kind = read_image(history, catalog, blkno, page);
		if (kind == FLASHBACK_IMAGE_NONE && !verified)
			return false;
	}
	if (kind == FLASHBACK_IMAGE_UNREADABLE)
		return false;
	if (kind == FLASHBACK_IMAGE_NONE)
	{
		if (verified && PageGetLSN((Page) history->page) <= history->point->lsn)
			memcpy(page, history->page, BLCKSZ);
		else
			memset(page, 0, BLCKSZ);
	}
	return flashback_check_page(page) == NULL;
}

/*
 * Brings a block that a record changes up to date.
 */
static void
change_block(History *history, HistoryCatalog *catalog, XLogReaderState *record, int id)
{
	BlockNumber blkno = XLogRecGetBlock(record, id)->blkno;
	bool		makes_page = flashback_redo_makes_page(record, id);
	bool		found;
	HistoryBlock *block = hash_search(catalog->blocks, &blkno, HASH_ENTER, &found);
	char	   *page;

	if (!found)
	{
		block->slot = flashback_store_add(history->store);
		block->known = false;
		if (!makes_page)
			block->known = read_base(history, catalog, blkno,
									 flashback_store_page(history->store, block->slot, true));
	}
	if (!block->known && !makes_page)
		return;
	page = flashback_store_page(history->store, block->slot, true);

	/* Of before the point, and cut off by then */
	if (!makes_page &&
		(PageIsNew((Page) page) ||
		 (XLogRecPtrIsInvalid(PageGetLSN((Page) page)) && record->EndRecPtr <= history->point->lsn)))
	{
		block->known = false;
		return;
	}
	flashback_redo_block(record, id, page);
	block->known = true;
}

static void
cut_off(History *history, XLogReaderState *record)
{
	xl_smgr_truncate truncation;

	if (XLogRecGetDataLen(record) < sizeof(truncation))
		return;
	memcpy(&truncation, XLogRecGetData(record), sizeof(truncation));
	for (int i = 0; i < HISTORY_NCATALOGS; i++)
	{
		HistoryCatalog *catalog = &history->catalogs[i];
		HASH_SEQ_STATUS status;
		HistoryBlock *block;

		if (!RelFileLocatorEquals(truncation.rlocator, catalog->file.rlocator) ||
			(truncation.flags & SMGR_TRUNCATE_HEAP) == 0)
			continue;
		hash_seq_init(&status, catalog->blocks);
		while ((block = hash_seq_search(&status)) != NULL)
		{
			if (block->blkno >= truncation.blkno)
				block->known = false;
		}
	}
}

/*
 * Notes the row that a record has deleted or updated; its block is up to date.
 */
static void
note_row(History *history, CatalogIndex index, XLogReaderState *record)
{
	HistoryCatalog *catalog = &history->catalogs[index];
	uint8		op = XLogRecGetInfo(record) & XLOG_HEAP_OPMASK;
	OffsetNumber offset;
	int			id = 0;
	BlockNumber blkno;
	HistoryBlock *block;
	const char *page = NULL;
	ItemId		lp = NULL;
	HeapTupleData tuple = {0};
	HistoryRows *rows;
	TransactionId xid = XLogRecGetXid(record);
	bool		found;

	if (op == XLOG_HEAP_DELETE && XLogRecGetDataLen(record) >= SizeOfHeapDelete)
		memcpy(&offset, XLogRecGetData(record) + offsetof(xl_heap_delete, offnum), sizeof(offset));
	else if ((op == XLOG_HEAP_UPDATE || op == XLOG_HEAP_HOT_UPDATE) &&
			 XLogRecGetDataLen(record) >= SizeOfHeapUpdate)
	{
		memcpy(&offset, XLogRecGetData(record) + offsetof(xl_heap_update, old_offnum), sizeof(offset));
		id = XLogRecHasBlockRef(record, 1) ? 1 : 0;
	}
	else
		return;
	rows = hash_search(history->rows, &xid, HASH_ENTER, &found);
	if (!found)
	{
		rows->incomplete = false;
		memset(rows->tuples, 0, sizeof(rows->tuples));
	}
	blkno = XLogRecGetBlock(record, id)->blkno;
	block = hash_search(catalog->blocks, &blkno, HASH_FIND, NULL);
	if (block && block->known)
	{
		page = flashback_store_page(history->store, block->slot, false);

		/* A page that is ahead of the record may have another row there */
		if (PageGetLSN((Page) page) == record->EndRecPtr &&
			offset >= FirstOffsetNumber && offset <= PageGetMaxOffsetNumber((Page) page))
			lp = PageGetItemId((Page) page, offset);
	}
	if (lp && ItemIdIsNormal(lp))
	{
		tuple.t_len = ItemIdGetLength(lp);
		tuple.t_data = (HeapTupleHeader) (page + ItemIdGetOffset(lp));
		if (flashback_check_tuple(RelationGetDescr(catalog->rel), tuple.t_data, tuple.t_len) == NULL)
		{
			rows->tuples[index] = lappend(rows->tuples[index], heap_copytuple(&tuple));
			return;
		}
	}
	rows->incomplete = true;
}

/*
 * Takes in a record that does not end a transaction.
 */
static void
take_record(History *history, XLogReaderState *record)
{
	uint8		info = XLogRecGetInfo(record) & ~XLR_INFO_MASK;
	int			index = -1;

	flashback_definition_note(&history->definitions, record, InvalidOid);
	if (XLogRecGetRmid(record) == RM_SMGR_ID && info == XLOG_SMGR_TRUNCATE)
		cut_off(history, record);
	if (XLogRecGetRmid(record) == RM_SMGR_ID && info == XLOG_SMGR_CREATE &&
		XLogRecGetDataLen(record) >= sizeof(xl_smgr_create))
	{
		xl_smgr_create create;

		memcpy(&create, XLogRecGetData(record), sizeof(create));
		if (create.forkNum == MAIN_FORKNUM)
			(void) hash_search(history->created, &create.rlocator, HASH_ENTER, NULL);
	}
	if (!flashback_redo_concerns(record))
		return;
	for (int id = 0; id <= XLogRecMaxBlockId(record); id++)
	{
		DecodedBkpBlock *named = XLogRecGetBlock(record, id);

		if (!named->in_use || named->forknum != MAIN_FORKNUM)
			continue;
		for (int i = 0; i < HISTORY_NCATALOGS; i++)
		{
			if (!RelFileLocatorEquals(named->rlocator, history->catalogs[i].file.rlocator))
				continue;
			change_block(history, &history->catalogs[i], record, id);
			index = i;
		}
	}
	if (index >= 0 && XLogRecGetRmid(record) == RM_HEAP_ID)
		note_row(history, index, record);
}

/*
 * The rows of a catalog that a commit has deleted or updated, except those that
 * the transaction had made itself.
 */
static List *
rows_before(History *history, CatalogIndex index, const FlashbackCommitRecord *commit, bool *complete)
{
	HASHCTL		ctl = {.keysize = sizeof(TransactionId),.entrysize = sizeof(TransactionId),.hcxt = CurrentMemoryContext};
	HTAB	   *ours = hash_create("transactions", commit->nsubxids + 1, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	HASH_SEQ_STATUS status;
	TransactionId *xid;
	List	   *result = NIL;

	(void) hash_search(ours, &commit->xid, HASH_ENTER, NULL);
	for (uint32 i = 0; i < commit->nsubxids; i++)
		(void) hash_search(ours, commit->subxids + i * sizeof(TransactionId), HASH_ENTER, NULL);
	hash_seq_init(&status, ours);
	while ((xid = hash_seq_search(&status)) != NULL)
	{
		HistoryRows *rows = hash_search(history->rows, xid, HASH_FIND, NULL);

		if (rows == NULL)
			continue;
		*complete &= !rows->incomplete;
		foreach_ptr(HeapTupleData, tuple, rows->tuples[index])
		{
			TransactionId xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);

			if (hash_search(ours, &xmin, HASH_FIND, NULL) == NULL)
				result = lappend(result, tuple);
		}
	}
	hash_destroy(ours);
	return result;
}

/*
 * What a commit's files were; false if that is not certain.
 */
static bool
identify_files(History *history, const FlashbackCommitRecord *record, const FlashbackCommit *commit,
			   HTAB *files, FlashbackFormers *formers, int *nnew)
{
	TupleTableSlot *slot = history->catalogs[HISTORY_CLASS].slot;
	bool		certain = true;
	List	   *rows = rows_before(history, HISTORY_CLASS, record, &certain);
	FlashbackFormer *all = palloc0_array(FlashbackFormer, Max(list_length(rows), 1));
	FlashbackFormers toasts = {.items = palloc0_array(FlashbackFormer, Max(list_length(rows), 1))};
	HASH_SEQ_STATUS status;
	FlashbackDeletedFile *file;

	*nnew = commit->ndropped;
	formers->n = 0;
	formers->items = all;
	foreach_ptr(HeapTupleData, tuple, rows)
	{
		FlashbackFormer *former = &all[formers->n];
		bool		dropped;

		memset(former, 0, sizeof(*former));
		ExecStoreHeapTuple(tuple, slot, false);
		flashback_former_take(former, slot);
		dropped = flashback_has_dropped(commit, former->relid);
		*nnew -= dropped;
		file = hash_search(files, &former->file.rlocator, HASH_FIND, NULL);
		if (file)
			file->named = true;
		if (former->kind == RELKIND_TOASTVALUE && file)
			toasts.items[toasts.n++] = *former;
		if (former->relid >= FirstNormalObjectId &&
			((former->kind == RELKIND_PARTITIONED_TABLE && dropped) ||
			 ((former->kind == RELKIND_RELATION || former->kind == RELKIND_MATVIEW) && file)))
			formers->n++;
	}
	flashback_formers_sort(formers);
	flashback_formers_sort(&toasts);
	for (int i = 0; i < formers->n; i++)
	{
		FlashbackFormer *toast = flashback_former_of(&toasts, all[i].toastrelid);

		if (toast)
			all[i].toast.rlocator = toast->file.rlocator;
	}

	/* A file that no row named came and went with the transaction */
	hash_seq_init(&status, files);
	while ((file = hash_seq_search(&status)) != NULL)
		certain &= file->named || hash_search(history->created, &file->rlocator, HASH_FIND, NULL) != NULL;
	return certain;
}

/*
 * Adds the columns of those that were dropped; false if not all are known.
 */
static bool
take_columns(History *history, const FlashbackCommitRecord *record, const FlashbackCommit *commit,
			 FlashbackFormers *formers)
{
	TupleTableSlot *slot = history->catalogs[HISTORY_ATTRIBUTE].slot;
	List	   *rows = NIL;
	bool		complete = true;

	if (commit->ndropped > 0)
		rows = rows_before(history, HISTORY_ATTRIBUTE, record, &complete);
	for (int i = 0; i < formers->n; i++)
		flashback_columns_begin(&formers->items[i]);
	foreach_ptr(HeapTupleData, tuple, rows)
	{
		FlashbackFormer *former;

		ExecStoreHeapTuple(tuple, slot, false);
		former = flashback_former_of(formers, DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_attribute_attrelid)));
		if (former && flashback_has_dropped(commit, former->relid))
			flashback_columns_take(former, slot);
	}
	for (int i = 0; i < formers->n; i++)
	{
		if (flashback_has_dropped(commit, formers->items[i].relid) &&
			!flashback_columns_are_complete(&formers->items[i]))
			return false;
	}
	return true;
}

/*
 * The name of a schema that the same commit has dropped, or NULL.
 */
static const char *
dropped_schema(History *history, const FlashbackCommitRecord *record, Oid namespace)
{
	TupleTableSlot *slot = history->catalogs[HISTORY_NAMESPACE].slot;
	bool		complete = true;
	List	   *rows = rows_before(history, HISTORY_NAMESPACE, record, &complete);

	foreach_ptr(HeapTupleData, tuple, rows)
	{
		ExecStoreHeapTuple(tuple, slot, false);
		if (DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_namespace_oid)) == namespace)
			return NameStr(*DatumGetName(flashback_catalog_value(slot, Anum_pg_namespace_nspname)));
	}
	return NULL;
}

/*
 * The definitions that a commit's transaction has written.
 */
static List *
take_definitions(History *history, const FlashbackCommitRecord *record)
{
	List	   *ours = NIL;
	List	   *others = NIL;

	foreach_ptr(FlashbackDefinitionPlace, place, history->definitions)
	{
		if (flashback_is_committed_by(record, place->xid))
			ours = lappend(ours, place);
		else
			others = lappend(others, place);
	}
	list_free(history->definitions);
	history->definitions = others;
	return ours;
}

/*
 * The events of a commit; false if they are not certain.
 */
static bool
take_commit(History *history, const FlashbackCommitRecord *record, const FlashbackKeptFile *files,
			int nfiles, MemoryContext result_context, List **events)
{
	HTAB	   *deleted = flashback_deleted_files(files, nfiles);
	FlashbackCommit commit;
	FlashbackFormers formers;
	Oid			schema = InvalidOid;
	const char *schema_name = NULL;
	List	   *definitions = take_definitions(history, record);
	int			nnew;

	*events = NIL;
	flashback_take_commit(record, &commit);
	if (!identify_files(history, record, &commit, deleted, &formers, &nnew) ||
		!take_columns(history, record, &commit, &formers))
		return false;
	for (int i = 0; i < formers.n; i++)
	{
		MemoryContext old_context;
		FlashbackEvent *event;

		if (schema != formers.items[i].namespace)
		{
			schema = formers.items[i].namespace;
			schema_name = dropped_schema(history, record, schema);
		}
		old_context = MemoryContextSwitchTo(result_context);
		event = flashback_event_create(&formers.items[i], &commit, files[0].commit_lsn, nnew, deleted,
									   schema_name ? pstrdup(schema_name) : NULL);
		if (event)
		{
			event->defined_at = flashback_definition_place(definitions, event->relid);
			*events = lappend(*events, event);
		}
		MemoryContextSwitchTo(old_context);
		if (event == NULL)
			return false;
	}
	return true;
}

/*
 * Whether a catalog had its present file at the point: one that it got later
 * had nothing then.
 */
static bool
was_there(History *history, HistoryCatalog *catalog)
{
	PGAlignedBlock page;

	return read_base(history, catalog, 0, page.data) && !PageIsNew((Page) page.data);
}

/*
 * Finds the files that the catalogs had at the point; false if one of them is
 * not to be had.
 */
static bool
find_catalogs(History *history)
{
	FlashbackMoment moment = {.point = *history->point,.lsn = history->point->lsn};

	history->end = PG_UINT64_MAX;
	for (int i = 0; i < HISTORY_NCATALOGS; i++)
	{
		HistoryCatalog *catalog = &history->catalogs[i];
		FlashbackKeptFile kept;

		if (was_there(history, catalog))
			continue;
		if (!RelationIsMapped(catalog->rel) ||
			!flashback_mapped_file(RelationGetRelid(catalog->rel), &moment, &catalog->file))
			return false;
		catalog->kept = flashback_log()->recycle->open(&catalog->file.rlocator, moment.lsn, &kept);
		if (catalog->kept == NULL)
			return false;
		catalog->deleted = kept.commit_lsn;
		history->end = Min(history->end, kept.commit_lsn);
		if (!was_there(history, catalog))
			return false;
	}
	return true;
}

/*
 * Finds out whose these files were, which commits after the point have deleted
 * (sorted), and calls back for each commit for which that is certain.
 */
void
flashback_history_read(const FlashbackPoint *point, const FlashbackKeptFile *files, int nfiles,
					   FlashbackHistoryCallback callback, void *arg)
{
	HASHCTL		rows_ctl = {.keysize = sizeof(TransactionId),.entrysize = sizeof(HistoryRows)};
	HASHCTL		created_ctl = {.keysize = sizeof(RelFileLocator),.entrysize = sizeof(RelFileLocator)};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "flashback history",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	History		history = {.point = point,.store = flashback_store_create()};
	FlashbackWalPass *pass = flashback_wal_begin(point->redo, files[nfiles - 1].commit_lsn);
	XLogReaderState *record;
	bool		usable;
	int			next = 0;

	rows_ctl.hcxt = created_ctl.hcxt = context;
	history.rows = hash_create("deleted rows", 256, &rows_ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	history.created = hash_create("created files", 256, &created_ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	history.page = palloc_aligned(BLCKSZ, PG_IO_ALIGN_SIZE, 0);
	open_catalog(&history, HISTORY_CLASS, RelationRelationId);
	open_catalog(&history, HISTORY_ATTRIBUTE, AttributeRelationId);
	open_catalog(&history, HISTORY_NAMESPACE, NamespaceRelationId);
	usable = find_catalogs(&history);
	while (usable && next < nfiles && (record = flashback_wal_next(pass)) != NULL)
	{
		FlashbackCommitRecord commit;
		int			n = 0;
		List	   *events;

		if (record->EndRecPtr >= history.end)
			break;
		while (next < nfiles && files[next].commit_lsn < record->EndRecPtr)
			next++;
		while (next + n < nfiles && files[next + n].commit_lsn == record->EndRecPtr)
			n++;
		if (n == 0 || !flashback_is_commit(record, &commit))
			take_record(&history, record);
		else if (take_commit(&history, &commit, &files[next], n, old_context, &events))
		{
			MemoryContextSwitchTo(old_context);
			callback(record->EndRecPtr, events, arg);
			MemoryContextSwitchTo(context);
		}
	}
	flashback_wal_end(pass);
	for (int i = 0; i < HISTORY_NCATALOGS; i++)
	{
		if (history.catalogs[i].kept)
			flashback_log()->recycle->close(history.catalogs[i].kept);
		ExecDropSingleTupleTableSlot(history.catalogs[i].slot);
		table_close(history.catalogs[i].rel, NoLock);
	}
	flashback_store_free(history.store);
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
}
