/*-------------------------------------------------------------------------
 *
 * privileges.c
 *	  Who may see rows as they were, and which.
 *
 * The owner of a table and superusers see all rows.  Somebody else who was
 * granted polar_flashback_visible_rows() sees those that SELECT * would show
 * if the table held them now: the core's own rewriter adds the policies of
 * the table to a query on it, its planner puts them before the condition
 * unless that is leakproof, and its executor checks the privileges; only then
 * the rows as they were take the place of the table in that query.
 * With polar_flashback_visible_columns() the caller names columns, and only
 * these are selected.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/privileges.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/commit_ts.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "executor/tstoreReceiver.h"
#include "flashback_sql.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_collate.h"
#include "parser/parse_relation.h"
#include "rewrite/rewriteHandler.h"
#include "storage/lwlock.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/queryenvironment.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(polar_flashback_visible_rows);
PG_FUNCTION_INFO_V1(polar_flashback_visible_columns);

#define OLD_ROWS "rows of a flashback"

/*
 * Of a partitioned table, each partition that it had must be the caller's:
 * one that has been detached may belong to somebody else now.
 */
void
flashback_check_owners(List *relids)
{
	foreach_oid(relid, relids)
	{
		if (!object_ownercheck(RelationRelationId, relid, GetUserId()))
			aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relid)),
						   get_rel_name(relid));
	}
}

/*
 * A table that does not exist any more (former is NULL: it did not exist then
 * either) is its former owner's.  If that role is gone nobody has its rights
 * but a superuser.
 */
void
flashback_check_former_owner(Oid relid, const FlashbackFormer *former)
{
	if (former == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u did not exist then either", relid)));
	if (!has_privs_of_role(GetUserId(), former->owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must have been owner of the relation with OID %u", relid)));
}

/*
 * To whom a table that does not exist any more is given: its former owner, or
 * if that role is gone the current user, who then is a superuser.
 */
Oid
flashback_heir(const FlashbackFormer *former)
{
	if (SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(former->owner)))
		return former->owner;
	ereport(NOTICE,
			(errmsg("the owner of table \"%s\" no longer exists", NameStr(former->name)),
			 errdetail("It was the role with OID %u; the table is yours.", former->owner)));
	return GetUserId();
}

/*
 * What somebody else may see cannot be known.
 */
void
flashback_refuse_undecided(Relation rel, const char *reason)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("only the owner may read table \"%s\" as of that time",
					RelationGetRelationName(rel)),
			 errdetail("%s", reason)));
}

/*
 * Whether this version of a catalog row is of a transaction that committed
 * after the time.  In doubt it is.
 */
static bool
changed_since(HeapTuple catalog_row, TimestampTz time)
{
	TransactionId xmin = HeapTupleHeaderGetRawXmin(catalog_row->t_data);
	TransactionId oldest;
	TimestampTz committed;

	if (!TransactionIdIsNormal(xmin))
		return false;

	/* Frozen does not mean older */
	if (TransactionIdGetCommitTsData(xmin, &committed, NULL))
		return committed > time;
	if (HeapTupleHeaderXminFrozen(catalog_row->t_data))
		return false;

	/* Before commit times were kept no time can be gone back to */
	LWLockAcquire(CommitTsLock, LW_SHARED);
	oldest = TransamVariables->oldestCommitTsXid;
	LWLockRelease(CommitTsLock);
	return !TransactionIdIsNormal(oldest) || !TransactionIdPrecedes(xmin, oldest);
}

/*
 * Refuses a table that has lost columns since: the policies on them are gone.
 */
static void
check_dropped_columns(Relation rel, TimestampTz time)
{
	TupleDesc	desc = RelationGetDescr(rel);

	for (int i = 0; i < desc->natts; i++)
	{
		HeapTuple	row;
		bool		changed;

		if (!TupleDescAttr(desc, i)->attisdropped)
			continue;
		row = SearchSysCache2(ATTNUM, ObjectIdGetDatum(RelationGetRelid(rel)),
							  Int16GetDatum(i + 1));
		if (!HeapTupleIsValid(row))
			elog(ERROR, "cache lookup failed for attribute %d of relation %u",
				 i + 1, RelationGetRelid(rel));
		changed = changed_since(row, time);
		ReleaseSysCache(row);
		if (changed)
			flashback_refuse_undecided(rel, "A column has been dropped since.");
	}
}

