/*-------------------------------------------------------------------------
 *
 * page_repair.c
 *	  Pages that a crash tore are taken from a standby.
 *
 * Settings and shared memory.  See README.md for what it does.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/page_repair.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "page_repair.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

PG_MODULE_MAGIC_EXT(
					.name = "page_repair",
					.version = "1.0"
);

int			page_repair_policy = PAGE_REPAIR_CHECKSUM;
char	   *page_repair_source_list = NULL;
int			page_repair_timeout = 120000;
bool		page_repair_guard = true;
int			page_repair_grace = 10000;
bool		page_repair_list_only = false;

PageRepairShared *page_repair_shared = NULL;

static const struct config_enum_entry policy_options[] = {
	{"off", PAGE_REPAIR_OFF, false},
	{"checksum", PAGE_REPAIR_CHECKSUM, false},
	{"always", PAGE_REPAIR_ALWAYS, false},
	{NULL, 0, false}
};

const char *const page_repair_policy_names[] = {
	[PAGE_REPAIR_OFF] = "off",
	[PAGE_REPAIR_CHECKSUM] = "checksum",
	[PAGE_REPAIR_ALWAYS] = "always",
};

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void page_repair_shmem_startup(void);

static void
page_repair_shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = page_repair_shmem_startup;

	RequestAddinShmemSpace(MAXALIGN(sizeof(PageRepairShared)));
}

/*
 * A server that shall only say what is torn must not run: after a clean stop
 * there is no recovery that would end it.
 */
static void
refuse_clean_start(void)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);

	if (crc_ok && control->state != DB_SHUTDOWNED && control->state != DB_SHUTDOWNED_IN_RECOVERY)
		return;
	ereport(FATAL,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("there are no torn pages to be listed"),
			 crc_ok ? errdetail("This server was shut down cleanly.") :
			 errdetail("Its control file is damaged."),
			 errhint("Start it with \"polar_page_repair_list_only\" off.")));
}

static void
page_repair_shmem_startup(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	page_repair_shared = ShmemInitStruct("page_repair", sizeof(PageRepairShared), &found);
	if (!found)
	{
		memset(page_repair_shared, 0, sizeof(PageRepairShared));
		SpinLockInit(&page_repair_shared->mutex);
		/* Until a source has been seen healthy */
		page_repair_shared->forced = true;
		page_repair_shared->in_force = true;
		page_repair_shared->worker = INVALID_PROC_NUMBER;
		page_repair_shared->state = PAGE_REPAIR_FULL_PAGE_WRITES;
		page_repair_shared->since = GetCurrentTimestamp();
		strlcpy(page_repair_shared->why, "no page repair source has been asked yet",
				sizeof(page_repair_shared->why));
		if (page_repair_list_only)
			refuse_clean_start();
		page_repair_shared->stopped_whole = page_repair_was_stopped_whole();
	}
	LWLockRelease(AddinShmemInitLock);
}

/*
 * The list of sources must be understood when it is set, not when it is needed.
 */
static bool
check_sources(char **newval, void **extra, GucSource guc_source)
{
	char	   *error;

	if (!page_repair_parse_sources(*newval, NULL, NULL, &error))
	{
		GUC_check_errdetail("%s", error);
		GUC_check_errhint("Separate connection strings by semicolons.");
		return false;
	}
	return true;
}

/*
 * Module load callback
 */
void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	DefineCustomEnumVariable("polar_page_repair_policy",
							 "Which pages recovery takes from a page repair source.",
							 "checksum: those that fail verification; always: all that WAL changes without a full-page image.",
							 &page_repair_policy,
							 PAGE_REPAIR_CHECKSUM, policy_options,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("polar_page_repair_sources",
							   "Connection strings of the instances that recovery may take pages from, in order.",
							   "Separated by semicolons. A primary names its standbys, a standby its primary.",
							   &page_repair_source_list,
							   "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY, check_sources, NULL, NULL);
	DefineCustomIntVariable("polar_page_repair_timeout",
							"How long recovery waits for a page repair source.",
							NULL,
							&page_repair_timeout,
							120000, 0, INT_MAX / 2,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomBoolVariable("polar_page_repair_guard",
							 "Writes full-page images while no page repair source is healthy, although full_page_writes is off.",
							 NULL,
							 &page_repair_guard,
							 true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_page_repair_grace",
							"How long no page repair source may be healthy before full-page images are written again.",
							"After that a source must be healthy for as long before they are left out again. Sources are asked each second and have three to answer, so less than two seconds make no sense.",
							&page_repair_grace,
							10000, 2000, INT_MAX / 2,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);

	DefineCustomBoolVariable("polar_page_repair_list_only",
							 "Recovery lists torn pages in a file and ends, without replaying or replacing anything.",
							 "The file is page_repair.torn in the data directory. The server never runs with this on.",
							 &page_repair_list_only,
							 false,
							 PGC_POSTMASTER, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = page_repair_shmem_request;

	page_repair_install_recovery();
	page_repair_install_guard();
}
