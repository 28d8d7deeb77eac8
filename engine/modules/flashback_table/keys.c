/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  Keys, indexes and not-null constraints of a table that was dropped.
 *
 * pg_index and pg_constraint are read as of the moment, like pg_class.  What
 * names columns, and operator classes and collations that are still those of
 * then, is made again in the table that is given back, by the core, as its
 * owner.  Expressions are never read: they are trees that the core takes for
 * its own, and name functions that may be others now.  What there is besides
 * is only known by its number here; definition_apply.c makes it from texts.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/keys.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/heap.h"
#include "catalog/indexing.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "flashback_console.h"
#include "flashback_definition.h"
#include "flashback_internal.h"
#include "flashback_sql.h"
#include "nodes/makefuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* An index that the table had */
typedef struct FormerIndex
{
	Oid			relid;
	int			natts;
	int			nkeys;
	bool		unique;
	bool		nulls_not_distinct;
	bool		primary;
	bool		valid;
	bool		possible;		/* and has nothing but columns */
	bool		constrains;		/* it belongs to a key; then: */
	Oid			constraintid;
	NameData	constraint;
	bool		deferrable;
	bool		deferred;
	AttrNumber	columns[INDEX_MAX_KEYS];
	Oid			collations[INDEX_MAX_KEYS];
	Oid			opclasses[INDEX_MAX_KEYS];
	int16		options[INDEX_MAX_KEYS];
} FormerIndex;

struct FlashbackKeys
{
	const FlashbackFormer *table;
	const FlashbackMoment *moment;
	List	   *indexes;		/* of FormerIndex, by Oid */
	List	   *not_null;		/* of Constraint */
	List	   *missing;		/* of FlashbackMissing: what else there was */
	FlashbackFormers *formers;	/* of the indexes */
};

typedef void (*CatalogRowCallback) (FlashbackKeys *keys, TupleTableSlot *slot);

/*
 * Calls back for each row that a catalog had.
 */
static bool
read_catalog(FlashbackKeys *keys, FlashbackFormers *catalogs, Oid relid, CatalogRowCallback callback,
			 FlashbackRefusal *refusal)
{
	FlashbackFormer *then = flashback_former_of(catalogs, relid);
	Relation	catalog = table_open(relid, AccessShareLock);
	bool		found = flashback_former_find_files(then, catalog, keys->moment, refusal);

	if (found)
	{
		FlashbackScan *scan = flashback_scan_begin(then, catalog, false, keys->moment);
		TupleTableSlot *slot = flashback_scan_slot(scan);

		while (flashback_scan_next(scan, slot))
			callback(keys, slot);
		ExecDropSingleTupleTableSlot(slot);
		flashback_scan_end(scan);
	}
	table_close(catalog, NoLock);
	return found;
}

pg_noreturn static void
damaged(const FlashbackKeys *keys, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("the keys of relation %u as of the target time are damaged", keys->table->relid),
			 errdetail_internal("%s.", what)));
}

/*
 * The values of a vector that a row of a catalog has.
 */
static const void *
vector_values(const FlashbackKeys *keys, TupleTableSlot *slot, AttrNumber attnum, Oid type, int n)
{
	ArrayType  *array = DatumGetArrayTypeP(flashback_catalog_value(slot, attnum));

	if (ARR_NDIM(array) != 1 || ARR_HASNULL(array) || ARR_ELEMTYPE(array) != type || ARR_DIMS(array)[0] < n ||
		ARR_SIZE(array) < ARR_DATA_OFFSET(array) + n * (type == OIDOID ? sizeof(Oid) : sizeof(int16)))
		damaged(keys, "A list of columns is none");
	return ARR_DATA_PTR(array);
}

static bool
is_set(TupleTableSlot *slot, AttrNumber attnum)
{
	return DatumGetBool(flashback_catalog_value(slot, attnum));
}

static bool
has_value(TupleTableSlot *slot, AttrNumber attnum)
{
	bool		isnull;

	(void) slot_getattr(slot, attnum, &isnull);
	return !isnull;
}

