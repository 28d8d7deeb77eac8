/*-------------------------------------------------------------------------
 *
 * flashback_oracle.c
 *		Compares what the flashback log gives with what was on disk.
 *
 * At each point, while nobody may write, the files of relations are copied.
 * Later each block of the copy is compared with its first image since then,
 * or with the file if there is none.
 *
 * engine/testkit/modules/flashback_oracle/flashback_oracle.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/relation.h"
#include "catalog/pg_tablespace_d.h"
#include "flashback_log_api.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufpage.h"
#include "storage/fd.h"
#include "storage/smgr.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/injection_point.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(flashback_oracle_record);
PG_FUNCTION_INFO_V1(flashback_oracle_check);
PG_FUNCTION_INFO_V1(flashback_oracle_overwrite);
PG_FUNCTION_INFO_V1(flashback_oracle_hold);

extern PGDLLEXPORT void flashback_oracle_copy(const char *name, const void *directory, void *arg);

/*
 * At a point: copies the files of relations.  One that goes away meanwhile is
 * not missed.
 */
void
flashback_oracle_copy(const char *name, const void *directory, void *arg)
{
	const FlashbackPoint *point = arg;
	char		command[MAXPGPATH * 3];

	snprintf(command, sizeof(command),
			 "mkdir -p '%s/%" PRId64 "' && cp -r base '%s/%" PRId64 "/' 2>/dev/null",
			 (const char *) directory, point->time,
			 (const char *) directory, point->time);
	(void) !system(command);
}

/*
 * From now on files are copied below this directory at each point.
 */
Datum
flashback_oracle_record(PG_FUNCTION_ARGS)
{
	char	   *directory = text_to_cstring(PG_GETARG_TEXT_PP(0));

	InjectionPointAttach("flashback-log-point", "flashback_oracle",
						 "flashback_oracle_copy", directory, strlen(directory) + 1);
	PG_RETURN_VOID();
}

typedef struct FirstImage
{
	BlockNumber blkno;			/* hash key, must be first */
	FlashbackImage image;
} FirstImage;

static const FlashbackLogApi *
get_api(void)
{
	const FlashbackLogApi *api = *find_rendezvous_variable(FLASHBACK_LOG_API);

	if (api == NULL)
		elog(ERROR, "flashback_log is not loaded");
	return api;
}

static HTAB *
first_images(const FlashbackPoint *point, const RelFileLocator *rlocator)
{
	const FlashbackLogApi *api = get_api();
	HASHCTL		ctl = {.keysize = sizeof(BlockNumber),.entrysize = sizeof(FirstImage)};
	HTAB	   *result = hash_create("first images", 1024, &ctl, HASH_ELEM | HASH_BLOBS);
	FlashbackImages *images = api->begin_images(point, rlocator);
	FlashbackImage image;

	while (api->next_image(images, &image))
	{
		bool		found;
		FirstImage *first = hash_search(result, &image.blkno, HASH_ENTER, &found);

		if (!found)
			first->image = image;
	}
	api->end_images(images);
	return result;
}

static bool
is_zero(const char *page)
{
	for (int i = 0; i < BLCKSZ; i++)
		if (page[i] != 0)
			return false;
	return true;
}

/*
 * Compares the files of this database as they were at a point, given by its
 * position, with what the log and the files of now give, those of deleted
 * relations too if they were kept.  No other session may write.
 */
