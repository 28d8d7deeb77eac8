/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  An ordinary backend that lets go of its client between transactions.
 *
 * The dispatcher hands over a client in the startup packet's place, and the
 * stock code serves it from its first byte: TLS, pg_hba.conf with the client's
 * own address, the password exchange, the login.  When the client is told for
 * the first time that the server is ready, the session is registered; from
 * then on the worker parks it when the dispatcher asks, and is given another.
 *
 * While nobody waits nothing moves: a worker that is bound costs a look at the
 * socket of the dispatcher when it is idle anyway.  When somebody does and all
 * processors have work, a client that goes on at once keeps its worker for a
 * little while: to move a session costs as much as a small transaction.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/worker.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "access/xact.h"
#include "catalog/namespace.h"
#include "fmgr.h"
#include "libpq/libpq.h"
#include "libpq/protocol.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "replication/walsender.h"
#include "shared_server.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/waiteventset.h"
#include "storage/pmsignal.h"
#include "storage/proc.h"
#include "tcop/dest.h"
#include "tcop/session_state.h"
#include "tcop/tcopprot.h"
#include "utils/backend_status.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/timeout.h"
#include "utils/varlena.h"
#include "utils/wait_event.h"

/* The socket of the dispatcher, or -1 in a backend that is no worker */
static int	control = -1;

/*
 * The dispatcher whose worker this is for good, and its process, which has let
 * go of all that sessions had when it ended.
 */
static SharedServerDispatcher *dispatcher = NULL;
static int	dispatcher_pid = 0;

/* The slot of the session that this process serves, or -1 */
static int	session = -1;

static bool starting = false;	/* without a client, and no worker yet */
static bool registered = false;
static bool native = false;
static bool yield_wanted = false;
static bool end_wanted = false;

/* Bound since, and has not been served yet */
static bool fresh = false;
static char pinned[SHARED_SERVER_REASON_LENGTH] = "";

/* What this process was when it let go of its last session */
static StringInfoData last_image;

/* A session that was sent to us when we started */
static StringInfoData resumed;

/* What an image takes at least, which a login must find */
#define LOGIN_IMAGE 512

/* The most that key, names, settings and identity of a login may take */
#define LOGIN_MAX (SHARED_SERVER_IMAGE_MAX / 2)

/* After so many a move costs little, however short they were */
#define QUANTUM_TRANSACTIONS 16
static int	served_transactions = 0;

/* Since when we have the session, and wait for its next message */
static TimestampTz bound_since = 0;
static TimestampTz idle_since = 0;

/* What it keeps of the dispatcher's memory besides its image */
static int	identity_length = 0;

/* Has a part of a message been seen, so that the socket waits for the rest? */
static bool part_said = false;

/*
 * An idle worker waits for the dispatcher and for its client.  The set of events
 * is made once; who comes and goes is the client.  FeBeWaitSet, which has it too,
 * cannot be one of the events: the kernel lets a file, here the pipe of the
 * postmaster, be watched through a set in a set 500 times.
 */
static WaitEventSet *wait_set = NULL;
static int	client_position = -1;
static uint32 wait_event_park = 0;
static MemoryContext idle_context = NULL;

static adopt_connection_hook_type prev_adopt_connection_hook = NULL;
static session_idle_hook_type prev_session_idle_hook = NULL;
static cancel_key_hook_type prev_cancel_key_hook = NULL;

/*
 * What is written while there is no client goes nowhere.
 */
static void
nowhere_comm_reset(void)
{
}
static int
nowhere_flush(void)
{
	return 0;
}
static bool
nowhere_is_send_pending(void)
{
	return false;
}

/*
 * What ends a worker before it is one, the dispatcher is told in the words that
 * a client would have been.
 */
static int
nowhere_putmessage(char msgtype, const char *s, size_t len)
{
	if (starting && msgtype == PqMsg_ErrorResponse)
		(void) shared_server_send(control, SHARED_SERVER_REFUSED, -1, s, len, -1);
	return 0;
}
static void
nowhere_putmessage_noblock(char msgtype, const char *s, size_t len)
{
}

static const PQcommMethods nowhere = {
	.comm_reset = nowhere_comm_reset,
	.flush = nowhere_flush,
	.flush_if_writable = nowhere_flush,
	.is_send_pending = nowhere_is_send_pending,
	.putmessage = nowhere_putmessage,
	.putmessage_noblock = nowhere_putmessage_noblock
};
static const PQcommMethods *client_methods = NULL;

static void
lost_dispatcher(void)
{
	ereport(FATAL,
			(errcode(ERRCODE_ADMIN_SHUTDOWN),
			 errmsg("terminating connection because the dispatcher has ended")));
}

static void
tell(SharedServerMessageKind kind, const void *data, int length)
{
	if (!shared_server_send(control, kind, session, data, length, -1))
		lost_dispatcher();
}

