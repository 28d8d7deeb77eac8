/*-------------------------------------------------------------------------
 *
 * columns.c
 *	  The columns of relations at a moment, and whether values of then are
 *	  still values of their types.
 *
 * A file that was replaced has rows in the shape that its relation had then.
 * That is what pg_attribute said.  A type must be the same as then: the values
 * of a composite type that was altered since, or of another type that has got
 * its number, would be taken apart by the wrong rules.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/columns.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/tupdesc_details.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "flashback_internal.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

static bool type_is_same(Oid type, const FlashbackMoment *moment);

/*
 * Whether the attributes of a composite type are those of the moment.
 */
static bool
attributes_are_same(Oid relid, const FlashbackMoment *moment)
{
	HeapTuple	class;
	int			natts;

	/* ALTER TYPE takes a stronger one */
	LockRelationOid(relid, AccessShareLock);
	class = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(class))
		return false;
	natts = ((Form_pg_class) GETSTRUCT(class))->relnatts;
	ReleaseSysCache(class);
	for (int i = 1; i <= natts; i++)
	{
		HeapTuple	row = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relid), Int16GetDatum(i));
		Form_pg_attribute att;
		bool		same;

		if (!HeapTupleIsValid(row))
			return false;
		att = (Form_pg_attribute) GETSTRUCT(row);
		same = flashback_row_is_older(row, moment) &&
			(att->attisdropped || type_is_same(att->atttypid, moment));
		ReleaseSysCache(row);
		if (!same)
			return false;
	}
	return true;
}

/*
 * Whether a type exists and has not changed since the moment, and all those
 * that its values consist of.  It is locked against being dropped.
 */
static bool
type_is_same(Oid type, const FlashbackMoment *moment)
{
	HeapTuple	row;
	Form_pg_type form;
	Oid			next = InvalidOid;
	Oid			relid = InvalidOid;
	bool		same;

	check_stack_depth();
	if (type < FirstNormalObjectId)
		return SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(type));
	LockDatabaseObject(TypeRelationId, type, 0, AccessShareLock);
	row = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	if (!HeapTupleIsValid(row))
		return false;
	form = (Form_pg_type) GETSTRUCT(row);
	same = flashback_row_is_older(row, moment);
	switch (form->typtype)
	{
		case TYPTYPE_DOMAIN:
			next = form->typbasetype;
			break;
		case TYPTYPE_COMPOSITE:
			relid = form->typrelid;
			break;
		case TYPTYPE_RANGE:
			next = get_range_subtype(type);
			break;
		case TYPTYPE_MULTIRANGE:
			next = get_multirange_range(type);
			break;
		default:
			next = form->typelem;
			break;
	}
	ReleaseSysCache(row);
	if (same && OidIsValid(next))
		same = type_is_same(next, moment);
	if (same && OidIsValid(relid))
		same = attributes_are_same(relid, moment);
	return same;
}

/*
 * Whether all columns of a former relation have types whose values can be
 * read; if not, the reason.
 */
bool
flashback_columns_are_usable(const FlashbackFormer *former, const FlashbackMoment *moment,
							 FlashbackRefusal *refusal)
{
	memset(refusal, 0, sizeof(*refusal));
	refusal->sqlerrcode = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
	refusal->nearest_time = DT_NOEND;
	for (int i = 0; i < former->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(former->desc, i);
		HeapTuple	row;
		const char *what = NULL;

		if (att->attisdropped)
			continue;
		if (!type_is_same(att->atttypid, moment))
			what = SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(att->atttypid)) ?
				"has changed since" : "no longer exists";
		row = what ? NULL : SearchSysCache1(TYPEOID, ObjectIdGetDatum(att->atttypid));
		if (row)
		{
			Form_pg_type type = (Form_pg_type) GETSTRUCT(row);

			if (type->typtype == TYPTYPE_PSEUDO || type->typlen != att->attlen ||
				type->typbyval != att->attbyval || type->typalign != att->attalign)
				what = "has changed since";
			ReleaseSysCache(row);
		}
		if (what == NULL)
			continue;
		snprintf(refusal->reason, sizeof(refusal->reason),
				 "column \"%s\" of table \"%s\" had a type that %s",
				 NameStr(att->attname), NameStr(former->name), what);
		return false;
	}
	return true;
}

