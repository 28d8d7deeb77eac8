/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  Puts rows of a result back into the table.
 *
 * Which rows differ is found out under the lock that keeps others from
 * changing them; they are written with one DELETE, one UPDATE and one INSERT,
 * in this order, so that triggers, foreign keys, generated columns and
 * partitions are treated as in any statement of the owner.
 *
 * The statements read the rows from tuplestores, and are executed here and not
 * through SPI, so that it is checked that they have found this very table.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/merge.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type_d.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "executor/tstoreReceiver.h"
#include "flashback_console.h"
#include "flashback_sql.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "parser/parser.h"
#include "storage/lmgr.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/queryenvironment.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(polar_flashback_merge);

/* Of an example, so many bytes are shown */
#define EXAMPLE_BYTES 1000

/* Rows of one kind, with the columns that are written */
typedef struct RowsToWrite
{
	const char *name;
	Tuplestorestate *rows;		/* NULL: this kind is left alone */
	TupleDesc	desc;
	int			ncolumns;
	AttrNumber *columns;
	bool		placed;			/* comes with where the row is now */
	int64		count;
} RowsToWrite;

typedef struct Merge
{
	Relation	rel;
	FlashbackShape *shape;
	TupleTableSlot *slot;
	MemoryContext row_context;
	FlashbackCondition *condition;
	bytea	  **keys;			/* sorted; NULL: all rows */
	int			nkeys;
	RowsToWrite removed;		/* to be inserted */
	RowsToWrite changed;		/* to be restored */
	RowsToWrite added;			/* to be deleted */
	QueryEnvironment *environment;
	bool		conflicts_are_errors;
} Merge;

typedef struct MergeCounts
{
	int64		inserted;
	int64		restored;
	int64		deleted;
	int64		conflicts;
	char	   *example;
} MergeCounts;

static int
compare_keys(const void *a, const void *b)
{
	const bytea *x = *(bytea *const *) a;
	const bytea *y = *(bytea *const *) b;
	Size		length = Min(VARSIZE(x), VARSIZE(y)) - VARHDRSZ;
	int			order = memcmp(VARDATA(x), VARDATA(y), length);

	return order != 0 ? order : (int) VARSIZE(x) - (int) VARSIZE(y);
}

/*
 * Reads the keys that are wanted: an array of arrays of texts.
 */
static void
read_keys(Merge *merge, ArrayType *array)
{
	FlashbackShape *shape = merge->shape;
	Datum	   *values;
	bool	   *nulls;
	int			n;

	deconstruct_array_builtin(array, TEXTOID, &values, &nulls, &n);
	if (n > 0 && (ARR_NDIM(array) != 2 || ARR_DIMS(array)[1] != shape->nkeys))
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("argument \"%s\" must be an array of arrays of %d texts", "keys", shape->nkeys)));
	merge->keys = palloc_array(bytea *, Max(n, 1));
	for (int i = 0; i < n; i += shape->nkeys)
	{
		const char *key;
		Size		length;
		bytea	   *copy;

		flashback_image_start(shape);
		for (int k = 0; k < shape->nkeys; k++)
		{
			AttrNumber	attnum = shape->columns[k];
			Form_pg_attribute att = TupleDescAttr(RelationGetDescr(merge->rel), attnum - 1);
			Oid			function;
			Oid			ioparam;

			if (nulls[i + k])
				ereport(ERROR,
						(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						 errmsg("argument \"%s\" must not contain nulls", "keys")));
			getTypeInputInfo(att->atttypid, &function, &ioparam);
			flashback_image_append(shape, attnum,
								   OidInputFunctionCall(function, TextDatumGetCString(values[i + k]),
														ioparam, att->atttypmod), false);
		}
		key = flashback_image_key((bytea *) shape->buffer.data, &length);
		length = shape->buffer.len - (key - shape->buffer.data);
		copy = palloc(length + VARHDRSZ);
		SET_VARSIZE(copy, length + VARHDRSZ);
		memcpy(VARDATA(copy), key, length);
		merge->keys[merge->nkeys++] = copy;
	}
	qsort(merge->keys, merge->nkeys, sizeof(bytea *), compare_keys);
}

