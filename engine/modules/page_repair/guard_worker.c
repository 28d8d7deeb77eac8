/*-------------------------------------------------------------------------
 *
 * guard_worker.c
 *	  Is there a source that could give every torn page back?
 *
 * All sources are asked each second, each on its own: one that does not answer
 * keeps nobody from hearing what the others say.  What follows from the answers
 * is left in shared memory, where the checkpointer's hooks find it.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/guard_worker.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "decision.h"
#include "guard.h"
#include "log_source.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/bgwriter.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/waiteventset.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/*
 * How long a checkpoint with images may need before another is asked for; one
 * that is only slow is followed by one that has little to do.
 */
#define GUARD_ASK_AGAIN_MS 10000

/* A source as this process sees it, beside the connection to it */
typedef struct GuardSource
{
	bool		asking;			/* a question is under way */
	TimestampTz deadline;		/* of that */
	TimestampTz next_ask;
	XLogRecPtr	asked_for;		/* the redo point that was known then */
	bool		known;			/* it has answered, or failed to */
	bool		answered;		/* the last question was */
	PageSourceHeader header;	/* what it has answered */
	TimestampTz checked_at;
	TimestampTz behind_since;	/* its replay has not come to the redo point,
								 * which it has been seen at before */
	bool		caught_up;		/* seen there since it is asked, or has come
								 * back */
	XLogRecPtr	answered_for;
	bool		healthy;
} GuardSource;

static PageSource *sources = NULL;
static int	nsources = 0;
static GuardSource seen[PAGE_REPAIR_MAX_SOURCES];
static XLogRecPtr current_redo = InvalidXLogRecPtr;
static TimeoutId alarm_id;
static bool leaving = false;

static void
worker_exit(int code, Datum arg)
{
	/* Without us nobody knows: images on */
	SpinLockAcquire(&page_repair_shared->mutex);
	page_repair_shared->worker = INVALID_PROC_NUMBER;
	/* Only now: whoever is started before would find us here, and leave */
	if (leaving)
		page_repair_shared->launched = false;
	page_repair_shared->forced = true;
	page_repair_shared->reached = InvalidXLogRecPtr;
	strlcpy(page_repair_shared->why, "the page repair guard does not run", sizeof(page_repair_shared->why));
	SpinLockRelease(&page_repair_shared->mutex);
	guard_wake_checkpointer();
}

static void
set_broken(bool broken)
{
	SpinLockAcquire(&page_repair_shared->mutex);
	page_repair_shared->broken = broken;
	SpinLockRelease(&page_repair_shared->mutex);
}

static void
set_state(PageRepairState state, const char *why)
{
	SpinLockAcquire(&page_repair_shared->mutex);
	if (page_repair_shared->state != state)
		page_repair_shared->since = GetCurrentTimestamp();
	page_repair_shared->state = state;
	strlcpy(page_repair_shared->why, why, sizeof(page_repair_shared->why));
	SpinLockRelease(&page_repair_shared->mutex);
}

/* ----------------------------------------------------------------------
 * Asking
 * ----------------------------------------------------------------------
 */

/*
 * Make the sources those of the setting.
 */
static void
follow_setting(void)
{
	static char *list = NULL;
	char	   *error;
	MemoryContext old;

	if (list != NULL && strcmp(list, page_repair_source_list) == 0)
		return;
	page_repair_close_sources(sources, nsources);
	sources = NULL;
	nsources = 0;
	if (list)
		pfree(list);
	old = MemoryContextSwitchTo(TopMemoryContext);
	list = pstrdup(page_repair_source_list);
	if (!page_repair_parse_sources(list, &sources, &nsources, &error))
		ereport(ERROR, (errmsg("%s", error)));
	MemoryContextSwitchTo(old);
	memset(seen, 0, sizeof(seen));
}

/*
 * A source has answered, or it is known that it will not.
 */
