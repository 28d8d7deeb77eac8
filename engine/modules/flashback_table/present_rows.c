/*-------------------------------------------------------------------------
 *
 * present_rows.c
 *	  The rows that a table, or all partitions of one, has now.
 *
 * They are read without SQL, so that no policy hides any: whoever owns a
 * table sees all its rows.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/present_rows.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/tableam.h"
#include "access/tupconvert.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "executor/executor.h"
#include "flashback_console.h"
#include "flashback_sql.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

struct FlashbackPresent
{
	Relation	rel;
	Snapshot	snapshot;
	List	   *leaves;			/* of Oid */
	int			next_leaf;
	Relation	leaf;			/* that is being read; NULL before the first */
	TableScanDesc scan;
	TupleConversionMap *map;	/* of the leaf to the relation; NULL: same */
	TupleTableSlot *scanned;
	TupleTableSlot *slot;		/* in the shape of the relation */
};

/*
 * Begins to read; partitions are locked in lockmode, and stay locked.
 */
FlashbackPresent *
flashback_present_begin(Relation rel, Snapshot snapshot, LOCKMODE lockmode)
{
	FlashbackPresent *present = palloc0(sizeof(FlashbackPresent));

	present->rel = rel;
	present->snapshot = snapshot;
	present->slot = MakeSingleTupleTableSlot(RelationGetDescr(rel), &TTSOpsVirtual);
	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
	{
		present->leaves = list_make1_oid(RelationGetRelid(rel));
		return present;
	}
	foreach_oid(relid, find_all_inheritors(RelationGetRelid(rel), lockmode, NULL))
	{
		if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
			present->leaves = lappend_oid(present->leaves, relid);
	}
	return present;
}

static void
end_leaf(FlashbackPresent *present)
{
	table_endscan(present->scan);
	ExecDropSingleTupleTableSlot(present->scanned);
	if (present->map)
		free_conversion_map(present->map);
	relation_close(present->leaf, NoLock);
	present->leaf = NULL;
}

static bool
next_leaf(FlashbackPresent *present)
{
	if (present->next_leaf >= list_length(present->leaves))
		return false;
	present->leaf = relation_open(list_nth_oid(present->leaves, present->next_leaf++),
								  AccessShareLock);
	if (!RELKIND_HAS_TABLE_AM(present->leaf->rd_rel->relkind))
	{
		FlashbackRefusal refusal = {.sqlerrcode = ERRCODE_WRONG_OBJECT_TYPE};

		snprintf(refusal.reason, sizeof(refusal.reason), "\"%s\" is not a table",
				 RelationGetRelationName(present->leaf));
		flashback_refuse(&refusal);
	}
	present->map = NULL;
	if (RelationGetRelid(present->leaf) != RelationGetRelid(present->rel))
		present->map = convert_tuples_by_name(RelationGetDescr(present->leaf),
											  RelationGetDescr(present->rel));
	present->scanned = table_slot_create(present->leaf, NULL);
	present->scan = table_beginscan_strat(present->leaf, present->snapshot, 0, NULL, true, false);
	return true;
}

/*
 * The next row, in the shape of the relation; its slot says which table has it
 * and where.
 */
bool
flashback_present_next(FlashbackPresent *present, TupleTableSlot **slot)
{
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (present->leaf == NULL && !next_leaf(present))
			return false;
		if (table_scan_getnextslot(present->scan, ForwardScanDirection, present->scanned))
			break;
		end_leaf(present);
	}
	*slot = present->scanned;
	if (present->map)
	{
		*slot = execute_attr_map_slot(present->map->attrMap, present->scanned, present->slot);
		(*slot)->tts_tid = present->scanned->tts_tid;
		(*slot)->tts_tableOid = present->scanned->tts_tableOid;
	}
	return true;
}

void
flashback_present_end(FlashbackPresent *present)
{
	if (present->leaf)
		end_leaf(present);
	ExecDropSingleTupleTableSlot(present->slot);
	list_free(present->leaves);
	pfree(present);
}

static bool
next_present(FlashbackRowSource *source, TupleTableSlot **slot)
{
	return flashback_present_next(source->present, slot);
}

