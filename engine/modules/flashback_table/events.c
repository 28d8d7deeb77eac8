/*-------------------------------------------------------------------------
 *
 * events.c
 *	  Which tables were dropped, truncated or rewritten, and when.
 *
 * The files that flashback_log has kept name a commit each.  Whose file it was
 * is what pg_class said just before that commit, and WAL tells which relations
 * the commit dropped.  That never changes, so it is remembered in a segment of
 * shared memory, for all sessions, until the server stops.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/events.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "flashback_definition.h"
#include "flashback_events.h"
#include "flashback_internal.h"
#include "miscadmin.h"
#include "storage/dsm_registry.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#define CACHE_SIZE 4096
#define CACHE_DEFINITIONS 512
#define CACHE_DEFINITION_LENGTH 4000

/*
 * What is remembered.  A commit has an entry of its own, without a relation,
 * and is known while all its events, and their definitions, are there as well.
 */
typedef struct EventEntry
{
	Oid			database;		/* InvalidOid: unused */
	int			nevents;		/* if it is a commit's */
	int			definition;		/* -1 = none */
	FlashbackEvent event;
} EventEntry;

typedef struct EventDefinition
{
	XLogRecPtr	lsn;			/* whose it is */
	Oid			database;
	Oid			relid;
	char text[	CACHE_DEFINITION_LENGTH];
} EventDefinition;

typedef struct EventCache
{
	LWLock		lock;
	int			next;			/* the entry to be used for the next ... */
	int			next_definition;	/* ... and the definition */
	EventEntry	entries[CACHE_SIZE];
	EventDefinition definitions[CACHE_DEFINITIONS];
} EventCache;

static void
initialize_cache(void *segment)
{
	EventCache *cache = segment;

	memset(cache, 0, sizeof(EventCache));
	LWLockInitialize(&cache->lock, LWLockNewTrancheId());
}

static EventCache *
get_cache(void)
{
	static EventCache *cache = NULL;
	MemoryContext old_context;
	bool		found;

	if (cache == NULL)
	{
		old_context = MemoryContextSwitchTo(TopMemoryContext);
		cache = GetNamedDSMSegment("flashback_table events", sizeof(EventCache), initialize_cache, &found);
		MemoryContextSwitchTo(old_context);
		LWLockRegisterTranche(cache->lock.tranche, "flashback_table_events");
	}
	return cache;
}

/*
 * The event of an entry; NULL if its definition was displaced.
 */
static FlashbackEvent *
copy_entry(const EventCache *cache, const EventEntry *entry)
{
	const EventDefinition *definition = NULL;
	FlashbackEvent *event;

	if (entry->definition >= 0)
	{
		definition = &cache->definitions[entry->definition];
		if (definition->lsn != entry->event.lsn || definition->database != entry->database ||
			definition->relid != entry->event.relid)
			return NULL;
	}
	event = palloc(sizeof(FlashbackEvent));
	*event = entry->event;
	event->definition = definition ? pstrdup(definition->text) : NULL;
	return event;
}

/*
 * The events of a commit, if they are remembered.
 */
static bool
recall(XLogRecPtr lsn, List **events)
{
	EventCache *cache = get_cache();
	int			expected = -1;

	*events = NIL;
	LWLockAcquire(&cache->lock, LW_SHARED);
	for (int i = 0; i < CACHE_SIZE; i++)
	{
		EventEntry *entry = &cache->entries[i];
		FlashbackEvent *event;

		if (entry->database != MyDatabaseId || entry->event.lsn != lsn)
			continue;
		if (!OidIsValid(entry->event.relid))
			expected = entry->nevents;
		else if ((event = copy_entry(cache, entry)) != NULL)
			*events = lappend(*events, event);
	}
	LWLockRelease(&cache->lock);
	return list_length(*events) == expected;
}

