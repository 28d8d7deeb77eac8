/*-------------------------------------------------------------------------
 *
 * reserve.c
 *	  Gives up the oldest of the window before a file system is full.
 *
 * Nothing that the window keeps may stop the server: on each file system that
 * has some of it, as much as polar_flashback_reserve says is left to others.
 * Kept files go first, as that is what somebody who drops a table on a disk
 * that is nearly full expects, then points with their images and WAL.  WAL goes
 * in checkpoints, so the rule holds there as well as in the worker's turns.
 *
 * File systems are looked at without any lock, and never in a critical section.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/reserve.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogarchive.h"
#include "access/xlogrecovery.h"
#include "flashback_log.h"
#include "miscadmin.h"
#include "postmaster/bgwriter.h"
#include "postmaster/walsummarizer.h"
#include "replication/slot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define MEGABYTE ((uint64) 1024 * 1024)

/* What is left of each file system if nobody says how much */
#define AUTOMATIC_PART 10
#define AUTOMATIC_LIMIT (4096 * MEGABYTE)

/* Until a checkpoint that did not complete is requested again */
#define ASK_AGAIN_MS 60000

/* The server log is told once of what goes on for longer */
#define TELL_AGAIN_MS 600000

/* A file system that has something of the window */
typedef struct FileSystem
{
	dev_t		device;
	char	   *place;			/* a directory of it */
	uint64		available;
	uint64		reserve;
	bool		has_wal;		/* that the window keeps */
	bool		has_log;
} FileSystem;

/*
 * What is to be left of a file system of this size; never most of it.
 */
static uint64
reserve_of(uint64 size)
{
	if (flashback_log_reserve >= 0)
		return Min((uint64) flashback_log_reserve * MEGABYTE, size / 2);
	return Min(size / AUTOMATIC_PART, AUTOMATIC_LIMIT);
}

/*
 * The file system of a directory, which is added to the list unless it is
 * there; NULL if it tells nothing.
 */
static FileSystem *
look(List **systems, const char *path)
{
	FileSystem *system;
	struct statvfs fs;
	struct stat st;

	if (stat(path, &st) != 0)
		return NULL;
	foreach_ptr(FileSystem, known, *systems)
	{
		if (known->device == st.st_dev)
			return known;
	}
	if (statvfs(path, &fs) != 0 || fs.f_blocks == 0)
		return NULL;
	system = palloc0(sizeof(FileSystem));
	system->device = st.st_dev;
	system->place = pstrdup(path);
	system->available = (uint64) fs.f_bavail * fs.f_frsize;
	system->reserve = reserve_of((uint64) fs.f_blocks * fs.f_frsize);
	*systems = lappend(*systems, system);
	return system;
}

static void
look_at_area(const char *path, void *arg)
{
	(void) look(arg, path);
}

/*
 * All file systems that have something of the window.
 */
static List *
look_at_all(void)
{
	List	   *systems = NIL;
	FileSystem *system;

	if (flashback_log_keep_recovery_area && (system = look(&systems, XLOGDIR)) != NULL)
		system->has_wal = true;
	if ((system = look(&systems, FLASHBACK_LOG_DIR)) != NULL)
		system->has_log = true;
	flashback_recycle_visit_areas(look_at_area, &systems);
	return systems;
}

/*
 * The points of the window, oldest first; none if it has ended.
 */
static FlashbackPoint *
copy_points(int *npoints)
{
	FlashbackLogShared *shared = flashback_log_shared;
	FlashbackPoint *points = palloc(sizeof(shared->points));
	bool		broken;

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_SHARED);
	SpinLockAcquire(&shared->mutex);
	broken = shared->broken;
	SpinLockRelease(&shared->mutex);
	*npoints = broken ? 0 : shared->npoints;
	memcpy(points, shared->points, *npoints * sizeof(FlashbackPoint));
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	return points;
}

/*
 * The position from which on WAL stays whatever the window needs: giving up
 * points brings nothing that a slot or the archiver holds.
 */
static XLogRecPtr
held_by_others(const FlashbackPoint *oldest, XLogRecPtr here)
{
	XLogRecPtr	held = here;
	XLogRecPtr	keep = XLogGetReplicationSlotMinimumLSN();
	uint64		limit = (uint64) Max(max_slot_wal_keep_size_mb, 0) * MEGABYTE;
	char		name[MAXFNAMELEN];
	char		path[MAXPGPATH];
	XLogSegNo	segno;
	struct stat st;

	if (!XLogRecPtrIsInvalid(keep) && keep < held)
		held = keep;
	if (max_slot_wal_keep_size_mb >= 0 && here - held > limit)
		held = here - limit;
	keep = GetOldestUnsummarizedLSN(NULL, NULL);
	if (!XLogRecPtrIsInvalid(keep) && keep < held)
		held = keep;
	limit = (uint64) wal_keep_size_mb * MEGABYTE;
	if (here - held < limit)
		held = here > limit ? here - limit : 0;

	XLByteToSeg(oldest->redo, segno, wal_segment_size);
	XLogFileName(name, oldest->timeline, segno, wal_segment_size);
	StatusFilePath(path, name, ".ready");
	if (stat(path, &st) == 0)
		held = Min(held, oldest->redo);
	return held;
}

/*
 * WAL from before a position that is still there: a checkpoint removes it.
 */