/*
 * The next bytes from the dispatcher.  Before the login there is no latch to
 * wait on; the alarm of the startup packet ends a wait that is too long.
 */
static bool
receive_all(int sock, void *data, size_t length, int *passed)
{
	size_t		done = 0;

	while (done < length)
	{
		ssize_t		got = shared_server_receive(sock, (char *) data + done, length - done, passed);

		if (got == 0)
			return false;
		if (got < 0)
		{
			struct pollfd wait = {.fd = sock,.events = POLLIN};

			if (errno != EAGAIN && errno != EWOULDBLOCK)
				return false;
			if (poll(&wait, 1, 1000) < 0 && errno != EINTR)
				return false;
			/* what follows a header has been sent with it */
			if (!PostmasterIsAlive())
				return false;
			continue;
		}
		done += got;
	}
	return true;
}

static bool
receive_message(SharedServerHeader *header, StringInfo body, int *passed)
{
	*passed = -1;
	if (!receive_all(control, header, sizeof(*header), passed) ||
		header->length > 4 * SHARED_SERVER_IMAGE_MAX)
		return false;
	resetStringInfo(body);
	if (header->length > 0)
	{
		enlargeStringInfo(body, header->length);
		if (!receive_all(control, body->data, header->length, passed))
			return false;
		body->len = header->length;
		body->data[body->len] = '\0';
	}
	return true;
}

static pg_noreturn void
end_drained(void)
{
	ereport(FATAL,
			(errcode(ERRCODE_ADMIN_SHUTDOWN),
			 errmsg("terminating connection due to administrator command")));
}

/*
 * An error that is thrown while the session is idle would be sent to a client
 * that has asked nothing, and takes it for the answer to what it asks next.
 */
static pg_noreturn void
fatal_instead(MemoryContext context, const char *message)
{
	ErrorData  *edata;

	MemoryContextSwitchTo(context);
	edata = CopyErrorData();
	FlushErrorState();
	ereport(FATAL,
			(errcode(edata->sqlerrcode),
			 errmsg("%s", message),
			 errdetail("%s", edata->message)));
}

/*
 * Wait for this client, or for none, when something is to be read.
 */
static void
watch_client(pgsocket sock)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		ReplaceWaitEventSocket(FeBeWaitSet, FeBeWaitSetSocketPos, WL_SOCKET_READABLE, sock);
		if (wait_set && client_position >= 0)
			ReplaceWaitEventSocket(wait_set, client_position, WL_SOCKET_READABLE, sock);
		else if (wait_set && sock != PGINVALID_SOCKET)
			client_position = AddWaitEventToSet(wait_set, WL_SOCKET_READABLE, sock, NULL, NULL);
	}
	PG_CATCH();
	{
		fatal_instead(context, "could not watch a client");
	}
	PG_END_TRY();
}

/*
 * Put a client's socket into the port: what pq_init() does for one that the
 * postmaster has accepted.
 */
