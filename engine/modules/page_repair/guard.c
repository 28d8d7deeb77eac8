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

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "page_repair.h"
#include "postmaster/bgworker.h"
#include "postmaster/bgwriter.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procsignal.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define GUARD_INTERVAL_MS 1000

/* Checks come closer while a checkpoint waits for one */
#define GUARD_WAITED_FOR_MS 50

/* A source that needs longer is not healthy */
#define GUARD_ANSWER_MS 3000

static full_page_writes_hook_type prev_full_page_writes_hook = NULL;
static checkpoint_complete_hook_type prev_checkpoint_complete_hook = NULL;

/*
 * The redo pointer in pg_control, InvalidXLogRecPtr if it cannot be read.
 */
static XLogRecPtr
control_redo(bool *images, TimeLineID *timeline)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);
	XLogRecPtr	redo = crc_ok ? control->checkPointCopy.redo : InvalidXLogRecPtr;

	if (images)
		*images = control->checkPointCopy.fullPageWrites;
	if (timeline)
		*timeline = control->checkPointCopy.ThisTimeLineID;
	pfree(control);
	return redo;
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

	if (page_repair_source_list == NULL || page_repair_source_list[0] == '\0')
		return;
	SpinLockAcquire(&page_repair_shared->mutex);
	launched = page_repair_shared->launched;
	SpinLockRelease(&page_repair_shared->mutex);
	if (launched || GetCurrentTimestamp() < next_try)
		return;
	next_try = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 5000);

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "$libdir/page_repair", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "page_repair_worker_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "page repair guard", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "page repair guard", sizeof(worker.bgw_type));
	if (!RegisterDynamicBackgroundWorker(&worker, NULL))
	{
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
 * Are full-page images to be written?  Called by the checkpointer in each turn
 * of its loop, and by the process that ends recovery.
 */
static bool
guard_full_page_writes(bool setting)
{
	PageRepairShared *shared = page_repair_shared;
	bool		answer;
	bool		was;
	XLogRecPtr	reached;

	if (prev_full_page_writes_hook)
		setting = prev_full_page_writes_hook(setting);
	if (shared == NULL)
		return setting;
	if (AmCheckpointerProcess())
		launch_worker();

	SpinLockAcquire(&shared->mutex);
	answer = setting || (page_repair_guard && shared->forced);
	was = shared->in_force;
	reached = shared->reached;
	SpinLockRelease(&shared->mutex);

	/*
	 * G1: a checkpoint with images may have moved the redo pointer since the
	 * worker looked.
	 */
	if (was && !answer && page_repair_guard)
	{
		XLogRecPtr	redo = AmCheckpointerProcess() ? control_redo(NULL, NULL) : InvalidXLogRecPtr;

		if (XLogRecPtrIsInvalid(redo) || reached < redo)
			answer = true;
	}

	if (answer != was || !AmCheckpointerProcess())
	{
		/*
		 * After crash recovery images are on from the first record.  After a
		 * promotion there is older WAL without them behind the redo pointer.
		 */
		XLogRecPtr	since = AmCheckpointerProcess() && !RecoveryInProgress() ? GetXLogInsertRecPtr() :
			ArchiveRecoveryRequested ? GetXLogReplayRecPtr(NULL) : InvalidXLogRecPtr;

		SpinLockAcquire(&shared->mutex);
		shared->in_force = answer;
		shared->in_force_since = since;
		SpinLockRelease(&shared->mutex);
	}
	return answer;
}

/*
 * Make images be written from the next turn of the checkpointer on, and ask
 * for a checkpoint, because what was changed before has none.
 */
static void
force_images(const char *why)
{
	SpinLockAcquire(&page_repair_shared->mutex);
	page_repair_shared->forced = true;
	page_repair_shared->broken = true;
	SpinLockRelease(&page_repair_shared->mutex);
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
guard_checkpoint_complete(XLogRecPtr redo, int flags)
{
	PageRepairShared *shared = page_repair_shared;
	TimestampTz deadline;

	if (prev_checkpoint_complete_hook)
		prev_checkpoint_complete_hook(redo, flags);

	/* Nothing unsynced is left behind these, and images follow */
	if (shared == NULL || (flags & (CHECKPOINT_IS_SHUTDOWN | CHECKPOINT_END_OF_RECOVERY)) != 0)
		return;

	/* What is not flushed is not sent */
	XLogFlush(redo + 1);

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

		if (!page_repair_guard || imaged || reached >= redo)
			return;
		if (forced || worker == INVALID_PROC_NUMBER ||
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

	force_images("none has reached the redo point of the checkpoint that should end now");
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("checkpoint is not completed, because no page repair source has reached its redo point %X/%X",
					LSN_FORMAT_ARGS(redo)),
			 errdetail("The redo point before remains. A checkpoint with full-page images follows.")));
}

/* ----------------------------------------------------------------------
 * The worker
 * ----------------------------------------------------------------------
 */

static void
worker_exit(int code, Datum arg)
{
	ProcNumber	checkpointer = ProcGlobal->checkpointerProc;

	/* Without us nobody knows: images on */
	SpinLockAcquire(&page_repair_shared->mutex);
	page_repair_shared->worker = INVALID_PROC_NUMBER;
	page_repair_shared->launched = false;
	page_repair_shared->forced = true;
	page_repair_shared->reached = InvalidXLogRecPtr;
	strlcpy(page_repair_shared->why, "the page repair guard does not run", sizeof(page_repair_shared->why));
	SpinLockRelease(&page_repair_shared->mutex);
	if (checkpointer != INVALID_PROC_NUMBER)
		SetLatch(&GetPGProcByNumber(checkpointer)->procLatch);
}

static void
set_broken(bool broken)
{
	SpinLockAcquire(&page_repair_shared->mutex);
	page_repair_shared->broken = broken;
	SpinLockRelease(&page_repair_shared->mutex);
}

static void
set_state(PageRepairState state, const char *why)
{
	SpinLockAcquire(&page_repair_shared->mutex);
	if (page_repair_shared->state != state)
		page_repair_shared->since = GetCurrentTimestamp();
	page_repair_shared->state = state;
	strlcpy(page_repair_shared->why, why, sizeof(page_repair_shared->why));
	SpinLockRelease(&page_repair_shared->mutex);
}

/*
 * What protects this instance.  While no worker keeps the state up to date it
 * follows from what is in force.
 */
void
page_repair_current_state(PageRepairState *state, TimestampTz *since,
						  bool *in_force, char *why, Size why_size)
{
	PageRepairShared *shared = page_repair_shared;
	bool		standby = RecoveryInProgress();
	bool		control_images;
	XLogRecPtr	redo = control_redo(&control_images, NULL);
	XLogRecPtr	in_force_since;
	bool		worker;

	SpinLockAcquire(&shared->mutex);
	*state = shared->state;
	*since = shared->since;
	*in_force = shared->in_force;
	in_force_since = shared->in_force_since;
	worker = (shared->worker != INVALID_PROC_NUMBER);
	strlcpy(why, shared->why, why_size);
	SpinLockRelease(&shared->mutex);

	if (worker)
		return;
	if (standby)
	{
		*state = control_images ? PAGE_REPAIR_FULL_PAGE_WRITES : PAGE_REPAIR_EXPOSED;
		if (control_images)
			strlcpy(why, "the WAL from the primary has full-page images", why_size);
	}
	else if (fullPageWrites)
	{
		*state = PAGE_REPAIR_FULL_PAGE_WRITES;
		strlcpy(why, "full_page_writes is on", why_size);
	}
	else if (!page_repair_guard)
	{
		*state = PAGE_REPAIR_OVERRIDDEN;
		strlcpy(why, "polar_page_repair_guard is off", why_size);
	}
	else if (*in_force && redo >= in_force_since)
		*state = PAGE_REPAIR_FULL_PAGE_WRITES;
	else
		*state = PAGE_REPAIR_EXPOSED;
	if ((*state == PAGE_REPAIR_EXPOSED || (*state == PAGE_REPAIR_FULL_PAGE_WRITES && !standby && !fullPageWrites)) &&
		page_repair_source_list[0] == '\0')
		strlcpy(why, "polar_page_repair_sources is empty", why_size);
}

/*
 * Ask one source, and say in it why it is not healthy if it is not.
 */
static bool
check_source(PageSource *source, XLogRecPtr redo, TimeLineID timeline, PageSourceHeader *header)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz deadline = TimestampTzPlusMilliseconds(now, GUARD_ANSWER_MS);
	PGresult   *result;
	bool		standby = RecoveryInProgress();

	memset(header, 0, sizeof(*header));
	if (!page_source_connect(source, deadline) ||
		!page_source_send(source, NULL, 0) ||
		(result = page_source_receive(source, deadline, header)) == NULL)
		return false;
	PQclear(result);

#define UNLESS(condition, ...) \
	if (!(condition)) \
	{ \
		snprintf(source->why, sizeof(source->why), __VA_ARGS__); \
		return false; \
	}

	UNLESS(header->system_identifier == GetSystemIdentifier(),
		   "it belongs to another system, " UINT64_FORMAT, header->system_identifier);
	UNLESS(header->data_checksums, "it has no data checksums");
	if (standby)
		return true;
	UNLESS(header->in_recovery, "it is not a standby");
	UNLESS(header->timeline == timeline, "it is on timeline %u, not %u", header->timeline, timeline);
	UNLESS(header->streaming, "it does not stream");
	UNLESS(header->flush_lsn >= redo, "it has flushed %X/%X, the last checkpoint's redo point is %X/%X",
		   LSN_FORMAT_ARGS(header->flush_lsn), LSN_FORMAT_ARGS(redo));
	if (header->end_lsn >= redo)
		source->behind_since = 0;
	else if (source->behind_since == 0)
		source->behind_since = now;
	UNLESS(source->behind_since == 0 ||
		   now - source->behind_since <= page_repair_grace * INT64CONST(1000),
		   "it has replayed %X/%X, the last checkpoint's redo point is %X/%X",
		   LSN_FORMAT_ARGS(header->end_lsn), LSN_FORMAT_ARGS(redo));
#undef UNLESS
	return true;
}

