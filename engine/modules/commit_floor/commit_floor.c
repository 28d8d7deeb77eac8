/*-------------------------------------------------------------------------
 *
 * commit_floor.c
 *	  No commit waits for less than the server says.
 *
 * synchronous_commit is every session's own: whoever sets it to off or local
 * is acknowledged what no standby has.  Here a commit below the floor is
 * raised to it, for this commit only: the variable is raised when nothing of
 * the transaction is left that could run a user's code, and put back before
 * the settings of the transaction end.  And a wait for standbys, once begun,
 * ends with what it waits for or with the connection, never with a cancel.
 *
 * See README for the invariants.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/commit_floor/commit_floor.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "libpq/libpq.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "postmaster/autovacuum.h"
#include "replication/logicalworker.h"
#include "replication/syncrep.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/guc_hooks.h"

PG_MODULE_MAGIC_EXT(
					.name = "commit_floor",
					.version = "1.0"
);

/*
 * The floor in force.  Sessions read their settings again between two
 * commands only, which is too late for one that waits, and for a procedure
 * that commits for hours; so the postmaster writes it here before it tells
 * anybody of a reload.
 */
typedef struct CommitFloorShared
{
	pg_atomic_uint32 level;		/* a SyncCommitLevel */
} CommitFloorShared;

static const struct config_enum_entry commit_floor_options[] = {
	{"off", SYNCHRONOUS_COMMIT_OFF, false},
	{"remote_write", SYNCHRONOUS_COMMIT_REMOTE_WRITE, false},
	{"on", SYNCHRONOUS_COMMIT_ON, false},
	{"remote_apply", SYNCHRONOUS_COMMIT_REMOTE_APPLY, false},
	{NULL, 0, false}
};

static CommitFloorShared *shared = NULL;

/* Setting */
static int	commit_floor = SYNCHRONOUS_COMMIT_OFF;

/* The level that the commit under way was raised from, or -1 */
static int	raised_from = -1;

/* Is the client told nothing until the wait is over? */
static bool silenced = false;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;
static sync_rep_wait_hook_type prev_sync_rep_wait_hook = NULL;
static ProcessUtility_hook_type prev_ProcessUtility_hook = NULL;

/*
 * The floor in force now, for all sessions.
 */
static int
commit_floor_in_force(void)
{
	return shared ? (int) pg_atomic_read_u32(&shared->level) : commit_floor;
}

static void
commit_floor_assign(int newval, void *extra)
{
	if (!IsUnderPostmaster && shared)
		pg_atomic_write_u32(&shared->level, newval);
}

/*
 * SHOW says what is in force, not what this session has heard of.
 */
static const char *
commit_floor_show(void)
{
	int			level = commit_floor_in_force();
	const struct config_enum_entry *option = commit_floor_options;

	while (option->val != level)
		option++;
	return option->name;
}

static void commit_floor_shmem_startup(void);

static void
commit_floor_shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = commit_floor_shmem_startup;

	RequestAddinShmemSpace(MAXALIGN(sizeof(CommitFloorShared)));
}

static void
commit_floor_shmem_startup(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("commit_floor", sizeof(CommitFloorShared), &found);
	if (!found)
		pg_atomic_init_u32(&shared->level, commit_floor);
	LWLockRelease(AddinShmemInitLock);
}

/*
 * Set synchronous_commit behind the back of the settings' machinery, which
 * must find it as it was when it undoes SET LOCAL.
 */
static void
commit_floor_set_level(int level)
{
	synchronous_commit = level;
	assign_synchronous_commit(level, NULL);
}

/*
 * Raise the level of the commit that is about to begin.
 *
 * Autovacuum acknowledges nothing to anybody, and must not stand still while
 * standbys are away.  In single-user mode and under pg_upgrade no standby can
 * ever confirm.
 */
static void
commit_floor_raise(void)
{
	int			level = commit_floor_in_force();

	if (raised_from >= 0 || synchronous_commit >= level ||
		!IsUnderPostmaster || IsBinaryUpgrade || AmAutoVacuumWorkerProcess())
		return;
	raised_from = synchronous_commit;
	commit_floor_set_level(level);
}

/*
 * The commit is over, or was not to be: put back what was changed for it.
 */
static void
commit_floor_put_back(void)
{
	if (raised_from >= 0)
	{
		commit_floor_set_level(raised_from);
		raised_from = -1;
	}

	/*
	 * The wait may have been given up without what it waited for.  Then the
	 * process is about to end, and the client must not hear from it again.
	 */
	if (silenced && !ProcDiePending)
		whereToSendOutput = DestRemote;
	silenced = false;

	/*
	 * SyncRepWaitForLSN() gives up when the postmaster is dead, but nothing
	 * makes the process notice: the next command of the same message would
	 * still be run, and its rows push out the acknowledgement before them.
	 */
	if (ProcDiePending && commit_floor_in_force() != SYNCHRONOUS_COMMIT_OFF)
		InterruptPending = true;
}

/*
 * A logical replication worker acknowledges to its publisher, which then
 * forgets what it has sent.  Wait for what no other wait of its covers.
 */
