/*-------------------------------------------------------------------------
 *
 * image.c
 *	  What a session takes with it when it leaves a worker.
 *
 * Three parts, each a run of strings and numbers:
 *
 * key		what cannot be changed in a running backend, and may therefore
 *			differ only between pools: database, role, how the client has
 *			authenticated, and the settings that this login began with
 * identity	what belongs to the client for its whole life: protocol, start,
 *			and the settings that came with its startup packet
 * image	what changes: settings of the session, its role, what was last
 *			reported to the client, sequences, prepared statements
 *
 * Whatever a session has beyond that is found by taint.c, and keeps it where it
 * is.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/image.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "libpq/libpq.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "shared_server.h"
#include "tcop/session_state.h"
#include "utils/backend_status.h"
#include "utils/guc_tables.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/timestamp.h"

/* The variables that are reported to clients, found once */
static struct config_generic **reported = NULL;
static int	reported_count = 0;

/* What SET ROLE and SET SESSION AUTHORIZATION set */
static struct config_generic *role_setting = NULL;
static struct config_generic *session_authorization = NULL;

/* How many variables there were when no placeholder was a session's */
static int	variables_known = 0;

void
shared_server_append_int(StringInfo buf, int32 value)
{
	appendBinaryStringInfo(buf, &value, sizeof(value));
}

void
shared_server_append_string(StringInfo buf, const char *text)
{
	int32		length = text ? (int32) strlen(text) + 1 : 0;

	shared_server_append_int(buf, length);
	if (length > 0)
		appendBinaryStringInfo(buf, text, length);
}

const void *
shared_server_get_bytes(StringInfo buf, int length)
{
	const void *bytes = buf->data + buf->cursor;

	if (length < 0 || buf->cursor + length > buf->len)
		ereport(FATAL,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("session image ends too early")));
	buf->cursor += length;
	return bytes;
}

void
shared_server_get_value(StringInfo buf, void *value, int length)
{
	memcpy(value, shared_server_get_bytes(buf, length), length);
}

int32
shared_server_get_int(StringInfo buf)
{
	int32		value;

	memcpy(&value, shared_server_get_bytes(buf, sizeof(value)), sizeof(value));
	return value;
}

/* In place; NULL if there was none. */
const char *
shared_server_get_string(StringInfo buf)
{
	int32		length = shared_server_get_int(buf);
	const char *string;

	if (length == 0)
		return NULL;
	string = shared_server_get_bytes(buf, length);
	if (string[length - 1] != '\0')
		ereport(FATAL,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("session image has a string without an end")));
	return string;
}

/*
 * A value as the machinery of settings reads it back: without units, and with
 * all digits.  NULL for a string variable that has none.
 */
static const char *
value_text(struct config_generic *gen, bool reset)
{
	switch (gen->vartype)
	{
		case PGC_BOOL:
			{
				struct config_bool *conf = (struct config_bool *) gen;

				return (reset ? conf->reset_val : *conf->variable) ? "on" : "off";
			}
		case PGC_INT:
			{
				struct config_int *conf = (struct config_int *) gen;

				return psprintf("%d", reset ? conf->reset_val : *conf->variable);
			}
		case PGC_REAL:
			{
				struct config_real *conf = (struct config_real *) gen;

				return psprintf("%.17g", reset ? conf->reset_val : *conf->variable);
			}
		case PGC_STRING:
			{
				struct config_string *conf = (struct config_string *) gen;

				return reset ? conf->reset_val : *conf->variable;
			}
		case PGC_ENUM:
			{
				struct config_enum *conf = (struct config_enum *) gen;

				return config_enum_lookup_by_value(conf, reset ? conf->reset_val : *conf->variable);
			}
	}
	return NULL;
}

/*
 * Does this variable have a reset value of its own from the login: of the
 * database, of the role or of the startup packet?
 */
static bool
is_login_setting(struct config_generic *gen)
{
	return gen->reset_source >= PGC_S_GLOBAL && gen->reset_source <= PGC_S_CLIENT;
}

