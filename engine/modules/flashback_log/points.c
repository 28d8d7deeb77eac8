/*-------------------------------------------------------------------------
 *
 * points.c
 *	  Points, the window that they make, and the state file that keeps both.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/points.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/multixact.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "flashback_log.h"
#include "miscadmin.h"
#include "postmaster/bgwriter.h"
#include "storage/fd.h"
#include "utils/injection_point.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define STATE_NEW FLASHBACK_LOG_DIR "/state.new"

/* The first version has no identities; all before them is the same */
#define STATE_VERSION 2
#define BOOT_ID_LENGTH 36

/*
 * The state file.  What it says holds for the files of the instance only while
 * nobody else changes them, so it says all that can show this.
 */
typedef struct FlashbackLogState
{
	uint32		magic;
	uint32		version;
	uint64		system_identifier;
	uint64		segment_size;
	uint64		directory_device;	/* all that the first version has */
	uint64		directory_inode;
	char		boot_id[BOOT_ID_LENGTH + 4];
	uint32		data_checksums;
	uint32		mode;
	uint32		shutdown;		/* nothing was written after the last point */
	uint32		npoints;
	uint64		point_number;
	uint64		window;
	TimestampTz window_began;
	uint64		windows_ended;
	TimestampTz ended_at;
	char		why[256];
	XLogRecPtr	lsn;
	uint64		insert_position;
	uint64		last_record;
	uint64		first_segment;
	uint32		whole;
	uint32		at_rest;
	FlashbackLogIdentity directory;
	FlashbackLogIdentity file;	/* this one: a copy that is put back in its
								 * place is another */
	FlashbackPoint points[FLASHBACK_LOG_MAX_POINTS];
	pg_crc32c	crc;			/* in the file: right after the last point */
} FlashbackLogState;

#define STATE_LENGTH_1(npoints) (offsetof(FlashbackLogState, directory) + (npoints) * sizeof(FlashbackPoint))
#define STATE_LENGTH(npoints) (offsetof(FlashbackLogState, points) + (npoints) * sizeof(FlashbackPoint))

/* Too large for the stack; the state lock, or being alone, protects it */
static FlashbackLogState state;

/*
 * A name for this run of the operating system: what was written but not synced
 * in another one may be lost.
 */
static void
get_boot_id(char *boot_id)
{
	int			fd = BasicOpenFile("/proc/sys/kernel/random/boot_id", O_RDONLY | PG_BINARY);

	memset(boot_id, 0, BOOT_ID_LENGTH + 4);
	if (fd >= 0)
	{
		/* Without one, each start counts as one of the operating system */
		if (read(fd, boot_id, BOOT_ID_LENGTH) != BOOT_ID_LENGTH)
			memset(boot_id, 0, BOOT_ID_LENGTH + 4);
		close(fd);
	}
}

static pg_crc32c
state_crc(const FlashbackLogState *s, size_t length)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, s, length);
	FIN_CRC32C(crc);
	return crc;
}

/*
 * What identifies a file or directory; all zeroes if it is not there.
 */
static void
identify(const char *path, FlashbackLogIdentity *identity)
{
	int			fd = BasicOpenFile(path, O_RDONLY | PG_BINARY);

	memset(identity, 0, sizeof(*identity));
	if (fd >= 0)
	{
		(void) flashback_log_identify(fd, identity);
		close(fd);
	}
}

static bool
write_whole(int fd, const void *data, size_t length)
{
	errno = 0;
	if (write(fd, data, length) == (ssize_t) length)
		return true;
	if (errno == 0)
		errno = ENOSPC;
	return false;
}

/*
 * Removes the state file, for good: a crash of the operating system must not
 * bring it back.
 */
static bool
remove_state(void)
{
	if ((unlink(FLASHBACK_LOG_STATE) == 0 || errno == ENOENT) &&
		fsync_fname_ext(FLASHBACK_LOG_DIR, true, false, LOG) == 0)
		return true;
	snprintf(flashback_log_error, sizeof(flashback_log_error),
			 "could not remove file \"%s\": %s", FLASHBACK_LOG_STATE, pg_strerror(errno));
	return false;
}

