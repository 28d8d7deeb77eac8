/*-------------------------------------------------------------------------
 *
 * wal_fetch.c
 *	  Bring the WAL here that the pages of a source need.
 *
 * A standby that took pages from its primary and had to get their WAL by
 * streaming would depend on that primary, which may crash next, and wait for
 * pages of this standby.  So the WAL is brought first (R18).
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/wal_fetch.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/timeline.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogarchive.h"
#include "common/file_utils.h"
#include "miscadmin.h"
#include "postmaster/startup.h"
#include "replication/walreceiver.h"
#include "repair.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* Pages of WAL in one request: 2 MB */
#define WAL_BATCH_PAGES 256

/*
 * A position may lie within a record, which has to be here to its end.  What
 * the source has not flushed does not come.
 */
#define WAL_AHEAD (16 * XLOG_BLCKSZ)

/* PostgreSQL removes what begins like this when it starts after a crash */
#define WAL_FETCH_TEMP XLOGDIR "/xlogtemp.page_repair"

/* What came of one request */
typedef enum WalAnswer
{
	WAL_RECEIVED,
	WAL_GONE,					/* the source has it no more */
	WAL_FAILED,					/* the source says why */
} WalAnswer;

/* A segment that is being written */
typedef struct WalTarget
{
	TimeLineID	tli;
	XLogSegNo	segno;
	XLogRecPtr	start;			/* of the segment */
	bool		fresh;			/* a new file, under a temporary name */
	int			fd;
	char		path[MAXPGPATH];
} WalTarget;

/*
 * The timeline whose file replay reads for this segment: the newest that may
 * have it, and that the source has.
 */
static TimeLineID
segment_timeline(Recovery *recovery, XLogSegNo segno, TimeLineID newest)
{
	foreach_ptr(TimeLineHistoryEntry, entry, recovery->history)
	{
		XLogSegNo	begin = 0;

		if (!XLogRecPtrIsInvalid(entry->begin))
			XLByteToSeg(entry->begin, begin, wal_segment_size);
		if (entry->tli <= newest && segno >= begin)
			return entry->tli;
	}
	return newest;
}

/*
 * An error of the local file.  Nothing depends yet on what was written.
 */
static void
fail_local(const WalTarget *target, const char *what)
{
	int			save_errno = errno;

	if (target->fresh)
		(void) unlink(WAL_FETCH_TEMP);
	errno = save_errno;
	ereport(FATAL,
			(errcode_for_file_access(),
			 errmsg("could not %s WAL segment \"%s\" that page repair needs: %m", what, target->path),
			 errdetail("No page has been replaced that needs this WAL."),
			 save_errno == ENOSPC ?
			 errhint("Make room in \"%s\" and start this server again.", XLOGDIR) : 0));
}

/*
 * Open the file of the segment, or a new one if there is none of full size.
 */
static void
open_target(WalTarget *target)
{
	struct stat st;

	XLogFilePath(target->path, target->tli, target->segno, wal_segment_size);
	target->fresh = (stat(target->path, &st) != 0 || st.st_size != wal_segment_size);
	if (!target->fresh)
	{
		target->fd = OpenTransientFile(target->path, O_RDWR | PG_BINARY);
		if (target->fd < 0)
			fail_local(target, "open");
		return;
	}
	(void) unlink(WAL_FETCH_TEMP);
	target->fd = OpenTransientFile(WAL_FETCH_TEMP, O_RDWR | O_CREAT | O_EXCL | PG_BINARY);
	if (target->fd < 0)
		fail_local(target, "create");
	/* All of it now: a full disk shows before anything relies on the file */
	errno = 0;
	if (pg_pwrite_zeros(target->fd, wal_segment_size, 0) < 0)
	{
		if (errno == 0)
			errno = ENOSPC;
		fail_local(target, "write");
	}
}

/*
 * Make the segment durable and give it its name.
 */
static void
close_target(WalTarget *target, XLogRecPtr upto)
{
	if (pg_fsync(target->fd) != 0)
		ereport(data_sync_elevel(FATAL),
				(errcode_for_file_access(),
				 errmsg("could not fsync file \"%s\": %m", target->path)));
	if (CloseTransientFile(target->fd) != 0)
		fail_local(target, "close");
	if (target->fresh)
		(void) durable_rename(WAL_FETCH_TEMP, target->path, FATAL);

	/* Streaming will not come here again, so do what it does at the end */
	if (upto == target->start + wal_segment_size)
	{
		char		name[MAXFNAMELEN];

		XLogFileName(name, target->tli, target->segno, wal_segment_size);
		if (XLogArchiveMode != ARCHIVE_MODE_ALWAYS)
			XLogArchiveForceDone(name);
		else
			XLogArchiveNotify(name);
	}
}