static bool
key_is_wanted(Merge *merge, const bytea *image)
{
	const char *key;
	Size		length;
	bytea	   *wanted;

	if (merge->keys == NULL)
		return true;
	key = flashback_image_key(image, &length);
	wanted = palloc(length + VARHDRSZ);
	SET_VARSIZE(wanted, length + VARHDRSZ);
	memcpy(VARDATA(wanted), key, length);
	return bsearch(&wanted, merge->keys, merge->nkeys, sizeof(bytea *), compare_keys) != NULL;
}

/*
 * A column that UPDATE cannot set must not differ.
 */
static void
check_unchangeable(Merge *merge, const bytea *then, const bytea *now)
{
	TupleDesc	desc = RelationGetDescr(merge->rel);
	TupleTableSlot *slots[2];

	for (int i = 0; i < 2; i++)
	{
		slots[i] = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
		flashback_image_read(merge->shape, i == 0 ? then : now, slots[i]);
	}
	for (int i = merge->shape->nkeys; i < merge->shape->ncompared; i++)
	{
		int			column = merge->shape->columns[i] - 1;

		/* An identity column is an integer, so a value of its own */
		if (TupleDescAttr(desc, column)->attidentity == ATTRIBUTE_IDENTITY_ALWAYS &&
			(slots[0]->tts_isnull[column] != slots[1]->tts_isnull[column] ||
			 slots[0]->tts_values[column] != slots[1]->tts_values[column]))
			ereport(ERROR,
					(errcode(ERRCODE_GENERATED_ALWAYS),
					 errmsg("identity column \"%s\" has changed and cannot be restored",
							NameStr(TupleDescAttr(desc, column)->attname)),
					 errhint("Restore rows by their keys, or delete them first and insert those that are missing.")));
	}
	for (int i = 0; i < 2; i++)
		ExecDropSingleTupleTableSlot(slots[i]);
}

/*
 * Notes a difference that is to be undone.
 */
static void
note_difference(void *arg, FlashbackDifference kind, const bytea *then, const bytea *now)
{
	Merge	   *merge = arg;
	RowsToWrite *to;
	MemoryContext old_context;
	FlashbackPlace place;
	Datum	   *values;
	bool	   *nulls;
	int			n = 0;

	to = kind == FLASHBACK_REMOVED ? &merge->removed :
		kind == FLASHBACK_CHANGED ? &merge->changed : &merge->added;
	if (to->rows == NULL)
		return;

	ExecClearTuple(merge->slot);
	MemoryContextReset(merge->row_context);
	old_context = MemoryContextSwitchTo(merge->row_context);
	if (!key_is_wanted(merge, then ? then : now))
	{
		MemoryContextSwitchTo(old_context);
		return;
	}
	flashback_image_read(merge->shape, then ? then : now, merge->slot);
	if (!flashback_condition_holds(merge->condition, merge->slot))
	{
		MemoryContextSwitchTo(old_context);
		return;
	}
	if (kind == FLASHBACK_CHANGED)
		check_unchangeable(merge, then, now);

	values = palloc_array(Datum, to->desc->natts);
	nulls = palloc0_array(bool, to->desc->natts);
	if (to->placed)
	{
		flashback_image_place(now, &place);
		values[n++] = ObjectIdGetDatum(place.relid);
		values[n++] = ItemPointerGetDatum(&place.tid);
	}
	for (int i = 0; i < to->ncolumns; i++)
	{
		values[n] = merge->slot->tts_values[to->columns[i] - 1];
		nulls[n++] = merge->slot->tts_isnull[to->columns[i] - 1];
	}
	MemoryContextSwitchTo(old_context);
	tuplestore_putvalues(to->rows, to->desc, values, nulls);
	to->count++;
}

