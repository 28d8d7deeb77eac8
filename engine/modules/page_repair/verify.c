/*-------------------------------------------------------------------------
 *
 * verify.c
 *	  Which of the blocks that WAL names are torn?
 *
 * Read in the order of the files.  Maps are made good here: their contents can
 * always be thrown away.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/verify.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "catalog/pg_tablespace_d.h"
#include "common/relpath.h"
#include "port/pg_bitutils.h"
#include "postmaster/startup.h"
#include "repair.h"
#include "storage/bufpage.h"
#include "storage/fd.h"
#include "storage/reinit.h"
#include "utils/memutils.h"

typedef void (*BlockCallback) (Recovery *recovery, SMgrRelation reln, ForkNumber forknum, BlockNumber blkno,
							   char *page, void *arg);

/*
 * Read blocks.  Returns false if the disk does not give one of them: a write
 * that was cut short within a sector leaves such a thing.
 */
static bool
read_blocks(SMgrRelation reln, ForkNumber forknum, BlockNumber first, void **buffers, int n)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool good = true;

	PG_TRY();
	{
		smgrreadv(reln, forknum, first, buffers, n);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (error->sqlerrcode != ERRCODE_IO_ERROR && error->sqlerrcode != ERRCODE_DATA_CORRUPTED)
			PG_RE_THROW();
		FlushErrorState();
		if (n == 1)
			ereport(LOG,
					(errmsg("block %u of relation \"%s\" cannot be read and is taken for torn",
							first, relpathperm(reln->smgr_rlocator.locator, forknum).str),
					 errdetail("%s.", error->message)));
		FreeErrorData(error);
		good = false;
	}
	PG_END_TRY();
	return good;
}

/*
 * Call "each" for each of the blocks, which are consecutive, with its content,
 * or with NULL when it cannot be read.
 */
static void
read_run(Recovery *recovery, SMgrRelation reln, ForkNumber forknum, BlockNumber first, int nblocks,
		 BlockCallback each, void *arg)
{
	while (nblocks > 0)
	{
		void	   *buffers[REPAIR_READ_BLOCKS];
		int			n = Min(nblocks, REPAIR_READ_BLOCKS);

		n = Min(n, (int) smgrmaxcombine(reln, forknum, first));
		for (int i = 0; i < n; i++)
			buffers[i] = recovery->read_buffer + (Size) i * BLCKSZ;
		recovery->stats.checked += n;
		if (read_blocks(reln, forknum, first, buffers, n))
		{
			for (int i = 0; i < n; i++)
				each(recovery, reln, forknum, first + i, buffers[i], arg);
		}
		else
		{
			/* Which one was it? */
			for (int i = 0; i < n; i++)
				each(recovery, reln, forknum, first + i,
					 n > 1 && read_blocks(reln, forknum, first + i, buffers, 1) ? buffers[0] : NULL,
					 arg);
		}
		first += n;
		nblocks -= n;
	}
}

/*
 * Does this block verify, and is it not of zeroes?
 */
bool
verify_is_whole(Recovery *recovery, const PageRepairBlock *block)
{
	void	   *buffer = recovery->read_buffer;

	return read_blocks(smgropen(block->rlocator, INVALID_PROC_NUMBER), block->forknum, block->blkno, &buffer, 1) &&
		PageIsVerified((PageData *) buffer, block->blkno, 0, NULL) &&
		!PageIsNew((Page) buffer);
}

/*
 * A block of a chunk: what verifies need not be fetched.  One that is changed
 * without an image and is not made anew has content, or WAL removes it: zeroes
 * that verify may be what a source has given that had lost it.
 */
static void
verify_block(Recovery *recovery, SMgrRelation reln, ForkNumber forknum, BlockNumber blkno, char *page, void *arg)
{
	PageRepairChunk *chunk = (PageRepairChunk *) arg;
	PageRepairBlock block = {reln->smgr_rlocator.locator, forknum, blkno};

	if (page != NULL && PageIsVerified((PageData *) page, blkno, 0, NULL) &&
		(!PageIsNew((Page) page) ||
		 (recovery->nsources == 0 && recovery->log == NULL && !page_repair_list_only) ||
		 page_repair_removed(&recovery->map, &block)))
		chunk->check[(blkno % PAGE_REPAIR_CHUNK_BLOCKS) / 64] &= ~(UINT64CONST(1) << (blkno % 64));
	else
		recovery->stats.torn++;
}