/*
 * Give up what has been written of the segment.  In a file that was there the
 * valid WAL is as before.
 */
static void
abandon_target(WalTarget *target)
{
	CloseTransientFile(target->fd);
	if (target->fresh)
		(void) unlink(WAL_FETCH_TEMP);
}

/*
 * Is this the page of WAL that was asked for?  One of zeroes stands after a
 * switch; what it means where none is, the reader tells.
 */
static bool
is_wal_page(const char *page, XLogRecPtr at, TimeLineID tli)
{
	const XLogPageHeaderData *header = (const XLogPageHeaderData *) page;

	if (XLogSegmentOffset(at, wal_segment_size) != 0 && pg_memory_is_all_zeros(page, XLOG_BLCKSZ))
		return true;
	if (header->xlp_magic != XLOG_PAGE_MAGIC || header->xlp_pageaddr != at || header->xlp_tli > tli)
		return false;
	if (XLogSegmentOffset(at, wal_segment_size) == 0)
	{
		const XLogLongPageHeaderData *first = (const XLogLongPageHeaderData *) page;

		return (header->xlp_info & XLP_LONG_HEADER) != 0 &&
			first->xlp_sysid == GetSystemIdentifier() &&
			first->xlp_seg_size == wal_segment_size && first->xlp_xlog_blcksz == XLOG_BLCKSZ;
	}
	return true;
}

/*
 * Does the page agree with what this server has before the end of its WAL?
 */
static bool
agrees_with_local(Recovery *recovery, const WalTarget *target, const char *page, XLogRecPtr at)
{
	PGAlignedXLogBlock local;
	size_t		length = recovery->wal.end - at;

	if (target->fresh || at >= recovery->wal.end)
		return true;
	length = Min(length, XLOG_BLCKSZ);
	if (pg_pread(target->fd, local.data, length, at - target->start) != (ssize_t) length)
		return false;
	return memcmp(local.data, page, length) == 0;
}

/*
 * Ask for pages from "at" on, and write those that have come.  Sets *reached
 * to where the source's WAL that has been written ends.
 */
static WalAnswer
receive_pages(Recovery *recovery, PageSource *source, const PageSourceHeader *promised, const WalTarget *target,
			  XLogRecPtr at, int npages, XLogRecPtr *reached)
{
	const char *pages[WAL_BATCH_PAGES];
	int			lengths[WAL_BATCH_PAGES];
	PageSourceHeader header;
	PGresult   *result;
	WalAnswer	answer = WAL_RECEIVED;

	if (!page_source_send_wal(source, target->tli, at / XLOG_BLCKSZ, npages))
		return WAL_FAILED;
	result = page_source_receive(source, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), PAGE_REPAIR_ANSWER_MS),
								 &header);
	if (result == NULL)
		return WAL_FAILED;
	if (header.system_identifier != promised->system_identifier || header.timeline != promised->timeline ||
		!page_source_pages(result, npages, pages, lengths))
	{
		strlcpy(source->why, "it has become another while its WAL was read", sizeof(source->why));
		PQclear(result);
		return WAL_FAILED;
	}
	for (int i = 0; i < npages && answer == WAL_RECEIVED; i++, at += XLOG_BLCKSZ)
	{
		PGAlignedXLogBlock page;

		/* Nobody may have what the source could still lose */
		if (at >= header.flush_lsn)
			break;
		if (lengths[i] == -1)
		{
			answer = WAL_GONE;
			break;
		}
		if (lengths[i] == XLOG_BLCKSZ)
		{
			memcpy(page.data, pages[i], XLOG_BLCKSZ);
			if (header.flush_lsn - at < XLOG_BLCKSZ)
				memset(page.data + (header.flush_lsn - at), 0, XLOG_BLCKSZ - (header.flush_lsn - at));
		}
		if (lengths[i] != XLOG_BLCKSZ || !is_wal_page(page.data, at, target->tli))
		{
			snprintf(source->why, sizeof(source->why), "it could not give WAL at %X/%X", LSN_FORMAT_ARGS(at));
			answer = WAL_FAILED;
		}
		else if (!agrees_with_local(recovery, target, page.data, at))
		{
			snprintf(source->why, sizeof(source->why), "its WAL before %X/%X is not this server's",
					 LSN_FORMAT_ARGS(Min(at + XLOG_BLCKSZ, recovery->wal.end)));
			answer = WAL_FAILED;
		}
		else
		{
			errno = 0;
			if (pg_pwrite(target->fd, page.data, XLOG_BLCKSZ, at - target->start) != XLOG_BLCKSZ)
			{
				if (errno == 0)
					errno = ENOSPC;
				fail_local(target, "write");
			}
			*reached = Min(at + XLOG_BLCKSZ, header.flush_lsn);
		}
	}
	PQclear(result);
	return answer;
}

