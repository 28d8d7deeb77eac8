/*-------------------------------------------------------------------------
 *
 * statements.c
 *	  Prepared statements in a session's image: named, unnamed, SQL's.
 *
 * A statement is carried as its text and made again as one that has been
 * invalidated: raw parsing needs no catalog, and the plan cache analyzes it
 * again when it is used next, as after any change of a table.  The row type
 * that the client was told is carried too, so that a change of it is the stock
 * error.
 *
 * Parsing depends on settings that may have changed since.  So the text is
 * parsed when the session first leaves with it, and if that gives another tree
 * than the one the statement has, the session stays.
 *
 * So does what a constant means: a time by TimeZone, a date by DateStyle.  A
 * statement that has such constants is moved under the settings that it was
 * analyzed under, and at once analyzed again in the other worker; while the
 * settings are others, the session stays.
 *
 * A worker keeps the statements of the sessions that it had, with their plans,
 * up to "polar_ss_worker_cache_size".  They stay on the plan cache's list, so
 * that they are invalidated as others are.  When the session comes back, each
 * is compared with what the image says, and used if that is the same.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/statements.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "access/tupdesc.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/prepare.h"
#include "common/hashfn.h"
#include "lib/ilist.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/analyze.h"
#include "parser/parse_expr.h"
#include "parser/parser.h"
#include "shared_server.h"
#include "tcop/cmdtag.h"
#include "tcop/dest.h"
#include "tcop/session_state.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/snapmgr.h"

/*
 * What the image says of a statement for as long as it lives, once it is known
 * that it can be made again from it.  Lives in the statement's own memory, and
 * hangs at parserSetupArg, which nobody reads where there is no parserSetup: a
 * new statement has none, even one at the same address.
 */
typedef struct SavedStatement
{
	uint32		round;			/* the last restoring that has met it */
	uint64		meaning;		/* of its constants; 0: always the same */
	int			length;
	char		record[FLEXIBLE_ARRAY_MEMBER];
} SavedStatement;

/* The statements of a session that is elsewhere, or silent */
typedef struct KeptStatements
{
	int			slot;			/* hash key */
	uint32		generation;
	HTAB	   *named;
	CachedPlanSource *unnamed;
	Size		size;
	dlist_node	link;			/* in the list of all, the last used first */
} KeptStatements;

static HTAB *kept = NULL;
static dlist_head kept_list = DLIST_STATIC_INIT(kept_list);
static Size kept_size = 0;

/* Whose statements are in prepared_queries and unnamed_stmt_psrc; -1: nobody's */
static int	owner_slot = -1;
static uint32 owner_generation = 0;

static uint32 restoring = 0;

/* What constants meant to what was analyzed since the worker took its session, 0: none; was it not the same for all? */
static uint64 meant = 0;
static bool meant_more = false;
static post_parse_analyze_hook_type prev_post_parse_analyze_hook = NULL;

/* By the present settings; never 0 */
static uint64
present_meaning(void)
{
	StringInfoData settings;
	uint64		hash;

	initStringInfo(&settings);
	shared_server_append_constant_meanings(&settings);
	hash = hash_bytes_extended((unsigned char *) settings.data, settings.len, 0);
	pfree(settings.data);
	return hash | 1;
}

/*
 * Types whose text means the same under all settings.  Others need not be asked
 * of the catalogs: to take one for a type that is not costs little.
 */
static bool
is_plain(Oid type)
{
	switch (type)
	{
		case BOOLOID:
		case BYTEAOID:
		case CHAROID:
		case NAMEOID:
		case INT8OID:
		case INT2OID:
		case INT4OID:
		case TEXTOID:
		case OIDOID:
		case TIDOID:
		case XIDOID:
		case JSONOID:
		case JSONBOID:
		case FLOAT4OID:
		case FLOAT8OID:
		case UNKNOWNOID:
		case INETOID:
		case CIDROID:
		case BPCHAROID:
		case VARCHAROID:
		case BITOID:
		case VARBITOID:
		case NUMERICOID:
		case UUIDOID:
			return true;
	}
	return false;
}

