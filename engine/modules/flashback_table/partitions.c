/*-------------------------------------------------------------------------
 *
 * partitions.c
 *	  The rows of a table, or of all partitions that it had.
 *
 * Which tables were partitions at the moment is what pg_inherits said then:
 * it is read as of the moment like any other table.  Those that have been
 * detached since count, those attached since do not.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/partitions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/tupconvert.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "executor/executor.h"
#include "flashback_sql.h"
#include "miscadmin.h"
#include "rewrite/rewriteHandler.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* How often progress is reported */
#define REPORT_ROWS 64

struct FlashbackRows
{
	Relation	rel;
	FlashbackMoment moment;
	List	   *leaves;			/* of Oid; NIL: the relation itself */
	int			next_leaf;
	Relation	leaf;			/* that is being read; NULL before the first */
	TupleConversionMap *map;	/* of the leaf to the relation; NULL: same */
	FlashbackScan *scan;
	TupleTableSlot *scanned;
	TupleTableSlot *slot;		/* in the shape of the relation */
	FlashbackCondition *condition;
	uint64		count;			/* of rows that are wanted */

	/* Columns that are computed when a row is read */
	int			ncomputed;
	AttrNumber *computed;
	ExprState **expressions;
	EState	   *estate;
};

/*
 * The tables below a partitioned table, at any depth, at the moment; those
 * that were partitioned themselves are among them.
 */
static List *
descendants_then(Oid parent, const FlashbackMoment *moment)
{
	Relation	inherits = table_open(InheritsRelationId, AccessShareLock);
	FlashbackScan *scan = flashback_scan_begin(inherits, moment);
	TupleTableSlot *slot = flashback_scan_slot(scan);
	List	   *children = NIL;
	List	   *parents = NIL;
	List	   *descendants = NIL;
	List	   *level = list_make1_oid(parent);

	while (flashback_scan_next(scan, slot))
	{
		bool		isnull;

		/* DETACH CONCURRENTLY is half way: it is none any more */
		if (DatumGetBool(slot_getattr(slot, Anum_pg_inherits_inhdetachpending, &isnull)))
			continue;
		children = lappend_oid(children, DatumGetObjectId(slot_getattr(slot, Anum_pg_inherits_inhrelid, &isnull)));
		parents = lappend_oid(parents, DatumGetObjectId(slot_getattr(slot, Anum_pg_inherits_inhparent, &isnull)));
	}
	ExecDropSingleTupleTableSlot(slot);
	flashback_scan_end(scan);
	table_close(inherits, NoLock);

	while (level != NIL)
	{
		List	   *below = NIL;
		ListCell   *child_cell;
		ListCell   *parent_cell;

		forboth(child_cell, children, parent_cell, parents)
		{
			if (list_member_oid(level, lfirst_oid(parent_cell)) &&
				!list_member_oid(descendants, lfirst_oid(child_cell)))
			{
				below = lappend_oid(below, lfirst_oid(child_cell));
				descendants = lappend_oid(descendants, lfirst_oid(child_cell));
			}
		}
		level = below;
	}
	return descendants;
}

/*
 * Says how the partitions differ from those that the table has now.
 */
static void
report_differences(Relation rel, List *detached, int attached, int dropped)
{
	const char *name = RelationGetRelationName(rel);

	foreach_oid(relid, detached)
	{
		ereport(NOTICE,
				(errmsg("table \"%s\" has been detached from \"%s\" since then",
						get_rel_name(relid), name),
				 errdetail("Its rows are included.")));
	}
	if (attached > 0)
		ereport(NOTICE,
				(errmsg_plural("%d table has been attached to \"%s\" since then",
							   "%d tables have been attached to \"%s\" since then",
							   attached, attached, name),
				 errdetail("Rows that were there then are not included.")));
	if (dropped > 0)
		ereport(WARNING,
				(errmsg_plural("%d partition of table \"%s\" has been dropped since then",
							   "%d partitions of table \"%s\" have been dropped since then",
							   dropped, dropped, name),
				 errdetail("Rows that were there are missing.")));
}