static void
heard(int i, PageSourceProgress progress)
{
	if (progress == PAGE_SOURCE_PENDING)
		return;
	seen[i].asking = false;
	seen[i].known = true;
	seen[i].answered = (progress == PAGE_SOURCE_ANSWERED);
	seen[i].answered_for = seen[i].asked_for;
	seen[i].checked_at = GetCurrentTimestamp();
	if (!seen[i].answered)
	{
		memset(&seen[i].header, 0, sizeof(PageSourceHeader));
		seen[i].caught_up = false;
		seen[i].behind_since = 0;
	}
}

/*
 * Ask the sources whose turn it is, all of them if somebody waits for it.
 */
static void
ask_sources(bool now)
{
	for (int i = 0; i < nsources; i++)
	{
		TimestampTz at = GetCurrentTimestamp();

		if (seen[i].asking || at < sources[i].next_try ||
			(!now && at < seen[i].next_ask && seen[i].asked_for == current_redo))
			continue;
		seen[i].asked_for = current_redo;
		seen[i].next_ask = TimestampTzPlusMilliseconds(at, GUARD_INTERVAL_MS);
		seen[i].deadline = TimestampTzPlusMilliseconds(at, GUARD_ANSWER_MS);
		seen[i].asking = page_source_ask(&sources[i]);
		if (!seen[i].asking)
			heard(i, PAGE_SOURCE_FAILED);
	}
}

/*
 * Wait until a source is to be asked or has something to say, or until somebody
 * wakes us; then return true.
 */
static bool
wait_for_sources(void)
{
	WaitEventSet *set = CreateWaitEventSet(NULL, PAGE_REPAIR_MAX_SOURCES + 2);
	WaitEvent	events[PAGE_REPAIR_MAX_SOURCES + 2];
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz until = TimestampTzPlusMilliseconds(now, GUARD_INTERVAL_MS);
	bool		woken = false;
	int			n;

	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	for (int i = 0; i < nsources; i++)
	{
		if (seen[i].asking && PQsocket(sources[i].conn) >= 0)
			AddWaitEventToSet(set, page_source_events(&sources[i]), PQsocket(sources[i].conn), NULL, &sources[i]);
		if (!seen[i].asking && seen[i].asked_for != current_redo)
			seen[i].next_ask = now;
		until = Min(until, seen[i].asking ? seen[i].deadline : Max(seen[i].next_ask, sources[i].next_try));
	}
	/* A millisecond more than until then, lest we come too early */
	n = WaitEventSetWait(set, until > now ? TimestampDifferenceMilliseconds(now, until) + 1 : 0,
						 events, lengthof(events), PG_WAIT_EXTENSION);
	FreeWaitEventSet(set);
	for (int e = 0; e < n; e++)
	{
		if (events[e].events & WL_LATCH_SET)
		{
			ResetLatch(MyLatch);
			woken = true;
		}
		else if (events[e].user_data != NULL)
		{
			PageSource *source = events[e].user_data;
			int			i = source - sources;

			heard(i, page_source_proceed(source, &seen[i].header));
		}
	}
	now = GetCurrentTimestamp();
	for (int i = 0; i < nsources; i++)
	{
		if (seen[i].asking && now >= seen[i].deadline)
		{
			page_source_timed_out(&sources[i]);
			heard(i, PAGE_SOURCE_FAILED);
		}
	}
	return woken;
}

/* ----------------------------------------------------------------------
 * Judging
 * ----------------------------------------------------------------------
 */

/*
 * Is this source healthy?  If it is not, say in it why.
 */
