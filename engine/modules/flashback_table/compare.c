/*-------------------------------------------------------------------------
 *
 * compare.c
 *	  The rows of then beside those of now.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/compare.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "flashback_console.h"
#include "flashback_sql.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(polar_flashback_compare);

#define COMPARE_COLUMNS 5

/* Of the values of samples, so many characters are shown */
#define SHOWN_CHARACTERS 200
#define MAX_SAMPLES 10000

typedef struct Comparison
{
	FlashbackShape *shape;
	TupleDesc	desc;			/* of what is returned */
	TupleTableSlot *slot;
	MemoryContext samples_context;
	MemoryContext sample_context;	/* what is made while a sample is */
	int			max_samples;
	int64		counts[FLASHBACK_DIFFERENCES];
	List	   *samples[FLASHBACK_DIFFERENCES]; /* of HeapTuple */
} Comparison;

static const char *const kinds[FLASHBACK_DIFFERENCES] = {
	[FLASHBACK_SAME] = "same",
	[FLASHBACK_ADDED] = "added",
	[FLASHBACK_REMOVED] = "removed",
	[FLASHBACK_CHANGED] = "changed",
};

static Datum
make_texts(const char *const *texts, int n)
{
	Datum	   *values = palloc_array(Datum, Max(n, 1));
	bool	   *nulls = palloc_array(bool, Max(n, 1));
	int			lower = 1;

	for (int i = 0; i < n; i++)
	{
		nulls[i] = (texts[i] == NULL);
		values[i] = nulls[i] ? (Datum) 0 : CStringGetTextDatum(texts[i]);
	}
	if (n == 0)
		return PointerGetDatum(construct_empty_array(TEXTOID));
	return PointerGetDatum(construct_md_array(values, nulls, 1, &n, &lower, TEXTOID, -1, false,
											  TYPALIGN_INT));
}

/*
 * Cuts a text that is too long for a screen.
 */
static char *
shorten(char *text)
{
	const char *end = GetDatabaseEncoding() == PG_UTF8 ? "\xe2\x80\xa6" : "...";
	size_t		length = strlen(text);
	int			shown = pg_mbcharcliplen(text, length, SHOWN_CHARACTERS);

	if (shown == length)
		return text;
	text[		pg_mbcharcliplen(text, length, SHOWN_CHARACTERS - 1)] = '\0';

	return psprintf("%s%s", text, end);
}

/*
 * The values of an image: of the key, or of all columns in the order of the
 * table.
 */
static Datum
show_image(Comparison *comparison, const bytea *image, bool key)
{
	FlashbackShape *shape = comparison->shape;
	TupleDesc	desc = RelationGetDescr(shape->rel);
	TupleTableSlot *slot = comparison->slot;
	const char **texts = palloc_array(const char *, Max(shape->ncolumns, 1));
	int			n = 0;

	flashback_image_read(shape, image, slot);
	for (int i = 0; i < (key ? shape->nkeys : desc->natts); i++)
	{
		AttrNumber	attnum = key ? shape->columns[i] : i + 1;

		if (TupleDescAttr(desc, attnum - 1)->attisdropped)
			continue;
		if (slot->tts_isnull[attnum - 1])
			texts[n++] = NULL;
		else if (key)
			texts[n++] = flashback_value_text(shape, attnum, slot->tts_values[attnum - 1]);
		else
			texts[n++] = shorten(flashback_value_text(shape, attnum, slot->tts_values[attnum - 1]));
	}
	return make_texts(texts, n);
}

/*
 * Counts a row that differs, and shows it if it is one of the first.
 */
static void
note_difference(void *arg, FlashbackDifference kind, const bytea *then, const bytea *now)
{
	Comparison *comparison = arg;
	Datum		values[COMPARE_COLUMNS] = {0};
	bool		nulls[COMPARE_COLUMNS] = {false, true, true, true, true};
	MemoryContext old_context;
	HeapTuple	sample;

	comparison->counts[kind]++;
	if (list_length(comparison->samples[kind]) >= comparison->max_samples)
		return;
	old_context = MemoryContextSwitchTo(comparison->sample_context);
	values[0] = CStringGetTextDatum(kinds[kind]);
	if (comparison->shape->nkeys > 0)
	{
		values[2] = show_image(comparison, then ? then : now, true);
		nulls[2] = false;
	}
	if (then)
	{
		values[3] = show_image(comparison, then, false);
		nulls[3] = false;
	}
	if (now)
	{
		values[4] = show_image(comparison, now, false);
		nulls[4] = false;
	}
	sample = heap_form_tuple(comparison->desc, values, nulls);
	MemoryContextSwitchTo(comparison->samples_context);
	comparison->samples[kind] = lappend(comparison->samples[kind], heap_copytuple(sample));
	MemoryContextSwitchTo(old_context);
	ExecClearTuple(comparison->slot);
	MemoryContextReset(comparison->sample_context);
}

/*
 * Reads both, then and now; false if rows do not have the key that the shape
 * says.
 */
