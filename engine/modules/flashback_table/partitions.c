/*-------------------------------------------------------------------------
 *
 * partitions.c
 *	  The rows of a table, or of all partitions that it had.
 *
 * Which tables were partitions at the moment is what pg_inherits said then:
 * it is read as of the moment like any other table.  Those that have been
 * detached or dropped since count, those attached since do not.
 *
 * Rows have the present columns of the table, unless these had other types
 * then: then they have the columns of then, if the caller can take them.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/partitions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/attmap.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "executor/executor.h"
#include "flashback_console.h"
#include "flashback_internal.h"
#include "flashback_sql.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* How often progress is reported */
#define REPORT_ROWS 64

/* The table itself, or a partition that it had */
typedef struct Leaf
{
	FlashbackFormer *former;
	bool		exists;			/* else it has been dropped since */
} Leaf;

/* A table, and what is read for it */
typedef struct Tree
{
	FlashbackFormers *formers;
	FlashbackFormer *root;
	List	   *leaves;			/* of Leaf */
	bool		then;			/* rows have the columns of then */
} Tree;

struct FlashbackRows
{
	Relation	rel;			/* NULL: it has been dropped since */
	bool		opened;			/* by us */
	TupleDesc	desc;			/* of the rows */
	FlashbackMoment moment;
	Tree		tree;
	int			next_leaf;
	Relation	leaf;			/* that is being read, if it exists */
	AttrMap    *map;			/* of the leaf to the relation; NULL: same */
	FlashbackScan *scan;		/* NULL before the first leaf */
	TupleTableSlot *scanned;
	TupleTableSlot *slot;		/* in the shape of the relation */
	FlashbackCondition *condition;
	uint64		count;			/* of rows that are wanted */
	FlashbackComputed *computed;
};

/*
 * The tables below a partitioned table, at any depth, at the moment; those
 * that were partitioned themselves are among them.
 */
static List *
descendants_then(Oid parent, const FlashbackFormer *inherits_then, Relation inherits,
				 const FlashbackMoment *moment)
{
	FlashbackScan *scan = flashback_scan_catalog(inherits, &inherits_then->file, moment);
	TupleTableSlot *slot = flashback_scan_slot(scan);
	List	   *children = NIL;
	List	   *parents = NIL;
	List	   *descendants = NIL;
	List	   *level = list_make1_oid(parent);

	while (flashback_scan_next(scan, slot))
	{
		/* DETACH CONCURRENTLY is half way: it is none any more */
		if (DatumGetBool(flashback_catalog_value(slot, Anum_pg_inherits_inhdetachpending)))
			continue;
		children = lappend_oid(children, DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_inherits_inhrelid)));
		parents = lappend_oid(parents, DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_inherits_inhparent)));
	}
	ExecDropSingleTupleTableSlot(slot);
	flashback_scan_end(scan);

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
 * The same, if pg_inherits of then can be read; false, with the reason, if not.
 */
bool
flashback_descendants(Oid parent, const FlashbackMoment *moment, List **descendants,
					  FlashbackRefusal *refusal)
{
	FlashbackFormers *formers = flashback_formers_read(list_make1_oid(InheritsRelationId), moment, refusal);
	FlashbackFormer *inherits_then;
	Relation	inherits;
	bool		found;

	*descendants = NIL;
	if (formers == NULL)
		return false;
	inherits_then = flashback_former_of(formers, InheritsRelationId);
	inherits = table_open(InheritsRelationId, AccessShareLock);
	found = flashback_former_find_files(inherits_then, inherits, moment, refusal);
	if (found)
		*descendants = descendants_then(parent, inherits_then, inherits, moment);
	table_close(inherits, NoLock);
	return found;
}

/*
 * Says how the partitions differ from those that the table has now.
 */