Datum
flashback_oracle_check(PG_FUNCTION_ARGS)
{
	char	   *directory = text_to_cstring(PG_GETARG_TEXT_PP(0));
	uint64		number = PG_GETARG_INT64(1);
	XLogRecPtr	lsn = PG_GETARG_INT64(2);
	const FlashbackLogApi *api = get_api();
	FlashbackPoint point;
	TupleDesc	desc;
	Datum		values[6];
	bool		nulls[6] = {0};
	int64		blocks = 0,
				from_log = 0,
				from_kept = 0,
				late = 0,
				wrong = 0;
	char		first_wrong[256] = "";
	char		path[MAXPGPATH];
	DIR		   *dir;
	struct dirent *de;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (!api->find_point_lsn(lsn, &point) || point.number != number)
		elog(ERROR, "no point %" PRIu64, number);

	snprintf(path, sizeof(path), "%s/%" PRId64 "/base/%u", directory, point.time, MyDatabaseId);
	dir = AllocateDir(path);
	while ((de = ReadDir(dir, path)) != NULL)
	{
		char		file[MAXPGPATH * 2];
		char		now_file[MAXPGPATH * 2];
		struct stat st;
		RelFileLocator rlocator;
		HTAB	   *images;
		int			was_fd,
					now_fd;
		FlashbackKept *kept = NULL;
		FlashbackKeptFile kept_file;
		BlockNumber blkno = 0;
		PGAlignedBlock was,
					base;

		if (strspn(de->d_name, "0123456789") != strlen(de->d_name))
			continue;
		snprintf(file, sizeof(file), "%s/%s_init", path, de->d_name);
		if (stat(file, &st) == 0)
			continue;			/* unlogged */
		snprintf(file, sizeof(file), "%s/%s", path, de->d_name);
		snprintf(now_file, sizeof(now_file), "base/%u/%s", MyDatabaseId, de->d_name);
		rlocator.spcOid = DEFAULTTABLESPACE_OID;
		rlocator.dbOid = MyDatabaseId;
		rlocator.relNumber = strtoul(de->d_name, NULL, 10);

		/* An empty file of a deleted relation keeps its number from reuse */
		now_fd = OpenTransientFile(now_file, O_RDONLY | PG_BINARY);
		if (now_fd >= 0 && (fstat(now_fd, &st) != 0 || st.st_size == 0))
		{
			CloseTransientFile(now_fd);
			now_fd = -1;
		}
		if (now_fd < 0)
		{
			kept = api->recycle->open(&rlocator, point.lsn, &kept_file);
			if (kept == NULL)
				continue;
		}
		was_fd = OpenTransientFile(file, O_RDONLY | PG_BINARY);
		if (was_fd < 0)
			elog(ERROR, "could not open %s: %m", file);

		images = first_images(&point, &rlocator);

		for (; pg_pread(was_fd, was.data, BLCKSZ, (off_t) blkno * BLCKSZ) == BLCKSZ; blkno++)
		{
			FirstImage *first;
			bool		on_disk = false,
						looked_again = false;

			CHECK_FOR_INTERRUPTS();
			blocks++;
	again:
			first = hash_search(images, &blkno, HASH_FIND, NULL);
			memset(base.data, 0, BLCKSZ);
			if (first)
			{
				from_log++;
				if (first->image.kind == FLASHBACK_IMAGE_PAGE)
					api->read_image(&first->image, base.data);
			}
			else if (kept && blkno < kept_file.nblocks)
			{
				api->recycle->read(kept, blkno, base.data);
				on_disk = PageGetLSN((Page) base.data) <= point.lsn;
				if (on_disk)
					from_kept++;
				else
					memset(base.data, 0, BLCKSZ);
			}
			else if (now_fd >= 0 &&
					 pg_pread(now_fd, base.data, BLCKSZ, (off_t) blkno * BLCKSZ) == BLCKSZ &&
					 PageGetLSN((Page) base.data) <= point.lsn)
				on_disk = true;
			else
				memset(base.data, 0, BLCKSZ);

			if (memcmp(base.data, was.data, BLCKSZ) == 0)
				continue;

			/*
			 * A block that held nothing was first written after the point,
			 * with changes from before it or, while its file was copied, from
			 * after it.
			 */
			if ((is_zero(was.data) && PageGetLSN((Page) base.data) <= point.lsn) ||
				(!first && PageGetLSN((Page) was.data) > point.lsn))
			{
				late++;
				continue;
			}

			/*
			 * A checkpoint may have overwritten it since the images were
			 * listed; then its image is in the log by now.
			 */
			if (!first && !looked_again)
			{
				looked_again = true;
				hash_destroy(images);
				images = first_images(&point, &rlocator);
				goto again;
			}
			if (wrong++ == 0)
				snprintf(first_wrong, sizeof(first_wrong),
						 "block %u of %s: %s, lsn %X/%08X, was %X/%08X",
						 blkno, de->d_name,
						 first ? "image" : on_disk ? "disk" : "nothing",
						 LSN_FORMAT_ARGS(PageGetLSN((Page) base.data)),
						 LSN_FORMAT_ARGS(PageGetLSN((Page) was.data)));
		}
		hash_destroy(images);
		CloseTransientFile(was_fd);
		if (now_fd >= 0)
			CloseTransientFile(now_fd);
		if (kept)
			api->recycle->close(kept);
	}
	FreeDir(dir);
	if (!api->is_complete(&point))
		elog(ERROR, "point %" PRIu64 " is gone", number);

	values[0] = Int64GetDatum(blocks);
	values[1] = Int64GetDatum(from_log);
	values[2] = Int64GetDatum(late);
	values[3] = Int64GetDatum(wrong);
	values[4] = CStringGetTextDatum(first_wrong);
	values[5] = Int64GetDatum(from_kept);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/*
 * Writes a block as it is, past the log.
 */
Datum
flashback_oracle_overwrite(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessExclusiveLock);
	PGIOAlignedBlock page;

	smgrread(RelationGetSmgr(rel), MAIN_FORKNUM, PG_GETARG_INT64(1), page.data);
	smgrwrite(RelationGetSmgr(rel), MAIN_FORKNUM, PG_GETARG_INT64(1), page.data, false);
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}

/*
 * Reads all blocks of a kept file of this database, with a stop after the
 * first one; returns how many there are.
 */
Datum
flashback_oracle_hold(PG_FUNCTION_ARGS)
{
	const FlashbackLogApi *api = get_api();
	RelFileLocator rlocator = {DEFAULTTABLESPACE_OID, MyDatabaseId, PG_GETARG_OID(0)};
	FlashbackKeptFile file;
	FlashbackKept *kept = api->recycle->open(&rlocator, InvalidXLogRecPtr, &file);
	PGAlignedBlock page;

	if (kept == NULL)
		elog(ERROR, "relation %u is not kept", rlocator.relNumber);
	for (BlockNumber blkno = 0; blkno < file.nblocks; blkno++)
	{
		api->recycle->read(kept, blkno, page.data);
		if (blkno == 0)
			INJECTION_POINT("flashback-oracle-hold", NULL);
	}
	api->recycle->close(kept);
	PG_RETURN_INT64(file.nblocks);
}
