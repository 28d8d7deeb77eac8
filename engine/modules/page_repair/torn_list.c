/*-------------------------------------------------------------------------
 *
 * torn_list.c
 *	  Tell whoever has to find whole copies which blocks are torn.
 *
 * A text file in the data directory: a header with what has to be known of
 * this server to judge its pages, a CRC of the header, and a line for each
 * block.  README.repair.md describes it; the header of a primary's list is
 * what the directory of copies needs (copies.c).
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/torn_list.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xlog.h"
#include "common/relpath.h"
#include "lib/stringinfo.h"
#include "repair.h"
#include "storage/fd.h"
#include "utils/pg_crc.h"

#define TORN_LIST_TEMP TORN_LIST_FILE ".tmp"

/*
 * Write all of it, or report at elevel why not.
 */
static bool
write_file(const StringInfo text, int elevel)
{
	int			fd = OpenTransientFile(TORN_LIST_TEMP, O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY);
	int			at = 0;

	if (fd < 0)
	{
		ereport(elevel,
				(errcode_for_file_access(),
				 errmsg("could not create file \"%s\": %m", TORN_LIST_TEMP)));
		return false;
	}
	while (at < text->len)
	{
		ssize_t		written;

		errno = 0;
		written = pg_pwrite(fd, text->data + at, text->len - at, at);
		if (written <= 0)
			break;
		at += written;
	}
	if (at < text->len)
	{
		int			save_errno = errno ? errno : ENOSPC;

		/* What is on a full disk for nothing must not stay there */
		CloseTransientFile(fd);
		(void) unlink(TORN_LIST_TEMP);
		errno = save_errno;
		ereport(elevel,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", TORN_LIST_TEMP)));
		return false;
	}
	if (CloseTransientFile(fd) != 0)
	{
		ereport(elevel,
				(errcode_for_file_access(),
				 errmsg("could not close file \"%s\": %m", TORN_LIST_TEMP)));
		return false;
	}
	return durable_rename(TORN_LIST_TEMP, TORN_LIST_FILE, elevel) == 0;
}

/*
 * The header.  The last line has the CRC of those before it.
 */
static void
add_header(Recovery *recovery, StringInfo text, uint64 nblocks)
{
	pg_crc32	crc;

	appendStringInfo(text, "version: 1\n");
	appendStringInfo(text, "system identifier: " UINT64_FORMAT "\n", GetSystemIdentifier());
	appendStringInfo(text, "role: %s\n", recovery->standby ? "standby" : "primary");
	appendStringInfo(text, "timeline: %u\n",
					 recovery->map.timeline != 0 ? recovery->map.timeline : recovery->history_of);
	appendStringInfo(text, "redo: %X/%X\n", LSN_FORMAT_ARGS(recovery->redo));
	appendStringInfo(text, "end: %X/%X\n", LSN_FORMAT_ARGS(recovery->wal.end));
	appendStringInfo(text, "consistent: %X/%X\n", LSN_FORMAT_ARGS(recovery->limit));
	appendStringInfo(text, "segment size: %d\n", wal_segment_size);
	appendStringInfo(text, "blocks: " UINT64_FORMAT "\n", nblocks);
	INIT_TRADITIONAL_CRC32(crc);
	COMP_TRADITIONAL_CRC32(crc, text->data, text->len);
	FIN_TRADITIONAL_CRC32(crc);
	appendStringInfo(text, "crc32: %08X\n", crc);
}

/*
 * Write the list of what is still to be replaced in these chunks; *nblocks gets
 * how many blocks that is.  Reports at elevel, and returns false, if it cannot
 * be written.
 */
bool
torn_list_write(Recovery *recovery, PageRepairChunk **chunks, int nchunks, int elevel, uint64 *nblocks)
{
	bool		written;
	StringInfoData lines;
	StringInfoData text;

	*nblocks = 0;
	initStringInfo(&lines);
	for (int c = 0; c < nchunks; c++)
	{
		const PageRepairChunkKey *key = &chunks[c]->key;

		for (int i = verify_next_checked(chunks[c], 0); i < PAGE_REPAIR_CHUNK_BLOCKS;
			 i = verify_next_checked(chunks[c], i + 1))
		{
			appendStringInfo(&lines, "%u %u %u %d %u %s\n",
							 key->rlocator.spcOid, key->rlocator.dbOid, key->rlocator.relNumber, key->forknum,
							 key->number * PAGE_REPAIR_CHUNK_BLOCKS + i,
							 relpathperm(key->rlocator, key->forknum).str);
			(*nblocks)++;
		}
	}
	initStringInfo(&text);
	add_header(recovery, &text, *nblocks);
	appendBinaryStringInfo(&text, lines.data, lines.len);
	written = write_file(&text, elevel);
	pfree(lines.data);
	pfree(text.data);
	return written;
}

/*
 * A list of an earlier attempt says nothing any more.
 */
void
torn_list_remove(void)
{
	if (unlink(TORN_LIST_FILE) != 0 && errno != ENOENT)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", TORN_LIST_FILE)));
}