typedef struct PolicyColumns
{
	int			sublevels_up;
	Bitmapset  *columns;		/* offset as for privileges */
} PolicyColumns;

/*
 * The columns of the table that policies use, also in their subqueries.
 */
static bool
find_columns(Node *node, PolicyColumns *found)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		Var		   *var = (Var *) node;

		if (var->varno == 1 && var->varlevelsup == found->sublevels_up)
			found->columns = bms_add_member(found->columns,
											var->varattno - FirstLowInvalidHeapAttributeNumber);
		return false;
	}
	if (IsA(node, Query))
	{
		bool		result;

		found->sublevels_up++;
		result = query_tree_walker((Query *) node, find_columns, found, 0);
		found->sublevels_up--;
		return result;
	}
	return expression_tree_walker(node, find_columns, found);
}

/*
 * Refuses policies on what rows as they were do not have: a column that has
 * been added since is null in them, which no policy was written for.
 */
static void
check_policies(Relation rel, List *policies, int natts)
{
	PolicyColumns found = {0};
	int			member = -1;

	if (policies == NIL)
		return;
	(void) find_columns((Node *) policies, &found);
	while ((member = bms_next_member(found.columns, member)) >= 0)
	{
		AttrNumber	attnum = member + FirstLowInvalidHeapAttributeNumber;

		if (attnum < 0)
			flashback_refuse_undecided(rel, "A policy uses a system column.");
		if (attnum > natts || (attnum == 0 && natts < RelationGetNumberOfAttributes(rel)))
			flashback_refuse_undecided(rel, "A policy uses a column that has been added since.");
	}
	bms_free(found.columns);
}

/*
 * The columns with these names, as attribute numbers.
 */
static Bitmapset *
find_named_columns(Relation rel, ArrayType *names)
{
	Bitmapset  *columns = NULL;
	Datum	   *values;
	bool	   *nulls;
	int			n;

	deconstruct_array(names, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR, &values, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		const char *name;
		AttrNumber	attnum;

		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("argument \"%s\" must not contain nulls", "columns")));
		name = NameStr(*DatumGetName(values[i]));
		attnum = get_attnum(RelationGetRelid(rel), name);
		if (attnum == InvalidAttrNumber)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of relation \"%s\" does not exist",
							name, RelationGetRelationName(rel))));
		if (attnum < 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot read system column \"%s\" of rows as they were", name)));
		columns = bms_add_member(columns, attnum);
	}
	return columns;
}

/*
 * Leaves only these columns in a target list that has all of them; instead of
 * the others, for which no privilege is needed then, there are nulls.
 */
static void
select_columns(ParseState *pstate, List *target_list, const Bitmapset *columns)
{
	foreach_node(TargetEntry, entry, target_list)
	{
		Var		   *var = castNode(Var, entry->expr);

		if (bms_is_member(var->varattno, columns))
			markVarForSelectPriv(pstate, var);
		else
			entry->expr = (Expr *) makeNullConst(var->vartype, var->vartypmod, var->varcollid);
	}
}

/*
 * SELECT * FROM rel WHERE condition, or of the named columns unless names is
 * NULL, with the policies for the current user, whose privileges have been
 * checked.
 */
