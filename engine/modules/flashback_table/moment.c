/*-------------------------------------------------------------------------
 *
 * moment.c
 *	  Where in WAL a moment is, and whether it can be gone back to.
 *
 * L(T) is the start of the first record of a commit later than T, else the end
 * of WAL.  Every transaction with a commit timestamp up to T has made all its
 * changes before L(T), and nothing that it left visible was removed before.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/moment.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/commit_ts.h"
#include "access/multixact.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "flashback_internal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/standby.h"
#include "storage/standbydefs.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

static bool refuse(FlashbackRefusal *refusal, int sqlerrcode, const char *fmt,...) pg_attribute_printf(3, 4);

static bool
refuse(FlashbackRefusal *refusal, int sqlerrcode, const char *fmt,...)
{
	va_list		args;

	memset(refusal, 0, sizeof(*refusal));
	refusal->sqlerrcode = sqlerrcode;
	refusal->nearest_time = DT_NOEND;
	va_start(args, fmt);
	vsnprintf(refusal->reason, sizeof(refusal->reason), fmt, args);
	va_end(args);
	return false;
}

/*
 * Raises a refusal as an error.
 */
void
flashback_refuse(const FlashbackRefusal *refusal)
{
	ereport(ERROR,
			(errcode(refusal->sqlerrcode),
			 errmsg("%s", refusal->reason),
			 refusal->detail[0] ? errdetail("%s", refusal->detail) : 0,
			 refusal->hint[0] ? errhint("%s", refusal->hint) : 0));
}

/*
 * Whether what a point needs besides images is there: the status and the time
 * of each transaction that its pages name, and WAL.
 */
static bool
point_is_usable(const FlashbackPoint *point, FlashbackRefusal *refusal)
{
	TransactionId oldest_xid;
	MultiXactId oldest_multi;
	MultiXactId next_multi;
	XLogSegNo	segno;

	LWLockAcquire(XactTruncationLock, LW_SHARED);
	oldest_xid = TransamVariables->oldestClogXid;
	LWLockRelease(XactTruncationLock);
	ReadMultiXactIdRange(&oldest_multi, &next_multi);
	if (TransactionIdPrecedes(point->oldest_xid, oldest_xid) ||
		MultiXactIdPrecedes(point->oldest_multi, oldest_multi))
	{
		refuse(refusal, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
			   "the commit status of transactions of that time has been removed");
		snprintf(refusal->hint, sizeof(refusal->hint),
				 "Set polar_enable_fast_recovery_area to on to keep it as long as the window.");
		return false;
	}

	XLByteToSeg(point->redo, segno, wal_segment_size);
	if (XLogGetLastRemovedSegno() >= segno)
	{
		refuse(refusal, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
			   "the WAL of that time has been removed");
		snprintf(refusal->hint, sizeof(refusal->hint),
				 "Set polar_enable_fast_recovery_area to on to keep it as long as the window.");
		return false;
	}
	return true;
}

/*
 * The oldest point that can be used; false if there is none.
 */
bool
flashback_oldest_point(FlashbackPoint *point)
{
	XLogRecPtr	before = PG_UINT64_MAX;
	FlashbackPoint next;
	FlashbackRefusal ignored;
	bool		found = false;

	while (before > 0 && flashback_log()->find_point_lsn(before, &next) &&
		   point_is_usable(&next, &ignored))
	{
		*point = next;
		found = true;
		before = next.lsn - 1;
	}
	return found;
}

static TimestampTz
oldest_usable_time(void)
{
	FlashbackPoint point;

	return flashback_oldest_point(&point) ? point.time : DT_NOEND;
}

/*
 * A transaction in its commit may have taken a time up to the moment already,
 * and be shown as committed only after we looked.
 */
static void
wait_for_commits(void)
{
	VirtualTransactionId *vxids;
	int			nvxids;

	vxids = GetVirtualXIDsDelayingChkpt(&nvxids, DELAY_CHKPT_START);
	while (nvxids > 0 && HaveVirtualXIDsDelayingChkpt(vxids, nvxids, DELAY_CHKPT_START))
	{
		CHECK_FOR_INTERRUPTS();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 1, WAIT_EVENT_CHECKPOINT_DELAY_START);
		ResetLatch(MyLatch);
	}
	pfree(vxids);
}

/*
 * The time in a record of the end of a transaction.
 */