/*
 * Whether it can be known which partitions a table had.
 */
bool
flashback_partitions_are_known(Relation rel, const FlashbackMoment *moment,
							   FlashbackRefusal *refusal)
{
	Relation	inherits;
	int			natts;
	bool		result;

	if (!flashback_relation_is_same(rel, moment, &natts, refusal))
		return false;
	inherits = table_open(InheritsRelationId, AccessShareLock);
	result = flashback_relation_is_same(inherits, moment, &natts, refusal);
	table_close(inherits, NoLock);
	return result;
}

/*
 * The partitions that a table had at the moment and that are still there,
 * locked.  If the caller reads them as the owner of the table, they must be
 * the caller's as well: one that has been detached may belong to somebody else
 * now.  For others it is undecided what they may see if the partitions have
 * changed.
 */
List *
flashback_partitions_then(Relation rel, const FlashbackMoment *moment, bool owned, bool report)
{
	FlashbackRefusal refusal;
	List	   *then;
	List	   *now;
	List	   *leaves = NIL;
	List	   *detached = NIL;
	int			attached = 0;
	int			dropped = 0;

	if (!flashback_partitions_are_known(rel, moment, &refusal))
		flashback_refuse(&refusal);
	then = descendants_then(RelationGetRelid(rel), moment);
	now = find_all_inheritors(RelationGetRelid(rel), AccessShareLock, NULL);
	foreach_oid(relid, then)
	{
		if (!list_member_oid(now, relid))
		{
			LockRelationOid(relid, AccessShareLock);
			if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
			{
				UnlockRelationOid(relid, AccessShareLock);
				dropped++;
				continue;
			}
			detached = lappend_oid(detached, relid);
		}
		if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
			leaves = lappend_oid(leaves, relid);
	}
	foreach_oid(relid, now)
	{
		if (relid != RelationGetRelid(rel) && !list_member_oid(then, relid))
			attached++;
	}

	if (owned)
		flashback_check_owners(leaves);
	else if (detached != NIL || attached > 0 || dropped > 0)
		flashback_refuse_undecided(rel, "Its partitions have changed since.");
	if (report)
		report_differences(rel, detached, attached, dropped);
	list_free(then);
	list_free(now);
	list_free(detached);
	return leaves;
}

/*
 * Prepares the columns that a table computes when a row is read.  Their
 * expressions use nothing that users have made, so whoever reads may run them.
 */
static void
prepare_computed(FlashbackRows *rows)
{
	TupleDesc	desc = RelationGetDescr(rows->rel);
	MemoryContext old_context;

	if (desc->constr == NULL || !desc->constr->has_generated_virtual)
		return;
	rows->estate = CreateExecutorState();
	rows->computed = palloc_array(AttrNumber, desc->natts);
	rows->expressions = palloc_array(ExprState *, desc->natts);
	old_context = MemoryContextSwitchTo(rows->estate->es_query_cxt);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || att->attgenerated != ATTRIBUTE_GENERATED_VIRTUAL)
			continue;
		rows->computed[rows->ncomputed] = i + 1;
		rows->expressions[rows->ncomputed++] =
			ExecPrepareExpr((Expr *) build_generation_expression(rows->rel, i + 1), rows->estate);
	}
	MemoryContextSwitchTo(old_context);
}

static void
compute_columns(FlashbackRows *rows, TupleTableSlot *slot)
{
	ExprContext *econtext;

	if (rows->ncomputed == 0)
		return;
	econtext = GetPerTupleExprContext(rows->estate);
	ResetExprContext(econtext);
	econtext->ecxt_scantuple = slot;
	for (int i = 0; i < rows->ncomputed; i++)
	{
		int			column = rows->computed[i] - 1;

		/* None depends on another: that is not allowed */
		slot->tts_values[column] =
			ExecEvalExprSwitchContext(rows->expressions[i], econtext, &slot->tts_isnull[column]);
	}
}

/*
 * Begins to read a table, or all partitions of one, as it was at a time, and
 * to report progress, which the caller ends.  The caller has checked that the
 * current user may see all rows, or (not owned) shows what the user may see.
 */
