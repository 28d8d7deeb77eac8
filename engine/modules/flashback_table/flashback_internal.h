/*-------------------------------------------------------------------------
 *
 * flashback_internal.h
 *	  What the files of the module share.  See README.invariants.md.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/flashback_internal.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef FLASHBACK_INTERNAL_H
#define FLASHBACK_INTERNAL_H

#include "flashback_table.h"
#include "access/htup_details.h"
#include "utils/hsearch.h"
#include "utils/snapshot.h"

/* flashback_table.c */
extern const FlashbackLogApi *flashback_log(void);
extern void flashback_report(FlashbackPhase phase);
extern FlashbackProgress flashback_progress;

/* What a commit record has; valid as long as the record */
typedef struct FlashbackCommitRecord
{
	TimestampTz time;
	bool		replicated;		/* from an origin */
	TransactionId xid;
	const char *subxids;
	uint32		nsubxids;
	uint32		nfiles;			/* that it deletes */
	const char *stats;			/* items of statistics that it drops */
	uint32		nstats;
} FlashbackCommitRecord;

/* moment.c */
extern XLogRecPtr flashback_end_of_wal(void);
extern bool flashback_is_commit(XLogReaderState *record, FlashbackCommitRecord *commit);
extern void flashback_take_commit(const FlashbackCommitRecord *record, FlashbackCommit *commit);

/* mapped.c */
extern bool flashback_mapped_file(Oid relid, const FlashbackMoment *moment, FlashbackFile *file);

/* wal_pass.c */
typedef struct FlashbackWalPass FlashbackWalPass;

extern FlashbackWalPass *flashback_wal_begin(XLogRecPtr start, XLogRecPtr end);
extern bool flashback_wal_seek(FlashbackWalPass *pass, XLogRecPtr position);
extern XLogReaderState *flashback_wal_next(FlashbackWalPass *pass);
extern XLogRecPtr flashback_wal_position(const FlashbackWalPass *pass);
extern void flashback_wal_end(FlashbackWalPass *pass);

/* page_store.c */
typedef struct FlashbackPageStore FlashbackPageStore;

extern FlashbackPageStore *flashback_store_create(void);
extern void flashback_store_share(FlashbackPageStore *store, int processes);
extern uint32 flashback_store_add(FlashbackPageStore *store);
extern char *flashback_store_page(FlashbackPageStore *store, uint32 slot, bool change);
extern void flashback_store_free(FlashbackPageStore *store);

/* page_check.c */
extern const char *flashback_check_page(const char *page);
extern const char *flashback_check_tuple(TupleDesc desc, HeapTupleHeader tuple, uint32 len);

/* page_redo.c */
extern bool flashback_redo_makes_page(XLogReaderState *record, uint8 block_id);
extern void flashback_redo_block(XLogReaderState *record, uint8 block_id, char *page);
extern bool flashback_redo_concerns(XLogReaderState *record);

/* The part of a file's blocks that one of several participants reads */
typedef struct FlashbackShare
{
	int			number;			/* from 0 on */
	int			of;				/* 1 or 0: there are no others */
	BlockNumber run;			/* they take turns after so many blocks */
} FlashbackShare;

/* rebuild.c */
typedef struct FlashbackHeap FlashbackHeap;

extern FlashbackHeap *flashback_heap_open(const FlashbackFile *file, Relation rel,
										  const FlashbackMoment *moment, FlashbackPhase phase);
extern void flashback_heap_share(FlashbackHeap *heap, const FlashbackShare *share);

/* A block then and now, and the tuples of it that are rows of now */
typedef struct FlashbackPagePair
{
	BlockNumber blkno;
	bool		rebuilt;
	const char *then;
	const char *now;			/* the very same: it has not changed since;
								 * NULL: there is none */
	int			nnow;
	OffsetNumber now_visible[MaxHeapTuplesPerPage];
} FlashbackPagePair;

extern bool flashback_heap_is_present(const FlashbackHeap *heap);
extern bool flashback_heap_next_pair(FlashbackHeap *heap, Snapshot snapshot, FlashbackPagePair *pair);
extern BlockNumber flashback_heap_size(const FlashbackHeap *heap);
extern const char *flashback_heap_next(FlashbackHeap *heap, BlockNumber *blkno, bool *rebuilt);
extern const char *flashback_heap_fetch(FlashbackHeap *heap, BlockNumber blkno, bool *newer);
extern void flashback_heap_pause(FlashbackHeap *heap);
extern void flashback_heap_rebuild_newer(FlashbackHeap *heap);
extern void flashback_heap_close(FlashbackHeap *heap);

