/*-------------------------------------------------------------------------
 *
 * csv.c
 *	  The rows of a table as CSV, a piece at a time.
 *
 * The text is that of COPY ... TO ... (FORMAT csv, HEADER), of all columns,
 * with dates as in ISO 8601.
 * Called in a target list it returns each piece before it makes the next.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/csv.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "flashback_console.h"
#include "flashback_sql.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(polar_flashback_csv);

/* A piece ends with the row that makes it so long */
#define PIECE_BYTES (64 * 1024)

typedef struct Export
{
	Relation	rel;
	FlashbackShape *shape;		/* for the output functions */
	FlashbackCondition *condition;
	Snapshot	snapshot;
	FlashbackPresent *present;	/* NULL: not begun, or ended */
	TupleTableSlot *computed;
	MemoryContext row_context;
} Export;

/*
 * Appends a value as COPY does.
 */
static void
append_value(StringInfo to, const char *value, bool alone)
{
	if (value[0] != '\0' && strpbrk(value, ",\"\n\r") == NULL &&
		!(alone && strcmp(value, "\\.") == 0))
	{
		appendStringInfoString(to, value);
		return;
	}
	appendStringInfoChar(to, '"');
	for (const char *at = value;; at++)
	{
		const char *quote = strchr(at, '"');

		if (quote == NULL)
		{
			appendStringInfoString(to, at);
			break;
		}
		appendBinaryStringInfo(to, at, quote - at + 1);
		appendStringInfoChar(to, '"');
		at = quote;
	}
	appendStringInfoChar(to, '"');
}

/*
 * Appends a row, or (NULL) the names of the columns.
 */
static void
append_row(Export *export, StringInfo to, TupleTableSlot *slot)
{
	TupleDesc	desc = RelationGetDescr(export->rel);
	bool		alone = (export->shape->ncolumns == 1);
	bool		first = true;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		if (!first)
			appendStringInfoChar(to, ',');
		first = false;
		if (slot == NULL)
			append_value(to, NameStr(att->attname), alone);
		else if (!slot->tts_isnull[i])
			append_value(to, flashback_value_text(export->shape, i + 1, slot->tts_values[i]), alone);
	}
	appendStringInfoChar(to, '\n');
}

/*
 * Called by the executor as well, if it asks for no more before the end.
 */
static void
end_export(Datum arg)
{
	Export	   *export = (Export *) DatumGetPointer(arg);

	if (export->present)
		flashback_present_end(export->present);
	flashback_condition_free(export->condition);
	flashback_computed_free(export->shape->computed);
	ExecDropSingleTupleTableSlot(export->computed);
	UnregisterSnapshot(export->snapshot);
	relation_close(export->rel, NoLock);
}

static Export *
begin_export(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Export	   *export = palloc0(sizeof(Export));
	FlashbackOwner scope;
	char		relkind;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", "relation")));
	export->rel = flashback_open_owned(PG_GETARG_OID(0), AccessShareLock);
	relkind = export->rel->rd_rel->relkind;
	if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE &&
		relkind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", RelationGetRelationName(export->rel))));

	flashback_begin_as_owner(export->rel, &scope);
	export->shape = flashback_shape_create(export->rel, RelationGetNumberOfAttributes(export->rel), false);
	if (!PG_ARGISNULL(1))
		export->condition = flashback_condition_create(export->rel, text_to_cstring(PG_GETARG_TEXT_PP(1)));
	flashback_end_as_owner(&scope);

	export->computed = MakeSingleTupleTableSlot(RelationGetDescr(export->rel), &TTSOpsVirtual);
	export->row_context = AllocSetContextCreate(CurrentMemoryContext, "flashback row",
												ALLOCSET_DEFAULT_SIZES);
	export->snapshot = RegisterSnapshot(GetLatestSnapshot());
	RegisterExprContextCallback(rsinfo->econtext, end_export, PointerGetDatum(export));
	return export;
}

/*
 * Appends rows until a piece is full; false if none is left.
 */
static bool
fill_piece(Export *export, StringInfo piece)
{
	TupleTableSlot *slot;

	while (piece->len < PIECE_BYTES)
	{
		MemoryContext old_context;

		if (!flashback_present_next(export->present, &slot))
			return false;
		MemoryContextReset(export->row_context);
		old_context = MemoryContextSwitchTo(export->row_context);
		if (export->shape->computed)
		{
			slot = ExecCopySlot(export->computed, slot);
			flashback_compute(export->shape->computed, slot);
		}
		slot_getallattrs(slot);
		if (flashback_condition_holds(export->condition, slot))
			append_row(export, piece, slot);
		MemoryContextSwitchTo(old_context);
	}
	return true;
}

/*
 * polar_flashback_csv(relation regclass, condition text)
 */
Datum
polar_flashback_csv(PG_FUNCTION_ARGS)
{
	FuncCallContext *context;
	Export	   *export;
	FlashbackOwner scope;
	StringInfoData piece;
	MemoryContext old_context;
	bool		more;

	if (SRF_IS_FIRSTCALL())
	{
		context = SRF_FIRSTCALL_INIT();
		old_context = MemoryContextSwitchTo(context->multi_call_memory_ctx);
		context->user_fctx = begin_export(fcinfo);
		MemoryContextSwitchTo(old_context);
	}
	context = SRF_PERCALL_SETUP();
	export = context->user_fctx;

	initStringInfo(&piece);
	appendStringInfoSpaces(&piece, VARHDRSZ);
	flashback_begin_as_owner(export->rel, &scope);
	if (export->present == NULL)
	{
		append_row(export, &piece, NULL);
		old_context = MemoryContextSwitchTo(context->multi_call_memory_ctx);
		export->present = flashback_present_begin(export->rel, export->snapshot, AccessShareLock);
		MemoryContextSwitchTo(old_context);
	}
	old_context = MemoryContextSwitchTo(context->multi_call_memory_ctx);
	more = fill_piece(export, &piece);
	MemoryContextSwitchTo(old_context);
	flashback_end_as_owner(&scope);

	if (more || piece.len > VARHDRSZ)
	{
		SET_VARSIZE(piece.data, piece.len);
		SRF_RETURN_NEXT(context, PointerGetDatum(piece.data));
	}
	UnregisterExprContextCallback(((ReturnSetInfo *) fcinfo->resultinfo)->econtext,
								  end_export, PointerGetDatum(export));
	end_export(PointerGetDatum(export));
	SRF_RETURN_DONE(context);
}