static bool
judge_source(int i, const GuardControl *control, bool standby)
{
	PageSource *source = &sources[i];
	PageSourceHeader *header = &seen[i].header;

	if (!seen[i].answered)
		return false;

	/* A checkpoint has been completed since; the next answer tells */
	if (seen[i].answered_for != control->redo && seen[i].healthy)
		return true;

#define UNLESS(condition, ...) \
	if (!(condition)) \
	{ \
		snprintf(source->why, sizeof(source->why), __VA_ARGS__); \
		return false; \
	}

	UNLESS(header->system_identifier == GetSystemIdentifier(),
		   "it belongs to another system, " UINT64_FORMAT, header->system_identifier);
	UNLESS(header->data_checksums, "it has no data checksums");
	if (standby)
	{
		TimeLineID	replayed;

		(void) GetXLogReplayRecPtr(&replayed);
		UNLESS(header->timeline == replayed, "it is on timeline %u, not %u", header->timeline, replayed);
		UNLESS(header->end_lsn >= control->redo, "it is at %X/%X, the last restartpoint's redo point is %X/%X",
			   LSN_FORMAT_ARGS(header->end_lsn), LSN_FORMAT_ARGS(control->redo));
		return true;
	}
	UNLESS(header->in_recovery, "it is not a standby");
	UNLESS(header->timeline == control->timeline, "it is on timeline %u, not %u", header->timeline, control->timeline);
	UNLESS(header->streaming, "it does not stream");
	UNLESS(header->flush_lsn >= control->redo, "it has flushed %X/%X, the last checkpoint's redo point is %X/%X",
		   LSN_FORMAT_ARGS(header->flush_lsn), LSN_FORMAT_ARGS(control->redo));
	if (header->end_lsn >= control->redo)
	{
		seen[i].behind_since = 0;
		seen[i].caught_up = true;
	}
	else if (seen[i].behind_since == 0)
		seen[i].behind_since = seen[i].checked_at;
	if (seen[i].behind_since != 0 &&
		seen[i].checked_at - seen[i].behind_since > page_repair_grace * INT64CONST(1000))
		seen[i].caught_up = false;
	UNLESS(seen[i].caught_up,
		   "it has replayed %X/%X, the last checkpoint's redo point is %X/%X",
		   LSN_FORMAT_ARGS(header->end_lsn), LSN_FORMAT_ARGS(control->redo));
#undef UNLESS
	return true;
}

/*
 * Judge all sources and show what was found.  Returns the name of the first
 * healthy one, or NULL and the reason.  Sets *reached to the highest position
 * that one of them has flushed.
 */
static const char *
judge_sources(const GuardControl *control, bool standby, XLogRecPtr *reached,
			  char *why, Size why_size)
{
	PageRepairShared *shared = page_repair_shared;
	const char *protector = NULL;

	why[0] = '\0';
	*reached = InvalidXLogRecPtr;
	for (int i = 0; i < nsources; i++)
	{
		PageRepairSourceState *state = &shared->sources[i];
		bool		healthy = seen[i].healthy = judge_source(i, control, standby);

		if (healthy)
		{
			*reached = Max(*reached, seen[i].header.flush_lsn);
			if (protector == NULL)
				protector = sources[i].name;
		}
		else if (seen[i].known && why[0] == '\0')
			snprintf(why, why_size, "source \"%s\": %s", sources[i].name, sources[i].why);

		SpinLockAcquire(&shared->mutex);
		if (strncmp(state->name, sources[i].name, sizeof(state->name) - 1) != 0)
		{
			memset(state, 0, sizeof(*state));
			strlcpy(state->name, sources[i].name, sizeof(state->name));
		}
		state->healthy = healthy;
		strlcpy(state->why, sources[i].why, sizeof(state->why));
		state->flush_lsn = seen[i].header.flush_lsn;
		state->replay_lsn = seen[i].header.end_lsn;
		state->checked_at = seen[i].checked_at;
		SpinLockRelease(&shared->mutex);
	}
	if (!DataChecksumsEnabled())
	{
		protector = NULL;
		*reached = InvalidXLogRecPtr;
		strlcpy(why, "data checksums are off", why_size);
	}

	/* Recovery would look at nothing */
	if (page_repair_policy == PAGE_REPAIR_OFF)
	{
		protector = NULL;
		*reached = InvalidXLogRecPtr;
		strlcpy(why, "polar_page_repair_policy is off", why_size);
	}

	/* It would get nothing (R13) */
	if (standby &&
		(recovery_min_apply_delay > 0 || recoveryTarget != RECOVERY_TARGET_UNSET ||
		 access(STANDBY_SIGNAL_FILE, F_OK) != 0))
	{
		protector = NULL;
		strlcpy(why, "this server shall stay behind, so it would get no page of now", why_size);
	}

	/* After a promotion a sibling may still follow the old timeline */
	if (!standby && control->timeline != GetWALInsertionTimeLine())
	{
		protector = NULL;
		*reached = InvalidXLogRecPtr;
		strlcpy(why, "no checkpoint on this timeline is complete", why_size);
	}

	SpinLockAcquire(&shared->mutex);
	for (int i = nsources; i < PAGE_REPAIR_MAX_SOURCES; i++)
		shared->sources[i].name[0] = '\0';
	shared->reached = *reached;
	SpinLockRelease(&shared->mutex);
	return protector;
}

