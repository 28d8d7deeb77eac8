/*-------------------------------------------------------------------------
 *
 * flashback_log.c
 *	  Keeps the pages of relations as they were before they are overwritten.
 *
 * Settings and shared memory.  See README.invariants.md.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/flashback_log.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/commit_ts.h"
#include "access/xlog.h"
#include "flashback_log.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

PG_MODULE_MAGIC_EXT(
					.name = "flashback_log",
					.version = "1.0"
);

bool		flashback_log_enabled = false;
bool		flashback_log_keep_recovery_area = false;
int			flashback_log_mode = FLASHBACK_LOG_ASYNC;
int			flashback_log_compression = FLASHBACK_LOG_ZSTD;
int			flashback_log_keep_segments = 8;
int			flashback_log_rotation = 180;
int			flashback_log_point_timeout = 300;
int			flashback_log_point_segments = 16;
int			flashback_log_max_size = 10240;
int			flashback_recycle_max_size = 10240;
int			flashback_log_reserve = -1;
int			flashback_log_segment_size_kb = FLASHBACK_LOG_SEGMENT_MB * 1024;

FlashbackLogShared *flashback_log_shared = NULL;
LWLockPadded *flashback_log_locks = NULL;
uint32		flashback_log_wait_event = 0;

static const struct config_enum_entry mode_options[] = {
	{"async", FLASHBACK_LOG_ASYNC, false},
	{"sync", FLASHBACK_LOG_SYNC, false},
	{NULL, 0, false}
};

static const struct config_enum_entry compression_options[] = {
	{"off", FLASHBACK_LOG_PLAIN, false},
	{"pglz", FLASHBACK_LOG_PGLZ, false},
	{"lz4", FLASHBACK_LOG_LZ4, false},
	{"zstd", FLASHBACK_LOG_ZSTD, false},
	{NULL, 0, false}
};

const char *const flashback_log_mode_names[] = {
	[FLASHBACK_LOG_ASYNC] = "async",
	[FLASHBACK_LOG_SYNC] = "sync",
};

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void flashback_log_shmem_startup(void);

/*
 * The first call after the settings have been read, which they have not when
 * the module is loaded.
 */
static void
flashback_log_shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = flashback_log_shmem_startup;

	RequestAddinShmemSpace(add_size(MAXALIGN(sizeof(FlashbackLogShared)), flashback_log_kept_size()));
	RequestNamedLWLockTranche("flashback_log", FLASHBACK_LOG_NLOCKS);

	/* Switched off, no hook is there to be called */
	if (!flashback_log_enabled)
		return;
	if (!track_commit_timestamp)
		SetConfigOption("track_commit_timestamp", "on", PGC_POSTMASTER, PGC_S_OVERRIDE);
	flashback_log_install_capture();
	flashback_log_install_points();
	flashback_log_install_moves();
	flashback_log_install_retention();
	flashback_log_install_ahead();
	if (flashback_log_keep_recovery_area)
		flashback_log_install_recycle();
}

/*
 * Here nothing has been written yet by this run of the server, neither after
 * its start nor after one of its processes crashed.
 */
static void
flashback_log_shmem_startup(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	if (flashback_log_enabled && wal_level < WAL_LEVEL_REPLICA)
		ereport(FATAL,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the flashback log requires \"wal_level\" to be \"replica\" or \"logical\"")));

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	flashback_log_shared = ShmemInitStruct("flashback_log", sizeof(FlashbackLogShared), &found);
	flashback_log_locks = GetNamedLWLockTranche("flashback_log");
	flashback_log_kept_startup();
	if (!found)
	{
		FlashbackLogShared *shared = flashback_log_shared;
		pg_atomic_uint64 *atomics[] = {
			&shared->lsn, &shared->sync_started, &shared->sync_done,
			&shared->sync_segment, &shared->failed_segment, &shared->looks,
			&shared->images, &shared->zeroes, &shared->unreadable,
			&shared->raw_bytes, &shared->bytes, &shared->capture_us,
			&shared->syncs, &shared->sync_us, &shared->failures,
		};

		memset(shared, 0, sizeof(FlashbackLogShared));
		SpinLockInit(&shared->mutex);
		ConditionVariableInit(&shared->truncations_done);
		shared->worker = INVALID_PROC_NUMBER;
		shared->writer = INVALID_PROC_NUMBER;
		shared->whole = true;
		for (int i = 0; i < lengthof(atomics); i++)
			pg_atomic_init_u64(atomics[i], 0);
		flashback_log_begin();
	}
	LWLockRelease(AddinShmemInitLock);

	flashback_log_wait_event = WaitEventExtensionNew("FlashbackLog");
}

/*
 * Module load callback
 */
void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	DefineCustomBoolVariable("polar_enable_flashback_log",
							 "Keeps the pages of relations as they were before they are overwritten.",
							 "Commit timestamps are collected, too.",
							 &flashback_log_enabled,
							 false,
							 PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("polar_enable_fast_recovery_area",
							 "Keeps the WAL, the commit status and the files of deleted relations that flashback needs.",
							 NULL,
							 &flashback_log_keep_recovery_area,
							 false,
							 PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("polar_flashback_log_mode",
							 "Whether a page must be durable in the flashback log before it is overwritten.",
							 "async: no, its window ends when the operating system crashes; sync: yes, else it is not overwritten.",
							 &flashback_log_mode,
							 FLASHBACK_LOG_ASYNC, mode_options,
							 PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("polar_flashback_log_compression",
							 "Compresses pages in the flashback log.",
							 NULL,
							 &flashback_log_compression,
							 FLASHBACK_LOG_ZSTD, compression_options,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_flashback_log_keep_segments",
							"Segments of the flashback log, of 256 MB each, that are kept without a fast recovery area.",
							NULL,
							&flashback_log_keep_segments,
							8, 3, INT_MAX,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_flashback_log_max_size",
							"Size that the flashback log may have, however long it is to be kept.",
							"Zero means no limit.",
							&flashback_log_max_size,
							10240, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_flashback_recycle_max_size",
							"Size that kept files of deleted relations may have in all tablespaces together.",
							"Zero means no limit. The oldest go first; a larger file is not kept.",
							&flashback_recycle_max_size,
							10240, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_flashback_reserve",
							"Space that the flashback log and what is kept with it leave free on each file system.",
							"-1 means a tenth of the file system, at most 4 GB; zero means none.",
							&flashback_log_reserve,
							-1, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_fast_recovery_area_rotation",
							"How long the fast recovery area and the flashback log are kept.",
							NULL,
							&flashback_log_rotation,
							180, 1, 14400,
							PGC_SIGHUP, GUC_UNIT_MIN, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_flashback_point_timeout",
							"Time after which a checkpoint is requested to have a new flashback point.",
							NULL,
							&flashback_log_point_timeout,
							300, 1, 86400,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_flashback_point_segments",
							"WAL segments after which a checkpoint is requested to have a new flashback point.",
							NULL,
							&flashback_log_point_segments,
							16, 1, INT_MAX,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
#ifdef USE_INJECTION_POINTS
	DefineCustomIntVariable("polar_flashback_log_test_segment_size",
							"Size of a segment of the flashback log, for tests.",
							NULL,
							&flashback_log_segment_size_kb,
							FLASHBACK_LOG_SEGMENT_MB * 1024, 64, FLASHBACK_LOG_SEGMENT_MB * 1024,
							PGC_POSTMASTER, GUC_UNIT_KB | GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
#endif

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = flashback_log_shmem_request;

	*find_rendezvous_variable(FLASHBACK_LOG_API) = unconstify(FlashbackLogApi *, &flashback_log_api);
}