/* One that another client of the same pool may have chosen differently */
static bool
is_client_setting(struct config_generic *gen)
{
	return gen->reset_source == PGC_S_CLIENT &&
		(gen->context == PGC_USERSET || gen->context == PGC_SUSET);
}

/* What transactions begin with anew */
static bool
is_transaction_setting(struct config_generic *gen)
{
	return strcmp(gen->name, "transaction_isolation") == 0 ||
		strcmp(gen->name, "transaction_read_only") == 0 ||
		strcmp(gen->name, "transaction_deferrable") == 0;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp((*(struct config_generic *const *) a)->name,
				  (*(struct config_generic *const *) b)->name);
}

/*
 * The variables that have a value, in the order of their names: all, or those
 * whose value is not the one that the session began with.
 */
static struct config_generic **
changed_variables(int *count, bool since_login)
{
	struct config_generic **result;
	dlist_iter	iter;
	int			n = 0;

	dlist_foreach(iter, &guc_nondef_list)
		n++;
	result = palloc_array(struct config_generic *, n + 1);
	*count = 0;
	dlist_foreach(iter, &guc_nondef_list)
	{
		struct config_generic *gen = dlist_container(struct config_generic, nondef_link, iter.cur);

		if (!since_login || gen->source > PGC_S_CLIENT)
			result[(*count)++] = gen;
	}
	qsort(result, *count, sizeof(*result), compare_names);
	return result;
}

/* What of a constant, and then of a text or a name, these say is found out once and then kept */
static const char *const meanings[] = {
	"array_nulls", "DateStyle", "IntervalStyle", "lc_monetary", "TimeZone",
	"timezone_abbreviations",
	"search_path", "standard_conforming_strings", "transform_null_equals",
};

#define MEANINGS_OF_CONSTANTS 6

static void
append_meanings(StringInfo buf, int count)
{
	static struct config_generic *known[lengthof(meanings)];

	for (int i = 0; i < count; i++)
	{
		if (known[i] == NULL)
			known[i] = find_option(meanings[i], false, false, ERROR);
		shared_server_append_string(buf, value_text(known[i], false));
	}
}

/*
 * The settings by which the constants of a statement may mean something else.
 */
void
shared_server_append_constant_meanings(StringInfo buf)
{
	append_meanings(buf, MEANINGS_OF_CONSTANTS);
}

/*
 * The settings by which a function may be compiled to something else: all of
 * those, and custom ones, which only the function knows.
 */
void
shared_server_append_meanings(StringInfo buf)
{
	struct config_generic **custom = NULL;
	int			count = 0;
	dlist_iter	iter;

	append_meanings(buf, lengthof(meanings));
	dlist_foreach(iter, &guc_nondef_list)
	{
		struct config_generic *gen = dlist_container(struct config_generic, nondef_link, iter.cur);

		if (gen->source < PGC_S_CLIENT || strchr(gen->name, '.') == NULL)
			continue;
		custom = custom ? repalloc_array(custom, struct config_generic *, count + 1) :
			palloc_array(struct config_generic *, 1);
		custom[count++] = gen;
	}
	if (custom == NULL)
		return;
	qsort(custom, count, sizeof(*custom), compare_names);
	for (int i = 0; i < count; i++)
	{
		shared_server_append_string(buf, custom[i]->name);
		shared_server_append_string(buf, value_text(custom[i], false));
	}
	pfree(custom);
}

/*
 * The key of the pool.  Two backends with the same key can serve each other's
 * sessions.
 */
