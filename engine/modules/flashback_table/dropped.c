/*-------------------------------------------------------------------------
 *
 * dropped.c
 *	  Tables that were dropped: which there are, and giving them back.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/dropped.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "commands/dbcommands.h"
#include "flashback_definition.h"
#include "flashback_events.h"
#include "flashback_sql.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(polar_flashback_dropped);
PG_FUNCTION_INFO_V1(polar_flashback_before_drop);

static const char *const kind_names[] = {
	[FLASHBACK_DROPPED] = "dropped",
	[FLASHBACK_TRUNCATED] = "truncated",
	[FLASHBACK_REWRITTEN] = "rewritten",
};

/*
 * Whether the current user could give a table back: as its owner, or the one
 * that it had if it does not exist any more.
 */
static bool
is_owned(const FlashbackEvent *event)
{
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(event->relid)))
		return object_ownercheck(RelationRelationId, event->relid, GetUserId());
	return has_privs_of_role(GetUserId(), event->owner);
}

/*
 * The schema's present name, or that of then if it does not exist any more.
 */
static const char *
schema_name(const FlashbackEvent *event)
{
	const char *name = get_namespace_name(event->namespace);

	return name ? name : NameStr(event->schema);
}

/*
 * The definition of a table that was dropped: all of it if that was kept, else
 * its columns; NULL if it was not dropped.
 */
static char *
define(const FlashbackEvent *event, const FlashbackPoint *oldest)
{
	FlashbackDefinition *definition = NULL;

	/* What the window does not need of WAL may be gone */
	if (event->definition && event->defined_at >= oldest->redo)
		definition = flashback_definition_read(event->defined_at, event->relid);
	return definition ? flashback_definition_text(definition) : event->definition;
}

/*
 * The tables of this database that were dropped, truncated or rewritten and
 * whose files of before are kept.  Who may monitor sees all; what columns a
 * table had, only its owner.
 */