/*
 * Makes place for rows of one kind, with the compared columns from the given
 * one on.
 */
static void
prepare_rows(Merge *merge, RowsToWrite *to, const char *name, bool placed, int first, bool wanted)
{
	FlashbackShape *shape = merge->shape;
	TupleDesc	desc = RelationGetDescr(merge->rel);
	int			n = 0;

	to->name = name;
	to->placed = placed;
	to->columns = palloc_array(AttrNumber, Max(shape->ncompared, 1));
	for (int i = first; i < shape->ncompared; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, shape->columns[i] - 1);

		/* UPDATE cannot set an identity */
		if (!placed || att->attidentity != ATTRIBUTE_IDENTITY_ALWAYS)
			to->columns[to->ncolumns++] = shape->columns[i];
	}
	to->desc = CreateTemplateTupleDesc(to->ncolumns + (placed ? 2 : 0));
	if (placed)
	{
		TupleDescInitEntry(to->desc, ++n, "place_table", OIDOID, -1, 0);
		TupleDescInitEntry(to->desc, ++n, "place_row", TIDOID, -1, 0);
	}
	for (int i = 0; i < to->ncolumns; i++)
	{
		TupleDescCopyEntry(to->desc, ++n, desc, to->columns[i]);
		snprintf(NameStr(TupleDescAttr(to->desc, n - 1)->attname), NAMEDATALEN, "v%d", to->columns[i]);
	}
	if (wanted)
		to->rows = tuplestore_begin_heap(false, false, work_mem);
}

/*
 * Many rows are in a file, which has to be closed.
 */
static void
end_rows(RowsToWrite *rows)
{
	if (rows->rows)
		tuplestore_end(rows->rows);
}

static void
register_rows(Merge *merge, RowsToWrite *rows)
{
	EphemeralNamedRelation named = palloc0(sizeof(EphemeralNamedRelationData));

	named->md.name = pstrdup(rows->name);
	named->md.tupdesc = rows->desc;
	named->md.enrtype = ENR_NAMED_TUPLESTORE;
	named->md.enrtuples = rows->count;
	named->reldata = rows->rows;
	register_ENR(merge->environment, named);
}

/*
 * Executes a statement over the table; returns how many rows it has processed.
 */
static uint64
execute(Merge *merge, const char *sql, Tuplestorestate *returned)
{
	RawStmt    *raw = linitial_node(RawStmt, raw_parser(sql, RAW_PARSE_DEFAULT));
	List	   *queries = pg_analyze_and_rewrite_fixedparams(raw, sql, NULL, 0, merge->environment);
	Query	   *query = linitial_node(Query, queries);
	DestReceiver *dest = None_Receiver;
	QueryDesc  *execution;
	bool		found = false;
	uint64		processed;

	foreach_node(RangeTblEntry, rte, query->rtable)
	{
		if (rte->rtekind == RTE_RELATION && rte->relid == RelationGetRelid(merge->rel))
			found = true;
		else if (rte->rtekind == RTE_RELATION)
			elog(ERROR, "a statement of a merge names relation %u", rte->relid);
	}
	if (list_length(queries) != 1 || !found)
		elog(ERROR, "unexpected rewrite result for a merge");

	if (returned)
	{
		dest = CreateDestReceiver(DestTuplestore);
		SetTuplestoreDestReceiverParams(dest, returned, CurrentMemoryContext, false, NULL, NULL);
	}
	PushActiveSnapshot(GetLatestSnapshot());
	execution = CreateQueryDesc(pg_plan_query(query, sql, 0, NULL), sql, GetActiveSnapshot(),
								InvalidSnapshot, dest, NULL, merge->environment, 0);
	ExecutorStart(execution, 0);
	ExecutorRun(execution, ForwardScanDirection, 0);
	processed = execution->estate->es_processed;
	ExecutorFinish(execution);
	ExecutorEnd(execution);
	FreeQueryDesc(execution);
	PopActiveSnapshot();
	CommandCounterIncrement();
	return processed;
}

