/*-------------------------------------------------------------------------
 *
 * progress.c
 *	  How far the running flashbacks are.
 *
 * The core reports progress only of commands that it knows, so each backend
 * has an entry here.  Only its own process writes to it, and the workers that
 * it has started: these add what they have done.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/progress.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "flashback_internal.h"
#include "flashback_sql.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(polar_stat_get_progress_flashback_table);

typedef struct ProgressEntry
{
	slock_t		mutex;
	int			pid;			/* 0 = nothing is running */
	Oid			datid;
	Oid			userid;
	Oid			relid;
	TimestampTz target_time;
	TimestampTz started_at;
	bool		indexing;
	int			indexes_total;
	int			indexes_done;
	int			partitions_total;
	int			partitions_done;
	uint64		rows;
	FlashbackProgress scan;

	/* By workers, in the present phase and all in all */
	uint64		workers_blocks;
	uint64		workers_rebuilt;
	uint64		workers_rows;
	uint64		workers_written;
} ProgressEntry;

static const char *const phase_names[] = {
	[FLASHBACK_FINDING_POSITION] = "finding the position in WAL",
	[FLASHBACK_READING_CATALOG] = "reading the catalog",
	[FLASHBACK_READING_TOAST] = "reading TOAST",
	[FLASHBACK_READING_TABLE] = "reading the table",
	[FLASHBACK_READING_IMAGES] = "reading old pages",
	[FLASHBACK_REPLAYING_WAL] = "replaying WAL",
	[FLASHBACK_READING_REBUILT] = "reading rebuilt pages",
};

static ProgressEntry *entries = NULL;

/* Between begin and end, of the outermost of nested flashbacks */
static ProgressEntry *mine = NULL;
static uintptr_t mine_serial;
static int	depth = 0;

/* Of the process that we work for, and what it has been told */
static ProgressEntry *joined = NULL;
static FlashbackProgress told;

void
flashback_progress_request(void)
{
	RequestAddinShmemSpace(mul_size(MaxBackends, sizeof(ProgressEntry)));
}

void
flashback_progress_startup(void)
{
	bool		found;

	entries = ShmemInitStruct("flashback_table progress",
							  mul_size(MaxBackends, sizeof(ProgressEntry)), &found);
	if (!found)
	{
		memset(entries, 0, mul_size(MaxBackends, sizeof(ProgressEntry)));
		for (int i = 0; i < MaxBackends; i++)
			SpinLockInit(&entries[i].mutex);
	}
}

/*
 * Called by scans.
 */
static void
report_scan(const FlashbackProgress *progress)
{
	ProgressEntry *entry = mine;

	SpinLockAcquire(&entry->mutex);
	entry->scan = *progress;
	SpinLockRelease(&entry->mutex);
}

static void
clear_entry(void)
{
	flashback_progress_hook = NULL;
	depth = 0;
	if (mine == NULL)
		return;
	SpinLockAcquire(&mine->mutex);
	mine->pid = 0;
	SpinLockRelease(&mine->mutex);
	mine = NULL;
}

/*
 * A flashback has ended without an error.
 */
void
flashback_progress_end(void)
{
	if (depth > 0 && --depth > 0)
		return;
	clear_entry();
}

static void
clear_at_exit(int code, Datum arg)
{
	clear_entry();
}

/*
 * After an error, too, the memory of the flashback is freed.
 */
static void
clear_with_memory(void *arg)
{
	if (mine != NULL && mine_serial == (uintptr_t) arg)
		clear_entry();
}

/*
 * A flashback begins.  One inside another's condition is not shown.
 */
void
flashback_progress_begin(Oid relid, TimestampTz time)
{
	static bool registered = false;
	static uintptr_t serial = 0;
	ProgressEntry *entry;
	MemoryContextCallback *callback;

	if (entries == NULL || MyProcNumber < 0 || MyProcNumber >= MaxBackends)
		return;
	if (depth++ > 0)
		return;
	if (!registered)
	{
		before_shmem_exit(clear_at_exit, (Datum) 0);
		registered = true;
	}
	callback = palloc(sizeof(MemoryContextCallback));
	callback->func = clear_with_memory;
	callback->arg = (void *) ++serial;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);

	entry = &entries[MyProcNumber];
	SpinLockAcquire(&entry->mutex);
	entry->pid = MyProcPid;
	entry->datid = MyDatabaseId;
	entry->userid = GetSessionUserId();
	entry->relid = relid;
	entry->target_time = time;
	entry->started_at = GetCurrentTimestamp();
	entry->indexing = false;
	entry->indexes_total = entry->indexes_done = 0;
	entry->partitions_total = entry->partitions_done = 0;
	entry->rows = 0;
	entry->workers_blocks = entry->workers_rebuilt = entry->workers_rows = entry->workers_written = 0;
	memset(&entry->scan, 0, sizeof(FlashbackProgress));
	SpinLockRelease(&entry->mutex);
	memset(&flashback_progress, 0, sizeof(FlashbackProgress));
	mine = entry;
	mine_serial = serial;
	flashback_progress_hook = report_scan;
}