/*
 * Writes the state file.  In a window that has ended there is none.  The
 * caller holds the state lock, or is alone.  Neither raises errors nor
 * allocates memory.
 */
bool
flashback_log_write_state(bool shutdown)
{
	FlashbackLogShared *shared = flashback_log_shared;
	bool		broken;
	int			fd;

	memset(&state, 0, offsetof(FlashbackLogState, points));
	SpinLockAcquire(&shared->mutex);
	broken = shared->broken;
	state.insert_position = shared->insert_position;
	state.last_record = shared->last_record;
	state.whole = shared->whole;
	state.at_rest = shared->at_rest;
	state.windows_ended = shared->windows_ended;
	state.ended_at = shared->ended_at;
	memcpy(state.why, shared->why, sizeof(state.why));
	SpinLockRelease(&shared->mutex);

	if (broken)
		return remove_state();

	state.magic = FLASHBACK_LOG_MAGIC;
	state.version = STATE_VERSION;
	state.system_identifier = GetSystemIdentifier();
	state.segment_size = FLASHBACK_LOG_SEGMENT_SIZE;
	identify(FLASHBACK_LOG_DIR, &state.directory);
	state.directory_device = state.directory.device;
	state.directory_inode = state.directory.inode;
	get_boot_id(state.boot_id);
	state.data_checksums = DataChecksumsEnabled();
	state.mode = flashback_log_mode;
	state.shutdown = shutdown;
	state.npoints = shared->npoints;
	state.point_number = shared->point_number;
	state.window = shared->window;
	state.window_began = shared->window_began;
	state.lsn = pg_atomic_read_u64(&shared->lsn);
	state.first_segment = shared->first_segment;
	memcpy(state.points, shared->points, shared->npoints * sizeof(FlashbackPoint));

	fd = BasicOpenFile(STATE_NEW, O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY);
	if (fd < 0)
		goto fail;
	(void) flashback_log_identify(fd, &state.file);
	state.crc = state_crc(&state, STATE_LENGTH(state.npoints));
	if (!write_whole(fd, &state, STATE_LENGTH(state.npoints)) ||
		!write_whole(fd, &state.crc, sizeof(state.crc)) ||
		pg_fsync(fd) != 0)
	{
		int			saved_errno = errno;

		close(fd);
		errno = saved_errno;
		goto fail;
	}
	close(fd);
	if (IsUnderPostmaster)
		INJECTION_POINT("flashback-log-state-rename", NULL);
	if (rename(STATE_NEW, FLASHBACK_LOG_STATE) == 0 &&
		fsync_fname_ext(FLASHBACK_LOG_DIR, true, false, LOG) == 0)
		return true;

fail:
	snprintf(flashback_log_error, sizeof(flashback_log_error),
			 "could not write file \"%s\": %s", STATE_NEW, pg_strerror(errno));
	return false;
}

/*
 * Counts the end of a window, or of a part of one.
 */
void
flashback_log_note_end(const char *why)
{
	FlashbackLogShared *shared = flashback_log_shared;
	TimestampTz now = GetCurrentTimestamp();

	SpinLockAcquire(&shared->mutex);
	shared->windows_ended++;
	shared->ended_at = now;
	strlcpy(shared->why, why, sizeof(shared->why));
	SpinLockRelease(&shared->mutex);
}

/*
 * Ends the window: an image is lost, so no point before the next one counts.
 * Called before the block in question is overwritten; raises an error, which
 * prevents that, when it cannot be made sure that a restart knows it.
 */
