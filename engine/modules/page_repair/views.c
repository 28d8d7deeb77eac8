/*-------------------------------------------------------------------------
 *
 * views.c
 *	  What the views show.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/views.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "funcapi.h"
#include "guard.h"
#include "log_source.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(polar_page_repair_get_status);
PG_FUNCTION_INFO_V1(polar_page_repair_get_sources);
PG_FUNCTION_INFO_V1(polar_stat_get_page_repair);

static const char *const state_names[] = {
	[PAGE_REPAIR_FULL_PAGE_WRITES] = "full_page_writes",
	[PAGE_REPAIR_PROTECTED] = "protected",
	[PAGE_REPAIR_EXPOSED] = "exposed",
	[PAGE_REPAIR_OVERRIDDEN] = "overridden",
};

/*
 * What protects this instance.  While no worker keeps the state up to date it
 * follows from what is in force.
 */
static void
current_state(PageRepairState *state, TimestampTz *since,
			  bool *in_force, char *why, Size why_size)
{
	PageRepairShared *shared = page_repair_shared;
	bool		standby = RecoveryInProgress();
	GuardControl control;
	XLogRecPtr	in_force_since;
	bool		worker;
	bool		stuck = guard_worker_is_stuck();

	SpinLockAcquire(&shared->mutex);
	*state = shared->state;
	*since = shared->since;
	*in_force = shared->in_force;
	in_force_since = shared->in_force_since;
	worker = (shared->worker != INVALID_PROC_NUMBER);
	strlcpy(why, shared->why, why_size);
	SpinLockRelease(&shared->mutex);

	if (worker && !stuck)
		return;
	if (!guard_read_control(&control))
	{
		strlcpy(why, "pg_control cannot be read", why_size);
		return;
	}
	if (stuck)
		strlcpy(why, GUARD_STUCK, why_size);
	if (standby)
	{
		*state = guard_replayed_images(&control) ? PAGE_REPAIR_FULL_PAGE_WRITES : PAGE_REPAIR_EXPOSED;
		if (*state == PAGE_REPAIR_FULL_PAGE_WRITES)
			strlcpy(why, "the WAL from the primary has full-page images", why_size);
	}
	else if (!fullPageWrites && !page_repair_guard)
	{
		*state = PAGE_REPAIR_OVERRIDDEN;
		strlcpy(why, "polar_page_repair_guard is off", why_size);
	}
	else
	{
		bool		complete = *in_force && control.redo >= in_force_since;

		*state = complete ? PAGE_REPAIR_FULL_PAGE_WRITES : PAGE_REPAIR_EXPOSED;
		if (fullPageWrites)
			strlcpy(why, complete ? "full_page_writes is on" : GUARD_NOT_COMPLETE, why_size);
	}
	if (*state != PAGE_REPAIR_OVERRIDDEN && !fullPageWrites && !guard_has_sources() &&
		(!standby || *state == PAGE_REPAIR_EXPOSED))
		strlcpy(why, log_source_is_enabled() ?
				"polar_page_repair_sources is empty, polar_flashback_log_mode is async" :
				"polar_page_repair_sources is empty", why_size);
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

	current_state(&state, &since, &in_force, why, sizeof(why));
	COLUMN(true, CStringGetTextDatum(state_names[state]));
	COLUMN(true, TimestampTzGetDatum(since));
	COLUMN(true, CStringGetTextDatum(why));
	COLUMN(true, BoolGetDatum(fullPageWrites));
	COLUMN(!RecoveryInProgress(), BoolGetDatum(in_force));
	COLUMN(true, BoolGetDatum(page_repair_guard));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

static void
put_source(ReturnSetInfo *rsinfo, int number, const PageRepairSourceState *source)
{
	Datum		values[10];
	bool		nulls[10];
	int			column = 0;

	COLUMN(true, Int32GetDatum(number));
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

/*
 * polar_page_repair_get_sources()
 *		The rows of polar_page_repair_sources.
 */
Datum
polar_page_repair_get_sources(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PageRepairSourceState *sources = palloc(sizeof(page_repair_shared->sources));
	PageRepairSourceState log;

	check_loaded();
	InitMaterializedSRF(fcinfo, 0);

	SpinLockAcquire(&page_repair_shared->mutex);
	log = page_repair_shared->log;
	memcpy(sources, page_repair_shared->sources, sizeof(page_repair_shared->sources));
	SpinLockRelease(&page_repair_shared->mutex);

	if (log_source_is_configured() || log.pages > 0)
	{
		strlcpy(log.name, LOG_SOURCE_NAME, sizeof(log.name));
		put_source(rsinfo, 0, &log);
	}
	for (int i = 0; i < PAGE_REPAIR_MAX_SOURCES; i++)
	{
		if (sources[i].name[0] != '\0')
			put_source(rsinfo, i + 1, &sources[i]);
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
	Datum		values[21];
	bool		nulls[21];
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
	/* Version 1.0 ends here */
	COLUMN(true, Int64GetDatum(stats.log_pages));
	COLUMN(true, Int64GetDatum(stats.log_kept));
	COLUMN(any && stats.log_why[0] != '\0', CStringGetTextDatum(stats.log_why));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
