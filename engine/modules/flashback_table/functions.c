/*-------------------------------------------------------------------------
 *
 * functions.c
 *	  The SQL functions.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/functions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/toasting.h"
#include "commands/comment.h"
#include "commands/tablecmds.h"
#include "executor/executor.h"
#include "flashback_internal.h"
#include "utils/memutils.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(polar_flashback_rows);
PG_FUNCTION_INFO_V1(polar_flashback_count);
PG_FUNCTION_INFO_V1(polar_flashback_table);
PG_FUNCTION_INFO_V1(polar_flashback_check);

/* Rows are inserted in groups of so many, or so many bytes */
#define GROUP_ROWS 500
#define GROUP_BYTES 65536

/*
 * Whether it is a relation of a kind that can be gone back with.
 */
static bool
kind_is_possible(Relation rel, FlashbackRefusal *refusal)
{
	const char *name = RelationGetRelationName(rel);
	char		relkind = rel->rd_rel->relkind;

	memset(refusal, 0, sizeof(*refusal));
	refusal->sqlerrcode = ERRCODE_WRONG_OBJECT_TYPE;
	refusal->nearest_time = DT_NOEND;
	if (relkind == RELKIND_PARTITIONED_TABLE)
	{
		snprintf(refusal->reason, sizeof(refusal->reason), "\"%s\" is a partitioned table", name);
		snprintf(refusal->hint, sizeof(refusal->hint), "Name one of its partitions.");
	}
	else if (relkind != RELKIND_RELATION && relkind != RELKIND_MATVIEW)
		snprintf(refusal->reason, sizeof(refusal->reason), "\"%s\" is not a table", name);
	else if (IsCatalogRelation(rel))
		snprintf(refusal->reason, sizeof(refusal->reason), "\"%s\" is a system catalog", name);
	else if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		snprintf(refusal->reason, sizeof(refusal->reason), "\"%s\" is a temporary table", name);
	else if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		snprintf(refusal->reason, sizeof(refusal->reason), "\"%s\" is an unlogged table", name);
	else if (rel->rd_rel->relam != HEAP_TABLE_AM_OID)
		snprintf(refusal->reason, sizeof(refusal->reason), "\"%s\" is not a heap", name);
	if (refusal->reason[0] == '\0')
		return true;
	snprintf(refusal->detail, sizeof(refusal->detail),
			 "Only permanent heap tables can be read as of a moment.");
	return false;
}

/*
 * Opens a relation that the user may see the past of: deleted rows reappear,
 * so it must be the owner.
 */
static Relation
open_owned(Oid relid)
{
	Relation	rel = relation_open(relid, AccessShareLock);

	if (!object_ownercheck(RelationRelationId, relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(rel->rd_rel->relkind),
					   RelationGetRelationName(rel));
	return rel;
}

static Relation
open_possible(Oid relid)
{
	Relation	rel = open_owned(relid);
	FlashbackRefusal refusal;

	if (!kind_is_possible(rel, &refusal))
		flashback_refuse(&refusal);
	return rel;
}

static void
refuse_null(bool isnull, const char *name)
{
	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", name)));
}

static void
refuse_condition(bool isnull)
{
	if (!isnull)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a condition is not supported")));
}

Datum
polar_flashback_rows(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 0);
	Oid			relid = OidIsValid(type) ? get_typ_typrelid(type) : InvalidOid;
	Relation	rel;
	FlashbackMoment moment;
	FlashbackScan *scan;
	TupleTableSlot *slot;

	refuse_null(PG_ARGISNULL(1), "target_time");
	refuse_condition(PG_ARGISNULL(2));
	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the first argument must have the row type of a table"),
				 errhint("Write NULL::schema.table.")));
	rel = open_possible(relid);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);

	flashback_progress.rows = 0;
	flashback_resolve(PG_GETARG_TIMESTAMPTZ(1), &moment);
	scan = flashback_scan_begin(rel, &moment);
	slot = flashback_scan_slot(scan);
	while (flashback_scan_next(scan, slot))
		tuplestore_puttupleslot(rsinfo->setResult, slot);
	ExecDropSingleTupleTableSlot(slot);
	flashback_scan_end(scan);
	table_close(rel, NoLock);
	return (Datum) 0;
}