static void
put(EventCache *cache, const FlashbackEvent *event, int nevents)
{
	EventEntry *entry = &cache->entries[cache->next];

	cache->next = (cache->next + 1) % CACHE_SIZE;
	entry->database = MyDatabaseId;
	entry->nevents = nevents;
	entry->definition = -1;
	entry->event = *event;
	entry->event.definition = NULL;
	if (event->definition)
	{
		EventDefinition *definition = &cache->definitions[cache->next_definition];

		entry->definition = cache->next_definition;
		cache->next_definition = (cache->next_definition + 1) % CACHE_DEFINITIONS;
		definition->lsn = event->lsn;
		definition->database = MyDatabaseId;
		definition->relid = event->relid;
		strlcpy(definition->text, event->definition, sizeof(definition->text));
	}
}

/*
 * Remembers the events of a commit, unless a definition is too long.
 */
static void
remember(XLogRecPtr lsn, List *events)
{
	EventCache *cache = get_cache();
	FlashbackEvent commit = {.lsn = lsn};

	if (list_length(events) >= CACHE_DEFINITIONS)
		return;
	foreach_ptr(FlashbackEvent, event, events)
	{
		if (event->definition && strlen(event->definition) >= CACHE_DEFINITION_LENGTH)
			return;
	}
	LWLockAcquire(&cache->lock, LW_EXCLUSIVE);

	/* Somebody else may have been as quick, or some of them were displaced */
	for (int i = 0; i < CACHE_SIZE; i++)
	{
		if (cache->entries[i].database == MyDatabaseId && cache->entries[i].event.lsn == lsn)
			cache->entries[i].database = InvalidOid;
	}
	foreach_ptr(FlashbackEvent, event, events)
		put(cache, event, 0);
	put(cache, &commit, list_length(events));
	LWLockRelease(&cache->lock);
}

/*
 * The name that a schema had; '' if it cannot be told.
 */
static char *
get_former_schema(Oid namespace, const FlashbackMoment *moment)
{
	Relation	schemas = table_open(NamespaceRelationId, AccessShareLock);
	FlashbackScan *scan = flashback_scan_catalog(schemas, NULL, moment);
	TupleTableSlot *slot = flashback_scan_slot(scan);
	char	   *name = pstrdup("");

	while (flashback_scan_next(scan, slot))
	{
		if (DatumGetObjectId(flashback_catalog_value(slot, Anum_pg_namespace_oid)) == namespace)
			name = pstrdup(NameStr(*DatumGetName(flashback_catalog_value(slot, Anum_pg_namespace_nspname))));
	}
	ExecDropSingleTupleTableSlot(slot);
	flashback_scan_end(scan);
	table_close(schemas, NoLock);
	return name;
}

/*
 * CREATE TABLE with the columns that a table had.  Nothing that a user has
 * made is run for it: no default and no expression is in it.
 */
static char *
define(const FlashbackEvent *event, const FlashbackFormer *former)
{
	StringInfoData text;
	bool		first = true;

	initStringInfo(&text);
	appendStringInfo(&text, "CREATE TABLE %s (",
					 quote_qualified_identifier(NameStr(event->schema), NameStr(event->name)));
	for (int i = 0; i < former->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(former->desc, i);
		const char *type;

		if (att->attisdropped)
			continue;
		type = SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(att->atttypid)) ?
			format_type_extended(att->atttypid, att->atttypmod,
								 FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_ALLOW_INVALID | FORMAT_TYPE_FORCE_QUALIFY) :
			"\"a type that no longer exists\"";
		appendStringInfo(&text, "%s\n    %s %s%s", first ? "" : ",",
						 quote_identifier(NameStr(att->attname)), type, att->attnotnull ? " NOT NULL" : "");
		first = false;
	}
	appendStringInfoString(&text, "\n);");
	return text.data;
}

/*
 * The files that a commit has deleted.
 */