static bool
compare_rows(Comparison *comparison, Relation rel, TimestampTz time, Relation result,
			 const FlashbackOrigin *origin, bool keyed, Snapshot snapshot)
{
	FlashbackRows *rows = NULL;
	FlashbackRowSource then;
	FlashbackRowSource now;
	int			natts;
	bool		unique;

	if (result)
		natts = origin->natts;
	else
	{
		rows = flashback_rows_begin(rel, time, NULL, FLASHBACK_OWNED);
		natts = flashback_rows_former(rows)->natts;
	}
	comparison->shape = flashback_shape_create(rel, natts, keyed);
	memset(comparison->counts, 0, sizeof(comparison->counts));
	memset(comparison->samples, 0, sizeof(comparison->samples));

	if (result && flashback_find_untouched(comparison->shape, result, origin, snapshot,
										   note_difference, comparison,
										   &comparison->counts[FLASHBACK_SAME], &unique))
		return unique;
	memset(comparison->counts, 0, sizeof(comparison->counts));
	memset(comparison->samples, 0, sizeof(comparison->samples));

	if (result)
		flashback_result_source(&then, result, rel, flashback_map_columns(result, rel, natts, false), snapshot);
	else if (!flashback_paired_sources(&then, &now, rows, snapshot))
		flashback_then_source(&then, rows);
	else
		ereport(DEBUG1, (errmsg_internal("rows are compared by pages")));
	if (then.scan == NULL)
		flashback_present_source(&now, rel, snapshot, AccessShareLock);
	unique = flashback_find_differences(comparison->shape, &then, &now, note_difference, comparison,
										&comparison->counts[FLASHBACK_SAME]);
	flashback_source_end(&now);
	flashback_source_end(&then);
	return unique;
}

static void
put_count(ReturnSetInfo *rsinfo, const char *kind, int64 count)
{
	Datum		values[COMPARE_COLUMNS] = {CStringGetTextDatum(kind), Int64GetDatum(count)};
	bool		nulls[COMPARE_COLUMNS] = {false, false, true, true, true};

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

static void
put_columns(ReturnSetInfo *rsinfo, const FlashbackShape *shape)
{
	TupleDesc	desc = RelationGetDescr(shape->rel);
	const char **names = palloc_array(const char *, Max(desc->natts, 1));
	Datum		values[COMPARE_COLUMNS] = {CStringGetTextDatum("columns")};
	bool		nulls[COMPARE_COLUMNS] = {false, true, true, true, false};
	int			n = 0;

	for (int i = 0; i < shape->nkeys; i++)
		names[i] = NameStr(TupleDescAttr(desc, shape->columns[i] - 1)->attname);
	if (shape->nkeys > 0)
	{
		values[2] = make_texts(names, shape->nkeys);
		nulls[2] = false;
	}
	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			names[n++] = NameStr(TupleDescAttr(desc, i)->attname);
	}
	values[4] = make_texts(names, n);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

static void
put_comparison(ReturnSetInfo *rsinfo, const Comparison *comparison)
{
	static const FlashbackDifference order[] = {
		FLASHBACK_REMOVED, FLASHBACK_CHANGED, FLASHBACK_ADDED
	};
	const int64 *counts = comparison->counts;

	put_columns(rsinfo, comparison->shape);
	put_count(rsinfo, "then", counts[FLASHBACK_SAME] + counts[FLASHBACK_REMOVED] + counts[FLASHBACK_CHANGED]);
	put_count(rsinfo, "now", counts[FLASHBACK_SAME] + counts[FLASHBACK_ADDED] + counts[FLASHBACK_CHANGED]);
	put_count(rsinfo, "same", counts[FLASHBACK_SAME]);
	put_count(rsinfo, "added", counts[FLASHBACK_ADDED]);
	put_count(rsinfo, "removed", counts[FLASHBACK_REMOVED]);
	put_count(rsinfo, "changed", counts[FLASHBACK_CHANGED]);
	for (int i = 0; i < lengthof(order); i++)
	{
		foreach_ptr(HeapTupleData, sample, comparison->samples[order[i]])
			tuplestore_puttuple(rsinfo->setResult, sample);
	}
}

/*
 * polar_flashback_compare(relation regclass, target_time timestamptz,
 *						   result regclass, samples int4)
 */
Datum
polar_flashback_compare(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Comparison	comparison = {0};
	FlashbackOrigin origin;
	FlashbackRefusal refusal;
	FlashbackOwner scope;
	Relation	rel;
	Relation	result = NULL;
	Snapshot	snapshot;
	TimestampTz time = 0;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", "relation")));
	if (PG_ARGISNULL(1) == PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("exactly one of \"%s\" and \"%s\" must be given", "target_time", "result")));
	comparison.max_samples = PG_ARGISNULL(3) ? 0 : PG_GETARG_INT32(3);
	if (comparison.max_samples < 0 || comparison.max_samples > MAX_SAMPLES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be between %d and %d", "samples", 0, MAX_SAMPLES)));

	if (!PG_ARGISNULL(2))
		flashback_open_pair(PG_GETARG_OID(2), PG_GETARG_OID(0), AccessShareLock, AccessShareLock,
							&result, &rel, &origin);
	else
	{
		rel = flashback_open_owned(PG_GETARG_OID(0), AccessShareLock);
		time = PG_GETARG_TIMESTAMPTZ(1);
	}
	if (!flashback_kind_is_possible(rel, &refusal))
		flashback_refuse(&refusal);

	InitMaterializedSRF(fcinfo, 0);
	comparison.desc = rsinfo->setDesc;
	comparison.slot = MakeSingleTupleTableSlot(RelationGetDescr(rel), &TTSOpsVirtual);
	comparison.samples_context = CurrentMemoryContext;
	comparison.sample_context = AllocSetContextCreate(CurrentMemoryContext, "flashback sample",
													  ALLOCSET_DEFAULT_SIZES);
	flashback_begin_as_owner(rel, &scope);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	if (!compare_rows(&comparison, rel, time, result, &origin, true, snapshot) &&
		!compare_rows(&comparison, rel, time, result, &origin, false, snapshot))
		elog(ERROR, "rows without a key have one");
	UnregisterSnapshot(snapshot);
	flashback_end_as_owner(&scope);

	put_comparison(rsinfo, &comparison);
	ExecDropSingleTupleTableSlot(comparison.slot);
	if (result)
		relation_close(result, NoLock);
	relation_close(rel, NoLock);
	return (Datum) 0;
}