static char *
qualified_name(Merge *merge)
{
	return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(merge->rel)),
									  RelationGetRelationName(merge->rel));
}

/*
 * The table as statements name it; with children of its own it is meant alone.
 */
static char *
table_name(Merge *merge)
{
	bool		partitioned = (merge->rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE);

	return psprintf("%s%s", partitioned ? "" : "ONLY ", qualified_name(merge));
}

static const char *
column_name(Merge *merge, AttrNumber attnum)
{
	return quote_identifier(NameStr(TupleDescAttr(RelationGetDescr(merge->rel), attnum - 1)->attname));
}

#define WHERE_PLACED \
	" WHERE t.ctid OPERATOR(pg_catalog.=) w.place_row" \
	" AND t.tableoid OPERATOR(pg_catalog.=) w.place_table"

static int64
delete_added(Merge *merge)
{
	if (merge->added.count == 0)
		return 0;
	return execute(merge, psprintf("DELETE FROM %s AS t USING %s AS w" WHERE_PLACED,
								   table_name(merge), merge->added.name), NULL);
}

static int64
restore_changed(Merge *merge)
{
	RowsToWrite *rows = &merge->changed;
	StringInfoData sql;

	if (rows->count == 0)
		return 0;
	initStringInfo(&sql);
	appendStringInfo(&sql, "UPDATE %s AS t SET ", table_name(merge));
	for (int i = 0; i < rows->ncolumns; i++)
		appendStringInfo(&sql, "%s%s = w.v%d", i > 0 ? ", " : "",
						 column_name(merge, rows->columns[i]), rows->columns[i]);
	appendStringInfo(&sql, " FROM %s AS w" WHERE_PLACED, rows->name);
	return execute(merge, sql.data, NULL);
}

static int64
insert_rows(Merge *merge, const char *from, bool conflicts_are_errors)
{
	RowsToWrite *rows = &merge->removed;
	StringInfoData names;
	StringInfoData values;

	initStringInfo(&names);
	initStringInfo(&values);
	for (int i = 0; i < rows->ncolumns; i++)
	{
		AttrNumber	attnum = rows->columns[i];
		const char *separator = names.len > 0 ? ", " : "";

		/* One of the key's may be generated */
		if (TupleDescAttr(RelationGetDescr(merge->rel), attnum - 1)->attgenerated != '\0')
			continue;
		appendStringInfo(&names, "%s%s", separator, column_name(merge, attnum));
		appendStringInfo(&values, "%sw.v%d", separator, attnum);
	}
	return execute(merge, psprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM %s AS w%s",
								   qualified_name(merge), names.data, values.data, from,
								   conflicts_are_errors ? "" : " ON CONFLICT DO NOTHING"), NULL);
}

/*
 * Finds one of the rows that were not inserted: the table has none like it.
 */
static Tuplestorestate *
find_conflict(Merge *merge)
{
	FlashbackShape *shape = merge->shape;
	Tuplestorestate *found = tuplestore_begin_heap(false, false, work_mem);
	int			ncolumns = shape->nkeys > 0 ? shape->nkeys : shape->ncompared;
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT w.* FROM %s AS w LEFT JOIN %s AS t ON ROW(",
					 merge->removed.name, table_name(merge));
	for (int i = 0; i < ncolumns; i++)
		appendStringInfo(&sql, "%st.%s", i > 0 ? ", " : "", column_name(merge, shape->columns[i]));

	/*
	 * With the casts it is one operator on two records, of any number of
	 * columns
	 */
	appendStringInfoString(&sql, ")::record OPERATOR(pg_catalog.*=) ROW(");
	for (int i = 0; i < ncolumns; i++)
		appendStringInfo(&sql, "%sw.v%d", i > 0 ? ", " : "", shape->columns[i]);
	appendStringInfoString(&sql, ")::record WHERE t.ctid IS NULL LIMIT 1");
	(void) execute(merge, sql.data, found);
	return found;
}