Datum
polar_flashback_count(PG_FUNCTION_ARGS)
{
	Relation	rel;
	FlashbackMoment moment;
	FlashbackScan *scan;
	int64		rows = 0;

	refuse_null(PG_ARGISNULL(0), "relation");
	refuse_null(PG_ARGISNULL(1), "target_time");
	refuse_condition(PG_ARGISNULL(2));
	rel = open_possible(PG_GETARG_OID(0));
	flashback_progress.rows = 0;
	flashback_resolve(PG_GETARG_TIMESTAMPTZ(1), &moment);
	scan = flashback_scan_begin(rel, &moment);
	while (flashback_scan_next(scan, NULL))
		rows++;
	flashback_scan_end(scan);
	table_close(rel, NoLock);
	PG_RETURN_INT64(rows);
}

/*
 * Creates a table with the present columns of another: their names, types and
 * collations, and nothing else, which might not hold for old rows.  It belongs
 * to the owner of the other.
 */
static Oid
create_result(Relation rel, const char *schema, const char *name)
{
	CreateStmt *create = makeNode(CreateStmt);
	TupleDesc	desc = RelationGetDescr(rel);
	ObjectAddress address;

	create->relation = makeRangeVar(pstrdup(schema), pstrdup(name), -1);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped)
			create->tableElts = lappend(create->tableElts,
										makeColumnDef(NameStr(att->attname), att->atttypid,
													  att->atttypmod, att->attcollation));
	}
	create->oncommit = ONCOMMIT_NOOP;
	address = DefineRelation(create, RELKIND_RELATION, rel->rd_rel->relowner, NULL, NULL);
	CommandCounterIncrement();
	NewRelationCreateToastTable(address.objectId, (Datum) 0);
	return address.objectId;
}

/*
 * Inserts all rows of a scan into a new table.
 */
static int64
insert_rows(FlashbackScan *scan, Relation rel, Relation result)
{
	TupleDesc	from = RelationGetDescr(rel);
	TupleDesc	to = RelationGetDescr(result);
	TupleTableSlot *slot = flashback_scan_slot(scan);
	TupleTableSlot **group = palloc(GROUP_ROWS * sizeof(TupleTableSlot *));
	MemoryContext group_context = AllocSetContextCreate(CurrentMemoryContext,
														"flashback insert", ALLOCSET_DEFAULT_SIZES);
	BulkInsertState bulk = GetBulkInsertState();
	CommandId	cid = GetCurrentCommandId(true);
	Datum	   *values = palloc(to->natts * sizeof(Datum));
	bool	   *nulls = palloc(to->natts * sizeof(bool));
	int			in_group = 0;
	Size		bytes = 0;
	int64		rows = 0;

	for (int i = 0; i < GROUP_ROWS; i++)
		group[i] = MakeSingleTupleTableSlot(to, &TTSOpsHeapTuple);

	for (;;)
	{
		bool		more = flashback_scan_next(scan, slot);

		if (more)
		{
			MemoryContext old_context = MemoryContextSwitchTo(group_context);
			HeapTuple	tuple;

			if (from->natts == to->natts)
				tuple = ExecCopySlotHeapTuple(slot);
			else
			{
				int			n = 0;

				slot_getallattrs(slot);
				for (int i = 0; i < from->natts; i++)
					if (!TupleDescCompactAttr(from, i)->attisdropped)
					{
						values[n] = slot->tts_values[i];
						nulls[n++] = slot->tts_isnull[i];
					}
				tuple = heap_form_tuple(to, values, nulls);
			}
			MemoryContextSwitchTo(old_context);
			ExecStoreHeapTuple(tuple, group[in_group++], false);
			bytes += tuple->t_len;
			rows++;
		}
		if (in_group > 0 && (!more || in_group == GROUP_ROWS || bytes >= GROUP_BYTES))
		{
			MemoryContext old_context = MemoryContextSwitchTo(group_context);

			table_multi_insert(result, group, in_group, cid, TABLE_INSERT_SKIP_FSM, bulk);
			MemoryContextSwitchTo(old_context);
			for (int i = 0; i < in_group; i++)
				ExecClearTuple(group[i]);
			MemoryContextReset(group_context);
			in_group = 0;
			bytes = 0;
		}
		if (!more)
			break;
	}

	table_finish_bulk_insert(result, TABLE_INSERT_SKIP_FSM);
	FreeBulkInsertState(bulk);
	for (int i = 0; i < GROUP_ROWS; i++)
		ExecDropSingleTupleTableSlot(group[i]);
	ExecDropSingleTupleTableSlot(slot);
	MemoryContextDelete(group_context);
	return rows;
}