/*
 * Whether rows of a former relation can be given in its present shape: each
 * column that is there still takes the values that it had.
 */
bool
flashback_columns_fit(const FlashbackFormer *former, TupleDesc desc)
{
	if (former->desc->natts > desc->natts)
		return false;
	for (int i = 0; i < former->desc->natts; i++)
	{
		Form_pg_attribute then = TupleDescAttr(former->desc, i);
		Form_pg_attribute now = TupleDescAttr(desc, i);
		bool		wider = (now->atttypmod == -1 ||
							 ((now->atttypid == VARCHAROID || now->atttypid == VARBITOID) &&
							  then->atttypmod != -1 && then->atttypmod < now->atttypmod));

		if (then->attisdropped || now->attisdropped)
			continue;
		if (then->atttypid != now->atttypid || (then->atttypmod != now->atttypmod && !wider) ||
			(then->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL) != (now->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL))
			return false;
	}
	return true;
}

pg_noreturn static void damaged(const FlashbackFormer *former, const char *what);

static void
damaged(const FlashbackFormer *former, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("the columns of relation %u as of the target time are damaged", former->relid),
			 errdetail_internal("%s.", what)));
}

/*
 * The value of a column in rows that are older than it.
 */
static void
take_missing(FlashbackFormer *former, Form_pg_attribute att, Datum value)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	int			one = 1;
	bool		isnull;
	Datum		element;
	AttrMissing *missing;

	if (ARR_NDIM(array) != 1 || ARR_DIMS(array)[0] != 1 || ARR_LBOUND(array)[0] != 1 ||
		ARR_HASNULL(array) || ARR_ELEMTYPE(array) != att->atttypid)
		damaged(former, "A default for rows of before is no value of its column");
	if (former->desc->constr == NULL)
		former->desc->constr = palloc0(sizeof(TupleConstr));
	if (former->desc->constr->missing == NULL)
		former->desc->constr->missing = palloc0_array(AttrMissing, former->natts);
	element = array_get_element(PointerGetDatum(array), 1, &one, -1, att->attlen,
								att->attbyval, att->attalign, &isnull);
	missing = &former->desc->constr->missing[att->attnum - 1];
	missing->am_present = true;
	missing->am_value = datumCopy(element, att->attbyval, att->attlen);
}

static bool
layout_is_possible(const FormData_pg_attribute *att)
{
	if (att->attalign != TYPALIGN_CHAR && att->attalign != TYPALIGN_SHORT &&
		att->attalign != TYPALIGN_INT && att->attalign != TYPALIGN_DOUBLE)
		return false;
	if (att->attbyval)
		return att->attlen == 1 || att->attlen == 2 || att->attlen == 4 || att->attlen == 8;
	return att->attlen == -1 || att->attlen == -2 || att->attlen > 0;
}

/*
 * Takes over what a row of pg_attribute says.
 */