void
shared_server_append_key(StringInfo buf)
{
	int			count;
	struct config_generic **changed = changed_variables(&count, false);

	shared_server_append_string(buf, MyProcPort->database_name);
	shared_server_append_string(buf, MyProcPort->user_name);
	shared_server_append_int(buf, MyDatabaseId);
	shared_server_append_int(buf, GetAuthenticatedUserId());
	shared_server_append_int(buf, GetSessionUserIsSuperuser());
	shared_server_append_string(buf, MyClientConnectionInfo.authn_id);
	shared_server_append_int(buf, MyClientConnectionInfo.auth_method);

	for (int i = 0; i < count; i++)
	{
		if (!is_login_setting(changed[i]))
			continue;
		shared_server_append_string(buf, changed[i]->name);
		shared_server_append_int(buf, changed[i]->reset_source);
		shared_server_append_int(buf, changed[i]->reset_scontext);
		shared_server_append_int(buf, changed[i]->reset_srole);
		if (!is_client_setting(changed[i]))
			shared_server_append_string(buf, value_text(changed[i], true));
	}
	pfree(changed);
}

/*
 * The settings of the login, for a worker that is started to continue it.
 */
void
shared_server_append_settings(StringInfo buf)
{
	int			count;
	struct config_generic **changed = changed_variables(&count, false);

	for (int i = 0; i < count; i++)
	{
		const char *value = value_text(changed[i], true);

		if (!is_login_setting(changed[i]) || value == NULL)
			continue;
		shared_server_append_string(buf, changed[i]->name);
		shared_server_append_int(buf, changed[i]->reset_source);
		shared_server_append_int(buf, changed[i]->reset_scontext);
		shared_server_append_int(buf, changed[i]->reset_srole);
		shared_server_append_string(buf, value);
	}
	shared_server_append_string(buf, NULL);
	pfree(changed);
}

/*
 * Set a variable whoever may do so: its owner was asked when it was set.
 */
static void
set_variable(const char *name, const char *value, GucSource source,
			 GucContext context, Oid role)
{
	struct config_generic *gen;

	if (set_config_option_ext(name, value,
							  source == PGC_S_SESSION ? PGC_SUSET : PGC_SU_BACKEND,
							  source, BOOTSTRAP_SUPERUSERID,
							  GUC_ACTION_SET, true, ERROR, false) == 0)
		ereport(ERROR,
				(errmsg("could not restore the parameter \"%s\"", name)));
	if (value == NULL)
		return;

	/* but remember who that was */
	gen = find_option(name, false, false, ERROR);
	if (source == PGC_S_SESSION || gen->source == source)
	{
		gen->scontext = context;
		gen->srole = role;
	}
	if (source != PGC_S_SESSION)
	{
		gen->reset_scontext = context;
		gen->reset_srole = role;
	}
}

void
shared_server_apply_settings(StringInfo buf)
{
	const char *name;

	while ((name = shared_server_get_string(buf)) != NULL)
	{
		GucSource	source = shared_server_get_int(buf);
		GucContext	context = shared_server_get_int(buf);
		Oid			role = shared_server_get_int(buf);
		const char *value = shared_server_get_string(buf);

		set_variable(name, value, source, context, role);
	}
}

/*
 * What a client keeps from its login to its end.
 */
void
shared_server_append_identity(StringInfo buf)
{
	int			count;
	struct config_generic **changed = changed_variables(&count, false);

	shared_server_append_int(buf, MyProcPort->proto);
	appendBinaryStringInfo(buf, &MyStartTimestamp, sizeof(MyStartTimestamp));
	shared_server_append_relayed(buf);
	shared_server_append_string(buf, MyProcPort->remote_host);
	shared_server_append_string(buf, MyProcPort->remote_port);
	shared_server_append_string(buf, MyProcPort->remote_hostname);
	for (int i = 0; i < count; i++)
	{
		const char *value = value_text(changed[i], true);

		if (!is_client_setting(changed[i]) || value == NULL)
			continue;
		shared_server_append_string(buf, changed[i]->name);
		shared_server_append_int(buf, changed[i]->reset_scontext);
		shared_server_append_int(buf, changed[i]->reset_srole);
		shared_server_append_string(buf, value);
	}
	shared_server_append_string(buf, NULL);
	pfree(changed);
}

/*
 * Conversions and roles can be looked up only inside a transaction.  All else
 * is set outside of one, where check hooks believe what has been checked before:
 * a tablespace that is gone by now does not end the session, as it would not
 * natively.
 */