/* A row that cannot be inserted: what forbids it is an answer */
typedef struct Conflict
{
	Merge	   *merge;
	const char *name;			/* of what has the row */
} Conflict;

static const int errors_of_row[] = {
	FLASHBACK_CLASS(ERRCODE_DATA_EXCEPTION),
	FLASHBACK_CLASS(ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION),
	FLASHBACK_CLASS(ERRCODE_PLPGSQL_ERROR),
	0
};

static void
insert_conflict(void *arg)
{
	Conflict   *conflict = arg;

	(void) insert_rows(conflict->merge, conflict->name, true);
}

/*
 * Why a row cannot be inserted: what the core says when it is tried.
 */
static char *
find_reason(Merge *merge, const char *from)
{
	Conflict	conflict = {.merge = merge,.name = from};
	ErrorData  *error = flashback_attempt(insert_conflict, &conflict, true, errors_of_row);

	if (error == NULL)
		return pstrdup("a trigger did not insert it");
	return psprintf("%s%s%s", error->message, error->detail ? ": " : "",
					error->detail ? error->detail : "");
}

/*
 * An example for whoever wonders why rows were not inserted.
 */
static char *
describe_conflict(Merge *merge)
{
	FlashbackShape *shape = merge->shape;
	int			ncolumns = shape->nkeys > 0 ? shape->nkeys : shape->ncompared;
	RowsToWrite conflict = merge->removed;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(conflict.desc, &TTSOpsMinimalTuple);
	StringInfoData text;

	conflict.name = "flashback_conflict";
	conflict.count = 1;
	conflict.rows = find_conflict(merge);
	if (!tuplestore_gettupleslot(conflict.rows, true, true, slot))
		return NULL;
	initStringInfo(&text);
	for (int i = 0; i < ncolumns; i++)
	{
		AttrNumber	attnum = shape->columns[i];
		bool		isnull;
		Datum		value = slot_getattr(slot, i + 1, &isnull);

		appendStringInfo(&text, "%s%s = %s", i > 0 ? ", " : "", column_name(merge, attnum),
						 isnull ? "NULL" : flashback_value_text(shape, attnum, value));
	}
	ExecDropSingleTupleTableSlot(slot);
	register_rows(merge, &conflict);
	appendStringInfo(&text, ": %s", find_reason(merge, conflict.name));
	if (text.len > EXAMPLE_BYTES)
		text.		data[pg_mbcliplen(text.data, text.len, EXAMPLE_BYTES)] = '\0';
	return text.data;
}

/*
 * Writes the rows.
 */
static void
write_rows(Merge *merge, MergeCounts *counts)
{
	ConstraintsSetStmt *immediate = makeNode(ConstraintsSetStmt);

	/* Nothing of the owner's is left for the end of the transaction */
	AfterTriggerSetState(immediate);
	counts->deleted = delete_added(merge);
	counts->restored = restore_changed(merge);
	if (merge->removed.count > 0)
		counts->inserted = insert_rows(merge, merge->removed.name, merge->conflicts_are_errors);
	AfterTriggerSetState(immediate);

	counts->conflicts = merge->removed.count + merge->changed.count + merge->added.count -
		counts->inserted - counts->restored - counts->deleted;
	if (merge->removed.count > counts->inserted)
		counts->example = describe_conflict(merge);
}

/* A dry run */
typedef struct DryRun
{
	Merge	   *merge;
	MergeCounts *counts;
} DryRun;

static void
write_dry_run(void *arg)
{
	DryRun	   *run = arg;

	write_rows(run->merge, run->counts);
}

/*
 * Writes the rows, and takes that back.
 */
static void
try_to_write_rows(Merge *merge, MergeCounts *counts)
{
	DryRun		run = {.merge = merge,.counts = counts};
	static const int none[] = {0};

	(void) flashback_attempt(write_dry_run, &run, true, none);
}

