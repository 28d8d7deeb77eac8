/*-------------------------------------------------------------------------
 *
 * sample.c
 *	  What images take in the log, from a sample of pages.
 *
 * An image is what is on disk of a page that has changed.  So the pages of
 * dirty buffers are read from their files, and packed as for the log.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/sample.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/htup_details.h"
#include "common/pg_prng.h"
#include "common/relpath.h"
#include "flashback_log.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "storage/bufpage.h"
#include "storage/fd.h"

PG_FUNCTION_INFO_V1(polar_flashback_log_sample);

/* At most so many buffers are looked at, and so many pages read, each time */
#define MAX_LOOKS 65536
#define MAX_READS 512

/* Of fewer nothing is concluded: pages that were changed last make up for it */
#define LEAST_PAGES 64

typedef struct SampledPage
{
	XLogRecPtr	lsn;
	uint32		page_bytes;		/* without the hole */
	uint32		record_bytes;
} SampledPage;

/*
 * Whether a buffer holds a page of which images are kept, and is dirty or not
 * as is wanted.
 */
static bool
is_wanted(BufferDesc *buffer, bool dirty, BufferTag *tag)
{
	const uint32 flags = BM_VALID | BM_TAG_VALID | BM_PERMANENT;
	uint32		state = pg_atomic_read_u32(&buffer->state);

	if ((state & flags) != flags || ((state & BM_DIRTY) != 0) != dirty)
		return false;
	state = LockBufHdr(buffer);
	*tag = buffer->tag;
	UnlockBufHdr(buffer, state);
	return (state & flags) == flags && BufTagGetForkNum(tag) == MAIN_FORKNUM;
}

/*
 * Reads a block by the name of its file, which may be gone; false if there is
 * no page of which an image would be kept.
 */
static bool
read_page(const BufferTag *tag, char *page)
{
	char		path[MAXPGPATH];
	RelFileLocator rlocator = BufTagGetRelFileLocator(tag);
	BlockNumber segment = tag->blockNum / RELSEG_SIZE;
	ssize_t		n;
	int			fd;

	if (segment == 0)
		strlcpy(path, relpathperm(rlocator, MAIN_FORKNUM).str, sizeof(path));
	else
		snprintf(path, sizeof(path), "%s.%u", relpathperm(rlocator, MAIN_FORKNUM).str, segment);
	fd = BasicOpenFile(path, O_RDONLY | PG_BINARY);
	if (fd < 0)
		return false;
	n = pg_pread(fd, page, BLCKSZ, (off_t) (tag->blockNum % RELSEG_SIZE) * BLCKSZ);
	close(fd);
	return n == BLCKSZ && !PageIsNew((Page) page) && PageIsVerified((Page) page, tag->blockNum, 0, NULL);
}

/*
 * Samples pages of dirty buffers, or of others; returns how many.  Buffers
 * are visited in an order that has nothing to do with what they hold.
 */
static int
sample_pages(SampledPage *pages, bool dirty)
{
	PGIOAlignedBlock *block = palloc_aligned(sizeof(PGIOAlignedBlock), PG_IO_ALIGN_SIZE, 0);
	uint64		at = pg_prng_uint64_range(&pg_global_prng_state, 0, NBuffers - 1);

	/* A prime that does not divide their number visits each once */
	uint64		stride = NBuffers % 7919 != 0 ? 7919 : 1;
	int			reads = 0;
	int			n = 0;

	for (int looks = 0; looks < Min(NBuffers, MAX_LOOKS) && reads < MAX_READS; looks++)
	{
		BufferTag	tag;
		FlashbackLogRecord record;

		CHECK_FOR_INTERRUPTS();
		at = (at + stride) % NBuffers;
		if (!is_wanted(GetBufferDescriptor(at), dirty, &tag))
			continue;
		reads++;
		if (!read_page(&tag, block->data))
			continue;
		memset(&record, 0, sizeof(record));
		(void) flashback_log_pack(block->data, &record);
		pages[n].lsn = record.lsn;
		pages[n].page_bytes = BLCKSZ - record.hole_length;
		pages[n++].record_bytes = flashback_log_record_size(&record);
	}
	pfree(block);
	return n;
}

static int
compare_newest_first(const void *a, const void *b)
{
	XLogRecPtr	x = ((const SampledPage *) a)->lsn;
	XLogRecPtr	y = ((const SampledPage *) b)->lsn;

	return x < y ? 1 : x > y ? -1 : 0;
}

/*
 * polar_flashback_log_sample()
 */
Datum
polar_flashback_log_sample(PG_FUNCTION_ARGS)
{
	SampledPage *pages = palloc_array(SampledPage, 2 * MAX_READS);
	TupleDesc	desc;
	Datum		values[3];
	bool		nulls[3] = {0};
	double		page_bytes = 0;
	double		record_bytes = 0;
	int			n;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	n = sample_pages(pages, true);
	if (n < LEAST_PAGES)
	{
		int			others = sample_pages(pages + n, false);

		qsort(pages + n, others, sizeof(SampledPage), compare_newest_first);
		n = Min(n + others, LEAST_PAGES);
	}
	for (int i = 0; i < n; i++)
	{
		page_bytes += pages[i].page_bytes;
		record_bytes += pages[i].record_bytes;
	}

	values[0] = Int32GetDatum(n);
	nulls[1] = nulls[2] = (n == 0);
	values[1] = Float8GetDatum(n == 0 ? 0 : page_bytes / n);
	values[2] = Float8GetDatum(n == 0 ? 0 : record_bytes / n);
	pfree(pages);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