/*
 * What workers need to join; -1 if nothing is shown.
 */
int
flashback_progress_number(void)
{
	return mine ? (int) (mine - entries) : -1;
}

static void
report_to_joined(const FlashbackProgress *progress)
{
	/* Blocks are counted anew for each relation */
	if (progress->blocks_done < told.blocks_done)
		told.blocks_done = 0;
	SpinLockAcquire(&joined->mutex);
	joined->workers_blocks += progress->blocks_done - told.blocks_done;
	joined->workers_rebuilt += progress->blocks_rebuilt - told.blocks_rebuilt;
	joined->workers_rows += progress->rows - told.rows;
	joined->workers_written += progress->bytes_written - told.bytes_written;
	SpinLockRelease(&joined->mutex);
	told = *progress;
}

/*
 * From now on this process, a worker, counts for another one.
 */
void
flashback_progress_join(int number)
{
	memset(&flashback_progress, 0, sizeof(FlashbackProgress));
	memset(&told, 0, sizeof(FlashbackProgress));
	if (number < 0)
		return;
	joined = &entries[number];
	flashback_progress_hook = report_to_joined;
}

/*
 * The workers go on to another relation together.
 */
void
flashback_progress_next_relation(void)
{
	if (mine == NULL)
		return;
	SpinLockAcquire(&mine->mutex);
	mine->workers_blocks = 0;
	SpinLockRelease(&mine->mutex);
}

/*
 * So many partitions have been read.
 */
void
flashback_progress_partition(int done, int total)
{
	if (mine == NULL)
		return;
	SpinLockAcquire(&mine->mutex);
	mine->partitions_done = done;
	mine->partitions_total = total;
	SpinLockRelease(&mine->mutex);
}

/*
 * So many rows that are wanted have been found.  A scan reports seldom, so
 * where it is now is shown as well.
 */
void
flashback_progress_rows(uint64 rows)
{
	if (mine == NULL)
		return;
	SpinLockAcquire(&mine->mutex);
	mine->rows = rows;
	mine->scan = flashback_progress;
	SpinLockRelease(&mine->mutex);
}

/*
 * So many have been found in the end, by workers, too.
 */
void
flashback_progress_all_rows(uint64 rows)
{
	if (mine == NULL)
		return;
	SpinLockAcquire(&mine->mutex);
	mine->rows = rows;
	mine->workers_rows = 0;
	SpinLockRelease(&mine->mutex);
}

/*
 * So many indexes have been built.
 */
void
flashback_progress_indexes(int done, int total)
{
	if (mine == NULL)
		return;
	SpinLockAcquire(&mine->mutex);
	mine->indexing = true;
	mine->indexes_done = done;
	mine->indexes_total = total;
	SpinLockRelease(&mine->mutex);
}

/*
 * The running flashbacks.  As in the views of PostgreSQL, who may not read all
 * statistics sees of others only that there is one.
 */
Datum
polar_stat_get_progress_flashback_table(PG_FUNCTION_ARGS)
{
#define PROGRESS_COLUMNS 17
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		all = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; entries != NULL && i < MaxBackends; i++)
	{
		Datum		values[PROGRESS_COLUMNS];
		bool		nulls[PROGRESS_COLUMNS] = {0};
		ProgressEntry entry;
		int			column = 0;

		SpinLockAcquire(&entries[i].mutex);
		entry = entries[i];
		SpinLockRelease(&entries[i].mutex);
		if (entry.pid == 0 || BackendPidGetProc(entry.pid) == NULL)
			continue;

		values[column++] = Int32GetDatum(entry.pid);
		values[column++] = ObjectIdGetDatum(entry.datid);
		if (!all && !has_privs_of_role(GetUserId(), entry.userid))
			memset(nulls + column, true, PROGRESS_COLUMNS - column);
		else
		{
			values[column++] = ObjectIdGetDatum(entry.relid);
			values[column++] = TimestampTzGetDatum(entry.target_time);
			values[column++] = TimestampTzGetDatum(entry.started_at);
			values[column++] = CStringGetTextDatum(entry.indexing ? "building indexes"
												   : phase_names[entry.scan.phase]);
			values[column++] = Int64GetDatum(entry.scan.wal_bytes_total);
			values[column++] = Int64GetDatum(entry.scan.wal_bytes_done);
			values[column++] = Int64GetDatum(entry.scan.blocks_total);
			values[column++] = Int64GetDatum(entry.scan.blocks_done + entry.workers_blocks);
			values[column++] = Int64GetDatum(entry.scan.blocks_rebuilt + entry.workers_rebuilt);
			values[column++] = Int64GetDatum(entry.rows + entry.workers_rows);
			values[column++] = Int32GetDatum(entry.partitions_total);
			values[column++] = Int32GetDatum(entry.partitions_done);
			values[column++] = Int32GetDatum(entry.indexes_total);
			values[column++] = Int32GetDatum(entry.indexes_done);
			values[column++] = Int64GetDatum(entry.scan.bytes_written + entry.workers_written);
			Assert(column == PROGRESS_COLUMNS);
		}
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
