/*-------------------------------------------------------------------------
 *
 * functions.c
 *	  Functions that a worker has compiled for one session, and others call.
 *
 * What a constant of a date, an array or an amount of money means is found out
 * when a function of PL/pgSQL or SQL is called first, and kept with it; so is
 * which table a %ROWTYPE is of, and what a function says of a setting if it is
 * called immutable.  Natively each session finds its own, by its own settings.
 * So a worker that goes from one session to another forgets its functions
 * unless the settings are the same that all of them were compiled under.
 *
 * Sessions with the same settings share them, and a session finds its own for
 * as long as no other comes between.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/functions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "executor/executor.h"
#include "shared_server.h"
#include "tcop/session_state.h"
#include "utils/memutils.h"

/* No transaction of the session's runs: ours do not count */
bool		shared_server_between = false;

/* The settings that the functions were compiled under; what the present are */
static StringInfoData compiled_under;
static StringInfoData present;

/* Has the session called functions under other settings as well? */
static bool mixed = false;

/* Has another session compiled any of them? */
static bool of_others = false;

/* Who calls them */
static int	owner_slot = -1;
static uint32 owner_generation = 0;

static object_access_hook_type prev_object_access_hook = NULL;
static ExecutorStart_hook_type prev_executor_start_hook = NULL;

static bool
has_functions(void)
{
	return cfunc_hashtable && hash_get_num_entries(cfunc_hashtable) > 0;
}

/*
 * Are the present settings those that the functions were compiled under?
 */
static bool
is_compiled_under_present(void)
{
	resetStringInfo(&present);
	shared_server_append_meanings(&present);
	return compiled_under.len == present.len &&
		memcmp(compiled_under.data, present.data, present.len) == 0;
}

/*
 * A setting of a transaction is one for as long as that runs: looked at when it
 * ends, that is before it is taken back.
 */
static void
shared_server_xact_ends(XactEvent event, void *arg)
{
	if (shared_server_between || !has_functions() ||
		(event != XACT_EVENT_PRE_COMMIT && event != XACT_EVENT_PRE_PREPARE &&
		 event != XACT_EVENT_ABORT))
		return;
	if (is_compiled_under_present())
		return;
	if (compiled_under.len == 0)
		appendBinaryStringInfo(&compiled_under, present.data, present.len);
	else
		mixed = true;
}

/*
 * The next call takes each for one that has been replaced; what runs goes on.
 */
static void
forget_functions(void)
{
	HASH_SEQ_STATUS status;
	CachedFunctionHashEntry *entry;

	hash_seq_init(&status, cfunc_hashtable);
	while ((entry = hash_seq_search(&status)) != NULL)
		entry->function->fn_xmin = InvalidTransactionId;
	resetStringInfo(&compiled_under);
	mixed = of_others = false;
}

/*
 * A function may be called: has the session changed a setting since it took over
 * those of others?  Its own it keeps, as natively.
 */
static void
before_call(void)
{
	if (of_others && has_functions() && !is_compiled_under_present())
		forget_functions();
}

static void
shared_server_function_called(ObjectAccessType access, Oid classId, Oid objectId,
							  int subId, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, classId, objectId, subId, arg);
	if (access == OAT_FUNCTION_EXECUTE && objectId >= FirstNormalObjectId)
		before_call();
}

/* Triggers are called without a word */
static void
shared_server_executor_start(QueryDesc *queryDesc, int eflags)
{
	if (queryDesc->operation != CMD_SELECT)
		before_call();
	if (prev_executor_start_hook)
		prev_executor_start_hook(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
}

/*
 * Called once in each worker.
 */
void
shared_server_functions_init(void)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	initStringInfo(&compiled_under);
	initStringInfo(&present);
	MemoryContextSwitchTo(old);
	RegisterXactCallback(shared_server_xact_ends, NULL);
	prev_object_access_hook = object_access_hook;
	object_access_hook = shared_server_function_called;
	prev_executor_start_hook = ExecutorStart_hook;
	ExecutorStart_hook = shared_server_executor_start;
}

/*
 * This worker serves that session from now on, whose settings it has.
 */
void
shared_server_switch_functions(int slot, uint32 generation)
{
	if (owner_slot == slot && owner_generation == generation)
		return;
	owner_slot = slot;
	owner_generation = generation;
	of_others = has_functions();
	if (of_others && (mixed || !is_compiled_under_present()))
		forget_functions();
}