static void
take_index(FlashbackKeys *keys, TupleTableSlot *slot)
{
	FormerIndex *index;

	if (DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_index_indrelid)) != keys->table->relid)
		return;
	index = palloc0(sizeof(FormerIndex));
	index->relid = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_index_indexrelid));
	index->natts = DatumGetInt16(flashback_catalog_value(slot, Anum_pg_index_indnatts));
	index->nkeys = DatumGetInt16(flashback_catalog_value(slot, Anum_pg_index_indnkeyatts));
	if (index->nkeys < 1 || index->natts < index->nkeys || index->natts > INDEX_MAX_KEYS)
		damaged(keys, "An index has an impossible number of columns");
	index->unique = is_set(slot, Anum_pg_index_indisunique);
	index->nulls_not_distinct = is_set(slot, Anum_pg_index_indnullsnotdistinct);
	index->primary = is_set(slot, Anum_pg_index_indisprimary);
	index->valid = is_set(slot, Anum_pg_index_indisvalid) && is_set(slot, Anum_pg_index_indislive);
	index->possible = index->valid &&
		!is_set(slot, Anum_pg_index_indisexclusion) &&
		!has_value(slot, Anum_pg_index_indexprs) && !has_value(slot, Anum_pg_index_indpred);
	memcpy(index->columns, vector_values(keys, slot, Anum_pg_index_indkey, INT2OID, index->natts),
		   index->natts * sizeof(int16));
	memcpy(index->collations, vector_values(keys, slot, Anum_pg_index_indcollation, OIDOID, index->nkeys),
		   index->nkeys * sizeof(Oid));
	memcpy(index->opclasses, vector_values(keys, slot, Anum_pg_index_indclass, OIDOID, index->nkeys),
		   index->nkeys * sizeof(Oid));
	memcpy(index->options, vector_values(keys, slot, Anum_pg_index_indoption, INT2OID, index->nkeys),
		   index->nkeys * sizeof(int16));
	keys->indexes = lappend(keys->indexes, index);
}

/*
 * The column of a number, unless there is none, or it is computed in every
 * row: then it is a plain one in the table that is given back, without values.
 */
static const char *
column_name(const FlashbackKeys *keys, AttrNumber attnum)
{
	Form_pg_attribute att;

	if (attnum < 1 || attnum > keys->table->desc->natts)
		return NULL;
	att = TupleDescAttr(keys->table->desc, attnum - 1);
	if (att->attisdropped || att->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL)
		return NULL;
	return NameStr(att->attname);
}

static FlashbackMissing *
add_missing(FlashbackKeys *keys, Oid classid, Oid objectid, const char *what, const char *name)
{
	FlashbackMissing *missing = palloc0(sizeof(FlashbackMissing));

	ObjectAddressSet(missing->object, classid, objectid);
	missing->may_be_text = true;
	missing->name = psprintf("%s \"%s\"", what, name);
	keys->missing = lappend(keys->missing, missing);
	return missing;
}

/*
 * Rows of then had no null in the column if the constraint was validated.
 */
static void
take_not_null(FlashbackKeys *keys, TupleTableSlot *slot, Oid constraintid, const char *name)
{
	AttrNumber	attnum = *(const int16 *) vector_values(keys, slot, Anum_pg_constraint_conkey, INT2OID, 1);
	const char *column = column_name(keys, attnum);
	Constraint *constraint;

	if (column == NULL || !is_set(slot, Anum_pg_constraint_convalidated))
	{
		add_missing(keys, ConstraintRelationId, constraintid, "constraint", name);
		return;
	}
	constraint = makeNode(Constraint);
	constraint->contype = CONSTR_NOTNULL;
	constraint->conname = pstrdup(name);
	constraint->keys = list_make1(makeString(pstrdup(column)));
	constraint->is_enforced = true;
	constraint->initially_valid = true;
	constraint->location = -1;
	keys->not_null = lappend(keys->not_null, constraint);
}

static void
take_key(FlashbackKeys *keys, TupleTableSlot *slot, Oid constraintid, const char *name)
{
	Oid			relid = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_constraint_conindid));

	foreach_ptr(FormerIndex, index, keys->indexes)
	{
		if (index->relid != relid)
			continue;
		index->constrains = true;
		index->constraintid = constraintid;
		namestrcpy(&index->constraint, name);
		index->deferrable = is_set(slot, Anum_pg_constraint_condeferrable);
		index->deferred = is_set(slot, Anum_pg_constraint_condeferred);
		if (is_set(slot, Anum_pg_constraint_conperiod))
			index->possible = false;
	}
}