/*
 * What the flashback log is worth now
 */
typedef struct LogVerdict
{
	bool		covers;			/* what has been overwritten since the redo
								 * location */
	bool		healthy;		/* and will what comes next */
	char		why[256];		/* if not */
} LogVerdict;

/*
 * Judge the flashback log and show what was found.  Where it has no room, or
 * could not be written, nothing is overwritten: that is no loss, but nobody
 * can rely on it any longer.
 */
static void
judge_log(const GuardControl *control, LogVerdict *log)
{
	static uint64 failures = 0;
	static TimestampTz failed_at = 0;
	PageRepairSourceState *state = &page_repair_shared->log;
	TimestampTz now = GetCurrentTimestamp();
	uint64		failed = log_source_failures();

	memset(log, 0, sizeof(*log));
	if (failed != failures)
		failed_at = now;
	failures = failed;
	log->covers = log_source_protects(control->redo, log->why, sizeof(log->why));
	if (log->covers)
	{
		/* Long enough that images come back, and try it again */
		if (failed_at != 0 && now - failed_at < 2 * page_repair_grace * INT64CONST(1000))
			strlcpy(log->why, "blocks could not be kept, see the server log", sizeof(log->why));
		else
			log->healthy = log_source_has_room(log->why, sizeof(log->why));
	}

	SpinLockAcquire(&page_repair_shared->mutex);
	state->healthy = log->healthy;
	strlcpy(state->why, log->why, sizeof(state->why));
	state->checked_at = now;
	SpinLockRelease(&page_repair_shared->mutex);
}

/*
 * Who protects, in words: the flashback log, the first healthy source, or both.
 */
static const char *
name_protectors(const LogVerdict *log, const char *source)
{
	char	   *names;

	if (!log->covers)
		return psprintf("source \"%s\"", source);
	if (log->healthy)
		names = pstrdup(LOG_SOURCE_NAME);
	else
		names = psprintf("%s, but: %s", LOG_SOURCE_NAME, log->why);
	return source ? psprintf("%s%s source \"%s\"", names, log->healthy ? "," : ";", source) : names;
}

/* What is known in one turn */
typedef struct Turn
{
	GuardControl control;
	LogVerdict	log;
	const char *source;			/* the first that is healthy, or NULL */
	char		why[256];		/* why nobody is */
	bool		healthy;
	bool		covered;		/* pages torn now could be given back */
	bool		lost;			/* not any more by the log, which alone could */
	bool		acting;			/* only the guard keeps images on */
	TimestampTz now;

	/* What the checkpointer has been told, and has made of it */
	bool		forced;
	bool		broken;
	bool		in_force;
	XLogRecPtr	in_force_since;
} Turn;

/* And remembered from one turn to the next */
static struct
{
	TimestampTz unhealthy_since;	/* 0: healthy */
	TimestampTz healthy_since;	/* 0: not */
	XLogRecPtr	requested_for;	/* images since then wait for a checkpoint */
	TimestampTz requested_at;
	bool		was_broken;
	bool		by_log;			/* the log alone has covered */
}			memory;