void
flashback_log_break(const char *why)
{
	FlashbackLogShared *shared = flashback_log_shared;
	bool		first;
	bool		noted;

	SpinLockAcquire(&shared->mutex);
	first = !shared->broken;
	if (first)
	{
		shared->broken = true;
		shared->windows_ended++;
		shared->ended_at = GetCurrentTimestamp();
		if (shared->why != why)
			strlcpy(shared->why, why, sizeof(shared->why));
	}
	SpinLockRelease(&shared->mutex);

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_EXCLUSIVE);
	noted = flashback_log_write_state(false);
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));

	if (!noted)
		ereport(ERROR,
				(errcode(ERRCODE_IO_ERROR),
				 errmsg("could not end the window of the flashback log"),
				 errdetail("%s.", flashback_log_error)));
	if (first)
		ereport(WARNING,
				(errcode(ERRCODE_IO_ERROR),
				 errmsg("the window of the flashback log ended"),
				 errdetail("%s.", shared->why),
				 errhint("The next checkpoint begins another one.")));
}

/*
 * Waits until no truncation is under way, and lets no writer and no truncation
 * in until the gate is opened.  Fsync requests are taken meanwhile: who
 * truncates may wait for room in their queue.
 */
void
flashback_log_close_gate(void)
{
	FlashbackLogShared *shared = flashback_log_shared;

	for (;;)
	{
		int			truncations;

		LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_GATE), LW_EXCLUSIVE);
		SpinLockAcquire(&shared->mutex);
		truncations = shared->truncations;
		SpinLockRelease(&shared->mutex);
		if (truncations == 0)
			break;
		LWLockRelease(flashback_log_lock(FLASHBACK_LOG_GATE));

		ConditionVariablePrepareToSleep(&shared->truncations_done);
		ConditionVariableTimedSleep(&shared->truncations_done, 10, flashback_log_wait_event);
		ConditionVariableCancelSleep();
		if (AmCheckpointerProcess())
			AbsorbSyncRequests();
	}
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_EPOCH), LW_EXCLUSIVE);
}

/*
 * Lets writers in again.
 */
void
flashback_log_open_gate(void)
{
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_EPOCH));
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_GATE));
}

/*
 * The oldest point of the window; false if there is none.
 */
bool
flashback_log_oldest_point(FlashbackPoint *point)
{
	FlashbackLogShared *shared = flashback_log_shared;
	bool		broken;
	bool		result = false;

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_SHARED);
	SpinLockAcquire(&shared->mutex);
	broken = shared->broken;
	SpinLockRelease(&shared->mutex);
	if (!broken && shared->npoints > 0)
	{
		*point = shared->points[0];
		result = true;
	}
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	return result;
}

/*
 * During recovery: whether no page on disk can be newer than what has been
 * replayed.  That is so from the point of consistency on; in crash recovery
 * never before its end.
 */
static bool
disk_is_consistent(const ControlFileData *control)
{
	return GetRecoveryState() == RECOVERY_STATE_ARCHIVE &&
		XLogRecPtrIsInvalid(control->backupStartPoint) &&
		!control->backupEndRequired &&
		!XLogRecPtrIsInvalid(control->minRecoveryPoint) &&
		control->minRecoveryPoint <= GetCurrentReplayRecPtr(NULL);
}

/*
 * The same for who has not read pg_control.
 */
bool
flashback_log_is_consistent(void)
{
	ControlFileData *control;
	bool		crc_ok;
	bool		result;

	LWLockAcquire(ControlFileLock, LW_SHARED);
	control = get_controlfile(DataDir, &crc_ok);
	LWLockRelease(ControlFileLock);
	result = crc_ok && disk_is_consistent(control);
	pfree(control);
	return result;
}

/*
 * Removes the first n points.  The caller holds the state lock.
 */
void
flashback_log_drop_points(int n)
{
	FlashbackLogShared *shared = flashback_log_shared;

	shared->npoints -= n;
	memmove(shared->points, shared->points + n, shared->npoints * sizeof(FlashbackPoint));
}

/*
 * Images since all points so far are no longer durable before their blocks are
 * overwritten.  The caller holds the state lock, or is alone.
 */