/*
 * A block of a visibility map or free space map (R8).
 */
static void
sweep_block(Recovery *recovery, SMgrRelation reln, ForkNumber forknum, BlockNumber blkno, char *page, void *arg)
{
	PageRepairBlock block = {reln->smgr_rlocator.locator, forknum, blkno};

	if (page != NULL && PageIsVerified((PageData *) page, blkno, 0, NULL))
		return;
	recovery->stats.torn++;
	page = recovery->read_buffer + (Size) REPAIR_READ_BLOCKS * BLCKSZ;
	if (forknum == VISIBILITYMAP_FORKNUM)
	{
		PageInit((Page) page, BLCKSZ, 0);
		recovery->stats.vm_initialized++;
		repair_log(recovery, &block, "all bits cleared");
	}
	else
	{
		memset(page, 0, BLCKSZ);
		recovery->stats.fsm_reset++;
		repair_log(recovery, &block, "zeroed");
	}
	repair_write_page(recovery, reln, forknum, blkno, page);
}

/*
 * Look at all pages of a relation's maps, whether WAL names them or not.
 */
void
verify_sweep_maps(Recovery *recovery, RelFileLocator rlocator)
{
	SMgrRelation reln = smgropen(rlocator, INVALID_PROC_NUMBER);

	for (ForkNumber forknum = FSM_FORKNUM; forknum <= VISIBILITYMAP_FORKNUM; forknum++)
	{
		if (smgrexists(reln, forknum))
			read_run(recovery, reln, forknum, 0, (int) smgrnblocks(reln, forknum), sweep_block, NULL);
	}
}

/*
 * Look at the maps in a directory whose files have been written since then, as
 * their times tell.
 */
static void
sweep_directory(Recovery *recovery, const char *path, Oid tablespace, Oid database, pg_time_t since)
{
	DIR		   *dir = AllocateDir(path);
	struct dirent *entry;

	while ((entry = ReadDirExtended(dir, path, LOG)) != NULL)
	{
		RelFileLocator rlocator = {tablespace, database, InvalidRelFileNumber};
		ForkNumber	forknum;
		unsigned	segno;
		char		name[MAXPGPATH * 2];
		struct stat st;

		if (!parse_filename_for_nontemp_relation(entry->d_name, &rlocator.relNumber, &forknum, &segno) ||
			(forknum != FSM_FORKNUM && forknum != VISIBILITYMAP_FORKNUM))
			continue;
		ProcessStartupProcInterrupts();
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (stat(name, &st) == 0 && st.st_mtime >= since &&
			page_repair_sweep_first(&recovery->map, &rlocator))
			verify_sweep_maps(recovery, rlocator);
	}
	FreeDir(dir);
}

/*
 * The same in the directories of all databases of a tablespace.
 */
static void
sweep_tablespace(Recovery *recovery, const char *path, Oid tablespace, pg_time_t since)
{
	DIR		   *dir = AllocateDir(path);
	struct dirent *entry;

	while ((entry = ReadDirExtended(dir, path, LOG)) != NULL)
	{
		char		name[MAXPGPATH * 2];

		if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name))
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		sweep_directory(recovery, name, tablespace, atooid(entry->d_name), since);
	}
	FreeDir(dir);
}

/*
 * Look at all maps that have been written since then: WAL that has named one
 * may have been lost in the crash.
 */
void
verify_sweep_written_maps(Recovery *recovery, pg_time_t since)
{
	DIR		   *dir = AllocateDir(PG_TBLSPC_DIR);
	struct dirent *entry;

	sweep_directory(recovery, "global", GLOBALTABLESPACE_OID, InvalidOid, since);
	sweep_tablespace(recovery, "base", DEFAULTTABLESPACE_OID, since);
	while ((entry = ReadDirExtended(dir, PG_TBLSPC_DIR, LOG)) != NULL)
	{
		char		name[MAXPGPATH * 2];

		if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name))
			continue;
		snprintf(name, sizeof(name), "%s/%s/%s", PG_TBLSPC_DIR, entry->d_name, TABLESPACE_VERSION_DIRECTORY);
		sweep_tablespace(recovery, name, atooid(entry->d_name), since);
	}
	FreeDir(dir);
}

