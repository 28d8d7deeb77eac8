/*-------------------------------------------------------------------------
 *
 * results.c
 *	  The tables that flashbacks made, and whose rows they have.
 *
 * A result is known by its comment, in which everything is quoted:
 *
 *	"schema"."name" as of 2026-01-31 12:00:00.000000+00 (table 16384, columns 3, remark)
 *
 * Its owner can write any comment, so it is believed only about a table that
 * has the same owner, and what follows from it is checked again.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/results.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_description.h"
#include "commands/comment.h"
#include "flashback_console.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/miscnodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(polar_flashback_results);

/* Others may have comments of any length; ours are not longer */
#define MAX_COMMENT 1024

static void
append_quoted(StringInfo to, const char *name)
{
	appendStringInfoChar(to, '"');
	for (; *name; name++)
	{
		if (*name == '"')
			appendStringInfoChar(to, '"');
		appendStringInfoChar(to, *name);
	}
	appendStringInfoChar(to, '"');
}

/*
 * Writes the comment of a result.  natts is the number of columns, with
 * dropped ones, that the table had at the time.
 */
void
flashback_comment_former(Oid result, Oid relid, const char *schema, const char *name, int natts,
						 TimestampTz time, const char *remark)
{
	StringInfoData comment;
	struct pg_tm tm;
	fsec_t		fsec;
	char text[	MAXDATELEN + 1];

	if (timestamp2tm(time, NULL, &tm, &fsec, NULL, NULL) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	tm.tm_isdst = 0;
	EncodeDateTime(&tm, fsec, true, 0, NULL, USE_ISO_DATES, text);

	initStringInfo(&comment);
	append_quoted(&comment, schema);
	appendStringInfoChar(&comment, '.');
	append_quoted(&comment, name);
	appendStringInfo(&comment, " as of %s (table %u, columns %d, %s)",
					 text, relid, natts, remark);
	CreateComments(result, RelationRelationId, 0, comment.data);
	pfree(comment.data);
}

/*
 * The same for a table that exists.
 */
void
flashback_comment_result(Oid result, Relation rel, int natts, TimestampTz time,
						 const char *remark)
{
	flashback_comment_former(result, RelationGetRelid(rel), get_namespace_name(RelationGetNamespace(rel)),
							 RelationGetRelationName(rel), natts, time, remark);
}

static bool
read_quoted(const char **at, char *name)
{
	int			length = 0;

	if (*(*at)++ != '"')
		return false;
	for (;;)
	{
		char		c = *(*at)++;

		if (c == '\0')
			return false;
		if (c == '"' && *(*at)++ != '"')
		{
			(*at)--;
			name[length] = '\0';
			return length > 0;
		}
		if (length == NAMEDATALEN - 1)
			return false;
		name[length++] = c;
	}
}

static bool
read_word(const char **at, const char *word)
{
	if (strncmp(*at, word, strlen(word)) != 0)
		return false;
	*at += strlen(word);
	return true;
}

static bool
read_number(const char **at, uint32 *number)
{
	char	   *end;
	unsigned long value;

	if (!isdigit((unsigned char) **at))
		return false;
	errno = 0;
	value = strtoul(*at, &end, 10);
	if (errno != 0 || value > PG_UINT32_MAX)
		return false;
	*number = value;
	*at = end;
	return true;
}

static bool
read_time(const char **at, TimestampTz *time)
{
	ErrorSaveContext escontext = {T_ErrorSaveContext};
	size_t		length = strspn(*at, "0123456789-+:. ");
	char text[	MAXDATELEN + 1];
	Datum		value;

	if (length == 0 || length > MAXDATELEN)
		return false;
	memcpy(text, *at, length);
	text[		length] = '\0';

	if (!DirectInputFunctionCallSafe(timestamptz_in, text, InvalidOid, -1,
									 (fmNodePtr) &escontext, &value))
		return false;
	*time = DatumGetTimestampTz(value);
	*at += length;
	return true;
}

/*
 * Takes a comment apart; false if it is not one that we write.
 */
static bool
read_comment(const char *comment, FlashbackOrigin *origin)
{
	uint32		natts;
	unsigned int high;
	unsigned int low;

	if (!read_quoted(&comment, origin->schema) || !read_word(&comment, ".") ||
		!read_quoted(&comment, origin->name) || !read_word(&comment, " as of ") ||
		!read_time(&comment, &origin->time) || !read_word(&comment, "(table ") ||
		!read_number(&comment, &origin->relid) || !read_word(&comment, ", columns ") ||
		!read_number(&comment, &natts))
		return false;
	if (*comment != ',' && *comment != ')')
		return false;
	origin->lsn = InvalidXLogRecPtr;
	if (sscanf(comment, ", position %X/%X,", &high, &low) == 2)
		origin->lsn = ((XLogRecPtr) high) << 32 | low;
	if (natts > MaxHeapAttributeNumber)
		return false;
	origin->natts = natts;
	return true;
}

static bool
is_origin(const FlashbackOrigin *origin, Relation rel)
{
	if (origin->relid == RelationGetRelid(rel))
		return true;

	/* The table was dropped, and there is one of its name again */
	return get_rel_relkind(origin->relid) == '\0' &&
		strcmp(origin->name, RelationGetRelationName(rel)) == 0 &&
		strcmp(origin->schema, get_namespace_name(RelationGetNamespace(rel))) == 0;
}

/*
 * Opens a result and the table whose rows it has, both the caller's, and of
 * one owner.
 */
void
flashback_open_pair(Oid resultid, Oid relid, LOCKMODE result_lock, LOCKMODE rel_lock,
					Relation *result, Relation *rel, FlashbackOrigin *origin)
{
	char	   *comment;

	/* In this order, so that two who merge do not wait for each other */
	*rel = flashback_open_owned(relid, rel_lock);
	*result = flashback_open_owned(resultid, result_lock);
	if ((*result)->rd_rel->relkind != RELKIND_RELATION)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", RelationGetRelationName(*result))));
	if ((*result)->rd_rel->relowner != (*rel)->rd_rel->relowner)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("tables \"%s\" and \"%s\" do not have the same owner",
						RelationGetRelationName(*result), RelationGetRelationName(*rel))));
	comment = GetComment(resultid, RelationRelationId, 0);
	if (comment == NULL || !read_comment(comment, origin) || resultid == relid ||
		!is_origin(origin, *rel))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is not the result of a flashback of \"%s\"",
						RelationGetRelationName(*result), RelationGetRelationName(*rel)),
				 errdetail("The comment of a result says which table it was made from.")));

	/*
	 * Of another table of the same name, or a wrong comment: all columns
	 * count
	 */
	if (origin->relid != relid || origin->natts < 1 ||
		origin->natts > RelationGetNumberOfAttributes(*rel))
		origin->natts = RelationGetNumberOfAttributes(*rel);
}

