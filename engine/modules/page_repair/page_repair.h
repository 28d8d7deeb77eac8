/*-------------------------------------------------------------------------
 *
 * page_repair.h
 *	  What the files of this module share.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/page_repair.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAGE_REPAIR_H
#define PAGE_REPAIR_H

#include "access/xlogdefs.h"
#include "access/xlogreader.h"
#include "datatype/timestamp.h"
#include "libpq-fe.h"
#include "nodes/pg_list.h"
#include "storage/block.h"
#include "storage/relfilelocator.h"
#include "storage/spin.h"
#include "utils/hsearch.h"

#define PAGE_REPAIR_MAX_SOURCES 8

typedef enum PageRepairPolicy
{
	PAGE_REPAIR_OFF,
	PAGE_REPAIR_CHECKSUM,
	PAGE_REPAIR_ALWAYS,
} PageRepairPolicy;

typedef enum PageRepairState
{
	PAGE_REPAIR_FULL_PAGE_WRITES,
	PAGE_REPAIR_PROTECTED,
	PAGE_REPAIR_EXPOSED,
	PAGE_REPAIR_OVERRIDDEN,
} PageRepairState;

/* What the last recovery since the start did.  Written by the process that recovers. */
typedef struct PageRepairStats
{
	TimestampTz started_at;		/* 0: nothing was looked at */
	TimestampTz ended_at;		/* 0: not ended */
	bool		standby;
	int			policy;
	XLogRecPtr	redo_lsn;
	XLogRecPtr	end_lsn;
	uint64		referenced;		/* blocks named by WAL, each counted once */
	uint64		checked;
	uint64		torn;
	uint64		repaired;		/* replaced by a source's page */
	uint64		missing;		/* replaced by zeroes: the source has not the
								 * block */
	uint64		vm_initialized;
	uint64		fsm_reset;
	uint64		bytes;			/* of pages that sources sent */
	double		scan_ms;
	double		check_ms;
	double		fetch_ms;
	TimestampTz last_at;		/* of the last page that was replaced */
	uint64		log_pages;		/* of "repaired": pages of the flashback log */
	uint64		log_kept;		/* blocks that nobody has written since its
								 * point */
	char		log_why[256];	/* why it gave no pages, or not all */
} PageRepairStats;

typedef struct PageRepairSourceState
{
	char		name[NAMEDATALEN * 2];	/* '' = no such source */
	bool		healthy;
	char		why[256];		/* why it is not healthy */
	XLogRecPtr	flush_lsn;
	XLogRecPtr	replay_lsn;
	TimestampTz checked_at;
	uint64		pages;			/* given in the last recovery */
	uint64		bytes;
	TimestampTz last_at;
} PageRepairSourceState;

typedef struct PageRepairShared
{
	slock_t		mutex;			/* protects everything below */

	/* The guard's decision, and what the checkpointer made of it */
	bool		forced;			/* images whatever full_page_writes says */
	bool		broken;			/* they came back because of a source */
	bool		in_force;		/* images are being written */
	bool		told;			/* that the setting has no effect */
	XLogRecPtr	in_force_since; /* no record after it lacks its images */
	XLogRecPtr	reached;		/* highest position that a healthy source has
								 * flushed */
	XLogRecPtr	images_ended;	/* replay has last seen images end here */

	bool		launched;		/* the postmaster knows of the worker */
	ProcNumber	worker;			/* INVALID_PROC_NUMBER: not running */
	TimestampTz beat;			/* its last sign of life */

	PageRepairState state;
	TimestampTz since;
	char		why[256];

	bool		stopped_whole;	/* the last stop left nothing to be torn */
	bool		whole;			/* nor has this recovery */
	XLogRecPtr	recovered_from; /* its redo location; invalid: not one that
								 * was looked at */

	PageRepairStats stats;
	PageRepairSourceState log;	/* the flashback log */
	PageRepairSourceState sources[PAGE_REPAIR_MAX_SOURCES];
} PageRepairShared;

/* One block that is wanted of a source */
typedef struct PageRepairBlock
{
	RelFileLocator rlocator;
	ForkNumber	forknum;
	BlockNumber blkno;
} PageRepairBlock;

/* What a source says about itself with each answer */
typedef struct PageSourceHeader
{
	uint64		system_identifier;
	TimeLineID	timeline;
	bool		in_recovery;
	bool		streaming;
	bool		data_checksums;
	XLogRecPtr	start_lsn;		/* the pages have all changes up to here */
	XLogRecPtr	end_lsn;		/* and none after this */
	XLogRecPtr	flush_lsn;
} PageSourceHeader;

/* A directory of copies (copies.c) */
typedef struct PageCopies PageCopies;

typedef struct PageSource
{
	char	   *conninfo;
	char	   *name;			/* host, port and database, no secrets */
	PGconn	   *conn;
	bool		connecting;
	PostgresPollingStatusType polling;	/* what connecting waits for */
	bool		busy;			/* a request is under way */
	bool		unsent;			/* some of it may not be sent yet */
	bool		asked_wal;		/* the request is for WAL */
	PGresult   *result;			/* what has come of the answer */
	TimestampTz next_try;
	bool		refused;		/* never to be asked again in this recovery */
	bool		without_wal;	/* its release gives pages only */
	PageCopies *copies;			/* not a server but a directory, or NULL */
	char		why[256];		/* the last reason for not serving */
} PageSource;

typedef enum PageSourceProgress
{
	PAGE_SOURCE_PENDING,
	PAGE_SOURCE_ANSWERED,
	PAGE_SOURCE_FAILED,
} PageSourceProgress;

