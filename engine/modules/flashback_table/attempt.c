/*-------------------------------------------------------------------------
 *
 * attempt.c
 *	  What is tried in a subtransaction.
 *
 * An error may mean that something cannot be done this way, and then there is
 * another way, or that is what the caller wanted to know.  It may also mean
 * that nothing is to be done any more: a cancel, a conflict with another
 * transaction or with recovery, a shutdown, no memory.  Whoever went on after
 * one of these would ignore what it was told, so the caller says which errors
 * are of the first kind, and each of the others is raised again.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/attempt.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "flashback_console.h"
#include "utils/resowner.h"

/*
 * Whether the error is one of those, or in one of those classes.
 */
static bool
is_expected(const ErrorData *error, const int *expected)
{
	for (; *expected != 0; expected++)
	{
		if (error->sqlerrcode == *expected ||
			FLASHBACK_CLASS(ERRCODE_TO_CATEGORY(error->sqlerrcode)) == *expected)
			return true;
	}
	return false;
}

/*
 * Calls a function in a subtransaction of its own, and in the memory context of
 * the caller.  Returns NULL, and the subtransaction is committed or, where
 * that is wanted, undone; or the error, if it is one of those that are
 * expected (each an SQLSTATE or FLASHBACK_CLASS(), 0 at the end).
 */
ErrorData *
flashback_attempt(void (*act) (void *arg), void *arg, bool undo, const int *expected)
{
	MemoryContext old_context = CurrentMemoryContext;
	ResourceOwner old_owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(old_context);
	PG_TRY();
	{
		act(arg);
		if (undo)
			RollbackAndReleaseCurrentSubTransaction();
		else
			ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(old_context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(old_context);
		CurrentResourceOwner = old_owner;
		if (!is_expected(error, expected))
			ReThrowError(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old_context);
	CurrentResourceOwner = old_owner;
	return error;
}
