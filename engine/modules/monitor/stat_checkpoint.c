/*-------------------------------------------------------------------------
 *
 * stat_checkpoint.c
 *	  How far the running checkpoint is.
 *
 * The process that performs checkpoints and restartpoints tells us when one
 * starts, after each buffer and each file, and when it ends or fails.  It is
 * the only writer, so the change count protocol of the core's own statistics
 * is enough: it never waits, and a reader tries again until nothing has
 * changed while it was copying.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/monitor/stat_checkpoint.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "monitor.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/injection_point.h"
#include "utils/pgstat_internal.h"
#include "utils/timestamp.h"

typedef enum StatCheckpointState
{
	STAT_CHECKPOINT_NONE,		/* none since the instance was started */
	STAT_CHECKPOINT_PREPARE,
	STAT_CHECKPOINT_WRITE,
	STAT_CHECKPOINT_SYNC,
	STAT_CHECKPOINT_FINISH,
	STAT_CHECKPOINT_ENDED,
	STAT_CHECKPOINT_FAILED,
} StatCheckpointState;

/* NULL: no phase, because nothing runs */
static const char *const phase_names[] = {
	[STAT_CHECKPOINT_NONE] = NULL,
	[STAT_CHECKPOINT_PREPARE] = "prepare",
	[STAT_CHECKPOINT_WRITE] = "write",
	[STAT_CHECKPOINT_SYNC] = "sync",
	[STAT_CHECKPOINT_FINISH] = "finish",
	[STAT_CHECKPOINT_ENDED] = NULL,
	[STAT_CHECKPOINT_FAILED] = NULL,
};

typedef struct StatCheckpoint
{
	StatCheckpointState state;
	bool		restartpoint;
	int			flags;			/* CHECKPOINT_* */
	TimestampTz started_at;
	TimestampTz phase_started_at;
	TimestampTz ended_at;		/* 0 until it has ended well */
	int			buffers_total;	/* -1 until known, as the next three */
	int			buffers_processed;
	int			buffers_written;
	int			files_total;
	int			files_processed;
} StatCheckpoint;

typedef struct StatCheckpointShared
{
	uint32		changecount;
	StatCheckpoint stats;
} StatCheckpointShared;

static StatCheckpointShared *shared = NULL;

static checkpoint_progress_hook_type prev_checkpoint_progress_hook = NULL;

PG_FUNCTION_INFO_V1(polar_stat_get_checkpoint);

/*
 * Note what the process that performs the checkpoint says about it.
 */
static void
stat_checkpoint_progress(CheckpointPhase phase, int detail,
						 int processed, int total)
{
	StatCheckpoint *stats;
	StatCheckpointState state;

	if (prev_checkpoint_progress_hook)
		prev_checkpoint_progress_hook(phase, detail, processed, total);
	if (shared == NULL)
		return;

	stats = &shared->stats;
	state = stats->state;
	pgstat_begin_changecount_write(&shared->changecount);
	switch (phase)
	{
		case CHECKPOINT_PHASE_START:
		case CHECKPOINT_PHASE_RESTARTPOINT_START:
			stats->restartpoint = (phase == CHECKPOINT_PHASE_RESTARTPOINT_START);
			stats->flags = detail;
			stats->started_at = CheckpointStats.ckpt_start_t;
			stats->ended_at = 0;
			stats->buffers_total = stats->buffers_processed = -1;
			stats->buffers_written = -1;
			stats->files_total = stats->files_processed = -1;
			state = STAT_CHECKPOINT_PREPARE;
			break;
		case CHECKPOINT_PHASE_WRITE:
			stats->buffers_total = total;
			/* One buffer each; what else a write took is counted there */
			stats->buffers_written = detail + CheckpointStats.ckpt_bufs_written;
			stats->buffers_processed = Max(processed, stats->buffers_written);
			state = STAT_CHECKPOINT_WRITE;
			break;
		case CHECKPOINT_PHASE_SYNC:
			stats->files_total = total;
			stats->files_processed = 0;
			/* What is left is the checkpoint's record and old WAL */
			state = (total > 0) ? STAT_CHECKPOINT_SYNC : STAT_CHECKPOINT_FINISH;
			break;
		case CHECKPOINT_PHASE_SYNCED:
			if (++stats->files_processed == stats->files_total)
				state = STAT_CHECKPOINT_FINISH;
			break;
		case CHECKPOINT_PHASE_END:
			stats->ended_at = CheckpointStats.ckpt_end_t;
			state = STAT_CHECKPOINT_ENDED;
			break;
		case CHECKPOINT_PHASE_FAILED:
			/* The checkpointer may fail before or after a checkpoint, too */
			if (phase_names[state] != NULL)
				state = STAT_CHECKPOINT_FAILED;
			break;
	}
	if (state == STAT_CHECKPOINT_PREPARE)
		stats->phase_started_at = stats->started_at;
	else if (state != stats->state)
		stats->phase_started_at = GetCurrentTimestamp();
	stats->state = state;
	pgstat_end_changecount_write(&shared->changecount);

	if (phase == CHECKPOINT_PHASE_WRITE)
		INJECTION_POINT("monitor-checkpoint-write", NULL);
	else if (phase == CHECKPOINT_PHASE_SYNC || phase == CHECKPOINT_PHASE_SYNCED)
		INJECTION_POINT("monitor-checkpoint-sync", NULL);
}