/* past.c */
extern bool flashback_may_read_any(const FlashbackFormer *former, const FlashbackPoint *point);
extern bool flashback_may_read(const FlashbackFormer *former, const FlashbackPoint *point);
extern void flashback_refuse_purged(const FlashbackFormer *former, const char *name,
									FlashbackRefusal *refusal);

/* columns.c */
extern void flashback_columns_begin(FlashbackFormer *former);
extern void flashback_columns_take(FlashbackFormer *former, TupleTableSlot *slot);
extern bool flashback_columns_are_complete(const FlashbackFormer *former);

/* A file that was deleted by a commit that is looked at */
typedef struct FlashbackDeletedFile
{
	RelFileLocator rlocator;	/* hash key, must be first */
	int64		size;
	bool		named;			/* a relation had it */
}			FlashbackDeletedFile;

/* former.c */
extern FlashbackFormers *flashback_formers_of_files(HTAB *files, const FlashbackCommit *commit,
													int *nnew, const FlashbackMoment *moment,
													FlashbackRefusal *refusal);
extern void flashback_formers_sort(FlashbackFormers *formers);
extern void flashback_former_take(FlashbackFormer *former, TupleTableSlot *slot);
extern Datum flashback_catalog_value(TupleTableSlot *slot, AttrNumber attnum);
extern bool flashback_row_is_older(HeapTuple row, const FlashbackMoment *moment);

/* scan.c */
typedef struct FlashbackToast FlashbackToast;

typedef struct FlashbackStored
{
	const char *name;			/* of the relation */
	TupleDesc	desc;			/* of the tuples on its pages */
	TupleDesc	shape;			/* of the rows that are returned */
	int			natts;			/* that it had at the moment */
	Oid			toastrelid;
} FlashbackStored;

extern FlashbackScan *flashback_scan_catalog(Relation rel, const FlashbackFile *file,
											 const FlashbackMoment *moment);
extern FlashbackScan *flashback_scan_join(const FlashbackFormer *former, Relation rel,
										  TupleDesc desc, TupleDesc shape,
										  const FlashbackMoment *moment, const FlashbackShare *share);
extern void flashback_scan_share(FlashbackScan *scan, const FlashbackShare *share);
extern void flashback_scan_former(const FlashbackScan *scan, FlashbackFormer *former);
extern BlockNumber flashback_scan_size(const FlashbackScan *scan);
extern const FlashbackMoment *flashback_scan_moment(const FlashbackScan *scan);
extern Relation flashback_scan_relation(const FlashbackScan *scan);
extern void flashback_scan_describe(const FlashbackScan *scan, FlashbackStored *stored);
extern FlashbackToast *flashback_scan_open_toast(FlashbackScan *scan);
extern const char *flashback_scan_next_page(FlashbackScan *scan, const OffsetNumber **visible,
											int *nvisible);
extern HeapTuple flashback_scan_tuple(FlashbackScan *scan, OffsetNumber offset);
extern HeapTuple flashback_scan_reshape(FlashbackScan *scan, HeapTuple tuple, bool fetch);
extern void flashback_scan_check_complete(FlashbackScan *scan);

/* visibility.c */
typedef struct FlashbackVisibility FlashbackVisibility;

extern FlashbackVisibility *flashback_visibility_create(const FlashbackMoment *moment);
extern bool flashback_tuple_is_visible(FlashbackVisibility *visibility, HeapTupleHeader tuple);

/* toast.c */
typedef struct FlashbackChunk
{
	Oid			value;
	int32		number;
	const char *data;
	Size		size;
	BlockNumber blkno;
	OffsetNumber offset;
	HeapTupleHeader tuple;
	uint32		tuple_length;
} FlashbackChunk;

extern FlashbackToast *flashback_toast_open(Oid toastrelid, const FlashbackFile *file,
											const FlashbackMoment *moment,
											FlashbackVisibility *visibility);
extern void flashback_toast_share(FlashbackToast *toast, const FlashbackShare *share);
extern BlockNumber flashback_toast_size(const FlashbackToast *toast);
extern struct varlena *flashback_toast_fetch(FlashbackToast *toast, struct varlena *pointer);
extern bool flashback_toast_next_chunk(FlashbackToast *toast, FlashbackChunk *chunk);
pg_noreturn extern void flashback_toast_corrupted(const FlashbackToast *toast, Oid value,
												  const char *what);
extern void flashback_toast_close(FlashbackToast *toast);

/* page_copy.c */
extern bool flashback_pages_fit(const FlashbackScan *scan, Relation result);
extern uint64 flashback_copy_pages(FlashbackScan *scan, Relation result, int workers);

#endif							/* FLASHBACK_INTERNAL_H */
