/*-------------------------------------------------------------------------
 *
 * guard.c
 *	  full_page_writes = off only as long as torn pages could be repaired.
 *
 * A background worker asks the sources how they are.  The checkpointer, who
 * alone turns full-page images on and off, asks our hooks; they read what the
 * worker left in shared memory.  Whenever something is missing, images are on.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/guard.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_control.h"
#include "guard.h"
#include "log_source.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/bgwriter.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procsignal.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* Looks come closer while a checkpoint waits for one */
#define GUARD_WAITED_FOR_MS 50

static full_page_writes_hook_type prev_full_page_writes_hook = NULL;
static checkpoint_before_record_hook_type prev_checkpoint_before_record_hook = NULL;

/*
 * Read pg_control.  Returns false when that is not possible now, never an
 * error: the checkpointer's loop must go on.
 */
bool
guard_read_control(GuardControl *control)
{
	/* Who reads while another writes may see half of each */
	for (int try = 0; try < 10; try++)
	{
		ControlFileData data;
		pg_crc32c	crc;
		ssize_t		got;
		int			fd = BasicOpenFile(XLOG_CONTROL_FILE, O_RDONLY | PG_BINARY);

		if (fd < 0)
			return false;
		got = pg_pread(fd, &data, sizeof(data), 0);
		close(fd);
		if (got != sizeof(data))
			return false;
		INIT_CRC32C(crc);
		COMP_CRC32C(crc, &data, offsetof(ControlFileData, crc));
		FIN_CRC32C(crc);
		if (EQ_CRC32C(crc, data.crc))
		{
			control->redo = data.checkPointCopy.redo;
			control->timeline = data.checkPointCopy.ThisTimeLineID;
			control->images = data.checkPointCopy.fullPageWrites;
			return true;
		}
		pg_usleep(1000);
	}
	return false;
}

/*
 * Has all WAL that a standby has replayed since the redo pointer images?
 */
bool
guard_replayed_images(const GuardControl *control)
{
	XLogRecPtr	ended;

	SpinLockAcquire(&page_repair_shared->mutex);
	ended = page_repair_shared->images_ended;
	SpinLockRelease(&page_repair_shared->mutex);
	return control->images && ended < control->redo;
}

/*
 * Is there anybody whom recovery could ask for pages?
 */
bool
guard_has_sources(void)
{
	return (page_repair_source_list != NULL && page_repair_source_list[0] != '\0') ||
		log_source_is_configured();
}

/*
 * Could pages be given back that are torn after a checkpoint with this redo
 * location?  By a source that has reached it, or by the flashback log, which
 * has a point of that checkpoint, or has lost it.
 */
bool
guard_is_covered(XLogRecPtr redo, XLogRecPtr reached)
{
	char		why[256];

	return reached >= redo || log_source_protects(redo, why, sizeof(why));
}

/*
 * How long the worker may give no sign of life, in milliseconds.
 */
int
guard_patience_ms(void)
{
	return Max(page_repair_grace, GUARD_ANSWER_MS) + 5 * GUARD_INTERVAL_MS;
}

/*
 * Does the worker run and give no sign of life?  It may be stopped, or wait for
 * the name of a host.
 */
bool
guard_worker_is_stuck(void)
{
	TimestampTz beat;
	ProcNumber	worker;

	SpinLockAcquire(&page_repair_shared->mutex);
	worker = page_repair_shared->worker;
	beat = page_repair_shared->beat;
	SpinLockRelease(&page_repair_shared->mutex);
	return worker != INVALID_PROC_NUMBER &&
		TimestampDifferenceExceeds(beat, GetCurrentTimestamp(), guard_patience_ms());
}

/*
 * Have the checkpointer ask our hook.  Signal handlers may call this.
 */
void
guard_wake_checkpointer(void)
{
	ProcNumber	checkpointer = ProcGlobal->checkpointerProc;

	if (checkpointer != INVALID_PROC_NUMBER)
		SetLatch(&GetPGProcByNumber(checkpointer)->procLatch);
}

/*
 * Start the worker, unless it has been or nobody needs it.
 */