HTAB *
flashback_deleted_files(const FlashbackKeptFile *files, int nfiles)
{
	HASHCTL		ctl = {.keysize = sizeof(RelFileLocator),.entrysize = sizeof(FlashbackDeletedFile),.hcxt = CurrentMemoryContext};
	HTAB	   *table = hash_create("deleted files", nfiles, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	for (int i = 0; i < nfiles; i++)
	{
		FlashbackDeletedFile *file = hash_search(table, &files[i].rlocator, HASH_ENTER, NULL);

		file->size = (int64) files[i].nblocks * BLCKSZ;
		file->named = false;
	}
	return table;
}

static int64
size_of(HTAB *files, const RelFileLocator *rlocator)
{
	FlashbackDeletedFile *file = hash_search(files, rlocator, HASH_FIND, NULL);

	return file ? file->size : 0;
}

/*
 * The event that a commit is for a relation; nnew of those that it dropped were
 * not there before.  NULL if its schema has gone and the name is not given.
 */
FlashbackEvent *
flashback_event_create(const FlashbackFormer *former, const FlashbackCommit *commit, XLogRecPtr lsn,
					   int nnew, HTAB *files, const char *former_schema)
{
	const char *schema = get_namespace_name(former->namespace);
	FlashbackEvent *event;

	if (schema == NULL)
		schema = former_schema;
	if (schema == NULL)
		return NULL;
	event = palloc0(sizeof(FlashbackEvent));
	event->lsn = lsn;
	event->at = commit->time;
	event->rlocator = former->file.rlocator;
	event->size = size_of(files, &former->file.rlocator);
	if (OidIsValid(former->toastrelid) && hash_search(files, &former->toast.rlocator, HASH_FIND, NULL))
	{
		event->size += size_of(files, &former->toast.rlocator);
		event->toast = former->toast.rlocator;
	}
	event->relid = former->relid;
	event->namespace = former->namespace;
	namestrcpy(&event->schema, schema);
	event->name = former->name;
	event->owner = former->owner;
	event->partitioned = (former->kind == RELKIND_PARTITIONED_TABLE);
	event->partition = former->partition;

	/* What rewrites a table does so in a table that comes and goes */
	if (flashback_has_dropped(commit, former->relid))
		event->kind = FLASHBACK_DROPPED;
	else
		event->kind = nnew > 0 ? FLASHBACK_REWRITTEN : FLASHBACK_TRUNCATED;
	if (event->kind == FLASHBACK_DROPPED)
		event->definition = define(event, former);
	return event;
}

/*
 * Reads the catalogs as of just before a commit to find out whose files it has
 * deleted; false if that cannot be known.
 */
static bool
read_commit(const FlashbackKeptFile *files, int nfiles, List **events)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "flashback event",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	FlashbackMoment moment;
	FlashbackCommit commit;
	FlashbackRefusal refusal;
	FlashbackFormers *formers = NULL;
	HTAB	   *deleted = flashback_deleted_files(files, nfiles);
	int			nnew;
	bool		any_dropped = false;
	List	   *definitions = NIL;

	*events = NIL;
	if (flashback_try_resolve_before(files[0].commit_lsn, &moment, &commit, &refusal))
		formers = flashback_formers_of_files(deleted, &commit, &nnew, &moment, &refusal);
	for (int i = 0; formers && i < formers->n; i++)
		any_dropped |= flashback_has_dropped(&commit, formers->items[i].relid);
	if (any_dropped && !flashback_columns_read(formers, &moment, &refusal))
		formers = NULL;
	if (formers && any_dropped)
		definitions = flashback_definition_find(InvalidOid, files[0].commit_lsn);
	for (int i = 0; formers && i < formers->n; i++)
	{
		const FlashbackFormer *former = &formers->items[i];
		const char *schema = NULL;
		FlashbackEvent *event;

		if (!SearchSysCacheExists1(NAMESPACEOID, ObjectIdGetDatum(former->namespace)))
			schema = get_former_schema(former->namespace, &moment);
		MemoryContextSwitchTo(old_context);
		event = flashback_event_create(former, &commit, files[0].commit_lsn, nnew, deleted, schema ? schema : "");
		event->defined_at = flashback_definition_place(definitions, former->relid);
		*events = lappend(*events, event);
		MemoryContextSwitchTo(context);
	}
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
	return formers != NULL;
}

