/*-------------------------------------------------------------------------
 *
 * flashback_log.h
 *	  What the files of the module share.  See README.invariants.md.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/flashback_log.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef FLASHBACK_LOG_H
#define FLASHBACK_LOG_H

#include "flashback_log_api.h"
#include "port/atomics.h"
#include "port/pg_crc32c.h"
#include "portability/instr_time.h"
#include "storage/buf_internals.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

#define FLASHBACK_LOG_DIR "polar_flog"
#define FLASHBACK_LOG_STATE FLASHBACK_LOG_DIR "/state"

/* Of a segment; PolarDB's, in which polar_flashback_log_keep_segments counts */
#define FLASHBACK_LOG_SEGMENT_MB 256

#define FLASHBACK_LOG_MAX_POINTS 512
/* A partition takes three, one for itself and two for its files of now */
#define FLASHBACK_LOG_MAX_PURGED 8192

/* In each tablespace, beside the databases; see recycle_area.c */
#define FLASHBACK_RECYCLE_DIR "pgsql_tmp_polar_recycle"
#define FLASHBACK_RECYCLE_DESCRIPTOR ".kept"

typedef enum FlashbackLogMode
{
	FLASHBACK_LOG_ASYNC,
	FLASHBACK_LOG_SYNC,
} FlashbackLogMode;

typedef enum FlashbackLogCompression
{
	FLASHBACK_LOG_PLAIN,
	FLASHBACK_LOG_PGLZ,
	FLASHBACK_LOG_LZ4,
	FLASHBACK_LOG_ZSTD,
} FlashbackLogCompression;

/*
 * A position is (segment number * segment size + offset).  Offset 0 is the
 * segment's header, so a position with that offset says: the next record
 * begins a new segment.
 */
typedef struct FlashbackLogHeader
{
	uint32		magic;
	uint32		version;
	uint64		system_identifier;
	uint64		segment;
	uint64		segment_size;
	uint64		salt;			/* in each record, so that no content of a
								 * page can pass for one */
	uint64		previous_last;	/* last record of the segment before, or 0 */
	uint32		previous_whole; /* no record is missing there */
	pg_crc32c	crc;
} FlashbackLogHeader;

typedef struct FlashbackLogRecord
{
	uint32		magic;
	pg_crc32c	crc;			/* of all that follows, and the payload */
	uint64		position;
	uint64		previous;		/* record before it in this segment, or 0 */
	uint64		salt;
	XLogRecPtr	lsn;			/* of the page */
	uint64		point;			/* number of the last point */
	RelFileLocator rlocator;
	BlockNumber blkno;
	uint16		kind;			/* FlashbackImageKind */
	uint16		compression;
	uint16		hole_offset;
	uint16		hole_length;
	uint32		length;			/* of the payload */
	uint32		unused;
} FlashbackLogRecord;

#define FLASHBACK_LOG_MAGIC 0x464C4F47
#define FLASHBACK_LOG_VERSION 1
#define FLASHBACK_LOG_MAX_RECORD MAXALIGN(sizeof(FlashbackLogRecord) + BLCKSZ)

/* One image in the index of a closed segment, in the order of the key */
typedef struct FlashbackLogIndexEntry
{
	RelFileLocator rlocator;
	BlockNumber blkno;
	uint32		offset;
	uint32		kind;
	XLogRecPtr	lsn;
} FlashbackLogIndexEntry;

typedef struct FlashbackLogIndexHeader
{
	uint32		magic;
	uint32		version;
	uint64		segment;
	uint64		salt;
	uint64		last;			/* position of the last record, or 0 */
	uint32		nentries;
	pg_crc32c	crc;			/* of the entries */
	pg_crc32c	header_crc;		/* of all before it */
	uint32		unused;
} FlashbackLogIndexHeader;

/* What tells an inode from all others; 0 = the file system does not say */
#define FLASHBACK_LOG_MAX_HANDLE 128
typedef struct FlashbackLogIdentity
{
	uint64		device;
	uint64		inode;
	int64		born_ns;
	int32		handle_type;
	uint32		handle_length;
	unsigned char handle[FLASHBACK_LOG_MAX_HANDLE];
} FlashbackLogIdentity;

