/*-------------------------------------------------------------------------
 *
 * recycle_reader.c
 *	  Reads kept files, for other modules and SQL.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/recycle_reader.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "flashback_log.h"
#include "fmgr.h"
#include "funcapi.h"
#include "storage/bufpage.h"
#include "storage/fd.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(polar_flashback_log_get_recycled);

/*
 * Both files are the (sub)transaction's, and with the first one the lock goes.
 */
struct FlashbackKept
{
	FlashbackKeptName name;
	FlashbackKeptFile file;
	int			lock_fd;		/* the descriptor */
	int			fd;				/* the segment read last, or -1 */
	BlockNumber segno;
};

/*
 * Opens a kept file's descriptor and locks it; -1 if it is gone, or goes.
 */
static int
open_descriptor(const FlashbackKeptName *name, FlashbackKeptFile *file)
{
	char		path[MAXPGPATH];
	struct stat st;
	int			fd;

	flashback_recycle_path(path, name, FLASHBACK_RECYCLE_DESCRIPTOR);
	fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
	if (fd < 0)
	{
		if (errno != ENOENT)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not open file \"%s\": %m", path)));
		return -1;
	}
	if (flock(fd, LOCK_SH | LOCK_NB) != 0 || fstat(fd, &st) != 0 || st.st_nlink == 0)
	{
		CloseTransientFile(fd);
		return -1;
	}
	if (!flashback_recycle_read_descriptor(fd, name, file))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the descriptor \"%s\" of a kept file is damaged", path)));
	return fd;
}

static FlashbackKeptFile *
list_kept(int *nfiles)
{
	FlashbackKeptName *names;
	FlashbackKeptFile *files;
	int			n;

	*nfiles = 0;
	names = flashback_recycle_list(&n);
	files = palloc_array(FlashbackKeptFile, Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		int			fd = open_descriptor(&names[i], &files[*nfiles]);

		if (fd < 0)
			continue;
		CloseTransientFile(fd);
		(*nfiles)++;
	}
	pfree(names);
	return files;
}

static FlashbackKept *
open_kept(const RelFileLocator *rlocator, XLogRecPtr lsn, FlashbackKeptFile *file)
{
	FlashbackKeptName name;
	FlashbackKept *kept;

	/* The first that was deleted after the position is it */
	if (!flashback_recycle_find(rlocator, lsn, &name) ||
		flashback_log_purged_before(rlocator) >= name.commit_lsn)
		return NULL;
	kept = palloc(sizeof(FlashbackKept));
	kept->name = name;
	kept->fd = -1;
	kept->segno = InvalidBlockNumber;
	kept->lock_fd = open_descriptor(&name, &kept->file);
	if (kept->lock_fd < 0)
	{
		/* A later one is another relation's with the same number */
		pfree(kept);
		return NULL;
	}
	if (file)
		*file = kept->file;
	return kept;
}

static void
read_kept(FlashbackKept *kept, BlockNumber blkno, char *page)
{
	BlockNumber segno = blkno / RELSEG_SIZE;
	char		path[MAXPGPATH];
	ssize_t		n;

	if (blkno >= kept->file.nblocks)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("block %u is not in the kept file of relation %u, which has %u blocks",
						blkno, kept->file.rlocator.relNumber, kept->file.nblocks)));

	flashback_recycle_segment_path(path, &kept->name, segno);
	if (kept->segno != segno || kept->fd < 0)
	{
		if (kept->fd >= 0)
			CloseTransientFile(kept->fd);
		kept->fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
		if (kept->fd < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not open file \"%s\": %m", path)));
		kept->segno = segno;
	}
	n = pg_pread(kept->fd, page, BLCKSZ, (off_t) (blkno % RELSEG_SIZE) * BLCKSZ);
	if (n < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read block %u in file \"%s\": %m", blkno, path)));
	if (n != BLCKSZ || !PageIsVerified((Page) page, blkno, 0, NULL))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("invalid page in block %u of kept file \"%s\"", blkno, path)));
}

static void
close_kept(FlashbackKept *kept)
{
	if (kept->fd >= 0)
		CloseTransientFile(kept->fd);
	CloseTransientFile(kept->lock_fd);
	pfree(kept);
}

const FlashbackRecycleApi flashback_recycle_api = {
	.list = list_kept,
	.open = open_kept,
	.read = read_kept,
	.close = close_kept,
};

/*
 * The kept files.
 */
Datum
polar_flashback_log_get_recycled(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	FlashbackPoint oldest;
	FlashbackKeptFile *files;
	bool		window;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	if (!flashback_log_enabled)
		return (Datum) 0;
	window = flashback_log_oldest_point(&oldest);
	files = list_kept(&n);
	for (int k = 0; k < n; k++)
	{
		Datum		values[7];
		bool		nulls[7] = {0};
		int			i = 0;

		values[i++] = ObjectIdGetDatum(files[k].rlocator.spcOid);
		values[i++] = ObjectIdGetDatum(files[k].rlocator.dbOid);
		values[i++] = ObjectIdGetDatum(files[k].rlocator.relNumber);
		values[i++] = TimestampTzGetDatum(files[k].dropped_at);
		values[i++] = LSNGetDatum(files[k].commit_lsn);
		values[i++] = Int64GetDatum((int64) files[k].nblocks * BLCKSZ);
		nulls[i] = !window || oldest.lsn >= files[k].commit_lsn;
		values[i++] = TimestampTzGetDatum(oldest.time);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