static void
report_differences(const char *name, bool exists, List *detached, int attached, int dropped, int lost)
{
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
	if (dropped > 0 && exists)
		ereport(NOTICE,
				(errmsg_plural("%d partition of table \"%s\" has been dropped since then",
							   "%d partitions of table \"%s\" have been dropped since then",
							   dropped, dropped, name),
				 errdetail("Rows that were there are included.")));
	if (lost > 0)
		ereport(WARNING,
				(errmsg_plural("%d partition of table \"%s\" has been dropped since then",
							   "%d partitions of table \"%s\" have been dropped since then",
							   lost, lost, name),
				 errdetail("Rows that were there are missing.")));
}

/*
 * Whether a relation that was there at the moment still is; then it is locked.
 */
static bool
lock_if_exists(Oid relid)
{
	LockRelationOid(relid, AccessShareLock);
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		return true;
	UnlockRelationOid(relid, AccessShareLock);
	return false;
}

static void
add_leaf(Tree *tree, FlashbackFormer *former, bool exists)
{
	Leaf	   *leaf = palloc(sizeof(Leaf));

	leaf->former = former;
	leaf->exists = exists;
	tree->leaves = lappend(tree->leaves, leaf);
}

/*
 * Finds the files of a partition; false, with the reason, if it cannot be read.
 */
static bool
find_leaf_files(FlashbackFormer *former, Oid relid, bool exists, const FlashbackMoment *moment,
				FlashbackRefusal *refusal)
{
	Relation	leaf;
	bool		result;

	if (!exists)
		return flashback_former_find_files(former, NULL, moment, refusal);
	leaf = relation_open(relid, AccessShareLock);
	result = flashback_kind_is_possible(leaf, refusal) &&
		flashback_former_find_files(former, leaf, moment, refusal);
	relation_close(leaf, NoLock);
	return result;
}

/*
 * The partitions that a table had at the moment, locked if they are still
 * there.  If the caller reads them as the owner of the table, they must be the
 * caller's as well: one that has been detached may belong to somebody else
 * now, and one that has been dropped may have belonged to somebody else.  For
 * others it is undecided what they may see if the partitions have changed.
 */
static bool
read_partitions(Relation rel, const FlashbackMoment *moment, int flags, Tree *tree,
				FlashbackRefusal *refusal)
{
	Oid			relid = tree->root->relid;
	Relation	inherits = table_open(InheritsRelationId, AccessShareLock);
	FlashbackFormer *inherits_then = flashback_former_of(tree->formers, InheritsRelationId);
	List	   *then;
	List	   *now = NIL;
	List	   *existing = NIL;
	List	   *detached = NIL;
	int			attached = 0;
	int			dropped = 0;
	int			lost = 0;

	if (!flashback_former_find_files(inherits_then, inherits, moment, refusal))
		return false;
	then = descendants_then(relid, inherits_then, inherits, moment);
	table_close(inherits, NoLock);
	if (rel)
		now = find_all_inheritors(relid, AccessShareLock, NULL);
	foreach_oid(child, now)
	{
		if (child != relid && !list_member_oid(then, child))
			attached++;
	}

	tree->formers = flashback_formers_read(lappend_oid(list_copy(then), relid), moment, refusal);
	if (tree->formers == NULL)
		return false;
	tree->root = flashback_former_of(tree->formers, relid);
	foreach_oid(child, then)
	{
		FlashbackFormer *former = flashback_former_of(tree->formers, child);
		bool		exists = list_member_oid(now, child) || lock_if_exists(child);

		if (exists && !list_member_oid(now, child))
			detached = lappend_oid(detached, child);
		if (former && former->kind == RELKIND_PARTITIONED_TABLE)
			continue;
		if (exists)
			existing = lappend_oid(existing, child);
		if (!exists && (former == NULL || !has_privs_of_role(GetUserId(), former->owner) ||
						!find_leaf_files(former, child, false, moment, refusal)))
		{
			lost++;
			continue;
		}
		if (exists && !find_leaf_files(former, child, true, moment, refusal))
			return false;
		dropped += !exists;
		add_leaf(tree, former, exists);
	}

	if (flags & FLASHBACK_OWNED)
		flashback_check_owners(existing);
	else if (detached != NIL || attached > 0 || dropped > 0 || lost > 0)
		flashback_refuse_undecided(rel, "Its partitions have changed since.");
	if (flags & FLASHBACK_REPORT)
		report_differences(NameStr(tree->root->name), rel != NULL, detached, attached, dropped, lost);
	list_free(existing);
	list_free(detached);
	return true;
}