static void
set_client_variable(const char *name, const char *value, GucSource source,
					GucContext context, Oid role)
{
	bool		transaction = strcmp(name, "client_encoding") == 0 ||
		strcmp(name, "role") == 0 || strcmp(name, "session_authorization") == 0;

	if (transaction)
		StartTransactionCommand();
	set_variable(name, value, source, context, role);
	if (transaction)
		CommitTransactionCommand();
}

/*
 * Put this backend in the client's place.  The port has its socket and its
 * address.  Returns whether a setting had to be changed.
 */
bool
shared_server_apply_identity(StringInfo buf)
{
	bool		changed = false;
	const char *name;
	static MemoryContext context = NULL;
	MemoryContext old;

	/* what was said of the previous client */
	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "shared_server client",
										ALLOCSET_SMALL_SIZES);
	MyProcPort->remote_host = MyProcPort->remote_port = "";
	MyProcPort->remote_hostname = NULL;
	MemoryContextReset(context);
	old = MemoryContextSwitchTo(context);

	MyProcPort->proto = shared_server_get_int(buf);
	FrontendProtocol = MyProcPort->proto;
	memcpy(&MyStartTimestamp, shared_server_get_bytes(buf, sizeof(MyStartTimestamp)), sizeof(MyStartTimestamp));
	MyStartTime = timestamptz_to_time_t(MyStartTimestamp);
	reset_formatted_start_time();
	shared_server_apply_relayed(buf);
	name = shared_server_get_string(buf);
	MyProcPort->remote_host = pstrdup(name ? name : "");
	name = shared_server_get_string(buf);
	MyProcPort->remote_port = pstrdup(name ? name : "");
	name = shared_server_get_string(buf);
	MyProcPort->remote_hostname = name ? pstrdup(name) : NULL;
	MemoryContextSwitchTo(old);

	while ((name = shared_server_get_string(buf)) != NULL)
	{
		GucContext	scontext = shared_server_get_int(buf);
		Oid			role = shared_server_get_int(buf);
		const char *value = shared_server_get_string(buf);
		struct config_generic *gen = find_option(name, false, false, ERROR);
		const char *current = value_text(gen, true);

		if (current == NULL || strcmp(current, value) != 0 ||
			gen->reset_scontext != scontext || gen->reset_srole != role)
		{
			set_client_variable(name, value, PGC_S_CLIENT, scontext, role);
			changed = true;
		}
	}
	return changed;
}

/* How many variables there are, placeholders included */
static int
variable_count(void)
{
	return (int) hash_get_num_entries(guc_hashtab);
}

/*
 * Forget a placeholder that has no value, as if nobody had ever set it.
 */
static void
remove_placeholder(struct config_generic *gen)
{
	Assert((gen->flags & GUC_CUSTOM_PLACEHOLDER) != 0);
	Assert(gen->source == PGC_S_DEFAULT && gen->stack == NULL);
	Assert((gen->status & GUC_NEEDS_REPORT) == 0);

	hash_search(guc_hashtab, &gen->name, HASH_REMOVE, NULL);
	guc_free(gen->sourcefile);
	guc_free(gen->last_reported);
	guc_free(unconstify(char *, gen->name));
	guc_free(gen);
}

static void
find_settings(void)
{
	int			count;
	struct config_generic **all = get_guc_variables(&count);

	reported = MemoryContextAlloc(TopMemoryContext, count * sizeof(*reported));
	for (int i = 0; i < count; i++)
	{
		if (all[i]->flags & GUC_REPORT)
			reported[reported_count++] = all[i];
	}
	role_setting = find_option("role", false, false, ERROR);
	session_authorization = find_option("session_authorization", false, false, ERROR);
	pfree(all);
	variables_known = variable_count();
}

static int
compare_sequences(const void *a, const void *b)
{
	Oid			x = (*(SeqTableData *const *) a)->relid;
	Oid			y = (*(SeqTableData *const *) b)->relid;

	return x < y ? -1 : x > y;
}

