/*-------------------------------------------------------------------------
 *
 * places.c
 *	  What dispatchers know of each other: whose a session is, how many workers
 *	  all of them have, and who is to have the next.
 *
 * Each dispatcher has its own sessions and workers and decides for these alone.
 * What is for all of them together is counted by adding up what each says of
 * itself: nothing has to be put right when one ends.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/places.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "shared_server.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* The dispatcher that this process is, or NULL */
SharedServerDispatcher *shared_server_self = NULL;

/*
 * The first slot of a dispatcher; its last is before the next one's first.
 */
int
shared_server_first_session(int dispatcher)
{
	return (int64) dispatcher * shared_server->sessions_max / shared_server_dispatcher_count;
}

SharedServerDispatcher *
shared_server_dispatcher_of(int session)
{
	int64		above = (int64) (session + 1) * shared_server_dispatcher_count - 1;

	return &shared_server_dispatchers[above / shared_server->sessions_max];
}

void
shared_server_wake(SharedServerDispatcher *dispatcher)
{
	if (dispatcher->pid != 0)
		SetLatch(dispatcher->latch);
}

/*
 * Wake the other dispatchers, or those of them that need a worker.
 */
void
shared_server_wake_others(bool needy)
{
	for (int i = 0; i < shared_server_dispatcher_count; i++)
	{
		SharedServerDispatcher *other = &shared_server_dispatchers[i];

		if (other != shared_server_self && (!needy || other->need.pools > 0))
			shared_server_wake(other);
	}
}

/*
 * Does it do anything?  What one that does not has asked for, or promised, does
 * not count: the others would wait for it.
 */
bool
shared_server_is_awake(SharedServerDispatcher *dispatcher, TimestampTz now)
{
	return dispatcher == shared_server_self ||
		(dispatcher->pid != 0 &&
		 !TimestampDifferenceExceeds(pg_atomic_read_u64(&dispatcher->last_active), now,
									 SHARED_SERVER_AWAKE_MS));
}

/*
 * Workers of all dispatchers, those that start and those that are to end
 * included.
 */
int
shared_server_all_workers(void)
{
	int			count = 0;

	for (int i = 0; i < shared_server_dispatcher_count; i++)
		count += shared_server_dispatchers[i].workers;
	return count;
}

/* Places that are free soon */
int
shared_server_all_quitting(TimestampTz now)
{
	int			count = 0;

	for (int i = 0; i < shared_server_dispatcher_count; i++)
	{
		if (shared_server_is_awake(&shared_server_dispatchers[i], now))
			count += shared_server_dispatchers[i].quitting;
	}
	return count;
}

int
shared_server_other_pools(void)
{
	int			count = 0;

	for (int i = 0; i < shared_server_dispatcher_count; i++)
	{
		if (&shared_server_dispatchers[i] != shared_server_self)
			count += shared_server_dispatchers[i].active_pools;
	}
	return count;
}

TimestampTz
shared_server_last_bind(void)
{
	TimestampTz last = 0;

	for (int i = 0; i < shared_server_dispatcher_count; i++)
		last = Max(last, shared_server_dispatchers[i].last_bind);
	return last;
}

TimestampTz
shared_server_last_growth(void)
{
	TimestampTz last = 0;

	for (int i = 0; i < shared_server_dispatcher_count; i++)
		last = Max(last, shared_server_dispatchers[i].last_growth);
	return last;
}

static uint32
wait_class_of(PGPROC *proc)
{
	return *(volatile uint32 *) &proc->wait_event_info & 0xFF000000;
}

/*
 * Does this process wait for its client, or for a lock?  So does the leader of a
 * parallel query when each of its workers waits for a lock, or for the others.
 * Without locks: it is asked again.
 */
bool
shared_server_waits(PGPROC *proc)
{
	uint32		class = wait_class_of(proc);
	bool		any = false;

	if (class == PG_WAIT_CLIENT || class == PG_WAIT_LOCK)
		return true;
	if (class != PG_WAIT_IPC)
		return false;
	for (int i = 0; i < MaxBackends; i++)
	{
		PGPROC	   *member = GetPGProcByNumber(i);

		if (member == proc || *(PGPROC *volatile *) &member->lockGroupLeader != proc)
			continue;
		class = wait_class_of(member);
		if (class != PG_WAIT_LOCK && class != PG_WAIT_IPC)
			return false;
		any = any || class == PG_WAIT_LOCK;
	}
	return any;
}