/*
 * Refuses a table into which rows cannot be put as they were.
 */
static void
check_table(Merge *merge)
{
	Relation	rel = merge->rel;

	if (rel->rd_rel->relkind != RELKIND_RELATION && rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", RelationGetRelationName(rel))));
	if (rel->rd_rules != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot merge rows into table \"%s\", which has rules",
						RelationGetRelationName(rel))));
	if (check_enable_rls(RelationGetRelid(rel), InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot merge rows into table \"%s\", whose policies are forced on its owner",
						RelationGetRelationName(rel)),
				 errhint("Use ALTER TABLE ... NO FORCE ROW LEVEL SECURITY meanwhile.")));

	/* ON CONFLICT cannot be used then */
	foreach_oid(indexid, RelationGetIndexList(rel))
	{
		Relation	index = index_open(indexid, AccessShareLock);

		if (!index->rd_index->indimmediate)
			merge->conflicts_are_errors = true;
		index_close(index, AccessShareLock);
	}
}

/*
 * Finds the rows to write; false if they do not have the key that the table
 * has now.
 */
static bool
find_rows(Merge *merge, Relation result, const FlashbackOrigin *origin)
{
	RowsToWrite *kinds[] = {&merge->removed, &merge->changed, &merge->added};
	AttrNumber *map = flashback_map_columns(result, merge->rel, origin->natts, false);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	FlashbackRowSource then;
	FlashbackRowSource now;
	int64		same;
	bool		unique;

	if (flashback_find_untouched(merge->shape, result, origin, snapshot, note_difference, merge, &same, &unique))
	{
		UnregisterSnapshot(snapshot);
		return unique;
	}
	for (int i = 0; i < lengthof(kinds); i++)
	{
		if (kinds[i]->rows)
			tuplestore_clear(kinds[i]->rows);
		kinds[i]->count = 0;
	}
	flashback_result_source(&then, result, merge->rel, map, snapshot);
	flashback_present_source(&now, merge->rel, snapshot, ShareRowExclusiveLock);
	unique = flashback_find_differences(merge->shape, &then, &now, note_difference, merge, &same);
	flashback_source_end(&now);
	flashback_source_end(&then);
	UnregisterSnapshot(snapshot);
	return unique;
}

/*
 * What the arguments ask for.
 */
static void
prepare_merge(Merge *merge, FunctionCallInfo fcinfo, const FlashbackOrigin *origin)
{
	bool		insert = PG_GETARG_BOOL(2);
	bool		restore = PG_GETARG_BOOL(3);
	bool		delete = PG_GETARG_BOOL(4);

	check_table(merge);
	merge->shape = flashback_shape_create(merge->rel, origin->natts, true);
	if (merge->shape->nkeys == 0 && (restore || delete || !PG_ARGISNULL(5)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
				 errmsg("table \"%s\" has no key by which rows can be found",
						RelationGetRelationName(merge->rel)),
				 errdetail("It needs a primary key, or a unique index on columns that are not null, as old as the rows."),
				 errhint("Without one, rows that are missing can be inserted, but not chosen by key.")));
	merge->environment = create_queryEnv();
	merge->slot = MakeSingleTupleTableSlot(RelationGetDescr(merge->rel), &TTSOpsVirtual);
	merge->row_context = AllocSetContextCreate(CurrentMemoryContext, "flashback row",
											   ALLOCSET_DEFAULT_SIZES);
	if (!PG_ARGISNULL(5))
		read_keys(merge, PG_GETARG_ARRAYTYPE_P(5));
	if (!PG_ARGISNULL(6))
		merge->condition = flashback_condition_create(merge->rel, text_to_cstring(PG_GETARG_TEXT_PP(6)));
	prepare_rows(merge, &merge->removed, "flashback_removed", false, 0, insert);
	prepare_rows(merge, &merge->changed, "flashback_changed", true, merge->shape->nkeys, restore);
	prepare_rows(merge, &merge->added, "flashback_added", true, merge->shape->ncompared, delete);
	if (merge->removed.ncolumns == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" has no columns that can be merged",
						RelationGetRelationName(merge->rel))));
}