static AttrNumber
find_column(Relation rel, Form_pg_attribute wanted)
{
	TupleDesc	desc = RelationGetDescr(rel);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || strcmp(NameStr(att->attname), NameStr(wanted->attname)) != 0)
			continue;
		if (att->atttypid == wanted->atttypid && att->atttypmod == wanted->atttypmod &&
			att->attcollation == wanted->attcollation)
			return i + 1;
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of table \"%s\" has another type than in \"%s\"",
						NameStr(att->attname), RelationGetRelationName(rel), wanted->attrelid == 0 ?
						"the other table" : get_rel_name(wanted->attrelid)),
				 errdetail("It is %s, not %s.",
						   format_type_with_typemod(att->atttypid, att->atttypmod),
						   format_type_with_typemod(wanted->atttypid, wanted->atttypmod))));
	}
	return InvalidAttrNumber;
}

/*
 * For each column of the table the one of the result with its name and type,
 * or 0: dropped ones, those later than natts, and those that can be missing
 * as they are generated.  With "all", not one column may be missing in either.
 */
AttrNumber *
flashback_map_columns(Relation result, Relation rel, int natts, bool all)
{
	TupleDesc	desc = RelationGetDescr(rel);
	AttrNumber *map = palloc0_array(AttrNumber, desc->natts);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || (i >= natts && !all))
			continue;
		map[i] = find_column(result, att);
		if (map[i] == InvalidAttrNumber && (att->attgenerated == '\0' || all))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of table \"%s\" is missing in \"%s\"",
							NameStr(att->attname), RelationGetRelationName(rel),
							RelationGetRelationName(result))));
	}
	for (int i = 0; all && i < RelationGetNumberOfAttributes(result); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(result), i);

		if (!att->attisdropped && find_column(rel, att) == InvalidAttrNumber)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of table \"%s\" is missing in \"%s\"",
							NameStr(att->attname), RelationGetRelationName(result),
							RelationGetRelationName(rel))));
	}
	return map;
}