/*
 * The rows that a relation has now as a source.
 */
void
flashback_present_source(FlashbackRowSource *source, Relation rel, Snapshot snapshot, LOCKMODE lockmode)
{
	memset(source, 0, sizeof(*source));
	source->next = next_present;
	source->present = flashback_present_begin(rel, snapshot, lockmode);
}

static bool
next_of_result(FlashbackRowSource *source, TupleTableSlot **slot)
{
	TupleTableSlot *shaped = source->shaped;

	ExecClearTuple(shaped);
	if (!flashback_present_next(source->present, slot))
		return false;
	slot_getallattrs(*slot);
	for (int i = 0; i < shaped->tts_tupleDescriptor->natts; i++)
	{
		AttrNumber	from = source->map[i];

		shaped->tts_isnull[i] = (from == 0 || (*slot)->tts_isnull[from - 1]);
		shaped->tts_values[i] = shaped->tts_isnull[i] ? (Datum) 0 : (*slot)->tts_values[from - 1];
	}
	*slot = ExecStoreVirtualTuple(shaped);
	return true;
}

/*
 * The rows of a result in the shape of its table; map has its column for each
 * of the table.
 */
void
flashback_result_source(FlashbackRowSource *source, Relation result, Relation rel,
						const AttrNumber *map, Snapshot snapshot)
{
	memset(source, 0, sizeof(*source));
	source->next = next_of_result;
	source->present = flashback_present_begin(result, snapshot, AccessShareLock);
	source->map = map;
	source->shaped = MakeSingleTupleTableSlot(RelationGetDescr(rel), &TTSOpsVirtual);
}

static bool
next_of_then(FlashbackRowSource *source, TupleTableSlot **slot)
{
	return flashback_rows_next(source->then, slot);
}

/*
 * The rows of a moment as a source.
 */
void
flashback_then_source(FlashbackRowSource *source, FlashbackRows *then)
{
	memset(source, 0, sizeof(*source));
	source->next = next_of_then;
	source->then = then;
}

static bool
give(TupleTableSlot *stored, FlashbackNext next, TupleTableSlot **slot)
{
	*slot = next == FLASHBACK_NEXT_ROW ? stored : NULL;
	return next != FLASHBACK_NEXT_END;
}

static bool
next_then_of_pair(FlashbackRowSource *source, TupleTableSlot **slot)
{
	return give(source->shaped, flashback_scan_next_then(source->scan, source->shaped), slot);
}

static bool
next_now_of_pair(FlashbackRowSource *source, TupleTableSlot **slot)
{
	return give(source->shaped, flashback_scan_next_now(source->scan, source->shaped), slot);
}

/*
 * Both sides of a table in one pass, without the rows that are the very same;
 * false, and nothing has been read, if they are not in one file.
 */
bool
flashback_paired_sources(FlashbackRowSource *then, FlashbackRowSource *now,
						 FlashbackRows *rows, Snapshot snapshot)
{
	FlashbackScan *scan = flashback_rows_take_scan(rows);

	if (scan == NULL || !flashback_scan_pair(scan, snapshot))
		return false;
	memset(then, 0, sizeof(*then));
	then->next = next_then_of_pair;
	then->then = rows;
	memset(now, 0, sizeof(*now));
	now->next = next_now_of_pair;
	then->scan = now->scan = scan;
	then->shaped = flashback_scan_slot(scan);
	now->shaped = flashback_scan_slot(scan);
	return true;
}

/*
 * How many rows of then there were, those left out included.
 */
int64
flashback_source_then(const FlashbackRowSource *then)
{
	return flashback_scan_then(then->scan);
}

/*
 * How many rows the sources have left out, after their end.
 */
int64
flashback_source_same(const FlashbackRowSource *then)
{
	return then->scan ? flashback_scan_same(then->scan) : 0;
}

void
flashback_source_end(FlashbackRowSource *source)
{
	if (source->shaped)
		ExecDropSingleTupleTableSlot(source->shaped);
	if (source->present)
		flashback_present_end(source->present);
	if (source->then)
	{
		flashback_rows_end(source->then);
		flashback_progress_end();
	}
}
