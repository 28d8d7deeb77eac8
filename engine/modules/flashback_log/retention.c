/*-------------------------------------------------------------------------
 *
 * retention.c
 *	  The worker that keeps the log within its bounds, and what the window
 *	  needs of the rest of the instance: WAL and commit status.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/retention.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/multixact.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "commands/vacuum.h"
#include "flashback_log.h"
#include "miscadmin.h"
#include "postmaster/autovacuum.h"
#include "postmaster/bgworker.h"
#include "postmaster/bgwriter.h"
#include "postmaster/interrupt.h"
#include "replication/slot.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define SPARE FLASHBACK_LOG_DIR "/spare"
#define NEW_SPARE FLASHBACK_LOG_DIR "/spare.new"

/* Of the next segment, before anything is written to the one before */
#define FILL_AT_ONCE (16 * 1024 * 1024)

/* How long the worker sleeps when nobody wakes it */
#define NAP_MS 1000

/* Until a checkpoint is requested again, to begin a window; doubled each time */
#define FIRST_WAIT_MS 5000

/* The most, between attempts to write an index */
#define LAST_WAIT_MS 300000

/* Points that repair may need: the checkpoint that completed, and one after */
#define POINTS_FOR_REPAIR 2

static uint64
active_segment(void)
{
	uint64		position;

	SpinLockAcquire(&flashback_log_shared->mutex);
	position = flashback_log_shared->insert_position;
	SpinLockRelease(&flashback_log_shared->mutex);
	return position / FLASHBACK_LOG_SEGMENT_SIZE;
}

static uint64
file_size(uint64 segment)
{
	char		path[MAXPGPATH];
	struct stat st;

	flashback_log_segment_path(path, segment);
	return stat(path, &st) == 0 ? st.st_size : 0;
}

/*
 * How much the log may take.  With a fast recovery area its points decide, and
 * only the limit of the whole counts.
 */
static uint64
size_limit(void)
{
	uint64		limit = (uint64) flashback_log_keep_segments * FLASHBACK_LOG_SEGMENT_SIZE;
	uint64		max_size = (uint64) flashback_log_max_size * 1024 * 1024;

	if (flashback_log_keep_recovery_area)
		return max_size > 0 ? max_size : PG_UINT64_MAX;
	return max_size > 0 ? Min(limit, max_size) : limit;
}

/*
 * Removes segments and indexes before this one.
 */
static void
remove_segments(uint64 before)
{
	FlashbackLogShared *shared = flashback_log_shared;

	for (; shared->first_segment < before; shared->first_segment++)
	{
		char		path[MAXPGPATH];
		struct stat st;

		flashback_log_index_path(path, shared->first_segment);
		unlink(path);
		flashback_log_segment_path(path, shared->first_segment);
		if (stat(SPARE, &st) != 0 &&
			file_size(shared->first_segment) == FLASHBACK_LOG_SEGMENT_SIZE &&
			rename(path, SPARE) == 0)
			continue;
		unlink(path);
	}
}

/*
 * How many points stay in any case.
 */
int
flashback_log_least_points(void)
{
	return flashback_log_mode == FLASHBACK_LOG_SYNC ? POINTS_FOR_REPAIR : 1;
}

/*
 * What the segments take that the log needs from one position, and not from a
 * later one on.
 */
uint64
flashback_log_bytes_between(uint64 position, uint64 later)
{
	uint64		total = 0;

	for (uint64 s = position / FLASHBACK_LOG_SEGMENT_SIZE; s < later / FLASHBACK_LOG_SEGMENT_SIZE; s++)
		total += file_size(s);
	return total;
}

/*
 * Notes why the window does not reach back as far as its time says.
 */
void
flashback_log_note_shortened(const char *why)
{
	FlashbackLogShared *shared = flashback_log_shared;
	TimestampTz now = GetCurrentTimestamp();

	SpinLockAcquire(&shared->mutex);
	shared->shortened++;
	shared->shortened_at = now;
	strlcpy(shared->why_shortened, why, sizeof(shared->why_shortened));
	SpinLockRelease(&shared->mutex);
}