static uint64
wal_before(XLogRecPtr position, TimeLineID timeline)
{
	XLogSegNo	oldest = XLogGetOldestSegno(timeline);
	XLogSegNo	segno;

	XLByteToSeg(position, segno, wal_segment_size);
	return oldest > 0 && oldest < segno ? (segno - oldest) * wal_segment_size : 0;
}

/*
 * Has a checkpoint give WAL back, now.  One at a time: what the last one will
 * give back is not there before it is complete.
 */
static void
request_removal(void)
{
	static TimestampTz asked_at = 0;
	static XLogRecPtr asked_with = InvalidXLogRecPtr;
	TimestampTz now = GetCurrentTimestamp();
	XLogRecPtr	completed;
	TimeLineID	timeline;

	/* At the end of one this is just what happens; redo has no use for one */
	if (AmCheckpointerProcess() ||
		(RecoveryInProgress() && GetRecoveryState() != RECOVERY_STATE_ARCHIVE))
		return;
	GetOldestRestartPoint(&completed, &timeline);
	if (completed == asked_with && !TimestampDifferenceExceeds(asked_at, now, ASK_AGAIN_MS))
		return;
	asked_at = now;
	asked_with = completed;
	RequestCheckpoint(CHECKPOINT_CAUSE_TIME | CHECKPOINT_FORCE | CHECKPOINT_IMMEDIATE);
}

/*
 * How many points may go: the one of the last complete checkpoint stays, as a
 * crash would end the window without it.
 */
static int
points_to_spare(const FlashbackPoint *points, int npoints)
{
	int			most = npoints - flashback_log_least_points();
	XLogRecPtr	completed;
	TimeLineID	timeline;

	GetOldestRestartPoint(&completed, &timeline);
	for (int n = 0; n < most; n++)
		if (points[n].redo == completed)
			most = n;
	return most;
}

/*
 * Gives up the oldest points for so many bytes of a file system; returns how
 * many.  If less is to be had, no more points go than bring what there is.
 */
static int
give_up_points(const FileSystem *system, uint64 missing)
{
	int			npoints;
	FlashbackPoint *points = copy_points(&npoints);
	int			most = points_to_spare(points, npoints);
	XLogRecPtr	here = RecoveryInProgress() ? GetXLogReplayRecPtr(NULL) : GetXLogInsertRecPtr();
	XLogRecPtr	held = InvalidXLogRecPtr;
	uint64		wal = 0;		/* that the next checkpoint gives back */
	uint64		log = 0;
	uint64		gained;
	int			surplus = 0;

	if (npoints == 0)
		return 0;
	if (system->has_wal)
	{
		held = held_by_others(&points[0], here);
		wal = wal_before(Min(points[0].redo, held), points[0].timeline);
	}
	gained = wal;
	for (int n = 1; n <= most && gained < missing; n++)
	{
		if (system->has_wal)
			wal += Min(points[n].redo, held) - Min(points[n - 1].redo, held);
		if (system->has_log)
			log += flashback_log_bytes_between(points[n - 1].position, points[n].position);
		if (wal + log > gained)
		{
			gained = wal + log;
			surplus = n;
		}
	}
	if (surplus > 0)
		surplus = flashback_log_give_up_points(points[surplus].number);

	/* A new point needs less WAL than the last one, if that was long ago */
	if (system->has_wal && system->available < system->reserve / 2 &&
		(wal >= wal_segment_size ||
		 (held > points[npoints - 1].redo && held - points[npoints - 1].redo >= system->reserve / 4)))
		request_removal();
	return surplus;
}

static void
tell(const FileSystem *system, int files, int points)
{
	static TimestampTz told_at = 0;
	TimestampTz now = GetCurrentTimestamp();
	char		why[256];

	snprintf(why, sizeof(why),
			 "%" PRIu64 " MB were left on the file system of \"%.100s\", less than the reserve of %" PRIu64 " MB",
			 system->available / MEGABYTE, system->place, system->reserve / MEGABYTE);
	flashback_log_note_shortened(why);
	if (told_at == 0 || told_at > now || TimestampDifferenceExceeds(told_at, now, TELL_AGAIN_MS))
		ereport(LOG,
				(errmsg("the window of the flashback log gets shorter for want of space"),
				 errdetail("%s: given up were %d kept files of deleted relations and %d points.", why, files, points),
				 errhint("See polar_flashback_reserve.")));
	told_at = now;
}

/*
 * Sees to it that each file system keeps its reserve, as far as it is the
 * window that takes its space.
 */
void
flashback_log_keep_reserve(void)
{
	MemoryContext context;
	MemoryContext old_context;

	if (flashback_log_reserve == 0)
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "flashback reserve", ALLOCSET_DEFAULT_SIZES);
	old_context = MemoryContextSwitchTo(context);
	foreach_ptr(FileSystem, system, look_at_all())
	{
		uint64		missing;
		uint64		freed;
		int			files = 0;
		int			points = 0;

		if (system->available >= system->reserve)
			continue;
		missing = system->reserve - system->available;
		freed = flashback_recycle_give_up(system->device, missing, &files);
		if (freed < missing && (system->has_wal || system->has_log))
			points = give_up_points(system, missing - freed);
		if (files > 0 || points > 0)
			tell(system, files, points);
	}
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
}
