/*-------------------------------------------------------------------------
 *
 * stat_wal.c
 *	  WAL statistics with the bytes of full-page images.
 *
 * The core counts in each process how many bytes of full-page images it has
 * inserted (pgWalInserted) and calls us whenever the process adds its WAL
 * counters to pg_stat_wal, with the lock on these statistics held.  So our
 * counters move, are read and are reset together with those of pg_stat_wal,
 * in every kind of process.
 *
 * All counters are kept here, not only the bytes of full-page images.  The
 * reason is that pg_stat_wal counts WAL of parallel workers twice: the worker
 * reports it, and so does the leader, whose pgWalUsage includes that of its
 * workers for the sake of EXPLAIN.  A share of one in the other would be
 * wrong.  Here everything is counted by the process that inserted it.
 *
 * Our counters belong to a certain stats_reset of pg_stat_wal; those of any
 * other are void.  That alone makes them follow every reset, be it asked for
 * or due to a crash, and it tells whether a saved file is still good.  The
 * file is our own, because a custom kind of statistics in the core's file
 * would make a plain PostgreSQL discard all statistics in it.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/monitor/stat_wal.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/htup_details.h"
#include "access/xloginsert.h"
#include "executor/instrument.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "monitor.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/pgstat_internal.h"
#include "utils/timestamp.h"

#define STAT_WAL_FILE			PGSTAT_STAT_PERMANENT_DIRECTORY "/polar_stat_wal.stat"
#define STAT_WAL_FILE_TMP		STAT_WAL_FILE ".tmp"

/* Changes with the layout of StatWalFile */
#define STAT_WAL_FILE_FORMAT	0x506C5702

typedef struct StatWal
{
	WalUsage	usage;
	uint64		fpi_bytes;		/* bytes */
	uint64		fpi_omitted;	/* images left out */
	uint64		fpi_omitted_bytes;	/* bytes */
	TimestampTz stats_reset;	/* the pg_stat_wal that the counters belong to */
} StatWal;

typedef struct StatWalFile
{
	uint32		format;
	uint32		padding;
	StatWal		stats;
} StatWalFile;

/* In shared memory; the core's lock on the WAL statistics protects it */
static StatWal *shared = NULL;

/* What this process has added to the above so far */
static WalInserted flushed;

/* Belongs to this process's snapshot of pg_stat_wal */
static StatWal snapshot;

static pgstat_wal_hook_type prev_pgstat_wal_flush_hook = NULL;
static pgstat_wal_hook_type prev_pgstat_wal_snapshot_hook = NULL;

PG_FUNCTION_INFO_V1(polar_stat_get_wal);
PG_FUNCTION_INFO_V1(polar_stat_get_wal_1_1);

/*
 * Add what this process has inserted since the last time.  The caller holds
 * the lock on the WAL statistics exclusively.
 */
static void
stat_wal_flush(const PgStat_WalStats *stats)
{
	if (prev_pgstat_wal_flush_hook)
		prev_pgstat_wal_flush_hook(stats);
	if (shared == NULL)
		return;

	if (shared->stats_reset != stats->stat_reset_timestamp)
	{
		memset(shared, 0, sizeof(*shared));
		shared->stats_reset = stats->stat_reset_timestamp;
	}

	/* Parallel workers flush what they have inserted themselves */
	WalUsageAccumDiff(&shared->usage, &pgWalInserted.usage, &flushed.usage);
	shared->fpi_bytes += pgWalInserted.fpi_bytes - flushed.fpi_bytes;
	shared->fpi_omitted += pgWalInserted.fpi_omitted - flushed.fpi_omitted;
	shared->fpi_omitted_bytes += pgWalInserted.fpi_omitted_bytes - flushed.fpi_omitted_bytes;
	flushed = pgWalInserted;
}

/*
 * Copy the counters that belong to the snapshot just taken of pg_stat_wal.
 * The caller holds the lock on the WAL statistics.
 */
static void
stat_wal_snapshot(const PgStat_WalStats *stats)
{
	if (prev_pgstat_wal_snapshot_hook)
		prev_pgstat_wal_snapshot_hook(stats);
	if (shared == NULL)
		return;

	if (shared->stats_reset == stats->stat_reset_timestamp)
		snapshot = *shared;
	else
	{
		memset(&snapshot, 0, sizeof(snapshot));
		snapshot.stats_reset = stats->stat_reset_timestamp;
	}
}

/*
 * Write the counters at the end of a clean shutdown.  Registered in the
 * postmaster, which is the last to exit, and in single-user mode.
 */
