/*-------------------------------------------------------------------------
 *
 * views.c
 *	  What can be seen of sessions, pools and the dispatcher.
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
#include "common/ip.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "shared_server.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(polar_stat_get_session);
PG_FUNCTION_INFO_V1(polar_stat_get_dispatcher);
PG_FUNCTION_INFO_V1(polar_stat_get_worker_pool);

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
		Datum		values[14];
		bool		nulls[14] = {0};

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

		values[0] = Int32GetDatum(pid);
		values[1] = Int32GetDatum(worker_pid);
		nulls[1] = worker_pid == 0;
		values[2] = NameGetDatum(&seen.database);
		values[3] = NameGetDatum(&seen.user);
		nulls[2] = nulls[3] = NameStr(seen.user)[0] == '\0';
		values[4] = CStringGetTextDatum(host);
		values[5] = Int32GetDatum(atoi(port));
		values[6] = CStringGetTextDatum(state_names[seen.state]);
		values[7] = CStringGetTextDatum(seen.pinned[0] ? "dedicated" : "shared");
		values[8] = CStringGetTextDatum(seen.pinned);
		nulls[8] = seen.pinned[0] == '\0';
		values[9] = TimestampTzGetDatum(seen.login_time);
		values[10] = TimestampTzGetDatum(seen.state_time);
		values[11] = Int64GetDatum(seen.binds);
		values[12] = Int64GetDatum(seen.waits);
		values[13] = Float8GetDatum(seen.wait_us / 1000.0);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

Datum
polar_stat_get_dispatcher(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		values[15];
	bool		nulls[15] = {0};
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
	LWLockRelease(shared_server->lock);
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
	LWLockRelease(shared_server->lock);
	for (int i = 0; i < count; i++)
	{
		Datum		values[6];
		bool		nulls[6] = {0};

		values[0] = NameGetDatum(&seen[i].database);
		values[1] = NameGetDatum(&seen[i].user);
		values[2] = Int32GetDatum(seen[i].sessions);
		values[3] = Int32GetDatum(seen[i].workers);
		values[4] = Int32GetDatum(seen[i].free);
		values[5] = Int32GetDatum(seen[i].waiting);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
