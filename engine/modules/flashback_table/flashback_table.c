/*-------------------------------------------------------------------------
 *
 * flashback_table.c
 *	  The rows of tables as they were at a moment.
 *
 * From the pages that the module flashback_log kept, and WAL, each page of a
 * heap is rebuilt as of one position in WAL; of the rows there, those of
 * transactions that had committed until the moment are returned.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/flashback_table.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "flashback_internal.h"
#include "fmgr.h"

PG_MODULE_MAGIC_EXT(.name = "flashback_table",.version = PG_VERSION);

flashback_progress_callback flashback_progress_hook = NULL;
FlashbackProgress flashback_progress;

/*
 * What flashback_log lets others read.
 */
const FlashbackLogApi *
flashback_log(void)
{
	const FlashbackLogApi *api = *find_rendezvous_variable(FLASHBACK_LOG_API);

	if (api == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the module flashback_log is not loaded")));
	return api;
}

/*
 * Shows how far we are, to whoever wants to know.
 */
void
flashback_report(FlashbackPhase phase)
{
	flashback_progress.phase = phase;
	if (flashback_progress_hook)
		flashback_progress_hook(&flashback_progress);
}