/*
 * currval() and lastval(), and the values that are cached for nextval().
 */
static void
append_sequences(StringInfo buf)
{
	int			count = seqhashtab ? (int) hash_get_num_entries(seqhashtab) : 0;
	SeqTableData **sorted = palloc_array(SeqTableData *, count + 1);
	HASH_SEQ_STATUS status;
	int			n = 0;

	if (seqhashtab)
	{
		hash_seq_init(&status, seqhashtab);
		while ((sorted[n] = hash_seq_search(&status)) != NULL)
			n++;
	}
	qsort(sorted, n, sizeof(*sorted), compare_sequences);
	for (int i = 0; i < n; i++)
	{
		SeqTableData saved;

		memset(&saved, 0, sizeof(saved));
		saved.relid = sorted[i]->relid;
		saved.filenumber = sorted[i]->filenumber;
		saved.last_valid = sorted[i]->last_valid;
		saved.last = sorted[i]->last;
		saved.cached = sorted[i]->cached;
		saved.increment = sorted[i]->increment;
		shared_server_append_int(buf, sorted[i] == last_used_seq ? 2 : 1);
		appendBinaryStringInfo(buf, &saved, sizeof(saved));
	}
	shared_server_append_int(buf, 0);
	pfree(sorted);
}

/* Each part begins with its length, so that it can be compared as a whole */
static int
begin_part(StringInfo buf)
{
	shared_server_append_int(buf, 0);
	return buf->len;
}

static void
end_part(StringInfo buf, int begin)
{
	int32		length = buf->len - begin;

	memcpy(buf->data + begin - sizeof(length), &length, sizeof(length));
}

/*
 * Settings that another worker might refuse: once it has had temporary tables,
 * another size of their buffers; once it has loaded PL/pgSQL, names under its
 * prefix that it does not know.
 */
static bool
is_tied_to_worker(struct config_generic *gen)
{
	return strcmp(gen->name, "temp_buffers") == 0 ||
		((gen->flags & GUC_CUSTOM_PLACEHOLDER) && pg_strncasecmp(gen->name, "plpgsql.", 8) == 0);
}

static bool
is_of_session(struct config_generic *gen)
{
	return gen->source == PGC_S_SESSION;
}

/*
 * Save what changes.  Returns why that is impossible, or NULL.
 */