static void
forget_durability(void)
{
	for (int i = 0; i < flashback_log_shared->npoints; i++)
		flashback_log_shared->points[i].durable = false;
}

/*
 * When there are too many points, the one goes whose neighbours are closest to
 * each other; never one of the last two, which repair may need.
 */
static void
thin_points(void)
{
	FlashbackLogShared *shared = flashback_log_shared;
	FlashbackPoint *points = shared->points;
	int			best = 1;

	if (shared->npoints < FLASHBACK_LOG_MAX_POINTS)
		return;
	for (int i = 1; i < shared->npoints - 2; i++)
		if (points[i + 1].time - points[i - 1].time < points[best + 1].time - points[best - 1].time)
			best = i;
	shared->npoints--;
	memmove(points + best, points + best + 1, (shared->npoints - best) * sizeof(FlashbackPoint));
}

/*
 * The redo position of the last checkpoint that is complete.  False if pages on
 * disk are of different moments still: no point can be told.
 */
static bool
last_completed(bool recovery, XLogRecPtr *completed)
{
	ControlFileData *control;
	bool		crc_ok;
	bool		consistent;

	LWLockAcquire(ControlFileLock, LW_SHARED);
	control = get_controlfile(DataDir, &crc_ok);
	LWLockRelease(ControlFileLock);
	if (!crc_ok)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("calculated CRC checksum does not match value stored in control file")));
	*completed = control->checkPointCopy.redo;
	consistent = !recovery || disk_is_consistent(control);
	pfree(control);
	return consistent;
}

/*
 * Where WAL and the clock are.  The gate is closed.
 */
static void
locate_point(FlashbackPoint *point, bool recovery)
{
	/*
	 * The position of the record that is being replayed, not of the last one
	 * that has been: its pages may be on disk already.  After a restart
	 * replay may be before the last point for a while; pages are not.
	 */
	if (recovery)
		point->lsn = Max(GetCurrentReplayRecPtr(&point->timeline),
						 pg_atomic_read_u64(&flashback_log_shared->lsn));
	else
	{
		point->lsn = GetXLogInsertEndRecPtr();
		point->timeline = GetWALInsertionTimeLineIfSet();
	}
	point->time = GetCurrentTimestamp();
	/* What was committed before is not later, though the primary's clock be */
	if (recovery)
		point->time = Max(point->time, GetLatestXTime());
	point->durable = (flashback_log_mode == FLASHBACK_LOG_SYNC);
}

/*
 * Takes the point into the window, and out of it the points that do not belong
 * there any more.  The gate is closed and the caller holds the state lock.
 */
static void
admit_point(FlashbackPoint *point, XLogRecPtr completed)
{
	FlashbackLogShared *shared = flashback_log_shared;
	bool		broken;
	bool		moved;

	if (point->lsn < pg_atomic_read_u64(&shared->lsn))
	{
		flashback_log_note_end("WAL ends before the last point");
		SpinLockAcquire(&shared->mutex);
		shared->broken = true;
		SpinLockRelease(&shared->mutex);
	}
	SpinLockAcquire(&shared->mutex);
	broken = shared->broken;
	shared->broken = false;
	moved = (shared->moves > 0);
	point->position = shared->insert_position;
	SpinLockRelease(&shared->mutex);
	if (broken)
		shared->npoints = 0;
	if (!point->durable)
		forget_durability();

	/*
	 * A point whose checkpoint failed goes when the next one comes: the last
	 * two, which are always kept, then have the one to recover from.
	 */
	if (shared->npoints > 0 && shared->points[shared->npoints - 1].redo > completed)
		shared->npoints--;
	/* See moves.c */
	if (moved && shared->npoints > 1)
	{
		flashback_log_drop_points(shared->npoints - 1);
		shared->window_began = shared->points[0].time;
		flashback_log_note_end("a database was moved to another tablespace");
	}
	if (shared->npoints == 0)
	{
		shared->window++;
		shared->window_began = point->time;
	}
	thin_points();
	point->number = ++shared->point_number;
	shared->points[shared->npoints++] = *point;
	pg_atomic_write_u64(&shared->lsn, point->lsn);
	INJECTION_POINT("flashback-log-point", point);
}

