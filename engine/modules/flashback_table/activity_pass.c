/*-------------------------------------------------------------------------
 *
 * activity_pass.c
 *	  Counts the rows that transactions change, by reading WAL.
 *
 * Only what is between the bounds of a record is looked at, whatever it says.
 * Memory is bounded: of very many transactions and tables those with the
 * smallest counts are forgotten.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/activity_pass.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam_xlog.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog_internal.h"
#include "activity.h"
#include "catalog/pg_statistic.h"
#include "catalog/storage_xlog.h"
#include "flashback_internal.h"
#include "miscadmin.h"
#include "storage/sinval.h"
#include "storage/standby.h"
#include "storage/standbydefs.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Bounds of what is kept in memory */
#define MAX_COUNTS 100000
#define MAX_FILES 200000
#define MAX_EVENTS 20000
#define MAX_NAMED 1000			/* files or relations of one commit */

typedef struct CountKey
{
	TransactionId xid;
	RelFileLocator file;
} CountKey;

typedef struct CountEntry
{
	CountKey	key;
	ActivityCounts counts;
	struct CountEntry *next;	/* of the same transaction */
} CountEntry;

typedef struct TransactionEntry
{
	TransactionId xid;			/* key */
	XLogRecPtr	first;
	int64		rows;
	CountEntry *counts;
	List	   *truncated;
	bool		defines;		/* has changed catalogs */
} TransactionEntry;

typedef struct MadeEntry
{
	RelFileLocator file;		/* key */
	TransactionId xid;			/* invalid: it had no number yet */
	bool		written;
} MadeEntry;

/* The end of a transaction, as its record says */
typedef struct TransactionEnd
{
	bool		commit;
	ActivityCommit at;
	const char *subxids;
	uint32		nsubxids;
	const char *files;
	uint32		nfiles;
	const char *messages;
	uint32		nmessages;
} TransactionEnd;

