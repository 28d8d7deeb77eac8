/*-------------------------------------------------------------------------
 *
 * result_table.c
 *	  The table that a flashback makes.
 *
 * It belongs to the owner of the table whose rows it has, whoever calls, and
 * nobody is granted anything on it, whatever default privileges say: rows
 * reappear in it that some who may read the table were never to see again.
 * It has the columns, without defaults, constraints, triggers and policies; one
 * of a table that was dropped has keys and indexes, too (keys.c), and what its
 * definition says (definition_apply.c).
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/result_table.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/multixact.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/heap.h"
#include "catalog/namespace.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_tablespace_d.h"
#include "catalog/toasting.h"
#include "commands/defrem.h"
#include "commands/tablespace.h"
#include "executor/executor.h"
#include "flashback_console.h"
#include "flashback_definition.h"
#include "flashback_internal.h"
#include "flashback_sql.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_utilcmd.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"

/* How much is inserted at once, as COPY does */
#define BATCH_ROWS 1000
#define BATCH_BYTES 65535

/*
 * The columns that are not dropped.
 */
static TupleDesc
result_descriptor(TupleDesc from)
{
	TupleDesc	desc;
	int			natts = 0;

	for (int i = 0; i < from->natts; i++)
		natts += !TupleDescAttr(from, i)->attisdropped;
	desc = CreateTemplateTupleDesc(natts);
	natts = 0;
	for (int i = 0; i < from->natts; i++)
	{
		if (!TupleDescAttr(from, i)->attisdropped)
			TupleDescCopyEntry(desc, ++natts, from, i + 1);
	}
	return desc;
}

/*
 * Creates the table.  Whoever calls must be allowed to create tables there.
 */
static Oid
create_table(TupleDesc columns, Oid owner, const char *name, const char *schema)
{
	RangeVar   *target;
	Oid			namespace;
	Oid			existing;
	Oid			tablespace;
	Oid			relid;

	if (name[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("argument \"%s\" must not be empty", "result_name")));
	target = makeRangeVar(unconstify(char *, schema), unconstify(char *, name), -1);
	namespace = RangeVarGetAndCheckCreationNamespace(target, NoLock, &existing);
	if (target->relpersistence != RELPERSISTENCE_PERMANENT)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot create the result of a flashback as a temporary table")));
	if (OidIsValid(existing))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_TABLE),
				 errmsg("relation \"%s\" already exists", name),
				 errhint("Drop or rename it, or give another name: with result_name, or TO BEFORE DROP RENAME TO.")));

	tablespace = GetDefaultTablespace(RELPERSISTENCE_PERMANENT, false);
	if (tablespace == GLOBALTABLESPACE_OID)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("only shared relations can be placed in pg_global tablespace")));
	if (OidIsValid(tablespace) && tablespace != MyDatabaseTableSpace)
	{
		AclResult	aclresult = object_aclcheck(TableSpaceRelationId, tablespace, GetUserId(), ACL_CREATE);

		if (aclresult != ACLCHECK_OK)
			aclcheck_error(aclresult, OBJECT_TABLESPACE, get_tablespace_name(tablespace));
	}

	relid = heap_create_with_catalog(name, namespace, tablespace,
									 InvalidOid, InvalidOid, InvalidOid,
									 owner, HEAP_TABLE_AM_OID,
									 result_descriptor(columns), NIL,
									 RELKIND_RELATION, RELPERSISTENCE_PERMANENT,
									 false, false, ONCOMMIT_NOOP, (Datum) 0,
									 false, /* no default privileges */
									 false, false, InvalidOid, NULL);
	CommandCounterIncrement();
	NewRelationCreateToastTable(relid, (Datum) 0);
	CommandCounterIncrement();
	return relid;
}

/*
 * Inserts all rows into the table; returns their number.
 */