static bool
end_time(XLogReaderState *record, bool *commit, TimestampTz *time)
{
	uint8		op = XLogRecGetInfo(record) & XLOG_XACT_OPMASK;

	if (XLogRecGetRmid(record) != RM_XACT_ID)
		return false;
	*commit = (op == XLOG_XACT_COMMIT || op == XLOG_XACT_COMMIT_PREPARED);
	if (!*commit && op != XLOG_XACT_ABORT && op != XLOG_XACT_ABORT_PREPARED)
		return false;
	StaticAssertStmt(offsetof(xl_xact_commit, xact_time) == offsetof(xl_xact_abort, xact_time),
					 "commit and abort have their time at the same place");
	if (XLogRecGetDataLen(record) < MinSizeOfXactCommit)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("invalid transaction record in WAL at %X/%X", LSN_FORMAT_ARGS(record->ReadRecPtr))));
	memcpy(time, XLogRecGetData(record) + offsetof(xl_xact_commit, xact_time), sizeof(TimestampTz));
	return true;
}

/*
 * Takes so many bytes of a record; NULL if it has not so many.
 */
static const char *
take(const char **data, Size *left, Size n, Size size)
{
	const char *result = *data;

	if (n > *left / size)
		return NULL;
	*data += n * size;
	*left -= n * size;
	return result;
}

/*
 * Takes a commit record apart.
 */
static void
read_commit(XLogReaderState *record, FlashbackCommitRecord *commit)
{
	const char *data = XLogRecGetData(record);
	Size		left = XLogRecGetDataLen(record);
	uint32		xinfo = 0;
	const char *at;

	/* Sections of n items each, in this order */
	static const struct
	{
		uint32		flag;
		Size		size;
	}			sections[] = {
		{XACT_XINFO_HAS_SUBXACTS, sizeof(TransactionId)},
		{XACT_XINFO_HAS_RELFILELOCATORS, sizeof(RelFileLocator)},
		{XACT_XINFO_HAS_DROPPED_STATS, sizeof(xl_xact_stats_item)},
		{XACT_XINFO_HAS_INVALS, sizeof(SharedInvalidationMessage)},
	};

	memset(commit, 0, sizeof(*commit));
	commit->xid = XLogRecGetXid(record);
	if (!take(&data, &left, 1, MinSizeOfXactCommit))
		goto damaged;
	if ((XLogRecGetInfo(record) & XLOG_XACT_HAS_INFO) == 0)
		return;
	if ((at = take(&data, &left, 1, sizeof(uint32))) == NULL)
		goto damaged;
	memcpy(&xinfo, at, sizeof(uint32));
	commit->replicated = (xinfo & XACT_XINFO_HAS_ORIGIN) != 0;
	if ((xinfo & XACT_XINFO_HAS_DBINFO) && !take(&data, &left, 1, sizeof(xl_xact_dbinfo)))
		goto damaged;
	for (int i = 0; i < lengthof(sections); i++)
	{
		uint32		n;

		if ((xinfo & sections[i].flag) == 0)
			continue;
		if ((at = take(&data, &left, 1, sizeof(int))) == NULL)
			goto damaged;
		memcpy(&n, at, sizeof(n));
		if ((at = take(&data, &left, n, sections[i].size)) == NULL)
			goto damaged;
		if (sections[i].flag == XACT_XINFO_HAS_SUBXACTS)
		{
			commit->subxids = at;
			commit->nsubxids = n;
		}
		if (sections[i].flag == XACT_XINFO_HAS_RELFILELOCATORS)
			commit->nfiles = n;
		if (sections[i].flag == XACT_XINFO_HAS_DROPPED_STATS)
		{
			commit->stats = at;
			commit->nstats = n;
		}
	}
	if (xinfo & XACT_XINFO_HAS_TWOPHASE)
	{
		if ((at = take(&data, &left, 1, sizeof(TransactionId))) == NULL)
			goto damaged;
		memcpy(&commit->xid, at, sizeof(commit->xid));
	}
	return;

damaged:
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("invalid transaction record in WAL at %X/%X", LSN_FORMAT_ARGS(record->ReadRecPtr))));
}

/*
 * Notes the transactions of a commit record, if their commit timestamp is that
 * of an origin, or if timestamps do not matter.
 */