/*
 * What the source has removed may be in the archive.
 */
static bool
restore_segment(const WalTarget *target)
{
	char		restored[MAXPGPATH];
	char		name[MAXFNAMELEN];

	XLogFileName(name, target->tli, target->segno, wal_segment_size);
	if (!RestoreArchivedFile(restored, name, "RECOVERYXLOG", wal_segment_size, false))
		return false;
	KeepFileRestoredFromArchive(restored, name);
	return true;
}

/*
 * Bring one segment up to "upto", or to what the source has flushed of it.  Sets
 * *whole to whether all of it is here.
 */
static WalAnswer
fetch_segment(Recovery *recovery, PageSource *source, const PageSourceHeader *header, XLogSegNo segno, XLogRecPtr upto,
			  bool *whole)
{
	WalTarget	target = {.segno = segno,.tli = segment_timeline(recovery, segno, header->timeline)};
	WalAnswer	answer = WAL_RECEIVED;
	XLogRecPtr	at;
	XLogRecPtr	reached;

	XLogSegNoOffsetToRecPtr(segno, 0, wal_segment_size, target.start);
	upto = Min(upto, target.start + wal_segment_size);
	open_target(&target);
	at = target.fresh ? target.start : Max(target.start, recovery->wal.end - recovery->wal.end % XLOG_BLCKSZ);
	reached = at;
	while (at < upto && answer == WAL_RECEIVED)
	{
		int			npages = Min(WAL_BATCH_PAGES, (upto - at + XLOG_BLCKSZ - 1) / XLOG_BLCKSZ);

		ProcessStartupProcInterrupts();
		ereport_startup_progress("fetching WAL for page repair, elapsed time: %ld.%02d s, current: %X/%X",
								 LSN_FORMAT_ARGS(at));
		answer = receive_pages(recovery, source, header, &target, at, npages, &reached);
		at += (XLogRecPtr) npages * XLOG_BLCKSZ;
		if (reached < Min(at, upto))
			break;
	}
	if (answer != WAL_RECEIVED || reached == target.start)
		abandon_target(&target);
	else
		close_target(&target, reached);
	*whole = true;
	if (answer == WAL_GONE && restore_segment(&target))
		return WAL_RECEIVED;
	*whole = (reached == target.start + wal_segment_size);
	return answer;
}

/*
 * It will not come from this source any more.
 */
static void
refuse_wal(Recovery *recovery, PageSource *source, XLogSegNo segno, TimeLineID tli)
{
	char		name[MAXFNAMELEN];

	XLogFileName(name, tli, segno, wal_segment_size);
	recovery->wal_gone = true;
	refuse_source(source, "it has removed WAL segment %s, which this server needs before its pages", name);
}

/*
 * Has this server WAL that the history it recovers to has left before?
 */
static bool
is_off_the_way(Recovery *recovery)
{
	XLogRecPtr	left;

	if (recovery->wal.timeline == 0)
		return false;
	if (!tliInHistory(recovery->wal.timeline, recovery->history))
		return true;
	left = tliSwitchPoint(recovery->wal.timeline, recovery->history, NULL);
	return !XLogRecPtrIsInvalid(left) && recovery->wal.end > left;
}

/*
 * A source of an older release knows pages only.  What is taken from it is as
 * right, but this server needs its primary's WAL until it has caught up.
 */
static bool
go_without(Recovery *recovery, PageSource *source, XLogRecPtr target)
{
	if (!recovery->told_without_wal)
		ereport(WARNING,
				(errmsg("page repair source \"%s\" is of a release that cannot give WAL", source->name),
				 errdetail("Until this server has replayed up to %X/%X it can serve no pages itself.",
						   LSN_FORMAT_ARGS(target)),
				 errhint("Upgrade that server as well.")));
	recovery->told_without_wal = true;
	return true;
}

/*
 * Bring all segments from the end of the local WAL on.
 */