/*
 * How many of the oldest points are no longer to be kept; *why, unless it is
 * because of their age.  The caller holds the state lock.
 */
static int
surplus_points(const char **why)
{
	FlashbackLogShared *shared = flashback_log_shared;
	FlashbackPoint *points = shared->points;
	TimestampTz oldest = GetCurrentTimestamp() - (TimestampTz) flashback_log_rotation * USECS_PER_MINUTE;
	uint64		active = active_segment();
	uint64		limit = size_limit();
	int			needed = flashback_log_least_points();
	int			surplus = 0;
	uint64		total = 0;

	*why = NULL;

	/* The last point before the time is needed to go back to it */
	if (flashback_log_keep_recovery_area)
		while (shared->npoints - surplus > needed && points[surplus + 1].time <= oldest)
			surplus++;

	/* Without its WAL a point is of no use */
	while (shared->npoints - surplus > needed)
	{
		XLogSegNo	segno;
		XLogSegNo	there = XLogGetOldestSegno(points[surplus].timeline);

		XLByteToSeg(points[surplus].redo, segno, wal_segment_size);
		if (there == 0 || there <= segno)
			break;
		*why = "WAL that it needs was removed";
		surplus++;
	}

	for (uint64 s = points[surplus].position / FLASHBACK_LOG_SEGMENT_SIZE; s <= active; s++)
		total += file_size(s);
	while (shared->npoints - surplus > needed && total > limit)
	{
		*why = "the flashback log has reached its size limit";
		total -= flashback_log_bytes_between(points[surplus].position, points[surplus + 1].position);
		surplus++;
	}
	return surplus;
}

/*
 * Drops points and segments that are not to be kept any longer.
 */
static void
retain(void)
{
	FlashbackLogShared *shared = flashback_log_shared;
	uint64		keep_from;
	bool		broken;
	bool		written = true;
	const char *why = NULL;

	SpinLockAcquire(&shared->mutex);
	broken = shared->broken;
	SpinLockRelease(&shared->mutex);

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_EXCLUSIVE);
	if (broken)
		keep_from = active_segment();
	else if (shared->npoints == 0)
		keep_from = shared->first_segment;
	else
	{
		int			surplus = surplus_points(&why);

		if (surplus > 0)
		{
			flashback_log_drop_points(surplus);
			written = flashback_log_write_state(false);
		}
		keep_from = shared->points[0].position / FLASHBACK_LOG_SEGMENT_SIZE;
	}
	/* What the state file names must be there */
	if (written)
		remove_segments(keep_from);
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	if (why && flashback_log_keep_recovery_area)
		flashback_log_note_shortened(why);
	if (!written)
		ereport(LOG,
				(errmsg("could not drop old points of the flashback log"),
				 errdetail("%s.", flashback_log_error)));
}

/*
 * Gives up the points before the one of this number, as far as that may be;
 * returns how many went.  As in make_room(), there may be no space for a new
 * state file.
 */
int
flashback_log_give_up_points(uint64 number)
{
	FlashbackLogShared *shared = flashback_log_shared;
	int			least = flashback_log_least_points();
	int			n = 0;
	bool		broken;

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_EXCLUSIVE);
	SpinLockAcquire(&shared->mutex);
	broken = shared->broken;
	SpinLockRelease(&shared->mutex);
	while (!broken && shared->npoints - n > least && shared->points[n].number < number)
		n++;
	if (n > 0)
	{
		flashback_log_drop_points(n);
		remove_segments(shared->points[0].position / FLASHBACK_LOG_SEGMENT_SIZE);
		(void) flashback_log_write_state(false);
	}
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	return n;
}

/*
 * The disk is full: gives up the oldest points for one segment's space.  A
 * start without the segments drops the points, so the order does not matter,
 * and there may be no space for a new state file.
 */
