/*-------------------------------------------------------------------------
 *
 * as_owner.c
 *	  Whatever may run what an owner wrote runs as the owner.
 *
 * A console calls as a superuser.  Triggers, defaults, checks, expressions,
 * output functions and the like of a table are its owner's: between
 * flashback_begin_as_owner() and flashback_end_as_owner() they have the
 * owner's rights and no way back (SET ROLE, SET SESSION AUTHORIZATION and
 * whatever else outlives a security-restricted operation are refused there),
 * and settings that they change are undone.  An error restores all of it with
 * the transaction or the subtransaction.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/as_owner.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "flashback_console.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

static void
check_owner(Oid relid)
{
	if (!object_ownercheck(RelationRelationId, relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relid)),
					   get_rel_name(relid));
}

/*
 * Opens a relation of the caller.  Nobody else locks it, and who owns it is
 * known when it is locked.
 */
Relation
flashback_open_owned(Oid relid, LOCKMODE lockmode)
{
	Relation	rel;

	if (get_rel_relkind(relid) == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	check_owner(relid);
	rel = relation_open(relid, lockmode);
	check_owner(relid);
	return rel;
}

/*
 * Texts of values are the same whoever asks, and can be read back.
 */
void
flashback_set_output_format(void)
{
	static const char *const settings[][2] = {
		{"datestyle", "ISO"},
		{"intervalstyle", "postgres"},
		{"extra_float_digits", "1"},
		{"bytea_output", "hex"},
	};

	for (int i = 0; i < lengthof(settings); i++)
		(void) set_config_option(settings[i][0], settings[i][1], PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

void
flashback_begin_as_owner(Relation rel, FlashbackOwner *scope)
{
	GetUserIdAndSecContext(&scope->save_userid, &scope->save_sec_context);
	SetUserIdAndSecContext(rel->rd_rel->relowner,
						   scope->save_sec_context | SECURITY_RESTRICTED_OPERATION);
	scope->save_nestlevel = NewGUCNestLevel();
	RestrictSearchPath();
	flashback_set_output_format();
}

void
flashback_end_as_owner(const FlashbackOwner *scope)
{
	AtEOXact_GUC(false, scope->save_nestlevel);
	SetUserIdAndSecContext(scope->save_userid, scope->save_sec_context);
}
