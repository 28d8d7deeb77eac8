/*-------------------------------------------------------------------------
 *
 * flashback_internal.h
 *	  What the files of the module share.  See README for the invariants.
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

/* flashback_table.c */
extern const FlashbackLogApi *flashback_log(void);
extern void flashback_report(FlashbackPhase phase);
extern FlashbackProgress flashback_progress;

/* wal_pass.c */
typedef struct FlashbackWalPass FlashbackWalPass;

extern FlashbackWalPass *flashback_wal_begin(XLogRecPtr start, XLogRecPtr end);
extern XLogReaderState *flashback_wal_next(FlashbackWalPass *pass);
extern XLogRecPtr flashback_wal_position(const FlashbackWalPass *pass);
extern void flashback_wal_end(FlashbackWalPass *pass);

/* page_store.c */
typedef struct FlashbackPageStore FlashbackPageStore;

extern FlashbackPageStore *flashback_store_create(void);
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

/* rebuild.c */
typedef struct FlashbackHeap FlashbackHeap;

extern FlashbackHeap *flashback_heap_open(Relation rel, const FlashbackMoment *moment,
										  FlashbackPhase phase);
extern const char *flashback_heap_next(FlashbackHeap *heap, BlockNumber *blkno, bool *rebuilt);
extern const char *flashback_heap_fetch(FlashbackHeap *heap, BlockNumber blkno, bool *newer);
extern void flashback_heap_pause(FlashbackHeap *heap);
extern void flashback_heap_rebuild_newer(FlashbackHeap *heap);
extern void flashback_heap_close(FlashbackHeap *heap);

/* visibility.c */
typedef struct FlashbackVisibility FlashbackVisibility;

extern FlashbackVisibility *flashback_visibility_create(const FlashbackMoment *moment);
extern bool flashback_tuple_is_visible(FlashbackVisibility *visibility, HeapTupleHeader tuple);

/* toast.c */
typedef struct FlashbackToast FlashbackToast;

extern FlashbackToast *flashback_toast_open(Oid toastrelid, const FlashbackMoment *moment,
											FlashbackVisibility *visibility);
extern struct varlena *flashback_toast_fetch(FlashbackToast *toast, struct varlena *pointer);
extern void flashback_toast_close(FlashbackToast *toast);

#endif							/* FLASHBACK_INTERNAL_H */