static void
stat_wal_save(int code, Datum arg)
{
	StatWalFile content = {0};
	FILE	   *file;

	if (code != 0 || shared == NULL)
		return;

	content.format = STAT_WAL_FILE_FORMAT;
	content.stats = *shared;

	file = AllocateFile(STAT_WAL_FILE_TMP, PG_BINARY_W);
	if (file == NULL)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not open temporary statistics file \"%s\": %m",
						STAT_WAL_FILE_TMP)));
		return;
	}
	if (fwrite(&content, sizeof(content), 1, file) != 1)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write temporary statistics file \"%s\": %m",
						STAT_WAL_FILE_TMP)));
		FreeFile(file);
		unlink(STAT_WAL_FILE_TMP);
	}
	else if (FreeFile(file) != 0)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not close temporary statistics file \"%s\": %m",
						STAT_WAL_FILE_TMP)));
		unlink(STAT_WAL_FILE_TMP);
	}
	else if (durable_rename(STAT_WAL_FILE_TMP, STAT_WAL_FILE, LOG) != 0)
		unlink(STAT_WAL_FILE_TMP);
}

/*
 * Take over the counters that the last clean shutdown has written, and remove
 * the file, so that it cannot be taken over twice.  Whether they are still
 * good shows when the core has read its own: see stats_reset.
 */
static void
stat_wal_load(void)
{
	StatWalFile content;
	FILE	   *file;

	file = AllocateFile(STAT_WAL_FILE, PG_BINARY_R);
	if (file == NULL)
	{
		if (errno != ENOENT)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not open statistics file \"%s\": %m", STAT_WAL_FILE)));
		return;
	}
	if (fread(&content, sizeof(content), 1, file) == 1 &&
		fgetc(file) == EOF &&
		content.format == STAT_WAL_FILE_FORMAT)
		*shared = content.stats;
	else
		ereport(LOG,
				(errmsg("statistics file \"%s\" is discarded", STAT_WAL_FILE),
				 errdetail("It is corrupted, or of another version of the module.")));
	FreeFile(file);
	unlink(STAT_WAL_FILE);
}

/*
 * Bytes of shared memory that the counters need.
 */
Size
monitor_stat_wal_shmem_size(void)
{
	return MAXALIGN(sizeof(StatWal));
}

/*
 * Create the counters, or attach to them.  AddinShmemInitLock is held.
 */
void
monitor_stat_wal_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("polar_stat_wal", sizeof(StatWal), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(*shared));
		stat_wal_load();
	}
	if (!IsUnderPostmaster)
		on_shmem_exit(stat_wal_save, (Datum) 0);
}

/*
 * Called once, when the module is preloaded.
 */
void
monitor_stat_wal_install_hooks(void)
{
	prev_pgstat_wal_flush_hook = pgstat_wal_flush_hook;
	pgstat_wal_flush_hook = stat_wal_flush;
	prev_pgstat_wal_snapshot_hook = pgstat_wal_snapshot_hook;
	pgstat_wal_snapshot_hook = stat_wal_snapshot;
}

/*
 * numeric, because these counters have 64 bits without a sign
 */
static Datum
stat_wal_numeric(uint64 value)
{
	char		digits[32];

	snprintf(digits, sizeof(digits), UINT64_FORMAT, value);
	return DirectFunctionCall3(numeric_in, CStringGetDatum(digits),
							   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
}

#define STAT_WAL_COLUMNS		8
#define STAT_WAL_COLUMNS_1_0	6

/*
 * The row of polar_stat_wal, under the rules of stats_fetch_consistency, with
 * as many columns as the version of the extension has.
 */
static Datum
stat_wal_row(FunctionCallInfo fcinfo, int columns)
{
	TupleDesc	tupdesc;
	Datum		values[STAT_WAL_COLUMNS] = {0};
	bool		nulls[STAT_WAL_COLUMNS] = {0};

	monitor_check_loaded(shared);
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE ||
		tupdesc->natts != columns)
		elog(ERROR, "return type must be a row type of %d columns", columns);

	pgstat_snapshot_fixed(PGSTAT_KIND_WAL);

	values[0] = Int64GetDatum(snapshot.usage.wal_records);
	values[1] = Int64GetDatum(snapshot.usage.wal_fpi);
	values[2] = stat_wal_numeric(snapshot.usage.wal_bytes);
	values[3] = stat_wal_numeric(snapshot.fpi_bytes);
	values[4] = Int64GetDatum(snapshot.usage.wal_buffers_full);
	if (snapshot.stats_reset != 0)
		values[5] = TimestampTzGetDatum(snapshot.stats_reset);
	else
		nulls[5] = true;
	values[6] = Int64GetDatum(snapshot.fpi_omitted);
	values[7] = stat_wal_numeric(snapshot.fpi_omitted_bytes);

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

/*
 * polar_stat_get_wal()
 *		Version 1.0 of the extension.
 */
Datum
polar_stat_get_wal(PG_FUNCTION_ARGS)
{
	return stat_wal_row(fcinfo, STAT_WAL_COLUMNS_1_0);
}

/*
 * polar_stat_get_wal()
 *		Since version 1.1.  The symbol is another one, so that a library of
 *		before says that it does not have it, instead of misreading the row.
 */
Datum
polar_stat_get_wal_1_1(PG_FUNCTION_ARGS)
{
	return stat_wal_row(fcinfo, STAT_WAL_COLUMNS);
}
