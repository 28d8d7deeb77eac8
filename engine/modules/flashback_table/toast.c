/*-------------------------------------------------------------------------
 *
 * toast.c
 *	  Values of a TOAST relation as of a moment.
 *
 * The index of the TOAST relation knows only what is there now.  So the chunks
 * of the moment are listed, sorted by value, when the first value is needed.
 * Their content is not kept: 20 bytes for a chunk of 2 kB are.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/toast.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/table.h"
#include "access/toast_internals.h"
#include "catalog/pg_type_d.h"
#include "flashback_internal.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "varatt.h"

typedef struct Chunk
{
	Oid			value;
	int32		number;
	BlockNumber blkno;
	TransactionId xmin;
	OffsetNumber offset;
} Chunk;

struct FlashbackToast
{
	MemoryContext context;
	Oid			relid;
	Relation	rel;			/* NULL: it is a kept file */
	TupleDesc	desc;
	FlashbackHeap *heap;
	FlashbackVisibility *visibility;
	const char *page;			/* that next_chunk() reads; NULL before the
								 * first */
	BlockNumber blkno;
	OffsetNumber offset;		/* the next on it */
	Chunk	   *chunks;			/* NULL: not listed yet */
	Size		nchunks;
	Size		allocated;
};

/*
 * The columns of every TOAST relation.
 */
static TupleDesc
chunk_descriptor(void)
{
	TupleDesc	desc = CreateTemplateTupleDesc(3);

	TupleDescInitEntry(desc, 1, "chunk_id", OIDOID, -1, 0);
	TupleDescInitEntry(desc, 2, "chunk_seq", INT4OID, -1, 0);
	TupleDescInitEntry(desc, 3, "chunk_data", BYTEAOID, -1, 0);
	return desc;
}

/*
 * Opens the TOAST relation that a relation had, in the file that it had.
 */
FlashbackToast *
flashback_toast_open(Oid toastrelid, const FlashbackFile *file, const FlashbackMoment *moment,
					 FlashbackVisibility *visibility)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "flashback TOAST", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	FlashbackToast *toast = palloc0(sizeof(FlashbackToast));

	toast->context = context;
	toast->relid = toastrelid;
	toast->desc = chunk_descriptor();
	toast->visibility = visibility;
	if (!file->kept)
	{
		toast->rel = table_open(toastrelid, AccessShareLock);
		if (!RelFileLocatorEquals(toast->rel->rd_locator, file->rlocator))
			elog(ERROR, "TOAST relation %u has another file", toastrelid);
	}
	toast->heap = flashback_heap_open(file, toast->rel, moment, FLASHBACK_READING_TOAST);
	MemoryContextSwitchTo(old_context);
	return toast;
}

/*
 * Leaves chunks to other participants: next_chunk() gives those of our share.
 */
void
flashback_toast_share(FlashbackToast *toast, const FlashbackShare *share)
{
	flashback_heap_share(toast->heap, share);
}

BlockNumber
flashback_toast_size(const FlashbackToast *toast)
{
	return flashback_heap_size(toast->heap);
}

void
flashback_toast_corrupted(const FlashbackToast *toast, Oid value, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("TOAST value %u of relation %u cannot be read as of the target time",
					value, toast->relid),
			 errdetail_internal("%s.", what)));
}

/*
 * The chunk at a place of a page, if there is one: its value and number, and
 * its content.
 */
static HeapTupleHeader
get_chunk(FlashbackToast *toast, const char *page, OffsetNumber offset,
		  Oid *value, int32 *number, const char **data, Size *size)
{
	ItemId		lp = PageGetItemId((Page) page, offset);
	HeapTupleHeader tuple;
	const char *content;

	if (!ItemIdIsNormal(lp))
		return NULL;
	tuple = (HeapTupleHeader) (page + ItemIdGetOffset(lp));
	if (flashback_check_tuple(toast->desc, tuple, ItemIdGetLength(lp)) != NULL ||
		HeapTupleHeaderGetNatts(tuple) != 3 || (tuple->t_infomask & HEAP_HASNULL))
		return NULL;
	content = (const char *) tuple + tuple->t_hoff;
	memcpy(value, content, sizeof(Oid));
	memcpy(number, content + sizeof(Oid), sizeof(int32));
	content += sizeof(Oid) + sizeof(int32);
	if (VARATT_IS_EXTERNAL(content) || (!VARATT_IS_1B(content) && VARATT_IS_COMPRESSED(content)))
		return NULL;
	*data = VARDATA_ANY(content);
	*size = VARSIZE_ANY_EXHDR(content);
	return tuple;
}

/*
 * The next chunk as of the moment, as they are stored; false after the last.
 * It is valid until the next call.
 */
bool
flashback_toast_next_chunk(FlashbackToast *toast, FlashbackChunk *chunk)
{
	for (;;)
	{
		ItemId		lp;

		if (toast->page == NULL || toast->offset > PageGetMaxOffsetNumber((Page) toast->page))
		{
			bool		rebuilt;

			toast->page = flashback_heap_next(toast->heap, &toast->blkno, &rebuilt);
			toast->offset = FirstOffsetNumber;
			if (toast->page == NULL)
				return false;
			continue;
		}
		chunk->blkno = toast->blkno;
		chunk->offset = toast->offset++;
		lp = PageGetItemId((Page) toast->page, chunk->offset);
		if (!ItemIdIsNormal(lp) ||
			!flashback_tuple_is_visible(toast->visibility, (HeapTupleHeader) (toast->page + ItemIdGetOffset(lp))))
			continue;
		chunk->tuple = get_chunk(toast, toast->page, chunk->offset,
								 &chunk->value, &chunk->number, &chunk->data, &chunk->size);
		if (chunk->tuple == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("invalid TOAST tuple (%u,%u) of relation %u",
							chunk->blkno, chunk->offset, toast->relid)));
		chunk->tuple_length = ItemIdGetLength(lp);
		return true;
	}
}