/* What identifies a kept file, and names it */
typedef struct FlashbackKeptName
{
	RelFileLocator rlocator;
	XLogRecPtr	commit_lsn;
} FlashbackKeptName;

/* Says that a file has been kept, with all its segments */
typedef struct FlashbackKeptDescriptor
{
	uint32		magic;
	uint32		version;
	uint64		system_identifier;
	uint32		segment_blocks;
	uint32		unused;
	FlashbackKeptFile file;
	pg_crc32c	crc;
} FlashbackKeptDescriptor;

#define FLASHBACK_RECYCLE_MAGIC 0x464C4B50

/* Even if somebody reads it */
#define FLASHBACK_RECYCLE_FORCE 1

/* A relation of which nothing from before a position may be read */
typedef struct FlashbackPurged
{
	RelFileLocator rlocator;
	XLogRecPtr	lsn;
} FlashbackPurged;

typedef struct FlashbackLogShared
{
	slock_t		mutex;			/* protects the next group */
	uint64		insert_position;
	uint64		last_record;	/* of the segment begun last, or 0 */
	bool		whole;			/* that segment has all its records */
	bool		at_rest;		/* and got none since the server started */
	uint64		salt;			/* of the active segment */
	int			truncations;	/* under way; no point may come between */
	int			moves;			/* of databases, under way */
	bool		broken;			/* an image is lost: no point before the next
								 * one counts */
	char		why[256];		/* what ended the last window */
	TimestampTz ended_at;
	uint64		windows_ended;
	char		why_shortened[256]; /* its oldest part was given up */
	TimestampTz shortened_at;
	uint64		shortened;
	ProcNumber	worker;			/* INVALID_PROC_NUMBER: not running */
	ProcNumber	writer;			/* as well */
	int64		recycled_files;
	int64		recycled_bytes;

	ConditionVariable truncations_done;

	/* Protected by the state lock */
	uint64		window;			/* grows when a window begins */
	TimestampTz window_began;
	uint64		point_number;
	int			npoints;
	FlashbackPoint points[FLASHBACK_LOG_MAX_POINTS];
	uint64		first_segment;	/* the oldest that is kept */
	int			npurged;
	FlashbackPurged purged[FLASHBACK_LOG_MAX_PURGED];

	/* Changed with the epoch lock held exclusively, or before anybody writes */
	pg_atomic_uint64 lsn;		/* F; 0: no point yet */

	/* Group commit of the sync mode */
	pg_atomic_uint64 sync_started;
	pg_atomic_uint64 sync_done;
	pg_atomic_uint64 sync_segment;
	pg_atomic_uint64 failed_segment;

	/* Statistics */
	pg_atomic_uint64 looks;
	pg_atomic_uint64 images;
	pg_atomic_uint64 zeroes;
	pg_atomic_uint64 unreadable;
	pg_atomic_uint64 raw_bytes;
	pg_atomic_uint64 bytes;
	pg_atomic_uint64 capture_us;
	pg_atomic_uint64 syncs;
	pg_atomic_uint64 sync_us;
	pg_atomic_uint64 failures;
} FlashbackLogShared;

/*
 * The locks, in the order in which they are taken.  Writers pass the gate and
 * hold the epoch shared while they look, keep and write; a point closes the
 * gate and takes the epoch, so that it neither waits for ever nor comes
 * between.
 */
typedef enum FlashbackLogLock
{
	FLASHBACK_LOG_GATE,
	FLASHBACK_LOG_EPOCH,
	FLASHBACK_LOG_SEGMENT,
	FLASHBACK_LOG_WRITE,		/* shared: has a place that is being written */
	FLASHBACK_LOG_STATE_LOCK,
	FLASHBACK_LOG_SYNC_LOCK,
	FLASHBACK_LOG_NLOCKS,
} FlashbackLogLock;

/* Blocks whose images are made durable together */
#define FLASHBACK_LOG_MAX_BATCH 256
typedef struct FlashbackLogBlock
{
	RelFileLocator rlocator;
	BlockNumber blkno;
	uint64		position;		/* of the image; 0: it needs none */
} FlashbackLogBlock;