static bool
has_meaning(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Const))
		return !((Const *) node)->constisnull && !is_plain(((Const *) node)->consttype);
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		/* EXPLAIN, CREATE TABLE AS, DECLARE */
		if (query->commandType == CMD_UTILITY)
			return has_meaning((Node *) UtilityContainsQuery(query->utilityStmt), context);
		return query_tree_walker(query, has_meaning, context, 0);
	}
	return expression_tree_walker(node, has_meaning, context);
}

static void
shared_server_analyzed(ParseState *pstate, Query *query, JumbleState *jstate)
{
	if (prev_post_parse_analyze_hook)
		prev_post_parse_analyze_hook(pstate, query, jstate);
	if (!meant_more && has_meaning((Node *) query, NULL))
	{
		uint64		present = present_meaning();

		meant_more = meant != 0 && meant != present;
		meant = present;
	}
}

/*
 * Called once in each worker.
 */
void
shared_server_statements_init(void)
{
	prev_post_parse_analyze_hook = post_parse_analyze_hook;
	post_parse_analyze_hook = shared_server_analyzed;
}

/*
 * Does a text have a word for a time that is always another?
 */
static bool
speaks_of_now(const char *text)
{
	static const char *const words[] = {"now", "today", "tomorrow", "yesterday"};

	for (const char *at = text; *at; at++)
	{
		if (at > text &&(isalnum((unsigned char) at[-1]) || at[-1] == '_'))
			continue;
		for (int i = 0; i < lengthof(words); i++)
		{
			size_t		length = strlen(words[i]);

			if (pg_strncasecmp(at, words[i], length) != 0 ||
				isalnum((unsigned char) at[length]) || at[length] == '_')
				continue;
			/* a call of now() is made when the statement runs */
			if (i > 0 || at[length + strspn(at + length, " \t\n\r")] != '(')
				return true;
		}
	}
	return false;
}

/*
 * The statement that stands at a place of a text, or NULL if the text is
 * empty.  Notices have been given when it was prepared, and what settings allow
 * it was allowed then.
 */
static RawStmt *
parse_statement(const char *text, int location, int length, bool from_sql)
{
	CommandDest destination = whereToSendOutput;
	int			quote = backslash_quote;
	List	   *volatile trees = NIL;
	volatile bool failed = false;
	MemoryContext context = CurrentMemoryContext;

	whereToSendOutput = DestNone;
	backslash_quote = BACKSLASH_QUOTE_ON;
	PG_TRY();
	{
		trees = raw_parser(text, RAW_PARSE_DEFAULT);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
		failed = true;
	}
	PG_END_TRY();
	backslash_quote = quote;
	whereToSendOutput = destination;
	if (failed)
		return NULL;

	foreach_node(RawStmt, raw, trees)
	{
		if (raw->stmt_location != location || raw->stmt_len != length)
			continue;
		if (from_sql)
		{
			RawStmt    *inner = makeNode(RawStmt);

			if (!IsA(raw->stmt, PrepareStmt))
				return NULL;
			inner->stmt = castNode(PrepareStmt, raw->stmt)->query;
			inner->stmt_location = location;
			inner->stmt_len = length;
			return inner;
		}
		return raw;
	}
	return NULL;
}

/*
 * Can the statement be made again from its text?
 */
static bool
is_reproducible(CachedPlanSource *source, bool from_sql)
{
	RawStmt    *raw = source->raw_parse_tree;
	RawStmt    *again;

	if (source->analyzed_parse_tree || source->parserSetup || source->postRewrite ||
		source->is_oneshot || !source->is_complete)
		return false;
	if (raw == NULL)
		return true;
	again = parse_statement(source->query_string, raw->stmt_location, raw->stmt_len, from_sql);
	return again && equal(again, raw);
}

