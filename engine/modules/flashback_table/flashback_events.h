/*-------------------------------------------------------------------------
 *
 * flashback_events.h
 *	  Tables that were dropped, truncated or rewritten.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/flashback_events.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef FLASHBACK_EVENTS_H
#define FLASHBACK_EVENTS_H

#include "flashback_table.h"
#include "utils/hsearch.h"

typedef enum FlashbackEventKind
{
	FLASHBACK_DROPPED,
	FLASHBACK_TRUNCATED,
	FLASHBACK_REWRITTEN,
} FlashbackEventKind;

/* What a commit did to a table */
typedef struct FlashbackEvent
{
	XLogRecPtr	lsn;			/* end of the commit's record */
	FlashbackEventKind kind;
	TimestampTz at;
	RelFileLocator rlocator;	/* of the file that it deleted */
	RelFileLocator toast;		/* and of the TOAST table's; no number: none */
	int64		size;			/* of that, and of the TOAST table's */
	Oid			relid;
	NameData	name;			/* this and what follows: as it was then */
	Oid			namespace;
	NameData	schema;
	Oid			owner;
	bool		partitioned;	/* it had no file itself */
	bool		partition;		/* of another one */
	char	   *definition;		/* its columns if dropped, else NULL */
	XLogRecPtr	defined_at;		/* where in WAL all of the definition is, or
								 * invalid */
} FlashbackEvent;

/* events.c */
extern FlashbackEvent *flashback_event_create(const FlashbackFormer *former,
											  const FlashbackCommit *commit, XLogRecPtr lsn, int nnew,
											  HTAB *files, const char *former_schema);
extern HTAB *flashback_deleted_files(const FlashbackKeptFile *files, int nfiles);
extern List *flashback_events(FlashbackPoint *oldest, int *nunknown);

/* past.c */
extern bool flashback_event_is_purged(const FlashbackEvent *event);
extern void flashback_find_past(Oid relid, FlashbackPast *past);

/* history.c */
typedef void (*FlashbackHistoryCallback) (XLogRecPtr commit_lsn, List *events, void *arg);

extern void flashback_history_read(const FlashbackPoint *point, const FlashbackKeptFile *files,
								   int nfiles, FlashbackHistoryCallback callback, void *arg);

#endif							/* FLASHBACK_EVENTS_H */