/* A commit that has deleted files */
typedef struct DeletingCommit
{
	const FlashbackKeptFile *files;
	int			nfiles;
	bool		known;
	List	   *events;
} DeletingCommit;

typedef struct DeletingCommits
{
	int			n;
	DeletingCommit *items;		/* in the order of WAL */
} DeletingCommits;

/*
 * A commit's events have been found in WAL.
 */
static void
note_events(XLogRecPtr commit_lsn, List *events, void *arg)
{
	DeletingCommits *commits = arg;
	int			low = 0;
	int			high = commits->n;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (commits->items[middle].files[0].commit_lsn < commit_lsn)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == commits->n || commits->items[low].files[0].commit_lsn != commit_lsn ||
		commits->items[low].known)
		return;
	commits->items[low].known = true;
	commits->items[low].events = events;
	remember(commit_lsn, events);
}

/*
 * Finds out what the commits were that are not remembered: first all those
 * after a point together, then, if need be, one of them alone.  Those of later
 * come first: whoever is interrupted finds them remembered the next time.
 */
static void
find_events(DeletingCommits *commits)
{
	for (int last = commits->n - 1; last >= 0;)
	{
		DeletingCommit *commit = &commits->items[last];
		DeletingCommit *first = commit;
		FlashbackPoint point;

		if (commit->known ||
			!flashback_log()->find_point_lsn(commit->files[0].commit_lsn - 1, &point))
		{
			last--;
			continue;
		}
		while (first > commits->items && (first - 1)->files[0].commit_lsn > point.lsn)
			first--;
		flashback_history_read(&point, first->files, commit->files + commit->nfiles - first->files,
							   note_events, commits);
		for (; commit >= first; commit--, last--)
		{
			if (commit->known || !read_commit(commit->files, commit->nfiles, &commit->events))
				continue;
			commit->known = true;
			remember(commit->files[0].commit_lsn, commit->events);
		}
	}
}

/*
 * The events of this database that can be gone back to before, newest first;
 * the oldest point; and how many kept files are of commits that are not known.
 */
List *
flashback_events(FlashbackPoint *oldest, int *nunknown)
{
	FlashbackKeptFile *files;
	DeletingCommits commits = {0};
	List	   *result = NIL;
	int			nfiles;
	int			n = 0;

	*nunknown = 0;
	if (!flashback_oldest_point(oldest))
		return NIL;
	files = flashback_log()->recycle->list(&nfiles);
	for (int i = 0; i < nfiles; i++)
	{
		if (files[i].rlocator.dbOid == MyDatabaseId && files[i].commit_lsn > oldest->lsn)
			files[n++] = files[i];
	}
	commits.items = palloc0_array(DeletingCommit, Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		DeletingCommit *commit;

		if (i > 0 && files[i].commit_lsn == files[i - 1].commit_lsn)
		{
			commits.items[commits.n - 1].nfiles++;
			continue;
		}
		commit = &commits.items[commits.n++];
		commit->files = &files[i];
		commit->nfiles = 1;
		commit->known = recall(files[i].commit_lsn, &commit->events);
	}
	find_events(&commits);
	for (int i = commits.n - 1; i >= 0; i--)
	{
		const DeletingCommit *commit = &commits.items[i];

		HTAB	   *deleted = flashback_deleted_files(commit->files, commit->nfiles);

		if (!commit->known)
			*nunknown += commit->nfiles;
		foreach_ptr(FlashbackEvent, event, commit->known ? commit->events : NIL)
		{
			if (event->partitioned || hash_search(deleted, &event->rlocator, HASH_FIND, NULL))
				result = lappend(result, event);
		}
		hash_destroy(deleted);
	}
	return result;
}
