/*-------------------------------------------------------------------------
 *
 * shared_server.c
 *	  Sessions that are not tied to a backend: settings and shared memory.
 *
 * See README.invariants.md.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/shared_server.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "shared_server.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"

PG_MODULE_MAGIC_EXT(
					.name = "shared_server",
					.version = "1.0"
);

bool		shared_server_enabled = false;
int			shared_server_port = 0;
int			shared_server_dispatcher_count = 1;
int			shared_server_backend_max_count = -5;
int			shared_server_backend_idle_timeout = 180;
int			shared_server_backend_pool_min_size = 0;
int			shared_server_session_wait_timeout = 60000;
char	   *shared_server_dedicated_dbuser_names = NULL;
char	   *shared_server_dedicated_guc_names = NULL;
char	   *shared_server_safe_modules = NULL;
int			shared_server_max_sessions = 10000;
int			shared_server_shared_memory_size = 128 * 1024;
int			shared_server_worker_cache_size = 8 * 1024;
int			shared_server_quantum = 20;
int			shared_server_stall_limit = 100;
int			shared_server_reserved_workers = 2;
bool		shared_server_shm_aset = false;
bool		shared_server_force_migrate = false;
bool		shared_server_share_tls = false;

SharedServerShared *shared_server = NULL;
SharedServerDispatcher *shared_server_dispatchers = NULL;
SharedServerWorker *shared_server_workers = NULL;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static Size
shared_server_size(void)
{
	return add_size(offsetof(SharedServerShared, sessions),
					mul_size(shared_server_max_sessions, sizeof(SharedServerSession)));
}

static Size
shared_server_dispatchers_size(void)
{
	return mul_size(shared_server_dispatcher_count, sizeof(SharedServerDispatcher));
}

static Size
shared_server_workers_size(void)
{
	return mul_size(MaxBackends, sizeof(SharedServerWorker));
}

static void shared_server_shmem_startup(void);

/*
 * Without a port nothing is there: no memory, no hook, no process.
 */
static void
shared_server_shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = shared_server_shmem_startup;

	if (shared_server_port == 0)
		return;
	RequestAddinShmemSpace(add_size(MAXALIGN(shared_server_size()),
									add_size(MAXALIGN(shared_server_dispatchers_size()),
											 MAXALIGN(shared_server_workers_size()))));
	RequestNamedLWLockTranche("shared_server", 1);
	shared_server_worker_init();
	shared_server_sessions_init();
	if (IsPostmasterEnvironment)
		shared_server_register_dispatchers();
}

static void
shared_server_shmem_startup(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	if (shared_server_port == 0)
		return;
	shared_server_libraries_init();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared_server = ShmemInitStruct("shared_server", shared_server_size(), &found);
	if (!found)
	{
		memset(shared_server, 0, shared_server_size());
		shared_server->lock = &GetNamedLWLockTranche("shared_server")->lock;
		shared_server->sessions_max = shared_server_max_sessions;
		pg_atomic_init_u64(&shared_server->image_memory, 0);
		for (int i = 0; i < shared_server->sessions_max; i++)
			SpinLockInit(&shared_server->sessions[i].mutex);
	}
	shared_server_dispatchers = ShmemInitStruct("shared_server dispatchers",
												shared_server_dispatchers_size(), &found);
	if (!found)
	{
		memset(shared_server_dispatchers, 0, shared_server_dispatchers_size());
		for (int i = 0; i < shared_server_dispatcher_count; i++)
		{
			SharedServerDispatcher *dispatcher = &shared_server_dispatchers[i];

			pg_atomic_init_u64(&dispatcher->last_active, 0);
			pg_atomic_init_u64(&dispatcher->relay_last_active, 0);
			pg_atomic_init_u32(&dispatcher->ending, 0);
			pg_atomic_init_u32(&dispatcher->vacated, InvalidOid);
			pg_atomic_init_u32(&dispatcher->draining, 0);
		}
	}
	shared_server_workers = ShmemInitStruct("shared_server workers",
											shared_server_workers_size(), &found);
	if (!found)
		memset(shared_server_workers, 0, shared_server_workers_size());
	LWLockRelease(AddinShmemInitLock);
}