bool
flashback_log_make_room(void)
{
	FlashbackLogShared *shared = flashback_log_shared;
	int			needed = flashback_log_least_points();
	int			surplus = 0;
	bool		result = false;

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_EXCLUSIVE);
	while (shared->npoints - surplus >= needed &&
		   shared->points[surplus].position / FLASHBACK_LOG_SEGMENT_SIZE <= shared->first_segment)
		surplus++;
	if (shared->npoints - surplus >= needed)
	{
		flashback_log_drop_points(surplus);
		remove_segments(shared->points[0].position / FLASHBACK_LOG_SEGMENT_SIZE);
		unlink(SPARE);
		flashback_log_note_shortened("there was no space for another segment of the flashback log");
		(void) flashback_log_write_state(false);
		result = true;
	}
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	return result || flashback_recycle_make_room_for_log();
}

/*
 * Keeps a segment ready, so that nobody who wants to write has to make one.
 */
static void
make_spare(void)
{
	static bool told = false;
	struct stat st;
	bool		created;

	if (stat(SPARE, &st) == 0)
		return;
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_SEGMENT), LW_EXCLUSIVE);
	created = flashback_log_create_file(NEW_SPARE) && rename(NEW_SPARE, SPARE) == 0;
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_SEGMENT));
	if (!created && !told)
		ereport(LOG,
				(errmsg("could not reserve space for the flashback log"),
				 errdetail("%s.", flashback_log_error)));
	told = !created;
}

/*
 * Sync mode: writes zeroes to the segment that is ready, in pieces and no
 * faster than the active one fills up, so that nobody's writes wait for them.
 * The lock is held for one piece, as the file may be taken into use next.
 */
static void
fill_spare(void)
{
	uint64		position;
	uint64		until;
	bool		filled = true;

	if (flashback_log_mode != FLASHBACK_LOG_SYNC)
		return;
	SpinLockAcquire(&flashback_log_shared->mutex);
	position = flashback_log_shared->insert_position;
	SpinLockRelease(&flashback_log_shared->mutex);
	until = FILL_AT_ONCE + position % FLASHBACK_LOG_SEGMENT_SIZE * 5 / 4;
	while (filled)
	{
		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_SEGMENT), LW_EXCLUSIVE);
		filled = flashback_log_fill_file(SPARE, until);
		LWLockRelease(flashback_log_lock(FLASHBACK_LOG_SEGMENT));
	}
}

/*
 * A segment is damaged: points from before its end count no longer.
 */
static void
lose_segment(uint64 segment)
{
	FlashbackLogShared *shared = flashback_log_shared;
	int			lost = 0;
	bool		all;

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_EXCLUSIVE);
	while (lost < shared->npoints &&
		   shared->points[lost].position < (segment + 1) * FLASHBACK_LOG_SEGMENT_SIZE)
		lost++;
	all = (lost == shared->npoints);
	if (lost > 0 && !all)
	{
		flashback_log_drop_points(lost);
		shared->window_began = shared->points[0].time;
		flashback_log_note_end(flashback_log_error);
		if (!flashback_log_write_state(false))
			all = true;
	}
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	if (all)
		flashback_log_break(flashback_log_error);
	else if (lost > 0)
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("%d points of the flashback log are lost", lost),
				 errdetail("%s.", shared->why)));
}

/*
 * Indexes the segments that nobody writes any more.  One that cannot be
 * written, as on a full disk, is tried again later and later: each attempt
 * reads a whole segment.
 *
 * Not before recovery has brought all pages up to date: until then damage must
 * not end a window whose other segments have what torn pages were.
 */
