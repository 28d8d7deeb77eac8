/*-------------------------------------------------------------------------
 *
 * flashback_table.h
 *	  The rows of a heap as they were at a moment.
 *
 * A moment is resolved once; any number of relations can be read as of it.
 * Memory and files of a scan belong to the memory context and the resource
 * owner that are current when it begins; an error leaves nothing behind.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/flashback_table.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef FLASHBACK_TABLE_H
#define FLASHBACK_TABLE_H

#include "access/xlogreader.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "flashback_log_api.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

/* A moment that can be gone back to */
typedef struct FlashbackMoment
{
	TimestampTz time;			/* T */
	FlashbackPoint point;		/* where the pages come from */
	XLogRecPtr	lsn;			/* L(T): each page is rebuilt as of here */
	TransactionId settled_xid;	/* all before it had ended before L(T) */

	/*
	 * So had those before this one, except those that were running at some
	 * position between R and L(T), sorted.  Their subtransactions may not be
	 * among them.
	 */
	TransactionId next_xid;
	TransactionId *running;		/* of the memory context that was current */
	uint32		nrunning;
	bool		lacks_subxids;
	TransactionId *replicated;	/* those with an origin that committed from
								 * the point on until L(T), sorted; of the
								 * memory context that was current */
	uint32		nreplicated;
} FlashbackMoment;

/* Why one cannot be, or why a relation cannot be read as of it */
typedef struct FlashbackRefusal
{
	int			sqlerrcode;
	char		reason[256];
	char		detail[256];	/* '' = none */
	char		hint[256];		/* '' = none */
	TimestampTz nearest_time;	/* that works; DT_NOEND = none known */
} FlashbackRefusal;

typedef enum FlashbackPhase
{
	FLASHBACK_FINDING_POSITION,
	FLASHBACK_READING_CATALOG,
	FLASHBACK_READING_TOAST,
	FLASHBACK_READING_TABLE,
	FLASHBACK_READING_IMAGES,
	FLASHBACK_REPLAYING_WAL,
	FLASHBACK_READING_REBUILT,
} FlashbackPhase;

typedef struct FlashbackProgress
{
	FlashbackPhase phase;
	uint64		wal_bytes_total;	/* of this pass over WAL */
	uint64		wal_bytes_done;
	uint64		blocks_total;	/* of the relation that is being read */
	uint64		blocks_done;
	uint64		blocks_rebuilt;
	uint64		rows;
} FlashbackProgress;

/*
 * Called, when it is set, whenever the progress has moved noticeably: often,
 * so it must be cheap.  Whoever sets it resets it on errors, too.
 */
typedef void (*flashback_progress_callback) (const FlashbackProgress *progress);
extern flashback_progress_callback flashback_progress_hook;

typedef struct FlashbackScan FlashbackScan;

/* moment.c */
extern bool flashback_try_resolve(TimestampTz time, FlashbackMoment *moment, FlashbackRefusal *refusal);
extern void flashback_resolve(TimestampTz time, FlashbackMoment *moment);
pg_noreturn extern void flashback_refuse(const FlashbackRefusal *refusal);
extern bool flashback_moment_lasts(const FlashbackMoment *moment);

/* scan.c */

/*
 * Whether the file of this relation is the one that it had at the moment.
 * *natts is the number of columns, with dropped ones, that it had.
 */
extern bool flashback_relation_is_same(Relation rel, const FlashbackMoment *moment,
									   int *natts, FlashbackRefusal *refusal);

/*
 * The relation must be a permanent heap, locked at least in AccessShareLock
 * until the end of the transaction.  An error is raised if it has not the file
 * that it had.
 *
 * Rows are only to be believed once flashback_scan_next() has returned false:
 * only then is it known that the log was complete all the time.
 */
extern FlashbackScan *flashback_scan_begin(Relation rel, const FlashbackMoment *moment);

/* A slot that flashback_scan_next() can fill */
extern TupleTableSlot *flashback_scan_slot(FlashbackScan *scan);

/*
 * The next row, in the shape of the relation's present descriptor: dropped
 * columns, and those added since the moment, are null.  Values of TOAST are
 * fetched, inline compressed ones stay compressed.  What is in the slot is
 * valid until the next call.  Without a slot the row is only counted.
 */
extern bool flashback_scan_next(FlashbackScan *scan, TupleTableSlot *slot);
extern void flashback_scan_end(FlashbackScan *scan);

#endif							/* FLASHBACK_TABLE_H */