FlashbackRows *
flashback_rows_begin(Relation rel, TimestampTz time, const char *condition, bool owned)
{
	FlashbackRows *rows = palloc0(sizeof(FlashbackRows));

	/* What is wrong with a condition is reported before anything is read */
	rows->condition = flashback_condition_create(rel, condition);
	flashback_progress_begin(RelationGetRelid(rel), time);
	flashback_resolve(time, &rows->moment);
	rows->rel = rel;
	rows->slot = MakeSingleTupleTableSlot(RelationGetDescr(rel), &TTSOpsVirtual);
	prepare_computed(rows);

	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		rows->leaves = flashback_partitions_then(rel, &rows->moment, owned, true);
	else
	{
		rows->leaves = list_make1_oid(RelationGetRelid(rel));
		if (rel->rd_rel->relhassubclass && has_subclass(RelationGetRelid(rel)))
			ereport(NOTICE,
					(errmsg("tables that inherit from \"%s\" are not flashed back with it",
							RelationGetRelationName(rel))));
	}
	return rows;
}

/*
 * What the time has been resolved to.
 */
const FlashbackMoment *
flashback_rows_moment(const FlashbackRows *rows)
{
	return &rows->moment;
}

static void
end_leaf(FlashbackRows *rows)
{
	flashback_scan_end(rows->scan);
	ExecDropSingleTupleTableSlot(rows->scanned);
	if (rows->map)
		free_conversion_map(rows->map);
	table_close(rows->leaf, NoLock);
	rows->leaf = NULL;
}

/*
 * Goes on to the next leaf; false after the last.
 */
static bool
next_leaf(FlashbackRows *rows)
{
	FlashbackRefusal refusal;

	if (rows->next_leaf >= list_length(rows->leaves))
		return false;
	flashback_progress_partition(rows->next_leaf, list_length(rows->leaves));
	rows->leaf = table_open(list_nth_oid(rows->leaves, rows->next_leaf++), AccessShareLock);
	if (!flashback_kind_is_possible(rows->leaf, &refusal))
		flashback_refuse(&refusal);
	rows->map = NULL;
	if (RelationGetRelid(rows->leaf) != RelationGetRelid(rows->rel))
		rows->map = convert_tuples_by_name(RelationGetDescr(rows->leaf), RelationGetDescr(rows->rel));
	rows->scan = flashback_scan_begin(rows->leaf, &rows->moment);
	rows->scanned = flashback_scan_slot(rows->scan);
	return true;
}

/*
 * The next row that is wanted, in the shape of the relation; false at the end,
 * and only then all of them are to be believed.  Without a slot rows are only
 * counted, which costs less where no condition looks at them.
 */
bool
flashback_rows_next(FlashbackRows *rows, TupleTableSlot **slot)
{
	bool		shapeless = (slot == NULL && rows->condition == NULL);

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (rows->leaf == NULL && !next_leaf(rows))
		{
			flashback_progress_rows(rows->count);
			return false;
		}

		if (!flashback_scan_next(rows->scan, shapeless ? NULL : rows->scanned))
		{
			end_leaf(rows);
			continue;
		}
		if (!shapeless)
		{
			TupleTableSlot *row = rows->scanned;

			if (rows->map)
				row = execute_attr_map_slot(rows->map->attrMap, rows->scanned, rows->slot);
			else if (rows->ncomputed > 0)
				row = ExecCopySlot(rows->slot, rows->scanned);
			compute_columns(rows, row);
			if (!flashback_condition_holds(rows->condition, row))
				continue;
			if (slot)
				*slot = row;
		}
		if (++rows->count % REPORT_ROWS == 0)
			flashback_progress_rows(rows->count);
		return true;
	}
}

void
flashback_rows_end(FlashbackRows *rows)
{
	if (rows->leaf)
		end_leaf(rows);
	flashback_condition_free(rows->condition);
	if (rows->estate)
		FreeExecutorState(rows->estate);
	ExecDropSingleTupleTableSlot(rows->slot);
	list_free(rows->leaves);
	pfree(rows);
}