/*
 * One look at everything.
 */
static void
guard_turn(PageSource *sources, int nsources)
{
	static TimestampTz unhealthy_since = 0;
	static TimestampTz healthy_since = 0;
	static XLogRecPtr requested_for = InvalidXLogRecPtr;
	bool		broken;
	PageRepairShared *shared = page_repair_shared;
	bool		standby = RecoveryInProgress();
	bool		control_images;
	TimeLineID	timeline;
	XLogRecPtr	redo = control_redo(&control_images, &timeline);
	XLogRecPtr	reached = InvalidXLogRecPtr;
	const char *protector = NULL;
	char		why[256];
	bool		forced;
	bool		in_force;
	XLogRecPtr	in_force_since;
	TimestampTz now;

	if (XLogRecPtrIsInvalid(redo))
		return;					/* it is being written; next time */

	why[0] = '\0';
	for (int i = 0; i < nsources; i++)
	{
		PageSourceHeader header;
		bool		healthy = check_source(&sources[i], redo, timeline, &header);
		PageRepairSourceState *state = &shared->sources[i];

		if (healthy)
		{
			reached = Max(reached, header.flush_lsn);
			if (protector == NULL)
				protector = sources[i].name;
		}
		else if (why[0] == '\0')
			snprintf(why, sizeof(why), "source \"%s\": %s", sources[i].name, sources[i].why);

		SpinLockAcquire(&shared->mutex);
		if (strcmp(state->name, sources[i].name) != 0)
		{
			memset(state, 0, sizeof(*state));
			strlcpy(state->name, sources[i].name, sizeof(state->name));
		}
		state->healthy = healthy;
		strlcpy(state->why, sources[i].why, sizeof(state->why));
		state->flush_lsn = header.flush_lsn;
		state->replay_lsn = header.end_lsn;
		state->checked_at = GetCurrentTimestamp();
		SpinLockRelease(&shared->mutex);
	}
	if (!DataChecksumsEnabled())
	{
		protector = NULL;
		reached = InvalidXLogRecPtr;
		strlcpy(why, "data checksums are off", sizeof(why));
	}

	/* After a promotion a sibling may still follow the old timeline */
	if (!standby && timeline != GetWALInsertionTimeLine())
	{
		protector = NULL;
		reached = InvalidXLogRecPtr;
		strlcpy(why, "no checkpoint on this timeline is complete", sizeof(why));
	}

	now = GetCurrentTimestamp();
	SpinLockAcquire(&shared->mutex);
	for (int i = nsources; i < PAGE_REPAIR_MAX_SOURCES; i++)
		shared->sources[i].name[0] = '\0';
	shared->reached = reached;
	forced = shared->forced;
	broken = shared->broken;
	in_force = shared->in_force;
	in_force_since = shared->in_force_since;
	SpinLockRelease(&shared->mutex);

	if (protector != NULL)
	{
		unhealthy_since = 0;
		if (healthy_since == 0)
			healthy_since = now;
	}
	else
	{
		healthy_since = 0;
		if (unhealthy_since == 0)
			unhealthy_since = now;
	}

	/* Who replays what another writes has nothing to decide */
	if (standby)
	{
		if (control_images)
			set_state(PAGE_REPAIR_FULL_PAGE_WRITES, "the WAL from the primary has full-page images");
		else if (protector != NULL)
			set_state(PAGE_REPAIR_PROTECTED, psprintf("source \"%s\"", protector));
		else
			set_state(PAGE_REPAIR_EXPOSED, why);
		return;
	}

	if (fullPageWrites)
	{
		set_state(PAGE_REPAIR_FULL_PAGE_WRITES, "full_page_writes is on");
		set_broken(false);
		broken = false;
	}
	else if (!page_repair_guard)
	{
		set_state(PAGE_REPAIR_OVERRIDDEN, "polar_page_repair_guard is off");
		set_broken(false);
		broken = false;
	}
	else if (in_force && redo >= in_force_since)
		set_state(PAGE_REPAIR_FULL_PAGE_WRITES,
				  protector ? "full_page_writes is off, a source is healthy, images end soon" : why);
	else if (protector != NULL && reached >= redo)
		set_state(PAGE_REPAIR_PROTECTED, psprintf("source \"%s\"", protector));
	else
		set_state(PAGE_REPAIR_EXPOSED, why[0] ? why : "a checkpoint with full-page images is not complete yet");

	/* Images that came back count once a checkpoint has begun after them */
	if (forced && broken && in_force && redo < in_force_since && requested_for != in_force_since &&
		!fullPageWrites && page_repair_guard)
	{
		requested_for = in_force_since;
		RequestCheckpoint(CHECKPOINT_IMMEDIATE | CHECKPOINT_FORCE);
	}

	/* Decide what is to be, whatever the setting is at the moment */
	if (!forced && protector == NULL &&
		(fullPageWrites || !page_repair_guard ||
		 now - unhealthy_since >= page_repair_grace * INT64CONST(1000)))
	{
		if (fullPageWrites || !page_repair_guard)
		{
			/* Only remembered for the time when it matters */
			SpinLockAcquire(&shared->mutex);
			shared->forced = true;
			SpinLockRelease(&shared->mutex);
		}
		else
			force_images(why);
	}
	else if (forced && protector != NULL &&
			 (!broken ||
			  (redo >= in_force_since && now - healthy_since >= page_repair_grace * INT64CONST(1000))))
	{
		ProcNumber	checkpointer = ProcGlobal->checkpointerProc;

		SpinLockAcquire(&shared->mutex);
		shared->forced = false;
		shared->broken = false;
		SpinLockRelease(&shared->mutex);
		if (!fullPageWrites && page_repair_guard)
			ereport(LOG,
					(errmsg("full-page images are left out, because page repair source \"%s\" is healthy",
							protector)));
		if (checkpointer != INVALID_PROC_NUMBER)
			SetLatch(&GetPGProcByNumber(checkpointer)->procLatch);
	}
	else if (forced && protector == NULL && !fullPageWrites && page_repair_guard)
	{
		set_broken(true);
	}
	else if (!forced && in_force && !fullPageWrites && page_repair_guard)
	{
		ProcNumber	checkpointer = ProcGlobal->checkpointerProc;

		/* It has refused so far, because a checkpoint was faster than we are */
		if (checkpointer != INVALID_PROC_NUMBER)
			SetLatch(&GetPGProcByNumber(checkpointer)->procLatch);
	}
}

