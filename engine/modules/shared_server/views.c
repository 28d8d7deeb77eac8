/*-------------------------------------------------------------------------
 *
 * views.c
 *	  What can be seen of sessions, pools and the dispatcher, and what can be
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
#include "storage/latch.h"
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

/*
 * A session each.  Who may not read all statistics sees those of the own role.
 */
Datum
polar_stat_get_session(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		all = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	char	   *own = GetUserNameFromId(GetUserId(), false);

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; shared_server && i < shared_server->sessions_max; i++)
	{
		SharedServerSession *slot = &shared_server->sessions[i];
		SharedServerSession seen;
		int			pid,
					worker_pid;
		char		host[NI_MAXHOST] = "",
					port[NI_MAXSERV] = "";
		Datum		values[18];
		bool		nulls[18] = {0};
		int			n = 0;

		LWLockAcquire(shared_server->lock, LW_SHARED);
		memcpy(&seen, slot, offsetof(SharedServerSession, mutex));
		LWLockRelease(shared_server->lock);
		if (seen.state == SHARED_SERVER_FREE)
			continue;
		if (!all && strcmp(NameStr(seen.user), own) != 0)
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
		Assert(n == lengthof(values));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * A wait, in milliseconds, that this part of all waits has not exceeded.
 */
static double
wait_percentile(double part)
{
	uint64		total = 0;
	uint64		seen = 0;

	for (int i = 0; i < SHARED_SERVER_WAIT_BUCKETS; i++)
		total += shared_server->waits[i];
	for (int i = 0; i < SHARED_SERVER_WAIT_BUCKETS; i++)
	{
		seen += shared_server->waits[i];
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

Datum
polar_stat_get_dispatcher(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		values[21];
	bool		nulls[21] = {0};
	Datum		buckets[SHARED_SERVER_WAIT_BUCKETS];
	uint64		transactions = 0;
	int			sessions[lengthof(state_names)] = {0};
	int			pinned = 0;
	int			n = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (shared_server == NULL || shared_server->dispatcher_pid == 0)
		return (Datum) 0;

	LWLockAcquire(shared_server->lock, LW_SHARED);
	for (int i = 0; i < shared_server->sessions_max; i++)
	{
		sessions[shared_server->sessions[i].state]++;
		if (shared_server->sessions[i].state != SHARED_SERVER_FREE)
			transactions += shared_server->sessions[i].transactions;
		if (shared_server->sessions[i].state != SHARED_SERVER_FREE && shared_server->sessions[i].pinned[0])
			pinned++;
	}
	values[n++] = Int32GetDatum(shared_server->dispatcher_pid);
	values[n++] = TimestampTzGetDatum(shared_server->dispatcher_start);
	values[n++] = Int32GetDatum(sessions[SHARED_SERVER_LOGIN]);
	values[n++] = Int32GetDatum(sessions[SHARED_SERVER_BOUND]);
	values[n++] = Int32GetDatum(sessions[SHARED_SERVER_PARKED]);
	values[n++] = Int32GetDatum(sessions[SHARED_SERVER_WAITING]);
	values[n++] = Int32GetDatum(pinned);
	values[n++] = Int32GetDatum(shared_server->pools);
	values[n++] = Int32GetDatum(shared_server->workers);
	values[n++] = Int32GetDatum(shared_server->free_workers);
	values[n++] = Int64GetDatum(shared_server->logins);
	values[n++] = Int64GetDatum(shared_server->binds);
	values[n++] = Int64GetDatum(shared_server->parks);
	values[n++] = Int64GetDatum(shared_server->spawns);
	values[n++] = Int64GetDatum(shared_server->timeouts);
	values[n++] = Int64GetDatum(shared_server->transactions + transactions);
	values[n++] = Int64GetDatum(pg_atomic_read_u64(&shared_server->image_memory));
	values[n++] = Float8GetDatum(wait_percentile(0.5));
	values[n++] = Float8GetDatum(wait_percentile(0.99));
	for (int i = 0; i < SHARED_SERVER_WAIT_BUCKETS; i++)
		buckets[i] = Int64GetDatum(shared_server->waits[i]);
	values[n++] = PointerGetDatum(construct_array_builtin(buckets, SHARED_SERVER_WAIT_BUCKETS, INT8OID));
	LWLockRelease(shared_server->lock);
	values[n++] = Int32GetDatum(count_native());
	Assert(n == lengthof(values));
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}

Datum
polar_stat_get_worker_pool(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	SharedServerPool seen[SHARED_SERVER_POOLS_SHOWN];
	int			count;

	InitMaterializedSRF(fcinfo, 0);
	if (shared_server == NULL)
		return (Datum) 0;
	LWLockAcquire(shared_server->lock, LW_SHARED);
	count = shared_server->pools;
	memcpy(seen, shared_server->shown, sizeof(seen));
	for (int i = 0; i < shared_server->sessions_max; i++)
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
		Datum		values[11];
		bool		nulls[11] = {0};

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
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * Have all sessions end, each when it is idle.  Returns how many there are.
 */
Datum
polar_ss_drain(PG_FUNCTION_ARGS)
{
	int			count = 0;

	if (shared_server == NULL || shared_server->dispatcher_pid == 0)
		PG_RETURN_INT32(0);
	LWLockAcquire(shared_server->lock, LW_SHARED);
	for (int i = 0; i < shared_server->sessions_max; i++)
		count += shared_server->sessions[i].state >= SHARED_SERVER_BOUND;
	LWLockRelease(shared_server->lock);
	pg_atomic_write_u32(&shared_server->draining, 1);
	SetLatch(shared_server->dispatcher_latch);
	PG_RETURN_INT32(count);
}
