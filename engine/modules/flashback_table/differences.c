/*-------------------------------------------------------------------------
 *
 * differences.c
 *	  Which rows differ between then and now.
 *
 * Rows that are the same are taken out while both are read (matching.c).  The
 * others are sorted, in maintenance_work_mem and temporary files, and walked
 * side by side: every row is seen once, so counts are exact, and rows without
 * a key are counted as often as they occur.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/differences.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "flashback_console.h"
#include "miscadmin.h"
#include "utils/memutils.h"

static void
sort_begin(FlashbackRowSort *rows, FlashbackShape *shape)
{
	memset(rows, 0, sizeof(*rows));
	rows->shape = shape;
	rows->sort = tuplesort_begin_datum(BYTEAOID, ByteaLessOperator, InvalidOid, false,
									   Max(maintenance_work_mem * 3 / 8, 64), NULL, TUPLESORT_NONE);
	rows->row_context = AllocSetContextCreate(CurrentMemoryContext, "flashback row",
											  ALLOCSET_DEFAULT_SIZES);
}

/*
 * The image of a row in the shape of the relation; valid until the next.
 */
const bytea *
flashback_sort_image(FlashbackRowSort *rows, TupleTableSlot *slot)
{
	MemoryContext old_context;
	const bytea *image;

	MemoryContextReset(rows->row_context);
	old_context = MemoryContextSwitchTo(rows->row_context);
	image = flashback_image_make(rows->shape, slot, &rows->null_key);
	MemoryContextSwitchTo(old_context);
	return image;
}

void
flashback_sort_add_image(FlashbackRowSort *rows, const bytea *image)
{
	tuplesort_putdatum(rows->sort, PointerGetDatum(image), false);
}

static void
sort_end(FlashbackRowSort *rows)
{
	tuplesort_end(rows->sort);
	MemoryContextDelete(rows->row_context);
}

/* One of the two while they are walked */
typedef struct Side
{
	FlashbackRowSort *rows;
	const bytea *image;			/* NULL: no more */
	StringInfoData last_key;
	bool		has_last;
} Side;

/*
 * Goes on to the next row; false if it has the key of the one before.
 */
static bool
next_row(Side *side)
{
	bool		keyed = (side->rows->shape->nkeys > 0);
	Datum		datum;
	bool		isnull;
	const char *key;
	Size		length;

	CHECK_FOR_INTERRUPTS();
	if (keyed && side->image)
	{
		key = flashback_image_key(side->image, &length);
		resetStringInfo(&side->last_key);
		appendBinaryStringInfo(&side->last_key, key, length);
		side->has_last = true;
	}
	if (!tuplesort_getdatum(side->rows->sort, true, false, &datum, &isnull, NULL))
	{
		side->image = NULL;
		return true;
	}
	side->image = (const bytea *) DatumGetPointer(datum);
	if (!keyed || !side->has_last)
		return true;
	key = flashback_image_key(side->image, &length);
	return length != side->last_key.len || memcmp(key, side->last_key.data, length) != 0;
}

/*
 * The order in which rows come: of their bytes up to the end of the key, then
 * of the rest.
 */
static int
compare_rows(const bytea *a, const bytea *b, bool *same_key)
{
	Size		a_length;
	Size		b_length;
	const char *a_at = flashback_image_key(a, &a_length);
	const char *b_at = flashback_image_key(b, &b_length);
	int			order;

	/* Hash and length come first; equal ones have keys of equal length */
	order = memcmp(VARDATA(a), VARDATA(b), a_at - (const char *) VARDATA(a));
	if (order == 0)
		order = memcmp(a_at, b_at, a_length);
	*same_key = (order == 0);
	if (order != 0)
		return order;

	a_at = flashback_image_rest(a, &a_length);
	b_at = flashback_image_rest(b, &b_length);
	order = memcmp(&a_length, &b_length, sizeof(a_length));
	return order != 0 ? order : memcmp(a_at, b_at, a_length);
}

/*
 * Walks what has been sorted.
 */
static bool
walk_differences(FlashbackRowSort *then, FlashbackRowSort *now,
				 FlashbackDifferenceCallback callback, void *arg, int64 *same)
{
	Side		sides[2] = {{.rows = then}, {.rows = now}};
	bool		keyed = (then->shape->nkeys > 0);
	bool		unique = !then->null_key && !now->null_key;

	for (int i = 0; i < lengthof(sides) && unique; i++)
	{
		tuplesort_performsort(sides[i].rows->sort);
		initStringInfo(&sides[i].last_key);
		unique = next_row(&sides[i]);
	}
	while (unique && (sides[0].image || sides[1].image))
	{
		const bytea *a = sides[0].image;
		const bytea *b = sides[1].image;
		bool		same_key = false;
		int			order;

		if (a && b)
			order = compare_rows(a, b, &same_key);
		else
			order = a ? -1 : 1;
		if (keyed && same_key && order != 0)
		{
			callback(arg, FLASHBACK_CHANGED, a, b);
			order = 0;
		}
		else if (order == 0)
			(*same)++;
		else if (order < 0)
			callback(arg, FLASHBACK_REMOVED, a, NULL);
		else
			callback(arg, FLASHBACK_ADDED, NULL, b);
		if (order <= 0)
			unique = next_row(&sides[0]);
		if (order >= 0)
			unique = next_row(&sides[1]) && unique;
	}
	return unique;
}

/*
 * Reads both to the end, and calls back for each row that differs; *same gets
 * the number of those that do not.  It returns false, and what was called back
 * does not count, if a key of rows that differ occurs more often than once on
 * one side, or any key is null: then rows have to be compared as a whole.
 */
bool
flashback_find_differences(FlashbackShape *shape, FlashbackRowSource *then, FlashbackRowSource *now,
						   FlashbackDifferenceCallback callback, void *arg, int64 *same)
{
	FlashbackRowSort then_rows;
	FlashbackRowSort now_rows;
	bool		unique;

	sort_begin(&then_rows, shape);
	sort_begin(&now_rows, shape);
	*same = flashback_match_rows(then, &then_rows, now, &now_rows);
	*same += flashback_source_same(then);
	unique = walk_differences(&then_rows, &now_rows, callback, arg, same);
	sort_end(&then_rows);
	sort_end(&now_rows);
	return unique;
}