static Query *
make_query(Relation rel, ArrayType *names, const char *condition)
{
	ParseState *pstate = make_parsestate(NULL);
	Query	   *query = makeNode(Query);
	ParseNamespaceItem *nsitem;
	Node	   *qual = NULL;
	RangeTblEntry *rte;
	List	   *rewritten;

	nsitem = addRangeTableEntryForRelation(pstate, rel, AccessShareLock, NULL, false, true);
	addNSItemToQuery(pstate, nsitem, true, true, true);
	query->commandType = CMD_SELECT;
	query->canSetTag = true;
	query->targetList = expandNSItemAttrs(pstate, nsitem, 0, names == NULL, -1);
	if (names)
		select_columns(pstate, query->targetList, find_named_columns(rel, names));
	if (condition)
		qual = flashback_parse_condition(pstate, condition);
	query->rtable = pstate->p_rtable;
	query->rteperminfos = pstate->p_rteperminfos;
	query->jointree = makeFromExpr(pstate->p_joinlist, qual);
	assign_query_collations(pstate, query);
	free_parsestate(pstate);

	rewritten = QueryRewrite(query);
	if (list_length(rewritten) != 1)
		elog(ERROR, "unexpected rewrite result for a flashback");
	query = linitial_node(Query, rewritten);
	rte = linitial_node(RangeTblEntry, query->rtable);
	if (list_length(query->rtable) != 1 || rte->rtekind != RTE_RELATION ||
		rte->relid != RelationGetRelid(rel))
		elog(ERROR, "unexpected rewrite result for a flashback");
	ExecCheckPermissions(query->rtable, query->rteperminfos, true);
	return query;
}

/*
 * Puts rows in the place of the relation of a query.
 */
static void
replace_relation(Query *query, TupleDesc desc, double rows)
{
	RangeTblEntry *rte = linitial_node(RangeTblEntry, query->rtable);

	rte->rtekind = RTE_NAMEDTUPLESTORE;
	rte->inh = false;
	rte->perminfoindex = 0;
	query->rteperminfos = NIL;
	rte->enrname = OLD_ROWS;
	rte->enrtuples = rows;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		rte->coltypes = lappend_oid(rte->coltypes, att->attisdropped ? InvalidOid : att->atttypid);
		rte->coltypmods = lappend_int(rte->coltypmods, att->attisdropped ? 0 : att->atttypmod);
		rte->colcollations = lappend_oid(rte->colcollations,
										 att->attisdropped ? InvalidOid : att->attcollation);
	}
}

/*
 * Runs the query, which reads the table as a relation that holds old_rows, and
 * frees these.  columns are those of the rows that are returned.
 */
static Tuplestorestate *
run_query(Query *query, TupleDesc desc, Tuplestorestate *old_rows, TupleDesc *columns)
{
	EphemeralNamedRelation named = palloc0(sizeof(EphemeralNamedRelationData));
	QueryEnvironment *environment = create_queryEnv();
	Tuplestorestate *visible = tuplestore_begin_heap(false, false, work_mem);
	QueryDesc  *execution;

	named->md.name = OLD_ROWS;
	named->md.tupdesc = CreateTupleDescCopy(desc);
	named->md.enrtype = ENR_NAMED_TUPLESTORE;
	named->md.enrtuples = tuplestore_tuple_count(old_rows);
	named->reldata = old_rows;
	register_ENR(environment, named);
	replace_relation(query, desc, named->md.enrtuples);

	execution = CreateQueryDesc(pg_plan_query(query, "", 0, NULL), "",
								GetActiveSnapshot(), InvalidSnapshot,
								CreateDestReceiver(DestTuplestore), NULL, environment, 0);
	SetTuplestoreDestReceiverParams(execution->dest, visible, CurrentMemoryContext,
									false, NULL, NULL);
	ExecutorStart(execution, 0);
	ExecutorRun(execution, ForwardScanDirection, 0);
	ExecutorFinish(execution);
	*columns = CreateTupleDescCopy(execution->tupDesc);
	ExecutorEnd(execution);
	FreeQueryDesc(execution);
	tuplestore_end(old_rows);
	return visible;
}

/*
 * Returns the rows as rows of the table's type, which has its dropped columns
 * too, and frees them.
 */