const char *
shared_server_append_image(StringInfo buf)
{
	int			count;
	struct config_generic **changed;
	int			placeholders = 0;
	int			part;
	const char *reason;

	if (reported == NULL)
		find_settings();
	part = begin_part(buf);

	/* Names may be another's by then, or nobody's */
	shared_server_append_int(buf, GetSessionUserId());
	shared_server_append_int(buf, is_of_session(session_authorization) && GetSessionUserIsSuperuser());
	shared_server_append_int(buf, GetCurrentRoleId());
	shared_server_append_int(buf, is_of_session(role_setting) && current_role_is_superuser);
	changed = changed_variables(&count, true);
	for (int i = 0; i < count; i++)
	{
		struct config_generic *gen = changed[i];
		const char *value;

		if (is_transaction_setting(gen))
			continue;
		if (gen->source == PGC_S_OVERRIDE && gen->reset_source == PGC_S_OVERRIDE)
			continue;
		if (gen->source != PGC_S_SESSION || is_tied_to_worker(gen))
			return psprintf("setting %.40s", gen->name);
		if (strcmp(gen->name, "seed") == 0)
			return "setseed";
		value = value_text(gen, false);
		if (value == NULL)
			return psprintf("setting %.40s", gen->name);
		/* a string cannot grow for ever */
		if (buf->len + strlen(value) > SHARED_SERVER_IMAGE_MAX)
			return "size";
		if ((gen->flags & GUC_CUSTOM_PLACEHOLDER) && !is_login_setting(gen))
			placeholders++;
		shared_server_append_string(buf, gen->name);
		shared_server_append_int(buf, gen->scontext);
		shared_server_append_int(buf, gen->srole);
		shared_server_append_string(buf, value);
	}
	pfree(changed);
	shared_server_append_string(buf, NULL);

	/*
	 * A custom setting that was set and reset is empty, not unknown.  Nothing
	 * lists it but the table of all variables, which is looked through when
	 * there are more of them than are accounted for.
	 */
	if (variable_count() != variables_known + placeholders)
	{
		struct config_generic **all = get_guc_variables(&count);
		int			empty = 0;

		for (int i = 0; i < count; i++)
		{
			if ((all[i]->flags & GUC_CUSTOM_PLACEHOLDER) && all[i]->source == PGC_S_DEFAULT)
			{
				if (is_tied_to_worker(all[i]))
					return psprintf("setting %.40s", all[i]->name);
				shared_server_append_string(buf, all[i]->name);
				empty++;
			}
		}
		pfree(all);
		/* a library may have defined others since */
		variables_known = variable_count() - placeholders - empty;
	}
	shared_server_append_string(buf, NULL);

	end_part(buf, part);

	/* What the client believes */
	part = begin_part(buf);
	for (int i = 0; i < reported_count; i++)
		shared_server_append_string(buf, reported[i]->last_reported);
	end_part(buf, part);

	part = begin_part(buf);
	append_sequences(buf);
	end_part(buf, part);

	part = begin_part(buf);
	reason = shared_server_append_statements(buf);
	if (reason)
		return reason;
	end_part(buf, part);

	return buf->len > SHARED_SERVER_IMAGE_MAX ? "size" : NULL;
}

/*
 * Forget the settings of the session that was here.
 */
static void
forget_settings(void)
{
	int			count;
	struct config_generic **changed = changed_variables(&count, true);

	for (int i = 0; i < count; i++)
	{
		struct config_generic *gen = changed[i];

		if (gen->source == PGC_S_SESSION && !is_transaction_setting(gen))
			set_client_variable(gen->name, NULL, PGC_S_SESSION, PGC_SUSET, BOOTSTRAP_SUPERUSERID);
	}
	pfree(changed);

	if (variable_count() != variables_known)
	{
		struct config_generic **all = get_guc_variables(&count);

		for (int i = 0; i < count; i++)
		{
			if ((all[i]->flags & GUC_CUSTOM_PLACEHOLDER) && all[i]->source == PGC_S_DEFAULT)
				remove_placeholder(all[i]);
		}
		pfree(all);
		variables_known = variable_count();
	}
}

/*
 * The client must be told of a value that it does not know, and only of that.
 */
static void
believe(struct config_generic *gen, const char *value)
{
	char	   *current = ShowGUCOption(gen, false);

	guc_free(gen->last_reported);
	gen->last_reported = value ? guc_strdup(ERROR, value) : NULL;
	if ((value == NULL || strcmp(value, current) != 0) && !(gen->status & GUC_NEEDS_REPORT))
	{
		gen->status |= GUC_NEEDS_REPORT;
		slist_push_head(&guc_report_list, &gen->report_link);
	}
	pfree(current);
}

/*
 * Say SET ROLE or SET SESSION AUTHORIZATION again, who has been set by the caller.
 * As in a parallel worker the catalogs are not asked: what the session was
 * allowed once it keeps, as natively, and the role may have another name now.
 */
static void
set_role_variable(const char *name, const char *value, GucContext context, Oid role)
{
	InitializingParallelWorker = true;
	set_variable(name, value, PGC_S_SESSION, context, role);
	InitializingParallelWorker = false;
}