/*
 * What of a statement does not change.  The row type is one of that: a prepared
 * statement may not change it.
 */
static void
append_record(StringInfo buf, bool from_sql, TimestampTz time, uint64 meaning, CachedPlanSource *source)
{
	RawStmt    *raw = source->raw_parse_tree;
	TupleDesc	desc = source->resultDesc;

	shared_server_append_int(buf, from_sql);
	appendBinaryStringInfo(buf, &time, sizeof(time));
	appendBinaryStringInfo(buf, &meaning, sizeof(meaning));
	shared_server_append_string(buf, source->query_string);
	shared_server_append_int(buf, raw != NULL);
	shared_server_append_int(buf, raw ? raw->stmt_location : 0);
	shared_server_append_int(buf, raw ? raw->stmt_len : 0);
	shared_server_append_int(buf, source->num_params);
	if (source->num_params > 0)
		appendBinaryStringInfo(buf, source->param_types, source->num_params * sizeof(Oid));
	shared_server_append_int(buf, source->cursor_options);
	shared_server_append_int(buf, source->fixed_result);
	shared_server_append_int(buf, desc ? desc->natts : -1);
	if (desc)
	{
		shared_server_append_int(buf, desc->tdtypeid);
		shared_server_append_int(buf, desc->tdtypmod);
		for (int i = 0; i < desc->natts; i++)
			appendBinaryStringInfo(buf, TupleDescAttr(desc, i), ATTRIBUTE_FIXED_PART_SIZE);
	}
}

static void
save_statement(CachedPlanSource *source, uint64 meaning, StringInfo record)
{
	SavedStatement *saved = MemoryContextAlloc(source->context,
											   offsetof(SavedStatement, record) + record->len);

	saved->round = restoring;
	saved->meaning = meaning;
	saved->length = record->len;
	memcpy(saved->record, record->data, record->len);
	source->parserSetupArg = saved;
}

static const char *
append_source(StringInfo buf, const char *name, bool from_sql, TimestampTz time,
			  CachedPlanSource *source)
{
	SavedStatement *saved;

	/* a text that is too large need not be parsed to know that it stays */
	if (buf->len + strlen(source->query_string) > SHARED_SERVER_IMAGE_MAX)
		return "size";
	if (source->parserSetup || !source->fixed_result)
		return "prepared statements";
	if (source->parserSetupArg == NULL)
	{
		StringInfoData record;
		uint64		meaning = 0;

		if (!is_reproducible(source, from_sql))
			return "prepared statements";
		if (has_meaning((Node *) source->query_list, NULL))
		{
			/* when it was analyzed is not known, but how all were is */
			if (meant_more || speaks_of_now(source->query_string))
				return "prepared statements";
			meaning = meant;
		}
		initStringInfo(&record);
		append_record(&record, from_sql, time, meaning, source);
		save_statement(source, meaning, &record);
		pfree(record.data);
	}
	saved = source->parserSetupArg;
	if (saved->meaning != 0 && saved->meaning != present_meaning())
		return "prepared statements";
	shared_server_append_string(buf, name);
	shared_server_append_int(buf, saved->length);
	appendBinaryStringInfo(buf, saved->record, saved->length);
	appendBinaryStringInfo(buf, &source->generic_cost, sizeof(double));
	appendBinaryStringInfo(buf, &source->total_custom_cost, sizeof(double));
	appendBinaryStringInfo(buf, &source->num_custom_plans, sizeof(int64));
	appendBinaryStringInfo(buf, &source->num_generic_plans, sizeof(int64));
	return NULL;
}

static int
compare_statements(const void *a, const void *b)
{
	return strcmp((*(PreparedStatement *const *) a)->stmt_name,
				  (*(PreparedStatement *const *) b)->stmt_name);
}

/*
 * Save all statements.  Returns why that is impossible, or NULL.
 */
