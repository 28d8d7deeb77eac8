/*-------------------------------------------------------------------------
 *
 * flashback_console.h
 *	  What a console needs to give rows back: comparing, merging, swapping,
 *	  exporting.  See README.console.md for the invariants.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/flashback_console.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef FLASHBACK_CONSOLE_H
#define FLASHBACK_CONSOLE_H

#include "flashback_table.h"
#include "fmgr.h"
#include "utils/snapshot.h"
#include "utils/tuplesort.h"

/* as_owner.c */
typedef struct FlashbackOwner
{
	Oid			save_userid;
	int			save_sec_context;
	int			save_nestlevel;
} FlashbackOwner;

extern Relation flashback_open_owned(Oid relid, LOCKMODE lockmode);
extern void flashback_begin_as_owner(Relation rel, FlashbackOwner *scope);
extern void flashback_end_as_owner(const FlashbackOwner *scope);
extern void flashback_set_output_format(void);

/* computed.c */
typedef struct FlashbackComputed FlashbackComputed;

extern FlashbackComputed *flashback_computed_create(Relation rel);
extern void flashback_compute(FlashbackComputed *computed, TupleTableSlot *slot);
extern void flashback_computed_free(FlashbackComputed *computed);

/* results.c */

/* Whose rows a result has; the owner can write anything here */
typedef struct FlashbackOrigin
{
	Oid			relid;
	char		schema[NAMEDATALEN];
	char		name[NAMEDATALEN];
	TimestampTz time;
	int			natts;			/* with dropped ones, that the table had then */
	XLogRecPtr	lsn;			/* invalid: not known */
} FlashbackOrigin;

extern void flashback_comment_former(Oid result, Oid relid, const char *schema, const char *name,
									 int natts, TimestampTz time, const char *remark);
extern void flashback_comment_result(Oid result, Relation rel, int natts,
									 TimestampTz time, const char *remark);
extern void flashback_open_pair(Oid resultid, Oid relid, LOCKMODE result_lock, LOCKMODE rel_lock,
								Relation *result, Relation *rel, FlashbackOrigin *origin);
extern AttrNumber *flashback_map_columns(Relation result, Relation rel, int natts, bool all);

/* foreign_keys.c */
extern void flashback_check_foreign_keys(Oid relid);

/* present_rows.c */
typedef struct FlashbackPresent FlashbackPresent;

extern FlashbackPresent *flashback_present_begin(Relation rel, Snapshot snapshot, LOCKMODE lockmode);
extern bool flashback_present_next(FlashbackPresent *present, TupleTableSlot **slot);
extern void flashback_present_end(FlashbackPresent *present);

/*
 * Rows in the shape of a relation, one after the other.  The slot may come as
 * NULL: the next is not there before the other side is read on.
 */
typedef struct FlashbackRowSource
{
	bool		(*next) (struct FlashbackRowSource *source, TupleTableSlot **slot);
	struct FlashbackPresent *present;
	const AttrNumber *map;
	TupleTableSlot *shaped;
	struct FlashbackRows *then;
	struct FlashbackScan *scan; /* of both sides */
} FlashbackRowSource;

extern void flashback_present_source(FlashbackRowSource *source, Relation rel, Snapshot snapshot,
									 LOCKMODE lockmode);
extern void flashback_result_source(FlashbackRowSource *source, Relation result, Relation rel,
									const AttrNumber *map, Snapshot snapshot);
extern void flashback_then_source(FlashbackRowSource *source, struct FlashbackRows *then);
extern bool flashback_paired_sources(FlashbackRowSource *then, FlashbackRowSource *now,
									 struct FlashbackRows *rows, Snapshot snapshot);
extern int64 flashback_source_then(const FlashbackRowSource *then);
extern int64 flashback_source_same(const FlashbackRowSource *then);
extern void flashback_source_end(FlashbackRowSource *source);

/* row_image.c */
typedef struct FlashbackShape
{
	Relation	rel;
	int			nkeys;			/* 0: rows have no key */
	int			ncompared;		/* the key is among these */
	int			ncolumns;		/* all that are not dropped */
	AttrNumber *columns;		/* key, others that are compared, the rest */
	StringInfoData buffer;
	FmgrInfo   *output;			/* by attribute; fn_oid is 0 at first */
	FlashbackComputed *computed;
} FlashbackShape;

/* Where a row is now */
typedef struct FlashbackPlace
{
	Oid			relid;
	ItemPointerData tid;
} FlashbackPlace;

extern FlashbackShape *flashback_shape_create(Relation rel, int natts, bool keyed);
extern bytea *flashback_image_make(FlashbackShape *shape, TupleTableSlot *slot, bool *null_key);
extern void flashback_image_start(FlashbackShape *shape);
extern void flashback_image_append(FlashbackShape *shape, AttrNumber attnum, Datum value, bool isnull);
extern uint64 flashback_image_hash(const bytea *image);
extern Size flashback_image_compared(const bytea *image);
extern const char *flashback_image_key(const bytea *image, Size *length);
extern const char *flashback_image_rest(const bytea *image, Size *length);
extern void flashback_image_place(const bytea *image, FlashbackPlace *place);
extern void flashback_image_read(const FlashbackShape *shape, const bytea *image, TupleTableSlot *slot);
extern char *flashback_value_text(FlashbackShape *shape, AttrNumber attnum, Datum value);

/* differences.c */
typedef enum FlashbackDifference
{
	FLASHBACK_SAME,
	FLASHBACK_ADDED,
	FLASHBACK_REMOVED,
	FLASHBACK_CHANGED,
} FlashbackDifference;

#define FLASHBACK_DIFFERENCES 4

typedef void (*FlashbackDifferenceCallback) (void *arg, FlashbackDifference kind,
											 const bytea *then, const bytea *now);

typedef struct FlashbackRowSort
{
	FlashbackShape *shape;
	Tuplesortstate *sort;
	MemoryContext row_context;
	bool		null_key;
} FlashbackRowSort;

extern const bytea *flashback_sort_image(FlashbackRowSort *rows, TupleTableSlot *slot);
extern void flashback_sort_add_image(FlashbackRowSort *rows, const bytea *image);
extern bool flashback_find_differences(FlashbackShape *shape,
									   FlashbackRowSource *then, FlashbackRowSource *now,
									   FlashbackDifferenceCallback callback, void *arg, int64 *same);

/* attempt.c */
/* 55000 alone is an SQLSTATE: of its class are locks that took too long, too */
#define FLASHBACK_CLASS(sqlerrcode) (-(sqlerrcode))

extern ErrorData *flashback_attempt(void (*act) (void *arg), void *arg, bool undo,
									const int *expected);

/* untouched.c */
typedef struct FlashbackDifferenceCounts
{
	int64		same;
	int64		then;			/* rows of then, the same ones included */
	bool		unique;
} FlashbackDifferenceCounts;

extern bool flashback_find_untouched(FlashbackShape *shape, Relation result,
									 const FlashbackOrigin *origin, Snapshot snapshot,
									 FlashbackDifferenceCallback callback, void *arg,
									 int64 *same, bool *unique);

/* matching.c */
extern int64 flashback_match_rows(FlashbackRowSource *then, FlashbackRowSort *then_rows,
								  FlashbackRowSource *now, FlashbackRowSort *now_rows);

#endif							/* FLASHBACK_CONSOLE_H */
