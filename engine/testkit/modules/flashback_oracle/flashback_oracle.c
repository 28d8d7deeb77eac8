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
#include "access/xlog.h"
#include "access/xlogreader.h"
#include "access/xlogutils.h"
#include "catalog/pg_tablespace_d.h"
#include "catalog/storage_xlog.h"
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

extern PGDLLEXPORT void flashback_oracle_copy(const char *name, const void *private_data, void *arg);

/*
 * What is copied at a point, and where to: the checkpointer has no database.
 * An injection point has little room for it.
 */
typedef struct Recording
{
	Oid			database;
	char		directory[MAXPGPATH / 2];
} Recording;

/*
 * At a point: copies the files of relations.  One that goes away meanwhile is
 * not missed, which cp says by 1.  A copy that is killed half way, with us, has
 * no name that anybody looks for.
 */
void
flashback_oracle_copy(const char *name, const void *private_data, void *arg)
{
	const Recording *recording = private_data;
	const FlashbackPoint *point = arg;
	char		command[MAXPGPATH * 3];

	snprintf(command, sizeof(command),
			 "cd '%s' && mkdir -p %" PRId64 ".part && { cp -r \"$OLDPWD/base/%u\" %" PRId64 ".part/ 2>/dev/null; "
			 "[ $? -le 1 ] && mv -T %" PRId64 ".part %" PRId64 "; }",
			 recording->directory, point->time, recording->database, point->time, point->time, point->time);
	(void) !system(command);
}

/*
 * From now on the files of this database are copied below this directory at
 * each point.
 */