const char *
shared_server_append_statements(StringInfo buf)
{
	int			count = prepared_queries ? (int) hash_get_num_entries(prepared_queries) : 0;
	PreparedStatement **sorted = palloc_array(PreparedStatement *, count + 1);
	HASH_SEQ_STATUS status;
	int			n = 0;
	const char *reason = NULL;

	/*
	 * with the old rule of backslashes, parsing warns; NULL = NULL leaves no
	 * trace
	 */
	if ((count > 0 || unnamed_stmt_psrc) && (!standard_conforming_strings || Transform_null_equals))
		return "prepared statements";

	if (count > 0)
	{
		hash_seq_init(&status, prepared_queries);
		while ((sorted[n] = hash_seq_search(&status)) != NULL)
			n++;
		qsort(sorted, n, sizeof(*sorted), compare_statements);
	}
	for (int i = 0; i < n && reason == NULL; i++)
		reason = append_source(buf, sorted[i]->stmt_name, sorted[i]->from_sql,
							   sorted[i]->prepare_time, sorted[i]->plansource);
	if (unnamed_stmt_psrc && reason == NULL)
		reason = append_source(buf, "", false, 0, unnamed_stmt_psrc);
	shared_server_append_string(buf, NULL);
	pfree(sorted);
	return reason;
}

/*
 * Analyze a statement whose constants are to mean what they do under the present
 * settings.  What fails, because a table is gone, fails again when it is used.
 */
static bool
analyze_now(RawStmt *raw, const char *query, Oid *types, int count, List **queries)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool done = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		*queries = pg_analyze_and_rewrite_fixedparams(raw, query, types, count, NULL);
		PopActiveSnapshot();
		ReleaseCurrentSubTransaction();
		done = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		*queries = NIL;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return done;
}

/*
 * Make a statement of what the image says of it.
 */
static CachedPlanSource *
make_statement(StringInfo record, const char *name)
{
	StringInfoData again;
	bool		from_sql = shared_server_get_int(record);
	TimestampTz time;
	const char *query;
	bool		has_tree;
	int			location,
				length,
				count,
				options,
				columns;
	bool		fixed;
	uint64		meaning;
	Oid		   *types;
	RawStmt    *raw = NULL;
	List	   *queries = NIL;
	CachedPlanSource *source;
	bool		analyzed_later;

	shared_server_get_value(record, &time, sizeof(time));
	shared_server_get_value(record, &meaning, sizeof(meaning));
	query = shared_server_get_string(record);
	has_tree = shared_server_get_int(record);
	location = shared_server_get_int(record);
	length = shared_server_get_int(record);
	count = shared_server_get_int(record);
	types = palloc_array(Oid, count + 1);
	shared_server_get_value(record, types, count * sizeof(Oid));
	options = shared_server_get_int(record);
	fixed = shared_server_get_int(record);

	if (has_tree)
	{
		raw = parse_statement(query, location, length, from_sql);
		if (raw == NULL)
			elog(ERROR, "prepared statement \"%s\" could not be parsed again", name);
	}
	analyzed_later = raw && stmt_requires_parse_analysis(raw);
	source = CreateCachedPlan(raw, query, raw ? CreateCommandTag(raw->stmt) : CMDTAG_UNKNOWN);

	/* what touches no catalog is never analyzed again */
	if (raw && !analyzed_later)
		queries = pg_analyze_and_rewrite_fixedparams(copyObject(raw), query, types, count, NULL);
	else if (meaning != 0 && analyze_now(copyObject(raw), query, types, count, &queries))
		analyzed_later = false;
	CompleteCachedPlan(source, queries, NULL, types, count, NULL, NULL, options, fixed);
	if (analyzed_later)
		source->is_valid = false;

	columns = shared_server_get_int(record);
	source->resultDesc = NULL;
	if (columns >= 0)
	{
		MemoryContext old = MemoryContextSwitchTo(source->context);
		TupleDesc	desc = CreateTemplateTupleDesc(columns);

		desc->tdtypeid = shared_server_get_int(record);
		desc->tdtypmod = shared_server_get_int(record);
		for (int i = 0; i < columns; i++)
		{
			shared_server_get_value(record, TupleDescAttr(desc, i), ATTRIBUTE_FIXED_PART_SIZE);
			populate_compact_attribute(desc, i);
		}
		source->resultDesc = desc;
		MemoryContextSwitchTo(old);
	}

	/* what was made must be what was sent */
	initStringInfo(&again);
	append_record(&again, from_sql, time, meaning, source);
	if (again.len != record->len || memcmp(again.data, record->data, again.len) != 0)
		elog(ERROR, "prepared statement \"%s\" differs after it was restored", name);
	save_statement(source, meaning, &again);
	pfree(again.data);

	if (name[0] == '\0')
	{
		SaveCachedPlan(source);
		unnamed_stmt_psrc = source;
	}
	else
	{
		StorePreparedStatement(name, source, from_sql);
		FetchPreparedStatement(name, true)->prepare_time = time;
	}
	return source;
}

