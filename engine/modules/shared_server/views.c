/*-------------------------------------------------------------------------
 *
 * views.c
 *	  What can be seen of sessions, pools and dispatchers, and what can be
 *	  done to all sessions.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/views.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "common/ip.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "shared_server.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(polar_stat_get_session);
PG_FUNCTION_INFO_V1(polar_stat_get_dispatcher);
PG_FUNCTION_INFO_V1(polar_stat_get_worker_pool);
PG_FUNCTION_INFO_V1(polar_ss_drain);

static const char *const state_names[] = {
	[SHARED_SERVER_FREE] = "free",
	[SHARED_SERVER_LOGIN] = "login",
	[SHARED_SERVER_BOUND] = "bound",
	[SHARED_SERVER_PARKED] = "parked",
	[SHARED_SERVER_WAITING] = "waiting",
};

/* Columns of version 1.0 of the extension, which says nothing of which dispatcher */
#define SESSION_COLUMNS_1_0 18
#define DISPATCHER_COLUMNS_1_0 21
#define WORKER_POOL_COLUMNS_1_0 11

/* The number of a dispatcher, as it is shown */
static Datum
dispatcher_number(const SharedServerDispatcher *dispatcher)
{
	return Int32GetDatum(dispatcher - shared_server_dispatchers + 1);
}

/*
 * A row, of which version 1.0 of the extension has the first columns.
 */
static void
put_row(ReturnSetInfo *rsinfo, Datum *values, bool *nulls, int columns, int columns_1_0)
{
	int			wanted = rsinfo->setDesc->natts;

	if (wanted != columns && wanted != columns_1_0)
		elog(ERROR, "return type must be a row type of %d columns", columns);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/*
 * A session each.  Who may not read all statistics sees those of the own role.
 */
Datum
polar_stat_get_session(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		all = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; shared_server && i < shared_server->sessions_max; i++)
	{
		SharedServerSession *slot = &shared_server->sessions[i];
		SharedServerSession seen;
		int			pid,
					worker_pid;
		char		host[NI_MAXHOST] = "",
					port[NI_MAXSERV] = "";
		Datum		values[SESSION_COLUMNS_1_0 + 1];
		bool		nulls[lengthof(values)] = {0};
		int			n = 0;

		LWLockAcquire(shared_server->lock, LW_SHARED);
		memcpy(&seen, slot, offsetof(SharedServerSession, mutex));
		LWLockRelease(shared_server->lock);
		if (seen.state == SHARED_SERVER_FREE)
			continue;
		/* names may be another's by now */
		if (!all && seen.role != GetUserId())
			continue;
		SpinLockAcquire(&slot->mutex);
		pid = slot->pid;
		worker_pid = slot->worker_pid;
		SpinLockRelease(&slot->mutex);
		(void) pg_getnameinfo_all(&seen.raddr.addr, seen.raddr.salen, host, sizeof(host),
								  port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);

		values[n++] = Int32GetDatum(pid);
		nulls[n] = worker_pid == 0;
		values[n++] = Int32GetDatum(worker_pid);
		nulls[n] = seen.last_worker_pid == 0;
		values[n++] = Int32GetDatum(seen.last_worker_pid);
		nulls[n] = NameStr(seen.database)[0] == '\0';
		values[n++] = NameGetDatum(&seen.database);
		nulls[n] = NameStr(seen.user)[0] == '\0';
		values[n++] = NameGetDatum(&seen.user);
		values[n++] = CStringGetTextDatum(host);
		values[n++] = Int32GetDatum(atoi(port));
		values[n++] = CStringGetTextDatum(state_names[seen.state]);
		values[n++] = CStringGetTextDatum(seen.pinned[0] ? "dedicated" : "shared");
		nulls[n] = seen.pinned[0] == '\0';
		values[n++] = CStringGetTextDatum(seen.pinned);
		values[n++] = TimestampTzGetDatum(seen.login_time);
		values[n++] = TimestampTzGetDatum(seen.state_time);
		values[n++] = Int64GetDatum(seen.transactions);
		values[n++] = Int64GetDatum(seen.binds);
		values[n++] = Int64GetDatum(seen.waits);
		values[n++] = Float8GetDatum(seen.wait_us / 1000.0);
		nulls[n] = seen.state != SHARED_SERVER_WAITING;
		values[n++] = TimestampTzGetDatum(seen.state_time);
		values[n++] = Int32GetDatum(seen.memory);
		values[n++] = dispatcher_number(shared_server_dispatcher_of(i));
		Assert(n == lengthof(values));
		put_row(rsinfo, values, nulls, lengthof(values), SESSION_COLUMNS_1_0);
	}
	return (Datum) 0;
}

/*
 * A wait, in milliseconds, that this part of all waits has not exceeded.
 */