static void
note_committed(XLogReaderState *record, FlashbackMoment *moment, uint32 *allocated)
{
	FlashbackCommitRecord commit;

	read_commit(record, &commit);
	if (!commit.replicated && !moment->by_position)
		return;
	if (moment->ncommitted + commit.nsubxids + 1 > *allocated)
	{
		Size		size;

		*allocated = Max(*allocated * 2, moment->ncommitted + commit.nsubxids + 64);
		size = (Size) *allocated * sizeof(TransactionId);
		if (moment->committed)
			moment->committed = repalloc_huge(moment->committed, size);
		else
			moment->committed = MemoryContextAllocHuge(CurrentMemoryContext, size);
	}
	moment->committed[moment->ncommitted++] = commit.xid;
	if (commit.nsubxids > 0)
		memcpy(&moment->committed[moment->ncommitted], commit.subxids, commit.nsubxids * sizeof(TransactionId));
	moment->ncommitted += commit.nsubxids;
}

static int
compare_oids(const void *a, const void *b)
{
	Oid			x = *(const Oid *) a;
	Oid			y = *(const Oid *) b;

	return x < y ? -1 : x > y;
}

/*
 * When a commit was, and the relations of this database that it has dropped:
 * their statistics go with them.
 */
void
flashback_take_commit(const FlashbackCommitRecord *record, FlashbackCommit *commit)
{
	commit->time = record->time;
	commit->dropped = palloc_array(Oid, Max(record->nstats, 1));
	commit->ndropped = 0;
	for (uint32 i = 0; i < record->nstats; i++)
	{
		xl_xact_stats_item item;

		memcpy(&item, record->stats + i * sizeof(item), sizeof(item));
		if (item.kind == PGSTAT_KIND_RELATION && item.dboid == MyDatabaseId && item.objid_hi == 0)
			commit->dropped[commit->ndropped++] = item.objid_lo;
	}
	qsort(commit->dropped, commit->ndropped, sizeof(Oid), compare_oids);
}

/*
 * Whether a commit has dropped a relation.
 */
bool
flashback_has_dropped(const FlashbackCommit *commit, Oid relid)
{
	return commit->ndropped > 0 &&
		bsearch(&relid, commit->dropped, commit->ndropped, sizeof(Oid), compare_oids) != NULL;
}

/*
 * Takes a record apart if it is that of a commit.
 */
bool
flashback_is_commit(XLogReaderState *record, FlashbackCommitRecord *commit)
{
	bool		is_commit;
	TimestampTz at;

	if (!end_time(record, &is_commit, &at) || !is_commit)
		return false;
	read_commit(record, commit);
	commit->time = at;
	return true;
}

/*
 * Notes the transactions that were running at a position; a list with their
 * subtransactions is not given up for one without them.
 */
static void
note_running(XLogReaderState *record, FlashbackMoment *moment)
{
	Size		length = XLogRecGetDataLen(record);
	xl_running_xacts running;
	uint64		n;

	if (length < MinSizeOfXactRunningXacts)
		goto damaged;
	memcpy(&running, XLogRecGetData(record), MinSizeOfXactRunningXacts);
	moment->settled_xid = running.oldestRunningXid;
	if (running.subxid_overflow && TransactionIdIsValid(moment->next_xid))
		return;

	if (running.xcnt < 0 || running.subxcnt < 0)
		goto damaged;
	n = (uint64) running.xcnt + running.subxcnt;
	if (n > (length - MinSizeOfXactRunningXacts) / sizeof(TransactionId))
		goto damaged;
	if (moment->running)
		pfree(moment->running);
	moment->running = palloc_extended(Max(n, 1) * sizeof(TransactionId), MCXT_ALLOC_HUGE);
	memcpy(moment->running, XLogRecGetData(record) + MinSizeOfXactRunningXacts, n * sizeof(TransactionId));
	moment->nrunning = n;
	moment->next_xid = running.nextXid;
	moment->lacks_subxids = running.subxid_overflow;
	return;

damaged:
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("invalid record of running transactions in WAL at %X/%X", LSN_FORMAT_ARGS(record->ReadRecPtr))));
}

static int
compare_xids(const void *a, const void *b)
{
	TransactionId x = *(const TransactionId *) a;
	TransactionId y = *(const TransactionId *) b;

	return x < y ? -1 : x > y;
}

/*
 * L(T), from a point's WAL, and what is known there of transactions.
 * *certain: WAL shows that no transaction is still to come with a commit
 * timestamp up to the moment.
 *
 * With a commit (not NULL), the start of its record instead, which ends at
 * "end", and its time; *certain: there is one.
 */