/*
 * The size of a table with its indexes; false where somebody holds it, who is
 * not waited for.
 */
static bool
get_size(Oid relid, int64 *size)
{
	if (!ConditionalLockRelationOid(relid, AccessShareLock))
		return false;
	if (get_rel_relkind(relid) == '\0')
	{
		UnlockRelationOid(relid, AccessShareLock);
		return false;
	}
	*size = DatumGetInt64(DirectFunctionCall1(pg_total_relation_size, ObjectIdGetDatum(relid)));
	UnlockRelationOid(relid, AccessShareLock);
	return true;
}

/*
 * Puts what a comment says of a table into a row, if it is to be believed.
 */
static void
put_result(ReturnSetInfo *rsinfo, Oid resultid, const char *comment)
{
#define RESULT_COLUMNS 9
	Datum		values[RESULT_COLUMNS] = {0};
	bool		nulls[RESULT_COLUMNS] = {0};
	FlashbackOrigin origin;
	HeapTuple	result;
	HeapTuple	rel;
	Form_pg_class form;
	int64		size;

	if (!read_comment(comment, &origin))
		return;
	result = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(resultid));
	if (!HeapTupleIsValid(result))
		return;
	form = (Form_pg_class) GETSTRUCT(result);
	if (form->relkind != RELKIND_RELATION ||
		!object_ownercheck(RelationRelationId, resultid, GetUserId()))
		return;
	values[0] = ObjectIdGetDatum(resultid);
	values[1] = CStringGetTextDatum(get_namespace_name(form->relnamespace));
	values[2] = CStringGetTextDatum(NameStr(form->relname));
	values[3] = CStringGetTextDatum(GetUserNameFromId(form->relowner, false));

	rel = SearchSysCache1(RELOID, ObjectIdGetDatum(origin.relid));
	if (HeapTupleIsValid(rel))
	{
		Form_pg_class relform = (Form_pg_class) GETSTRUCT(rel);
		bool		believed = (relform->relowner == form->relowner);

		values[4] = ObjectIdGetDatum(origin.relid);
		values[5] = CStringGetTextDatum(get_namespace_name(relform->relnamespace));
		values[6] = CStringGetTextDatum(NameStr(relform->relname));
		ReleaseSysCache(rel);
		if (!believed)
			return;
	}
	else
	{
		/* It was dropped: these are only words */
		nulls[4] = true;
		values[5] = CStringGetTextDatum(origin.schema);
		values[6] = CStringGetTextDatum(origin.name);
	}
	values[7] = TimestampTzGetDatum(origin.time);
	nulls[8] = !get_size(resultid, &size);
	if (!nulls[8])
		values[8] = Int64GetDatum(size);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/*
 * The results that the caller owns, as a superuser does all.
 */
Datum
polar_flashback_results(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation	description;
	SysScanDesc scan;
	ScanKeyData keys[2];
	HeapTuple	tuple;
	MemoryContext row_context;

	InitMaterializedSRF(fcinfo, 0);
	row_context = AllocSetContextCreate(CurrentMemoryContext, "flashback result",
										ALLOCSET_SMALL_SIZES);
	description = table_open(DescriptionRelationId, AccessShareLock);
	ScanKeyInit(&keys[0], Anum_pg_description_classoid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&keys[1], Anum_pg_description_objsubid, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(0));
	scan = systable_beginscan(description, InvalidOid, false, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		MemoryContext old_context = MemoryContextSwitchTo(row_context);
		bool		isnull;
		Datum		comment = heap_getattr(tuple, Anum_pg_description_description,
										   RelationGetDescr(description), &isnull);

		CHECK_FOR_INTERRUPTS();
		if (!isnull)
			put_result(rsinfo, ((Form_pg_description) GETSTRUCT(tuple))->objoid,
					   text_to_cstring((text *) PG_DETOAST_DATUM_SLICE(comment, 0, MAX_COMMENT)));
		MemoryContextSwitchTo(old_context);
		MemoryContextReset(row_context);
	}
	MemoryContextDelete(row_context);
	systable_endscan(scan);
	table_close(description, AccessShareLock);
	return (Datum) 0;
}
