/*-------------------------------------------------------------------------
 *
 * foreign_keys.c
 *	  Whether the foreign keys of a table, and those that refer to it, hold
 *	  for rows that no trigger has seen.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/foreign_keys.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "flashback_console.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/*
 * Checks row by row, as if each had been inserted: for whoever may not read
 * the other table, to whose owner the core switches for each row.
 */
static void
check_rows(Relation rel, Trigger *trigger)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	FlashbackPresent *present = flashback_present_begin(rel, snapshot, AccessShareLock);
	MemoryContext row_context = AllocSetContextCreate(CurrentMemoryContext, "flashback row",
													  ALLOCSET_SMALL_SIZES);
	TupleTableSlot *slot;

	while (flashback_present_next(present, &slot))
	{
		MemoryContext old_context = MemoryContextSwitchTo(row_context);

		LOCAL_FCINFO(fcinfo, 0);
		TriggerData trigdata = {.type = T_TriggerData};

		MemSet(fcinfo, 0, SizeForFunctionCallInfo(0));
		trigdata.tg_event = TRIGGER_EVENT_INSERT | TRIGGER_EVENT_ROW;
		trigdata.tg_relation = rel;
		trigdata.tg_trigtuple = ExecFetchSlotHeapTuple(slot, false, NULL);
		trigdata.tg_trigslot = slot;
		trigdata.tg_trigger = trigger;
		fcinfo->context = (Node *) &trigdata;
		RI_FKey_check_ins(fcinfo);
		MemoryContextSwitchTo(old_context);
		MemoryContextReset(row_context);
	}
	MemoryContextDelete(row_context);
	flashback_present_end(present);
	UnregisterSnapshot(snapshot);
}

/*
 * Fails if a foreign key does not hold.
 */
static void
check_foreign_key(Oid constraintid)
{
	HeapTuple	tuple = SearchSysCacheCopy1(CONSTROID, ObjectIdGetDatum(constraintid));
	Form_pg_constraint form;
	Trigger		trigger = {0};
	Relation	referencing;
	Relation	referenced;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for constraint %u", constraintid);
	form = (Form_pg_constraint) GETSTRUCT(tuple);
	if (!form->convalidated || !form->conenforced)
		return;

	referencing = relation_open(form->conrelid, RowShareLock);
	referenced = relation_open(form->confrelid, RowShareLock);
	trigger.tgname = NameStr(form->conname);
	trigger.tgenabled = TRIGGER_FIRES_ON_ORIGIN;
	trigger.tgisinternal = true;
	trigger.tgconstrrelid = form->confrelid;
	trigger.tgconstrindid = form->conindid;
	trigger.tgconstraint = constraintid;
	if (form->conperiod || !RI_Initial_Check(&trigger, referencing, referenced))
	{
		if (referencing->rd_rel->relkind != RELKIND_RELATION)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("foreign key \"%s\" of table \"%s\" cannot be checked",
							NameStr(form->conname), RelationGetRelationName(referencing)),
					 errdetail("The owner may not select from it and the table that it refers to.")));
		check_rows(referencing, &trigger);
	}
	relation_close(referenced, NoLock);
	relation_close(referencing, NoLock);
}

/*
 * The constraint that is checked for one: a key that refers to a partition is
 * a part of one that refers to the whole table.
 */
static Oid
whole_constraint(Oid constraintid, Oid parentid)
{
	while (OidIsValid(parentid))
	{
		HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(parentid));

		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for constraint %u", parentid);
		constraintid = parentid;
		parentid = ((Form_pg_constraint) GETSTRUCT(tuple))->conparentid;
		ReleaseSysCache(tuple);
	}
	return constraintid;
}

/*
 * Fails if a foreign key of the table, or one that refers to it, does not hold.
 */
void
flashback_check_foreign_keys(Oid relid)
{
	Relation	constraint = table_open(ConstraintRelationId, AccessShareLock);
	List	   *found = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_constraint_contype, BTEqualStrategyNumber, F_CHAREQ,
				CharGetDatum(CONSTRAINT_FOREIGN));
	scan = systable_beginscan(constraint, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);

		if (form->conrelid == relid || form->confrelid == relid)
			found = list_append_unique_oid(found, whole_constraint(form->oid, form->conparentid));
	}
	systable_endscan(scan);
	table_close(constraint, AccessShareLock);
	foreach_oid(constraintid, found)
		check_foreign_key(constraintid);
}
