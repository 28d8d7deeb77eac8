/*-------------------------------------------------------------------------
 *
 * views.c
 *	  What SQL shows of the log.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/views.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "flashback_log.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/pg_lsn.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/xid8.h"

PG_FUNCTION_INFO_V1(polar_stat_get_flashback_log);
PG_FUNCTION_INFO_V1(polar_flashback_log_get_points);
PG_FUNCTION_INFO_V1(polar_flashback_log_get_images);
PG_FUNCTION_INFO_V1(polar_flashback_log_page);
PG_FUNCTION_INFO_V1(polar_flashback_log_verify);

static void
require_enabled(void)
{
	if (!flashback_log_enabled)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the flashback log is switched off"),
				 errhint("Set polar_enable_flashback_log to on and restart the server.")));
}

static uint64
size_of_segments(uint64 first, uint64 position)
{
	uint64		total = 0;

	for (uint64 s = first; s <= position / FLASHBACK_LOG_SEGMENT_SIZE; s++)
	{
		char		path[MAXPGPATH];
		struct stat st;

		flashback_log_segment_path(path, s);
		if (stat(path, &st) == 0)
			total += st.st_size;
	}
	return total;
}

/*
 * The newest moment that can be gone back to.  On a standby that is not now:
 * only what is before a commit that was replayed is known to be complete.
 */
static TimestampTz
newest_moment(void)
{
	TimestampTz latest;

	if (!RecoveryInProgress())
		return GetCurrentTimestamp();
	latest = GetLatestXTime();
	return latest == 0 ? DT_NOBEGIN : latest - 1;
}

/*
 * What version 1.2 of the extension has added: the newest moment, and what has
 * made the window shorter than its time says.
 */
static int
add_bounds(Datum *values, bool *nulls, bool any, TimestampTz oldest)
{
	FlashbackLogShared *shared = flashback_log_shared;
	TimestampTz newest = newest_moment();
	char		why[sizeof(shared->why_shortened)];
	TimestampTz shortened_at;
	uint64		shortened;
	int			i = 0;

	SpinLockAcquire(&shared->mutex);
	memcpy(why, shared->why_shortened, sizeof(why));
	shortened_at = shared->shortened_at;
	shortened = shared->shortened;
	SpinLockRelease(&shared->mutex);
	nulls[i] = (!any || newest < oldest);
	values[i++] = TimestampTzGetDatum(newest);
	values[i++] = Int64GetDatum(shortened);
	nulls[i] = (shortened == 0);
	values[i++] = TimestampTzGetDatum(shortened_at);
	nulls[i] = (shortened == 0);
	values[i++] = CStringGetTextDatum(why);
	return i;
}

/*
 * The state of the log, its window and its statistics.
 */
