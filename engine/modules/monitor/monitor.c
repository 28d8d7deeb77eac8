/*-------------------------------------------------------------------------
 *
 * monitor.c
 *	  Statistics that PostgreSQL 18 does not show.
 *
 * The module only counts and copies; no statement, checkpoint or WAL record
 * is different for it.  That is why it has no settings.  It counts whether or
 * not the extension is created: the extension only brings the views.
 *
 * See README for the invariants.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/monitor/monitor.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "monitor.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

PG_MODULE_MAGIC_EXT(
					.name = "monitor",
					.version = "1.1"
);

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void monitor_shmem_startup(void);

static void
monitor_shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = monitor_shmem_startup;

	RequestAddinShmemSpace(monitor_stat_wal_shmem_size());
	RequestAddinShmemSpace(monitor_stat_checkpoint_shmem_size());
}

static void
monitor_shmem_startup(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	monitor_stat_wal_shmem_init();
	monitor_stat_checkpoint_shmem_init();
	LWLockRelease(AddinShmemInitLock);
}

/*
 * Raise an error unless the module's shared memory exists.
 */
void
monitor_check_loaded(const void *shared)
{
	if (shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("module \"%s\" was not loaded when the server started", "monitor"),
				 errhint("Add it to \"%s\" and restart the server.", "shared_preload_libraries")));
}

/*
 * Module load callback
 */
void
_PG_init(void)
{
	/* Counting has to begin before the first process does */
	if (!process_shared_preload_libraries_in_progress)
		return;

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = monitor_shmem_request;

	monitor_stat_wal_install_hooks();
	monitor_stat_checkpoint_install_hooks();
}