Datum
polar_flashback_dropped(PG_FUNCTION_ARGS)
{
#define DROPPED_COLUMNS 10
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		all = has_privs_of_role(GetUserId(), ROLE_PG_MONITOR);
	FlashbackPoint oldest;
	List	   *events;
	int			nunknown;

	InitMaterializedSRF(fcinfo, 0);
	events = flashback_events(&oldest, &nunknown);
	foreach_ptr(FlashbackEvent, event, events)
	{
		bool		owned = is_owned(event);
		char	   *owner;
		char	   *definition = NULL;
		Datum		values[DROPPED_COLUMNS];
		bool		nulls[DROPPED_COLUMNS] = {0};
		int			i = 0;

		if ((!owned && !all) || flashback_event_is_purged(event))
			continue;
		owner = GetUserNameFromId(event->owner, true);
		values[i++] = ObjectIdGetDatum(event->relid);
		values[i++] = CStringGetTextDatum(schema_name(event));
		values[i++] = CStringGetTextDatum(NameStr(event->name));
		nulls[i] = (owner == NULL);
		values[i++] = owner ? CStringGetTextDatum(owner) : (Datum) 0;
		values[i++] = CStringGetTextDatum(kind_names[event->kind]);
		values[i++] = TimestampTzGetDatum(event->at);
		values[i++] = LSNGetDatum(event->lsn);
		nulls[i] = event->partitioned;
		values[i++] = Int64GetDatum(event->size);
		values[i++] = TimestampTzGetDatum(oldest.time);
		if (owned)
			definition = define(event, &oldest);
		nulls[i] = (definition == NULL);
		values[i++] = CStringGetTextDatum(definition ? definition : "");
		Assert(i == DROPPED_COLUMNS);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

static void
refuse_null(bool isnull, const char *name)
{
	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", name)));
}

/*
 * polar_flashback_before_drop(relation oid, lsn pg_lsn, result_name name,
 *							   result_schema name, condition text)
 */
Datum
polar_flashback_before_drop(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[4];
	bool		nulls[4] = {0};
	FlashbackResult result;

	refuse_null(PG_ARGISNULL(0), "relation");
	refuse_null(PG_ARGISNULL(1), "lsn");
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	PreventCommandIfReadOnly("polar_flashback_before_drop()");
	PreventCommandIfParallelMode("polar_flashback_before_drop()");

	flashback_make_result_before(PG_GETARG_OID(0), PG_GETARG_LSN(1),
								 PG_ARGISNULL(2) ? NULL : NameStr(*PG_GETARG_NAME(2)),
								 PG_ARGISNULL(3) ? NULL : NameStr(*PG_GETARG_NAME(3)),
								 PG_ARGISNULL(4) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(4)),
								 &result);
	values[0] = ObjectIdGetDatum(result.relid);
	values[1] = Int64GetDatum(result.rows);
	values[2] = LSNGetDatum(result.moment.lsn);
	values[3] = Int64GetDatum(result.moment.point.number);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * The dropped tables of a name that the current user may be given back, newest
 * first: of the schema that is named, else of the first in the search path
 * that has one.
 */
static List *
find_dropped(const RangeVar *relation)
{
	FlashbackPoint oldest;
	int			nunknown;
	List	   *events = flashback_events(&oldest, &nunknown);
	List	   *path = relation->schemaname ? list_make1_oid(InvalidOid) : fetch_search_path(false);
	List	   *found = NIL;

	foreach_oid(namespace, path)
	{
		foreach_ptr(FlashbackEvent, event, events)
		{
			if (event->kind == FLASHBACK_DROPPED &&
				namestrcmp(&event->name, relation->relname) == 0 &&
				(relation->schemaname ? strcmp(schema_name(event), relation->schemaname) == 0 :
				 event->namespace == namespace) &&
				!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(event->relid)) &&
				!flashback_event_is_purged(event) &&
				is_owned(event))
				found = lappend(found, event);
		}
		if (found != NIL)
			break;
	}
	return found;
}

static void
refuse_unknown(const RangeVar *relation)
{
	const char *enabled = GetConfigOption("polar_enable_flashback_log", true, false);
	const char *area = GetConfigOption("polar_enable_fast_recovery_area", true, false);
	bool		on = (enabled && strcmp(enabled, "on") == 0 && area && strcmp(area, "on") == 0);

	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("there is no dropped table \"%s\" that can be given back", relation->relname),
			 on ? errdetail("It was not yours, was dropped before the oldest moment of the flashback log, or its file was too large for polar_flashback_recycle_max_size, gave way to others, was purged or was lost in a crash.") :
			 errdetail("Files of dropped tables are kept only while polar_enable_flashback_log and polar_enable_fast_recovery_area are on."),
			 on ? errhint("See polar_flashback_dropped() for those that can.") : 0));
}

/*
 * FLASHBACK TABLE ... TO BEFORE DROP; returns the table that was made.
 */
Oid
flashback_give_back(RangeVar *relation, const char *newname)
{
	List	   *found;
	FlashbackEvent *newest;
	FlashbackResult result;

	if (relation->catalogname && strcmp(relation->catalogname, get_database_name(MyDatabaseId)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cross-database references are not implemented: \"%s.%s.%s\"",
						relation->catalogname, relation->schemaname, relation->relname)));
	found = find_dropped(relation);
	if (found == NIL)
		refuse_unknown(relation);
	newest = linitial(found);
	flashback_make_result_before(newest->relid, newest->lsn, newname, NULL, NULL, &result);

	ereport(NOTICE,
			(errmsg("table \"%s\" as it was before it was dropped at %s is now in table \"%s\"",
					relation->relname, timestamptz_to_str(newest->at), get_rel_name(result.relid)),
			 errdetail("It has no triggers, rules, policies and privileges.")));
	if (list_length(found) > 1)
	{
		FlashbackEvent *older = lsecond(found);

		ereport(NOTICE,
				(errmsg_plural("%d older dropped table has this name",
							   "%d older dropped tables have this name",
							   list_length(found) - 1, list_length(found) - 1),
				 errhint("The next is given back by polar_flashback_before_drop(%u, '%X/%X').",
						 older->relid, LSN_FORMAT_ARGS(older->lsn))));
	}
	return result.relid;
}
