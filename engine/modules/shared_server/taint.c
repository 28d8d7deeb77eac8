/*-------------------------------------------------------------------------
 *
 * taint.c
 *	  Why a session has to stay with its worker.
 *
 * Computed when somebody waits for the worker, from what is there, and not
 * remembered: what is gone does not pin.  What cannot be looked at, such as
 * the variables of a library, pins for good.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/taint.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlogbackup.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "replication/origin.h"
#include "replication/slot.h"
#include "shared_server.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "tcop/session_state.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"

/*
 * Libraries that keep nothing of a session but what is carried or computed
 * again, and that a worker may lack: the engine's own, and PL/pgSQL.
 */
static const char *const harmless[] = {
	"plpgsql", "shared_server", "bulk_io", "commit_floor", "monitor",
	"page_repair", "flashback_log", "flashback_table",
	"dict_snowball", "llvmjit",
	/* conversions, which a client_encoding loads; see also is_harmless() */
	"cyrillic_and_mic", "euc2004_sjis2004", "euc_cn_and_mic", "euc_jp_and_sjis",
	"euc_kr_and_mic", "euc_tw_and_big5", "latin2_and_win1250", "latin_and_mic",
	NULL
};

/*
 * Those of PostgreSQL's that keep nothing either, but change what a backend
 * does: harmless where each has it.
 */
static const char *const harmless_everywhere[] = {
	"auth_delay", "auto_explain", "basebackup_to_shell", "basic_archive",
	"passwordcheck", "pg_overexplain", "pg_prewarm", "pg_stat_statements", NULL
};

/*
 * Those that the postmaster has loaded and that may keep something: connections,
 * variables of a language.  It cannot be told who has used them.
 */
static List *unknown_loaded = NIL;

static object_access_hook_type prev_object_access_hook = NULL;
static GucRealAssignHook prev_assign_seed = NULL;
static bool seeded = false;

/* How many libraries are known; the first are those of the postmaster */
static int	libraries_known = 0;
static const char *library = NULL;

static void
shared_server_object_access(ObjectAccessType access, Oid classId, Oid objectId,
							int subId, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, classId, objectId, subId, arg);
	if (access == OAT_FUNCTION_EXECUTE && objectId == F_SETSEED)
		seeded = true;
}

static int
count_libraries(void)
{
	int			count = 0;

	for (DynamicFileList *file = get_first_loaded_module(); file; file = get_next_loaded_module(file))
		count++;
	return count;
}

/* "plpgsql" of "$libdir/plpgsql.so" */
static char *
library_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	char	   *name = pstrdup(slash ? slash + 1 : path);
	char	   *dot = strrchr(name, '.');

	if (dot)
		*dot = '\0';
	return name;
}

static bool
is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
	{
		if (strcmp(*list, name) == 0)
			return true;
	}
	return false;
}

/* Does it keep nothing of a session, as far as we know? */
static bool
is_harmless(const char *name)
{
	return is_one_of(name, harmless) || strncmp(name, "utf8_and_", strlen("utf8_and_")) == 0;
}

/* Does the administrator answer for it? */
static bool
is_called_safe(const char *name)
{
	List	   *listed;
	bool		found = false;

	if (SplitIdentifierString(pstrdup(shared_server_safe_modules), ',', &listed))
	{
		foreach_ptr(char, item, listed)
			found |= strcmp(item, name) == 0;
	}
	return found;
}

/*
 * Called in the postmaster when it has loaded its libraries.  Those that come
 * later were loaded for one login: by its settings, or by its login trigger.
 */
void
shared_server_libraries_init(void)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	libraries_known = count_libraries();
	unknown_loaded = NIL;
	for (DynamicFileList *file = get_first_loaded_module(); file; file = get_next_loaded_module(file))
	{
		const char *path,
				   *name,
				   *version;
		char	   *library_loaded;

		get_loaded_module_details(file, &path, &name, &version);
		library_loaded = library_name(path);
		if (is_harmless(library_loaded) || is_one_of(library_loaded, harmless_everywhere))
			continue;
		unknown_loaded = lappend(unknown_loaded, library_loaded);
		if (is_called_safe(library_loaded))
			continue;
		ereport(LOG,
				(errmsg("sessions of \"polar_ss_port\" stay with their backends because of library \"%s\"",
						library_loaded),
				 errdetail("It may keep something of a session that cannot be carried to another backend."),
				 errhint("If it does not, add %s to \"polar_ss_safe_modules\".",
						 quote_identifier(library_loaded))));
	}
	MemoryContextSwitchTo(old);
}

