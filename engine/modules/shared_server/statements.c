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
 * parsed when the session leaves, and if that gives another tree than the one
 * the statement has, the session stays.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/statements.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupdesc.h"
#include "access/xact.h"
#include "commands/prepare.h"
#include "nodes/parsenodes.h"
#include "parser/analyze.h"
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
 * The statement that stands at a place of a text, or NULL if the text is
 * empty.  Notices have been given when it was prepared.
 */
static RawStmt *
parse_statement(const char *text, int location, int length, bool from_sql)
{
	CommandDest destination = whereToSendOutput;
	List	   *volatile trees = NIL;
	volatile bool failed = false;
	MemoryContext context = CurrentMemoryContext;

	whereToSendOutput = DestNone;
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

static const char *
append_source(StringInfo buf, const char *name, bool from_sql, TimestampTz time,
			  CachedPlanSource *source)
{
	RawStmt    *raw = source->raw_parse_tree;
	TupleDesc	desc = source->resultDesc;

	/* a text that is too large need not be parsed to know that it stays */
	if (buf->len + strlen(source->query_string) > SHARED_SERVER_IMAGE_MAX)
		return "size";
	if (!is_reproducible(source, from_sql))
		return "prepared statements";
	shared_server_append_string(buf, name);
	shared_server_append_int(buf, from_sql);
	appendBinaryStringInfo(buf, &time, sizeof(time));
	shared_server_append_string(buf, source->query_string);
	shared_server_append_int(buf, raw != NULL);
	shared_server_append_int(buf, raw ? raw->stmt_location : 0);
	shared_server_append_int(buf, raw ? raw->stmt_len : 0);
	shared_server_append_int(buf, source->num_params);
	appendBinaryStringInfo(buf, source->param_types, source->num_params * sizeof(Oid));
	shared_server_append_int(buf, source->cursor_options);
	shared_server_append_int(buf, source->fixed_result);
	appendBinaryStringInfo(buf, &source->generic_cost, sizeof(double));
	appendBinaryStringInfo(buf, &source->total_custom_cost, sizeof(double));
	appendBinaryStringInfo(buf, &source->num_custom_plans, sizeof(int64));
	appendBinaryStringInfo(buf, &source->num_generic_plans, sizeof(int64));
	shared_server_append_int(buf, desc ? desc->natts : -1);
	if (desc)
	{
		shared_server_append_int(buf, desc->tdtypeid);
		shared_server_append_int(buf, desc->tdtypmod);
		for (int i = 0; i < desc->natts; i++)
			appendBinaryStringInfo(buf, TupleDescAttr(desc, i), ATTRIBUTE_FIXED_PART_SIZE);
	}
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

	/* with the old rule of backslashes, parsing warns */
	if ((count > 0 || unnamed_stmt_psrc) && !standard_conforming_strings)
		return "prepared statements";

	if (prepared_queries)
	{
		hash_seq_init(&status, prepared_queries);
		while ((sorted[n] = hash_seq_search(&status)) != NULL)
			n++;
	}
	qsort(sorted, n, sizeof(*sorted), compare_statements);
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
 * Make a statement of the image.
 */
static void
apply_statement(StringInfo buf, const char *name)
{
	bool		from_sql = shared_server_get_int(buf);
	TimestampTz time;
	const char *text;
	bool		has_tree;
	int			location,
				length,
				count,
				options,
				columns;
	bool		fixed;
	Oid		   *types;
	RawStmt    *raw = NULL;
	List	   *queries = NIL;
	CachedPlanSource *source;
	bool		analyzed_later;

	shared_server_get_value(buf, &time, sizeof(time));
	text = shared_server_get_string(buf);
	has_tree = shared_server_get_int(buf);
	location = shared_server_get_int(buf);
	length = shared_server_get_int(buf);
	count = shared_server_get_int(buf);
	types = palloc_array(Oid, count + 1);
	shared_server_get_value(buf, types, count * sizeof(Oid));
	options = shared_server_get_int(buf);
	fixed = shared_server_get_int(buf);

	if (has_tree)
	{
		raw = parse_statement(text, location, length, from_sql);
		if (raw == NULL)
			elog(ERROR, "prepared statement \"%s\" could not be parsed again", name);
	}
	analyzed_later = raw && stmt_requires_parse_analysis(raw);
	source = CreateCachedPlan(raw, text, raw ? CreateCommandTag(raw->stmt) : CMDTAG_UNKNOWN);

	/* what touches no catalog is never analyzed again */
	if (raw && !analyzed_later)
		queries = pg_analyze_and_rewrite_fixedparams(copyObject(raw), text, types, count, NULL);
	CompleteCachedPlan(source, queries, NULL, types, count, NULL, NULL, options, fixed);
	if (analyzed_later)
		source->is_valid = false;

	shared_server_get_value(buf, &source->generic_cost, sizeof(double));
	shared_server_get_value(buf, &source->total_custom_cost, sizeof(double));
	shared_server_get_value(buf, &source->num_custom_plans, sizeof(int64));
	shared_server_get_value(buf, &source->num_generic_plans, sizeof(int64));
	columns = shared_server_get_int(buf);
	source->resultDesc = NULL;
	if (columns >= 0)
	{
		MemoryContext old = MemoryContextSwitchTo(source->context);
		TupleDesc	desc = CreateTemplateTupleDesc(columns);

		desc->tdtypeid = shared_server_get_int(buf);
		desc->tdtypmod = shared_server_get_int(buf);
		for (int i = 0; i < columns; i++)
		{
			shared_server_get_value(buf, TupleDescAttr(desc, i), ATTRIBUTE_FIXED_PART_SIZE);
			populate_compact_attribute(desc, i);
		}
		source->resultDesc = desc;
		MemoryContextSwitchTo(old);
	}

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
}

void
shared_server_apply_statements(StringInfo buf)
{
	const char *name;
	bool		transaction = false;

	while ((name = shared_server_get_string(buf)) != NULL)
	{
		if (!transaction)
			StartTransactionCommand();
		transaction = true;
		apply_statement(buf, name);
	}
	if (transaction)
		CommitTransactionCommand();
}

/*
 * Forget those of the session that was here.
 */
void
shared_server_forget_statements(void)
{
	DropAllPreparedStatements();
	if (unnamed_stmt_psrc)
	{
		CachedPlanSource *source = unnamed_stmt_psrc;

		unnamed_stmt_psrc = NULL;
		DropCachedPlan(source);
	}
}