static double
wait_percentile(const uint64 *waits, double part)
{
	uint64		total = 0;
	uint64		seen = 0;

	for (int i = 0; i < SHARED_SERVER_WAIT_BUCKETS; i++)
		total += waits[i];
	for (int i = 0; i < SHARED_SERVER_WAIT_BUCKETS; i++)
	{
		seen += waits[i];
		if (total > 0 && seen >= part * total)
			return (double) (UINT64CONST(2) << i) / 1000;
	}
	return 0;
}

/*
 * Backends of clients that keep them for themselves, by whichever port they
 * came.
 */
static int
count_native(void)
{
	int			count = 0;

	for (int i = 0; i < MaxBackends; i++)
	{
		PGPROC	   *proc = GetPGProcByNumber(i);

		count += proc->pid != 0 && proc->isRegularBackend && OidIsValid(proc->databaseId) &&
			!OidIsValid(shared_server_workers[i].database);
	}
	return count;
}

/* What the views show of a dispatcher, or of several together */
typedef struct Summary
{
	int			pid;			/* 0: none of them runs */
	TimestampTz start;
	int			sessions[lengthof(state_names)];
	int			pinned;
	int			pools;
	int			workers;
	int			free_workers;
	uint64		logins;
	uint64		binds;
	uint64		parks;
	uint64		spawns;
	uint64		timeouts;
	uint64		transactions;
	int64		memory;
	uint64		waits[SHARED_SERVER_WAIT_BUCKETS];
} Summary;

/*
 * Add what a dispatcher has.  Caller holds the lock.
 */
static void
add_dispatcher(Summary *sum, const SharedServerDispatcher *dispatcher)
{
	int			number = dispatcher - shared_server_dispatchers;

	if (dispatcher->pid == 0 || !dispatcher->ready)
		return;
	if (sum->pid == 0)
	{
		sum->pid = dispatcher->pid;
		sum->start = dispatcher->start;
	}
	for (int i = shared_server_first_session(number); i < shared_server_first_session(number + 1); i++)
	{
		SharedServerSession *slot = &shared_server->sessions[i];

		sum->sessions[slot->state]++;
		if (slot->state == SHARED_SERVER_FREE)
			continue;
		sum->transactions += slot->transactions;
		/* what is held against the limit, where that is one's own */
		if (shared_server_dispatcher_count > 1)
			sum->memory += slot->memory;
		sum->pinned += slot->pinned[0] != '\0';
	}
	if (shared_server_dispatcher_count == 1)
		sum->memory = pg_atomic_read_u64(&shared_server->image_memory);
	sum->pools += dispatcher->pools;
	sum->workers += dispatcher->workers;
	sum->free_workers += dispatcher->free_workers;
	sum->logins += dispatcher->logins;
	sum->binds += dispatcher->binds;
	sum->parks += dispatcher->parks;
	sum->spawns += dispatcher->spawns;
	sum->timeouts += dispatcher->timeouts;
	sum->transactions += dispatcher->transactions;
	for (int i = 0; i < SHARED_SERVER_WAIT_BUCKETS; i++)
		sum->waits[i] += dispatcher->waits[i];
}

/*
 * A row of what a dispatcher has, or, without one, of what all have.
 */
static void
put_summary(ReturnSetInfo *rsinfo, const Summary *sum, SharedServerDispatcher *dispatcher,
			int native)
{
	Datum		values[DISPATCHER_COLUMNS_1_0 + 3] = {0};
	bool		nulls[lengthof(values)] = {0};
	Datum		buckets[SHARED_SERVER_WAIT_BUCKETS];
	int			n = 0;

	values[n++] = Int32GetDatum(sum->pid);
	values[n++] = TimestampTzGetDatum(sum->start);
	values[n++] = Int32GetDatum(sum->sessions[SHARED_SERVER_LOGIN]);
	values[n++] = Int32GetDatum(sum->sessions[SHARED_SERVER_BOUND]);
	values[n++] = Int32GetDatum(sum->sessions[SHARED_SERVER_PARKED]);
	values[n++] = Int32GetDatum(sum->sessions[SHARED_SERVER_WAITING]);
	values[n++] = Int32GetDatum(sum->pinned);
	values[n++] = Int32GetDatum(sum->pools);
	values[n++] = Int32GetDatum(sum->workers);
	values[n++] = Int32GetDatum(sum->free_workers);
	values[n++] = Int64GetDatum(sum->logins);
	values[n++] = Int64GetDatum(sum->binds);
	values[n++] = Int64GetDatum(sum->parks);
	values[n++] = Int64GetDatum(sum->spawns);
	values[n++] = Int64GetDatum(sum->timeouts);
	values[n++] = Int64GetDatum(sum->transactions);
	values[n++] = Int64GetDatum(sum->memory);
	values[n++] = Float8GetDatum(wait_percentile(sum->waits, 0.5));
	values[n++] = Float8GetDatum(wait_percentile(sum->waits, 0.99));
	for (int i = 0; i < SHARED_SERVER_WAIT_BUCKETS; i++)
		buckets[i] = Int64GetDatum(sum->waits[i]);
	values[n++] = PointerGetDatum(construct_array_builtin(buckets, SHARED_SERVER_WAIT_BUCKETS, INT8OID));
	values[n++] = Int32GetDatum(native);
	if (dispatcher)
	{
		TimestampTz relay = pg_atomic_read_u64(&dispatcher->relay_last_active);

		values[n++] = dispatcher_number(dispatcher);
		values[n++] = TimestampTzGetDatum(pg_atomic_read_u64(&dispatcher->last_active));
		nulls[n] = relay == 0;
		values[n++] = TimestampTzGetDatum(relay);
		Assert(n == lengthof(values));
	}
	put_row(rsinfo, values, nulls, lengthof(values), DISPATCHER_COLUMNS_1_0);
}