typedef struct FlashbackLogBatch
{
	uint64		point;			/* number of the one that they count for */
	XLogRecPtr	lsn;			/* F of that */
	int			n;
	FlashbackLogBlock blocks[FLASHBACK_LOG_MAX_BATCH];
} FlashbackLogBatch;

/* One segment that is read from record to record */
typedef struct FlashbackLogScan
{
	int			fd;
	uint64		segment;
	uint64		offset;			/* of the next record */
	uint64		end;			/* nothing is looked for from here on */
	uint64		last;			/* record that was read last, or 0 */
	uint64		expected_last;	/* the one that must be */
	bool		whole;			/* no record may be missing */
	FlashbackLogHeader header;
	char	   *buffer;
	uint64		buffer_offset;
	Size		buffer_length;
	char		damage[256];	/* '' = none */
} FlashbackLogScan;

/* flashback_log.c */
extern bool flashback_log_enabled;
extern bool flashback_log_keep_recovery_area;
extern int	flashback_log_mode;
extern int	flashback_log_compression;
extern int	flashback_log_keep_segments;
extern int	flashback_log_rotation;
extern int	flashback_log_point_timeout;
extern int	flashback_log_point_segments;
extern int	flashback_log_max_size;
extern int	flashback_log_segment_size_kb;
extern int	flashback_recycle_max_size;
extern int	flashback_log_reserve;
extern FlashbackLogShared *flashback_log_shared;
extern LWLockPadded *flashback_log_locks;
extern uint32 flashback_log_wait_event;
extern const char *const flashback_log_mode_names[];

#define flashback_log_lock(which) (&flashback_log_locks[which].lock)
#define FLASHBACK_LOG_SEGMENT_SIZE ((uint64) flashback_log_segment_size_kb * 1024)
#define FLASHBACK_LOG_FIRST_OFFSET MAXALIGN(sizeof(FlashbackLogHeader))

/* capture.c */
extern void flashback_log_install_capture(void);
extern bool flashback_log_is_wanted(void);
extern void flashback_log_enter_epoch(void);
extern void flashback_log_leave_epoch(void);
extern void flashback_log_count_look(instr_time since);
extern const char *flashback_log_pack(const char *page, FlashbackLogRecord *record);
extern bool flashback_log_append_page(const RelFileLocator *rlocator, BlockNumber blkno,
									  const char *page, uint64 *position);
extern bool flashback_log_sync_batch(const FlashbackLogBatch *batch);

/* kept.c */
extern Size flashback_log_kept_size(void);
extern void flashback_log_kept_startup(void);
extern bool flashback_log_is_kept(const RelFileLocator *rlocator, BlockNumber blkno, uint64 point);
extern void flashback_log_note_kept(const RelFileLocator *rlocator, BlockNumber blkno, uint64 point);

/* ahead.c */
extern void flashback_log_install_ahead(void);
extern void flashback_log_keep_checkpoint_batch(const CkptSortItem *items, int nitems);
extern void flashback_log_keep_neighbours(FlashbackLogBatch *batch);
extern void flashback_log_wake_writer(void);
extern PGDLLEXPORT pg_noreturn void flashback_log_writer_main(Datum arg);

/* log_file.c */
extern char flashback_log_error[256];
extern void flashback_log_segment_path(char *path, uint64 segment);
extern bool flashback_log_append(FlashbackLogRecord *record, const char *payload);
extern bool flashback_log_sync(uint64 position);
extern void flashback_log_abandon(uint64 segment);
extern uint64 flashback_log_last_begun(uint64 position);
extern bool flashback_log_sync_segments(uint64 segment, uint64 end);
extern bool flashback_log_create_file(const char *path);
extern bool flashback_log_fill_file(const char *path, uint64 until);
extern bool flashback_log_has_room(void);
extern bool flashback_log_header_is_valid(const FlashbackLogHeader *header, uint64 segment);
extern bool flashback_log_record_is_valid(const FlashbackLogRecord *record,
										  uint64 position, uint64 salt, Size available);