static void
drop_unnamed(void)
{
	CachedPlanSource *source = unnamed_stmt_psrc;

	unnamed_stmt_psrc = NULL;
	if (source)
		DropCachedPlan(source);
}

/* Is what this worker has of a statement what the image says? */
static bool
is_current(CachedPlanSource *source, StringInfo record)
{
	SavedStatement *saved = source->parserSetupArg;

	return source->parserSetup == NULL && saved && saved->length == record->len &&
		memcmp(saved->record, record->data, record->len) == 0;
}

/*
 * Have the statements of the image, and no others.
 */
void
shared_server_apply_statements(StringInfo buf)
{
	const char *name;
	bool		transaction = false;
	bool		unnamed = false;
	int			met = 0;

	restoring++;
	while ((name = shared_server_get_string(buf)) != NULL)
	{
		int			length = shared_server_get_int(buf);
		StringInfoData record;
		CachedPlanSource *source = NULL;

		initReadOnlyStringInfo(&record, unconstify(char *, (const char *) shared_server_get_bytes(buf, length)), length);
		if (name[0] == '\0')
		{
			unnamed = true;
			source = unnamed_stmt_psrc;
			if (source && !is_current(source, &record))
			{
				drop_unnamed();
				source = NULL;
			}
		}
		else
		{
			PreparedStatement *entry = FetchPreparedStatement(name, false);

			if (entry && !is_current(entry->plansource, &record))
				DropPreparedStatement(name, true);
			else if (entry)
				source = entry->plansource;
			met++;
		}
		if (source == NULL)
		{
			if (!transaction)
				StartTransactionCommand();
			transaction = true;
			source = make_statement(&record, name);
		}
		((SavedStatement *) source->parserSetupArg)->round = restoring;
		shared_server_get_value(buf, &source->generic_cost, sizeof(double));
		shared_server_get_value(buf, &source->total_custom_cost, sizeof(double));
		shared_server_get_value(buf, &source->num_custom_plans, sizeof(int64));
		shared_server_get_value(buf, &source->num_generic_plans, sizeof(int64));
	}
	if (transaction)
		CommitTransactionCommand();

	/* the session has dropped some elsewhere */
	if (!unnamed)
		drop_unnamed();
	if (prepared_queries && hash_get_num_entries(prepared_queries) != met)
	{
		HASH_SEQ_STATUS status;
		PreparedStatement *entry;

		hash_seq_init(&status, prepared_queries);
		while ((entry = hash_seq_search(&status)) != NULL)
		{
			SavedStatement *saved = entry->plansource->parserSetupArg;

			if (saved == NULL || saved->round != restoring)
				DropPreparedStatement(entry->stmt_name, true);
		}
	}
}

/*
 * Forget those of the session that was here.
 */