/*
 * Bytes of shared memory that the progress needs.
 */
Size
monitor_stat_checkpoint_shmem_size(void)
{
	return MAXALIGN(sizeof(StatCheckpointShared));
}

/*
 * Create the shared memory, or attach to it.  AddinShmemInitLock is held.
 */
void
monitor_stat_checkpoint_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("polar_stat_checkpoint", sizeof(StatCheckpointShared), &found);
	if (!found)
		memset(shared, 0, sizeof(*shared));
}

/*
 * Called once, when the module is preloaded.
 */
void
monitor_stat_checkpoint_install_hooks(void)
{
	prev_checkpoint_progress_hook = checkpoint_progress_hook;
	checkpoint_progress_hook = stat_checkpoint_progress;
}

/*
 * What caused the checkpoint, in the words of the server log.
 */
static Datum
stat_checkpoint_reason(int flags)
{
	static const struct
	{
		int			flag;
		const char *word;
	}			words[] = {
		{CHECKPOINT_IS_SHUTDOWN, "shutdown"},
		{CHECKPOINT_END_OF_RECOVERY, "end-of-recovery"},
		{CHECKPOINT_IMMEDIATE, "immediate"},
		{CHECKPOINT_FORCE, "force"},
		{CHECKPOINT_WAIT, "wait"},
		{CHECKPOINT_CAUSE_XLOG, "wal"},
		{CHECKPOINT_CAUSE_TIME, "time"},
		{CHECKPOINT_FLUSH_ALL, "flush-all"},
	};
	StringInfoData reason;

	initStringInfo(&reason);
	for (int i = 0; i < lengthof(words); i++)
	{
		if (flags & words[i].flag)
			appendStringInfo(&reason, "%s%s", reason.len > 0 ? " " : "", words[i].word);
	}
	return CStringGetTextDatum(reason.data);
}

/*
 * polar_stat_get_checkpoint()
 *		The row of polar_stat_checkpoint.
 */
Datum
polar_stat_get_checkpoint(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	StatCheckpoint stats;
	Datum		values[12];
	bool		nulls[12];
	int			column = 0;

	monitor_check_loaded(shared);
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	pgstat_copy_changecounted_stats(&stats, &shared->stats, sizeof(stats),
									&shared->changecount);

#define COLUMN(present, datum) \
	do { \
		nulls[column] = !(present); \
		values[column] = nulls[column] ? (Datum) 0 : (datum); \
		column++; \
	} while (0)

	COLUMN(true, BoolGetDatum(phase_names[stats.state] != NULL));
	COLUMN(stats.state != STAT_CHECKPOINT_NONE,
		   CStringGetTextDatum(stats.restartpoint ? "restartpoint" : "checkpoint"));
	COLUMN(stats.state != STAT_CHECKPOINT_NONE, stat_checkpoint_reason(stats.flags));
	COLUMN(phase_names[stats.state] != NULL, CStringGetTextDatum(phase_names[stats.state]));
	COLUMN(stats.state != STAT_CHECKPOINT_NONE, TimestampTzGetDatum(stats.started_at));
	COLUMN(phase_names[stats.state] != NULL, TimestampTzGetDatum(stats.phase_started_at));
	COLUMN(stats.state != STAT_CHECKPOINT_NONE && stats.buffers_total >= 0,
		   Int64GetDatum(stats.buffers_total));
	COLUMN(stats.state != STAT_CHECKPOINT_NONE && stats.buffers_processed >= 0,
		   Int64GetDatum(stats.buffers_processed));
	COLUMN(stats.state != STAT_CHECKPOINT_NONE && stats.buffers_written >= 0,
		   Int64GetDatum(stats.buffers_written));
	COLUMN(stats.state != STAT_CHECKPOINT_NONE && stats.files_total >= 0,
		   Int64GetDatum(stats.files_total));
	COLUMN(stats.state != STAT_CHECKPOINT_NONE && stats.files_processed >= 0,
		   Int64GetDatum(stats.files_processed));
	COLUMN(stats.state == STAT_CHECKPOINT_ENDED, TimestampTzGetDatum(stats.ended_at));
#undef COLUMN

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
