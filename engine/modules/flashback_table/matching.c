/*-------------------------------------------------------------------------
 *
 * matching.c
 *	  Takes out the rows that are the same then and now, without a sort.
 *
 * Most rows of a table are what they were, and come in the same order on both
 * sides.  So both are read side by side, and a row that the other side has
 * had meanwhile goes with it at once.  Rows that wait for theirs are in
 * memory; those that wait too long go to the sorts, as do all that are left.
 *
 * A side is read on while its rows are found, that is while it is behind, and
 * turns are taken otherwise, so that rows which only one side has do not let
 * it lag behind.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/matching.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "flashback_console.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#define BUCKETS 65536

/* Of rows with one hash that somebody has made, only so many are looked at */
#define MAX_STEPS 64

typedef struct WaitingRow
{
	dlist_node	in_bucket;
	dlist_node	by_age;
	Size		size;
	char		image[FLEXIBLE_ARRAY_MEMBER];	/* a bytea */
} WaitingRow;

typedef struct MatchSide
{
	FlashbackRowSource *source;
	FlashbackRowSort *rows;
	bool		ended;
	MemoryContext context;
	dlist_head *buckets;
	dlist_head	by_age;			/* the oldest first */
	Size		bytes;
} MatchSide;

static dlist_head *
bucket_of(MatchSide *side, const bytea *image)
{
	return &side->buckets[flashback_image_hash(image) % BUCKETS];
}

static void
forget(MatchSide *side, WaitingRow *row)
{
	dlist_delete(&row->in_bucket);
	dlist_delete(&row->by_age);
	side->bytes -= row->size;
	pfree(row);
}

/*
 * Takes a row that waits on that side and is the same; false if none does.
 */
static bool
take_same(MatchSide *side, const bytea *image)
{
	Size		length = flashback_image_compared(image);
	int			steps = 0;
	dlist_iter	iter;

	dlist_foreach(iter, bucket_of(side, image))
	{
		WaitingRow *row = dlist_container(WaitingRow, in_bucket, iter.cur);
		bytea	   *other = (bytea *) row->image;

		if (flashback_image_compared(other) == length &&
			memcmp(VARDATA(other), VARDATA(image), length) == 0)
		{
			forget(side, row);
			return true;
		}
		if (++steps == MAX_STEPS)
			break;
	}
	return false;
}

static void
stop_waiting(MatchSide *side)
{
	WaitingRow *row = dlist_head_element(WaitingRow, by_age, &side->by_age);

	flashback_sort_add_image(side->rows, (bytea *) row->image);
	forget(side, row);
}

static void
wait_for_same(MatchSide *side, const bytea *image, Size most)
{
	Size		size = MAXALIGN(offsetof(WaitingRow, image) + VARSIZE(image));
	WaitingRow *row;

	if (size > most)
	{
		flashback_sort_add_image(side->rows, image);
		return;
	}
	row = MemoryContextAlloc(side->context, size);
	row->size = size;
	memcpy(row->image, image, VARSIZE(image));
	dlist_push_head(bucket_of(side, image), &row->in_bucket);
	dlist_push_tail(&side->by_age, &row->by_age);
	side->bytes += size;
	while (side->bytes > most)
		stop_waiting(side);
}

static void
begin_side(MatchSide *side, FlashbackRowSource *source, FlashbackRowSort *rows)
{
	memset(side, 0, sizeof(*side));
	side->source = source;
	side->rows = rows;
	side->context = AllocSetContextCreate(CurrentMemoryContext, "flashback matching",
										  ALLOCSET_DEFAULT_SIZES);
	side->buckets = MemoryContextAlloc(side->context, BUCKETS * sizeof(dlist_head));
	for (int i = 0; i < BUCKETS; i++)
		dlist_init(&side->buckets[i]);
	dlist_init(&side->by_age);
}

static void
end_side(MatchSide *side)
{
	while (!dlist_is_empty(&side->by_age))
		stop_waiting(side);
	MemoryContextDelete(side->context);
}

/*
 * Reads both to the end; what has no match is in the sorts then.  Returns the
 * number of rows that were the same.
 */
int64
flashback_match_rows(FlashbackRowSource *then, FlashbackRowSort *then_rows,
					 FlashbackRowSource *now, FlashbackRowSort *now_rows)
{
	Size		most = (Size) maintenance_work_mem * 1024 / 8;
	MatchSide	sides[2];
	int			turn = 0;
	int64		same = 0;

	begin_side(&sides[0], then, then_rows);
	begin_side(&sides[1], now, now_rows);
	while (!sides[0].ended || !sides[1].ended)
	{
		MatchSide  *side = &sides[turn];
		TupleTableSlot *slot;
		const bytea *image;

		CHECK_FOR_INTERRUPTS();
		if (side->ended || !side->source->next(side->source, &slot))
		{
			side->ended = true;
			turn = 1 - turn;
			continue;
		}
		if (slot == NULL)
		{
			turn = 1 - turn;
			continue;
		}
		image = flashback_sort_image(side->rows, slot);
		if (take_same(&sides[1 - turn], image))
			same++;
		else
		{
			wait_for_same(side, image, most);
			turn = 1 - turn;
		}
	}
	end_side(&sides[0]);
	end_side(&sides[1]);
	return same;
}