static void
launch_worker(void)
{
	static TimestampTz next_try = 0;
	BackgroundWorker worker = {0};
	bool		launched;

	if (!guard_has_sources())
		return;
	SpinLockAcquire(&page_repair_shared->mutex);
	launched = page_repair_shared->launched;
	SpinLockRelease(&page_repair_shared->mutex);
	if (launched || GetCurrentTimestamp() < next_try)
		return;

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	/* Whatever it dies of; when nobody needs it, it leaves for good */
	worker.bgw_restart_time = 1;
	strlcpy(worker.bgw_library_name, "$libdir/page_repair", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "page_repair_worker_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "page repair guard", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "page repair guard", sizeof(worker.bgw_type));
	if (!RegisterDynamicBackgroundWorker(&worker, NULL))
	{
		next_try = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 5000);
		ereport(LOG,
				(errmsg("could not start the page repair guard"),
				 errdetail("Full-page images are written until it runs."),
				 errhint("Increase \"%s\".", "max_worker_processes")));
		return;
	}
	SpinLockAcquire(&page_repair_shared->mutex);
	page_repair_shared->launched = true;
	SpinLockRelease(&page_repair_shared->mutex);
}

/*
 * A setting that has no effect must not be silent about it.  The process that
 * ends recovery notices first.
 */
static void
tell_once(bool overruled)
{
	bool		told;

	SpinLockAcquire(&page_repair_shared->mutex);
	told = page_repair_shared->told;
	page_repair_shared->told = overruled;
	SpinLockRelease(&page_repair_shared->mutex);
	if (overruled && !told)
		ereport(LOG,
				(errmsg("full-page images are written although \"%s\" is off", "full_page_writes"),
				 errdetail("No page repair source is named in \"%s\", and the flashback log is not kept in sync mode.", "polar_page_repair_sources"),
				 errhint("If pages cannot be torn on this storage, set \"%s\" to off.", "polar_page_repair_guard")));
}

/*
 * What a worker said that gives no sign of life does not count any more.
 */
static void
distrust_worker(void)
{
	bool		forced;

	SpinLockAcquire(&page_repair_shared->mutex);
	forced = page_repair_shared->forced;
	page_repair_shared->reached = InvalidXLogRecPtr;
	SpinLockRelease(&page_repair_shared->mutex);
	if (!forced)
		guard_force_images(GUARD_STUCK);
}

/*
 * Are full-page images to be written?  Called by the checkpointer in each turn
 * of its loop, and by the process that ends recovery.
 */
static bool
guard_full_page_writes(bool setting)
{
	PageRepairShared *shared = page_repair_shared;
	static XLogRecPtr asked_for = InvalidXLogRecPtr;
	bool		checkpointer = AmCheckpointerProcess();
	bool		answer;
	bool		was;
	bool		watched;
	XLogRecPtr	reached;
	XLogRecPtr	since;

	if (prev_full_page_writes_hook)
		setting = prev_full_page_writes_hook(setting);
	if (shared == NULL)
		return setting;

	/* After the shutdown checkpoint nothing can be logged any more */
	if (checkpointer && !RecoveryInProgress() && !XLogInsertAllowed())
	{
		SpinLockAcquire(&shared->mutex);
		was = shared->in_force;
		SpinLockRelease(&shared->mutex);
		return was;
	}

	if (checkpointer)
	{
		page_repair_watch_stop();
		launch_worker();
		if (!setting && page_repair_guard && !RecoveryInProgress() && guard_worker_is_stuck())
			distrust_worker();
	}

	SpinLockAcquire(&shared->mutex);
	answer = setting || (page_repair_guard && shared->forced);
	was = shared->in_force;
	reached = shared->reached;
	since = shared->in_force_since;
	watched = shared->worker != INVALID_PROC_NUMBER;
	SpinLockRelease(&shared->mutex);

	/*
	 * G1: a checkpoint with images may have moved the redo pointer since the
	 * worker looked.
	 */
	if (was && !answer && page_repair_guard)
	{
		GuardControl control;

		if (!checkpointer || !guard_read_control(&control) ||
			!guard_is_covered(control.redo, reached))
			answer = true;
	}

	if (!checkpointer || !RecoveryInProgress())
		tell_once(!setting && answer && !guard_has_sources());

	if (answer != was || !checkpointer)
	{
		GuardControl control;

		/*
		 * After crash recovery images are on from the first record.  After a
		 * promotion there may be older WAL without them behind the redo
		 * pointer.
		 */
		if (checkpointer && !RecoveryInProgress())
			since = GetXLogInsertRecPtr();
		else if (ArchiveRecoveryRequested && !(guard_read_control(&control) && guard_replayed_images(&control)))
			since = GetXLogReplayRecPtr(NULL);
		else
			since = InvalidXLogRecPtr;

		SpinLockAcquire(&shared->mutex);
		shared->in_force = answer;
		shared->in_force_since = since;
		SpinLockRelease(&shared->mutex);
	}

	/*
	 * What was changed before has no image, and maybe no source: whoever has
	 * turned images on, the time until they protect must have an end.  A
	 * worker that has gone does so with each shutdown, and else is back soon.
	 */
	if (answer && checkpointer && !RecoveryInProgress() &&
		!XLogRecPtrIsInvalid(since) && since != asked_for &&
		(watched || !guard_has_sources()))
	{
		asked_for = since;
		RequestCheckpoint(CHECKPOINT_IMMEDIATE | CHECKPOINT_FORCE);
	}
	return answer;
}