/*
 * Does no worker of another dispatcher work?  As is_stuck() says of our own.
 * Free ones could; those of a dispatcher that does nothing cannot.
 */
bool
shared_server_others_stuck(TimestampTz now)
{
	bool		awake[SHARED_SERVER_DISPATCHERS_MAX];

	if (shared_server_dispatcher_count == 1)
		return true;
	for (int i = 0; i < shared_server_dispatcher_count; i++)
	{
		SharedServerDispatcher *other = &shared_server_dispatchers[i];

		awake[i] = other != shared_server_self && shared_server_is_awake(other, now);
		if (awake[i] && other->starting > 0)
			return false;
	}
	for (int i = 0; i < MaxBackends; i++)
	{
		SharedServerWorker worker = shared_server_workers[i];

		if (OidIsValid(worker.database) && awake[worker.dispatcher] &&
			!shared_server_waits(GetPGProcByNumber(i)))
			return false;
	}
	return true;
}

/*
 * Has the first fewer workers, or as many and waited longer?
 */
bool
shared_server_is_needier(const SharedServerNeed *one, const SharedServerNeed *other)
{
	return one->workers < other->workers ||
		(one->workers == other->workers && one->since < other->since);
}

/*
 * How many pools of other dispatchers wait for a worker to be started, and of
 * those the neediest.
 */
int
shared_server_other_needs(TimestampTz now, SharedServerNeed *neediest)
{
	int			count = 0;

	for (int i = 0; i < shared_server_dispatcher_count; i++)
	{
		SharedServerDispatcher *other = &shared_server_dispatchers[i];
		SharedServerNeed need = other->need;

		if (other == shared_server_self || need.pools == 0 || !shared_server_is_awake(other, now))
			continue;
		if (count == 0 || shared_server_is_needier(&need, neediest))
			*neediest = need;
		count += need.pools;
	}
	return count;
}

/*
 * Take the place of a worker, if all dispatchers have fewer than the limit, and
 * none that needs it more is to have it first.
 */
bool
shared_server_take_place(int limit, const SharedServerNeed *need, TimestampTz now)
{
	int			left;

	LWLockAcquire(shared_server->lock, LW_EXCLUSIVE);
	left = limit - shared_server_all_workers();
	for (int i = 0; i < shared_server_dispatcher_count && need; i++)
	{
		SharedServerDispatcher *other = &shared_server_dispatchers[i];
		SharedServerNeed others = other->need;

		if (other != shared_server_self && others.pools > 0 &&
			shared_server_is_needier(&others, need) && shared_server_is_awake(other, now))
			left--;
	}
	if (left > 0)
		shared_server_self->workers++;
	LWLockRelease(shared_server->lock);
	return left > 0;
}

/*
 * Promise to end a worker, if all dispatchers have more than so many.
 */
bool
shared_server_leave_place(int above, TimestampTz now)
{
	bool		leaves;

	LWLockAcquire(shared_server->lock, LW_EXCLUSIVE);
	leaves = shared_server_all_workers() - shared_server_all_quitting(now) > above;
	if (leaves)
		shared_server_self->quitting++;
	LWLockRelease(shared_server->lock);
	return leaves;
}

/*
 * Promise to end a worker, unless there is another such promise.
 */
bool
shared_server_leave_only_place(TimestampTz now)
{
	bool		leaves;

	LWLockAcquire(shared_server->lock, LW_EXCLUSIVE);
	leaves = shared_server_all_quitting(now) == 0;
	if (leaves)
		shared_server_self->quitting++;
	LWLockRelease(shared_server->lock);
	return leaves;
}

/*
 * How many workers of a pool this dispatcher keeps when they are idle: its part
 * of the minimum, which those share that have sessions of the same login.
 */
int
shared_server_share_of_minimum(uint64 key_hash)
{
	int			count = 1;
	int			before = 0;

	if (shared_server_dispatcher_count == 1)
		return shared_server_backend_pool_min_size;
	LWLockAcquire(shared_server->lock, LW_SHARED);
	for (int i = 0; i < shared_server_dispatcher_count; i++)
	{
		SharedServerDispatcher *other = &shared_server_dispatchers[i];

		for (int j = 0; j < other->pools && other != shared_server_self; j++)
		{
			if (other->shown[j].key_hash != key_hash)
				continue;
			count++;
			before += other < shared_server_self;
			break;
		}
	}
	LWLockRelease(shared_server->lock);
	return shared_server_backend_pool_min_size / count +
		(before < shared_server_backend_pool_min_size % count);
}