void
shared_server_forget_statements(void)
{
	DropAllPreparedStatements();
	drop_unnamed();
	owner_slot = -1;
}

static Size
source_size(CachedPlanSource *source)
{
	return MemoryContextMemAllocated(source->context, true) +
		(source->gplan ? MemoryContextMemAllocated(source->gplan->context, true) : 0);
}

/* Take it off the list; the caller does with the statements what it will. */
static void
unlink_kept(KeptStatements *entry)
{
	dlist_delete(&entry->link);
	kept_size -= entry->size;
	hash_search(kept, &entry->slot, HASH_REMOVE, NULL);
}

static void
drop_kept(KeptStatements *entry)
{
	HTAB	   *named = entry->named;
	CachedPlanSource *unnamed = entry->unnamed;

	unlink_kept(entry);
	if (named)
	{
		HASH_SEQ_STATUS status;
		PreparedStatement *statement;

		hash_seq_init(&status, named);
		while ((statement = hash_seq_search(&status)) != NULL)
			DropCachedPlan(statement->plansource);
		hash_destroy(named);
	}
	if (unnamed)
		DropCachedPlan(unnamed);
}

/*
 * Put the statements aside for when their session comes back.
 */
static void
keep_statements(void)
{
	KeptStatements *entry;
	bool		found;
	int			count = prepared_queries ? (int) hash_get_num_entries(prepared_queries) : 0;
	Size		limit = (Size) shared_server_worker_cache_size * 1024;

	if (count == 0 && unnamed_stmt_psrc == NULL)
		return;
	if (limit == 0)
	{
		shared_server_forget_statements();
		return;
	}
	if (kept == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(int),.entrysize = sizeof(KeptStatements)};

		kept = hash_create("shared_server statements", 64, &ctl, HASH_ELEM | HASH_BLOBS);
	}
	entry = hash_search(kept, &owner_slot, HASH_ENTER, &found);
	Assert(!found);
	entry->generation = owner_generation;
	entry->named = NULL;
	entry->unnamed = unnamed_stmt_psrc;
	entry->size = sizeof(KeptStatements);
	dlist_push_head(&kept_list, &entry->link);
	unnamed_stmt_psrc = NULL;
	if (entry->unnamed)
		entry->size += source_size(entry->unnamed);
	if (count > 0)
	{
		HASH_SEQ_STATUS status;
		PreparedStatement *statement;

		entry->named = prepared_queries;
		prepared_queries = NULL;
		/* a table has room for 32 from the beginning, and a directory */
		entry->size += 4096 + Max(count, 32) * (sizeof(PreparedStatement) + 16);
		hash_seq_init(&status, entry->named);
		while ((statement = hash_seq_search(&status)) != NULL)
			entry->size += source_size(statement->plansource);
	}
	kept_size += entry->size;
	while (kept_size > limit)
		drop_kept(dlist_tail_element(KeptStatements, link, &kept_list));
}

/*
 * This worker serves that session from now on.  Returns whether its statements
 * are what they were when it left this worker; otherwise they may have changed
 * elsewhere.
 */
bool
shared_server_switch_statements(int slot, uint32 generation)
{
	KeptStatements *entry;

	meant = 0;
	meant_more = false;
	if (owner_slot == slot && owner_generation == generation)
		return true;
	if (owner_slot >= 0)
		keep_statements();
	owner_slot = slot;
	owner_generation = generation;
	entry = kept ? hash_search(kept, &slot, HASH_FIND, NULL) : NULL;
	if (entry && entry->generation != generation)
	{
		/* another client's, who had the place before */
		drop_kept(entry);
		entry = NULL;
	}
	if (entry)
	{
		Assert(unnamed_stmt_psrc == NULL);
		if (entry->named)
		{
			if (prepared_queries)
				hash_destroy(prepared_queries);
			prepared_queries = entry->named;
		}
		unnamed_stmt_psrc = entry->unnamed;
		unlink_kept(entry);
	}
	return false;
}
