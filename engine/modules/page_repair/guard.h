/*-------------------------------------------------------------------------
 *
 * guard.h
 *	  What the guard's worker, its hooks and the views share.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/guard.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAGE_REPAIR_GUARD_H
#define PAGE_REPAIR_GUARD_H

#include "page_repair.h"

/* How often a source is asked, in milliseconds */
#define GUARD_INTERVAL_MS 1000

/* A source that needs longer is not healthy */
#define GUARD_ANSWER_MS 3000

#define GUARD_STUCK "the page repair guard does not answer"
#define GUARD_NOT_COMPLETE "a checkpoint with full-page images is not complete yet"

/* What the guard wants to know of pg_control */
typedef struct GuardControl
{
	XLogRecPtr	redo;			/* of the last complete checkpoint */
	TimeLineID	timeline;
	bool		images;			/* they were in force at it */
} GuardControl;

/* guard.c */
extern bool guard_read_control(GuardControl *control);
extern bool guard_replayed_images(const GuardControl *control);
extern bool guard_has_sources(void);
extern bool guard_is_covered(XLogRecPtr redo, XLogRecPtr reached);
extern int	guard_patience_ms(void);
extern bool guard_worker_is_stuck(void);
extern void guard_force_images(const char *why);
extern void guard_wake_checkpointer(void);

#endif							/* PAGE_REPAIR_GUARD_H */