/*
 * Stores the points, so that a restart knows the newest one, which is at that
 * position of the log.
 */
static void
store_point(uint64 position, bool shutdown)
{
	bool		written;

	/*
	 * Nothing is written after the point of a shutdown, so if what is in the
	 * log is durable, the window outlives the operating system.
	 */
	if (shutdown && flashback_log_mode == FLASHBACK_LOG_ASYNC &&
		(!flashback_log_sync_segments(flashback_log_shared->points[0].position / FLASHBACK_LOG_SEGMENT_SIZE,
									  position) ||
		 !flashback_recycle_sync()))
		shutdown = false;

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_EXCLUSIVE);
	written = flashback_log_write_state(shutdown);
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	if (!written)
	{
		/*
		 * A checkpoint that completes with a point that a restart would not
		 * know leaves its torn pages without images.
		 */
		if (flashback_log_mode == FLASHBACK_LOG_SYNC)
			ereport(ERROR,
					(errcode(ERRCODE_IO_ERROR),
					 errmsg("could not store a point of the flashback log"),
					 errdetail("%s.", flashback_log_error)));
		flashback_log_break(flashback_log_error);
	}
	INJECTION_POINT("flashback-log-point-stored", NULL);
}

/*
 * A checkpoint or restartpoint has written all its buffers and synced nothing
 * yet: a point.  See the claims P1 to P5.
 */
static void
checkpoint_sync(XLogRecPtr redo, int flags)
{
	bool		recovery = RecoveryInProgress() && !(flags & CHECKPOINT_END_OF_RECOVERY);
	XLogRecPtr	completed;
	FlashbackPoint point;
	MultiXactId next_multi;

	if (!last_completed(recovery, &completed))
		return;

	memset(&point, 0, sizeof(point));
	point.redo = redo;
	point.next_xid = ReadNextFullTransactionId();
	LWLockAcquire(XidGenLock, LW_SHARED);
	point.oldest_xid = TransamVariables->oldestXid;
	LWLockRelease(XidGenLock);
	ReadMultiXactIdRange(&point.oldest_multi, &next_multi);

	INJECTION_POINT("flashback-log-before-point", NULL);
	flashback_log_close_gate();

	/*
	 * Recovery may have ended since, and newer pages have been written.  If
	 * it ends from here on they have not.
	 */
	if (recovery && !RecoveryInProgress())
		recovery = false;
	locate_point(&point, recovery);

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_EXCLUSIVE);
	admit_point(&point, completed);
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	flashback_log_open_gate();

	INJECTION_POINT("flashback-log-after-point", NULL);

	/* A crash must not leave a point that is beyond the end of WAL */
	if (!recovery)
		XLogFlush(point.lsn);
	store_point(point.position, (flags & CHECKPOINT_IS_SHUTDOWN) != 0);
	flashback_log_wake_worker();
}

/*
 * Reads the state file; false when there is none, or it is damaged.
 */
