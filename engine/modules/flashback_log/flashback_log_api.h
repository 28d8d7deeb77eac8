/*-------------------------------------------------------------------------
 *
 * flashback_log_api.h
 *	  What other modules may read of the flashback log.
 *
 * Found with find_rendezvous_variable(FLASHBACK_LOG_API); NULL when the module
 * is not loaded.  Functions raise an ERROR when what they read is damaged; a
 * result is never a guess.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/flashback_log_api.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef FLASHBACK_LOG_API_H
#define FLASHBACK_LOG_API_H

#include "access/transam.h"
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "nodes/pg_list.h"
#include "storage/block.h"
#include "storage/relfilelocator.h"

#define FLASHBACK_LOG_API "flashback_log_api"

/*
 * A moment at which every page on disk is known: it has all changes before
 * "redo", and none after "lsn".
 */
typedef struct FlashbackPoint
{
	uint64		number;			/* grows by one from point to point */
	XLogRecPtr	lsn;			/* F: pages can be rebuilt as of here and
								 * later */
	XLogRecPtr	redo;			/* R: from here WAL is needed */
	uint64		position;		/* in the log; later images belong to it */
	TimestampTz time;
	FullTransactionId next_xid;
	TransactionId oldest_xid;	/* pages name no older transaction */
	MultiXactId oldest_multi;
	TimeLineID	timeline;
	uint32		durable;		/* images since are durable before their
								 * blocks are overwritten */
} FlashbackPoint;

typedef enum FlashbackImageKind
{
	FLASHBACK_IMAGE_NONE,		/* not overwritten since, or zeroes then */
	FLASHBACK_IMAGE_PAGE,
	FLASHBACK_IMAGE_UNREADABLE, /* the block did not verify, or could not be
								 * read, when it was overwritten */
} FlashbackImageKind;

typedef struct FlashbackImage
{
	RelFileLocator rlocator;
	BlockNumber blkno;
	FlashbackImageKind kind;
	XLogRecPtr	lsn;			/* of the page */
	uint64		position;
} FlashbackImage;

typedef struct FlashbackImages FlashbackImages;
typedef struct FlashbackImageReader FlashbackImageReader;

/* The main fork of a permanent relation that a commit has deleted */
typedef struct FlashbackKeptFile
{
	RelFileLocator rlocator;
	BlockNumber nblocks;
	XLogRecPtr	commit_lsn;		/* end of that commit's record */
	TimestampTz dropped_at;
} FlashbackKeptFile;

typedef struct FlashbackKept FlashbackKept;

/*
 * The recycle area.  A kept file is to a point of before commit_lsn what the
 * file of a relation that still exists is: the content of a block at the point
 * is its first image after it, else that of the file if its lsn is not after
 * the point's, else zeroes.  (See first_image().  No block of it is written
 * any more, so nothing needs to be asked again.)
 */
typedef struct FlashbackRecycleApi
{
	/* All kept files, oldest first; some may be gone when they are opened */
	FlashbackKeptFile *(*list) (int *nfiles);

	/*
	 * The file that had this locator at a position, if it has been deleted
	 * since and kept; NULL else, and then nothing of it can be read.  It is
	 * not removed before it is closed, or the (sub)transaction ends or fails,
	 * unless the tablespace or database is dropped or the relation purged;
	 * then reading it fails.  A parallel worker opens it for itself.
	 */
	FlashbackKept *(*open) (const RelFileLocator *rlocator, XLogRecPtr lsn,
							FlashbackKeptFile *file);
	/* A block of it; an ERROR if it does not verify */
	void		(*read) (FlashbackKept *kept, BlockNumber blkno, char *page);
	void		(*close) (FlashbackKept *kept);
} FlashbackRecycleApi;

/*
 * Stands for all files that a relation ever had; only may_read() knows it.
 */
static inline RelFileLocator
flashback_any_file_of(Oid database, Oid relid)
{
	RelFileLocator rlocator = {.spcOid = InvalidOid,.dbOid = database,.relNumber = relid};

	return rlocator;
}