/*
 * Reads the columns of then, if a file of then is not the present one, and
 * decides whether rows can have the present ones.
 */
static bool
read_columns(Relation rel, const FlashbackMoment *moment, Tree *tree, FlashbackRefusal *refusal)
{
	bool		needed = (rel == NULL);

	foreach_ptr(Leaf, leaf, tree->leaves)
		needed |= !leaf->exists || leaf->former->file.kept;
	tree->then = false;
	if (!needed)
		return true;
	if (!flashback_columns_read(tree->formers, moment, refusal))
		return false;
	tree->then = (rel == NULL || !flashback_columns_fit(tree->root, RelationGetDescr(rel)));
	if (tree->then && !flashback_columns_are_usable(tree->root, moment, refusal))
		return false;
	foreach_ptr(Leaf, leaf, tree->leaves)
	{
		if (leaf->former != tree->root && (!leaf->exists || leaf->former->file.kept || tree->then) &&
			!flashback_columns_are_usable(leaf->former, moment, refusal))
			return false;
	}
	return tree->then || !tree->root->file.kept ||
		flashback_columns_are_usable(tree->root, moment, refusal);
}

/*
 * What a relation, and each partition that it had, was at a moment; false,
 * with the reason, if that cannot be read.  The relation is locked, or NULL if
 * it has been dropped since.
 */
static bool
read_tree(Relation rel, Oid relid, const FlashbackMoment *moment, int flags, Tree *tree,
		  FlashbackRefusal *refusal)
{
	memset(tree, 0, sizeof(*tree));
	tree->formers = flashback_formers_read(list_make2_oid(relid, InheritsRelationId), moment, refusal);
	if (tree->formers == NULL)
		return false;
	tree->root = flashback_former_of(tree->formers, relid);
	if (rel == NULL)
		flashback_check_former_owner(relid, tree->root);
	if (!flashback_former_find_files(tree->root, rel, moment, refusal))
		return false;
	if (tree->root->kind != RELKIND_PARTITIONED_TABLE)
		add_leaf(tree, tree->root, rel != NULL);
	else if (!read_partitions(rel, moment, flags, tree, refusal))
		return false;
	return read_columns(rel, moment, tree, refusal);
}

/*
 * Whether a table of the caller's can be read as of a moment, as the command
 * would, and how many pages that reads; if not, the reason.
 */
bool
flashback_is_possible(Relation rel, const FlashbackMoment *moment, int64 *pages,
					  FlashbackRefusal *refusal)
{
	Tree		tree;
	bool		possible = read_tree(rel, RelationGetRelid(rel), moment, FLASHBACK_OWNED, &tree, refusal);

	*pages = 0;
	foreach_ptr(Leaf, leaf, tree.leaves)
		* pages += (int64) leaf->former->file.nblocks + leaf->former->toast.nblocks;
	return possible;
}

/*
 * The rows have been found: makes ready to read them.
 */
static void
prepare(FlashbackRows *rows)
{
	rows->desc = rows->tree.then ? rows->tree.root->desc : RelationGetDescr(rows->rel);
	rows->slot = MakeSingleTupleTableSlot(rows->desc, &TTSOpsVirtual);
	/* Expressions of then are not evaluated */
	if (rows->rel && !rows->tree.then)
		rows->computed = flashback_computed_create(rows->rel);
}

/*
 * Begins to read a table, or all partitions of one, as it was at a time, and
 * to report progress, which the caller ends.  The caller has checked that the
 * current user may see all rows, or (not FLASHBACK_OWNED) shows what the user
 * may see.  With FLASHBACK_THEN rows may have the columns of then, and if so
 * the caller looks at the condition.
 */