/*
 * Entry point of the worker
 */
void
page_repair_worker_main(Datum arg)
{
	PageSource *sources = NULL;
	int			nsources = 0;
	char	   *list = NULL;
	MemoryContext turn;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	/* To be seen in pg_stat_activity */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	before_shmem_exit(worker_exit, 0);
	SpinLockAcquire(&page_repair_shared->mutex);
	page_repair_shared->launched = true;
	page_repair_shared->worker = MyProcNumber;
	SpinLockRelease(&page_repair_shared->mutex);

	turn = AllocSetContextCreate(TopMemoryContext, "page repair guard turn", ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		char	   *error;
		MemoryContext old;

		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (list == NULL || strcmp(list, page_repair_source_list) != 0)
		{
			page_repair_close_sources(sources, nsources);
			if (list)
				pfree(list);
			list = MemoryContextStrdup(TopMemoryContext, page_repair_source_list);
			old = MemoryContextSwitchTo(TopMemoryContext);
			if (!page_repair_parse_sources(list, &sources, &nsources, &error))
				ereport(ERROR, (errmsg("%s", error)));
			MemoryContextSwitchTo(old);
		}
		/* The checkpointer starts another one when there is something to do */
		if (nsources == 0)
		{
			SpinLockAcquire(&page_repair_shared->mutex);
			memset(page_repair_shared->sources, 0, sizeof(page_repair_shared->sources));
			SpinLockRelease(&page_repair_shared->mutex);
			if (!fullPageWrites && page_repair_guard && !RecoveryInProgress())
				force_images("polar_page_repair_sources is empty");
			proc_exit(0);
		}
		old = MemoryContextSwitchTo(turn);
		guard_turn(sources, nsources);
		MemoryContextSwitchTo(old);
		MemoryContextReset(turn);

		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 GUARD_INTERVAL_MS, PG_WAIT_EXTENSION);
	}
}

/*
 * Called once, when the module is preloaded.
 */
void
page_repair_install_guard(void)
{
	prev_full_page_writes_hook = full_page_writes_hook;
	full_page_writes_hook = guard_full_page_writes;
	prev_checkpoint_complete_hook = checkpoint_complete_hook;
	checkpoint_complete_hook = guard_checkpoint_complete;
}
