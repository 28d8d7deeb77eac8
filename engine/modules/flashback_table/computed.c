/*-------------------------------------------------------------------------
 *
 * computed.c
 *	  Columns that a table computes when a row is read.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/computed.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_attribute.h"
#include "executor/executor.h"
#include "flashback_console.h"
#include "rewrite/rewriteHandler.h"

struct FlashbackComputed
{
	int			ncolumns;
	AttrNumber *columns;
	ExprState **expressions;
	EState	   *estate;
};

/*
 * Prepares them; NULL if there are none.  Their expressions use nothing that
 * users have made, so whoever reads may run them.
 */
FlashbackComputed *
flashback_computed_create(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);
	FlashbackComputed *computed;
	MemoryContext old_context;

	if (desc->constr == NULL || !desc->constr->has_generated_virtual)
		return NULL;
	computed = palloc(sizeof(FlashbackComputed));
	computed->ncolumns = 0;
	computed->columns = palloc_array(AttrNumber, desc->natts);
	computed->expressions = palloc_array(ExprState *, desc->natts);
	computed->estate = CreateExecutorState();
	old_context = MemoryContextSwitchTo(computed->estate->es_query_cxt);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || att->attgenerated != ATTRIBUTE_GENERATED_VIRTUAL)
			continue;
		computed->columns[computed->ncolumns] = i + 1;
		computed->expressions[computed->ncolumns++] =
			ExecPrepareExpr((Expr *) build_generation_expression(rel, i + 1), computed->estate);
	}
	MemoryContextSwitchTo(old_context);
	return computed;
}

/*
 * Puts them into a slot whose values have been taken apart.  They are valid
 * until the next call.
 */
void
flashback_compute(FlashbackComputed *computed, TupleTableSlot *slot)
{
	ExprContext *econtext;

	if (computed == NULL)
		return;
	econtext = GetPerTupleExprContext(computed->estate);
	ResetExprContext(econtext);
	econtext->ecxt_scantuple = slot;
	for (int i = 0; i < computed->ncolumns; i++)
	{
		int			column = computed->columns[i] - 1;

		/* None depends on another: that is not allowed */
		slot->tts_values[column] =
			ExecEvalExprSwitchContext(computed->expressions[i], econtext, &slot->tts_isnull[column]);
	}
}

void
flashback_computed_free(FlashbackComputed *computed)
{
	if (computed == NULL)
		return;
	FreeExecutorState(computed->estate);
	pfree(computed->columns);
	pfree(computed->expressions);
	pfree(computed);
}
