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
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
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
 * The time of the oldest point that can be used; DT_NOEND if there is none.
 */
static TimestampTz
oldest_usable_time(void)
{
	TimestampTz result = DT_NOEND;
	XLogRecPtr	before = PG_UINT64_MAX;
	FlashbackPoint point;
	FlashbackRefusal ignored;

	while (before > 0 && flashback_log()->find_point_lsn(before, &point) &&
		   point_is_usable(&point, &ignored))
	{
		result = point.time;
		before = point.lsn - 1;
	}
	return result;
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
 * L(T), from a point's WAL.  *certain: WAL shows that no transaction is still
 * to come with a commit timestamp up to the moment.
 */
static XLogRecPtr
find_lsn(const FlashbackPoint *point, TimestampTz time, XLogRecPtr end, bool *certain)
{
	FlashbackWalPass *pass = flashback_wal_begin(point->redo, end);
	XLogReaderState *record;
	XLogRecPtr	result = InvalidXLogRecPtr;
	TimestampTz newest = DT_NOBEGIN;
	bool		warned = false;

	*certain = false;
	flashback_report(FLASHBACK_FINDING_POSITION);
	while ((record = flashback_wal_next(pass)) != NULL)
	{
		TimestampTz at;
		bool		commit;

		if (!end_time(record, &commit, &at))
			continue;
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
		if (at > time)
		{
			/* No change of a transaction that counts comes after this */
			*certain = true;
			if (commit)
			{
				result = record->ReadRecPtr;
				break;
			}
		}
	}
	if (XLogRecPtrIsInvalid(result))
		result = flashback_wal_position(pass);
	flashback_wal_end(pass);
	return result;
}

/*
 * Finds out how a moment can be gone back to; false, with the reason, if it
 * cannot.
 */
bool
flashback_try_resolve(TimestampTz time, FlashbackMoment *moment, FlashbackRefusal *refusal)
{
	const FlashbackLogApi *api = flashback_log();
	const char *enabled = GetConfigOption("polar_enable_flashback_log", true, false);
	TimestampTz now = GetCurrentTimestamp();
	bool		in_recovery = RecoveryInProgress();
	XLogRecPtr	end;
	bool		certain;

	memset(moment, 0, sizeof(*moment));
	moment->time = time;
	if (enabled == NULL || strcmp(enabled, "on") != 0)
	{
		refuse(refusal, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
			   "the flashback log is switched off");
		snprintf(refusal->hint, sizeof(refusal->hint),
				 "Set polar_enable_flashback_log to on and restart the server.");
		return false;
	}
	if (time >= now)
	{
		refuse(refusal, ERRCODE_INVALID_PARAMETER_VALUE,
			   "the target time is in the future");
		refusal->nearest_time = now;
		return false;
	}
	if (!api->find_point(time, &moment->point))
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

	if (in_recovery)
		end = GetXLogReplayRecPtr(NULL);
	else
	{
		wait_for_commits();
		end = GetXLogInsertEndRecPtr();
		XLogFlush(end);
	}

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
		moment->lsn = find_lsn(&moment->point, time, end, &certain);
		if (moment->lsn >= moment->point.lsn)
			break;

		/* The clock was read before the point's end of WAL */
		if (!api->find_point_lsn(moment->lsn, &moment->point))
		{
			refuse(refusal, ERRCODE_INVALID_PARAMETER_VALUE,
				   "the target time is before the oldest moment of the flashback log");
			refusal->nearest_time = oldest_usable_time();
			return false;
		}
	}

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