/*
 * What a relation of this database was, for whoever ends its past.  Another
 * module finds that, whose function the rendezvous variable points to, if it
 * is loaded.
 */
#define FLASHBACK_PAST "flashback_past"

typedef struct FlashbackPast
{
	List	   *relids;			/* its partitions, at any depth: as many of
								 * those that it had as are known */
	List	   *files;			/* RelFileLocator *: that were deleted, and
								 * kept, of it and these, and of their TOAST
								 * relations */
	int			nunknown;		/* kept files of which it is not known whose
								 * they were */
	bool		existed;		/* something is known of it */
} FlashbackPast;

typedef void (*FlashbackPastFinder) (Oid relid, FlashbackPast *past);

typedef struct FlashbackLogApi
{
	/* The newest point not after this time, or with lsn not after this one */
	bool		(*find_point) (TimestampTz time, FlashbackPoint *point);
	bool		(*find_point_lsn) (XLogRecPtr lsn, FlashbackPoint *point);
	/* The point of the checkpoint with this redo location */
	bool		(*find_point_redo) (XLogRecPtr redo, FlashbackPoint *point);

	/*
	 * The images of a relation (NULL: of all) that a point has, up to now.
	 * Those of one block come in the order of the log; only the first is its
	 * content at the point.
	 */
	FlashbackImages *(*begin_images) (const FlashbackPoint *point,
									  const RelFileLocator *rlocator);
	bool		(*next_image) (FlashbackImages *images, FlashbackImage *image);
	void		(*end_images) (FlashbackImages *images);

	/* The page of an image, of BLCKSZ bytes */
	void		(*read_image) (const FlashbackImage *image, char *page);

	/*
	 * The same for many images, best in the order of the log: its files stay
	 * open from one to the next, but not beyond the (sub)transaction.
	 */
	FlashbackImageReader *(*begin_reading) (void);
	void		(*read_next) (FlashbackImageReader *reader,
							  const FlashbackImage *image, char *page);
	void		(*end_reading) (FlashbackImageReader *reader);

	/*
	 * The first image of a block after a point: its content at the point, or
	 * if it held only zeroes then, perhaps one from between redo and lsn.
	 * NONE: its content is that on disk if that has an lsn not after the
	 * point's, else ask again (it has been overwritten meanwhile), and if
	 * there is still none it was zeroes or did not exist.
	 */
	FlashbackImageKind (*first_image) (const FlashbackPoint *point,
									   const RelFileLocator *rlocator,
									   BlockNumber blkno, char *page);

	/*
	 * Whether the log is still complete since the point.  To be asked after
	 * the last image has been read.
	 */
	bool		(*is_complete) (const FlashbackPoint *point);

	/*
	 * Whether images of a relation may be read for this point: not those of
	 * before it was purged.  begin_images() for one relation, and
	 * first_image(), raise an ERROR then, but not during recovery.  For all
	 * files that a relation ever had see flashback_any_file_of().  To be
	 * asked before, and after the last image has been read.
	 */
	bool		(*may_read) (const FlashbackPoint *point,
							 const RelFileLocator *rlocator);

	const FlashbackRecycleApi *recycle;

	/*
	 * "off", "async" or "sync"; the same as long as the server runs.  This
	 * and what follows raises no error.
	 */
	const char *(*mode) (void);

	/*
	 * Whether each block that was overwritten since the point of the
	 * checkpoint with this redo location had a durable image before: then
	 * those that a crash tore can be rebuilt, also if the log is kept in
	 * async mode now.  If not, the reason.
	 */
	bool		(*protects) (XLogRecPtr redo, FlashbackPoint *point,
							 char *why, Size why_size);

	/* Whether there is, or can be, another segment; if not, the reason */
	bool		(*has_room) (char *why, Size why_size);

	/* How many images could not be kept since the server was started */
	uint64		(*failures) (void);
} FlashbackLogApi;

#endif							/* FLASHBACK_LOG_API_H */