static uint64
insert_rows(Relation result, TupleDesc from, FlashbackRows *rows, FlashbackCondition *condition)
{
	TupleTableSlot *slots[BATCH_ROWS];
	TupleTableSlot *shaped = MakeSingleTupleTableSlot(RelationGetDescr(result), &TTSOpsVirtual);
	bool		dropped = (from->natts != RelationGetNumberOfAttributes(result));
	bool		more;
	BulkInsertState bulk = GetBulkInsertState();
	CommandId	cid = GetCurrentCommandId(true);
	MemoryContext batch = AllocSetContextCreate(CurrentMemoryContext, "flashback batch",
												ALLOCSET_DEFAULT_SIZES);
	int			made = 0;
	int			count = 0;
	Size		bytes = 0;
	uint64		total = 0;

	do
	{
		TupleTableSlot *row;

		more = flashback_rows_next(rows, &row);
		if (more)
		{
			if (dropped)
			{
				int			column = 0;

				slot_getallattrs(row);
				ExecClearTuple(shaped);
				for (int i = 0; i < from->natts; i++)
				{
					if (TupleDescAttr(from, i)->attisdropped)
						continue;
					shaped->tts_values[column] = row->tts_values[i];
					shaped->tts_isnull[column++] = row->tts_isnull[i];
				}
				row = ExecStoreVirtualTuple(shaped);
			}
			if (!flashback_condition_holds(condition, row))
				continue;
			if (count == made)
				slots[made++] = table_slot_create(result, NULL);
			ExecCopySlot(slots[count], row);
			bytes += ExecFetchSlotHeapTuple(slots[count], true, NULL)->t_len;
			count++;
		}
		if (count == BATCH_ROWS || bytes > BATCH_BYTES || (!more && count > 0))
		{
			MemoryContext old_context = MemoryContextSwitchTo(batch);

			table_multi_insert(result, slots, count, cid, TABLE_INSERT_SKIP_FSM, bulk);
			MemoryContextSwitchTo(old_context);
			MemoryContextReset(batch);
			for (int i = 0; i < count; i++)
				ExecClearTuple(slots[i]);
			total += count;
			count = 0;
			bytes = 0;
		}
	} while (more);

	FreeBulkInsertState(bulk);
	table_finish_bulk_insert(result, TABLE_INSERT_SKIP_FSM);
	for (int i = 0; i < made; i++)
		ExecDropSingleTupleTableSlot(slots[i]);
	ExecDropSingleTupleTableSlot(shaped);
	MemoryContextDelete(batch);
	return total;
}

/*
 * Puts all rows into the table, page by page if they can be had so; returns
 * their number.
 */
static uint64
fill_table(Relation result, TupleDesc from, FlashbackRows *rows, bool selected,
		   FlashbackCondition *condition, int workers)
{
	FlashbackScan *scan = selected ? NULL : flashback_rows_take_scan(rows);

	if (scan && flashback_pages_fit(scan, result))
		return flashback_copy_pages(scan, result, workers);
	return insert_rows(result, from, rows, condition);
}

/*
 * Builds the table's indexes, with names of their own.  The core evaluates
 * their expressions as the owner of the result, who is that of the table.
 */
static void
build_indexes(Oid relid, Relation rel)
{
	AttrMap    *map = make_attrmap(RelationGetNumberOfAttributes(rel));
	List	   *indexes = RelationGetIndexList(rel);
	int			column = 0;
	int			done = 0;

	for (int i = 0; i < map->maplen; i++)
		map->attnums[i] = TupleDescAttr(RelationGetDescr(rel), i)->attisdropped ? 0 : ++column;

	foreach_oid(indexid, indexes)
	{
		Relation	index;
		IndexStmt  *stmt;
		Oid			constraint;

		flashback_progress_indexes(done++, list_length(indexes));
		index = index_open(indexid, AccessShareLock);
		if (!index->rd_index->indisvalid)
		{
			index_close(index, AccessShareLock);
			continue;
		}
		stmt = generateClonedIndexStmt(NULL, index, map, &constraint);
		index_close(index, NoLock);

		/*
		 * A primary key would need columns that are not null.  What only a
		 * constraint can express stays one.
		 */
		stmt->primary = false;
		if (stmt->excludeOpNames == NIL && !stmt->iswithoutoverlaps)
			stmt->isconstraint = stmt->deferrable = stmt->initdeferred = false;
		stmt->tableSpace = NULL;
		stmt->idxcomment = NULL;
		DefineIndex(relid, stmt, InvalidOid, InvalidOid, InvalidOid, -1,
					false, true, false, false, true);
		CommandCounterIncrement();
	}
	flashback_progress_indexes(done, list_length(indexes));
	list_free(indexes);
	free_attrmap(map);
}

/*
 * Where in WAL, and from which point, the rows come.
 */
static char *
describe(const FlashbackMoment *moment)
{
	return psprintf("%sposition %X/%X, point " UINT64_FORMAT,
					moment->by_position ? "before " : "", LSN_FORMAT_ARGS(moment->lsn), moment->point.number);
}

/*
 * Makes a table with the rows that a table had at a time.  The caller has
 * locked that, and checked that the current user owns it.
 */
