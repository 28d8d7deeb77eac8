/*-------------------------------------------------------------------------
 *
 * sessions.c
 *	  What other processes ask about sessions: to cancel or terminate one, who
 *	  serves it, how many a database or a role has.
 *
 * The rules are those of the functions in the core that ask.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/sessions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "shared_server.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "tcop/session_state.h"
#include "utils/acl.h"

static cancel_request_hook_type prev_cancel_request_hook = NULL;
static signal_session_hook_type prev_signal_session_hook = NULL;
static session_backend_hook_type prev_session_backend_hook = NULL;
static count_connections_hook_type prev_count_connections_hook = NULL;
static unserved_sessions_hook_type prev_unserved_sessions_hook = NULL;

static SharedServerSession *
find_session(int pid)
{
	if (shared_server == NULL || pid < SHARED_SERVER_FIRST_PID)
		return NULL;
	return &shared_server->sessions[(pid - SHARED_SERVER_FIRST_PID) % shared_server->sessions_max];
}

/*
 * Has a session without a worker said something that none has read yet?  It
 * waits for one, or one is about to take it.  If one has just let go of it
 * instead, the dispatcher forgets the request when it hears of that.
 */
static bool
is_to_be_served(SharedServerSession *slot)
{
	return slot->state == SHARED_SERVER_WAITING || slot->state == SHARED_SERVER_BOUND;
}

static bool
shared_server_cancel_request(int pid, const uint8 *key, int length)
{
	SharedServerSession *slot = find_session(pid);

	if (slot)
	{
		SpinLockAcquire(&slot->mutex);
		if (slot->pid == pid && slot->key_length == length &&
			timingsafe_bcmp(slot->key, key, length) == 0)
		{
			/* as natively, with what it has started: COPY waits for a program */
			if (slot->worker_pid != 0)
				kill(-slot->worker_pid, SIGINT);
			else
				slot->cancelled = is_to_be_served(slot);
		}
		SpinLockRelease(&slot->mutex);
		return true;
	}
	return prev_cancel_request_hook && prev_cancel_request_hook(pid, key, length);
}

/* May the current role signal sessions of this one? */
static int
refuse_signal(Oid role)
{
	if (superuser_arg(role))
		return superuser() ? SIGNAL_BACKEND_SUCCESS : SIGNAL_BACKEND_NOSUPERUSER;
	if (!has_privs_of_role(GetUserId(), role) &&
		!has_privs_of_role(GetUserId(), ROLE_PG_SIGNAL_BACKEND))
		return SIGNAL_BACKEND_NOPERMISSION;
	return SIGNAL_BACKEND_SUCCESS;
}

/*
 * Whose a session is.  Between the login and the moment in which the dispatcher
 * hears of it only the backend tells.
 */
static Oid
role_of(SharedServerSession *slot, int pid)
{
	Oid			role = InvalidOid;
	int			worker_pid;
	PGPROC	   *proc;

	LWLockAcquire(shared_server->lock, LW_SHARED);
	if (slot->state != SHARED_SERVER_FREE)
		role = slot->role;
	LWLockRelease(shared_server->lock);
	if (OidIsValid(role))
		return role;
	SpinLockAcquire(&slot->mutex);
	worker_pid = slot->pid == pid ? slot->worker_pid : 0;
	SpinLockRelease(&slot->mutex);
	proc = worker_pid != 0 ? BackendPidGetProc(worker_pid) : NULL;
	return proc ? proc->roleId : InvalidOid;
}

static void
end_terminated_of(SharedServerDispatcher *dispatcher)
{
	pg_atomic_write_u32(&dispatcher->ending, 1);
	shared_server_wake(dispatcher);
}

/*
 * pg_cancel_backend() and pg_terminate_backend() with a session's id: the rules
 * are pg_signal_backend()'s.  A session that nobody serves has nothing to
 * cancel unless it waits, and is ended by the dispatcher.
 */
static int
shared_server_signal(int pid, int sig)
{
	SharedServerSession *slot = find_session(pid);
	Oid			role;
	bool		found;

	if (slot == NULL)
		return prev_signal_session_hook ? prev_signal_session_hook(pid, sig) : SIGNAL_BACKEND_UNKNOWN;

	role = role_of(slot, pid);
	if (sig != 0 && OidIsValid(role))
	{
		int			refused = refuse_signal(role);

		if (refused != SIGNAL_BACKEND_SUCCESS)
			return refused;
	}

	/* the slot may have become another session's meanwhile; its id tells */
	SpinLockAcquire(&slot->mutex);
	found = slot->pid == pid && OidIsValid(role);
	if (found && sig != 0)
	{
		if (slot->worker_pid != 0)
			kill(-slot->worker_pid, sig);
		else if (sig == SIGTERM)
			slot->ending = true;
		else
			slot->cancelled = is_to_be_served(slot);
	}
	SpinLockRelease(&slot->mutex);
	if (!found)
		return SIGNAL_BACKEND_UNKNOWN;
	if (sig == SIGTERM)
		end_terminated_of(shared_server_dispatcher_of(slot - shared_server->sessions));
	return SIGNAL_BACKEND_SUCCESS;
}