static void
commit_floor_before_logical_commit(void)
{
	static bool begun = false;
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	/*
	 * The worker will report as received what it finds committed when it
	 * begins, also what an earlier one has committed and was not waited for.
	 *
	 * A prepared transaction is committed without a callback of its own; the
	 * one without an xid around it comes right behind.  Its record may carry
	 * no request for apply feedback, so it is waited for up to the flush.
	 */
	if (!begun)
		lsn = GetFlushRecPtr(NULL);
	else if (!TransactionIdIsValid(GetTopTransactionIdIfAny()))
		lsn = XactLastRecEnd;
	begun = true;

	if (lsn != InvalidXLogRecPtr)
	{
		XLogFlush(lsn);
		HOLD_INTERRUPTS();
		SyncRepWaitForLSN(lsn, false);
		RESUME_INTERRUPTS();
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * The worker may report its position once more before it notices that it is to
 * end.  A commit that ends where no WAL will ever be is not reported.
 */
static void
commit_floor_after_logical_commit(void)
{
	if (ProcDiePending)
		XactLastCommitEnd = PG_UINT64_MAX;
}

static void
commit_floor_xact(XactEvent event, void *arg)
{
	bool		logical = IsLogicalWorker() &&
		commit_floor_in_force() != SYNCHRONOUS_COMMIT_OFF;

	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			commit_floor_raise();
			if (logical)
				commit_floor_before_logical_commit();
			break;
		case XACT_EVENT_PRE_PREPARE:
			commit_floor_raise();
			break;
		case XACT_EVENT_COMMIT:
			if (logical)
				commit_floor_after_logical_commit();
			commit_floor_put_back();
			break;
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			commit_floor_put_back();
			break;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
			/* the leader commits */
			break;
	}
}

/*
 * COMMIT PREPARED commits another transaction than its own.  ROLLBACK PREPARED
 * needs no floor: what it takes back was never acknowledged as committed.
 */
static void
commit_floor_ProcessUtility(PlannedStmt *pstmt, const char *queryString,
							bool readOnlyTree, ProcessUtilityContext context,
							ParamListInfo params, QueryEnvironment *queryEnv,
							DestReceiver *dest, QueryCompletion *qc)
{
	ProcessUtility_hook_type next = prev_ProcessUtility_hook ?
		prev_ProcessUtility_hook : standard_ProcessUtility;
	TransactionStmtKind kind = IsA(pstmt->utilityStmt, TransactionStmt) ?
		castNode(TransactionStmt, pstmt->utilityStmt)->kind : TRANS_STMT_BEGIN;

	if (kind != TRANS_STMT_COMMIT_PREPARED && kind != TRANS_STMT_ROLLBACK_PREPARED)
	{
		next(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
		return;
	}

	if (kind == TRANS_STMT_COMMIT_PREPARED)
		commit_floor_raise();
	PG_TRY();
	{
		next(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	}
	PG_FINALLY();
	{
		commit_floor_put_back();
	}
	PG_END_TRY();
}

/*
 * Insist on a wait for standbys.
 *
 * With the extended protocol the output buffer may hold a CommandComplete that
 * the client shall see only together with the end of the transaction.  Any
 * message flushes it, so there are none until the wait is over.
 */
static bool
commit_floor_wait(SyncRepWaitEvent event)
{
	bool		ends = prev_sync_rep_wait_hook ? prev_sync_rep_wait_hook(event) : true;

	if (commit_floor_in_force() == SYNCHRONOUS_COMMIT_OFF)
		return ends;

	switch (event)
	{
		case SYNC_REP_WAIT_BEGIN:
			if (whereToSendOutput == DestRemote && pq_is_send_pending())
			{
				silenced = true;
				whereToSendOutput = DestNone;
			}
			break;
		case SYNC_REP_WAIT_CANCEL:
			ereport(WARNING,
					(errmsg("could not cancel the wait for synchronous replication because of \"%s\"",
							"polar_commit_floor"),
					 errdetail("The transaction has already committed locally, and is acknowledged when standbys have it."),
					 errhint("Terminate the connection to end the wait without an acknowledgement.")));
			break;
	}
	return false;
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("module \"%s\" must be loaded at server start", "commit_floor"),
				 errhint("Add it to \"shared_preload_libraries\".")));

	DefineCustomEnumVariable("polar_commit_floor",
							 gettext_noop("The least that a commit waits for, whatever \"synchronous_commit\" says."),
							 gettext_noop("While it is not off, a cancel does not end a wait for standbys. "
										  "Without \"synchronous_standby_names\" no commit waits for standbys."),
							 &commit_floor,
							 SYNCHRONOUS_COMMIT_OFF, commit_floor_options,
							 PGC_SIGHUP, 0,
							 NULL, commit_floor_assign, commit_floor_show);

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = commit_floor_shmem_request;
	prev_ProcessUtility_hook = ProcessUtility_hook;
	ProcessUtility_hook = commit_floor_ProcessUtility;
	prev_sync_rep_wait_hook = sync_rep_wait_hook;
	sync_rep_wait_hook = commit_floor_wait;
	RegisterXactCallback(commit_floor_xact, NULL);
}
