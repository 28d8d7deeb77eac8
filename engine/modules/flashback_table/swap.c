/*-------------------------------------------------------------------------
 *
 * swap.c
 *	  A table and a result exchange their rows.
 *
 * Each gets a new file with the rows of the other, as ALTER TABLE makes one
 * when it rewrites a table: both stay what they are, with their grants, views,
 * indexes and constraints, and constraints are checked.  No trigger is fired.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/swap.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/multixact.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_publication.h"
#include "commands/cluster.h"
#include "commands/tablecmds.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "flashback_console.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "parser/parse_relation.h"
#include "tcop/utility.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(polar_flashback_swap);

/* One of the two tables, while it is filled from the other */
typedef struct Rewrite
{
	Oid			relid;
	Oid			new_heap;
	char		persistence;
	int64		rows;			/* that it gets */
} Rewrite;

/*
 * Refuses a table whose rows cannot be exchanged as a whole.
 */
static void
check_table(Relation rel)
{
	PublicationDesc published;

	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("cannot swap partitioned table \"%s\"", RelationGetRelationName(rel)),
				 errdetail("Its rows are in partitions, which have files of their own."),
				 errhint("Swap the partitions, or merge the rows.")));
	if (rel->rd_rel->relkind != RELKIND_RELATION)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", RelationGetRelationName(rel))));
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a temporary table", RelationGetRelationName(rel))));

	/* Subscribers would keep the rows of before, and nobody would notice */
	RelationBuildPublicationDesc(rel, &published);
	if (published.pubactions.pubinsert || published.pubactions.pubupdate ||
		published.pubactions.pubdelete || published.pubactions.pubtruncate)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot swap table \"%s\", which is published", RelationGetRelationName(rel)),
				 errdetail("Subscribers would not get the rows."),
				 errhint("Merge the rows, or drop the table from the publication.")));
	CheckTableNotInUse(rel, "swap");
}

/*
 * What the executor needs to check rows of a table.
 */
static EState *
prepare_checks(Relation rel, ResultRelInfo *checked)
{
	EState	   *estate = CreateExecutorState();
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	List	   *perminfos = NIL;

	rte->rtekind = RTE_RELATION;
	rte->relid = RelationGetRelid(rel);
	rte->relkind = rel->rd_rel->relkind;
	rte->rellockmode = AccessShareLock;
	addRTEPermissionInfo(&perminfos, rte);
	ExecInitRangeTable(estate, list_make1(rte), perminfos, bms_make_singleton(1));
	estate->es_output_cid = GetCurrentCommandId(true);
	InitResultRelInfo(checked, rel, 1, NULL, 0);
	return estate;
}

/*
 * Puts a row of another table into the slot; generated columns are computed,
 * and the constraints checked, but for unique ones.
 */
static void
shape_row(ResultRelInfo *checked, EState *estate, const AttrNumber *map,
		  TupleTableSlot *from, TupleTableSlot *to)
{
	Relation	rel = checked->ri_RelationDesc;
	TupleDesc	desc = RelationGetDescr(rel);

	ExecClearTuple(to);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		to->tts_isnull[i] = (att->attisdropped || att->attgenerated != '\0' ||
							 from->tts_isnull[map[i] - 1]);
		to->tts_values[i] = to->tts_isnull[i] ? (Datum) 0 : from->tts_values[map[i] - 1];
	}
	ExecStoreVirtualTuple(to);
	to->tts_tableOid = RelationGetRelid(rel);
	if (desc->constr && desc->constr->has_generated_stored)
		ExecComputeStoredGenerated(checked, estate, to, CMD_INSERT);
	if (desc->constr)
		ExecConstraints(checked, to, estate);
	if (rel->rd_rel->relispartition)
		ExecPartitionCheck(checked, to, estate, true);
}

/*
 * Makes a new heap for a table, with the rows of the other.
 */
