/*-------------------------------------------------------------------------
 *
 * page_repair.c
 *	  Pages that a crash tore are taken from a standby.
 *
 * Settings, shared memory and views.  See README for the invariants.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/page_repair.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "page_repair.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_MODULE_MAGIC_EXT(
					.name = "page_repair",
					.version = "1.0"
);

int			page_repair_policy = PAGE_REPAIR_CHECKSUM;
char	   *page_repair_source_list = NULL;
int			page_repair_timeout = 120000;
bool		page_repair_guard = true;
int			page_repair_grace = 10000;

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

static const char *const state_names[] = {
	[PAGE_REPAIR_FULL_PAGE_WRITES] = "full_page_writes",
	[PAGE_REPAIR_PROTECTED] = "protected",
	[PAGE_REPAIR_EXPOSED] = "exposed",
	[PAGE_REPAIR_OVERRIDDEN] = "overridden",
};

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

PG_FUNCTION_INFO_V1(polar_page_repair_get_status);
PG_FUNCTION_INFO_V1(polar_page_repair_get_sources);
PG_FUNCTION_INFO_V1(polar_stat_get_page_repair);

static void
page_repair_shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	RequestAddinShmemSpace(MAXALIGN(sizeof(PageRepairShared)));
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
							"After that a source must be healthy for as long before they are left out again.",
							&page_repair_grace,
							10000, 0, INT_MAX / 2,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = page_repair_shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = page_repair_shmem_startup;

	page_repair_install_recovery();
	page_repair_install_guard();
}

static void
check_loaded(void)
{
	if (page_repair_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("module \"%s\" was not loaded when the server started", "page_repair"),
				 errhint("Add it to \"%s\" and restart the server.", "shared_preload_libraries")));
}

static TupleDesc
result_tupdesc(FunctionCallInfo fcinfo)
{
	TupleDesc	tupdesc;

	check_loaded();
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return tupdesc;
}

#define COLUMN(present, datum) \
	do { \
		nulls[column] = !(present); \
		values[column] = nulls[column] ? (Datum) 0 : (datum); \
		column++; \
	} while (0)

/*
 * polar_page_repair_get_status()
 *		The row of polar_page_repair_status.
 */
Datum
polar_page_repair_get_status(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc = result_tupdesc(fcinfo);
	PageRepairState state;
	TimestampTz since;
	char		why[256];
	bool		in_force;
	Datum		values[6];
	bool		nulls[6];
	int			column = 0;

	page_repair_current_state(&state, &since, &in_force, why, sizeof(why));
	COLUMN(true, CStringGetTextDatum(state_names[state]));
	COLUMN(true, TimestampTzGetDatum(since));
	COLUMN(true, CStringGetTextDatum(why));
	COLUMN(true, BoolGetDatum(fullPageWrites));
	COLUMN(!RecoveryInProgress(), BoolGetDatum(in_force));
	COLUMN(true, BoolGetDatum(page_repair_guard));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

/*
 * polar_page_repair_get_sources()
 *		The rows of polar_page_repair_sources.
 */
Datum
polar_page_repair_get_sources(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PageRepairSourceState *sources = palloc(sizeof(page_repair_shared->sources));

	check_loaded();
	InitMaterializedSRF(fcinfo, 0);

	SpinLockAcquire(&page_repair_shared->mutex);
	memcpy(sources, page_repair_shared->sources, sizeof(page_repair_shared->sources));
	SpinLockRelease(&page_repair_shared->mutex);

	for (int i = 0; i < PAGE_REPAIR_MAX_SOURCES; i++)
	{
		PageRepairSourceState *source = &sources[i];
		Datum		values[10];
		bool		nulls[10];
		int			column = 0;

		if (source->name[0] == '\0')
			continue;
		COLUMN(true, Int32GetDatum(i + 1));
		COLUMN(true, CStringGetTextDatum(source->name));
		COLUMN(source->checked_at != 0, BoolGetDatum(source->healthy));
		COLUMN(source->checked_at != 0 && !source->healthy, CStringGetTextDatum(source->why));
		COLUMN(!XLogRecPtrIsInvalid(source->flush_lsn), LSNGetDatum(source->flush_lsn));
		COLUMN(!XLogRecPtrIsInvalid(source->replay_lsn), LSNGetDatum(source->replay_lsn));
		COLUMN(source->checked_at != 0, TimestampTzGetDatum(source->checked_at));
		COLUMN(true, Int64GetDatum(source->pages));
		COLUMN(true, Int64GetDatum(source->bytes));
		COLUMN(source->last_at != 0, TimestampTzGetDatum(source->last_at));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * polar_stat_get_page_repair()
 *		The row of polar_stat_page_repair.
 */
Datum
polar_stat_get_page_repair(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc = result_tupdesc(fcinfo);
	PageRepairStats stats;
	bool		any;
	Datum		values[18];
	bool		nulls[18];
	int			column = 0;

	SpinLockAcquire(&page_repair_shared->mutex);
	stats = page_repair_shared->stats;
	SpinLockRelease(&page_repair_shared->mutex);
	any = (stats.started_at != 0);

	COLUMN(any, CStringGetTextDatum(stats.standby ? "standby" : "crash"));
	COLUMN(any, CStringGetTextDatum(page_repair_policy_names[stats.policy]));
	COLUMN(any, TimestampTzGetDatum(stats.started_at));
	COLUMN(stats.ended_at != 0, TimestampTzGetDatum(stats.ended_at));
	COLUMN(any, LSNGetDatum(stats.redo_lsn));
	COLUMN(any, LSNGetDatum(stats.end_lsn));
	COLUMN(true, Int64GetDatum(stats.referenced));
	COLUMN(true, Int64GetDatum(stats.checked));
	COLUMN(true, Int64GetDatum(stats.torn));
	COLUMN(true, Int64GetDatum(stats.repaired));
	COLUMN(true, Int64GetDatum(stats.missing));
	COLUMN(true, Int64GetDatum(stats.vm_initialized));
	COLUMN(true, Int64GetDatum(stats.fsm_reset));
	COLUMN(true, Int64GetDatum(stats.bytes));
	COLUMN(true, Float8GetDatum(stats.scan_ms));
	COLUMN(true, Float8GetDatum(stats.check_ms));
	COLUMN(true, Float8GetDatum(stats.fetch_ms));
	COLUMN(stats.last_at != 0, TimestampTzGetDatum(stats.last_at));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