Datum
polar_stat_get_flashback_log(PG_FUNCTION_ARGS)
{
	FlashbackLogShared *shared = flashback_log_shared;
	TupleDesc	desc;
	Datum		values[40];
	bool		nulls[40] = {0};
	FlashbackPoint first = {0},
				last = {0},
				before = {0};
	TimestampTz window_began;
	TimestampTz ended_at;
	uint64		windows_ended;
	uint64		position;
	uint64		first_segment;
	int64		recycled_files;
	int64		recycled_bytes;
	char		why[sizeof(shared->why)];
	bool		broken;
	int			npoints;
	int			i = 0;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_SHARED);
	SpinLockAcquire(&shared->mutex);
	broken = shared->broken;
	position = shared->insert_position;
	windows_ended = shared->windows_ended;
	ended_at = shared->ended_at;
	memcpy(why, shared->why, sizeof(why));
	SpinLockRelease(&shared->mutex);
	npoints = broken ? 0 : shared->npoints;
	window_began = shared->window_began;
	first_segment = shared->first_segment;
	if (npoints > 0)
	{
		first = shared->points[0];
		last = shared->points[npoints - 1];
	}
	if (npoints > 1)
		before = shared->points[npoints - 2];
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));

	values[i++] = CStringGetTextDatum(!flashback_log_enabled ? "off" :
									  npoints == 0 ? "waiting" : "on");
	values[i++] = CStringGetTextDatum(flashback_log_mode_names[flashback_log_mode]);
	nulls[i] = (npoints == 0);
	values[i++] = TimestampTzGetDatum(first.time);
	nulls[i] = (npoints == 0);
	values[i++] = LSNGetDatum(first.lsn);
	nulls[i] = (npoints == 0);
	values[i++] = LSNGetDatum(first.redo);
	nulls[i] = (npoints == 0);
	values[i++] = TimestampTzGetDatum(last.time);
	values[i++] = Int32GetDatum(npoints);
	nulls[i] = (npoints == 0);
	values[i++] = TimestampTzGetDatum(window_began);
	values[i++] = Int64GetDatum(windows_ended);
	nulls[i] = (windows_ended == 0);
	values[i++] = TimestampTzGetDatum(ended_at);
	nulls[i] = (windows_ended == 0);
	values[i++] = CStringGetTextDatum(why);
	values[i++] = Int64GetDatum(flashback_log_enabled ? size_of_segments(first_segment, position) : 0);
	nulls[i] = (npoints < 2 || last.time <= before.time);
	values[i] = nulls[i] ? (Datum) 0 :
		Float8GetDatum((last.position - before.position) / ((last.time - before.time) / (float8) USECS_PER_SEC));
	i++;
	values[i++] = Int64GetDatum(pg_atomic_read_u64(&shared->looks));
	values[i++] = Int64GetDatum(pg_atomic_read_u64(&shared->images));
	values[i++] = Int64GetDatum(pg_atomic_read_u64(&shared->zeroes));
	values[i++] = Int64GetDatum(pg_atomic_read_u64(&shared->unreadable));
	values[i++] = Int64GetDatum(pg_atomic_read_u64(&shared->raw_bytes));
	values[i++] = Int64GetDatum(pg_atomic_read_u64(&shared->bytes));
	values[i++] = Float8GetDatum(pg_atomic_read_u64(&shared->capture_us) / 1000.0);
	values[i++] = Int64GetDatum(pg_atomic_read_u64(&shared->syncs));
	values[i++] = Float8GetDatum(pg_atomic_read_u64(&shared->sync_us) / 1000.0);
	values[i++] = Int64GetDatum(pg_atomic_read_u64(&shared->failures));
	SpinLockAcquire(&shared->mutex);
	recycled_files = shared->recycled_files;
	recycled_bytes = shared->recycled_bytes;
	SpinLockRelease(&shared->mutex);
	values[i++] = Int64GetDatum(recycled_files);
	values[i++] = Int64GetDatum(recycled_bytes);

	i += add_bounds(values + i, nulls + i, npoints > 0, first.time);
	Assert(i >= desc->natts);

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/*
 * The points of the window.
 */
Datum
polar_flashback_log_get_points(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	FlashbackLogShared *shared = flashback_log_shared;
	FlashbackPoint *points = palloc(sizeof(shared->points));
	bool		broken;
	int			npoints;

	InitMaterializedSRF(fcinfo, 0);
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_SHARED);
	SpinLockAcquire(&shared->mutex);
	broken = shared->broken;
	SpinLockRelease(&shared->mutex);
	npoints = broken ? 0 : shared->npoints;
	memcpy(points, shared->points, npoints * sizeof(FlashbackPoint));
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));

	for (int k = 0; k < npoints; k++)
	{
		Datum		values[9];
		bool		nulls[9] = {0};
		int			i = 0;

		values[i++] = Int64GetDatum(points[k].number);
		values[i++] = TimestampTzGetDatum(points[k].time);
		values[i++] = LSNGetDatum(points[k].lsn);
		values[i++] = LSNGetDatum(points[k].redo);
		values[i++] = Int32GetDatum(points[k].timeline);
		values[i++] = LSNGetDatum(points[k].position);
		values[i++] = FullTransactionIdGetDatum(points[k].next_xid);
		values[i++] = TransactionIdGetDatum(points[k].oldest_xid);
		values[i++] = TransactionIdGetDatum(points[k].oldest_multi);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

static void
require_point(const FlashbackPoint *point)
{
	if (!flashback_log_api.is_complete(point))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no flashback point %" PRId64, (int64) point->number)));
}

static void
get_point(int64 number, FlashbackPoint *point)
{
	FlashbackLogShared *shared = flashback_log_shared;
	bool		found = false;

	require_enabled();
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_SHARED);
	for (int i = 0; i < shared->npoints && !found; i++)
		if (shared->points[i].number == (uint64) number)
		{
			*point = shared->points[i];
			found = true;
		}
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	if (!found)
		point->number = number;
	require_point(point);
}

typedef struct RelationImages
{
	RelFileLocator rlocator;	/* hash key, must be first */
	int64		images;
	int64		unreadable;
} RelationImages;