Datum
flashback_oracle_record(PG_FUNCTION_ARGS)
{
	Recording	recording = {.database = MyDatabaseId};

	if (strlcpy(recording.directory, text_to_cstring(PG_GETARG_TEXT_PP(0)),
				sizeof(recording.directory)) >= sizeof(recording.directory))
		elog(ERROR, "the name of the directory is too long");
	InjectionPointAttach("flashback-log-point", "flashback_oracle",
						 "flashback_oracle_copy", &recording, sizeof(recording));
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

/*
 * The relations of this database that have images since the point, asked for
 * once: to ask for those of each relation reads the log as often as there are
 * relations.
 */
static HTAB *
relations_with_images(const FlashbackPoint *point)
{
	const FlashbackLogApi *api = get_api();
	HASHCTL		ctl = {.keysize = sizeof(RelFileNumber),.entrysize = sizeof(RelFileNumber)};
	HTAB	   *result = hash_create("relations with images", 256, &ctl, HASH_ELEM | HASH_BLOBS);
	FlashbackImages *images = api->begin_images(point, NULL);
	FlashbackImage image;

	while (api->next_image(images, &image))
		if (image.rlocator.dbOid == MyDatabaseId)
			(void) hash_search(result, &image.rlocator.relNumber, HASH_ENTER, NULL);
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

typedef struct Tally
{
	int64		blocks;
	int64		from_log;
	int64		from_kept;
	int64		late;
	int64		wrong;
	char		first_wrong[256];
} Tally;

/* A relation's file as it was, and what gives its blocks now */
typedef struct OldFile
{
	const FlashbackPoint *point;
	RelFileLocator rlocator;
	const char *name;
	int			was_fd;
	int			now_fd;			/* or -1 */
	FlashbackKept *kept;		/* or NULL */
	FlashbackKeptFile kept_file;
	HTAB	   *images;			/* NULL if it has none */
} OldFile;

/* What gave a block */
typedef enum BlockSource
{
	FROM_NOTHING,
	FROM_DISK,
	FROM_KEPT,
	FROM_LOG,
} BlockSource;

static const char *const source_names[] = {
	[FROM_NOTHING] = "nothing",
	[FROM_DISK] = "disk",
	[FROM_KEPT] = "kept file",
	[FROM_LOG] = "image",
};

/*
 * The block as the log and the files of now give it; zeroes if nothing does.
 */
static BlockSource
give_block(const OldFile *file, BlockNumber blkno, char *page)
{
	const FlashbackLogApi *api = get_api();
	FirstImage *first = file->images ? hash_search(file->images, &blkno, HASH_FIND, NULL) : NULL;

	memset(page, 0, BLCKSZ);
	if (first)
	{
		if (first->image.kind == FLASHBACK_IMAGE_PAGE)
			api->read_image(&first->image, page);
		return FROM_LOG;
	}
	if (file->kept && blkno < file->kept_file.nblocks)
	{
		api->recycle->read(file->kept, blkno, page);
		if (PageGetLSN((Page) page) <= file->point->lsn)
			return FROM_KEPT;
	}
	else if (file->now_fd >= 0 &&
			 pg_pread(file->now_fd, page, BLCKSZ, (off_t) blkno * BLCKSZ) == BLCKSZ &&
			 PageGetLSN((Page) page) <= file->point->lsn)
		return FROM_DISK;
	memset(page, 0, BLCKSZ);
	return FROM_NOTHING;
}

/*
 * Whether the relation was created between the point's redo location and the
 * point, so that all that ever happened to it is in the WAL from there on.
 */
static bool
is_created_since_redo(const OldFile *file)
{
	ReadLocalXLogPageNoWaitPrivate private_data = {0};
	XLogReaderState *reader = XLogReaderAllocate(wal_segment_size, NULL,
												 XL_ROUTINE(.page_read = &read_local_xlog_page_no_wait,
															.segment_open = &wal_segment_open,
															.segment_close = &wal_segment_close),
												 &private_data);
	bool		created = false;
	char	   *error = NULL;

	XLogBeginRead(reader, file->point->redo);
	while (!created && reader->EndRecPtr < file->point->lsn && XLogReadRecord(reader, &error) != NULL)
	{
		const xl_smgr_create *create = (const xl_smgr_create *) XLogRecGetData(reader);

		created = XLogRecGetRmid(reader) == RM_SMGR_ID &&
			(XLogRecGetInfo(reader) & ~XLR_INFO_MASK) == XLOG_SMGR_CREATE &&
			create->forkNum == MAIN_FORKNUM &&
			RelFileLocatorEquals(create->rlocator, file->rlocator);
	}
	if (error)
		elog(ERROR, "could not read WAL from %X/%08X on: %s", LSN_FORMAT_ARGS(file->point->redo), error);
	XLogReaderFree(reader);
	return created;
}

/*
 * A block that held nothing was first written after the point, with changes
 * from before it or, while its file was copied, from after it.  One that holds
 * nothing is of a file that a crash's replay has made anew, and deleted before
 * the block was written.
 */
static bool
is_late(const OldFile *file, BlockSource source, const char *was, const char *page)
{
	return (is_zero(was) && PageGetLSN((Page) page) <= file->point->lsn) ||
		(source != FROM_LOG && PageGetLSN((Page) was) > file->point->lsn) ||
		(source == FROM_KEPT && is_zero(page) && is_created_since_redo(file));
}

/*
 * Compares all blocks of a file.
 */
static void
check_file(OldFile *file, Tally *tally)
{
	PGAlignedBlock was,
				page;

	for (BlockNumber blkno = 0;
		 pg_pread(file->was_fd, was.data, BLCKSZ, (off_t) blkno * BLCKSZ) == BLCKSZ; blkno++)
	{
		BlockSource source;

		CHECK_FOR_INTERRUPTS();
		source = give_block(file, blkno, page.data);

		/*
		 * A checkpoint may have overwritten it since the images were listed;
		 * then its image is in the log by now.
		 */
		if (memcmp(page.data, was.data, BLCKSZ) != 0 && source != FROM_LOG &&
			!is_late(file, source, was.data, page.data))
		{
			if (file->images)
				hash_destroy(file->images);
			file->images = first_images(file->point, &file->rlocator);
			source = give_block(file, blkno, page.data);
		}

		tally->blocks++;
		tally->from_log += (source == FROM_LOG);
		tally->from_kept += (source == FROM_KEPT);
		if (memcmp(page.data, was.data, BLCKSZ) == 0)
			continue;
		if (is_late(file, source, was.data, page.data))
			tally->late++;
		else if (tally->wrong++ == 0)
			snprintf(tally->first_wrong, sizeof(tally->first_wrong),
					 "block %u of %s: %s, lsn %X/%08X, was %X/%08X",
					 blkno, file->name, source_names[source],
					 LSN_FORMAT_ARGS(PageGetLSN((Page) page.data)),
					 LSN_FORMAT_ARGS(PageGetLSN((Page) was.data)));
	}
}

/*
 * Compares the file of that name in the copy at the path, unless it was kept
 * nowhere.
 */
static void
check_name(const FlashbackPoint *point, HTAB *have_images, const char *path,
		   const char *name, Tally *tally)
{
	const FlashbackLogApi *api = get_api();
	OldFile		file = {.point = point,.name = name};
	char		was_file[MAXPGPATH * 2];
	char		now_file[MAXPGPATH * 2];
	struct stat st;

	snprintf(was_file, sizeof(was_file), "%s/%s_init", path, name);
	if (stat(was_file, &st) == 0)
		return;					/* unlogged */
	snprintf(was_file, sizeof(was_file), "%s/%s", path, name);
	snprintf(now_file, sizeof(now_file), "base/%u/%s", MyDatabaseId, name);
	file.rlocator.spcOid = DEFAULTTABLESPACE_OID;
	file.rlocator.dbOid = MyDatabaseId;
	file.rlocator.relNumber = strtoul(name, NULL, 10);

	/* An empty file of a deleted relation keeps its number from reuse */
	file.now_fd = OpenTransientFile(now_file, O_RDONLY | PG_BINARY);
	if (file.now_fd >= 0 && (fstat(file.now_fd, &st) != 0 || st.st_size == 0))
	{
		CloseTransientFile(file.now_fd);
		file.now_fd = -1;
	}
	if (file.now_fd < 0)
	{
		file.kept = api->recycle->open(&file.rlocator, point->lsn, &file.kept_file);
		if (file.kept == NULL)
			return;
	}
	file.was_fd = OpenTransientFile(was_file, O_RDONLY | PG_BINARY);
	if (file.was_fd < 0)
		elog(ERROR, "could not open %s: %m", was_file);

	if (hash_search(have_images, &file.rlocator.relNumber, HASH_FIND, NULL))
		file.images = first_images(point, &file.rlocator);
	check_file(&file, tally);
	if (file.images)
		hash_destroy(file.images);
	CloseTransientFile(file.was_fd);
	if (file.now_fd >= 0)
		CloseTransientFile(file.now_fd);
	if (file.kept)
		api->recycle->close(file.kept);
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
	Tally		tally = {0};
	char		path[MAXPGPATH];
	HTAB	   *have_images;
	DIR		   *dir;
	struct dirent *de;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (!api->find_point_lsn(lsn, &point) || point.number != number)
		elog(ERROR, "no point %" PRIu64, number);

	snprintf(path, sizeof(path), "%s/%" PRId64 "/%u", directory, point.time, MyDatabaseId);
	have_images = relations_with_images(&point);
	dir = AllocateDir(path);
	while ((de = ReadDir(dir, path)) != NULL)
		if (strspn(de->d_name, "0123456789") == strlen(de->d_name))
			check_name(&point, have_images, path, de->d_name, &tally);
	FreeDir(dir);
	hash_destroy(have_images);
	if (!api->is_complete(&point))
		elog(ERROR, "point %" PRIu64 " is gone", number);

	values[0] = Int64GetDatum(tally.blocks);
	values[1] = Int64GetDatum(tally.from_log);
	values[2] = Int64GetDatum(tally.late);
	values[3] = Int64GetDatum(tally.wrong);
	values[4] = CStringGetTextDatum(tally.first_wrong);
	values[5] = Int64GetDatum(tally.from_kept);
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
