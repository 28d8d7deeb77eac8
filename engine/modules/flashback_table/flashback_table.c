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

#include "flashback_definition.h"
#include "flashback_events.h"
#include "flashback_internal.h"
#include "flashback_sql.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"

PG_MODULE_MAGIC_EXT(.name = "flashback_table",.version = PG_VERSION);

flashback_progress_callback flashback_progress_hook = NULL;
FlashbackProgress flashback_progress;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

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

static void flashback_table_shmem_startup(void);

static void
flashback_table_shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = flashback_table_shmem_startup;
	flashback_progress_request();
}

static void
flashback_table_shmem_startup(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	flashback_progress_startup();
	LWLockRelease(AddinShmemInitLock);
}

/*
 * Module load callback
 */
void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = flashback_table_shmem_request;
	flashback_table_hook = flashback_execute_command;
	flashback_definition_install();
	*(FlashbackPastFinder *) find_rendezvous_variable(FLASHBACK_PAST) = flashback_find_past;
}