static void
rewrite(Relation rel, Relation other, Snapshot snapshot, Rewrite *to)
{
	AttrNumber *map = flashback_map_columns(other, rel, RelationGetNumberOfAttributes(rel), true);
	ResultRelInfo *checked = makeNode(ResultRelInfo);
	FlashbackComputed *computed = flashback_computed_create(other);
	TupleTableSlot *read = MakeSingleTupleTableSlot(RelationGetDescr(other), &TTSOpsVirtual);
	TupleTableSlot *shaped = MakeSingleTupleTableSlot(RelationGetDescr(rel), &TTSOpsVirtual);
	BulkInsertState bulk = GetBulkInsertState();
	FlashbackPresent *present;
	TupleTableSlot *slot;
	TupleTableSlot *written;
	EState	   *estate;
	Relation	heap;

	to->relid = RelationGetRelid(rel);
	to->persistence = rel->rd_rel->relpersistence;
	to->new_heap = make_new_heap(to->relid, rel->rd_rel->reltablespace,
								 rel->rd_rel->relam, to->persistence, AccessExclusiveLock);
	heap = table_open(to->new_heap, NoLock);
	written = table_slot_create(heap, NULL);
	estate = prepare_checks(rel, checked);
	present = flashback_present_begin(other, snapshot, AccessShareLock);
	while (flashback_present_next(present, &slot))
	{
		MemoryContext old_context;

		ResetPerTupleExprContext(estate);
		old_context = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
		if (computed)
		{
			slot = ExecCopySlot(read, slot);
			flashback_compute(computed, slot);
		}
		slot_getallattrs(slot);
		shape_row(checked, estate, map, slot, shaped);
		ExecCopySlot(written, shaped);
		table_tuple_insert(heap, written, estate->es_output_cid, TABLE_INSERT_SKIP_FSM, bulk);
		ExecClearTuple(shaped);
		MemoryContextSwitchTo(old_context);
		to->rows++;
	}
	flashback_present_end(present);
	FreeBulkInsertState(bulk);
	table_finish_bulk_insert(heap, TABLE_INSERT_SKIP_FSM);
	ExecDropSingleTupleTableSlot(written);
	ExecDropSingleTupleTableSlot(shaped);
	ExecDropSingleTupleTableSlot(read);
	flashback_computed_free(computed);
	ExecCloseResultRelations(estate);
	ExecCloseRangeTableRelations(estate);
	FreeExecutorState(estate);
	table_close(heap, NoLock);
	CommandCounterIncrement();
}

/*
 * Gives a table its new heap, builds its indexes and checks unique ones.
 */
static void
finish_rewrite(const Rewrite *rewrite)
{
	finish_heap_swap(rewrite->relid, rewrite->new_heap, false, false, true, true,
					 RecentXmin, ReadNextMultiXactId(), rewrite->persistence);
}

/*
 * polar_flashback_swap(result regclass, relation regclass)
 */
Datum
polar_flashback_swap(PG_FUNCTION_ARGS)
{
	Rewrite		of_rel = {0};
	Rewrite		of_result = {0};
	FlashbackOrigin origin;
	FlashbackOwner scope;
	Relation	result;
	Relation	rel;
	Oid			resultid;
	Snapshot	snapshot;
	TupleDesc	desc;
	Datum		values[2];
	bool		nulls[2] = {0};

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", PG_ARGISNULL(0) ? "result" : "relation")));
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	PreventCommandIfReadOnly("polar_flashback_swap()");
	PreventCommandIfParallelMode("polar_flashback_swap()");
	resultid = PG_GETARG_OID(0);
	flashback_open_pair(resultid, PG_GETARG_OID(1), AccessExclusiveLock, AccessExclusiveLock,
						&result, &rel, &origin);

	flashback_begin_as_owner(rel, &scope);
	check_table(rel);
	check_table(result);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	rewrite(rel, result, snapshot, &of_rel);
	rewrite(result, rel, snapshot, &of_result);
	UnregisterSnapshot(snapshot);
	flashback_comment_result(resultid, rel, RelationGetNumberOfAttributes(rel),
							 GetCurrentTimestamp(), "put here by a swap");
	relation_close(result, NoLock);
	relation_close(rel, NoLock);
	finish_rewrite(&of_rel);
	finish_rewrite(&of_result);
	flashback_check_foreign_keys(of_rel.relid);
	flashback_check_foreign_keys(of_result.relid);
	flashback_end_as_owner(&scope);

	values[0] = Int64GetDatum(of_result.rows);
	values[1] = Int64GetDatum(of_rel.rows);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