static int
shared_server_backend(int pid)
{
	SharedServerSession *slot = find_session(pid);
	int			backend = pid;

	if (slot)
	{
		SpinLockAcquire(&slot->mutex);
		backend = slot->pid == pid ? slot->worker_pid : 0;
		SpinLockRelease(&slot->mutex);
	}
	else if (prev_session_backend_hook)
		backend = prev_session_backend_hook(pid);
	return backend;
}

/*
 * Limits of connections: a session is one, whether it has a worker or not, and
 * a worker without a session is none.  A worker that is started for sessions
 * which have logged in is not asked.
 */
static int
shared_server_count(Oid database, Oid role, int count)
{
	if (prev_count_connections_hook)
		count = prev_count_connections_hook(database, role, count);
	if (shared_server == NULL)
		return count;
	if (session_resumed)
		return 0;
	for (int i = 0; i < MaxBackends; i++)
	{
		SharedServerWorker worker = shared_server_workers[i];

		if (OidIsValid(worker.database) &&
			(OidIsValid(role) ? worker.role == role : worker.database == database))
			count--;
	}
	LWLockAcquire(shared_server->lock, LW_SHARED);
	for (int i = 0; i < shared_server->sessions_max; i++)
	{
		SharedServerSession *slot = &shared_server->sessions[i];

		if (slot->state != SHARED_SERVER_FREE && OidIsValid(slot->role) &&
			(OidIsValid(role) ? slot->role == role : slot->database_oid == database))
			count++;
	}
	LWLockRelease(shared_server->lock);
	return count;
}

/*
 * Is a session of this database parked, or does it wait for a worker?  Caller
 * holds the lock.  One that is bound is seen by its worker, which stays among
 * the backends until the dispatcher has made the session one of these.
 */
static bool
is_unserved(SharedServerSession *slot, Oid database)
{
	return slot->database_oid == database &&
		(slot->state == SHARED_SERVER_PARKED || slot->state == SHARED_SERVER_WAITING);
}

/*
 * As in TerminateOtherDBBackends().
 */
static void
terminate_unserved(Oid database)
{
	int			refused = SIGNAL_BACKEND_SUCCESS;

	LWLockAcquire(shared_server->lock, LW_SHARED);
	for (int i = 0; i < shared_server->sessions_max && refused == SIGNAL_BACKEND_SUCCESS; i++)
	{
		Oid			role = shared_server->sessions[i].role;

		if (!is_unserved(&shared_server->sessions[i], database))
			continue;
		/* catalogs are not read under a lock */
		LWLockRelease(shared_server->lock);
		refused = refuse_signal(role);
		LWLockAcquire(shared_server->lock, LW_SHARED);
	}
	LWLockRelease(shared_server->lock);
	if (refused == SIGNAL_BACKEND_NOSUPERUSER)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to terminate process"),
				 errdetail("Only roles with the %s attribute may terminate processes of roles with the %s attribute.",
						   "SUPERUSER", "SUPERUSER")));
	if (refused != SIGNAL_BACKEND_SUCCESS)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to terminate process"),
				 errdetail("Only roles with privileges of the role whose process is being terminated or with privileges of the \"%s\" role may terminate this process.",
						   "pg_signal_backend")));

	LWLockAcquire(shared_server->lock, LW_SHARED);
	for (int i = 0; i < shared_server->sessions_max; i++)
	{
		SharedServerSession *slot = &shared_server->sessions[i];

		if (!is_unserved(slot, database))
			continue;
		SpinLockAcquire(&slot->mutex);
		slot->ending = slot->pid != 0;
		SpinLockRelease(&slot->mutex);
	}
	LWLockRelease(shared_server->lock);
	for (int i = 0; i < shared_server_dispatcher_count; i++)
		end_terminated_of(&shared_server_dispatchers[i]);
}

/*
 * DROP DATABASE and others want to know whether somebody uses the database.  A
 * worker that serves nobody does not, but is a backend; it leaves.
 */
static int
shared_server_unserved(Oid database, bool terminate)
{
	int			count = 0;

	if (prev_unserved_sessions_hook)
		count = prev_unserved_sessions_hook(database, terminate);
	if (shared_server == NULL)
		return count;
	if (terminate)
		terminate_unserved(database);
	LWLockAcquire(shared_server->lock, LW_SHARED);
	for (int i = 0; i < shared_server->sessions_max; i++)
		count += is_unserved(&shared_server->sessions[i], database);
	LWLockRelease(shared_server->lock);
	for (int i = 0; i < shared_server_dispatcher_count; i++)
	{
		pg_atomic_write_u32(&shared_server_dispatchers[i].vacated, database);
		shared_server_wake(&shared_server_dispatchers[i]);
	}
	return count;
}

void
shared_server_sessions_init(void)
{
	prev_cancel_request_hook = cancel_request_hook;
	cancel_request_hook = shared_server_cancel_request;
	prev_signal_session_hook = signal_session_hook;
	signal_session_hook = shared_server_signal;
	prev_session_backend_hook = session_backend_hook;
	session_backend_hook = shared_server_backend;
	prev_count_connections_hook = count_connections_hook;
	count_connections_hook = shared_server_count;
	prev_unserved_sessions_hook = unserved_sessions_hook;
	unserved_sessions_hook = shared_server_unserved;
}