static void
check_expected(FunctionCallInfo fcinfo, const MergeCounts *counts)
{
	const struct
	{
		const char *what;
		int64		is;
	}			found[] = {
		{"inserted", counts->inserted}, {"restored", counts->restored}, {"deleted", counts->deleted}
	};

	for (int i = 0; i < lengthof(found); i++)
	{
		if (!PG_ARGISNULL(7 + i) && PG_GETARG_INT64(7 + i) != found[i].is)
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("the rows to merge are not those that were expected"),
					 errdetail(INT64_FORMAT " rows would be %s, not " INT64_FORMAT ".",
							   found[i].is, found[i].what, PG_GETARG_INT64(7 + i)),
					 errhint("Compare again.")));
	}
}

static void
check_arguments(FunctionCallInfo fcinfo)
{
	static const char *const names[] = {
		"result", "relation", "insert_missing", "restore_changed", "delete_added"
	};

	for (int i = 0; i < lengthof(names); i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("argument \"%s\" must not be null", names[i])));
	}
	PreventCommandIfReadOnly("polar_flashback_merge()");
	PreventCommandIfParallelMode("polar_flashback_merge()");

	/* A snapshot of before the lock would not show what to write */
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("rows can only be merged in a transaction with isolation level READ COMMITTED")));
}

/*
 * polar_flashback_merge(result regclass, relation regclass, insert_missing,
 *						 restore_changed, delete_added bool, keys text[],
 *						 condition text, expected_inserted, expected_restored,
 *						 expected_deleted int8, dry_run bool)
 */
Datum
polar_flashback_merge(PG_FUNCTION_ARGS)
{
	Merge		merge = {0};
	MergeCounts counts = {0};
	FlashbackOrigin origin;
	FlashbackOwner scope;
	Relation	result;
	TupleDesc	desc;
	Datum		values[5];
	bool		nulls[5] = {0};

	check_arguments(fcinfo);
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	flashback_open_pair(PG_GETARG_OID(0), PG_GETARG_OID(1), AccessShareLock, ShareRowExclusiveLock,
						&result, &merge.rel, &origin);

	flashback_begin_as_owner(merge.rel, &scope);
	prepare_merge(&merge, fcinfo, &origin);
	if (!find_rows(&merge, result, &origin))
		ereport(ERROR,
				(errcode(ERRCODE_CARDINALITY_VIOLATION),
				 errmsg("rows of table \"%s\" cannot be told apart by the key of \"%s\"",
						RelationGetRelationName(result), RelationGetRelationName(merge.rel)),
				 errdetail("A key is null, or occurs more than once.")));
	ExecDropSingleTupleTableSlot(merge.slot);
	register_rows(&merge, &merge.removed);
	register_rows(&merge, &merge.changed);
	register_rows(&merge, &merge.added);
	if (!PG_ARGISNULL(10) && PG_GETARG_BOOL(10))
		try_to_write_rows(&merge, &counts);
	else
		write_rows(&merge, &counts);
	end_rows(&merge.removed);
	end_rows(&merge.changed);
	end_rows(&merge.added);
	flashback_end_as_owner(&scope);
	check_expected(fcinfo, &counts);

	relation_close(result, NoLock);
	relation_close(merge.rel, NoLock);
	values[0] = Int64GetDatum(counts.inserted);
	values[1] = Int64GetDatum(counts.restored);
	values[2] = Int64GetDatum(counts.deleted);
	values[3] = Int64GetDatum(counts.conflicts);
	nulls[4] = (counts.example == NULL);
	if (counts.example)
		values[4] = CStringGetTextDatum(counts.example);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