/*
 * Make images be written from the next turn of the checkpointer on, and ask
 * for a checkpoint, because what was changed before has none.
 */
void
guard_force_images(const char *why)
{
	bool		already;

	/* The worker and the checkpointer may find out at the same time */
	SpinLockAcquire(&page_repair_shared->mutex);
	already = page_repair_shared->forced && page_repair_shared->broken;
	page_repair_shared->forced = true;
	page_repair_shared->broken = true;
	SpinLockRelease(&page_repair_shared->mutex);
	if (!already)
		ereport(WARNING,
				(errmsg("full-page images are written again although \"%s\" is off", "full_page_writes"),
				 errdetail("No page repair source is healthy: %s.", why),
				 errhint("See the view polar_page_repair_sources. A checkpoint with images follows; until it is complete, pages torn in a crash may not be repairable.")));
	RequestCheckpoint(CHECKPOINT_IMMEDIATE | CHECKPOINT_FORCE);
}

/*
 * A checkpoint is about to make its redo pointer the one to recover from.
 * Without images since then, a source must have it (G1).
 */
static void
guard_checkpoint_before_record(XLogRecPtr redo, int flags)
{
	PageRepairShared *shared = page_repair_shared;
	TimestampTz deadline;
	bool		flushed = false;

	if (prev_checkpoint_before_record_hook)
		prev_checkpoint_before_record_hook(redo, flags);

	/* Nothing unsynced is left behind these, and images follow */
	if (shared == NULL || (flags & (CHECKPOINT_IS_SHUTDOWN | CHECKPOINT_END_OF_RECOVERY)) != 0)
		return;

	deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), page_repair_grace);
	for (;;)
	{
		bool		imaged;
		bool		forced;
		XLogRecPtr	reached;
		ProcNumber	worker;

		/*
		 * A person's word counts at once.  It stays pending, because the main
		 * loop has more to do with it.
		 */
		if (ConfigReloadPending)
			ProcessConfigFile(PGC_SIGHUP);

		SpinLockAcquire(&shared->mutex);
		imaged = shared->in_force && redo >= shared->in_force_since;
		forced = shared->forced;
		reached = shared->reached;
		worker = shared->worker;
		SpinLockRelease(&shared->mutex);

		if (!page_repair_guard || imaged || guard_is_covered(redo, reached))
			return;

		/* What is not flushed is not sent */
		if (!flushed)
			XLogFlush(redo + 1);
		flushed = true;
		if (forced || worker == INVALID_PROC_NUMBER || page_repair_source_list[0] == '\0' ||
			GetCurrentTimestamp() >= deadline)
			break;

		/* Others depend on the checkpointer meanwhile */
		SetLatch(&GetPGProcByNumber(worker)->procLatch);
		AbsorbSyncRequests();
		if (ProcSignalBarrierPending)
			ProcessProcSignalBarrier();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 GUARD_WAITED_FOR_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}

	guard_force_images("none has reached the redo point of the checkpoint that should end now");
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("checkpoint is not completed, because no page repair source has reached its redo point %X/%X",
					LSN_FORMAT_ARGS(redo)),
			 errdetail("The redo point before remains. A checkpoint with full-page images follows.")));
}

/*
 * Called once, when the module is preloaded.
 */
void
page_repair_install_guard(void)
{
	prev_full_page_writes_hook = full_page_writes_hook;
	full_page_writes_hook = guard_full_page_writes;
	prev_checkpoint_before_record_hook = checkpoint_before_record_hook;
	checkpoint_before_record_hook = guard_checkpoint_before_record;
}
