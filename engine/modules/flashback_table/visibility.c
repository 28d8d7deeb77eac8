/*-------------------------------------------------------------------------
 *
 * visibility.c
 *	  Which tuples count at a moment.
 *
 * A transaction counts if its commit timestamp is not after the moment.  Of
 * the hint bits of a tuple only those are believed that hold at any time:
 * frozen, no xmax, locked only.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/visibility.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/commit_ts.h"
#include "access/multixact.h"
#include "access/transam.h"
#include "flashback_internal.h"
#include "utils/memutils.h"

#define CACHE_SIZE 8192

typedef struct CacheEntry
{
	TransactionId xid;
	bool		counts;
} CacheEntry;

struct FlashbackVisibility
{
	const FlashbackMoment *moment;
	CacheEntry	cache[CACHE_SIZE];	/* by the low bits of the xid */
};

FlashbackVisibility *
flashback_visibility_create(const FlashbackMoment *moment)
{
	FlashbackVisibility *visibility = palloc0(sizeof(FlashbackVisibility));

	visibility->moment = moment;
	return visibility;
}

static int
compare_xids(const void *a, const void *b)
{
	TransactionId x = *(const TransactionId *) a;
	TransactionId y = *(const TransactionId *) b;

	return x < y ? -1 : x > y;
}

static bool
is_member(TransactionId xid, const TransactionId *xids, uint32 nxids)
{
	return nxids > 0 &&
		bsearch(&xid, xids, nxids, sizeof(TransactionId), compare_xids) != NULL;
}

/*
 * Whether a transaction that has committed had done so before the moment's
 * position, as far as WAL shows that.
 */
static bool
ended_before(TransactionId xid, const FlashbackMoment *moment)
{
	if (TransactionIdPrecedes(xid, moment->settled_xid) ||
		is_member(xid, moment->committed, moment->ncommitted))
		return true;
	if (!TransactionIdPrecedes(xid, moment->next_xid) ||
		is_member(xid, moment->running, moment->nrunning))
		return false;
	if (moment->lacks_subxids)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("it is not known whether transaction %u had committed until the target time", xid),
				 errdetail("A transaction with many subtransactions was running.")));
	return true;
}

static bool
committed_until(TransactionId xid, const FlashbackMoment *moment)
{
	TimestampTz at;
	RepOriginId origin;

	if (!TransactionIdDidCommit(xid))
		return false;
	if (moment->by_position && !moment->lacks_subxids)
		return ended_before(xid, moment);
	if (TransactionIdGetCommitTsData(xid, &at, &origin))
	{
		if (origin == InvalidRepOriginId)
			return at <= moment->time;

		/*
		 * The time is that of the origin's commit, which says nothing about
		 * when this server committed.  Its record does: it is before the
		 * position, or not.
		 */
		return ended_before(xid, moment);
	}

	/*
	 * Commit timestamps were switched on later, or have been removed.  What
	 * committed before the position did so with a time up to the moment.
	 */
	if (!ended_before(xid, moment))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the commit timestamp of transaction %u is missing", xid),
				 errhint("Set polar_enable_fast_recovery_area to on to keep commit timestamps as long as the window.")));
	return true;
}

static bool
counts(FlashbackVisibility *visibility, TransactionId xid)
{
	CacheEntry *entry;

	if (!TransactionIdIsNormal(xid))
		return xid == FrozenTransactionId || xid == BootstrapTransactionId;
	entry = &visibility->cache[xid % CACHE_SIZE];
	if (entry->xid != xid)
	{
		entry->counts = committed_until(xid, visibility->moment);
		entry->xid = xid;
	}
	return entry->counts;
}

/*
 * The member of a multixact that updated or deleted, or InvalidTransactionId.
 */
static TransactionId
get_updater(MultiXactId multi)
{
	MultiXactMember *members;
	int			nmembers = GetMultiXactIdMembers(multi, &members, false, false);
	TransactionId result = InvalidTransactionId;

	for (int i = 0; i < nmembers; i++)
	{
		if (!ISUPDATE_from_mxstatus(members[i].status))
			continue;
		if (TransactionIdIsValid(result))
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("multixact %u has more than one updating member", multi)));
		result = members[i].xid;
	}
	if (nmembers > 0)
		pfree(members);
	return result;
}

/*
 * Whether a tuple of a page as of the moment's position is a row of then.
 */
bool
flashback_tuple_is_visible(FlashbackVisibility *visibility, HeapTupleHeader tuple)
{
	uint16		infomask = tuple->t_infomask;
	TransactionId xmax;

	if (infomask & HEAP_MOVED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot read a tuple that VACUUM FULL moved before PostgreSQL 9.0"),
				 errhint("Rewrite the table with VACUUM FULL.")));
	if (!HeapTupleHeaderXminFrozen(tuple) &&
		!counts(visibility, HeapTupleHeaderGetRawXmin(tuple)))
		return false;
	if ((infomask & HEAP_XMAX_INVALID) || HEAP_XMAX_IS_LOCKED_ONLY(infomask))
		return true;
	xmax = HeapTupleHeaderGetRawXmax(tuple);
	if (infomask & HEAP_XMAX_IS_MULTI)
		xmax = get_updater(xmax);
	return !TransactionIdIsValid(xmax) || !counts(visibility, xmax);
}