/*
 * Ask everybody.  Returns false if nothing can be decided yet.
 */
static bool
learn(Turn *turn, bool standby)
{
	PageRepairShared *shared = page_repair_shared;
	XLogRecPtr	reached;

	if (!guard_read_control(&turn->control))
		return false;
	current_redo = turn->control.redo;

	turn->source = judge_sources(&turn->control, standby, &reached, turn->why, sizeof(turn->why));
	if (log_source_is_configured())
	{
		judge_log(&turn->control, &turn->log);
		if (!turn->log.healthy)
		{
			char	   *of_sources = pstrdup(turn->why);

			snprintf(turn->why, sizeof(turn->why), "%s: %s%s%s", LOG_SOURCE_NAME, turn->log.why,
					 nsources > 0 && of_sources[0] ? "; " : "", nsources > 0 ? of_sources : "");
		}
	}
	turn->healthy = turn->source != NULL || turn->log.healthy;
	turn->covered = (turn->source != NULL && (standby || reached >= turn->control.redo)) || turn->log.covers;
	for (int i = 0; i < nsources && !turn->healthy; i++)
	{
		/* The first answers decide, not that there is none yet */
		if (!seen[i].known)
			return false;
	}

	/* What the log has lost it does not get back, so no grace helps */
	turn->lost = memory.by_log && !turn->covered;
	memory.by_log = turn->log.covers && turn->source == NULL;

	turn->acting = !fullPageWrites && page_repair_guard;
	turn->now = GetCurrentTimestamp();
	SpinLockAcquire(&shared->mutex);
	turn->forced = shared->forced;
	turn->broken = shared->broken;
	turn->in_force = shared->in_force;
	turn->in_force_since = shared->in_force_since;
	SpinLockRelease(&shared->mutex);

	if (turn->healthy)
	{
		memory.unhealthy_since = 0;
		/* A source that a checkpoint has waited for in vain begins anew */
		if (memory.healthy_since == 0 || (turn->broken && !memory.was_broken))
			memory.healthy_since = turn->now;
	}
	else
	{
		memory.healthy_since = 0;
		if (memory.unhealthy_since == 0)
			memory.unhealthy_since = turn->now;
	}
	memory.was_broken = turn->broken;
	return true;
}

/*
 * Do images protect whatever has been changed since the redo location?
 */
static bool
images_protect(const Turn *turn)
{
	return turn->in_force && turn->control.redo >= turn->in_force_since;
}

/*
 * Has this lasted for longer than the grace period?
 */
static bool
outlasted_grace(const Turn *turn, TimestampTz since)
{
	return turn->now - since >= page_repair_grace * INT64CONST(1000);
}

/*
 * The state on a standby, which replays what another writes, and has nothing to
 * decide.
 */
static void
show_standby_state(const Turn *turn)
{
	if (guard_replayed_images(&turn->control))
		set_state(PAGE_REPAIR_FULL_PAGE_WRITES, "the WAL from the primary has full-page images");
	else if (turn->covered)
		set_state(PAGE_REPAIR_PROTECTED, name_protectors(&turn->log, turn->source));
	else
		set_state(PAGE_REPAIR_EXPOSED, turn->why);
}

/*
 * The state on a primary: README.guard.md has this table, its rows in this
 * order.
 */
