/*-------------------------------------------------------------------------
 *
 * activity.h
 *	  What WAL says of the tables of a database.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/activity.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef FLASHBACK_ACTIVITY_H
#define FLASHBACK_ACTIVITY_H

#include "access/xlogreader.h"
#include "datatype/timestamp.h"
#include "nodes/pg_list.h"
#include "storage/relfilelocator.h"
#include "utils/hsearch.h"

/* Where a transaction committed */
typedef struct ActivityCommit
{
	XLogRecPtr	lsn;			/* end of its record */
	TimestampTz at;
	TransactionId xid;
} ActivityCommit;

typedef struct ActivityCounts
{
	int64		inserted;
	int64		updated;
	int64		deleted;
} ActivityCounts;

/* A committed transaction changed many rows of a file */
typedef struct ActivityChange
{
	ActivityCommit commit;
	RelFileLocator file;
	ActivityCounts counts;
} ActivityChange;

typedef struct ActivityNewFile
{
	RelFileLocator file;
	bool		written;		/* by the transaction that made it */
} ActivityNewFile;

/* One changed definitions: relations, and files that it made and deleted */
typedef struct ActivityDefinition
{
	ActivityCommit commit;
	List	   *relids;
	List	   *truncated;		/* those that WAL says were */
	int			nmade;
	ActivityNewFile *made;
	int			ndeleted;
	RelFileLocator *deleted;
} ActivityDefinition;

/* The last commit that changed rows of a file */
typedef struct ActivityFile
{
	RelFileLocator file;		/* key */
	ActivityCommit last;
} ActivityFile;

typedef struct Activity
{
	int64		least_rows;
	HTAB	   *counts;			/* by transaction and file */
	HTAB	   *transactions;	/* that have not ended */
	HTAB	   *made;			/* files that these made */
	HTAB	   *files;			/* ActivityFile */
	List	   *changes;		/* of ActivityChange, in the order of WAL */
	List	   *definitions;	/* of ActivityDefinition, in the order of WAL */
	TimestampTz last;			/* commit; DT_NOBEGIN: none */
	XLogRecPtr	reached;
	XLogRecPtr	unfinished;		/* first record of the oldest large
								 * transaction that has not ended, or invalid */
} Activity;

/* activity_pass.c */
extern Activity *flashback_activity_read(XLogRecPtr start, XLogRecPtr enough, XLogRecPtr most,
										 XLogRecPtr end, int64 least_rows);

#endif							/* FLASHBACK_ACTIVITY_H */