/*
 * A foreign key.  One that refers to a partitioned table has others for its
 * partitions.
 */
static void
take_foreign_key(FlashbackKeys *keys, TupleTableSlot *slot, Oid constraintid, const char *name)
{
	FlashbackMissing *missing = add_missing(keys, ConstraintRelationId, constraintid, "foreign key", name);

	missing->parent = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_constraint_conparentid));
}

/*
 * Leaves out foreign keys that are a part of another one of the table.
 */
static void
leave_parts_out(FlashbackKeys *keys)
{
	List	   *whole = NIL;

	foreach_ptr(FlashbackMissing, missing, keys->missing)
	{
		bool		part = false;

		foreach_ptr(FlashbackMissing, other, keys->missing)
			part |= OidIsValid(missing->parent) && other->object.classId == ConstraintRelationId &&
			other->object.objectId == missing->parent;
		if (!part)
			whole = lappend(whole, missing);
	}
	keys->missing = whole;
}

static void
take_constraint(FlashbackKeys *keys, TupleTableSlot *slot)
{
	Oid			constraintid = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_constraint_oid));
	const char *name;

	if (DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_constraint_conrelid)) != keys->table->relid)
		return;
	name = NameStr(*DatumGetName(flashback_catalog_value(slot, Anum_pg_constraint_conname)));
	switch (DatumGetChar(flashback_catalog_value(slot, Anum_pg_constraint_contype)))
	{
		case CONSTRAINT_NOTNULL:
			take_not_null(keys, slot, constraintid, name);
			break;
		case CONSTRAINT_PRIMARY:
		case CONSTRAINT_UNIQUE:
		case CONSTRAINT_EXCLUSION:
			take_key(keys, slot, constraintid, name);
			break;
		case CONSTRAINT_FOREIGN:
			take_foreign_key(keys, slot, constraintid, name);
			break;
		default:
			add_missing(keys, ConstraintRelationId, constraintid, "constraint", name);
			break;
	}
}

static void
take_default(FlashbackKeys *keys, TupleTableSlot *slot)
{
	AttrNumber	attnum;
	Form_pg_attribute att;

	if (DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_attrdef_adrelid)) != keys->table->relid)
		return;
	attnum = DatumGetInt16(flashback_catalog_value(slot, Anum_pg_attrdef_adnum));
	if (attnum < 1 || attnum > keys->table->desc->natts)
		damaged(keys, "A default is that of no column");
	att = TupleDescAttr(keys->table->desc, attnum - 1);
	if (!att->attisdropped)
		add_missing(keys, AttrDefaultRelationId,
					DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_attrdef_oid)),
					att->attgenerated ? "expression of generated column" : "default of column",
					NameStr(att->attname))->attnum = attnum;
}

static void
take_identities(FlashbackKeys *keys)
{
	for (int i = 0; i < keys->table->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(keys->table->desc, i);

		if (!att->attisdropped && att->attidentity)
			add_missing(keys, InvalidOid, InvalidOid, "identity of column", NameStr(att->attname))->attnum = i + 1;
	}
}

/*
 * Whether an object that an index uses is the one of then; those of initdb
 * never change.
 */
static bool
is_same(int cache, Oid oid, const FlashbackMoment *moment)
{
	HeapTuple	row = SearchSysCache1(cache, ObjectIdGetDatum(oid));
	bool		same;

	if (!HeapTupleIsValid(row))
		return false;
	same = (oid < FirstNormalObjectId || flashback_row_is_older(row, moment));
	ReleaseSysCache(row);
	return same;
}

/*
 * Whether an index was valid, and what it consists of is still that of then.
 */
static bool
means_the_same(const FlashbackKeys *keys, const FormerIndex *index)
{
	const FlashbackFormer *former = flashback_former_of(keys->formers, index->relid);

	if (!index->valid || former == NULL || !is_same(AMOID, former->am, keys->moment))
		return false;
	for (int i = 0; i < index->nkeys; i++)
	{
		if (!is_same(CLAOID, index->opclasses[i], keys->moment) ||
			(OidIsValid(index->collations[i]) && !is_same(COLLOID, index->collations[i], keys->moment)))
			return false;
	}
	return true;
}

static bool
can_be_made(const FlashbackKeys *keys, const FormerIndex *index)
{
	if (!index->possible || !means_the_same(keys, index))
		return false;
	for (int i = 0; i < index->natts; i++)
	{
		if (column_name(keys, index->columns[i]) == NULL)
			return false;
	}
	return true;
}