static void
index_segments(void)
{
	static TimestampTz failed_at = 0;
	static int	wait_ms = 0;
	uint64		active = active_segment();
	TimestampTz now = GetCurrentTimestamp();
	uint64		from;

	if (RecoveryInProgress() && !flashback_log_is_consistent())
		return;
	if (wait_ms > 0 && failed_at <= now && !TimestampDifferenceExceeds(failed_at, now, wait_ms))
		return;

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_SHARED);
	from = flashback_log_shared->first_segment;
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));

	for (uint64 segment = from; segment < active; segment++)
	{
		if (flashback_log_has_index(segment) || file_size(segment) == 0)
			continue;
		if (!flashback_log_index_segment(segment))
			lose_segment(segment);
		else if (!flashback_log_has_index(segment) && file_size(segment) > 0)
		{
			ereport(LOG,
					(errmsg("could not write an index of the flashback log"),
					 errdetail("%s.", flashback_log_error),
					 errhint("Until it can be, a flashback reads whole segments.")));
			failed_at = now;
			wait_ms = Min(Max(2 * wait_ms, FIRST_WAIT_MS), LAST_WAIT_MS);
			return;
		}
		else
			wait_ms = 0;
	}
}

/*
 * Kept files go with the points that need them.
 */
static void
recycle(void)
{
	FlashbackPoint oldest;

	flashback_recycle_retain(flashback_log_oldest_point(&oldest) ? oldest.lsn : InvalidXLogRecPtr);
}

/*
 * Asks for a checkpoint when the last point is too old, or the next one too
 * far away.
 */
static void
request_point(void)
{
	static TimestampTz asked_at = 0;
	static int	wait_ms = FIRST_WAIT_MS;
	FlashbackLogShared *shared = flashback_log_shared;
	TimestampTz now = GetCurrentTimestamp();
	bool		recovery = RecoveryInProgress();
	XLogRecPtr	here = recovery ? GetXLogReplayRecPtr(NULL) : GetXLogInsertEndRecPtr();
	FlashbackPoint last = {0};
	bool		none;
	bool		wanted;
	bool		first;
	int			flags;
	uint64		log_bytes;

	/* There are no points in crash recovery, see disk_is_consistent() */
	if (recovery && GetRecoveryState() != RECOVERY_STATE_ARCHIVE)
		return;

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_SHARED);
	none = (shared->npoints == 0);
	if (!none)
		last = shared->points[shared->npoints - 1];
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	SpinLockAcquire(&shared->mutex);
	none |= shared->broken;
	log_bytes = none ? 0 : shared->insert_position - last.position;
	SpinLockRelease(&shared->mutex);

	if (none)
	{
		/* A log that fails again and again must not keep the server busy */
		wanted = asked_at == 0 || TimestampDifferenceExceeds(asked_at, now, wait_ms);
		if (wanted && asked_at != 0)
			wait_ms = Min(2 * wait_ms, Max(FIRST_WAIT_MS, flashback_log_point_timeout * 1000));
	}
	else
		wanted = (TimestampDifferenceExceeds(Max(last.time, asked_at), now, flashback_log_point_timeout * 1000) &&
				  here > last.lsn) ||
			(TimestampDifferenceExceeds(Max(last.time, asked_at), now, 5000) &&
			 (here > last.lsn + (uint64) flashback_log_point_segments * wal_segment_size ||
			  log_bytes > size_limit() / 2));
	if (!none && TimestampDifferenceExceeds(last.time, now, wait_ms))
		wait_ms = FIRST_WAIT_MS;
	if (!wanted)
		return;
	first = (asked_at == 0);
	asked_at = now;

	/*
	 * The first point must not wait for a change, nor, right after a start,
	 * for a checkpoint that is spread over minutes: there is little to write
	 * then, and nothing can be given back until it ends.
	 */
	flags = CHECKPOINT_CAUSE_TIME;
	if (none && !recovery)
		flags |= CHECKPOINT_FORCE | (first ? CHECKPOINT_IMMEDIATE : 0);
	RequestCheckpoint(flags);
}

