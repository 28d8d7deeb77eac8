/*-------------------------------------------------------------------------
 *
 * log_source.h
 *	  The flashback log as a source of pages.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/log_source.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAGE_REPAIR_LOG_SOURCE_H
#define PAGE_REPAIR_LOG_SOURCE_H

#include "page_repair.h"

/* Its name in messages and views */
#define LOG_SOURCE_NAME "flashback log"

/* What the log has for a block, beside the length of a page */
#define LOG_SOURCE_NO_CONTENT (-1)	/* it held nothing at the point */
#define LOG_SOURCE_KEEP (-2)	/* what is on disk is from the point */
#define LOG_SOURCE_UNKNOWN 0

typedef struct LogSource LogSource;

extern bool log_source_is_configured(void);
extern bool log_source_is_enabled(void);
extern bool log_source_protects(XLogRecPtr redo, char *why, Size why_size);
extern bool log_source_has_room(char *why, Size why_size);
extern uint64 log_source_failures(void);

extern LogSource *log_source_open(XLogRecPtr redo, char *why, Size why_size);
extern bool log_source_index(LogSource *log, bool (*is_wanted) (const PageRepairBlock *block, void *arg), void *arg,
							 char *why, Size why_size);
extern XLogRecPtr log_source_redo(const LogSource *log);
extern XLogRecPtr log_source_lsn(const LogSource *log);
extern TimeLineID log_source_timeline(const LogSource *log);
extern int	log_source_read(LogSource *log, const PageRepairBlock *block, char *page,
							char *why, Size why_size);
extern bool log_source_is_complete(LogSource *log);
extern void log_source_close(LogSource *log);

#endif							/* PAGE_REPAIR_LOG_SOURCE_H */