void
flashback_columns_take(FlashbackFormer *former, TupleTableSlot *slot)
{
	AttrNumber	attnum = DatumGetInt16(flashback_catalog_value(slot, Anum_pg_attribute_attnum));
	Form_pg_attribute att;
	Datum		missing;
	bool		isnull;

	if (attnum <= 0)
		return;
	if (attnum > former->natts)
		damaged(former, "There are more than pg_class says");
	att = TupleDescAttr(former->desc, attnum - 1);
	if (att->attnum != 0)
		damaged(former, "One is there twice");
	att->attrelid = former->relid;
	att->attnum = attnum;
	att->attname = *DatumGetName(flashback_catalog_value(slot, Anum_pg_attribute_attname));
	att->atttypid = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_attribute_atttypid));
	att->attlen = DatumGetInt16(flashback_catalog_value(slot, Anum_pg_attribute_attlen));
	att->atttypmod = DatumGetInt32(flashback_catalog_value(slot, Anum_pg_attribute_atttypmod));
	att->attndims = DatumGetInt16(flashback_catalog_value(slot, Anum_pg_attribute_attndims));
	att->attbyval = DatumGetBool(flashback_catalog_value(slot, Anum_pg_attribute_attbyval));
	att->attalign = DatumGetChar(flashback_catalog_value(slot, Anum_pg_attribute_attalign));
	att->attstorage = DatumGetChar(flashback_catalog_value(slot, Anum_pg_attribute_attstorage));
	att->attcompression = DatumGetChar(flashback_catalog_value(slot, Anum_pg_attribute_attcompression));
	att->attnotnull = DatumGetBool(flashback_catalog_value(slot, Anum_pg_attribute_attnotnull));
	att->attidentity = DatumGetChar(flashback_catalog_value(slot, Anum_pg_attribute_attidentity));
	att->attgenerated = DatumGetChar(flashback_catalog_value(slot, Anum_pg_attribute_attgenerated));
	att->attisdropped = DatumGetBool(flashback_catalog_value(slot, Anum_pg_attribute_attisdropped));
	att->attcollation = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_attribute_attcollation));
	att->attislocal = true;
	if (!layout_is_possible(att))
		damaged(former, "One has an impossible layout");

	/*
	 * One that has gone since takes its place in a new table as that of its
	 * type
	 */
	if (OidIsValid(att->attcollation) &&
		!SearchSysCacheExists1(COLLOID, ObjectIdGetDatum(att->attcollation)))
		att->attcollation = get_typcollation(att->atttypid);
	missing = slot_getattr(slot, Anum_pg_attribute_attmissingval, &isnull);
	if (!isnull && !att->attisdropped &&
		DatumGetBool(flashback_catalog_value(slot, Anum_pg_attribute_atthasmissing)))
	{
		att->atthasmissing = true;
		take_missing(former, att, missing);
	}
	populate_compact_attribute(former->desc, attnum - 1);
}

/*
 * Makes room for the columns of a relation.
 */
void
flashback_columns_begin(FlashbackFormer *former)
{
	former->desc = CreateTemplateTupleDesc(former->natts);
	for (int i = 0; i < former->natts; i++)
		memset(TupleDescAttr(former->desc, i), 0, sizeof(FormData_pg_attribute));
}

/*
 * Whether all have been taken over.
 */
bool
flashback_columns_are_complete(const FlashbackFormer *former)
{
	for (int i = 0; i < former->natts; i++)
	{
		if (TupleDescAttr(former->desc, i)->attnum == 0)
			return false;
	}
	return true;
}

/*
 * Reads pg_attribute from a file (NULL: the present one).  False if that was
 * not pg_attribute at the moment: then its own rows are missing.
 */
static bool
read_attributes(FlashbackFormers *formers, const FlashbackFile *file, const FlashbackMoment *moment)
{
	Relation	attributes = table_open(AttributeRelationId, AccessShareLock);
	FlashbackScan *scan = flashback_scan_catalog(attributes, file, moment);
	TupleTableSlot *slot = flashback_scan_slot(scan);
	bool		complete = false;

	for (int i = 0; i < formers->n; i++)
		flashback_columns_begin(&formers->items[i]);
	while (flashback_scan_next(scan, slot))
	{
		Oid			relid = DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_attribute_attrelid));
		FlashbackFormer *former;

		if (relid == AttributeRelationId)
			complete = true;
		former = flashback_former_of(formers, relid);
		if (former)
			flashback_columns_take(former, slot);
	}
	ExecDropSingleTupleTableSlot(slot);
	flashback_scan_end(scan);
	table_close(attributes, NoLock);
	return complete;
}

/*
 * Reads the columns that these relations had; false, with the reason, if that
 * cannot be known.
 */
bool
flashback_columns_read(FlashbackFormers *formers, const FlashbackMoment *moment,
					   FlashbackRefusal *refusal)
{
	FlashbackFile file;

	memset(refusal, 0, sizeof(*refusal));
	refusal->sqlerrcode = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
	refusal->nearest_time = DT_NOEND;
	if (!read_attributes(formers, NULL, moment) &&
		!(flashback_mapped_file(AttributeRelationId, moment, &file) &&
		  read_attributes(formers, &file, moment)))
	{
		snprintf(refusal->reason, sizeof(refusal->reason),
				 "pg_attribute was rewritten since the target time");
		snprintf(refusal->detail, sizeof(refusal->detail),
				 "Its file of before is not kept, or cannot be told.");
		return false;
	}
	for (int i = 0; i < formers->n; i++)
	{
		if (!flashback_columns_are_complete(&formers->items[i]))
			damaged(&formers->items[i], "One is missing");
	}
	return true;
}