static void
worker_exit(int code, Datum arg)
{
	SpinLockAcquire(&flashback_log_shared->mutex);
	flashback_log_shared->worker = INVALID_PROC_NUMBER;
	SpinLockRelease(&flashback_log_shared->mutex);
}

/*
 * The worker's entry.
 */
void
flashback_log_worker_main(Datum arg)
{
	MemoryContext turn;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	SpinLockAcquire(&flashback_log_shared->mutex);
	flashback_log_shared->worker = MyProcNumber;
	SpinLockRelease(&flashback_log_shared->mutex);
	before_shmem_exit(worker_exit, 0);

	turn = AllocSetContextCreate(TopMemoryContext, "flashback log turn", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(turn);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		retain();
		flashback_log_keep_reserve();
		recycle();
		make_spare();
		fill_spare();
		index_segments();
		request_point();

		MemoryContextReset(turn);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 NAP_MS, flashback_log_wait_event);
		ResetLatch(MyLatch);
	}
}

/*
 * Something is there for the worker to do.
 */
void
flashback_log_wake_worker(void)
{
	ProcNumber	worker;

	SpinLockAcquire(&flashback_log_shared->mutex);
	worker = flashback_log_shared->worker;
	SpinLockRelease(&flashback_log_shared->mutex);
	if (worker != INVALID_PROC_NUMBER)
		SetLatch(&GetPGProcByNumber(worker)->procLatch);
}

/*
 * The oldest point, if the window's WAL and commit status are to be kept.
 */
static bool
oldest_kept_point(FlashbackPoint *point)
{
	return flashback_log_keep_recovery_area && flashback_log_oldest_point(point);
}

/*
 * WAL from the oldest point on is kept, but not more than slots may keep.  A
 * checkpoint that is about to remove WAL looks first whether it must be more:
 * the next one may be too late.
 */
static XLogRecPtr
keep_wal(XLogRecPtr recptr)
{
	FlashbackPoint point;

	if (AmCheckpointerProcess() && flashback_log_keep_recovery_area)
		flashback_log_keep_reserve();
	if (!oldest_kept_point(&point) || point.redo > recptr)
		return InvalidXLogRecPtr;
	if (max_slot_wal_keep_size_mb >= 0)
	{
		uint64		limit = (uint64) max_slot_wal_keep_size_mb * 1024 * 1024;

		if (recptr - point.redo > limit)
			return recptr - limit;
	}
	return point.redo;
}

/*
 * Commit status that pages of the window name is kept, unless that would come
 * near to where transaction ids run out.
 */
static bool
keep_commit_status(TransactionId frozenXID, MultiXactId minMulti)
{
	FlashbackPoint point;
	TransactionId oldest_xid;
	TransactionId next_xid = ReadNextTransactionId();
	MultiXactId oldest_multi;
	MultiXactId next_multi;

	if (!oldest_kept_point(&point) ||
		(!TransactionIdPrecedes(point.oldest_xid, frozenXID) &&
		 !MultiXactIdPrecedes(point.oldest_multi, minMulti)))
		return false;

	LWLockAcquire(XidGenLock, LW_SHARED);
	oldest_xid = TransamVariables->oldestXid;
	LWLockRelease(XidGenLock);
	ReadMultiXactIdRange(&oldest_multi, &next_multi);
	return next_xid - oldest_xid < (TransactionId) autovacuum_freeze_max_age &&
		next_multi - oldest_multi < (MultiXactId) autovacuum_multixact_freeze_max_age;
}

/*
 * Installs the hooks, and has the postmaster start the worker.
 */
void
flashback_log_install_retention(void)
{
	BackgroundWorker worker;

	wal_keep_hook = keep_wal;
	commit_status_keep_hook = keep_commit_status;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = 5;
	strlcpy(worker.bgw_library_name, "$libdir/flashback_log", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "flashback_log_worker_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "flashback log", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "flashback log", sizeof(worker.bgw_type));
	if (IsPostmasterEnvironment)
		RegisterBackgroundWorker(&worker);
}