Datum
polar_flashback_table(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[4];
	bool		nulls[4] = {0};
	Relation	rel;
	Relation	result;
	FlashbackMoment moment;
	FlashbackScan *scan;
	Oid			relid;
	Oid			result_id;
	char		name[NAMEDATALEN];
	const char *schema;
	char	   *comment;
	int64		rows;

	refuse_null(PG_ARGISNULL(0), "relation");
	refuse_null(PG_ARGISNULL(1), "target_time");
	refuse_null(PG_ARGISNULL(4), "with_indexes");
	refuse_condition(PG_ARGISNULL(5));
	if (PG_GETARG_BOOL(4))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("indexes of the result are not supported"),
				 errhint("Create them on the result.")));
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	relid = PG_GETARG_OID(0);
	rel = open_possible(relid);
	if (PG_ARGISNULL(2))
		snprintf(name, sizeof(name), "polar_flashback_%u", relid);
	else
		strlcpy(name, NameStr(*PG_GETARG_NAME(2)), sizeof(name));
	schema = PG_ARGISNULL(3) ? get_namespace_name(RelationGetNamespace(rel)) : NameStr(*PG_GETARG_NAME(3));
	PreventCommandIfReadOnly("polar_flashback_table()");
	PreventCommandIfParallelMode("polar_flashback_table()");

	flashback_progress.rows = 0;
	flashback_resolve(PG_GETARG_TIMESTAMPTZ(1), &moment);
	scan = flashback_scan_begin(rel, &moment);
	result_id = create_result(rel, schema, name);
	result = table_open(result_id, AccessExclusiveLock);
	rows = insert_rows(scan, rel, result);
	flashback_scan_end(scan);

	comment = psprintf("\"%s\" as of %s (position %X/%X, point " UINT64_FORMAT ")",
					   RelationGetRelationName(rel), timestamptz_to_str(moment.time),
					   LSN_FORMAT_ARGS(moment.lsn), moment.point.number);
	CreateComments(result_id, RelationRelationId, 0, comment);
	table_close(result, NoLock);
	table_close(rel, NoLock);

	values[0] = ObjectIdGetDatum(result_id);
	values[1] = Int64GetDatum(rows);
	values[2] = LSNGetDatum(moment.lsn);
	values[3] = Int64GetDatum(moment.point.number);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

Datum
polar_flashback_check(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[8] = {0};
	bool		nulls[8];
	FlashbackMoment moment;
	FlashbackRefusal refusal;
	Relation	rel;
	int			natts;

	refuse_null(PG_ARGISNULL(0), "relation");
	refuse_null(PG_ARGISNULL(1), "target_time");
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	rel = open_owned(PG_GETARG_OID(0));

	memset(nulls, true, sizeof(nulls));
	nulls[0] = false;
	if (kind_is_possible(rel, &refusal) &&
		flashback_try_resolve(PG_GETARG_TIMESTAMPTZ(1), &moment, &refusal))
	{
		int64		pages = RelationGetNumberOfBlocks(rel);

		if (OidIsValid(rel->rd_rel->reltoastrelid))
		{
			Relation	toast = table_open(rel->rd_rel->reltoastrelid, AccessShareLock);

			pages += RelationGetNumberOfBlocks(toast);
			table_close(toast, NoLock);
		}
		values[4] = Int64GetDatum(moment.point.number);
		values[5] = LSNGetDatum(moment.lsn);
		values[6] = Int64GetDatum(moment.lsn - moment.point.redo);
		values[7] = Int64GetDatum(pages);
		memset(&nulls[4], false, 4);
		if (flashback_relation_is_same(rel, &moment, &natts, &refusal))
		{
			values[0] = BoolGetDatum(true);
			values[3] = TimestampTzGetDatum(moment.time);
			nulls[3] = false;
		}
	}
	if (!DatumGetBool(values[0]))
	{
		values[1] = CStringGetTextDatum(refusal.reason);
		nulls[1] = false;
		if (refusal.hint[0])
		{
			values[2] = CStringGetTextDatum(refusal.hint);
			nulls[2] = false;
		}
		if (refusal.nearest_time != DT_NOEND)
		{
			values[3] = TimestampTzGetDatum(refusal.nearest_time);
			nulls[3] = false;
		}
	}
	relation_close(rel, NoLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
