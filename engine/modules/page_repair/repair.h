/*-------------------------------------------------------------------------
 *
 * repair.h
 *	  What the files that work during recovery share.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/repair.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAGE_REPAIR_REPAIR_H
#define PAGE_REPAIR_REPAIR_H

#include "log_source.h"
#include "page_repair.h"
#include "pgtime.h"
#include "storage/smgr.h"

/* What this recovery is, and what has been done in it */
typedef struct Recovery
{
	MemoryContext context;
	bool		standby;		/* in archive recovery, with a point of
								 * consistency */
	XLogRecPtr	redo;			/* R */
	pg_time_t	redo_time;		/* files written since R are of then or later */
	XLogRecPtr	least;			/* who is here has replayed all before R */
	XLogRecPtr	limit;			/* of a standby: blocks changed later cannot
								 * be torn */
	XLogRecPtr	end;			/* E, how far WAL has been scanned */
	PageRepairWalEnd wal;		/* and how far it is here */
	uint64		wal_fetched;	/* bytes of it that came from sources */
	bool		wal_gone;		/* a source has removed WAL that is needed */
	bool		told_without_wal;	/* that a source gives pages only */
	XLogRecPtr	newest;			/* position that must be replayed before all
								 * is well */
	List	   *history;		/* of the timeline that is recovered to */
	TimeLineID	history_of;
	const char *withheld;		/* why sources are not asked, or NULL */
	bool		imaged;			/* so far each first change has had its image:
								 * nothing is looked at (R20) */
	TimeLineID	unknown_timeline;	/* a source is on one that we do not know */
	PageRepairMap map;
	PageRepairChunk **chunks;	/* those that are being dealt with */
	int			nchunks;
	uint64		to_fetch;		/* blocks of them that are not whole here */
	uint64		fetched;		/* and those of them that are now */
	LogSource  *log;			/* the flashback log, asked first, or NULL */
	bool		log_ready;		/* its images have been looked up */
	PageSource	log_source;		/* its name, and its last reason */
	PageSource *sources;
	int			nsources;
	bool		copies;			/* the first source is a directory of copies */
	int			current;		/* the source that answered last */
	uint32		failed;			/* sources that did not answer when they were
								 * asked last, a bit for each */
	char	   *read_buffer;
	PageRepairStats stats;
	int			logged;
} Recovery;

/* For as many blocks as are read at once, and one to be made */
#define REPAIR_READ_BLOCKS 16
#define REPAIR_READ_BUFFER ((Size) (REPAIR_READ_BLOCKS + 1) * BLCKSZ)

/* repair.c */
extern void repair_follow_timeline(Recovery *recovery, TimeLineID timeline);
extern void repair_publish_stats(Recovery *recovery);
extern void repair_write_page(Recovery *recovery, SMgrRelation reln, ForkNumber forknum, BlockNumber blkno, char *page);
extern void repair_log(Recovery *recovery, const PageRepairBlock *block, const char *what);

/* verify.c */
extern PageRepairChunk **verify_sorted_chunks(Recovery *recovery, int *nchunks);
extern void verify_chunk(Recovery *recovery, PageRepairChunk *chunk);
extern void verify_sweep_maps(Recovery *recovery, RelFileLocator rlocator);
extern void verify_sweep_written_maps(Recovery *recovery, pg_time_t since);
extern bool verify_is_whole(Recovery *recovery, const PageRepairBlock *block);
extern int	verify_next_checked(PageRepairChunk *chunk, int from);

/* fetch.c */
extern void fetch_all(Recovery *recovery, PageRepairChunk **chunks, int nchunks);
extern XLogRecPtr fetch_begin_copies(Recovery *recovery, PageSource *source);
extern void refuse_source(PageSource *source, const char *format,...) pg_attribute_printf(2, 3);

/* torn_list.c */
extern bool torn_list_write(Recovery *recovery, PageRepairChunk **chunks, int nchunks, int elevel, uint64 *nblocks);
extern void torn_list_remove(void);

/* wal_fetch.c */
extern bool wal_fetch(Recovery *recovery, PageSource *source, const PageSourceHeader *header);

#endif							/* PAGE_REPAIR_REPAIR_H */