static bool
fetch_range(Recovery *recovery, PageSource *source, const PageSourceHeader *header, XLogRecPtr upto)
{
	XLogSegNo	segno;
	XLogSegNo	last;

	XLByteToSeg(recovery->wal.end, segno, wal_segment_size);
	XLByteToPrevSeg(upto, last, wal_segment_size);
	for (; segno <= last; segno++)
	{
		bool		whole;

		switch (fetch_segment(recovery, source, header, segno, upto, &whole))
		{
			case WAL_RECEIVED:
				break;
			case WAL_FAILED:
				return false;
			case WAL_GONE:
				refuse_wal(recovery, source, segno, segment_timeline(recovery, segno, header->timeline));
				return false;
		}
		if (!whole)
			break;
	}
	return true;
}

/* A short sleep that ends with the deadline; false after that */
static bool
wait_a_moment(TimestampTz deadline)
{
	ProcessStartupProcInterrupts();
	if (GetCurrentTimestamp() >= deadline)
		return false;
	(void) WaitLatch(MyLatch,
					 WL_LATCH_SET | WL_TIMEOUT | (IsUnderPostmaster ? WL_EXIT_ON_PM_DEATH : 0),
					 20, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	return true;
}

/*
 * Where the checkpoint record itself had to be streamed, the WAL receiver
 * writes to the same files, and only one may: wait for what it brings.  Returns
 * false if it has ended before that was enough.
 */
static bool
wait_for_receiver(Recovery *recovery, XLogRecPtr target, TimestampTz deadline)
{
	XLogRecPtr	wanted = InvalidXLogRecPtr;

	while (WalRcvStreaming() && wait_a_moment(deadline))
	{
		XLogRecPtr	flushed = GetWalRcvFlushRecPtr(NULL, NULL);

		if (flushed < target)
			continue;
		if (XLogRecPtrIsInvalid(wanted))
		{
			page_repair_read_on(&recovery->wal, recovery->history);
			if (recovery->wal.end >= target)
				wanted = recovery->wal.end;
		}
		if (!XLogRecPtrIsInvalid(wanted) && flushed >= wanted)
			return true;
	}
	return false;
}

/*
 * Have the WAL up to this position written here.
 */
static bool
fetch_up_to(Recovery *recovery, PageSource *source, const PageSourceHeader *header, XLogRecPtr target, TimestampTz deadline)
{
	XLogRecPtr	upto = Max(target, header->flush_lsn) + WAL_AHEAD;

	if (is_off_the_way(recovery))
	{
		refuse_source(source, "this server has WAL of timeline %u up to %X/%X, which is not on the way to timeline %u",
					  recovery->wal.timeline, LSN_FORMAT_ARGS(recovery->wal.end), recovery->history_of);
		return false;
	}
	begin_startup_progress_phase();
	while (recovery->wal.end < target)
	{
		if (!fetch_range(recovery, source, header, upto))
			return source->without_wal && go_without(recovery, source, target);
		page_repair_read_on(&recovery->wal, recovery->history);
		if (recovery->wal.end < target && !wait_a_moment(deadline))
		{
			refuse_source(source, "its WAL after %X/%X cannot be read", LSN_FORMAT_ARGS(recovery->wal.end));
			return false;
		}
		upto += upto - recovery->wal.end;
	}
	/* What comes next tells of itself */
	begin_startup_progress_phase();
	return true;
}

/*
 * Before pages with this header are written: have all WAL up to their position
 * here, durable, up to the end of a record (R18).  Returns false, and the
 * source says why, if it cannot be had from it now.
 */
bool
wal_fetch(Recovery *recovery, PageSource *source, const PageSourceHeader *header)
{
	XLogRecPtr	target = header->end_lsn;
	XLogRecPtr	from = recovery->wal.end;
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), page_repair_timeout);

	if (WalRcvStreaming())
	{
		if (wait_for_receiver(recovery, target, deadline))
			return true;
		if (WalRcvStreaming())
		{
			snprintf(source->why, sizeof(source->why), "WAL up to its position %X/%X has not been streamed yet",
					 LSN_FORMAT_ARGS(target));
			return false;
		}
	}
	if (recovery->wal.end >= target)
		return true;
	if (source->without_wal)
		return go_without(recovery, source, target);
	if (!fetch_up_to(recovery, source, header, target, deadline))
		return false;
	if (recovery->wal_fetched == 0 && recovery->wal.end > from)
		ereport(LOG,
				(errmsg("page repair fetched WAL from %X/%X to %X/%X from source \"%s\"",
						LSN_FORMAT_ARGS(from), LSN_FORMAT_ARGS(recovery->wal.end), source->name)));
	recovery->wal_fetched += recovery->wal.end - from;
	return true;
}