static void
leave_index_out(FlashbackKeys *keys, const FormerIndex *index)
{
	const FlashbackFormer *former = flashback_former_of(keys->formers, index->relid);
	FlashbackMissing *missing;

	if (index->constrains)
		missing = add_missing(keys, ConstraintRelationId, index->constraintid, "constraint",
							  NameStr(index->constraint));
	else
		missing = add_missing(keys, RelationRelationId, index->relid, "index", former ? NameStr(former->name) : "?");
	missing->may_be_text = means_the_same(keys, index);
}

static int
compare_indexes(const ListCell *a, const ListCell *b)
{
	Oid			x = ((const FormerIndex *) lfirst(a))->relid;
	Oid			y = ((const FormerIndex *) lfirst(b))->relid;

	return x < y ? -1 : x > y;
}

static int
compare_names(const ListCell *a, const ListCell *b)
{
	return strcmp(((const FlashbackMissing *) lfirst(a))->name, ((const FlashbackMissing *) lfirst(b))->name);
}

/*
 * Reads what a dropped table had; NULL, with the reason, if that cannot be
 * known.  Its columns have been read.
 */
FlashbackKeys *
flashback_keys_read(const FlashbackFormer *table, const FlashbackMoment *moment, FlashbackRefusal *refusal)
{
	FlashbackKeys *keys = palloc0(sizeof(FlashbackKeys));
	FlashbackFormers *catalogs;
	List	   *relids = NIL;
	List	   *possible = NIL;

	keys->table = table;
	keys->moment = moment;
	catalogs = flashback_formers_read(list_make3_oid(IndexRelationId, ConstraintRelationId, AttrDefaultRelationId),
									  moment, refusal);
	if (catalogs == NULL ||
		!read_catalog(keys, catalogs, IndexRelationId, take_index, refusal) ||
		!read_catalog(keys, catalogs, ConstraintRelationId, take_constraint, refusal) ||
		!read_catalog(keys, catalogs, AttrDefaultRelationId, take_default, refusal))
		return NULL;
	leave_parts_out(keys);
	take_identities(keys);
	list_sort(keys->indexes, compare_indexes);
	foreach_ptr(FormerIndex, index, keys->indexes)
		relids = lappend_oid(relids, index->relid);
	if (relids != NIL)
	{
		keys->formers = flashback_formers_read(relids, moment, refusal);
		if (keys->formers == NULL)
			return NULL;
	}
	foreach_ptr(FormerIndex, index, keys->indexes)
	{
		if (can_be_made(keys, index))
			possible = lappend(possible, index);
		else
			leave_index_out(keys, index);
	}
	keys->indexes = possible;
	list_sort(keys->missing, compare_names);
	return keys;
}

/*
 * Gives a table that has no rows yet its not-null constraints.  Rows that it
 * gets satisfied them.
 */
void
flashback_keys_forbid_nulls(const FlashbackKeys *keys, Oid relid)
{
	Relation	table = table_open(relid, NoLock);
	Relation	attributes = table_open(AttributeRelationId, RowExclusiveLock);

	foreach_int(attnum, AddRelationNotNullConstraints(table, list_copy(keys->not_null), NIL, NIL))
	{
		HeapTuple	row = SearchSysCacheCopyAttNum(relid, attnum);

		if (!HeapTupleIsValid(row))
			elog(ERROR, "cache lookup failed for attribute %d of relation %u", attnum, relid);
		((Form_pg_attribute) GETSTRUCT(row))->attnotnull = true;
		CatalogTupleUpdate(attributes, &row->t_self, row);
		heap_freetuple(row);
	}
	table_close(attributes, RowExclusiveLock);
	table_close(table, NoLock);
	CommandCounterIncrement();
}

static List *
qualified(Oid namespace, const char *name)
{
	return list_make2(makeString(get_namespace_name(namespace)), makeString(pstrdup(name)));
}