static void
define_pool_settings(void)
{
	DefineCustomBoolVariable("polar_enable_shared_server",
							 gettext_noop("Shares backends between the sessions that come through \"polar_ss_port\"."),
							 gettext_noop("Sessions that log in while it is off keep a backend for themselves."),
							 &shared_server_enabled, false,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_ss_port",
							gettext_noop("Port for sessions that share backends."),
							gettext_noop("0 means that there is none."),
							&shared_server_port, 0, 0, 65535,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_ss_dispatcher_count",
							gettext_noop("Number of processes that say which backend serves which session."),
							gettext_noop("Each is one of \"max_worker_processes\", and has its part of \"polar_ss_max_sessions\"."),
							&shared_server_dispatcher_count, 1, 1, SHARED_SERVER_DISPATCHERS_MAX,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_ss_backend_max_count",
							gettext_noop("Number of backends that sessions share."),
							gettext_noop("-5 means a fifth of \"max_connections\"; 0 and -1 mean all of them."),
							&shared_server_backend_max_count, -5, -MAX_BACKENDS, MAX_BACKENDS,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_ss_backend_idle_timeout",
							gettext_noop("Ends a shared backend that no session has used for this long."),
							gettext_noop("0 disables the timeout."),
							&shared_server_backend_idle_timeout, 180, 0, INT_MAX / 1000,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_ss_backend_pool_min_size",
							gettext_noop("Number of shared backends that each pool keeps when they are idle."),
							NULL,
							&shared_server_backend_pool_min_size, 0, 0, MAX_BACKENDS,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_ss_session_wait_timeout",
							gettext_noop("Ends a session that has waited for a backend for this long."),
							gettext_noop("0 disables the timeout."),
							&shared_server_session_wait_timeout, 60000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
}

static void
define_session_settings(void)
{
	DefineCustomStringVariable("polar_ss_dedicated_dbuser_names",
							   gettext_noop("Databases and roles whose sessions keep a backend for themselves."),
							   gettext_noop("A list such as \"d1/*,*/u1,d2/u2\"."),
							   &shared_server_dedicated_dbuser_names, "",
							   PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("polar_ss_dedicated_guc_names",
							   gettext_noop("Settings that pin a session to its backend once it has set them."),
							   NULL,
							   &shared_server_dedicated_guc_names, "",
							   PGC_SIGHUP, GUC_LIST_INPUT, NULL, NULL, NULL);
	DefineCustomStringVariable("polar_ss_safe_modules",
							   gettext_noop("Libraries that do not pin the sessions that load them."),
							   gettext_noop("They must keep nothing of a session but settings."),
							   &shared_server_safe_modules, "",
							   PGC_SIGHUP, GUC_LIST_INPUT, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_ss_max_sessions",
							gettext_noop("Number of sessions that may share backends."),
							NULL,
							&shared_server_max_sessions, 10000, 1, 1000000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_ss_shared_memory_size",
							gettext_noop("Memory for what sessions take along when they leave a backend."),
							gettext_noop("Who logs in when it is used up is refused; who no longer fits keeps its backend. "
										 "0 means that no session is shared."),
							&shared_server_shared_memory_size, 128 * 1024, 0, MAX_KILOBYTES,
							PGC_SIGHUP, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_ss_worker_cache_size",
							gettext_noop("Memory in which a shared backend keeps prepared statements of sessions that have left it."),
							gettext_noop("0 means that they are made again whenever a session comes back."),
							&shared_server_worker_cache_size, 8 * 1024, 0, MAX_KILOBYTES,
							PGC_SIGHUP, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_ss_quantum",
							gettext_noop("How long a session that goes on keeps its backend while others wait for one."),
							gettext_noop("0 means that it leaves after each transaction."),
							&shared_server_quantum, 20, 0, 1000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_ss_stall_limit",
							gettext_noop("Starts a reserved backend when sessions have waited for this long."),
							NULL,
							&shared_server_stall_limit, 100, 1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("polar_ss_reserved_workers",
							gettext_noop("Number of shared backends beyond \"polar_ss_backend_max_count\" for sessions that have waited too long."),
							NULL,
							&shared_server_reserved_workers, 2, 0, MAX_BACKENDS,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("polar_ss_share_tls",
							 gettext_noop("Also shares backends between sessions that use TLS."),
							 gettext_noop("A process of the server ends TLS for them. Sessions that use TLS and "
										  "log in while it is off keep a backend for themselves."),
							 &shared_server_share_tls, false,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("polar_enable_shm_aset",
							 gettext_noop("Accepted for compatibility; it has no effect."),
							 NULL,
							 &shared_server_shm_aset, false,
							 PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("polar_ss_debug_force_migrate",
							 gettext_noop("Parks each shared session after every transaction."),
							 NULL,
							 &shared_server_force_migrate, false,
							 PGC_SIGHUP, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("module \"%s\" must be loaded at server start", "shared_server"),
				 errhint("Add it to \"shared_preload_libraries\".")));

	define_pool_settings();
	define_session_settings();

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = shared_server_shmem_request;
}