static bool
read_state(const char **why)
{
	int			fd = BasicOpenFile(FLASHBACK_LOG_STATE, O_RDONLY | PG_BINARY);
	size_t		length = 0;
	pg_crc32c	crc;
	ssize_t		n;

	memset(&state, 0, sizeof(state));
	*why = "there is no state file";
	if (fd < 0)
		return false;
	n = read(fd, &state, sizeof(state));
	close(fd);

	*why = "the state file is damaged";
	if (n >= (ssize_t) STATE_LENGTH_1(0) && state.npoints <= FLASHBACK_LOG_MAX_POINTS)
		length = (state.version == 1) ? STATE_LENGTH_1(state.npoints) : STATE_LENGTH(state.npoints);
	if (length == 0 || state.magic != FLASHBACK_LOG_MAGIC ||
		n != (ssize_t) (length + sizeof(pg_crc32c)))
	{
		memset(&state, 0, sizeof(state));
		return false;
	}
	memcpy(&crc, (char *) &state + length, sizeof(pg_crc32c));
	if (!EQ_CRC32C(crc, state_crc(&state, length)))
	{
		memset(&state, 0, sizeof(state));
		return false;
	}
	state.why[sizeof(state.why) - 1] = '\0';
	if (state.version == 1)
	{
		memmove(state.points, &state.directory, state.npoints * sizeof(FlashbackPoint));
		memset(&state.directory, 0, sizeof(state.directory));
		memset(&state.file, 0, sizeof(state.file));
		return true;
	}
	*why = "the state file is of another version";
	return state.version == STATE_VERSION;
}

/*
 * Whether the log is in the place in which it was kept, and no copy of it or
 * part of one.  See the table at P5.
 */
static bool
is_in_place(bool rebooted)
{
	FlashbackLogIdentity directory;
	FlashbackLogIdentity file;

	identify(FLASHBACK_LOG_DIR, &directory);
	identify(FLASHBACK_LOG_STATE, &file);

	if (state.version == 1)
		return state.directory_device == directory.device && state.directory_inode == directory.inode;
	return flashback_log_is_same_inode(&state.directory, &directory) &&
		flashback_log_is_same_inode(&state.file, &file) &&
		(rebooted || (state.directory.device == directory.device && state.file.device == file.device));
}

/*
 * Why the points in the state file do not hold for the data directory as it is
 * now, or NULL.
 */
static const char *
why_not_continued(void)
{
	ControlFileData *control;
	struct stat st;
	char		boot_id[BOOT_ID_LENGTH + 4];
	bool		crc_ok;
	bool		known = false;
	bool		shutdown;
	bool		rebooted;

	if (state.system_identifier != GetSystemIdentifier())
		return "the data directory is another instance's";
	if (state.segment_size != FLASHBACK_LOG_SEGMENT_SIZE)
		return "the size of segments was changed";
	if (state.data_checksums != (uint32) DataChecksumsEnabled())
		return "data checksums were switched on or off";
	if (stat(BACKUP_LABEL_FILE, &st) == 0)
		return "the data directory was restored from a backup, or rewound";

	control = get_controlfile(DataDir, &crc_ok);
	for (int i = state.npoints - 1; i >= 0 && !known; i--)
	{
		known = (state.points[i].redo == control->checkPointCopy.redo);

		/*
		 * Redo will take files back to before a point whose checkpoint is not
		 * complete, and what it overwrites then is not of that point.
		 */
		if (!known)
			state.npoints = i;
		else
			state.lsn = state.points[i].lsn;
	}
	shutdown = state.shutdown && state.npoints > 0 &&
		state.points[state.npoints - 1].redo == control->checkPointCopy.redo &&
		(control->state == DB_SHUTDOWNED || control->state == DB_SHUTDOWNED_IN_RECOVERY);
	pfree(control);
	if (!known)
		return "the last checkpoint is not a point: something else has changed the data directory";
	if (shutdown)
		return NULL;

	/* Without a name each start counts as one of the operating system */
	get_boot_id(boot_id);
	rebooted = (boot_id[0] == '\0' || memcmp(boot_id, state.boot_id, sizeof(boot_id)) != 0);
	if (!is_in_place(rebooted))
		return "the data directory is a copy of a running one";
	if (rebooted && state.mode == FLASHBACK_LOG_ASYNC)
		return "the operating system stopped before the log was synced";
	return NULL;
}

static bool
segment_is_there(uint64 segment)
{
	char		path[MAXPGPATH];
	FlashbackLogHeader header;
	int			fd;
	bool		result;

	flashback_log_segment_path(path, segment);
	fd = BasicOpenFile(path, O_RDONLY | PG_BINARY);
	if (fd < 0)
		return false;
	result = read(fd, &header, sizeof(header)) == sizeof(header) &&
		flashback_log_header_is_valid(&header, segment);
	close(fd);
	return result;
}