static int
compare_chunks(const void *a, const void *b)
{
	const PageRepairChunkKey *x = &(*(PageRepairChunk *const *) a)->key;
	const PageRepairChunkKey *y = &(*(PageRepairChunk *const *) b)->key;

#define COMPARE(field) \
	if (x->field != y->field) \
		return x->field < y->field ? -1 : 1

	COMPARE(rlocator.spcOid);
	COMPARE(rlocator.dbOid);
	COMPARE(rlocator.relNumber);
	COMPARE(forknum);
	COMPARE(number);
#undef COMPARE
	return 0;
}

/*
 * The chunks that nobody has looked at yet, in the order of the files.
 */
PageRepairChunk **
verify_sorted_chunks(Recovery *recovery, int *nchunks)
{
	List	   *fresh = recovery->map.fresh;
	PageRepairChunk **chunks;
	int			n = 0;

	chunks = palloc_extended(sizeof(PageRepairChunk *) * Max(list_length(fresh), 1),
							 MCXT_ALLOC_HUGE);
	foreach_ptr(PageRepairChunk, chunk, fresh)
	{
		chunk->fresh = false;
		chunks[n++] = chunk;
	}
	list_free(fresh);
	recovery->map.fresh = NIL;
	qsort(chunks, n, sizeof(PageRepairChunk *), compare_chunks);
	*nchunks = n;
	return chunks;
}

/*
 * How many blocks from here on are to be checked, one after the other.
 */
static int
run_length(PageRepairChunk *chunk, int from)
{
	int			n = from;

	while (n < PAGE_REPAIR_CHUNK_BLOCKS && (chunk->check[n / 64] & (UINT64CONST(1) << (n % 64))))
		n++;
	return n - from;
}

/*
 * The next block to be checked, from this one on; PAGE_REPAIR_CHUNK_BLOCKS when there is none.
 */
int
verify_next_checked(PageRepairChunk *chunk, int from)
{
	while (from < PAGE_REPAIR_CHUNK_BLOCKS)
	{
		uint64		word = chunk->check[from / 64] >> (from % 64);

		if (word != 0)
			return from + pg_rightmost_one_pos64(word);
		from = (from / 64 + 1) * 64;
	}
	return PAGE_REPAIR_CHUNK_BLOCKS;
}

/*
 * Leave only those blocks in the chunk that have to be fetched.
 */
void
verify_chunk(Recovery *recovery, PageRepairChunk *chunk)
{
	SMgrRelation reln = smgropen(chunk->key.rlocator, INVALID_PROC_NUMBER);
	ForkNumber	forknum = chunk->key.forknum;
	BlockNumber base = chunk->key.number * PAGE_REPAIR_CHUNK_BLOCKS;
	BlockNumber nblocks;
	bool		always = (recovery->stats.policy == PAGE_REPAIR_ALWAYS);

	/* The sweep looks at all of these */
	if (forknum == FSM_FORKNUM || (forknum == VISIBILITYMAP_FORKNUM && !always))
	{
		memset(chunk->check, 0, sizeof(chunk->check));
		return;
	}

	/* What lies beyond the end cannot be torn (R9) */
	nblocks = smgrexists(reln, forknum) ? smgrnblocks(reln, forknum) : 0;
	for (int i = 0; i < PAGE_REPAIR_CHUNK_WORDS; i++)
	{
		BlockNumber first = base + i * 64;

		if (first >= nblocks)
			chunk->check[i] = 0;
		else if (nblocks - first < 64)
			chunk->check[i] &= (UINT64CONST(1) << (nblocks - first)) - 1;
	}
	if (always)
		return;

	for (int from = verify_next_checked(chunk, 0); from < PAGE_REPAIR_CHUNK_BLOCKS;)
	{
		int			n = run_length(chunk, from);

		smgrprefetch(reln, forknum, base + from, n);
		from = verify_next_checked(chunk, from + n);
	}
	for (int from = verify_next_checked(chunk, 0); from < PAGE_REPAIR_CHUNK_BLOCKS;)
	{
		int			n = run_length(chunk, from);

		ProcessStartupProcInterrupts();
		read_run(recovery, reln, forknum, base + from, n, verify_block, chunk);
		from = verify_next_checked(chunk, from + n);
	}
}