FlashbackRows *
flashback_rows_begin(Relation rel, TimestampTz time, const char *condition, int flags)
{
	FlashbackRows *rows = palloc0(sizeof(FlashbackRows));
	FlashbackRefusal refusal;

	/*
	 * What is wrong with a condition is reported before anything is read,
	 * unless it may be one on other columns.
	 */
	if (!(flags & FLASHBACK_THEN))
		rows->condition = flashback_condition_create(rel, condition);
	flashback_progress_begin(RelationGetRelid(rel), time);
	flashback_resolve(time, &rows->moment);
	rows->rel = rel;
	if (!read_tree(rel, RelationGetRelid(rel), &rows->moment, flags | FLASHBACK_REPORT, &rows->tree, &refusal))
		flashback_refuse(&refusal);
	if (rows->tree.then && !(flags & FLASHBACK_THEN))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("columns of table \"%s\" had other types at the target time",
						RelationGetRelationName(rel)),
				 errhint("Use FLASHBACK TABLE, which makes a table with the columns of then.")));
	if ((flags & FLASHBACK_THEN) && !rows->tree.then)
		rows->condition = flashback_condition_create(rel, condition);
	prepare(rows);
	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE &&
		rel->rd_rel->relhassubclass && has_subclass(RelationGetRelid(rel)))
		ereport(NOTICE,
				(errmsg("tables that inherit from \"%s\" are not flashed back with it",
						RelationGetRelationName(rel))));
	return rows;
}

/*
 * Begins to read a table as it was before a commit, which may have dropped it;
 * the rows may have the columns of then.  Its owner, or the one that it had if
 * there is no such table any more, must be the caller's.
 */
FlashbackRows *
flashback_rows_begin_before(Oid relid, XLogRecPtr commit_lsn)
{
	FlashbackRows *rows = palloc0(sizeof(FlashbackRows));
	FlashbackRefusal refusal;
	FlashbackCommit commit;

	if (lock_if_exists(relid))
	{
		rows->rel = relation_open(relid, NoLock);
		rows->opened = true;
		flashback_check_owners(list_make1_oid(relid));
		if (!flashback_kind_is_possible(rows->rel, &refusal))
			flashback_refuse(&refusal);
	}
	if (!flashback_try_resolve_before(commit_lsn, &rows->moment, &commit, &refusal))
		flashback_refuse(&refusal);
	flashback_progress_begin(relid, rows->moment.time);
	if (!read_tree(rows->rel, relid, &rows->moment,
				   FLASHBACK_OWNED | FLASHBACK_THEN | FLASHBACK_REPORT, &rows->tree, &refusal))
		flashback_refuse(&refusal);
	prepare(rows);
	return rows;
}

/*
 * The relation, if it still exists.
 */
Relation
flashback_rows_relation(const FlashbackRows *rows)
{
	return rows->rel;
}

/*
 * What the relation was then.
 */
const FlashbackFormer *
flashback_rows_former(const FlashbackRows *rows)
{
	return rows->tree.root;
}

/*
 * The columns of the rows, and whether they are those of then.
 */
TupleDesc
flashback_rows_columns(const FlashbackRows *rows, bool *then)
{
	*then = rows->tree.then;
	return rows->desc;
}

/*
 * What the time has been resolved to.
 */
const FlashbackMoment *
flashback_rows_moment(const FlashbackRows *rows)
{
	return &rows->moment;
}

/*
 * All rows have been read: they do not count if one of the tables that they are
 * from was purged meanwhile, also one that has been read to its end before.
 */
static void
check_purged(const FlashbackRows *rows)
{
	const FlashbackFormer *purged = NULL;
	FlashbackRefusal refusal;

	if (!flashback_may_read(rows->tree.root, &rows->moment.point))
		purged = rows->tree.root;
	foreach_ptr(Leaf, leaf, rows->tree.leaves)
	{
		if (!flashback_may_read(leaf->former, &rows->moment.point))
			purged = leaf->former;
	}
	if (purged == NULL)
		return;
	flashback_refuse_purged(purged, NameStr(purged->name), &refusal);
	flashback_refuse(&refusal);
}