static void
apply_settings(StringInfo buf)
{
	const char *name;
	const char *role_name = NULL;
	GucContext	role_context = PGC_USERSET;
	Oid			role_setter = InvalidOid;
	Oid			user = shared_server_get_int(buf);
	bool		user_is_superuser = shared_server_get_int(buf);
	Oid			current = shared_server_get_int(buf);
	bool		current_is_superuser = shared_server_get_int(buf);

	forget_settings();

	while ((name = shared_server_get_string(buf)) != NULL)
	{
		GucContext	context = shared_server_get_int(buf);
		Oid			role = shared_server_get_int(buf);
		const char *value = shared_server_get_string(buf);

		/* a role is the session user's, who comes first */
		if (strcmp(name, "role") == 0)
		{
			role_name = value;
			role_context = context;
			role_setter = role;
		}
		else if (strcmp(name, "session_authorization") == 0)
		{
			SetSessionAuthorization(user, user_is_superuser);
			set_role_variable(name, value, context, role);
		}
		else
			set_client_variable(name, value, PGC_S_SESSION, context, role);
	}

	/* SET and RESET SESSION AUTHORIZATION say SET ROLE NONE as well */
	if (role_name)
	{
		SetCurrentRoleId(current, current_is_superuser);
		set_role_variable("role", role_name, role_context, role_setter);
	}
	else if (is_of_session(role_setting))
		set_client_variable("role", NULL, PGC_S_SESSION, PGC_USERSET, InvalidOid);
	while ((name = shared_server_get_string(buf)) != NULL)
	{
		set_variable(name, "", PGC_S_SESSION, PGC_USERSET, BOOTSTRAP_SUPERUSERID);
		set_variable(name, NULL, PGC_S_SESSION, PGC_USERSET, BOOTSTRAP_SUPERUSERID);
	}
	if (user != GetSessionUserId() || current != GetCurrentRoleId())
		elog(ERROR, "the session has another role after it was restored");
}

static void
apply_sequences(StringInfo buf)
{
	int			kind;

	if (seqhashtab)
		hash_destroy(seqhashtab);
	seqhashtab = NULL;
	last_used_seq = NULL;
	while ((kind = shared_server_get_int(buf)) != 0)
	{
		SeqTableData saved;
		SeqTableData *seq;

		if (seqhashtab == NULL)
		{
			HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(SeqTableData)};

			seqhashtab = hash_create("Sequence values", 16, &ctl, HASH_ELEM | HASH_BLOBS);
		}
		shared_server_get_value(buf, &saved, sizeof(saved));
		seq = hash_search(seqhashtab, &saved.relid, HASH_ENTER, NULL);
		*seq = saved;			/* with no transaction that uses it */
		if (kind == 2)
			last_used_seq = seq;
	}
}

/*
 * The next part of an image, and whether the other one has the same.
 */
static StringInfoData
next_part(StringInfo buf, StringInfo other, bool *same)
{
	StringInfoData part;
	int			length = shared_server_get_int(buf);

	initReadOnlyStringInfo(&part, unconstify(char *, (const char *) shared_server_get_bytes(buf, length)), length);
	*same = false;
	if (other->cursor < other->len)
	{
		int			other_length = shared_server_get_int(other);
		const void *other_bytes = shared_server_get_bytes(other, other_length);

		*same = length == other_length && memcmp(part.data, other_bytes, length) == 0;
	}
	return part;
}

/*
 * Make this backend what another one was when it saved the image.  "last" is
 * the image of what it has been since it let go of its last session, or empty;
 * "known" says that this was the same client, "told" that the client has
 * settings of its own, which may have to be reported.  Errors mean that it is
 * neither, and must end.
 */
void
shared_server_apply_image(StringInfo buf, StringInfo last, bool known, bool told)
{
	StringInfoData part;
	bool		same;

	if (reported == NULL)
		find_settings();
	last->cursor = 0;

	part = next_part(buf, last, &same);
	if (!same)
		apply_settings(&part);
	told |= !same;

	part = next_part(buf, last, &same);
	if (!same || told)
	{
		for (int i = 0; i < reported_count; i++)
			believe(reported[i], shared_server_get_string(&part));
	}

	part = next_part(buf, last, &same);
	if (!same)
		apply_sequences(&part);

	part = next_part(buf, last, &same);
	if (!same || !known)
		shared_server_apply_statements(&part);
}
