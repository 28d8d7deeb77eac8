/*-------------------------------------------------------------------------
 *
 * flashback_copy.h
 *	  What page_copy.c, which makes a result page by page, and parallel.c have
 *	  in common.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/flashback_copy.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef FLASHBACK_COPY_H
#define FLASHBACK_COPY_H

#include "flashback_internal.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/shm_toc.h"

/* A file that is made, by one process or several */
typedef struct FlashbackNewFile
{
	BlockNumber nblocks;		/* its size; under the lock for extension */
} FlashbackNewFile;

typedef enum FlashbackTarget
{
	FLASHBACK_TABLE,
	FLASHBACK_TOAST,
} FlashbackTarget;

/* A TOAST value that some row has */
typedef struct FlashbackValue
{
	Oid			id;				/* hash key */
	char		status;
	uint32		size;			/* of all its chunks */
	pg_atomic_uint32 chunks;	/* of them have been copied */
} FlashbackValue;

/* Raises an error for a value */
typedef void (*flashback_refuse_value) (void *arg, Oid id, const char *what);

/* parallel.c */
typedef struct FlashbackTeam FlashbackTeam;

extern FlashbackTeam *flashback_team_begin(FlashbackScan *scan, Relation result,
										   TransactionId xid, int wanted);
extern FlashbackNewFile *flashback_team_file(FlashbackTeam *team, FlashbackTarget target);
extern void flashback_team_share(const FlashbackTeam *team, FlashbackTarget target,
								 FlashbackShare *share);
extern void flashback_team_put_large(FlashbackTeam *team, HeapTuple tuple);
extern FlashbackValue *flashback_team_give_values(FlashbackTeam *team, uint32 n);
extern void flashback_team_copied(FlashbackTeam *team, FlashbackTarget target, uint64 tuples);
extern bool flashback_team_meet(FlashbackTeam *team, flashback_refuse_value refuse, void *arg);
extern FlashbackValue *flashback_team_find_value(FlashbackTeam *team, Oid id);
extern FlashbackValue *flashback_team_next_value(FlashbackTeam *team, uint64 *position);
extern void flashback_team_finish(FlashbackTeam *team);
extern uint64 flashback_team_tuples(const FlashbackTeam *team, FlashbackTarget target);
extern MinimalTuple flashback_team_next_large(FlashbackTeam *team, bool first);
extern void flashback_team_end(FlashbackTeam *team);
extern PGDLLEXPORT void flashback_team_main(dsm_segment *segment, shm_toc *toc);

/* page_copy.c */
extern void flashback_copy_share(FlashbackScan *scan, Relation result, TransactionId xid,
								 FlashbackTeam *team);

#endif							/* FLASHBACK_COPY_H */