static void
end_leaf(FlashbackRows *rows)
{
	flashback_scan_end(rows->scan);
	rows->scan = NULL;
	ExecDropSingleTupleTableSlot(rows->scanned);
	if (rows->map)
		free_attrmap(rows->map);
	if (rows->leaf)
		table_close(rows->leaf, NoLock);
	rows->leaf = NULL;
}

/*
 * Which column of a partition, as it was, is which of the table's; by the
 * names of then.
 */
static AttrMap *
map_columns_then(const FlashbackRows *rows, const FlashbackFormer *leaf)
{
	TupleDesc	root = rows->tree.root->desc;
	AttrMap    *map = make_attrmap(rows->desc->natts);

	for (int i = 0; i < Min(rows->desc->natts, root->natts); i++)
	{
		Form_pg_attribute att = TupleDescAttr(root, i);

		if (att->attisdropped || TupleDescAttr(rows->desc, i)->attisdropped)
			continue;
		for (int k = 0; k < leaf->desc->natts; k++)
		{
			Form_pg_attribute of_leaf = TupleDescAttr(leaf->desc, k);

			if (!of_leaf->attisdropped && namestrcmp(&of_leaf->attname, NameStr(att->attname)) == 0 &&
				of_leaf->atttypid == att->atttypid && of_leaf->atttypmod == att->atttypmod)
				map->attnums[i] = k + 1;
		}
		if (map->attnums[i] == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("partition \"%s\" had no column like \"%s\" of \"%s\" at the target time",
							NameStr(leaf->name), NameStr(att->attname), NameStr(rows->tree.root->name))));
	}
	return map;
}

/*
 * Goes on to the next leaf; false after the last.
 */
static bool
next_leaf(FlashbackRows *rows)
{
	FlashbackFormer *former;
	Leaf	   *leaf;
	bool		then;

	if (rows->next_leaf >= list_length(rows->tree.leaves))
		return false;
	flashback_progress_partition(rows->next_leaf, list_length(rows->tree.leaves));
	leaf = list_nth(rows->tree.leaves, rows->next_leaf++);
	former = leaf->former;
	if (leaf->exists)
		rows->leaf = table_open(former->relid, AccessShareLock);
	then = rows->tree.then || !leaf->exists ||
		(former->desc && !flashback_columns_fit(former, RelationGetDescr(rows->leaf)));
	rows->map = NULL;
	if (former != rows->tree.root)
		rows->map = then ? map_columns_then(rows, former) :
			build_attrmap_by_name_if_req(RelationGetDescr(rows->leaf), rows->desc, false);
	rows->scan = flashback_scan_begin(former, rows->leaf, then, &rows->moment);
	rows->scanned = flashback_scan_slot(rows->scan);
	return true;
}

/*
 * The scan that gives all rows, for whoever can take them as it gives them;
 * NULL if they are those of several tables.  Rows can be read on as ever, if
 * nothing has been read from it.
 */
FlashbackScan *
flashback_rows_take_scan(FlashbackRows *rows)
{
	if (rows->tree.root->kind == RELKIND_PARTITIONED_TABLE || !next_leaf(rows))
		return NULL;
	return rows->scan;
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
		if (rows->scan == NULL && !next_leaf(rows))
		{
			check_purged(rows);
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
				row = execute_attr_map_slot(rows->map, rows->scanned, rows->slot);
			else if (rows->computed)
				row = ExecCopySlot(rows->slot, rows->scanned);
			flashback_compute(rows->computed, row);
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
	if (rows->scan)
		end_leaf(rows);
	flashback_condition_free(rows->condition);
	flashback_computed_free(rows->computed);
	ExecDropSingleTupleTableSlot(rows->slot);
	if (rows->opened)
		relation_close(rows->rel, NoLock);
	pfree(rows);
}