void
flashback_make_result(Relation rel, TimestampTz time, const char *name,
					  const char *schema, bool with_indexes,
					  const char *condition, int workers, FlashbackResult *result)
{
	FlashbackRows *rows;
	FlashbackCondition *on_result = NULL;
	TupleDesc	columns;
	Relation	table;
	int			natts;
	bool		then;

	rows = flashback_rows_begin(rel, time, condition, FLASHBACK_OWNED | FLASHBACK_THEN);
	columns = flashback_rows_columns(rows, &then);
	if (then && with_indexes)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("columns of table \"%s\" had other types at the target time",
						RelationGetRelationName(rel)),
				 errdetail("Its present indexes cannot be built on them."),
				 errhint("Set with_indexes to false.")));
	result->moment = *flashback_rows_moment(rows);
	natts = flashback_rows_former(rows)->natts;
	if (name == NULL)
		name = psprintf("polar_flashback_%u", RelationGetRelid(rel));
	if (schema == NULL)
		schema = get_namespace_name(RelationGetNamespace(rel));
	result->relid = create_table(columns, rel->rd_rel->relowner, name, schema);
	table = table_open(result->relid, AccessExclusiveLock);
	if (then)
	{
		ereport(NOTICE,
				(errmsg("columns of table \"%s\" had other types at the target time",
						RelationGetRelationName(rel)),
				 errdetail("The result has the columns of then.")));
		on_result = flashback_condition_create(table, condition);
	}
	result->rows = fill_table(table, columns, rows, condition != NULL, on_result, workers);
	flashback_condition_free(on_result);
	flashback_rows_end(rows);
	table_close(table, NoLock);
	CommandCounterIncrement();

	if (with_indexes)
		build_indexes(result->relid, rel);
	flashback_progress_end();

	flashback_comment_result(result->relid, rel, natts, result->moment.time, describe(&result->moment));
}

/*
 * What keys and indexes a dropped table had; NULL if that cannot be known.
 */
static FlashbackKeys *
read_keys(const FlashbackFormer *former, const FlashbackMoment *moment)
{
	FlashbackRefusal refusal;
	FlashbackKeys *keys = flashback_keys_read(former, moment, &refusal);

	if (keys == NULL)
		ereport(NOTICE,
				(errmsg("table \"%s\" is given back without keys, indexes and not-null constraints",
						NameStr(former->name)),
				 errdetail("What it had cannot be known: %s.", refusal.reason)));
	return keys;
}

/*
 * What the transaction that dropped a table said of it; NULL if it did not.
 */
static FlashbackDefinition *
read_definition(Oid relid, XLogRecPtr commit_lsn)
{
	XLogRecPtr	lsn = flashback_definition_place(flashback_definition_find(relid, commit_lsn), relid);

	return XLogRecPtrIsInvalid(lsn) ? NULL : flashback_definition_read(lsn, relid);
}

/*
 * Makes a table with the rows that a table had before a commit.  One that was
 * dropped gets its name, schema and owner back, and all that its definition has.
 */
void
flashback_make_result_before(Oid relid, XLogRecPtr commit_lsn, const char *name,
							 const char *schema, const char *condition,
							 FlashbackResult *result)
{
	FlashbackRows *rows = flashback_rows_begin_before(relid, commit_lsn);
	const FlashbackFormer *former = flashback_rows_former(rows);
	Relation	rel = flashback_rows_relation(rows);
	bool		then;
	TupleDesc	columns = flashback_rows_columns(rows, &then);
	FlashbackCondition *on_result;
	FlashbackKeys *keys = NULL;
	Relation	table;
	const char *former_schema;

	result->moment = *flashback_rows_moment(rows);
	former_schema = get_namespace_name(rel ? RelationGetNamespace(rel) : former->namespace);
	if (name == NULL)
		name = rel ? psprintf("polar_flashback_%u", relid) : NameStr(former->name);
	if (schema == NULL)
		schema = former_schema;
	if (former_schema == NULL)
		former_schema = schema;
	if (schema == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_SCHEMA),
				 errmsg("the schema of table \"%s\" no longer exists", NameStr(former->name)),
				 errhint("Name another one: polar_flashback_before_drop(%u, '%X/%X', result_schema => '...').",
						 relid, LSN_FORMAT_ARGS(commit_lsn))));
	result->relid = create_table(columns, rel ? rel->rd_rel->relowner : flashback_heir(former), name, schema);
	if (rel == NULL)
		keys = read_keys(former, &result->moment);
	if (keys)
		flashback_keys_forbid_nulls(keys, result->relid);
	table = table_open(result->relid, AccessExclusiveLock);
	on_result = flashback_condition_create(table, condition);
	result->rows = fill_table(table, columns, rows, condition != NULL, on_result,
							  FLASHBACK_WORKERS_DEFAULT);
	flashback_condition_free(on_result);
	flashback_comment_former(result->relid, relid, former_schema, NameStr(former->name),
							 former->natts, result->moment.time, describe(&result->moment));
	table_close(table, NoLock);
	CommandCounterIncrement();
	if (keys)
	{
		flashback_keys_build(keys, result->relid);
		flashback_keys_complete(keys, read_definition(relid, commit_lsn), result->relid);
	}
	flashback_rows_end(rows);
	flashback_progress_end();
}