/*
 * How many images there are since a point, for each relation.
 */
Datum
polar_flashback_log_get_images(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HASHCTL		ctl = {.keysize = sizeof(RelFileLocator),.entrysize = sizeof(RelationImages)};
	HTAB	   *relations;
	HASH_SEQ_STATUS status;
	RelationImages *entry;
	FlashbackPoint point;
	FlashbackImages *images;
	FlashbackImage image;

	InitMaterializedSRF(fcinfo, 0);
	get_point(PG_GETARG_INT64(0), &point);
	relations = hash_create("images of relations", 256, &ctl, HASH_ELEM | HASH_BLOBS);
	images = flashback_log_api.begin_images(&point, NULL);
	while (flashback_log_api.next_image(images, &image))
	{
		bool		found;

		entry = hash_search(relations, &image.rlocator, HASH_ENTER, &found);
		if (!found)
			entry->images = entry->unreadable = 0;
		if (image.kind == FLASHBACK_IMAGE_PAGE)
			entry->images++;
		else
			entry->unreadable++;
	}
	flashback_log_api.end_images(images);
	require_point(&point);

	hash_seq_init(&status, relations);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		Datum		values[5];
		bool		nulls[5] = {0};

		values[0] = ObjectIdGetDatum(entry->rlocator.spcOid);
		values[1] = ObjectIdGetDatum(entry->rlocator.dbOid);
		values[2] = ObjectIdGetDatum(entry->rlocator.relNumber);
		values[3] = Int64GetDatum(entry->images);
		values[4] = Int64GetDatum(entry->unreadable);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * The first image of a block after a point, NULL if there is none.
 */
Datum
polar_flashback_log_page(PG_FUNCTION_ARGS)
{
	Relation	rel;
	RelFileLocator rlocator;
	int64		blkno = PG_GETARG_INT64(1);
	FlashbackPoint point;
	bytea	   *page;

	get_point(PG_GETARG_INT64(2), &point);
	if (blkno < 0 || blkno > MaxBlockNumber)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid block number %" PRId64, blkno)));
	rel = relation_open(PG_GETARG_OID(0), AccessShareLock);
	rlocator = rel->rd_locator;
	relation_close(rel, AccessShareLock);

	page = palloc(VARHDRSZ + BLCKSZ);
	SET_VARSIZE(page, VARHDRSZ + BLCKSZ);
	switch (flashback_log_api.first_image(&point, &rlocator, blkno, VARDATA(page)))
	{
		case FLASHBACK_IMAGE_PAGE:
			PG_RETURN_BYTEA_P(page);
		case FLASHBACK_IMAGE_UNREADABLE:
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("block %" PRId64 " could not be read when it was overwritten", blkno)));
		case FLASHBACK_IMAGE_NONE:
			break;
	}
	/* It may have been removed while it was looked for */
	require_point(&point);
	PG_RETURN_NULL();
}

/*
 * Reads every segment, not through indexes.
 */
Datum
polar_flashback_log_verify(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	FlashbackLogShared *shared = flashback_log_shared;
	uint64		first;
	uint64		position;

	InitMaterializedSRF(fcinfo, 0);
	require_enabled();
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_SHARED);
	first = shared->first_segment;
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	SpinLockAcquire(&shared->mutex);
	position = shared->insert_position;
	SpinLockRelease(&shared->mutex);

	for (uint64 s = first; s * FLASHBACK_LOG_SEGMENT_SIZE < position; s++)
	{
		FlashbackLogScan scan;
		const FlashbackLogRecord *record;
		Datum		values[5];
		bool		nulls[5] = {0};
		char		path[MAXPGPATH];
		int64		records = 0;
		int64		bytes = 0;

		if (flashback_log_scan_open(&scan, s))
		{
			while ((record = flashback_log_scan_next(&scan)) != NULL)
			{
				records++;
				bytes += flashback_log_record_size(record);
			}
			flashback_log_scan_close(&scan);
		}
		flashback_log_segment_path(path, s);
		values[0] = CStringGetTextDatum(path + strlen(FLASHBACK_LOG_DIR) + 1);
		values[1] = Int64GetDatum(records);
		values[2] = Int64GetDatum(bytes);
		values[3] = BoolGetDatum(flashback_log_has_index(s));
		nulls[4] = (scan.damage[0] == '\0');
		values[4] = CStringGetTextDatum(scan.damage);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
