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
#include "nodes/pg_list.h"
#include "storage/bufpage.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

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
	TransactionId *committed;	/* those that did from the point on until
								 * L(T): with an origin, or all, sorted; of
								 * the memory context that was current */
	uint32		ncommitted;
	bool		by_position;	/* what committed before L(T) counts, whatever
								 * its time */
} FlashbackMoment;

/* The commit that ends a moment */
typedef struct FlashbackCommit
{
	TimestampTz time;
	Oid		   *dropped;		/* relations that it dropped, sorted */
	int			ndropped;
} FlashbackCommit;

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
	uint64		bytes_written;	/* of a result */
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
extern bool flashback_try_resolve_before(XLogRecPtr commit_lsn, FlashbackMoment *moment,
										 FlashbackCommit *commit, FlashbackRefusal *refusal);
pg_noreturn extern void flashback_refuse(const FlashbackRefusal *refusal);
extern bool flashback_has_dropped(const FlashbackCommit *commit, Oid relid);
extern bool flashback_oldest_point(FlashbackPoint *point);
extern bool flashback_moment_lasts(const FlashbackMoment *moment);

/* The file of a relation at a moment */
typedef struct FlashbackFile
{
	RelFileLocator rlocator;
	bool		kept;			/* deleted since, and kept; else the
								 * relation's present one */
	BlockNumber nblocks;		/* that it has */
} FlashbackFile;

/* What a relation was at a moment */
typedef struct FlashbackFormer
{
	Oid			relid;
	NameData	name;
	Oid			namespace;
	Oid			owner;
	Oid			am;
	char		kind;
	char		persistence;
	bool		partition;
	int			natts;			/* number of columns, with dropped ones */
	Datum		options;		/* an index's storage parameters; 0 = none */
	FlashbackFile file;
	Oid			toastrelid;		/* InvalidOid: it had no TOAST relation */
	FlashbackFile toast;
	TupleDesc	desc;			/* NULL: not read */
} FlashbackFormer;

typedef struct FlashbackFormers
{
	int			n;
	FlashbackFormer *items;		/* sorted by relid */
} FlashbackFormers;

/* former.c: all of the memory context that is current */
extern FlashbackFormers *flashback_formers_read(const List *relids, const FlashbackMoment *moment,
												FlashbackRefusal *refusal);
extern FlashbackFormer *flashback_former_of(FlashbackFormers *formers, Oid relid);
extern bool flashback_former_find_files(FlashbackFormer *former, Relation rel,
										const FlashbackMoment *moment, FlashbackRefusal *refusal);

/* columns.c */
extern bool flashback_columns_read(FlashbackFormers *formers, const FlashbackMoment *moment,
								   FlashbackRefusal *refusal);
extern bool flashback_columns_are_usable(const FlashbackFormer *former,
										 const FlashbackMoment *moment, FlashbackRefusal *refusal);
extern bool flashback_columns_fit(const FlashbackFormer *former, TupleDesc desc);

/* scan.c */

/*
 * Reads a relation of which the files have been found.  The relation (NULL: it
 * has been dropped since) must be locked at least in AccessShareLock until the
 * end of the transaction.  Rows have its shape of then, for which the columns
 * must have been read, or its present one: dropped columns, and those added
 * since the moment, are null.
 *
 * Rows are only to be believed once flashback_scan_next() has returned false:
 * only then is it known that the log was complete all the time.
 */
extern FlashbackScan *flashback_scan_begin(const FlashbackFormer *former, Relation rel, bool then,
										   const FlashbackMoment *moment);

/* A slot that flashback_scan_next() can fill */
extern TupleTableSlot *flashback_scan_slot(FlashbackScan *scan);

/*
 * The next row.  Values of TOAST are fetched, inline compressed ones stay
 * compressed.  What is in the slot is
 * valid until the next call.  Without a slot the row is only counted.
 */
extern bool flashback_scan_next(FlashbackScan *scan, TupleTableSlot *slot);
extern void flashback_scan_end(FlashbackScan *scan);

typedef enum FlashbackNext
{
	FLASHBACK_NEXT_END,
	FLASHBACK_NEXT_ROW,
	FLASHBACK_NEXT_OTHER,		/* not before the other side is read on */
} FlashbackNext;

/*
 * Reads both sides of a relation, rows then and rows that a snapshot sees,
 * which has been registered before the scan began, but for those that are the
 * very same row: these are only counted.  False if the file of then is not the
 * present one.  Afterwards the scan is read with these two, alternately.
 */
extern bool flashback_scan_pair(FlashbackScan *scan, Snapshot snapshot);
extern FlashbackNext flashback_scan_next_then(FlashbackScan *scan, TupleTableSlot *slot);
extern FlashbackNext flashback_scan_next_now(FlashbackScan *scan, TupleTableSlot *slot);
extern int64 flashback_scan_then(const FlashbackScan *scan);
extern int64 flashback_scan_same(const FlashbackScan *scan);

#endif							/* FLASHBACK_TABLE_H */
