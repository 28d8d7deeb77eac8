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

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "flashback_internal.h"
#include "flashback_sql.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "postmaster/bgworker_internals.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(polar_flashback_rows);
PG_FUNCTION_INFO_V1(polar_flashback_count);
PG_FUNCTION_INFO_V1(polar_flashback_table);
PG_FUNCTION_INFO_V1(polar_flashback_table_workers);
PG_FUNCTION_INFO_V1(polar_flashback_check);

/*
 * Whether it is a relation of a kind that can be gone back with.
 */
bool
flashback_kind_is_possible(Relation rel, FlashbackRefusal *refusal)
{
	const char *name = RelationGetRelationName(rel);
	char		relkind = rel->rd_rel->relkind;

	memset(refusal, 0, sizeof(*refusal));
	refusal->sqlerrcode = ERRCODE_WRONG_OBJECT_TYPE;
	refusal->nearest_time = DT_NOEND;
	if (relkind == RELKIND_PARTITIONED_TABLE)
		return true;
	if (relkind != RELKIND_RELATION && relkind != RELKIND_MATVIEW)
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

	if (!flashback_kind_is_possible(rel, &refusal))
		flashback_refuse(&refusal);
	return rel;
}

static char *
get_text(FunctionCallInfo fcinfo, int argument)
{
	return PG_ARGISNULL(argument) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(argument));
}

static void
refuse_null(bool isnull, const char *name)
{
	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", name)));
}

Datum
polar_flashback_rows(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 0);
	Oid			relid = OidIsValid(type) ? get_typ_typrelid(type) : InvalidOid;
	Relation	rel;
	FlashbackRows *rows;
	TupleTableSlot *slot;

	refuse_null(PG_ARGISNULL(1), "target_time");
	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the first argument must have the row type of a table"),
				 errhint("Write NULL::schema.table.")));
	rel = open_possible(relid);
	InitMaterializedSRF(fcinfo, MAT_SRF_BLESS);

	rows = flashback_rows_begin(rel, PG_GETARG_TIMESTAMPTZ(1), get_text(fcinfo, 2), FLASHBACK_OWNED);
	while (flashback_rows_next(rows, &slot))
		tuplestore_puttupleslot(rsinfo->setResult, slot);
	flashback_rows_end(rows);
	flashback_progress_end();
	table_close(rel, NoLock);
	return (Datum) 0;
}

Datum
polar_flashback_count(PG_FUNCTION_ARGS)
{
	Relation	rel;
	FlashbackRows *rows;
	int64		count = 0;

	refuse_null(PG_ARGISNULL(0), "relation");
	refuse_null(PG_ARGISNULL(1), "target_time");
	rel = open_possible(PG_GETARG_OID(0));
	rows = flashback_rows_begin(rel, PG_GETARG_TIMESTAMPTZ(1), get_text(fcinfo, 2),
								FLASHBACK_OWNED | (PG_ARGISNULL(2) ? FLASHBACK_THEN : 0));
	while (flashback_rows_next(rows, NULL))
		count++;
	flashback_rows_end(rows);
	flashback_progress_end();
	table_close(rel, NoLock);
	PG_RETURN_INT64(count);
}

/*
 * Makes a table, with options that begin at the argument "first".
 */
static Datum
make_table(FunctionCallInfo fcinfo, int first, int workers)
{
	TupleDesc	desc;
	Datum		values[4];
	bool		nulls[4] = {0};
	Relation	rel;
	FlashbackResult result;

	refuse_null(PG_ARGISNULL(0), "relation");
	refuse_null(PG_ARGISNULL(1), "target_time");
	refuse_null(PG_ARGISNULL(first + 2), "with_indexes");
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	PreventCommandIfReadOnly("polar_flashback_table()");
	PreventCommandIfParallelMode("polar_flashback_table()");

	rel = open_possible(PG_GETARG_OID(0));
	flashback_make_result(rel, PG_GETARG_TIMESTAMPTZ(1),
						  PG_ARGISNULL(first) ? NULL : NameStr(*PG_GETARG_NAME(first)),
						  PG_ARGISNULL(first + 1) ? NULL : NameStr(*PG_GETARG_NAME(first + 1)),
						  PG_GETARG_BOOL(first + 2), get_text(fcinfo, first + 3), workers, &result);
	table_close(rel, NoLock);

	values[0] = ObjectIdGetDatum(result.relid);
	values[1] = Int64GetDatum(result.rows);
	values[2] = LSNGetDatum(result.moment.lsn);
	values[3] = Int64GetDatum(result.moment.point.number);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

Datum
polar_flashback_table(PG_FUNCTION_ARGS)
{
	return make_table(fcinfo, 2, FLASHBACK_WORKERS_DEFAULT);
}

/*
 * The same with a number of workers; null stands for that of the settings.
 */
Datum
polar_flashback_table_workers(PG_FUNCTION_ARGS)
{
	int32		workers = PG_ARGISNULL(2) ? FLASHBACK_WORKERS_DEFAULT : PG_GETARG_INT32(2);

	if (!PG_ARGISNULL(2) && (workers < 0 || workers > MAX_PARALLEL_WORKER_LIMIT))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be between %d and %d", "workers", 0, MAX_PARALLEL_WORKER_LIMIT)));
	return make_table(fcinfo, 3, workers);
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
	int64		pages;

	refuse_null(PG_ARGISNULL(0), "relation");
	refuse_null(PG_ARGISNULL(1), "target_time");
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	rel = open_owned(PG_GETARG_OID(0));

	memset(nulls, true, sizeof(nulls));
	nulls[0] = false;
	if (flashback_kind_is_possible(rel, &refusal) &&
		flashback_try_resolve(PG_GETARG_TIMESTAMPTZ(1), &moment, &refusal))
	{
		bool		possible = flashback_is_possible(rel, &moment, &pages, &refusal);

		values[4] = Int64GetDatum(moment.point.number);
		values[5] = LSNGetDatum(moment.lsn);
		values[6] = Int64GetDatum(moment.lsn - moment.point.redo);
		values[7] = Int64GetDatum(pages);
		memset(&nulls[4], false, 4);
		if (possible)
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