/* The blocks of one fork that WAL names, 1024 at a time */
#define PAGE_REPAIR_CHUNK_BLOCKS 1024
#define PAGE_REPAIR_CHUNK_WORDS (PAGE_REPAIR_CHUNK_BLOCKS / 64)

typedef struct PageRepairChunkKey
{
	RelFileLocator rlocator;
	int32		forknum;
	BlockNumber number;			/* block number / PAGE_REPAIR_CHUNK_BLOCKS */
} PageRepairChunkKey;

typedef struct PageRepairChunk
{
	PageRepairChunkKey key;		/* hash key, must be first */
	uint64		seen[PAGE_REPAIR_CHUNK_WORDS];
	uint64		check[PAGE_REPAIR_CHUNK_WORDS]; /* first change without image */
	uint64		replayed[PAGE_REPAIR_CHUNK_WORDS];	/* not only hints */
	bool		fresh;			/* is in the list of the map */
	bool		swept;			/* block 0 of the free space map: the
								 * relation's maps have been looked at */
} PageRepairChunk;

/* Blocks from this one on are removed; relation number 0 is a whole database */
typedef struct PageRepairRemoval
{
	RelFileLocator rlocator;	/* hash key, must be first */
	BlockNumber from;
} PageRepairRemoval;

/* Work goes to and fro between a few relations */
#define PAGE_REPAIR_RECENT_CHUNKS 256

typedef struct PageRepairMap
{
	HTAB	   *chunks;
	HTAB	   *removals;		/* what WAL truncates and drops */
	PageRepairChunk *recent[PAGE_REPAIR_RECENT_CHUNKS]; /* used last, by a hash
														 * of the key */
	uint64		referenced;
	List	   *fresh;			/* chunks that nobody has looked at yet */
	TimeLineID	timeline;		/* of the record that was read last */
	bool		imageless;		/* a first change has no image */
} PageRepairMap;

/* Where the WAL on this server's disk ends */
typedef struct PageRepairWalEnd
{
	XLogRecPtr	last;			/* start of the last record, or where reading
								 * began */
	XLogRecPtr	end;			/* end of that */
	TimeLineID	timeline;		/* of the file; 0: nothing was read */
} PageRepairWalEnd;

/* A source that needs longer for one answer is taken for dead */
#define PAGE_REPAIR_ANSWER_MS 15000

/* In the data directory: the list of torn blocks, and the directory of copies */
#define TORN_LIST_FILE "page_repair.torn"
#define COPIES_DIR "page_repair.copies"

/* In a request, the fork of a page of WAL */
#define PAGE_REPAIR_WAL_FORK InvalidForkNumber

/* page_repair.c */
extern int	page_repair_policy;
extern char *page_repair_source_list;
extern int	page_repair_timeout;
extern bool page_repair_guard;
extern int	page_repair_grace;
extern bool page_repair_list_only;
extern PageRepairShared *page_repair_shared;
extern const char *const page_repair_policy_names[];

/* wal_scan.c */
extern void page_repair_map_create(PageRepairMap *map);
extern void page_repair_map_record(PageRepairMap *map, XLogReaderState *record);
extern XLogRecPtr page_repair_scan(PageRepairMap *map, XLogRecPtr start,
								   XLogRecPtr limit, List *history, PageRepairWalEnd *wal);
extern void page_repair_read_on(PageRepairWalEnd *wal, List *history);
extern XLogRecPtr page_repair_record_end(XLogRecPtr position);
extern bool page_repair_is_end_of_images(XLogReaderState *record);
extern bool page_repair_removed(PageRepairMap *map, const PageRepairBlock *block);
extern bool page_repair_replayed(PageRepairMap *map, const PageRepairBlock *block);
extern bool page_repair_sweep_first(PageRepairMap *map, const RelFileLocator *rlocator);

/* source.c */
extern bool page_repair_parse_sources(const char *list, PageSource **sources,
									  int *nsources, char **error);
extern void page_repair_close_sources(PageSource *sources, int nsources);
extern bool page_source_connect(PageSource *source, TimestampTz deadline);
extern void page_source_disconnect(PageSource *source);
extern bool page_source_send(PageSource *source, const PageRepairBlock *blocks, int nblocks);
extern bool page_source_send_wal(PageSource *source, TimeLineID timeline, uint64 first_page, int npages);
extern PGresult *page_source_receive(PageSource *source, TimestampTz deadline,
									 PageSourceHeader *header);
extern bool page_source_ask(PageSource *source);
extern int	page_source_events(PageSource *source);
extern PageSourceProgress page_source_proceed(PageSource *source, PageSourceHeader *header);
extern void page_source_timed_out(PageSource *source);
extern bool page_source_pages(PGresult *result, int nblocks,
							  const char **pages, int *lengths);

/* copies.c */
extern bool copies_open(PageSource *source);
extern void copies_close(PageSource *source);
extern bool copies_send(PageSource *source, const PageRepairBlock *blocks, int nblocks);
extern bool copies_send_wal(PageSource *source, TimeLineID timeline, uint64 first_page, int npages);

/* repair.c */
extern void page_repair_install_recovery(void);

/* clean_stop.c */
extern void page_repair_watch_stop(void);
extern bool page_repair_was_stopped_whole(void);

/* guard.c */
extern void page_repair_install_guard(void);

/* guard_worker.c */
extern PGDLLEXPORT pg_noreturn void page_repair_worker_main(Datum arg);

#endif							/* PAGE_REPAIR_H */