static void
show_primary_state(const Turn *turn)
{
	const Fact	facts[] = {
		FACT(fullPageWrites),
		FACT(page_repair_guard),
		FACT(images_protect(turn)),
		FACT(turn->covered),
	};
	static const struct
	{
		Fact		facts[lengthof(facts)];
		PageRepairState state;
	}			table[] = {
		/* full_page_writes, guard, images since redo, covered */
		{{NO, NO, ANY, ANY}, PAGE_REPAIR_OVERRIDDEN},
		{{ANY, ANY, YES, ANY}, PAGE_REPAIR_FULL_PAGE_WRITES},
		{{ANY, ANY, NO, YES}, PAGE_REPAIR_PROTECTED},
		{{ANY, ANY, NO, NO}, PAGE_REPAIR_EXPOSED},
	};
	int			row = 0;

	while (!row_applies(table[row].facts, facts, lengthof(facts)))
		row++;
	switch (table[row].state)
	{
		case PAGE_REPAIR_OVERRIDDEN:
			set_state(PAGE_REPAIR_OVERRIDDEN, "polar_page_repair_guard is off");
			break;
		case PAGE_REPAIR_FULL_PAGE_WRITES:
			set_state(PAGE_REPAIR_FULL_PAGE_WRITES,
					  fullPageWrites ? "full_page_writes is on" :
					  turn->healthy ? psprintf("full_page_writes is off, images end soon: %s", name_protectors(&turn->log, turn->source)) :
					  turn->why);
			break;
		case PAGE_REPAIR_PROTECTED:
			set_state(PAGE_REPAIR_PROTECTED, name_protectors(&turn->log, turn->source));
			break;
		case PAGE_REPAIR_EXPOSED:
			set_state(PAGE_REPAIR_EXPOSED, turn->why[0] ? turn->why : GUARD_NOT_COMPLETE);
			break;
	}
}

/*
 * Images that came back count once a checkpoint has begun after them, for which
 * the checkpointer asks.  It may fail, for want of space, and is asked for again
 * then.
 */
static void
see_to_checkpoint(const Turn *turn)
{
	if (memory.requested_for != turn->in_force_since)
	{
		memory.requested_for = turn->in_force_since;
		memory.requested_at = turn->now;
		guard_wake_checkpointer();
	}
	else if (turn->in_force && !images_protect(turn) && (turn->broken || !turn->healthy) &&
			 TimestampDifferenceExceeds(memory.requested_at, turn->now, GUARD_ASK_AGAIN_MS))
	{
		memory.requested_at = turn->now;
		RequestCheckpoint(CHECKPOINT_IMMEDIATE | CHECKPOINT_FORCE);
	}
}

/* What is done about images */
typedef enum GuardStep
{
	GUARD_NOTHING,
	GUARD_REMEMBER,				/* that they are to be forced when it matters */
	GUARD_FORCE,
	GUARD_LET_GO,				/* of images */
	GUARD_TELL,					/* that the setting has no effect */
	GUARD_WAKE,					/* the checkpointer, which has refused so far */
} GuardStep;

/*
 * What is to be, whatever the setting is at the moment: README.guard.md has
 * this table, its rows in this order.
 */
static GuardStep
next_step(const Turn *turn)
{
	const Fact	facts[] = {
		FACT(turn->forced),
		FACT(turn->healthy),
		FACT(turn->acting),
		FACT(turn->broken),
		FACT(!turn->healthy && (turn->lost || outlasted_grace(turn, memory.unhealthy_since))),
		FACT(turn->healthy && turn->covered && images_protect(turn) && outlasted_grace(turn, memory.healthy_since)),
		FACT(turn->in_force),
	};
	static const struct
	{
		Fact		facts[lengthof(facts)];
		GuardStep	step;
	}			table[] = {
		/* forced, healthy, acting, broken, long unhealthy, sound, in force */
		{{NO, NO, NO, ANY, ANY, ANY, ANY}, GUARD_REMEMBER},
		{{NO, NO, YES, ANY, YES, ANY, ANY}, GUARD_FORCE},
		{{YES, YES, ANY, NO, ANY, ANY, ANY}, GUARD_LET_GO},
		{{YES, YES, ANY, YES, ANY, YES, ANY}, GUARD_LET_GO},
		{{YES, NO, YES, NO, ANY, ANY, ANY}, GUARD_TELL},
		{{NO, ANY, YES, ANY, ANY, ANY, YES}, GUARD_WAKE},
		{{ANY, ANY, ANY, ANY, ANY, ANY, ANY}, GUARD_NOTHING},
	};
	int			row = 0;

	while (!row_applies(table[row].facts, facts, lengthof(facts)))
		row++;
	return table[row].step;
}