/*
 * A row for each dispatcher that runs.  Version 1.0 of the extension knows of
 * one only: it is shown all together as one.
 */
Datum
polar_stat_get_dispatcher(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Summary		sums[SHARED_SERVER_DISPATCHERS_MAX] = {0};
	bool		together;
	int			native;

	InitMaterializedSRF(fcinfo, 0);
	if (shared_server == NULL)
		return (Datum) 0;
	together = rsinfo->setDesc->natts == DISPATCHER_COLUMNS_1_0;
	LWLockAcquire(shared_server->lock, LW_SHARED);
	for (int i = 0; i < shared_server_dispatcher_count; i++)
		add_dispatcher(&sums[together ? 0 : i], &shared_server_dispatchers[i]);
	LWLockRelease(shared_server->lock);
	native = count_native();
	for (int i = 0; i < shared_server_dispatcher_count; i++)
	{
		if (sums[i].pid != 0)
			put_summary(rsinfo, &sums[i], together ? NULL : &shared_server_dispatchers[i], native);
	}
	return (Datum) 0;
}

static void
put_pools(ReturnSetInfo *rsinfo, SharedServerDispatcher *dispatcher)
{
	SharedServerPool seen[SHARED_SERVER_POOLS_SHOWN];
	int			number = dispatcher - shared_server_dispatchers;
	int			count;

	LWLockAcquire(shared_server->lock, LW_SHARED);
	count = dispatcher->pools;
	memcpy(seen, dispatcher->shown, sizeof(seen));
	for (int i = shared_server_first_session(number); i < shared_server_first_session(number + 1); i++)
	{
		SharedServerSession *slot = &shared_server->sessions[i];

		for (int j = 0; j < count && slot->state != SHARED_SERVER_FREE; j++)
		{
			if (seen[j].number == slot->pool)
				seen[j].transactions += slot->transactions;
		}
	}
	LWLockRelease(shared_server->lock);
	for (int i = 0; i < count; i++)
	{
		Datum		values[WORKER_POOL_COLUMNS_1_0 + 1];
		bool		nulls[lengthof(values)] = {0};

		values[0] = NameGetDatum(&seen[i].database);
		values[1] = NameGetDatum(&seen[i].user);
		values[2] = Int32GetDatum(seen[i].sessions);
		values[3] = Int32GetDatum(seen[i].workers);
		values[4] = Int32GetDatum(seen[i].free);
		values[5] = Int32GetDatum(seen[i].waiting);
		values[6] = Int32GetDatum(seen[i].pinned);
		values[7] = Int64GetDatum(seen[i].binds);
		values[8] = Int64GetDatum(seen[i].waits);
		values[9] = Float8GetDatum(seen[i].wait_us / 1000.0);
		values[10] = Int64GetDatum(seen[i].transactions);
		values[11] = dispatcher_number(dispatcher);
		put_row(rsinfo, values, nulls, lengthof(values), WORKER_POOL_COLUMNS_1_0);
	}
}

/*
 * A row for each pool of each dispatcher.
 */
Datum
polar_stat_get_worker_pool(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; shared_server && i < shared_server_dispatcher_count; i++)
		put_pools((ReturnSetInfo *) fcinfo->resultinfo, &shared_server_dispatchers[i]);
	return (Datum) 0;
}

/*
 * Have all sessions end, each when it is idle.  Returns how many there are.
 */
Datum
polar_ss_drain(PG_FUNCTION_ARGS)
{
	int			count = 0;

	if (shared_server == NULL)
		PG_RETURN_INT32(0);
	LWLockAcquire(shared_server->lock, LW_SHARED);
	for (int i = 0; i < shared_server->sessions_max; i++)
		count += shared_server->sessions[i].state >= SHARED_SERVER_BOUND;
	LWLockRelease(shared_server->lock);
	for (int i = 0; i < shared_server_dispatcher_count; i++)
	{
		pg_atomic_write_u32(&shared_server_dispatchers[i].draining, 1);
		shared_server_wake(&shared_server_dispatchers[i]);
	}
	PG_RETURN_INT32(count);
}