static void
find_lsn(FlashbackMoment *moment, XLogRecPtr end, FlashbackCommit *of_commit, bool *certain)
{
	FlashbackWalPass *pass = flashback_wal_begin(moment->point.redo, end);
	XLogReaderState *record;
	TimestampTz newest = DT_NOBEGIN;
	uint32		allocated = 0;
	bool		warned = false;

	*certain = false;
	moment->lsn = InvalidXLogRecPtr;
	moment->settled_xid = InvalidTransactionId;
	moment->next_xid = InvalidTransactionId;
	moment->running = NULL;
	moment->nrunning = 0;
	moment->committed = NULL;
	moment->ncommitted = 0;
	flashback_report(FLASHBACK_FINDING_POSITION);
	while ((record = flashback_wal_next(pass)) != NULL)
	{
		TimestampTz at;
		bool		commit;

		if (XLogRecGetRmid(record) == RM_STANDBY_ID &&
			(XLogRecGetInfo(record) & ~XLR_INFO_MASK) == XLOG_RUNNING_XACTS)
			note_running(record, moment);
		if (!end_time(record, &commit, &at))
			continue;
		if (of_commit)
		{
			FlashbackCommitRecord found;

			if (!commit)
				continue;
			if (record->EndRecPtr == end)
			{
				*certain = true;
				moment->lsn = record->ReadRecPtr;
				moment->time = at - 1;
				(void) flashback_is_commit(record, &found);
				flashback_take_commit(&found, of_commit);
				break;
			}
			note_committed(record, moment, &allocated);
			continue;
		}
		if (newest != DT_NOBEGIN && at < newest - USECS_PER_SEC && !warned)
		{
			ereport(WARNING,
					(errmsg("the clock was set back by %d ms at %X/%X",
							(int) Min((newest - at) / 1000, PG_INT32_MAX),
							LSN_FORMAT_ARGS(record->ReadRecPtr)),
					 errdetail("Which transactions had committed until a moment before that is ambiguous.")));
			warned = true;
		}
		newest = Max(newest, at);
		if (at > moment->time)
		{
			/* No change of a transaction that counts comes after this */
			*certain = true;
			if (commit)
			{
				moment->lsn = record->ReadRecPtr;
				break;
			}
		}
		if (commit)
			note_committed(record, moment, &allocated);
	}
	if (XLogRecPtrIsInvalid(moment->lsn))
		moment->lsn = flashback_wal_position(pass);
	flashback_wal_end(pass);
	if (moment->nrunning > 0)
		qsort(moment->running, moment->nrunning, sizeof(TransactionId), compare_xids);
	if (moment->ncommitted > 0)
		qsort(moment->committed, moment->ncommitted, sizeof(TransactionId), compare_xids);
}

static bool
refuse_before_window(FlashbackRefusal *refusal)
{
	refuse(refusal, ERRCODE_INVALID_PARAMETER_VALUE,
		   "the target time is before the oldest moment of the flashback log");
	refusal->nearest_time = oldest_usable_time();
	if (refusal->nearest_time != DT_NOEND)
		snprintf(refusal->hint, sizeof(refusal->hint),
				 "The oldest moment is %s.", timestamptz_to_str(refusal->nearest_time));
	else
		snprintf(refusal->hint, sizeof(refusal->hint),
				 "The flashback log has no point yet; a checkpoint makes one.");
	return false;
}

static bool
log_is_on(FlashbackRefusal *refusal)
{
	const char *enabled = GetConfigOption("polar_enable_flashback_log", true, false);

	if (enabled != NULL && strcmp(enabled, "on") == 0)
		return true;
	refuse(refusal, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
		   "the flashback log is switched off");
	snprintf(refusal->hint, sizeof(refusal->hint),
			 "Set polar_enable_flashback_log to on and restart the server.");
	return false;
}

/*
 * The end of WAL that is there to be read.
 */
XLogRecPtr
flashback_end_of_wal(void)
{
	XLogRecPtr	end;

	if (RecoveryInProgress())
		return GetXLogReplayRecPtr(NULL);
	end = GetXLogInsertEndRecPtr();
	XLogFlush(end);
	return end;
}

/*
 * Finds the position, from the moment's point or an earlier one; false, with
 * the reason, if there is none that can be used.
 */