static void
take_step(const Turn *turn, GuardStep step)
{
	PageRepairShared *shared = page_repair_shared;

	switch (step)
	{
		case GUARD_NOTHING:
			break;
		case GUARD_REMEMBER:
			SpinLockAcquire(&shared->mutex);
			shared->forced = true;
			SpinLockRelease(&shared->mutex);
			break;
		case GUARD_FORCE:
			guard_force_images(turn->why);
			break;
		case GUARD_LET_GO:
			SpinLockAcquire(&shared->mutex);
			shared->forced = false;
			shared->broken = false;
			SpinLockRelease(&shared->mutex);
			if (turn->acting)
				ereport(LOG,
						(errmsg("full-page images are left out, because page repair source \"%s\" is healthy",
								turn->log.healthy ? LOG_SOURCE_NAME : turn->source)));
			guard_wake_checkpointer();
			break;
		case GUARD_TELL:
			set_broken(true);
			ereport(LOG,
					(errmsg("full-page images are written although \"%s\" is off", "full_page_writes"),
					 errdetail("No page repair source is healthy: %s.", turn->why)));
			break;
		case GUARD_WAKE:
			/* A checkpoint was faster than we are */
			guard_wake_checkpointer();
			break;
	}
}

/*
 * What follows from what the sources said last.
 */
static void
decide(void)
{
	bool		standby = RecoveryInProgress();
	Turn		turn = {0};

	if (!learn(&turn, standby))
		return;
	if (standby)
	{
		show_standby_state(&turn);
		return;
	}
	if (!turn.acting)
	{
		set_broken(false);
		turn.broken = false;
	}
	show_primary_state(&turn);
	see_to_checkpoint(&turn);
	take_step(&turn, next_step(&turn));
}

/*
 * We are late: the name of a host is being looked up, for instance.  Whoever
 * notices that is the checkpointer.
 */
static void
handle_alarm(void)
{
	guard_wake_checkpointer();
}

/*
 * Nobody needs us any more.  The checkpointer starts another one when there is
 * something to do.
 */
static void
leave(void)
{
	SpinLockAcquire(&page_repair_shared->mutex);
	memset(page_repair_shared->sources, 0, sizeof(page_repair_shared->sources));
	SpinLockRelease(&page_repair_shared->mutex);
	leaving = true;
	if (!fullPageWrites && page_repair_guard && !RecoveryInProgress())
		guard_force_images("polar_page_repair_sources is empty");
	proc_exit(0);
}

/*
 * Entry point of the worker
 */
void
page_repair_worker_main(Datum arg)
{
	MemoryContext turn;
	bool		alone;
	bool		woken = true;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	/* To be seen in pg_stat_activity */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	SpinLockAcquire(&page_repair_shared->mutex);
	alone = (page_repair_shared->worker == INVALID_PROC_NUMBER);
	if (alone)
	{
		page_repair_shared->launched = true;
		page_repair_shared->worker = MyProcNumber;
		page_repair_shared->beat = GetCurrentTimestamp();
	}
	SpinLockRelease(&page_repair_shared->mutex);

	/*
	 * After a crash the postmaster starts the old one and the checkpointer
	 * another
	 */
	if (!alone)
		proc_exit(0);
	before_shmem_exit(worker_exit, 0);
	alarm_id = RegisterTimeout(USER_TIMEOUT, handle_alarm);

	turn = AllocSetContextCreate(TopMemoryContext, "page repair guard turn", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(turn);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		SpinLockAcquire(&page_repair_shared->mutex);
		page_repair_shared->beat = GetCurrentTimestamp();
		SpinLockRelease(&page_repair_shared->mutex);
		enable_timeout_after(alarm_id, guard_patience_ms() + 100);

		follow_setting();
		if (!guard_has_sources())
			leave();
		ask_sources(woken);
		decide();
		MemoryContextReset(turn);
		woken = wait_for_sources();
	}
}