static int
compare_chunks(const void *a, const void *b)
{
	const Chunk *x = a;
	const Chunk *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void
list_chunks(FlashbackToast *toast)
{
	FlashbackChunk found;
	FlashbackProgress before = flashback_progress;

	toast->allocated = 1024;
	toast->chunks = MemoryContextAlloc(toast->context, toast->allocated * sizeof(Chunk));
	flashback_progress.blocks_total = flashback_heap_size(toast->heap);
	flashback_progress.blocks_done = 0;
	while (flashback_toast_next_chunk(toast, &found))
	{
		Chunk	   *chunk;

		if (toast->nchunks == toast->allocated)
		{
			toast->allocated *= 2;
			toast->chunks = repalloc_huge(toast->chunks, toast->allocated * sizeof(Chunk));
		}
		chunk = &toast->chunks[toast->nchunks++];
		chunk->value = found.value;
		chunk->number = found.number;
		chunk->blkno = found.blkno;
		chunk->offset = found.offset;
		chunk->xmin = HeapTupleHeaderGetRawXmin(found.tuple);
	}
	qsort(toast->chunks, toast->nchunks, sizeof(Chunk), compare_chunks);
	INJECTION_POINT("flashback-table-listed", NULL);

	flashback_progress.blocks_total = before.blocks_total;
	flashback_progress.blocks_done = before.blocks_done;
	flashback_report(before.phase);
}

/*
 * Copies a chunk's content to where it belongs.  Its page may have changed
 * since it was listed, but a chunk never does: while there is one of the same
 * transaction, value and number it is the same.  Once it has been removed, the
 * page is rebuilt, and with it all others that have changed.
 */
static Size
copy_chunk(FlashbackToast *toast, const Chunk *chunk, char *to, Size room)
{
	for (;;)
	{
		bool		newer;
		const char *page = flashback_heap_fetch(toast->heap, chunk->blkno, &newer);
		HeapTupleHeader tuple = NULL;
		Oid			value;
		int32		number;
		const char *data;
		Size		size;

		if (chunk->offset <= PageGetMaxOffsetNumber((Page) page))
			tuple = get_chunk(toast, page, chunk->offset, &value, &number, &data, &size);
		if (tuple != NULL && value == chunk->value && number == chunk->number &&
			HeapTupleHeaderGetRawXmin(tuple) == chunk->xmin)
		{
			if (size > room)
				flashback_toast_corrupted(toast, chunk->value, "a chunk is too long");
			memcpy(to, data, size);
			return size;
		}
		if (!newer)
			flashback_toast_corrupted(toast, chunk->value, "a chunk has gone");
		flashback_heap_rebuild_newer(toast->heap);
	}
}

/*
 * The value that a TOAST pointer names, compressed if it was stored so.
 */
struct varlena *
flashback_toast_fetch(FlashbackToast *toast, struct varlena *pointer)
{
	struct varatt_external external;
	struct varlena *result;
	Size		size;
	Size		done = 0;
	Size		low = 0;
	Size		high;

	VARATT_EXTERNAL_GET_POINTER(external, pointer);
	size = VARATT_EXTERNAL_GET_EXTSIZE(external);
	if (external.va_toastrelid != toast->relid)
		flashback_toast_corrupted(toast, external.va_valueid, "it is of another TOAST relation");
	if (size > MaxAllocSize - VARHDRSZ ||
		(VARATT_EXTERNAL_IS_COMPRESSED(external) && size < VARHDRSZ_COMPRESSED - VARHDRSZ))
		flashback_toast_corrupted(toast, external.va_valueid, "its size is impossible");
	if (toast->chunks == NULL)
		list_chunks(toast);

	high = toast->nchunks;
	while (low < high)
	{
		Size		middle = low + (high - low) / 2;

		if (toast->chunks[middle].value < external.va_valueid)
			low = middle + 1;
		else
			high = middle;
	}

	result = palloc(size + VARHDRSZ);
	if (VARATT_EXTERNAL_IS_COMPRESSED(external))
		SET_VARSIZE_COMPRESSED(result, size + VARHDRSZ);
	else
		SET_VARSIZE(result, size + VARHDRSZ);
	for (int32 number = 0; done < size; number++, low++)
	{
		CHECK_FOR_INTERRUPTS();
		if (low >= toast->nchunks ||
			toast->chunks[low].value != external.va_valueid ||
			toast->chunks[low].number != number)
			flashback_toast_corrupted(toast, external.va_valueid, "a chunk is missing");
		done += copy_chunk(toast, &toast->chunks[low], VARDATA(result) + done, size - done);
	}
	if (low < toast->nchunks && toast->chunks[low].value == external.va_valueid)
		flashback_toast_corrupted(toast, external.va_valueid, "it has too many chunks");
	return result;
}

void
flashback_toast_close(FlashbackToast *toast)
{
	flashback_heap_close(toast->heap);
	if (toast->rel)
		table_close(toast->rel, NoLock);
	MemoryContextDelete(toast->context);
}