static bool
take_socket(Port *port, int sock, bool first)
{
	int			on = 1;
	SockAddr	raddr = {.salen = sizeof(raddr.addr)};
	SockAddr	laddr = {.salen = sizeof(laddr.addr)};

	/* all that fails for a client that has gone, before anything is changed */
	if (getpeername(sock, (struct sockaddr *) &raddr.addr, &raddr.salen) < 0 ||
		getsockname(sock, (struct sockaddr *) &laddr.addr, &laddr.salen) < 0 ||
		(first && (!pg_set_noblock(sock) || fcntl(sock, F_SETFD, FD_CLOEXEC) < 0)))
		return false;
	if (first && laddr.addr.ss_family != AF_UNIX &&
		(setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
		 setsockopt(sock, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0))
		return false;
	port->raddr = raddr;
	port->laddr = laddr;
	port->sock = sock;
	port->noblock = false;
	port->local_host[0] = '\0';
	port->keepalives_idle = port->keepalives_interval = port->keepalives_count = 0;
	port->tcp_user_timeout = 0;

	/* behind the relay there are none that could be asked for, or set */
	port->default_keepalives_idle = port->default_keepalives_interval =
		port->default_keepalives_count = port->default_tcp_user_timeout =
		laddr.addr.ss_family == AF_UNIX ? -1 : 0;
	if (port->laddr.addr.ss_family != AF_UNIX)
	{
		(void) pq_setkeepalivesidle(tcp_keepalives_idle, port);
		(void) pq_setkeepalivesinterval(tcp_keepalives_interval, port);
		(void) pq_setkeepalivescount(tcp_keepalives_count, port);
		(void) pq_settcpusertimeout(tcp_user_timeout, port);
	}

	watch_client(sock);
	return true;
}

/*
 * What the relay says of a client, before anything of the client's.
 */
static bool
hear_relay(Port *port, int sock, StringInfo body)
{
	SharedServerAddresses from;
	uint32		length;
	char	   *facts;
	bool		good;

	shared_server_get_value(body, &from, sizeof(from));
	if (!receive_all(sock, &length, sizeof(length), NULL) || length > SHARED_SERVER_IMAGE_MAX)
		return false;
	facts = palloc(length);
	good = receive_all(sock, facts, length, NULL) &&
		shared_server_believe_tls(port, &from, facts, length);
	pfree(facts);
	return good;
}

/*
 * A connection with the code of a hand-over.  Believed only from a process of
 * our own user that knows what the dispatcher has put into shared memory.
 */
static AdoptedConnection
shared_server_adopt(Port *port, const char *data, int length)
{
	SharedServerAdopt request;
	SharedServerHeader header;
	StringInfoData body;
	uid_t		uid;
	gid_t		gid;
	int			passed = -1;

	if (shared_server == NULL || length != sizeof(request) || pq_buffer_remaining_data() > 0 ||
		getpeereid(port->sock, &uid, &gid) != 0 || uid != geteuid())
		return ADOPT_REFUSED;
	memcpy(&request, data, sizeof(request));
	if (request.dispatcher < 0 || request.dispatcher >= shared_server_dispatcher_count)
		return ADOPT_REFUSED;
	dispatcher = &shared_server_dispatchers[request.dispatcher];
	if (!dispatcher->token_valid ||
		timingsafe_bcmp(request.token, dispatcher->token, SHARED_SERVER_TOKEN_LENGTH) != 0 ||
		request.session < -1 || request.session >= shared_server->sessions_max ||
		(request.session >= 0 && shared_server_dispatcher_of(request.session) != dispatcher))
		return ADOPT_REFUSED;

	/*
	 * A plain read would have thrown away a socket that came with the packet,
	 * so it is asked for.
	 */
	control = port->sock;
	dispatcher_pid = dispatcher->pid;
	session = request.session;
	if (!shared_server_send(control, SHARED_SERVER_HELLO, session, NULL, 0, -1))
		return ADOPT_REFUSED;
	{
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		initStringInfo(&body);
		MemoryContextSwitchTo(old);
	}
	if (!receive_message(&header, &body, &passed))
		return ADOPT_REFUSED;

	if (header.kind == SHARED_SERVER_CLIENT && passed >= 0 && !request.resume)
	{
		/* our end of the other socket is not counted as the client's */
		ReserveExternalFD();
		if (!take_socket(port, passed, true) || (body.len > 0 && !hear_relay(port, passed, &body)))
			return ADOPT_REFUSED;
		pfree(body.data);
		return ADOPT_CLIENT;
	}
	if (header.kind == SHARED_SERVER_RESUME && passed < 0 && request.resume)
	{
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		const char *authn_id;

		/* as in shared_server_append_key() */
		resumed = body;
		port->database_name = pstrdup(shared_server_get_string(&resumed));
		port->user_name = pstrdup(shared_server_get_string(&resumed));
		authn_id = shared_server_get_string(&resumed);
		MyClientConnectionInfo.authn_id = authn_id ? pstrdup(authn_id) : NULL;
		MyClientConnectionInfo.auth_method = shared_server_get_int(&resumed);
		port->proto = PG_PROTOCOL_LATEST;
		session = -1;
		client_methods = PqCommMethods;
		PqCommMethods = &nowhere;
		starting = true;
		ReserveExternalFD();
		MemoryContextSwitchTo(old);
		return ADOPT_SESSION;
	}
	return ADOPT_REFUSED;
}

/*
 * In a worker that is started without a client: the settings of the login that
 * it continues, and no login trigger, which has fired.
 */
static void
shared_server_session_settings(void)
{
	shared_server_apply_settings(&resumed);
	pfree(resumed.data);
	MyDatabaseHasLoginEventTriggers = false;
}

/*
 * Pairs of a database and a role with a slash between, separated by commas.  A
 * star stands for all, and so does "_", as the original's manual has it.
 */
static bool
is_dedicated(const char *database, const char *user)
{
	char	   *list = pstrdup(shared_server_dedicated_dbuser_names);
	bool		found = false;

	for (char *item = strtok(list, ", "); item && !found; item = strtok(NULL, ", "))
	{
		char	   *slash = strchr(item, '/');

		if (slash == NULL)
			continue;
		*slash++ = '\0';
		found = (strcmp(item, "*") == 0 || strcmp(item, "_") == 0 || strcmp(item, database) == 0) &&
			(strcmp(slash, "*") == 0 || strcmp(slash, "_") == 0 || strcmp(slash, user) == 0);
	}
	pfree(list);
	return found;
}

/*
 * A session that is to be an ordinary one for its whole life: the dispatcher
 * forgets it when it sees the end of our socket.
 */
static bool
is_native(void)
{
	return !shared_server_enabled || shared_server_shared_memory_size == 0 || am_walsender ||
		MyProcPort->ssl || MyProcPort->laddr.addr.ss_family == AF_UNIX ||
#ifdef ENABLE_GSS
		(MyProcPort->gss && MyProcPort->gss->enc) ||
#endif
		is_dedicated(MyProcPort->database_name, MyProcPort->user_name);
}

/*
 * What a worker must be told to continue this login.
 */
static void
append_resume(StringInfo buf)
{
	shared_server_append_string(buf, MyProcPort->database_name);
	shared_server_append_string(buf, MyProcPort->user_name);
	shared_server_append_string(buf, MyClientConnectionInfo.authn_id);
	shared_server_append_int(buf, MyClientConnectionInfo.auth_method);
	shared_server_append_settings(buf);
}

/*
 * Has this login settings that are too large to be told to another worker?
 */
static bool
is_too_large(void)
{
	StringInfoData all;
	bool		result;

	initStringInfo(&all);
	shared_server_append_key(&all);
	append_resume(&all);
	shared_server_append_identity(&all);
	result = all.len > LOGIN_MAX;
	pfree(all.data);
	return result;
}

/*
 * After the end of a dispatcher the slot may be somebody else's.  Caller holds
 * its mutex.
 */
static bool
is_our_slot(void)
{
	return dispatcher->pid == dispatcher_pid;
}

/*
 * Take as much of what all sessions may have as this one needs now.
 */
static bool
reserve_memory(int needed)
{
	SharedServerSession *slot = &shared_server->sessions[session];
	uint64		limit = (uint64) shared_server_shared_memory_size * 1024;
	bool		enough = true;

	SpinLockAcquire(&slot->mutex);
	if (slot->worker_pid != MyProcPid || !is_our_slot())
		enough = false;
	else if (needed > slot->memory)
	{
		int			more = needed - slot->memory;

		if (pg_atomic_fetch_add_u64(&shared_server->image_memory, more) + more > limit)
		{
			pg_atomic_fetch_sub_u64(&shared_server->image_memory, more);
			enough = false;
		}
	}
	else
		pg_atomic_fetch_sub_u64(&shared_server->image_memory, slot->memory - needed);
	if (enough)
		slot->memory = needed;
	SpinLockRelease(&slot->mutex);
	return enough;
}

/* The length of shared_server_append_identity() */
static int
measure_identity(void)
{
	StringInfoData identity;

	initStringInfo(&identity);
	shared_server_append_identity(&identity);
	pfree(identity.data);
	return identity.len;
}

/*
 * A session's key for cancel requests is its own: the worker's, known to a
 * client that has moved on, would cancel somebody else.
 */
static void
shared_server_cancel_key(int32 *pid, uint8 *key, int length)
{
	if (prev_cancel_key_hook)
		prev_cancel_key_hook(pid, key, length);
	if (control < 0 || session < 0)
		return;
	native = is_native() || is_too_large();
	if (native)
		return;
	shared_server_taint_init();
	{
		SharedServerSession *slot = &shared_server->sessions[session];
		uint8		own[MAX_CANCEL_KEY_LENGTH];

		Assert(length <= MAX_CANCEL_KEY_LENGTH);
		if (!pg_strong_random(own, length))
			ereport(FATAL,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not generate random cancel key")));
		SpinLockAcquire(&slot->mutex);
		if (!is_our_slot())
		{
			SpinLockRelease(&slot->mutex);
			lost_dispatcher();
		}
		memcpy(slot->key, own, length);
		slot->key_length = length;
		slot->worker_pid = MyProcPid;
		*pid = slot->pid;
		SpinLockRelease(&slot->mutex);
		memcpy(key, own, length);
		MySessionPid = *pid;

		identity_length = measure_identity();
		if (!reserve_memory(identity_length + LOGIN_IMAGE))
			ereport(FATAL,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory for shared sessions"),
					 errdetail("Sessions use %" PRIu64 " kB of the %d kB that \"%s\" allows.",
							   pg_atomic_read_u64(&shared_server->image_memory) / 1024,
							   shared_server_shared_memory_size, "polar_ss_shared_memory_size"),
					 errhint("Increase \"%s\", or end sessions.", "polar_ss_shared_memory_size")));
	}
}

/*
 * Begin or end to be whom signals for the session reach.
 */
static void
set_cancel_target(bool begin)
{
	SharedServerSession *slot = &shared_server->sessions[session];
	bool		ending = false;

	SpinLockAcquire(&slot->mutex);
	if (begin && !is_our_slot())
	{
		SpinLockRelease(&slot->mutex);
		lost_dispatcher();
	}
	if (begin)
	{
		slot->worker_pid = MyProcPid;
		slot->last_worker_pid = MyProcPid;
		MySessionPid = slot->pid;
		ending = slot->ending;
		session_cancelled = slot->cancelled;
		slot->cancelled = false;
	}
	else if (slot->worker_pid == MyProcPid)
		slot->worker_pid = 0;
	SpinLockRelease(&slot->mutex);
	if (ending)
		kill(MyProcPid, SIGTERM);
}

/* Our process id may be another's soon */
static void
worker_exit(int code, Datum arg)
{
	shared_server_workers[MyProcNumber].database = InvalidOid;
	if (session >= 0 && control >= 0)
		set_cancel_target(false);
}

/*
 * The whole of the message is there, or somebody else will look.
 */
static void
forget_part(void)
{
	if (part_said)
		shared_server_await_bytes(MyProcPort->sock, 1);
	part_said = false;
}

static void
become_native(void)
{
	close(control);
	ReleaseExternalFD();
	control = -1;
}

/*
 * What a session did, where it comes from and its name are shown in
 * pg_stat_activity and by ps for the worker that has it, before another has.
 */
static void
show_free(void)
{
	StringInfoData title;

	pgstat_report_activity(STATE_IDLE, "");
	PGSTAT_BEGIN_WRITE_ACTIVITY(MyBEEntry);
	MemSet(&MyBEEntry->st_clientaddr, 0, sizeof(MyBEEntry->st_clientaddr));
	MyBEEntry->st_clienthostname[0] = '\0';
	MyBEEntry->st_appname[0] = '\0';
	MyBEEntry->st_ssl = false;
	MyBEEntry->st_gss = false;
	MyBEEntry->st_query_id = UINT64CONST(0);
	MyBEEntry->st_plan_id = UINT64CONST(0);
	PGSTAT_END_WRITE_ACTIVITY(MyBEEntry);
	initStringInfo(&title);
	appendStringInfo(&title, "%s %s", MyProcPort->user_name, MyProcPort->database_name);
	init_ps_display(title.data);
	set_ps_display("free");
	pfree(title.data);
}

static void
become_nobody(void)
{
	watch_client(PGINVALID_SOCKET);
	close(MyProcPort->sock);
	MyProcPort->sock = PGINVALID_SOCKET;
	shared_server_forget_tls(MyProcPort);
	session = -1;
	MySessionPid = 0;
	yield_wanted = end_wanted = false;
	pinned[0] = '\0';
	if (PqCommMethods != &nowhere)
		client_methods = PqCommMethods;
	PqCommMethods = &nowhere;
	disable_timeout(IDLE_SESSION_TIMEOUT, false);
}

/*
 * Why the session cannot leave, or NULL and its image.
 */
static const char *
save_session(StringInfo image)
{
	MemoryContext context = CurrentMemoryContext;
	const char *volatile reason = NULL;

	initStringInfo(image);
	PG_TRY();
	{
		reason = shared_server_taint();
		if (reason == NULL)
			reason = shared_server_append_image(image);

		/* the next one to count something must find what this one has */
		if (reason == NULL)
			pgstat_report_stat(true);
	}
	PG_CATCH();
	{
		fatal_instead(context, "could not save the session");
	}
	PG_END_TRY();
	return reason;
}

/*
 * A worker that has had temporary tables keeps their schema and buffers, which
 * the next session would find; of those whose transaction was rolled back only
 * the buffers.  The dispatcher gives it no other session, and has it end: not
 * before the session is one that waits, which counts for its database (S14).
 */
static bool
is_worn(void)
{
	Oid			schema,
				toast;

	GetTempNamespaceState(&schema, &toast);
	return OidIsValid(schema) || NLocBuffer > 0;
}

/*
 * Tell the dispatcher that it has the session, with its image, or that it is
 * over, and be free.
 */
static void
let_go_of_session(SharedServerMessageKind kind, StringInfo image)
{
	if (is_worn())
		tell(SHARED_SERVER_WORN, NULL, 0);
	if (kind == SHARED_SERVER_PARK)
		tell(kind, image->data, image->len);
	else
	{
		tell(kind, NULL, 0);
		shared_server_forget_statements();
	}
	resetStringInfo(&last_image);
	appendBinaryStringInfo(&last_image, image->data, image->len);
	become_nobody();
}

/*
 * Give the session to the dispatcher, unless something keeps it here.
 */
static bool
park(void)
{
	StringInfoData image;
	const char *reason = save_session(&image);

	if (reason == NULL && !reserve_memory(identity_length + image.len))
		reason = "polar_ss_shared_memory_size";
	if (reason != NULL)
	{
		if (strncmp(pinned, reason, sizeof(pinned) - 1) != 0)
		{
			strlcpy(pinned, reason, sizeof(pinned));
			tell(SHARED_SERVER_PINNED, pinned, strlen(pinned));
		}
		return false;
	}

	/*
	 * From here on a signal for the session finds nobody.  One that has been
	 * sent arrives with the next system call at the latest: who was to be
	 * terminated must not leave.
	 */
	set_cancel_target(false);
	forget_part();
	(void) getppid();
	CHECK_FOR_INTERRUPTS();
	shared_server->sessions[session].idle_timeout = IdleSessionTimeout;
	shared_server->sessions[session].idle_since = idle_since;
	show_free();
	let_go_of_session(SHARED_SERVER_PARK, &image);
	return true;
}

/*
 * The client has gone, between two transactions.  A worker that could have
 * parked the session serves others; else it ends with it.
 */
static bool
end_session(void)
{
	StringInfoData image;
	char		bytes[5];

	if (save_session(&image) != NULL)
		return false;

	/* unread, a goodbye would take back what is under way to the client */
	(void) recv(MyProcPort->sock, bytes, sizeof(bytes), MSG_DONTWAIT);
	set_cancel_target(false);
	show_free();
	let_go_of_session(SHARED_SERVER_END, &image);
	return true;
}

/*
 * Who was here before could foresee random().
 */
static void
begin_random(void)
{
	static uint64 seeds[64];
	static int	left = 0;

	/* to ask for each costs as much as a short query */
	if (left == 0)
	{
		if (!pg_strong_random(seeds, sizeof(seeds)))
			ereport(FATAL,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not generate a random seed")));
		left = lengthof(seeds);
	}
	left--;
	(void) DirectFunctionCall1(setseed, Float8GetDatum(ldexp((double) (seeds[left] >> 12), -52)));
	seeds[left] = 0;
}

/*
 * Become the backend of the session that the dispatcher has sent.
 */
static void
bind_session(int slot, StringInfo body, int sock)
{
	MemoryContext caller = CurrentMemoryContext;
	StringInfoData part;

	if (sock < 0 || slot < 0 || slot >= shared_server->sessions_max)
		lost_dispatcher();
	session = slot;
	if (!take_socket(MyProcPort, sock, false))
	{
		/* its client has gone while it waited */
		close(sock);
		tell(SHARED_SERVER_END, NULL, 0);
		session = -1;
		return;
	}
	PqCommMethods = client_methods;

	begin_random();
	fresh = true;
	served_transactions = 0;
	bound_since = GetCurrentTimestamp();

	PG_TRY();
	{
		StringInfoData check;
		bool		known;
		bool		told;
		int			length;

		yield_wanted = shared_server_get_int(body);
		identity_length = shared_server_get_int(body);
		initReadOnlyStringInfo(&part, body->data + body->cursor, identity_length);
		told = shared_server_apply_identity(&part);
		body->cursor += identity_length;
		length = shared_server_get_int(body);
		initReadOnlyStringInfo(&part, body->data + body->cursor, length);
		known = shared_server_switch_statements(slot, shared_server->sessions[slot].generation);
		shared_server_apply_image(&part, &last_image, known, told);
		shared_server_switch_functions(slot, shared_server->sessions[slot].generation);

		/* what was made must be what was sent */
		initStringInfo(&check);
		if (shared_server_append_image(&check) != NULL ||
			check.len != length || memcmp(check.data, part.data, length) != 0)
			elog(ERROR, "session image differs after it was restored");
	}
	PG_CATCH();
	{
		/* half a session must not go on */
		fatal_instead(caller, "could not restore the session");
	}
	PG_END_TRY();

	pgstat_bestart_initial();
	pgstat_bestart_security();
	pgstat_bestart_final();

	/* who has logged in, whatever SET SESSION AUTHORIZATION has said since */
	PGSTAT_BEGIN_WRITE_ACTIVITY(MyBEEntry);
	MyBEEntry->st_userid = GetAuthenticatedUserId();
	PGSTAT_END_WRITE_ACTIVITY(MyBEEntry);
	pgstat_report_activity(STATE_IDLE, NULL);
	{
		StringInfoData title;

		initStringInfo(&title);
		appendStringInfo(&title, "%s %s %s", MyProcPort->user_name,
						 MyProcPort->database_name, MyProcPort->remote_host);
		if (MyProcPort->remote_port[0] != '\0')
			appendStringInfo(&title, "(%s)", MyProcPort->remote_port);
		init_ps_display(title.data);
		set_ps_display("idle");
	}
	set_cancel_target(true);
}

/*
 * A message of the dispatcher, which has come.
 */
static void
serve_dispatcher(void)
{
	SharedServerHeader header;
	StringInfoData body;
	int			passed;

	initStringInfo(&body);
	if (!receive_message(&header, &body, &passed))
		lost_dispatcher();
	switch (header.kind)
	{
		case SHARED_SERVER_YIELD:
			/* it may have been sent to the session before */
			if (header.session == session)
				yield_wanted = true;
			break;
		case SHARED_SERVER_BIND:
			if (session >= 0)
				lost_dispatcher();
			bind_session(header.session, &body, passed);
			break;
		case SHARED_SERVER_QUIT:
			if (session < 0)
				proc_exit(0);
			break;
		case SHARED_SERVER_DRAIN:
			if (header.session == session)
				end_wanted = true;
			break;
		default:
			lost_dispatcher();
	}
}

/*
 * For how many milliseconds more may the session keep us although others wait?
 * While there is a processor without work, for none: whoever waits could use
 * it.  Else nothing is gained by letting somebody in, and a move is lost.
 */
static long
turn_left(void)
{
	SharedServerSession *slot = &shared_server->sessions[session];
	int64		quantum_us = shared_server_quantum * INT64CONST(1000);
	TimestampTz now;
	TimestampTz until;

	if (shared_server_quantum == 0 || shared_server_force_migrate || !slot->talkative ||
		(served_transactions >= QUANTUM_TRANSACTIONS && slot->last_wait_us > 2 * quantum_us) ||
		!dispatcher->saturated)
		return 0;
	now = GetCurrentTimestamp();
	until = idle_since + shared_server_quantum * SHARED_SERVER_SILENCE_US;
	if (now >= until)
	{
		/* next time it is not waited for; who has just come has spoken before */
		if (!fresh)
			slot->talkative = false;
		return 0;
	}
	until = Min(until, bound_since + quantum_us);

	/*
	 * A timer for each millisecond would cost more than is gained by it; a
	 * clock that was set back must not make it a long one.
	 */
	return until > now ? Min((until - now + 999) / 1000, shared_server_quantum) : 0;
}

/*
 * Is there something of the client for us to read?
 */
static SharedServerSaid
look_at_client(void)
{
	SharedServerSaid said = shared_server_peek(MyProcPort->sock);

	if (said == SHARED_SERVER_SAID_PART)
		part_said = true;
	else
		forget_part();
	return said;
}

/* As get_part() in the dispatcher reads it */
static void
append_part(StringInfo buf, const StringInfo part)
{
	shared_server_append_int(buf, part->len);
	appendBinaryStringInfo(buf, part->data, part->len);
}

/*
 * What this process needs as a worker, made when it is idle for the first time.
 */
static void
become_worker(void)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	initStringInfo(&last_image);
	idle_context = AllocSetContextCreate(TopMemoryContext, "shared_server idle",
										 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(old);
	wait_event_park = WaitEventExtensionNew("SharedServerWorkerFree");
	wait_set = CreateWaitEventSet(NULL, 4);
	AddWaitEventToSet(wait_set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(wait_set, WL_POSTMASTER_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(wait_set, WL_SOCKET_READABLE, control, NULL, NULL);
	if (session >= 0)
		watch_client(MyProcPort->sock);
	shared_server_workers[MyProcNumber].role = GetAuthenticatedUserId();
	shared_server_workers[MyProcNumber].dispatcher = dispatcher - shared_server_dispatchers;
	shared_server_workers[MyProcNumber].database = MyDatabaseId;
	before_shmem_exit(worker_exit, 0);
	shared_server_taint_init();
	shared_server_functions_init();
	shared_server_statements_init();
}

/*
 * Tell the dispatcher what this process is: the worker of a client that has
 * logged in, or one that was started to continue others.
 */
static void
register_worker(void)
{
	StringInfoData part,
				all;

	initStringInfo(&part);
	initStringInfo(&all);
	shared_server_append_key(&part);
	append_part(&all, &part);
	resetStringInfo(&part);
	if (session >= 0)
	{
		append_resume(&part);
		append_part(&all, &part);
		resetStringInfo(&part);
		shared_server_append_identity(&part);
		append_part(&all, &part);

		/* the number of variables before the session has set any */
		resetStringInfo(&part);
		(void) shared_server_append_image(&part);
		(void) shared_server_switch_statements(session, shared_server->sessions[session].generation);
		shared_server_switch_functions(session, shared_server->sessions[session].generation);
		bound_since = GetCurrentTimestamp();
		tell(SHARED_SERVER_REGISTER, all.data, all.len);
	}
	else
	{
		(void) shared_server_append_image(&part);
		starting = false;
		tell(SHARED_SERVER_READY, all.data, all.len);
		show_free();
		watch_client(PGINVALID_SOCKET);
		MyProcPort->sock = PGINVALID_SOCKET;
	}
}

/*
 * Somebody else waits for this worker.  Returns for how many milliseconds it may
 * wait for its client all the same, or -1 for any time; 0 when it has let go.
 */
static long
let_go(bool *stays)
{
	long		timeout = turn_left();

	if (timeout > 0)
		return timeout;

	/*
	 * Who has just been bound is served first: with many sessions for each
	 * worker all would be moved, and none served.
	 */
	if (fresh && look_at_client() >= SHARED_SERVER_SAID_SOMETHING)
		return -1;
	if (park())
		return 0;

	/* nothing changes before it speaks */
	*stays = true;
	return -1;
}

/*
 * Wait for the dispatcher or the client to say something.
 */
static void
await_either(long timeout, bool *told, bool *spoken)
{
	volatile SharedServerSession *slot = session >= 0 ? &shared_server->sessions[session] : NULL;
	WaitEvent	events[4];
	int			count;

	/* the dispatcher asks first who can yield at once */
	if (slot)
		slot->idle = true;
	count = WaitEventSetWait(wait_set, timeout, events, lengthof(events),
							 slot ? WAIT_EVENT_CLIENT_READ : wait_event_park);
	if (slot)
		slot->idle = false;
	*told = *spoken = false;
	for (int i = 0; i < count; i++)
	{
		if (events[i].events & WL_POSTMASTER_DEATH)
			ereport(FATAL,
					(errcode(ERRCODE_ADMIN_SHUTDOWN),
					 errmsg("terminating connection due to unexpected postmaster exit")));
		if (events[i].events & WL_LATCH_SET)
		{
			ResetLatch(MyLatch);
			ProcessClientReadInterrupt(true);
		}
		else if (events[i].fd == control)
			*told = true;
		else
			*spoken = true;
	}
}

/*
 * The client has spoken, or gone.  Is there something to read?
 */
static bool
hear_client(void)
{
	SharedServerSaid said = look_at_client();

	if (said == SHARED_SERVER_SAID_SOMETHING)
	{
		/* of one that had to wait the dispatcher knows when it spoke */
		if (!fresh)
			shared_server->sessions[session].talkative = GetCurrentTimestamp() - idle_since <
				shared_server_quantum * SHARED_SERVER_SILENCE_US;
		return true;
	}

	/* the stock code reads the end of one that cannot leave, and ends */
	return said == SHARED_SERVER_SAID_GOODBYE && !end_session();
}

/*
 * Returns when there is something to read of a client, whose session is this
 * process's by then.
 */
static void
serve_until_spoken(void)
{
	bool		stays = false;

	for (;;)
	{
		int			served = session;
		bool		told;
		bool		spoken;
		long		timeout = -1;

		MemoryContextReset(idle_context);
		if (session >= 0 && yield_wanted && !stays)
		{
			timeout = let_go(&stays);
			if (timeout == 0)
				continue;
		}
		await_either(timeout, &told, &spoken);
		if (told)
		{
			/* what ends this worker must not end a session that it takes now */
			if (session < 0)
				CHECK_FOR_INTERRUPTS();
			serve_dispatcher();
			if (session != served)
			{
				idle_since = bound_since;
				stays = false;

				/* it has spoken, or would not have been bound */
				if (session >= 0 && look_at_client() == SHARED_SERVER_SAID_SOMETHING)
					return;
				continue;
			}

			/* who has spoken is answered first */
			if (end_wanted && look_at_client() < SHARED_SERVER_SAID_SOMETHING)
				end_drained();
		}
		if (session >= 0 && spoken && hear_client())
			return;
	}
}

/*
 * The session is idle outside a transaction, and the client knows.
 */
static void
shared_server_idle(void)
{
	MemoryContext old;
	bool		first = !registered;

	if (prev_session_idle_hook)
		prev_session_idle_hook();
	if (control < 0)
		return;

	if (first)
	{
		if (native)
		{
			become_native();
			return;
		}
		registered = true;
		become_worker();
		register_worker();
	}

	/*
	 * What could not be written to the client ends this process, as natively:
	 * else it would end when it serves the next.
	 */
	if (ClientConnectionLost)
		CHECK_FOR_INTERRUPTS();
	if (end_wanted)
		end_drained();

	/* Bytes that have been read belong to this session */
	if (pq_buffer_remaining_data() > 0)
		return;

	shared_server_between = true;
	old = MemoryContextSwitchTo(idle_context);
	idle_since = GetCurrentTimestamp();
	if (session >= 0 && !first)
	{
		shared_server->sessions[session].transactions++;
		served_transactions++;
	}
	if (shared_server_force_migrate && session >= 0)
		yield_wanted = true;
	serve_until_spoken();
	fresh = false;
	MemoryContextSwitchTo(old);
	shared_server_between = false;
}

void
shared_server_worker_init(void)
{
	prev_adopt_connection_hook = adopt_connection_hook;
	adopt_connection_hook = shared_server_adopt;
	session_settings_hook = shared_server_session_settings;
	prev_session_idle_hook = session_idle_hook;
	session_idle_hook = shared_server_idle;
	prev_cancel_key_hook = cancel_key_hook;
	cancel_key_hook = shared_server_cancel_key;
}
