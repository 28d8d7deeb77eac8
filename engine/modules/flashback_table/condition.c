/*-------------------------------------------------------------------------
 *
 * condition.c
 *	  Which of the rows are wanted.
 *
 * A condition is an expression over the columns of the table.  It is parsed
 * and evaluated with the rights and the search_path of the caller, who has
 * written it, and only over rows that the caller may see.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/condition.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "flashback_sql.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_clause.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"
#include "rewrite/rewriteHandler.h"
#include "utils/memutils.h"

struct FlashbackCondition
{
	EState	   *estate;
	ExprContext *econtext;
	ExprState  *qual;
};

/*
 * An error's position is one in the condition, not in the command that
 * contains it.
 */
static void
condition_error_callback(void *arg)
{
	int			position = geterrposition();

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery((const char *) arg);
	}
	errcontext("condition of a flashback");
}

static bool
find_sublink(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
	{
		*(SubLink **) context = (SubLink *) node;
		return true;
	}
	return expression_tree_walker(node, find_sublink, context);
}

/*
 * The expression that is the whole text.  The grammar's entry for expressions
 * of PL/pgSQL accepts the rest of a SELECT as well; that is refused.
 */
static Node *
parse_text(const char *text)
{
	List	   *parsed = raw_parser(text, RAW_PARSE_PLPGSQL_EXPR);
	SelectStmt *select = castNode(SelectStmt, linitial_node(RawStmt, parsed)->stmt);
	SelectStmt *alone = makeNode(SelectStmt);
	ResTarget  *target;

	alone->targetList = select->targetList;
	if (list_length(select->targetList) != 1 || !equal(select, alone))
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("condition is not a single expression")));
	target = linitial_node(ResTarget, select->targetList);
	if (target->name != NULL ||
		(IsA(target->val, ColumnRef) &&
		 IsA(linitial(((ColumnRef *) target->val)->fields), A_Star)))
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("condition is not a single expression")));
	return target->val;
}

/*
 * Analyzes a condition over the relations in the parse state's namespace.
 *
 * Subqueries are refused: a condition is evaluated row by row while pages are
 * rebuilt, as that of COPY FROM is.  Nor are there system columns: those of a
 * row as it was would mislead about the row that is there now.
 */
Node *
flashback_parse_condition(ParseState *pstate, const char *text)
{
	ErrorContextCallback callback;
	const char *sourcetext = pstate->p_sourcetext;
	SubLink    *sublink = NULL;
	Node	   *condition;
	List	   *vars;

	callback.callback = condition_error_callback;
	callback.arg = unconstify(char *, text);
	callback.previous = error_context_stack;
	error_context_stack = &callback;

	pstate->p_sourcetext = text;

	condition = transformWhereClause(pstate, parse_text(text), EXPR_KIND_WHERE,
									 "condition");
	if (find_sublink(condition, &sublink))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot use subquery in the condition of a flashback"),
				 errhint("Use a subquery on the rows that are returned."),
				 parser_errposition(pstate, sublink->location)));
	assign_expr_collations(pstate, condition);

	vars = pull_var_clause(condition, 0);
	foreach_node(Var, var, vars)
	{
		if (var->varattno < 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot use system column in the condition of a flashback"),
					 parser_errposition(pstate, var->location)));
	}
	list_free(vars);

	pstate->p_sourcetext = sourcetext;
	error_context_stack = callback.previous;
	return condition;
}

/*
 * Makes a condition that can be evaluated; NULL is one that always holds.
 */
FlashbackCondition *
flashback_condition_create(Relation rel, const char *text)
{
	FlashbackCondition *condition;
	ParseState *pstate;
	ParseNamespaceItem *nsitem;
	Node	   *expression;
	MemoryContext old_context;

	if (text == NULL)
		return NULL;

	pstate = make_parsestate(NULL);
	nsitem = addRangeTableEntryForRelation(pstate, rel, AccessShareLock, NULL, false, true);
	addNSItemToQuery(pstate, nsitem, false, true, true);
	expression = flashback_parse_condition(pstate, text);
	expression = expand_generated_columns_in_expr(expression, rel, nsitem->p_rtindex);
	free_parsestate(pstate);

	condition = palloc(sizeof(FlashbackCondition));
	condition->estate = CreateExecutorState();
	old_context = MemoryContextSwitchTo(condition->estate->es_query_cxt);
	condition->qual = ExecPrepareQual(make_ands_implicit((Expr *) expression),
									  condition->estate);
	condition->econtext = GetPerTupleExprContext(condition->estate);
	MemoryContextSwitchTo(old_context);
	return condition;
}

/*
 * Whether a row, in the shape of the relation, is wanted.
 */
bool
flashback_condition_holds(FlashbackCondition *condition, TupleTableSlot *slot)
{
	if (condition == NULL)
		return true;
	ResetExprContext(condition->econtext);
	condition->econtext->ecxt_scantuple = slot;
	return ExecQual(condition->qual, condition->econtext);
}

void
flashback_condition_free(FlashbackCondition *condition)
{
	if (condition == NULL)
		return;
	FreeExecutorState(condition->estate);
	pfree(condition);
}