/*
 * SET LOCAL seed is undone at the end of its transaction; what it did is not.
 */
static void
shared_server_assign_seed(double newval, void *extra)
{
	/* as the stock hook: it has not been done yet */
	if (extra && *((int *) extra))
		seeded = true;
	prev_assign_seed(newval, extra);
}

/*
 * Called in each backend that may become a worker, before any session has done
 * anything: before its login trigger, if it has a client.
 */
void
shared_server_taint_init(void)
{
	struct config_real *seed = (struct config_real *) find_option("seed", false, false, ERROR);

	if (prev_assign_seed)
		return;
	prev_object_access_hook = object_access_hook;
	object_access_hook = shared_server_object_access;
	prev_assign_seed = seed->assign_hook;
	seed->assign_hook = shared_server_assign_seed;
}

/*
 * Libraries that came since the start, in the order of their loading.
 */
static const char *
foreign_library(void)
{
	int			count = count_libraries();
	int			i = 0;

	foreach_ptr(char, loaded, unknown_loaded)
	{
		if (!is_called_safe(loaded))
			return psprintf("library %.40s", loaded);
	}
	if (library || count == libraries_known)
		return library;
	for (DynamicFileList *file = get_first_loaded_module(); file; file = get_next_loaded_module(file))
	{
		const char *path,
				   *name,
				   *version;
		char	   *short_name;

		if (i++ < libraries_known)
			continue;
		get_loaded_module_details(file, &path, &name, &version);
		short_name = library_name(path);
		if (!is_harmless(short_name) && !is_called_safe(short_name))
		{
			library = MemoryContextStrdup(TopMemoryContext, psprintf("library %.40s", short_name));
			return library;
		}
	}
	libraries_known = count;
	return NULL;
}

/*
 * Is there anything in the temporary schema?  The schema itself stays after
 * the last table is dropped, and pins nobody.
 */
static bool
has_temporary_objects(void)
{
	Oid			schema,
				toast;
	Relation	depend;
	ScanKeyData key[2];
	SysScanDesc scan;
	bool		found;

	GetTempNamespaceState(&schema, &toast);
	if (!OidIsValid(schema))
		return false;

	StartTransactionCommand();
	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(NamespaceRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(schema));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 2, key);
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	CommitTransactionCommand();
	return found;
}

static bool
has_session_locks(void)
{
	HASH_SEQ_STATUS status;
	LOCALLOCK  *lock;

	if (hash_get_num_entries(GetLockMethodLocalHash()) == 0)
		return false;
	hash_seq_init(&status, GetLockMethodLocalHash());
	while ((lock = hash_seq_search(&status)) != NULL)
	{
		if (lock->nLocks > 0)
		{
			hash_seq_term(&status);
			return true;
		}
	}
	return false;
}

static bool
has_temporary_slots(void)
{
	bool		found = false;

	if (max_replication_slots <= 0)
		return false;
	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots && !found; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];

		found = slot->in_use && slot->active_pid == MyProcPid;
	}
	LWLockRelease(ReplicationSlotControlLock);
	return found;
}

static const char *
pinned_setting(void)
{
	List	   *names;

	if (shared_server_dedicated_guc_names[0] == '\0' ||
		!SplitIdentifierString(pstrdup(shared_server_dedicated_guc_names), ',', &names))
		return NULL;
	foreach_ptr(char, name, names)
	{
		struct config_generic *gen = find_option(name, false, true, DEBUG5);

		if (gen && gen->source == PGC_S_SESSION)
			return psprintf("setting %.40s", gen->name);
	}
	return NULL;
}

/*
 * Why the session cannot leave this worker, or NULL.  Besides this there is
 * what the image says when it is made.
 */
const char *
shared_server_taint(void)
{
	const char *reason;

	if (seeded)
		return "setseed";
	if (listenChannels != NIL)
		return "LISTEN";
	if (hash_get_num_entries(PortalHashTable) > 0)
		return "cursors WITH HOLD";
	if (has_session_locks())
		return "session locks";
	if (get_backup_status() != SESSION_BACKUP_NONE)
		return "base backup";
	if (replorigin_session_origin != InvalidRepOriginId)
		return "replication origin";
	if (has_temporary_slots())
		return "temporary replication slots";
	if ((reason = foreign_library()) != NULL)
		return reason;
	if (has_temporary_objects())
		return "temporary objects";
	return pinned_setting();
}