static bool
find_from_points(FlashbackMoment *moment, XLogRecPtr end, FlashbackCommit *of_commit,
				 bool *certain, FlashbackRefusal *refusal)
{
	for (;;)
	{
		if (!point_is_usable(&moment->point, refusal))
		{
			refusal->nearest_time = oldest_usable_time();
			if (refusal->nearest_time != DT_NOEND)
				snprintf(refusal->detail, sizeof(refusal->detail),
						 "The oldest moment that works is %s.", timestamptz_to_str(refusal->nearest_time));
			return false;
		}
		find_lsn(moment, end, of_commit, certain);

		/*
		 * The point must be before the position, and WAL between them must
		 * show which transactions were running.  A checkpoint writes that
		 * shortly after its point; only before the first has nothing.
		 */
		if (moment->lsn >= moment->point.lsn && TransactionIdIsValid(moment->settled_xid))
			return true;
		if (!flashback_log()->find_point_lsn(Min(moment->lsn, moment->point.lsn - 1), &moment->point))
		{
			refuse(refusal, ERRCODE_INVALID_PARAMETER_VALUE,
				   "the target time is before the oldest moment of the flashback log");
			snprintf(refusal->hint, sizeof(refusal->hint),
					 "The first checkpoint of the window was not complete then.");
			return false;
		}
	}
}

/*
 * Finds out how a moment can be gone back to; false, with the reason, if it
 * cannot.
 */
bool
flashback_try_resolve(TimestampTz time, FlashbackMoment *moment, FlashbackRefusal *refusal)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		in_recovery = RecoveryInProgress();
	bool		certain;

	memset(moment, 0, sizeof(*moment));
	moment->time = time;
	if (!log_is_on(refusal))
		return false;
	if (time >= now)
	{
		refuse(refusal, ERRCODE_INVALID_PARAMETER_VALUE,
			   "the target time is in the future");
		refusal->nearest_time = now;
		return false;
	}
	if (!flashback_log()->find_point(time, &moment->point))
		return refuse_before_window(refusal);
	if (!in_recovery)
		wait_for_commits();
	if (!find_from_points(moment, flashback_end_of_wal(), NULL, &certain, refusal))
		return false;

	if (in_recovery && !certain)
	{
		TimestampTz latest = GetLatestXTime();

		refuse(refusal, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
			   "the standby has not replayed a transaction later than the target time");
		if (latest != 0)
		{
			refusal->nearest_time = latest - 1;
			snprintf(refusal->hint, sizeof(refusal->hint),
					 "The newest moment that is known to be complete is %s.",
					 timestamptz_to_str(refusal->nearest_time));
		}
		return false;
	}
	return true;
}

/*
 * The moment before a commit, whose record ends at this position; false, with
 * the reason, if there is none.
 */
bool
flashback_try_resolve_before(XLogRecPtr commit_lsn, FlashbackMoment *moment,
							 FlashbackCommit *commit, FlashbackRefusal *refusal)
{
	bool		certain = false;

	memset(moment, 0, sizeof(*moment));
	memset(commit, 0, sizeof(*commit));
	moment->by_position = true;
	if (!log_is_on(refusal))
		return false;
	if (!RecoveryInProgress())
		wait_for_commits();
	if (XLogRecPtrIsInvalid(commit_lsn) || !flashback_log()->find_point_lsn(commit_lsn - 1, &moment->point))
		return refuse_before_window(refusal);
	if (commit_lsn <= flashback_end_of_wal() &&
		!find_from_points(moment, commit_lsn, commit, &certain, refusal))
		return false;
	if (!certain)
		return refuse(refusal, ERRCODE_INVALID_PARAMETER_VALUE,
					  "no transaction committed at %X/%X", LSN_FORMAT_ARGS(commit_lsn));
	return true;
}

/*
 * The same, with an error if the moment cannot be gone back to.
 */
void
flashback_resolve(TimestampTz time, FlashbackMoment *moment)
{
	FlashbackRefusal refusal;

	if (!flashback_try_resolve(time, moment, &refusal))
		flashback_refuse(&refusal);
}

/*
 * Whether all that has been read since the moment was resolved was there, and
 * complete.
 */
bool
flashback_moment_lasts(const FlashbackMoment *moment)
{
	FlashbackRefusal ignored;

	return flashback_log()->is_complete(&moment->point) &&
		point_is_usable(&moment->point, &ignored);
}