extern Size flashback_log_record_size(const FlashbackLogRecord *record);
extern void flashback_log_drain(void);

/* identity.c */
extern bool flashback_log_identify(int fd, FlashbackLogIdentity *identity);
extern bool flashback_log_is_same_inode(const FlashbackLogIdentity *before, const FlashbackLogIdentity *now);

/* points.c */
extern void flashback_log_install_points(void);
extern void flashback_log_begin(void);
extern bool flashback_log_is_consistent(void);
extern void flashback_log_break(const char *why);
extern bool flashback_log_write_state(bool shutdown);
extern void flashback_log_drop_points(int n);
extern void flashback_log_note_end(const char *why);
extern void flashback_log_close_gate(void);
extern void flashback_log_open_gate(void);
extern bool flashback_log_oldest_point(FlashbackPoint *point);

/* moves.c */
extern void flashback_log_install_moves(void);

/* retention.c */
extern void flashback_log_install_retention(void);
extern bool flashback_log_make_room(void);
extern int	flashback_log_least_points(void);
extern uint64 flashback_log_bytes_between(uint64 position, uint64 later);
extern int	flashback_log_give_up_points(uint64 number);
extern void flashback_log_note_shortened(const char *why);
extern void flashback_log_wake_worker(void);
extern PGDLLEXPORT pg_noreturn void flashback_log_worker_main(Datum arg);

/* reserve.c */
extern void flashback_log_keep_reserve(void);

/* recycle.c */
extern void flashback_log_install_recycle(void);

/* recycle_area.c */
extern void flashback_recycle_path(char *path, const FlashbackKeptName *name, const char *suffix);
extern void flashback_recycle_segment_path(char *path, const FlashbackKeptName *name, BlockNumber segno);
extern pg_crc32c flashback_recycle_crc(const FlashbackKeptDescriptor *descriptor);
extern bool flashback_recycle_read_descriptor(int fd, const FlashbackKeptName *name, FlashbackKeptFile *file);
extern bool flashback_recycle_sync_area(Oid tablespace);
extern bool flashback_recycle_create_area(Oid tablespace);
extern void flashback_recycle_count(int files, int64 bytes);
extern bool flashback_recycle_is_over_limit(void);
extern bool flashback_recycle_exists(const FlashbackKeptName *name);
extern void flashback_recycle_discard(const FlashbackKeptName *name);
extern bool flashback_recycle_remove(const FlashbackKeptName *name, int flags);
extern bool flashback_recycle_drop_area(Oid tablespace, int flags);
extern int	flashback_recycle_remove_relation(const RelFileLocator *rlocator);
extern bool flashback_recycle_find(const RelFileLocator *rlocator, XLogRecPtr lsn, FlashbackKeptName *name);
extern FlashbackKeptName *flashback_recycle_list(int *n);
extern void flashback_recycle_retain(XLogRecPtr oldest_lsn);
extern void flashback_recycle_visit_areas(void (*visit) (const char *path, void *arg), void *arg);
extern uint64 flashback_recycle_give_up(dev_t device, uint64 bytes, int *files);
extern bool flashback_recycle_make_room(Oid tablespace);
extern bool flashback_recycle_make_room_for_log(void);
extern bool flashback_recycle_sync(void);
extern void flashback_recycle_begin(bool keep);

/* recycle_reader.c */
extern const FlashbackRecycleApi flashback_recycle_api;

/* purge.c */
extern bool flashback_log_read_purged(void);
extern XLogRecPtr flashback_log_purged_before(const RelFileLocator *rlocator);

/* reader.c */
extern const FlashbackLogApi flashback_log_api;
extern bool flashback_log_scan_open(FlashbackLogScan *scan, uint64 segment);
extern const FlashbackLogRecord *flashback_log_scan_next(FlashbackLogScan *scan);
extern void flashback_log_scan_close(FlashbackLogScan *scan);
extern bool flashback_log_index_segment(uint64 segment);
extern bool flashback_log_has_index(uint64 segment);
extern void flashback_log_index_path(char *path, uint64 segment);

#endif							/* FLASHBACK_LOG_H */