static IndexElem *
make_column(const FlashbackKeys *keys, const FormerIndex *index, int i, bool ordered)
{
	IndexElem  *element = makeNode(IndexElem);
	HeapTuple	row;

	element->name = pstrdup(column_name(keys, index->columns[i]));
	element->ordering = SORTBY_DEFAULT;
	element->nulls_ordering = SORTBY_NULLS_DEFAULT;
	if (i >= index->nkeys)
		return element;

	row = SearchSysCache1(CLAOID, ObjectIdGetDatum(index->opclasses[i]));
	if (HeapTupleIsValid(row))
	{
		Form_pg_opclass opclass = (Form_pg_opclass) GETSTRUCT(row);

		element->opclass = qualified(opclass->opcnamespace, NameStr(opclass->opcname));
		ReleaseSysCache(row);
	}
	row = SearchSysCache1(COLLOID, ObjectIdGetDatum(index->collations[i]));
	if (HeapTupleIsValid(row))
	{
		Form_pg_collation collation = (Form_pg_collation) GETSTRUCT(row);

		element->collation = qualified(collation->collnamespace, NameStr(collation->collname));
		ReleaseSysCache(row);
	}
	if (ordered)
	{
		bool		nulls_first = (index->options[i] & INDOPTION_NULLS_FIRST) != 0;

		element->ordering = (index->options[i] & INDOPTION_DESC) ? SORTBY_DESC : SORTBY_ASC;
		element->nulls_ordering = nulls_first ? SORTBY_NULLS_FIRST : SORTBY_NULLS_LAST;
	}
	return element;
}

static IndexStmt *
make_statement(const FlashbackKeys *keys, const FormerIndex *index, Oid namespace)
{
	const FlashbackFormer *former = flashback_former_of(keys->formers, index->relid);
	IndexAmRoutine *am = GetIndexAmRoutineByAmId(former->am, false);
	IndexStmt  *stmt = makeNode(IndexStmt);

	/* Its name may have been taken meanwhile */
	if (!OidIsValid(get_relname_relid(NameStr(former->name), namespace)) &&
		!(index->constrains && ConstraintNameExists(NameStr(former->name), namespace)))
		stmt->idxname = pstrdup(NameStr(former->name));
	stmt->accessMethod = get_am_name(former->am);
	stmt->unique = index->unique;
	stmt->nulls_not_distinct = index->nulls_not_distinct;
	stmt->primary = index->primary;
	stmt->isconstraint = index->constrains;
	stmt->deferrable = index->deferrable;
	stmt->initdeferred = index->deferred;
	stmt->options = untransformRelOptions(former->options);
	stmt->transformed = true;
	for (int i = 0; i < index->natts; i++)
	{
		IndexElem  *element = make_column(keys, index, i, am->amcanorder);

		if (i < index->nkeys)
			stmt->indexParams = lappend(stmt->indexParams, element);
		else
			stmt->indexIncludingParams = lappend(stmt->indexIncludingParams, element);
	}
	pfree(am);
	return stmt;
}

/*
 * Makes the keys and indexes in the table that has been filled.
 */
void
flashback_keys_build(const FlashbackKeys *keys, Oid relid)
{
	int			done = 0;

	foreach_ptr(FormerIndex, index, keys->indexes)
	{
		flashback_progress_indexes(done++, list_length(keys->indexes));
		DefineIndex(relid, make_statement(keys, index, get_rel_namespace(relid)),
					InvalidOid, InvalidOid, InvalidOid, -1, false, true, false, false, true);
		CommandCounterIncrement();
	}
	if (keys->indexes != NIL)
		flashback_progress_indexes(done, list_length(keys->indexes));
}

/*
 * Makes what else there was from the texts that the session that dropped the
 * table wrote (NULL: none), and says what the table does not have any more.
 */
void
flashback_keys_complete(const FlashbackKeys *keys, const FlashbackDefinition *definition, Oid relid)
{
	List	   *missing = keys->missing;
	StringInfoData names;

	if (definition)
		missing = flashback_definition_apply(definition, keys->table, relid, missing);
	if (missing == NIL)
		return;
	initStringInfo(&names);
	foreach_ptr(FlashbackMissing, item, missing)
		appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", item->name);
	ereport(NOTICE,
			(errmsg("table \"%s\" is given back without a part of its definition", get_rel_name(relid)),
			 errdetail("It lacks %s.", names.data),
			 definition ? errhint("See its definition in polar_flashback_dropped().") :
			 errhint("Definitions of up to 1 MB are kept, of tables that are dropped while polar_enable_fast_recovery_area is on.")));
	pfree(names.data);
}