/*
 * The number of the last segment, or 0.
 */
static uint64
last_segment_file(void)
{
	DIR		   *dir = AllocateDir(FLASHBACK_LOG_DIR);
	struct dirent *de;
	uint64		last = 0;

	while ((de = ReadDir(dir, FLASHBACK_LOG_DIR)) != NULL)
	{
		char	   *end;
		uint64		segment;

		if (strlen(de->d_name) != 16)
			continue;
		segment = strtou64(de->d_name, &end, 16);
		if (*end == '\0')
			last = Max(last, segment);
	}
	FreeDir(dir);
	return last;
}

static void
remove_files(bool (*which) (const char *name))
{
	DIR		   *dir = AllocateDir(FLASHBACK_LOG_DIR);
	struct dirent *de;

	while ((de = ReadDir(dir, FLASHBACK_LOG_DIR)) != NULL)
	{
		char		path[MAXPGPATH];

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0 || !which(de->d_name))
			continue;
		snprintf(path, sizeof(path), FLASHBACK_LOG_DIR "/%s", de->d_name);
		if (unlink(path) != 0)
			ereport(WARNING,
					(errcode_for_file_access(),
					 errmsg("could not remove file \"%s\": %m", path)));
	}
	FreeDir(dir);
}

static bool
is_any(const char *name)
{
	return true;
}

static void
remove_state_or_stop(void)
{
	if (!remove_state())
		ereport(FATAL,
				(errcode(ERRCODE_IO_ERROR),
				 errmsg("could not end the window of the flashback log"),
				 errdetail("%s.", flashback_log_error)));
}

static bool
is_left_over(const char *name)
{
	return strstr(name, ".new") != NULL;
}

/*
 * Takes over the points of the state file, as far back as there are segments.
 */
static const char *
continue_window(uint64 last)
{
	FlashbackLogShared *shared = flashback_log_shared;
	uint64		begun = flashback_log_last_begun(state.insert_position);
	uint64		from;
	int			lost = 0;

	if (last < begun)
		return "segments are missing";

	for (uint64 s = last; lost == 0 && s >= state.points[0].position / FLASHBACK_LOG_SEGMENT_SIZE; s--)
	{
		if (segment_is_there(s))
			continue;
		while (lost < state.npoints &&
			   state.points[lost].position / FLASHBACK_LOG_SEGMENT_SIZE <= s)
			lost++;
	}
	if (lost == state.npoints)
		return "segments are missing or damaged";

	/*
	 * From now on an image counts as durable, also one that somebody had
	 * appended and not synced when everything stopped.
	 */
	from = state.points[lost].position / FLASHBACK_LOG_SEGMENT_SIZE;
	if (state.mode == FLASHBACK_LOG_SYNC)
		from = Max(from, last);
	if (flashback_log_mode == FLASHBACK_LOG_SYNC &&
		!flashback_log_sync_segments(from, (last + 1) * FLASHBACK_LOG_SEGMENT_SIZE) &&
		state.mode == FLASHBACK_LOG_ASYNC)
		return flashback_log_error;

	shared->window = state.window;
	shared->window_began = state.window_began;
	shared->npoints = state.npoints;
	memcpy(shared->points, state.points, state.npoints * sizeof(FlashbackPoint));
	flashback_log_drop_points(lost);

	/*
	 * From now on images are not durable.  After a crash those are of before
	 * that recovery needs, until it ends with a point.
	 */
	if (flashback_log_mode == FLASHBACK_LOG_ASYNC && state.shutdown)
		forget_durability();
	pg_atomic_write_u64(&shared->lsn, state.lsn);
	shared->first_segment = state.first_segment;

	/* Unless it ended in order, the last segment may lack what was in work */
	shared->last_record = state.last_record;
	shared->whole = state.whole && last == begun && (state.shutdown || state.at_rest);
	shared->at_rest = shared->whole;
	ereport(LOG,
			(errmsg("the window of the flashback log continues with %d points", shared->npoints)));
	return NULL;
}

