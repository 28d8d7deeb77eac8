/*-------------------------------------------------------------------------
 *
 * activity.c
 *	  What happened to the tables of this database, by what WAL says.
 *
 * WAL names files.  Which table has a file pg_class says; which had one that
 * was replaced since is found out from the commits that replaced it.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/activity.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/timeline.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "activity.h"
#include "catalog/pg_authid_d.h"
#include "catalog/pg_class.h"
#include "flashback_internal.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(polar_flashback_activity);

/*
 * To see a large transaction to its end so many times the WAL is read that was
 * asked for, but not more than this.
 */
#define LOOK_AHEAD 16
#define LOOK_AHEAD_BYTES ((uint64) 1024 * 1024 * 1024)

/* A relation by its file and by its number; those of then are added later */
typedef struct KnownFile
{
	RelFileLocator file;		/* key */
	Oid			relid;
} KnownFile;

typedef struct KnownRelation
{
	Oid			relid;			/* key */
	char		kind;
	char		persistence;
	XLogRecPtr	dropped;		/* by this commit, or invalid */
	ActivityCommit last;		/* that changed rows of it */
} KnownRelation;

typedef struct Known
{
	HTAB	   *files;
	HTAB	   *relations;
} Known;

static Known
read_relations(void)
{
	HASHCTL		by_file = {.keysize = sizeof(RelFileLocator),.entrysize = sizeof(KnownFile),.hcxt = CurrentMemoryContext};
	HASHCTL		by_number = {.keysize = sizeof(Oid),.entrysize = sizeof(KnownRelation),.hcxt = CurrentMemoryContext};
	Relation	class = table_open(RelationRelationId, AccessShareLock);
	TableScanDesc scan = table_beginscan_catalog(class, 0, NULL);
	TupleTableSlot *slot = table_slot_create(class, NULL);
	Known		known;

	known.files = hash_create("flashback known files", 1024, &by_file, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	known.relations = hash_create("flashback known relations", 1024, &by_number, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		HeapTuple	tuple = ExecFetchSlotHeapTuple(slot, false, NULL);
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
		KnownRelation *relation;
		RelFileLocator file = {
			.spcOid = OidIsValid(form->reltablespace) ? form->reltablespace : MyDatabaseTableSpace,
			.dbOid = MyDatabaseId,
			.relNumber = form->relfilenode
		};

		CHECK_FOR_INTERRUPTS();
		if (form->oid < FirstNormalObjectId)
			continue;

		if (RelFileNumberIsValid(form->relfilenode))
		{
			KnownFile  *entry = hash_search(known.files, &file, HASH_ENTER, NULL);

			entry->relid = form->oid;
		}
		relation = hash_search(known.relations, &form->oid, HASH_ENTER, NULL);
		relation->kind = form->relkind;
		relation->persistence = form->relpersistence;
		relation->dropped = InvalidXLogRecPtr;
		memset(&relation->last, 0, sizeof(relation->last));
	}
	ExecDropSingleTupleTableSlot(slot);
	table_endscan(scan);
	table_close(class, AccessShareLock);
	return known;
}

static bool
is_table(char kind)
{
	return kind == RELKIND_RELATION || kind == RELKIND_MATVIEW;
}

/*
 * The table that has, or had, a file.
 */
static Oid
table_of_file(const Known *known, const RelFileLocator *file)
{
	KnownFile  *entry = hash_search(known->files, file, HASH_FIND, NULL);
	KnownRelation *relation;

	if (entry == NULL)
		return InvalidOid;
	relation = hash_search(known->relations, &entry->relid, HASH_FIND, NULL);
	return relation && is_table(relation->kind) ? entry->relid : InvalidOid;
}

/*
 * Whether a relation was made by the transaction that removed it, as the one
 * that is there for a while when a table is rewritten.
 */
static bool
was_made_here(const ActivityDefinition *definition, Oid relid)
{
	for (int i = 0; i < definition->nmade; i++)
	{
		if (definition->made[i].file.relNumber == relid)
			return true;
	}
	return false;
}

/*
 * The relation that a commit has dropped: of those that are gone the one with
 * the smallest number, as a table is older than its indexes and TOAST table.
 */
static Oid
dropped_relation(const Known *known, const ActivityDefinition *definition)
{
	Oid			result = InvalidOid;

	if (definition->ndeleted == 0)
		return InvalidOid;
	foreach_oid(relid, definition->relids)
	{
		if (!hash_search(known->relations, &relid, HASH_FIND, NULL) &&
			!was_made_here(definition, relid) && (!OidIsValid(result) || relid < result))
			result = relid;
	}
	return result;
}

static void
add_file(const Known *known, const RelFileLocator *file, Oid relid)
{
	KnownFile  *entry = hash_search(known->files, file, HASH_ENTER, NULL);

	entry->relid = relid;
}

/*
 * Of the files that a commit has deleted, the table's own is the one with the
 * smallest number that is not known: TOAST and indexes get theirs later.
 */
static const RelFileLocator *
former_file(const Known *known, const ActivityDefinition *definition)
{
	const RelFileLocator *result = NULL;

	for (int i = 0; i < definition->ndeleted; i++)
	{
		const RelFileLocator *file = &definition->deleted[i];

		if (file->dbOid == MyDatabaseId && !hash_search(known->files, file, HASH_FIND, NULL) &&
			(result == NULL || file->relNumber < result->relNumber))
			result = file;
	}
	return result;
}

/*
 * Finds out whose the files are that a commit has deleted, if it replaced the
 * file of one table or dropped one.  Later commits have been looked at.
 */
static void
learn_from(const Known *known, const Activity *activity, const ActivityDefinition *definition)
{
	const RelFileLocator *file;
	Oid			replaced = InvalidOid;
	Oid			dropped;

	for (int i = 0; i < definition->ndeleted; i++)
	{
		KnownRelation *relation = hash_search(known->relations, &definition->deleted[i].relNumber, HASH_FIND, NULL);

		/* The first file of a relation has its number */
		if (relation && definition->deleted[i].dbOid == MyDatabaseId)
			add_file(known, &definition->deleted[i], relation->relid);
	}
	for (int i = 0; i < definition->nmade; i++)
	{
		Oid			relid = table_of_file(known, &definition->made[i].file);

		if (!OidIsValid(relid))
			continue;
		if (OidIsValid(replaced))
			return;
		replaced = relid;
	}
	for (int i = 0; i < definition->ndeleted; i++)
	{
		if (OidIsValid(replaced) && table_of_file(known, &definition->deleted[i]) == replaced)
			return;
	}

	file = former_file(known, definition);

	/* Rewriting drops a TOAST table */
	dropped = OidIsValid(replaced) ? InvalidOid : dropped_relation(known, definition);
	if (file == NULL || OidIsValid(replaced) == OidIsValid(dropped))
		return;
	if (OidIsValid(dropped))
	{
		KnownRelation *relation;

		/* It may be an index, unless it had rows, or no table has lost one */
		if (!hash_search(activity->files, file, HASH_FIND, NULL))
		{
			foreach_oid(relid, definition->relids)
			{
				if (hash_search(known->relations, &relid, HASH_FIND, NULL))
					return;
			}
		}
		relation = hash_search(known->relations, &dropped, HASH_ENTER, NULL);
		relation->kind = RELKIND_RELATION;
		relation->persistence = RELPERSISTENCE_PERMANENT;
		relation->dropped = definition->commit.lsn;
		memset(&relation->last, 0, sizeof(relation->last));
	}
	add_file(known, file, OidIsValid(replaced) ? replaced : dropped);
}

static void
put_event(ReturnSetInfo *rsinfo, const char *kind, const ActivityCommit *commit, Oid relid,
		  const ActivityCounts *counts)
{
#define ACTIVITY_COLUMNS 8
	Datum		values[ACTIVITY_COLUMNS] = {0};
	bool		nulls[ACTIVITY_COLUMNS] = {0};

	values[0] = CStringGetTextDatum(kind);
	nulls[1] = (commit->at == DT_NOBEGIN);
	values[1] = TimestampTzGetDatum(commit->at);
	values[2] = LSNGetDatum(commit->lsn);
	nulls[3] = !TransactionIdIsValid(commit->xid);
	values[3] = TransactionIdGetDatum(commit->xid);
	nulls[4] = !OidIsValid(relid);
	values[4] = ObjectIdGetDatum(relid);
	nulls[5] = nulls[6] = nulls[7] = (counts == NULL);
	if (counts)
	{
		values[5] = Int64GetDatum(counts->inserted);
		values[6] = Int64GetDatum(counts->updated);
		values[7] = Int64GetDatum(counts->deleted);
	}
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/*
 * Whether a commit gave a table another file, and whether that was written.
 */
static bool
was_replaced(const Known *known, const ActivityDefinition *definition, Oid relid, bool *written)
{
	bool		deleted = false;
	bool		made = false;

	*written = false;
	for (int i = 0; i < definition->ndeleted; i++)
		deleted |= (table_of_file(known, &definition->deleted[i]) == relid ||
					hash_search(known->files, &definition->deleted[i], HASH_FIND, NULL) == NULL);
	for (int i = 0; i < definition->nmade; i++)
	{
		if (table_of_file(known, &definition->made[i].file) != relid)
			continue;
		made = true;
		*written |= definition->made[i].written;
	}
	return deleted && made;
}

static void
put_definition(ReturnSetInfo *rsinfo, const Known *known, const ActivityDefinition *definition)
{
	foreach_oid(relid, definition->truncated)
		put_event(rsinfo, "truncate", &definition->commit, relid, NULL);
	foreach_oid(relid, definition->relids)
	{
		KnownRelation *relation = hash_search(known->relations, &relid, HASH_FIND, NULL);
		bool		written;

		if (relation == NULL || relation->persistence == RELPERSISTENCE_TEMP ||
			!(is_table(relation->kind) || relation->kind == RELKIND_PARTITIONED_TABLE) ||
			list_member_oid(definition->truncated, relid) || was_made_here(definition, relid))
			continue;
		if (was_replaced(known, definition, relid, &written))
			put_event(rsinfo, written ? "rewrite" : "truncate", &definition->commit, relid, NULL);
		else
			put_event(rsinfo, relation->dropped == definition->commit.lsn ? "drop" : "ddl",
					  &definition->commit, relid, NULL);
	}
}

/*
 * When each table that is there was changed last; it may have had several
 * files.
 */
static void
put_last_changes(ReturnSetInfo *rsinfo, const Activity *activity, const Known *known)
{
	HASH_SEQ_STATUS status;
	ActivityFile *file;
	KnownRelation *relation;

	hash_seq_init(&status, activity->files);
	while ((file = hash_seq_search(&status)) != NULL)
	{
		Oid			relid = table_of_file(known, &file->file);

		relation = hash_search(known->relations, &relid, HASH_FIND, NULL);
		if (relation && relation->last.lsn < file->last.lsn)
			relation->last = file->last;
	}
	hash_seq_init(&status, known->relations);
	while ((relation = hash_seq_search(&status)) != NULL)
	{
		if (relation->last.lsn > 0 && XLogRecPtrIsInvalid(relation->dropped))
			put_event(rsinfo, "last", &relation->last, relation->relid, NULL);
	}
}

/*
 * Returns what was read, up to a position.
 */
static void
put_activity(ReturnSetInfo *rsinfo, const Activity *activity, XLogRecPtr next)
{
	Known		known = read_relations();
	ActivityCommit end = {.lsn = next,.at = activity->last};
	ListCell   *change = list_head(activity->changes);
	ListCell   *definition = list_head(activity->definitions);

	for (int i = list_length(activity->definitions) - 1; i >= 0; i--)
		learn_from(&known, activity, list_nth(activity->definitions, i));
	while (change || definition)
	{
		ActivityChange *c = change ? lfirst(change) : NULL;
		ActivityDefinition *d = definition ? lfirst(definition) : NULL;

		if (d == NULL || (c && c->commit.lsn <= d->commit.lsn))
		{
			Oid			relid = table_of_file(&known, &c->file);

			if (OidIsValid(relid))
				put_event(rsinfo, "change", &c->commit, relid, &c->counts);
			change = lnext(activity->changes, change);
		}
		else
		{
			put_definition(rsinfo, &known, d);
			definition = lnext(activity->definitions, definition);
		}
	}

	put_last_changes(rsinfo, activity, &known);
	put_event(rsinfo, "end", &end, InvalidOid, NULL);
}

/*
 * The start of the oldest WAL, not before a position, from which on none is
 * missing up to the end.
 */
static XLogRecPtr
oldest_wal(XLogRecPtr from, XLogRecPtr end, TimeLineID tli)
{
	List	   *history = readTimeLineHistory(tli);
	XLogSegNo	first;
	XLogSegNo	segno;
	XLogRecPtr	start;

	XLByteToSeg(from, first, wal_segment_size);
	XLByteToPrevSeg(end, segno, wal_segment_size);
	for (;; segno--)
	{
		XLogRecPtr	last;
		char		path[MAXPGPATH];
		struct stat st;

		CHECK_FOR_INTERRUPTS();
		/* As the reader does: a segment is of the timeline that its end is of */
		XLogSegNoOffsetToRecPtr(segno, wal_segment_size - 1, wal_segment_size, last);
		XLogFilePath(path, tliOfPointInHistory(last, history), segno, wal_segment_size);
		if (stat(path, &st) != 0)
		{
			segno++;
			break;
		}
		if (segno <= first || segno == 1)
			break;
	}
	XLogSegNoOffsetToRecPtr(segno, 0, wal_segment_size, start);
	return Max(start, from);
}

/*
 * Where reading begins if nobody says: at the redo of the oldest point.
 */
static XLogRecPtr
oldest_redo(XLogRecPtr end)
{
	XLogRecPtr	result = InvalidXLogRecPtr;
	XLogRecPtr	before = PG_UINT64_MAX;
	FlashbackPoint point;

	while (before > 0 && flashback_log()->find_point_lsn(before, &point))
	{
		CHECK_FOR_INTERRUPTS();
		result = point.redo;
		before = point.lsn - 1;
	}
	return XLogRecPtrIsInvalid(result) ? end : result;
}

/*
 * polar_flashback_activity(from_lsn pg_lsn, max_wal_bytes int8,
 *							least_rows int8)
 */
Datum
polar_flashback_activity(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	TimeLineID	tli;
	XLogRecPtr	end;
	XLogRecPtr	start;
	XLogRecPtr	enough;
	XLogRecPtr	most;
	XLogRecPtr	next;
	uint64		wanted;
	int64		least_rows;
	Activity   *activity;

	if (!has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to read what WAL says of tables"),
				 errdetail("Only roles with privileges of the \"%s\" role may do it.", "pg_monitor")));
	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", PG_ARGISNULL(1) ? "max_wal_bytes" : "least_rows")));
	if (PG_GETARG_INT64(1) < 1 || PG_GETARG_INT64(2) < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be greater than 0",
						PG_GETARG_INT64(1) < 1 ? "max_wal_bytes" : "least_rows")));
	wanted = PG_GETARG_INT64(1);
	least_rows = PG_GETARG_INT64(2);
	InitMaterializedSRF(fcinfo, 0);

	if (RecoveryInProgress())
		end = GetXLogReplayRecPtr(&tli);
	else
	{
		end = GetXLogInsertEndRecPtr();
		XLogFlush(end);
		tli = GetWALInsertionTimeLine();
	}
	start = PG_ARGISNULL(0) ? oldest_redo(end) : PG_GETARG_LSN(0);
	start = oldest_wal(Min(start, end), end, tli);

	enough = wanted < end - start ? start + wanted : end;
	most = start + Max(wanted, Min(LOOK_AHEAD_BYTES, wanted > LOOK_AHEAD_BYTES ? wanted : wanted * LOOK_AHEAD));
	if (most < start)
		most = end;
	activity = flashback_activity_read(start, enough, most, end, least_rows);

	/*
	 * What a large transaction did that has not ended is counted when it has:
	 * the caller goes on where it began, unless that is too far behind.
	 */
	next = activity->reached;
	if (!XLogRecPtrIsInvalid(activity->unfinished) &&
		(activity->unfinished > start || activity->reached < most))
	{
		next = activity->unfinished;
		activity = flashback_activity_read(start, next, next, next, least_rows);
	}
	put_activity(rsinfo, activity, next);
	return (Datum) 0;
}
