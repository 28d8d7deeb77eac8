/*-------------------------------------------------------------------------
 *
 * page_store.c
 *	  Pages that belong to one backend: in memory, and beyond that in a
 *	  temporary file.
 *
 * Not in shared buffers, since rebuilt pages must never be written to a
 * relation's file nor evict others' pages, and not in a relation, since a
 * standby can create none.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/page_store.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "flashback_internal.h"
#include "utils/memutils.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/wait_event.h"

#define NOWHERE PG_UINT32_MAX

typedef struct Slot
{
	uint32		frame;			/* NOWHERE: not in memory */
	bool		in_file;		/* has been written there */
} Slot;

typedef struct Frame
{
	char	   *page;
	uint32		slot;
	bool		dirty;
	bool		recent;
} Frame;

struct FlashbackPageStore
{
	MemoryContext context;
	Slot	   *slots;
	uint32		nslots;
	uint32		allocated_slots;
	Frame	   *frames;
	uint32		nframes;
	uint32		allocated_frames;
	uint32		max_frames;
	uint32		hand;
	File		file;			/* 0: none yet */
};

FlashbackPageStore *
flashback_store_create(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "flashback pages", ALLOCSET_DEFAULT_SIZES);
	FlashbackPageStore *store = MemoryContextAllocZero(context, sizeof(FlashbackPageStore));

	store->context = context;
	store->max_frames = Max(maintenance_work_mem / (BLCKSZ / 1024), 16);
	store->allocated_slots = 64;
	store->slots = MemoryContextAlloc(context, store->allocated_slots * sizeof(Slot));
	store->allocated_frames = 16;
	store->frames = MemoryContextAlloc(context, store->allocated_frames * sizeof(Frame));
	return store;
}

/*
 * So many processes share the memory of one, before any page was added.
 */
void
flashback_store_share(FlashbackPageStore *store, int processes)
{
	Assert(store->nslots == 0);
	store->max_frames = Max(store->max_frames / processes, 16);
}

/*
 * A new page of zeroes.
 */
uint32
flashback_store_add(FlashbackPageStore *store)
{
	if (store->nslots == store->allocated_slots)
	{
		store->allocated_slots *= 2;
		store->slots = repalloc_huge(store->slots, (Size) store->allocated_slots * sizeof(Slot));
	}
	store->slots[store->nslots].frame = NOWHERE;
	store->slots[store->nslots].in_file = false;
	return store->nslots++;
}

static void
write_out(FlashbackPageStore *store, Frame *frame)
{
	ssize_t		n;

	if (store->file == 0)
	{
		PrepareTempTablespaces();
		store->file = OpenTemporaryFile(false);
	}
	errno = 0;
	n = FileWrite(store->file, frame->page, BLCKSZ, (pgoff_t) frame->slot * BLCKSZ,
				  WAIT_EVENT_BUFFILE_WRITE);
	if (n != BLCKSZ)
	{
		if (errno == 0)
			errno = ENOSPC;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not write to file \"%s\": %m", FilePathName(store->file))));
	}
	store->slots[frame->slot].in_file = true;
	frame->dirty = false;
}

/*
 * A frame that may be used for something else.
 */
static uint32
find_frame(FlashbackPageStore *store)
{
	if (store->nframes < store->max_frames)
	{
		if (store->nframes == store->allocated_frames)
		{
			store->allocated_frames *= 2;
			store->frames = repalloc_huge(store->frames, (Size) store->allocated_frames * sizeof(Frame));
		}
		memset(&store->frames[store->nframes], 0, sizeof(Frame));
		store->frames[store->nframes].page = MemoryContextAllocAligned(store->context, BLCKSZ, PG_IO_ALIGN_SIZE, 0);
		return store->nframes++;
	}
	for (;;)
	{
		uint32		index = store->hand;
		Frame	   *frame = &store->frames[index];

		store->hand = (store->hand + 1) % store->nframes;
		if (frame->recent)
		{
			frame->recent = false;
			continue;
		}
		if (frame->dirty)
			write_out(store, frame);
		store->slots[frame->slot].frame = NOWHERE;
		return index;
	}
}

/*
 * A page, valid until the next call.
 */
char *
flashback_store_page(FlashbackPageStore *store, uint32 slot, bool change)
{
	Slot	   *entry = &store->slots[slot];
	Frame	   *frame;

	Assert(slot < store->nslots);
	if (entry->frame == NOWHERE)
	{
		uint32		index = find_frame(store);

		frame = &store->frames[index];
		frame->slot = slot;
		frame->dirty = false;
		if (entry->in_file)
		{
			ssize_t		n = FileRead(store->file, frame->page, BLCKSZ, (pgoff_t) slot * BLCKSZ,
									 WAIT_EVENT_BUFFILE_READ);

			if (n != BLCKSZ)
				ereport(ERROR,
						(errcode_for_file_access(),
						 n < 0 ? errmsg("could not read file \"%s\": %m", FilePathName(store->file)) :
						 errmsg("could not read file \"%s\": read only %zd of %d bytes",
								FilePathName(store->file), n, BLCKSZ)));
		}
		else
			memset(frame->page, 0, BLCKSZ);
		entry->frame = index;
	}
	frame = &store->frames[entry->frame];
	frame->recent = true;
	if (change)
		frame->dirty = true;
	return frame->page;
}

void
flashback_store_free(FlashbackPageStore *store)
{
	if (store->file != 0)
		FileClose(store->file);
	MemoryContextDelete(store->context);
}