static void
return_rows(ReturnSetInfo *rsinfo, TupleDesc desc, Tuplestorestate *visible, TupleDesc columns)
{
	TupleTableSlot *read = MakeSingleTupleTableSlot(columns, &TTSOpsMinimalTuple);
	TupleTableSlot *returned = MakeSingleTupleTableSlot(rsinfo->setDesc, &TTSOpsVirtual);

	while (tuplestore_gettupleslot(visible, true, false, read))
	{
		int			column = 0;

		slot_getallattrs(read);
		ExecClearTuple(returned);
		for (int i = 0; i < desc->natts; i++)
		{
			bool		dropped = TupleDescAttr(desc, i)->attisdropped;

			returned->tts_isnull[i] = dropped || read->tts_isnull[column];
			returned->tts_values[i] = returned->tts_isnull[i] ? (Datum) 0 : read->tts_values[column];
			if (!dropped)
				column++;
		}
		ExecStoreVirtualTuple(returned);
		tuplestore_puttupleslot(rsinfo->setResult, returned);
	}
	ExecDropSingleTupleTableSlot(returned);
	ExecDropSingleTupleTableSlot(read);
	tuplestore_end(visible);
}

/*
 * Returns what the caller may see of all columns, or of the named ones.
 */
static Datum
visible_rows(FunctionCallInfo fcinfo, ArrayType *names, const char *condition)
{
	Oid			relid;
	Relation	rel;
	TupleDesc	desc;
	FlashbackRefusal refusal;
	bool		owned;
	Query	   *query;
	FlashbackRows *rows;
	TupleTableSlot *slot;
	Tuplestorestate *old_rows;
	Tuplestorestate *visible;
	TupleDesc	columns;

	/* Whoever calls must hold EXECUTE, which is checked before this is run */
	relid = get_typ_typrelid(get_fn_expr_argtype(fcinfo->flinfo, 0));
	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the first argument must have the row type of a table"),
				 errhint("Write NULL::schema.table.")));
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", "target_time")));

	/* What cannot be selected from is refused before it is locked */
	if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		pg_attribute_aclcheck_all(relid, GetUserId(), ACL_SELECT, ACLMASK_ANY) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(get_rel_relkind(relid)),
					   get_rel_name(relid));
	rel = relation_open(relid, AccessShareLock);
	desc = RelationGetDescr(rel);
	if (!flashback_kind_is_possible(rel, &refusal))
		flashback_refuse(&refusal);
	query = make_query(rel, names, condition);
	owned = object_ownercheck(RelationRelationId, relid, GetUserId());
	if (!owned)
		check_dropped_columns(rel, PG_GETARG_TIMESTAMPTZ(1));
	InitMaterializedSRF(fcinfo, MAT_SRF_BLESS);

	old_rows = tuplestore_begin_heap(false, false, work_mem);
	rows = flashback_rows_begin(rel, PG_GETARG_TIMESTAMPTZ(1), NULL, owned ? FLASHBACK_OWNED : 0);
	check_policies(rel, linitial_node(RangeTblEntry, query->rtable)->securityQuals,
				   flashback_rows_former(rows)->natts);
	while (flashback_rows_next(rows, &slot))
		tuplestore_puttupleslot(old_rows, slot);
	flashback_rows_end(rows);
	flashback_progress_end();

	visible = run_query(query, desc, old_rows, &columns);
	return_rows((ReturnSetInfo *) fcinfo->resultinfo, desc, visible, columns);
	relation_close(rel, NoLock);
	return (Datum) 0;
}

/*
 * polar_flashback_visible_rows(relation anyelement, target_time timestamptz,
 *								condition text)
 */
Datum
polar_flashback_visible_rows(PG_FUNCTION_ARGS)
{
	return visible_rows(fcinfo, NULL,
						PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2)));
}

/*
 * polar_flashback_visible_columns(relation anyelement,
 *								   target_time timestamptz, columns name[],
 *								   condition text)
 */
Datum
polar_flashback_visible_columns(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", "columns")));
	return visible_rows(fcinfo, PG_GETARG_ARRAYTYPE_P(2),
						PG_ARGISNULL(3) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(3)));
}