static HTAB *
make_table(const char *name, Size keysize, Size entrysize)
{
	HASHCTL		ctl = {.keysize = keysize,.entrysize = entrysize,.hcxt = CurrentMemoryContext};

	return hash_create(name, 1024, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static int64
total(const ActivityCounts *counts)
{
	return counts->inserted + counts->updated + counts->deleted;
}

/*
 * Forgets counts that are not large, until there is place for more.
 */
static void
forget_small(Activity *activity)
{
	for (int64 large = 2; hash_get_num_entries(activity->counts) > MAX_COUNTS / 2; large *= 4)
	{
		HASH_SEQ_STATUS status;
		TransactionEntry *transaction;

		hash_seq_init(&status, activity->transactions);
		while ((transaction = hash_seq_search(&status)) != NULL)
		{
			for (CountEntry **at = &transaction->counts; *at;)
			{
				CountEntry *entry = *at;

				if (total(&entry->counts) >= large)
				{
					at = &entry->next;
					continue;
				}
				*at = entry->next;
				hash_search(activity->counts, &entry->key, HASH_REMOVE, NULL);
			}
			if (transaction->counts == NULL && transaction->truncated == NIL && !transaction->defines)
				hash_search(activity->transactions, &transaction->xid, HASH_REMOVE, NULL);
		}
	}
}

static TransactionEntry *
enter_transaction(Activity *activity, TransactionId xid, XLogRecPtr first)
{
	bool		found;
	TransactionEntry *transaction = hash_search(activity->transactions, &xid, HASH_ENTER, &found);

	if (!found)
	{
		transaction->first = first;
		transaction->rows = 0;
		transaction->counts = NULL;
		transaction->truncated = NIL;
		transaction->defines = false;
	}
	return transaction;
}

static CountEntry *
enter_counts(Activity *activity, TransactionEntry *transaction, const RelFileLocator *file)
{
	CountKey	key = {.xid = transaction->xid,.file = *file};
	bool		found;
	CountEntry *entry = hash_search(activity->counts, &key, HASH_ENTER, &found);

	if (!found)
	{
		memset(&entry->counts, 0, sizeof(entry->counts));
		entry->next = transaction->counts;
		transaction->counts = entry;
	}
	return entry;
}

/*
 * Rows of a file that its transaction has made are not counted: nothing of
 * them was there before.  Nor are those of catalogs, which tell that it
 * changes definitions; VACUUM and ANALYZE change statistics only.
 */
static void
count_rows(Activity *activity, XLogReaderState *record, int inserted, int updated, int deleted)
{
	TransactionId xid = XLogRecGetXid(record);
	RelFileLocator file;
	ForkNumber	forknum;
	BlockNumber blkno;
	TransactionEntry *transaction;
	CountEntry *entry;

	if (!TransactionIdIsNormal(xid) ||
		!XLogRecGetBlockTagExtended(record, 0, &file, &forknum, &blkno, NULL) ||
		file.dbOid != MyDatabaseId || forknum != MAIN_FORKNUM ||
		hash_search(activity->made, &file, HASH_FIND, NULL))
		return;
	if (hash_get_num_entries(activity->counts) >= MAX_COUNTS)
		forget_small(activity);
	if (file.relNumber == StatisticRelationId)
		return;
	transaction = enter_transaction(activity, xid, record->ReadRecPtr);
	if (file.relNumber < FirstNormalObjectId)
	{
		transaction->defines = true;
		return;
	}
	entry = enter_counts(activity, transaction, &file);
	entry->counts.inserted += inserted;
	entry->counts.updated += updated;
	entry->counts.deleted += deleted;
	transaction->rows += inserted + updated + deleted;
}

static void
read_truncate(Activity *activity, XLogReaderState *record)
{
	const char *data = XLogRecGetData(record);
	Size		length = XLogRecGetDataLen(record);
	TransactionId xid = XLogRecGetXid(record);
	xl_heap_truncate truncate;
	TransactionEntry *transaction;

	if (length < SizeOfHeapTruncate || !TransactionIdIsNormal(xid))
		return;
	memcpy(&truncate, data, SizeOfHeapTruncate);
	if (truncate.dbId != MyDatabaseId)
		return;
	length = Min((length - SizeOfHeapTruncate) / sizeof(Oid), truncate.nrelids);
	transaction = enter_transaction(activity, xid, record->ReadRecPtr);
	for (Size i = 0; i < Min(length, MAX_NAMED); i++)
	{
		Oid			relid;

		memcpy(&relid, data + SizeOfHeapTruncate + i * sizeof(Oid), sizeof(Oid));
		transaction->truncated = lappend_oid(transaction->truncated, relid);
	}
}

static void
read_heap(Activity *activity, XLogReaderState *record)
{
	switch (XLogRecGetInfo(record) & XLOG_HEAP_OPMASK)
	{
		case XLOG_HEAP_INSERT:
			count_rows(activity, record, 1, 0, 0);
			break;
		case XLOG_HEAP_UPDATE:
		case XLOG_HEAP_HOT_UPDATE:
			count_rows(activity, record, 0, 1, 0);
			break;
		case XLOG_HEAP_DELETE:
			if (XLogRecGetDataLen(record) < SizeOfHeapDelete)
				break;
			/* A speculative insertion that is taken back */
			if (((xl_heap_delete *) XLogRecGetData(record))->flags & XLH_DELETE_IS_SUPER)
				count_rows(activity, record, -1, 0, 0);
			else
				count_rows(activity, record, 0, 0, 1);
			break;
		case XLOG_HEAP_TRUNCATE:
			read_truncate(activity, record);
			break;
	}
}

static void
read_heap2(Activity *activity, XLogReaderState *record)
{
	xl_heap_multi_insert insert;

	if ((XLogRecGetInfo(record) & XLOG_HEAP_OPMASK) != XLOG_HEAP2_MULTI_INSERT ||
		XLogRecGetDataLen(record) < SizeOfHeapMultiInsert)
		return;
	memcpy(&insert, XLogRecGetData(record), SizeOfHeapMultiInsert);
	count_rows(activity, record, Min(insert.ntuples, MaxHeapTuplesPerPage), 0, 0);
}

/*
 * A file is made.
 */
static void
read_smgr(Activity *activity, XLogReaderState *record)
{
	xl_smgr_create create;
	MadeEntry  *made;

	if ((XLogRecGetInfo(record) & ~XLR_INFO_MASK) != XLOG_SMGR_CREATE ||
		XLogRecGetDataLen(record) < sizeof(create))
		return;
	memcpy(&create, XLogRecGetData(record), sizeof(create));
	if (create.rlocator.dbOid != MyDatabaseId || create.forkNum != MAIN_FORKNUM ||
		hash_get_num_entries(activity->made) >= MAX_FILES)
		return;
	made = hash_search(activity->made, &create.rlocator, HASH_ENTER, NULL);
	made->xid = XLogRecGetXid(record);
	made->written = false;
}

/*
 * Notes that a record writes to files which its transaction has made.
 */
static void
note_written(Activity *activity, XLogReaderState *record)
{
	for (int i = 0; i <= XLogRecMaxBlockId(record); i++)
	{
		RelFileLocator file;
		ForkNumber	forknum;
		BlockNumber blkno;
		MadeEntry  *made;

		if (!XLogRecGetBlockTagExtended(record, i, &file, &forknum, &blkno, NULL) ||
			forknum != MAIN_FORKNUM)
			continue;
		made = hash_search(activity->made, &file, HASH_FIND, NULL);
		if (made == NULL)
			continue;
		made->written = true;
		if (!TransactionIdIsValid(made->xid))
			made->xid = XLogRecGetXid(record);
	}
}

/*
 * Takes so many items from a record; false if it has not so many.
 */
static bool
take(const char **data, Size *left, Size n, Size size, const char **taken)
{
	if (n > *left / size)
		return false;
	*taken = *data;
	*data += n * size;
	*left -= n * size;
	return true;
}

/*
 * Takes the record of an end apart; false if it is none, or damaged.
 */
static bool
read_end(XLogReaderState *record, TransactionEnd *end)
{
	uint8		op = XLogRecGetInfo(record) & XLOG_XACT_OPMASK;
	const char *data = XLogRecGetData(record);
	Size		left = XLogRecGetDataLen(record);
	uint32		xinfo = 0;
	const char *taken;
	struct
	{
		uint32		flag;
		Size		size;
		const char **items;
		uint32	   *nitems;
	}			sections[] = {
		{XACT_XINFO_HAS_SUBXACTS, sizeof(TransactionId), &end->subxids, &end->nsubxids},
		{XACT_XINFO_HAS_RELFILELOCATORS, sizeof(RelFileLocator), &end->files, &end->nfiles},
		{XACT_XINFO_HAS_DROPPED_STATS, sizeof(xl_xact_stats_item), NULL, NULL},
		{XACT_XINFO_HAS_INVALS, sizeof(SharedInvalidationMessage), &end->messages, &end->nmessages},
	};

	memset(end, 0, sizeof(*end));
	end->commit = (op == XLOG_XACT_COMMIT || op == XLOG_XACT_COMMIT_PREPARED);
	if (!end->commit && op != XLOG_XACT_ABORT && op != XLOG_XACT_ABORT_PREPARED)
		return false;
	end->at.lsn = record->EndRecPtr;
	end->at.xid = XLogRecGetXid(record);
	if (!take(&data, &left, 1, MinSizeOfXactCommit, &taken))
		return false;
	memcpy(&end->at.at, taken + offsetof(xl_xact_commit, xact_time), sizeof(TimestampTz));
	if ((XLogRecGetInfo(record) & XLOG_XACT_HAS_INFO) == 0)
		return true;
	if (!take(&data, &left, 1, sizeof(uint32), &taken))
		return false;
	memcpy(&xinfo, taken, sizeof(uint32));
	if ((xinfo & XACT_XINFO_HAS_DBINFO) && !take(&data, &left, 1, sizeof(xl_xact_dbinfo), &taken))
		return false;
	for (int i = 0; i < lengthof(sections); i++)
	{
		uint32		n;

		if ((xinfo & sections[i].flag) == 0)
			continue;
		if (!take(&data, &left, 1, sizeof(int), &taken))
			return false;
		memcpy(&n, taken, sizeof(n));
		if (!take(&data, &left, n, sections[i].size, &taken))
			return false;
		if (sections[i].items)
		{
			*sections[i].items = taken;
			*sections[i].nitems = n;
		}
	}
	if (xinfo & XACT_XINFO_HAS_TWOPHASE)
	{
		if (!take(&data, &left, 1, sizeof(TransactionId), &taken))
			return false;
		memcpy(&end->at.xid, taken, sizeof(TransactionId));
	}
	return true;
}

/*
 * The relations of this database whose definition a commit changed.
 */
static List *
invalidated_relations(const TransactionEnd *end)
{
	List	   *relids = NIL;

	for (uint32 i = 0; i < end->nmessages && list_length(relids) < MAX_NAMED; i++)
	{
		SharedInvalidationMessage message;

		memcpy(&message, end->messages + i * sizeof(message), sizeof(message));
		if (message.id == SHAREDINVALRELCACHE_ID && message.rc.dbId == MyDatabaseId &&
			message.rc.relId >= FirstNormalObjectId)
			relids = list_append_unique_oid(relids, message.rc.relId);
	}
	return relids;
}

/*
 * Whether a file was made by a transaction.  CREATE TABLE makes it before it
 * has a number; then it is of the next that commits a change of definitions.
 */
static bool
belongs_to(TransactionId xid, const TransactionEnd *end)
{
	if (!TransactionIdIsValid(xid))
		return end->commit && end->nmessages > 0;
	if (xid == end->at.xid)
		return true;
	for (uint32 i = 0; i < end->nsubxids; i++)
	{
		TransactionId subxid;

		memcpy(&subxid, end->subxids + i * sizeof(subxid), sizeof(subxid));
		if (subxid == xid)
			return true;
	}
	return false;
}

/*
 * Takes the files that a transaction has made, and that are no longer new.
 */
static List *
take_made_files(Activity *activity, const TransactionEnd *end)
{
	List	   *result = NIL;
	HASH_SEQ_STATUS status;
	MadeEntry  *made;

	if (hash_get_num_entries(activity->made) == 0)
		return NIL;
	hash_seq_init(&status, activity->made);
	while ((made = hash_seq_search(&status)) != NULL)
	{
		ActivityNewFile *file;

		if (!belongs_to(made->xid, end))
			continue;
		if (end->commit && list_length(result) < MAX_NAMED)
		{
			file = palloc(sizeof(ActivityNewFile));
			file->file = made->file;
			file->written = made->written;
			result = lappend(result, file);
		}
		hash_search(activity->made, &made->file, HASH_REMOVE, NULL);
	}
	return result;
}

static void
note_definition(Activity *activity, const TransactionEnd *end, List *made, List *truncated)
{
	List	   *relids = invalidated_relations(end);
	ActivityDefinition *definition;

	if (relids == NIL && truncated == NIL)
		return;
	if (list_length(activity->definitions) >= MAX_EVENTS)
		return;
	definition = palloc0(sizeof(ActivityDefinition));
	definition->commit = end->at;
	definition->relids = relids;
	definition->truncated = truncated;
	definition->made = palloc_array(ActivityNewFile, list_length(made) + 1);
	foreach_ptr(ActivityNewFile, file, made)
		definition->made[definition->nmade++] = *file;
	definition->ndeleted = Min(end->nfiles, MAX_NAMED);
	definition->deleted = palloc_array(RelFileLocator, definition->ndeleted + 1);
	if (definition->ndeleted > 0)
		memcpy(definition->deleted, end->files, definition->ndeleted * sizeof(RelFileLocator));
	activity->definitions = lappend(activity->definitions, definition);
}

static void
remove_transaction(Activity *activity, TransactionEntry *transaction)
{
	for (CountEntry *entry = transaction->counts; entry;)
	{
		CountEntry *next = entry->next;

		hash_search(activity->counts, &entry->key, HASH_REMOVE, NULL);
		entry = next;
	}
	hash_search(activity->transactions, &transaction->xid, HASH_REMOVE, NULL);
}

/*
 * Adds the counts of a subtransaction to its transaction.
 */
static void
merge_subtransaction(Activity *activity, TransactionEntry *transaction, TransactionEntry *sub)
{
	for (CountEntry *from = sub->counts; from; from = from->next)
	{
		CountEntry *to = enter_counts(activity, transaction, &from->key.file);

		to->counts.inserted += from->counts.inserted;
		to->counts.updated += from->counts.updated;
		to->counts.deleted += from->counts.deleted;
	}
	transaction->truncated = list_concat(transaction->truncated, sub->truncated);
	transaction->defines |= sub->defines;
}

static void
note_changes(Activity *activity, const TransactionEnd *end, TransactionEntry *transaction)
{
	for (CountEntry *entry = transaction->counts; entry; entry = entry->next)
	{
		ActivityFile *file;
		ActivityChange *change;

		if (hash_get_num_entries(activity->files) < MAX_FILES ||
			hash_search(activity->files, &entry->key.file, HASH_FIND, NULL))
		{
			file = hash_search(activity->files, &entry->key.file, HASH_ENTER, NULL);
			file->last = end->at;
		}
		if (total(&entry->counts) < activity->least_rows ||
			list_length(activity->changes) >= MAX_EVENTS)
			continue;
		change = palloc(sizeof(ActivityChange));
		change->commit = end->at;
		change->file = entry->key.file;
		change->counts = entry->counts;
		activity->changes = lappend(activity->changes, change);
	}
}

/*
 * A transaction has ended.
 */
static void
note_end(Activity *activity, const TransactionEnd *end)
{
	TransactionEntry *transaction = NULL;
	List	   *made;
	List	   *truncated = NIL;
	bool		defines = false;

	for (uint32 i = 0; i < end->nsubxids; i++)
	{
		TransactionId subxid;
		TransactionEntry *sub;

		memcpy(&subxid, end->subxids + i * sizeof(subxid), sizeof(subxid));
		sub = hash_search(activity->transactions, &subxid, HASH_FIND, NULL);
		if (sub == NULL || subxid == end->at.xid)
			continue;
		if (end->commit)
		{
			transaction = enter_transaction(activity, end->at.xid, sub->first);
			merge_subtransaction(activity, transaction, sub);
		}
		remove_transaction(activity, sub);
	}
	transaction = hash_search(activity->transactions, &end->at.xid, HASH_FIND, NULL);
	if (end->commit)
		activity->last = Max(activity->last, end->at.at);
	if (transaction)
	{
		if (end->commit)
			note_changes(activity, end, transaction);
		truncated = transaction->truncated;
		defines = transaction->defines;
		remove_transaction(activity, transaction);
	}
	made = take_made_files(activity, end);
	if (end->commit && (defines || made != NIL || truncated != NIL || end->nfiles > 0))
		note_definition(activity, end, made, truncated);
}

/*
 * Forgets transactions that ended without a record, in a crash.
 */
static void
read_running(Activity *activity, XLogReaderState *record)
{
	xl_running_xacts running;
	HASH_SEQ_STATUS status;
	TransactionEntry *transaction;
	MadeEntry  *made;

	if ((XLogRecGetInfo(record) & ~XLR_INFO_MASK) != XLOG_RUNNING_XACTS ||
		XLogRecGetDataLen(record) < MinSizeOfXactRunningXacts)
		return;
	memcpy(&running, XLogRecGetData(record), MinSizeOfXactRunningXacts);
	if (!TransactionIdIsNormal(running.oldestRunningXid))
		return;
	hash_seq_init(&status, activity->transactions);
	while ((transaction = hash_seq_search(&status)) != NULL)
	{
		if (TransactionIdPrecedes(transaction->xid, running.oldestRunningXid))
			remove_transaction(activity, transaction);
	}
	hash_seq_init(&status, activity->made);
	while ((made = hash_seq_search(&status)) != NULL)
	{
		if (TransactionIdIsValid(made->xid) &&
			TransactionIdPrecedes(made->xid, running.oldestRunningXid))
			hash_search(activity->made, &made->file, HASH_REMOVE, NULL);
	}
}

static void
read_record(Activity *activity, XLogReaderState *record)
{
	TransactionEnd end;

	if (hash_get_num_entries(activity->made) > 0)
		note_written(activity, record);
	switch (XLogRecGetRmid(record))
	{
		case RM_HEAP_ID:
			read_heap(activity, record);
			break;
		case RM_HEAP2_ID:
			read_heap2(activity, record);
			break;
		case RM_SMGR_ID:
			read_smgr(activity, record);
			break;
		case RM_STANDBY_ID:
			read_running(activity, record);
			break;
		case RM_XACT_ID:
			if (read_end(record, &end))
				note_end(activity, &end);
			break;
	}
}

/*
 * The first record of the oldest large transaction that has not ended.
 */
static XLogRecPtr
find_unfinished(Activity *activity)
{
	XLogRecPtr	first = InvalidXLogRecPtr;
	HASH_SEQ_STATUS status;
	TransactionEntry *transaction;

	hash_seq_init(&status, activity->transactions);
	while ((transaction = hash_seq_search(&status)) != NULL)
	{
		if (transaction->rows >= activity->least_rows &&
			(XLogRecPtrIsInvalid(first) || transaction->first < first))
			first = transaction->first;
	}
	return first;
}

/*
 * Reads WAL from a position, where no record needs to begin, at least up to
 * "enough", and on up to "most" while a large transaction has not ended, but
 * not beyond "end", where a record ends.
 */
Activity *
flashback_activity_read(XLogRecPtr start, XLogRecPtr enough, XLogRecPtr most,
						XLogRecPtr end, int64 least_rows)
{
	Activity   *activity = palloc0(sizeof(Activity));
	FlashbackWalPass *pass = flashback_wal_begin(start, end);
	XLogReaderState *record;

	activity->least_rows = least_rows;
	activity->counts = make_table("flashback counts", sizeof(CountKey), sizeof(CountEntry));
	activity->transactions = make_table("flashback transactions", sizeof(TransactionId), sizeof(TransactionEntry));
	activity->made = make_table("flashback new files", sizeof(RelFileLocator), sizeof(MadeEntry));
	activity->files = make_table("flashback files", sizeof(RelFileLocator), sizeof(ActivityFile));
	activity->last = DT_NOBEGIN;
	activity->reached = start;
	if (start < end && flashback_wal_seek(pass, start))
	{
		while ((record = flashback_wal_next(pass)) != NULL)
		{
			bool		past = (activity->reached >= enough);

			read_record(activity, record);
			activity->reached = record->EndRecPtr;
			if (activity->reached >= most)
				break;
			if (activity->reached >= enough && (!past || XLogRecGetRmid(record) == RM_XACT_ID) &&
				XLogRecPtrIsInvalid(find_unfinished(activity)))
				break;
		}
	}
	activity->unfinished = find_unfinished(activity);
	flashback_wal_end(pass);
	return activity;
}