/*
 * Switched off after a crash, the log may be the only one who has what torn
 * pages were: recovery must come first.
 */
static void
refuse_removal(void)
{
	ControlFileData *control;
	const char *why;
	bool		crc_ok;

	if (!read_state(&why) || why_not_continued() != NULL ||
		state.shutdown || !state.points[state.npoints - 1].durable)
		return;
	control = get_controlfile(DataDir, &crc_ok);
	if (!fullPageWrites || !control->checkPointCopy.fullPageWrites)
		ereport(FATAL,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the flashback log cannot be switched off before recovery from a crash"),
				 errdetail("Pages that the crash tore may be in the log alone, because \"full_page_writes\" was off."),
				 errhint("Start the server once with polar_enable_flashback_log = on. If a page repair source has all pages, remove the file \"%s\" instead.",
						 FLASHBACK_LOG_STATE)));
	pfree(control);
}

/*
 * Before anything is written: continues the window of the last run, or begins
 * without one.  Switched off, the module removes the log, because pages will
 * be overwritten that nobody keeps.
 */
void
flashback_log_begin(void)
{
	FlashbackLogShared *shared = flashback_log_shared;
	const char *why;
	struct stat st;
	bool		there = (stat(FLASHBACK_LOG_DIR, &st) == 0);
	uint64		last;

	if (!flashback_log_enabled)
	{
		if (there)
		{
			refuse_removal();
			/* Without this one the others mean nothing */
			remove_state_or_stop();
			remove_files(is_any);
		}
		flashback_recycle_begin(false);
		return;
	}

	if (!there && MakePGDirectory(FLASHBACK_LOG_DIR) != 0)
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("could not create directory \"%s\": %m", FLASHBACK_LOG_DIR)));

	last = last_segment_file();
	if (read_state(&why))
		why = why_not_continued();
	if (why == NULL && !flashback_log_read_purged())
		why = "the list of purged relations is damaged";
	if (why == NULL)
		why = continue_window(last);
	if (why != NULL)
		shared->npurged = 0;

	shared->point_number = state.point_number;
	shared->windows_ended = state.windows_ended;
	shared->ended_at = state.ended_at;
	memcpy(shared->why, state.why, sizeof(shared->why));

	/* A new segment, as the end of the last one may not be known */
	shared->insert_position = (last + 1) * FLASHBACK_LOG_SEGMENT_SIZE;

	if (why == NULL)
	{
		remove_files(is_left_over);
		flashback_recycle_begin(flashback_log_keep_recovery_area);
		if (flashback_log_write_state(false))
			return;
		if (flashback_log_mode == FLASHBACK_LOG_SYNC)
			ereport(FATAL,
					(errmsg("could not continue the flashback log"),
					 errdetail("%s.", flashback_log_error)));
		why = flashback_log_error;
		shared->npoints = 0;
		pg_atomic_write_u64(&shared->lsn, InvalidXLogRecPtr);
	}

	if (there && (last > 0 || state.magic != 0))
	{
		ereport(LOG,
				(errmsg("the window of the flashback log ended"),
				 errdetail("The reason: %s.", why)));
		shared->windows_ended++;
		shared->ended_at = GetCurrentTimestamp();
		strlcpy(shared->why, why, sizeof(shared->why));
	}
	remove_state_or_stop();
	remove_files(is_any);
	flashback_recycle_begin(false);
	shared->npurged = 0;
	shared->recycled_files = 0;
	shared->recycled_bytes = 0;
	shared->first_segment = last + 1;
	shared->last_record = 0;
	shared->whole = true;
	shared->at_rest = false;
}

/*
 * Installs the hook of checkpoints.
 */
void
flashback_log_install_points(void)
{
	checkpoint_sync_hook = checkpoint_sync;
}
