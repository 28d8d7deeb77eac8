/*-------------------------------------------------------------------------
 *
 * past.c
 *	  What is known of a table's past, for whoever ends it.
 *
 * A purge of flashback_log asks for partitions that the table had, and for
 * kept files that were its own or theirs.  Partitions are those that it had at
 * each point of the window, and just before each commit that dropped one.  One
 * that was attached and detached again between two points is not found.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/past.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "flashback_events.h"
#include "flashback_internal.h"
#include "flashback_sql.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/*
 * Whether a relation may be read for a point, whatever file it had: neither it
 * nor its TOAST relation was purged since.
 */
bool
flashback_may_read_any(const FlashbackFormer *former, const FlashbackPoint *point)
{
	RelFileLocator any = flashback_any_file_of(MyDatabaseId, former->relid);
	RelFileLocator any_toast = flashback_any_file_of(MyDatabaseId, former->toastrelid);

	return flashback_log()->may_read(point, &any) && flashback_log()->may_read(point, &any_toast);
}

/*
 * The same for the files that have been found.
 */
bool
flashback_may_read(const FlashbackFormer *former, const FlashbackPoint *point)
{
	return flashback_may_read_any(former, point) &&
		flashback_log()->may_read(point, &former->file.rlocator) &&
		flashback_log()->may_read(point, &former->toast.rlocator);
}

/*
 * Whether what a commit did to a table can be undone, as far as purges go.
 */
bool
flashback_event_is_purged(const FlashbackEvent *event)
{
	FlashbackFormer former = {.relid = event->relid};
	FlashbackPoint point = {.lsn = event->lsn};

	return !flashback_may_read_any(&former, &point);
}

/*
 * Says that the past of a relation was purged, and from when on it can be read.
 */
void
flashback_refuse_purged(const FlashbackFormer *former, const char *name, FlashbackRefusal *refusal)
{
	XLogRecPtr	before = PG_UINT64_MAX;
	FlashbackPoint point;

	memset(refusal, 0, sizeof(*refusal));
	refusal->sqlerrcode = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
	refusal->nearest_time = DT_NOEND;
	snprintf(refusal->reason, sizeof(refusal->reason), "the past of table \"%s\" was purged", name);
	while (before > 0 && flashback_log()->find_point_lsn(before, &point) &&
		   flashback_may_read(former, &point))
	{
		refusal->nearest_time = point.time;
		before = point.lsn - 1;
	}
	if (refusal->nearest_time != DT_NOEND)
		snprintf(refusal->hint, sizeof(refusal->hint), "It can be read as of %s.",
				 timestamptz_to_str(refusal->nearest_time));
	else
		snprintf(refusal->hint, sizeof(refusal->hint),
				 "It can be read as of moments after the next checkpoint.");
}

/*
 * Adds the partitions that a table had at a time, or before a commit (not
 * invalid); if they cannot be known none.
 */
static void
add_descendants(Oid relid, TimestampTz time, XLogRecPtr commit_lsn, FlashbackPast *past)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "flashback past", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	FlashbackMoment moment;
	FlashbackCommit commit;
	FlashbackRefusal ignored;
	List	   *descendants = NIL;
	bool		known;

	CHECK_FOR_INTERRUPTS();
	known = XLogRecPtrIsInvalid(commit_lsn) ? flashback_try_resolve(time, &moment, &ignored) :
		flashback_try_resolve_before(commit_lsn, &moment, &commit, &ignored);
	if (known)
		(void) flashback_descendants(relid, &moment, &descendants, &ignored);
	MemoryContextSwitchTo(old_context);
	if (descendants != NIL)
		past->existed = true;
	past->relids = list_concat_unique_oid(past->relids, descendants);
	MemoryContextDelete(context);
}

/*
 * Adds all partitions that a table is known to have had.
 */
static void
add_partitions(Oid relid, List *events, FlashbackPast *past)
{
	XLogRecPtr	before = PG_UINT64_MAX;
	XLogRecPtr	last = InvalidXLogRecPtr;
	FlashbackPoint point;

	while (before > 0 && flashback_log()->find_point_lsn(before, &point))
	{
		add_descendants(relid, point.time, InvalidXLogRecPtr, past);
		before = point.lsn - 1;
	}
	foreach_ptr(FlashbackEvent, event, events)
	{
		if (event->kind == FLASHBACK_DROPPED && (event->partition || event->relid == relid) &&
			event->lsn != last && !list_member_oid(past->relids, event->relid))
		{
			last = event->lsn;
			add_descendants(relid, 0, event->lsn, past);
		}
	}
}

static void
add_file(FlashbackPast *past, const RelFileLocator *rlocator)
{
	RelFileLocator *file;

	if (!RelFileNumberIsValid(rlocator->relNumber))
		return;
	file = palloc(sizeof(RelFileLocator));
	*file = *rlocator;
	past->files = lappend(past->files, file);
}

/*
 * Finds what the relation was.
 */
void
flashback_find_past(Oid relid, FlashbackPast *past)
{
	bool		has_partitions = (get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE);
	FlashbackPoint oldest;
	List	   *events;

	memset(past, 0, sizeof(*past));
	events = flashback_events(&oldest, &past->nunknown);
	foreach_ptr(FlashbackEvent, event, events)
	{
		if (event->relid != relid)
			continue;
		past->existed = true;
		has_partitions |= event->partitioned;
	}
	if (has_partitions)
		add_partitions(relid, events, past);
	foreach_ptr(FlashbackEvent, event, events)
	{
		if (event->relid != relid && !list_member_oid(past->relids, event->relid))
			continue;
		add_file(past, &event->rlocator);
		add_file(past, &event->toast);
	}
}
