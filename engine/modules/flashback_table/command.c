/*-------------------------------------------------------------------------
 *
 * command.c
 *	  FLASHBACK TABLE.
 *
 * The core has made the expression of the command the query that returns it;
 * it is run once, with the rights of the caller, before the table is opened.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/command.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/tablecmds.h"
#include "executor/executor.h"
#include "executor/tstoreReceiver.h"
#include "flashback_sql.h"
#include "miscadmin.h"
#include "rewrite/rewriteHandler.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

/*
 * The one value that the query returns.
 */
static TimestampTz
evaluate_time(ParseState *pstate, Query *query, ParamListInfo params)
{
	List	   *rewritten = QueryRewrite(query);
	Tuplestorestate *store = tuplestore_begin_heap(false, false, work_mem);
	QueryDesc  *execution;
	TupleTableSlot *slot;
	TimestampTz time = 0;
	bool		isnull = true;

	if (list_length(rewritten) != 1)
		elog(ERROR, "unexpected rewrite result for FLASHBACK TABLE");
	query = linitial_node(Query, rewritten);

	PushCopiedSnapshot(GetActiveSnapshot());
	UpdateActiveSnapshotCommandId();
	execution = CreateQueryDesc(pg_plan_query(query, pstate->p_sourcetext, 0, params),
								pstate->p_sourcetext, GetActiveSnapshot(), InvalidSnapshot,
								CreateDestReceiver(DestTuplestore), params, pstate->p_queryEnv, 0);
	SetTuplestoreDestReceiverParams(execution->dest, store, CurrentMemoryContext, false, NULL, NULL);
	ExecutorStart(execution, 0);
	ExecutorRun(execution, ForwardScanDirection, 2);
	ExecutorFinish(execution);
	slot = MakeSingleTupleTableSlot(CreateTupleDescCopy(execution->tupDesc), &TTSOpsMinimalTuple);
	ExecutorEnd(execution);
	FreeQueryDesc(execution);
	PopActiveSnapshot();

	if (tuplestore_tuple_count(store) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_CARDINALITY_VIOLATION),
				 errmsg("the time of a flashback must be a single value")));
	if (tuplestore_gettupleslot(store, true, false, slot))
		time = DatumGetTimestampTz(slot_getattr(slot, 1, &isnull));
	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the time of a flashback must not be null")));
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_end(store);
	return time;
}

/*
 * Executes FLASHBACK TABLE; returns the table that was made.
 */
ObjectAddress
flashback_execute_command(ParseState *pstate, FlashbackTableStmt *stmt, ParamListInfo params)
{
	ObjectAddress address;
	FlashbackResult result;
	FlashbackRefusal refusal;
	TimestampTz time;
	Relation	rel;

	if (stmt->query == NULL)
	{
		ObjectAddressSet(address, RelationRelationId,
						 flashback_give_back(stmt->relation, stmt->newname));
		return address;
	}

	time = evaluate_time(pstate, castNode(Query, stmt->query), params);
	rel = relation_open(RangeVarGetRelidExtended(stmt->relation, AccessShareLock, 0,
												 RangeVarCallbackOwnsRelation, NULL), NoLock);
	if (!flashback_kind_is_possible(rel, &refusal))
		flashback_refuse(&refusal);
	flashback_make_result(rel, time, NULL, NULL, false, NULL, FLASHBACK_WORKERS_DEFAULT, &result);

	ereport(NOTICE,
			(errmsg("table \"%s\" as of %s is now in table \"%s\"",
					RelationGetRelationName(rel), timestamptz_to_str(time),
					get_rel_name(result.relid)),
			 errhint("Check the rows before you copy them back.")));
	ObjectAddressSet(address, RelationRelationId, result.relid);

	/* The lock is kept until the end of the transaction, as for any command */
	relation_close(rel, NoLock);
	return address;
}
