/*-------------------------------------------------------------------------
 *
 * moves.c
 *	  Databases that move to another tablespace.
 *
 * ALTER DATABASE SET TABLESPACE copies files: the new ones have the content of
 * the old ones, but images of before name the old tablespace.  So the points of
 * before go.  The command makes two checkpoints and nobody can use the database
 * from before the first one to after the second: at each point of this time,
 * all others but the last go.  When the command ends, its own two are the
 * oldest, and as nothing of the database has been written since the first,
 * both are right; until then there is always the one that recovery needs.
 *
 * A standby only sees the copy, and ends its window.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/moves.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/rmgr.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogreader.h"
#include "commands/dbcommands_xlog.h"
#include "flashback_log.h"
#include "storage/ipc.h"
#include "tcop/utility.h"

static ProcessUtility_hook_type prev_process_utility_hook = NULL;
static void (*prev_dbase_redo) (XLogReaderState *record) = NULL;

static bool
moves_database(const Node *statement)
{
	if (!IsA(statement, AlterDatabaseStmt))
		return false;
	foreach_node(DefElem, option, ((const AlterDatabaseStmt *) statement)->options)
	{
		if (strcmp(option->defname, "tablespace") == 0)
			return true;
	}
	return false;
}

static void
end_move(int code, Datum arg)
{
	SpinLockAcquire(&flashback_log_shared->mutex);
	flashback_log_shared->moves--;
	SpinLockRelease(&flashback_log_shared->mutex);
}

static void
process_utility(PlannedStmt *pstmt, const char *query, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *qc)
{
	ProcessUtility_hook_type next = prev_process_utility_hook ? prev_process_utility_hook : standard_ProcessUtility;

	if (!moves_database(pstmt->utilityStmt))
	{
		next(pstmt, query, read_only_tree, context, params, environment, dest, qc);
		return;
	}

	SpinLockAcquire(&flashback_log_shared->mutex);
	flashback_log_shared->moves++;
	SpinLockRelease(&flashback_log_shared->mutex);
	PG_ENSURE_ERROR_CLEANUP(end_move, 0);
	{
		next(pstmt, query, read_only_tree, context, params, environment, dest, qc);
	}
	PG_END_ENSURE_ERROR_CLEANUP(end_move, 0);
	end_move(0, 0);
}

/*
 * Replay, also of what the primary did before this server was started.  Crash
 * recovery never sees a move that was completed, as it begins after it.
 */
static void
replay_dbase(XLogReaderState *record)
{
	if ((XLogRecGetInfo(record) & ~XLR_INFO_MASK) == XLOG_DBASE_CREATE_FILE_COPY &&
		GetRecoveryState() == RECOVERY_STATE_ARCHIVE)
	{
		const xl_dbase_create_file_copy_rec *copy = (const xl_dbase_create_file_copy_rec *) XLogRecGetData(record);

		if (copy->src_db_id == copy->db_id &&
			pg_atomic_read_u64(&flashback_log_shared->lsn) != InvalidXLogRecPtr)
			flashback_log_break("a database was moved to another tablespace");
	}
	prev_dbase_redo(record);
}

/*
 * Installs the hooks that see databases move.
 */
void
flashback_log_install_moves(void)
{
	prev_process_utility_hook = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
	prev_dbase_redo = RmgrTable[RM_DBASE_ID].rm_redo;
	RmgrTable[RM_DBASE_ID].rm_redo = replay_dbase;
}
