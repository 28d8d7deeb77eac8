/*-------------------------------------------------------------------------
 *
 * dispatcher.c
 *	  Who accepts clients and says which worker serves which session.
 *
 * The dispatcher holds the socket of every session and the image of those that
 * are parked.  It reads nothing of a client: it looks whether there is
 * something to read.  The data go between client and worker directly.
 *
 * A session is parked only when somebody needs its worker.  So with no more
 * clients than workers the dispatcher has nothing to do after the login.
 *
 * There may be several: each has a range of the slots, and its own workers and
 * relay.  The first also accepts for the others (handover.c); how many workers
 * each may have is agreed on in shared memory (places.c).
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/dispatcher.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/hashfn.h"
#include "common/string.h"
#include "lib/ilist.h"
#include "libpq/libpq.h"
#include "libpq/pqsignal.h"
#include "libpq/protocol.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "postmaster/postmaster.h"
#include "shared_server.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/waiteventset.h"
#include "tcop/session_state.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"
#include "utils/wait_event.h"

/* More logins at the same time would only wait for each other */
#define LOGINS_MAX 64

/* After a worker could not be started */
#define SPAWN_PAUSE_MS 200

/* Pools take turns of this length when there are more of them than workers */
#define TURN_MS 100

/* Growth beyond the cap is taken back when this much time has passed since */
#define GROWN_MS 1000

/* The views show pools and workers as they were at most this long ago */
#define PUBLISH_MS 20

/* A relay that has ended is replaced, but not more often than this */
#define RELAY_PAUSE_MS 1000

/* Without a relay, for how long TLS clients wait for one before they are native */
#define RELAY_WAIT_MS 5000

/* A relay is asked so often whether it does anything */
#define RELAY_ALIVE_MS 1000

/* How soon a dispatcher goes to the one that listens, when that begins */
#define JOIN_PAUSE_MS 100

/* The others are told again after so long that a pool here waits */
#define NEED_MS 10

/* Files of the dispatcher that are neither clients nor workers */
#define OTHER_FILES 64

/* As many workers of each pool take turns when every transaction migrates */
#define FORCED_WORKERS 3

/* What the stock code says to whom an administrator ends */
#define ADMIN_COMMAND "terminating connection due to administrator command"

/* Who waits is passed over so often, and by those who have waited as long */
#define OVERTAKES_MAX 100
#define OVERTAKES_MS 50

/* Of what a worker says, in bytes */
#define READ_AT_ONCE 8192

#define LISTEN_MAX 16
#define EVENTS_MAX 128

typedef struct Pool
{
	dlist_node	link;
	StringInfoData key;
	StringInfoData resume;		/* what makes a worker of it */
	Oid			database;
	dlist_head	free;			/* workers, the last used first */
	dclist_head waiting;		/* sessions, the longest first */
	int			workers;		/* free, bound or starting */
	int			starting;
	int			sessions;
	uint32		number;			/* by which the views know it */
	uint64		key_hash;
	TimestampTz next_spawn;
	uint64		binds;
	uint64		waits;
	uint64		wait_us;
	uint64		transactions;	/* of sessions that have ended */
} Pool;

typedef enum WorkerState
{
	WORKER_NONE = 0,
	WORKER_HELLO,				/* asked for, has not answered */
	WORKER_LOGIN,				/* has the client, authenticates it */
	WORKER_STARTING,			/* without a client */
	WORKER_BOUND,
	WORKER_FREE,
	WORKER_QUITTING,
} WorkerState;

typedef struct Worker
{
	WorkerState state;
	int			sock;
	Pool	   *pool;
	int			session;
	bool		asked;			/* to yield */
	bool		told;			/* anything since it was given its session */
	bool		pinned;			/* has answered that it cannot */
	bool		worn;			/* is given no other session */
	dlist_node	link;			/* in its pool's list of free workers */
	TimestampTz since;			/* what it does now */
	TimestampTz begun;
	StringInfoData input;
} Worker;

typedef struct Session
{
	int			sock;
	Pool	   *pool;
	int			worker;			/* or -1 */
	int			last_worker;	/* who has its statements, or -1 */
	TimestampTz last_begun;		/* since when that is this one */
	int			passed_over;	/* by how many, while it waits */
	dlist_node	link;			/* in its pool's list, or that of logins */
	TimestampTz since;
	char	   *identity;
	int			identity_length;
	char	   *image;
	int			image_length;
	SharedServerAddresses *relayed; /* the relay ends its TLS; or NULL */
	bool		part_said;		/* its socket waits for the rest of a message */
	bool		silent;			/* has not said who it is, and has no backend */
	bool		draining;		/* ends as soon as its worker lets go of it */
} Session;

/* What an event is about: the kind above the number */
#define EVENT_LISTEN	((uint64) 1 << 32)
#define EVENT_WORKER	((uint64) 2 << 32)
#define EVENT_SESSION	((uint64) 3 << 32)
#define EVENT_KEEPER	((uint64) 4 << 32)
#define EVENT_RELAY		((uint64) 5 << 32)
#define EVENT_GATHERING	((uint64) 6 << 32)
#define EVENT_PEER		((uint64) 7 << 32)
#define EVENT_LISTENER	((uint64) 8 << 32)
#define EVENT_SPARE		((uint64) 9 << 32)

static int	epoll_fd = -1;
static Worker *workers;
static int	workers_max;
static int	workers_used = 0;	/* all beyond are WORKER_NONE */
static Session *sessions;
static int	sessions_begin;		/* ours of all */
static int	sessions_end;
static int *free_sessions;
static int	free_sessions_count;
static dlist_head pools = DLIST_STATIC_INIT(pools);
static dlist_head logins_waiting = DLIST_STATIC_INIT(logins_waiting);
static dlist_head logins_silent = DLIST_STATIC_INIT(logins_silent);
static dlist_head relay_waiting = DLIST_STATIC_INIT(relay_waiting);
static int	logins = 0;
static int	listen_count = 0;
static pgsocket listen_sockets[LISTEN_MAX];

/* When to accept again, after there was no room for another socket; or 0 */
static TimestampTz accept_again = 0;

/* Where other dispatchers come; or the one that listens, and when to go there */
static int	gathering = -1;
static int	listener = -1;
static TimestampTz next_join = 0;

/* When the others were last told that a pool here waits */
static TimestampTz need_told = 0;

/* Who forks relays, and who forks another when it has ended; the relay that takes clients now; and whether it can */
static int	keeper = -1;
static int	spare_keeper = -1;
static TimestampTz next_keeper = 0;
static bool keeper_ended = false;
static int	relay = -1;
static bool relay_ready = false;
static bool relay_unable = false;
static bool relay_outdated = false; /* settings have changed */
static TimestampTz next_relay = 0;
static TimestampTz relay_missed = 0;

/* When to ask the relay whether it does anything, and whether it has been */
static TimestampTz next_alive = 0;
static bool alive_asked = false;

/* When to look for sessions whose idle_session_timeout has passed */
static TimestampTz next_idle_timeout = DT_NOEND;

static void schedule_all(void);

static int
workers_wanted(void)
{
	int			max = shared_server_backend_max_count;

	if (max == 0 || max == -1)
		max = MaxConnections;
	else if (max < 0)
		max = MaxConnections / -max;
	return Max(1, max);
}

/* Are there other dispatchers? */
static bool
is_one_of_many(void)
{
	return shared_server_dispatcher_count > 1;
}

static void
set_state(int number, SharedServerState state)
{
	SharedServerSession *slot = &shared_server->sessions[number];

	LWLockAcquire(shared_server->lock, LW_EXCLUSIVE);
	slot->state = state;
	slot->state_time = GetCurrentTimestamp();
	LWLockRelease(shared_server->lock);
}

static void
set_pinned(int number, const char *reason)
{
	SharedServerSession *slot = &shared_server->sessions[number];

	LWLockAcquire(shared_server->lock, LW_EXCLUSIVE);
	strlcpy(slot->pinned, reason, sizeof(slot->pinned));
	LWLockRelease(shared_server->lock);
}

/*
 * What is there to read would, unread, take back what is under way to the
 * client.
 */
static void
drain(int sock)
{
	for (int i = 0; i < 16; i++)
	{
		if (recv(sock, NULL, 1024 * 1024, MSG_TRUNC | MSG_DONTWAIT) <= 0)
			break;
	}
}

/*
 * A request to cancel that came when the worker of a session had just let go of
 * it was for a command that has been answered.
 */
static void
forget_cancel(int number)
{
	SharedServerSession *slot = &shared_server->sessions[number];

	SpinLockAcquire(&slot->mutex);
	slot->cancelled = false;
	SpinLockRelease(&slot->mutex);
}

/* When a session that is parked ends because its client is silent */
static TimestampTz
idle_timeout_of(int number)
{
	SharedServerSession *slot = &shared_server->sessions[number];

	return slot->idle_timeout > 0 ?
		TimestampTzPlusMilliseconds(slot->idle_since, slot->idle_timeout) : DT_NOEND;
}

/*
 * The last words to a client that nobody serves, in the protocol's form, with a
 * detail unless that is NULL.  What does not fit into its socket is lost.
 */
static void
say_fatal(int sock, const char *sqlstate, const char *message, const char *detail)
{
	StringInfoData text;
	uint32		length;

	initStringInfo(&text);
	appendStringInfoChar(&text, PqMsg_ErrorResponse);
	appendBinaryStringInfo(&text, "\0\0\0\0", 4);
	appendStringInfo(&text, "SFATAL%cVFATAL%cC%s%cM%s%c", 0, 0, sqlstate, 0, message, 0);
	if (detail)
		appendStringInfo(&text, "D%s%c", detail, 0);
	appendStringInfoChar(&text, '\0');
	length = pg_hton32((uint32) text.len - 1);
	memcpy(text.data + 1, &length, sizeof(length));
	(void) send(sock, text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	pfree(text.data);
	(void) shutdown(sock, SHUT_WR);
	drain(sock);
}

static void
close_session(int number)
{
	Session    *session = &sessions[number];
	SharedServerSession *slot = &shared_server->sessions[number];

	/* a duplicate in a worker would keep the registration alive */
	(void) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, session->sock, NULL);
	close(session->sock);
	session->sock = -1;
	session->worker = -1;
	session->part_said = session->silent = session->draining = false;
	if (session->pool)
	{
		session->pool->sessions--;
		session->pool->transactions += slot->transactions;
	}
	session->pool = NULL;
	if (session->identity)
		pfree(session->identity);
	if (session->image)
		pfree(session->image);
	if (session->relayed)
		pfree(session->relayed);
	session->identity = session->image = NULL;
	session->relayed = NULL;

	SpinLockAcquire(&slot->mutex);
	slot->pid = 0;
	slot->key_length = 0;
	slot->worker_pid = 0;
	slot->ending = slot->cancelled = false;
	pg_atomic_fetch_sub_u64(&shared_server->image_memory, slot->memory);
	slot->memory = 0;
	SpinLockRelease(&slot->mutex);
	LWLockAcquire(shared_server->lock, LW_EXCLUSIVE);
	shared_server_self->transactions += slot->transactions;
	slot->transactions = 0;
	LWLockRelease(shared_server->lock);
	set_state(number, SHARED_SERVER_FREE);
	free_sessions[free_sessions_count++] = number;
	shared_server_self->clients--;
}

/*
 * End a session that nobody serves.
 */
static void
end_session(int number, const char *sqlstate, const char *message, const char *detail)
{
	say_fatal(sessions[number].sock, sqlstate, message, detail);
	close_session(number);
}

static void
end_waiting(int number, const char *sqlstate, const char *message, const char *detail)
{
	if (sessions[number].pool)
		dclist_delete_from(&sessions[number].pool->waiting, &sessions[number].link);
	else
		dlist_delete(&sessions[number].link);
	end_session(number, sqlstate, message, detail);
}

/*
 * Wait for the client of a parked session to say something.
 */
static void
watch_session(int number)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT};

	event.data.u64 = EVENT_SESSION | number;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, sessions[number].sock, &event) < 0)
		elog(LOG, "could not watch a client: %m");
}

/*
 * Where the postmaster has a Unix socket, or NULL.  Abstract ones are nobody's
 * directory.
 */
static char *
socket_directory(void)
{
	List	   *directories;
	char	   *raw = pstrdup(Unix_socket_directories);
	char	   *found = NULL;

	if (!SplitDirectoriesString(raw, ',', &directories))
		directories = NIL;
	foreach_ptr(char, directory, directories)
	{
		if (found == NULL && directory[0] != '@')
			found = pstrdup(directory);
	}
	list_free_deep(directories);
	pfree(raw);
	return found;
}

/*
 * Ask the postmaster for a backend: for a client that logs in, or for a pool,
 * whose place has been taken.  Returns false if it has no room for the
 * connection now.
 */
static bool
start_worker(int session, Pool *pool)
{
	struct
	{
		uint32		length;
		uint32		code;
		SharedServerAdopt adopt;
	}			packet;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char	   *directory = socket_directory();
	struct epoll_event event = {.events = EPOLLIN};
	uid_t		uid;
	gid_t		gid;
	int			number;
	int			sock;

	for (number = 0; number < workers_max; number++)
	{
		if (workers[number].state == WORKER_NONE)
			break;
	}
	if (directory)
	{
		snprintf(address.sun_path, sizeof(address.sun_path), "%s/.s.PGSQL.%d",
				 directory, PostPortNumber);
		pfree(directory);
	}
	if (number == workers_max || address.sun_path[0] == '\0')
		return false;

	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (sock < 0 || connect(sock, (struct sockaddr *) &address, sizeof(address)) < 0 ||
		getpeereid(sock, &uid, &gid) != 0 || uid != geteuid())
	{
		if (sock >= 0)
			close(sock);
		return false;
	}

	packet.length = pg_hton32(sizeof(packet));
	packet.code = pg_hton32(ADOPT_CONNECTION_CODE);
	memcpy(packet.adopt.token, shared_server_self->token, SHARED_SERVER_TOKEN_LENGTH);
	packet.adopt.dispatcher = shared_server_self - shared_server_dispatchers;
	packet.adopt.session = session;
	packet.adopt.resume = session < 0;
	event.data.u64 = EVENT_WORKER | number;
	if (send(sock, &packet, sizeof(packet), MSG_NOSIGNAL) != sizeof(packet) ||
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, sock, &event) < 0)
	{
		close(sock);
		return false;
	}

	workers_used = Max(workers_used, number + 1);
	workers[number].state = WORKER_HELLO;
	workers[number].sock = sock;
	workers[number].pool = pool;
	workers[number].session = session;
	workers[number].asked = workers[number].told = false;
	workers[number].pinned = workers[number].worn = false;
	workers[number].since = workers[number].begun = GetCurrentTimestamp();
	resetStringInfo(&workers[number].input);
	if (session >= 0)
	{
		sessions[session].worker = number;
		logins++;
	}
	else
	{
		pool->workers++;
		pool->starting++;
		shared_server_self->starting++;
		shared_server_self->spawns++;
	}
	return true;
}

/*
 * Start one for a pool.
 */
static bool
start_pooled_worker(Pool *pool)
{
	if (start_worker(-1, pool))
		return true;
	shared_server_self->workers--;
	return false;
}

static void
leave_starting(Worker *worker)
{
	if (worker->state != WORKER_HELLO && worker->state != WORKER_LOGIN &&
		worker->state != WORKER_STARTING)
		return;
	if (worker->session >= 0)
		logins--;
	else
	{
		worker->pool->starting--;
		shared_server_self->starting--;
	}
}

/*
 * A worker has ended, or must not be used any more.
 */
static void
close_worker(int number)
{
	Worker	   *worker = &workers[number];
	Pool	   *pool = worker->pool;

	(void) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, worker->sock, NULL);
	close(worker->sock);
	leave_starting(worker);
	if (worker->state == WORKER_FREE)
		dlist_delete(&worker->link);
	if (pool)
	{
		pool->workers--;
		shared_server_self->workers--;
		if (worker->state == WORKER_QUITTING)
			shared_server_self->quitting--;
		if (is_one_of_many())
			shared_server_wake_others(true);
		if (worker->state == WORKER_HELLO || worker->state == WORKER_STARTING)
			pool->next_spawn = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), SPAWN_PAUSE_MS);
	}

	/*
	 * its session has ended with it; what there was to say the worker has
	 * said
	 */
	if (worker->session >= 0)
		close_session(worker->session);
	worker->state = WORKER_NONE;
	worker->pool = NULL;
	worker->session = -1;
	worker->sock = -1;
	while (workers_used > 0 && workers[workers_used - 1].state == WORKER_NONE)
		workers_used--;
	schedule_all();
}

/*
 * Have a free worker end, which has been promised.
 */
static void
quit_promised(int number)
{
	Worker	   *worker = &workers[number];

	Assert(worker->state == WORKER_FREE);
	dlist_delete(&worker->link);
	worker->state = WORKER_QUITTING;
	(void) shared_server_send(worker->sock, SHARED_SERVER_QUIT, -1, NULL, 0, -1);
}

static void
quit_worker(int number)
{
	shared_server_self->quitting++;
	quit_promised(number);
}

static void
ask_to_yield(int number)
{
	Worker	   *worker = &workers[number];

	if (worker->state != WORKER_BOUND || worker->asked)
		return;
	worker->asked = worker->told = true;
	(void) shared_server_send(worker->sock, SHARED_SERVER_YIELD, worker->session, NULL, 0, -1);
}

/*
 * A worker has not taken the session that it was given: the client has lost
 * nothing, and waits on.
 */
static void
wait_again(int number)
{
	int			session = workers[number].session;

	workers[number].session = -1;
	sessions[session].worker = -1;
	set_state(session, SHARED_SERVER_WAITING);
	if (shared_server->sessions[session].ending)
		pg_atomic_write_u32(&shared_server_self->ending, 1);
	dclist_push_head(&sessions[session].pool->waiting, &sessions[session].link);
}

static int
wait_bucket(int64 us)
{
	return us < 2 ? 0 : Min(pg_leftmost_one_pos64(us), SHARED_SERVER_WAIT_BUCKETS - 1);
}

/*
 * Do as many sessions of the pool wait as it has workers?
 */
static bool
all_are_wanted(Pool *pool)
{
	int			count = (int) dclist_count(&pool->waiting);

	return count > 0 && count >= pool->workers;
}

/*
 * Give a waiting session to a free worker of its pool.
 */
static void
bind_session(int session_number, int worker_number)
{
	Session    *session = &sessions[session_number];
	Worker	   *worker = &workers[worker_number];
	SharedServerSession *slot = &shared_server->sessions[session_number];
	TimestampTz now = GetCurrentTimestamp();
	StringInfoData body;

	dclist_delete_from(&session->pool->waiting, &session->link);
	dlist_delete(&worker->link);
	worker->state = WORKER_BOUND;
	worker->session = session_number;
	worker->told = worker->pinned = false;
	worker->since = now;

	/* what it would be told next is said at once */
	worker->asked = all_are_wanted(session->pool);
	initStringInfo(&body);
	shared_server_append_int(&body, worker->asked);
	shared_server_append_int(&body, session->identity_length);
	appendBinaryStringInfo(&body, session->identity, session->identity_length);
	shared_server_append_int(&body, session->image_length);
	appendBinaryStringInfo(&body, session->image, session->image_length);
	session->worker = session->last_worker = worker_number;
	session->last_begun = worker->begun;
	shared_server_self->last_bind = now;
	session->pool->binds++;
	session->pool->wait_us += now - session->since;

	LWLockAcquire(shared_server->lock, LW_EXCLUSIVE);
	slot->state = SHARED_SERVER_BOUND;
	slot->state_time = now;
	slot->idle = false;
	slot->binds++;
	slot->wait_us += slot->last_wait_us = now - session->since;
	shared_server_self->binds++;
	shared_server_self->waits[wait_bucket(now - session->since)]++;
	LWLockRelease(shared_server->lock);

	if (!shared_server_send(worker->sock, SHARED_SERVER_BIND, session_number,
							body.data, body.len, session->sock))
	{
		/* it does not listen */
		wait_again(worker_number);
		elog(LOG, "could not reach a worker: %m");
		close_worker(worker_number);
	}
	pfree(body.data);
}

static TimestampTz
waiting_since(Pool *pool)
{
	return dclist_head_element(Session, link, &pool->waiting)->since;
}

/*
 * Whom to give a free worker: who waits longest, or somebody who has waited for
 * nearly as long and was there before, since the worker has kept statements.
 */
static Session *
next_waiting(Pool *pool, Worker *worker)
{
	Session    *first = dclist_head_element(Session, link, &pool->waiting);
	int			looked_at = 0;
	dlist_iter	iter;

	if (shared_server_force_migrate || first->passed_over >= OVERTAKES_MAX)
		return first;
	dclist_foreach(iter, &pool->waiting)
	{
		Session    *session = dlist_container(Session, link, iter.cur);

		if (++looked_at > OVERTAKES_MAX ||
			TimestampDifferenceExceeds(first->since, session->since, OVERTAKES_MS))
			break;
		if (session->last_worker == worker - workers && session->last_begun == worker->begun)
		{
			first->passed_over += session != first;
			return session;
		}
	}
	return first;
}

/*
 * Give the free workers of a pool to its sessions.
 */
static void
schedule(Pool *pool)
{
	while (!dclist_is_empty(&pool->waiting) && !dlist_is_empty(&pool->free))
	{
		Worker	   *worker = shared_server_force_migrate ?
			dlist_tail_element(Worker, link, &pool->free) :
			dlist_head_element(Worker, link, &pool->free);

		bind_session(next_waiting(pool, worker) - sessions, worker - workers);
	}
	if (shared_server_force_migrate && pool->workers < FORCED_WORKERS &&
		pool->workers > 0 && pool->starting == 0 && GetCurrentTimestamp() >= pool->next_spawn &&
		shared_server_take_place(workers_wanted(), NULL, 0))
		(void) start_pooled_worker(pool);
}

/*
 * As many workers as each pool that has any, or waits for one, may have while
 * others wait.  A login that has sessions at several dispatchers has as many
 * pools.
 */
static int
fair_share(void)
{
	int			count = shared_server_other_pools();
	dlist_iter	iter;

	dlist_foreach(iter, &pools)
	{
		Pool	   *pool = dlist_container(Pool, link, iter.cur);

		count += pool->workers > 0 || !dclist_is_empty(&pool->waiting);
	}
	return Max(1, workers_wanted() / Max(1, count));
}

/* Is a worker to be started for this pool, if there is room? */
static bool
wants_worker(Pool *pool, TimestampTz now)
{
	return !dclist_is_empty(&pool->waiting) && pool->starting == 0 && now >= pool->next_spawn;
}

/*
 * The pool whose turn it is: with the fewest workers, then the longest wait.
 */
static Pool *
neediest_pool(TimestampTz now)
{
	Pool	   *best = NULL;
	dlist_iter	iter;

	dlist_foreach(iter, &pools)
	{
		Pool	   *pool = dlist_container(Pool, link, iter.cur);

		if (wants_worker(pool, now) &&
			(best == NULL || pool->workers < best->workers ||
			 (pool->workers == best->workers && waiting_since(pool) < waiting_since(best))))
			best = pool;
	}
	return best;
}

static SharedServerNeed
need_of(Pool *pool)
{
	SharedServerNeed need = {.pools = 1,.workers = pool->workers,.since = waiting_since(pool)};

	return need;
}

/*
 * May a pool that waits, here or at another dispatcher, have the place of this
 * worker of another pool?  One that nobody of its own pool has needed for a
 * while, yes.  Else a pool that has more than its share gives it to one with
 * less.  Where each has one, or none, they take turns: without a minimal length
 * of these, all would be spent on starting backends.
 */
static bool
may_take_for(const SharedServerNeed *need, Worker *worker, int share, TimestampTz now)
{
	bool		impatient;

	if (worker->pool == NULL)
		return false;
	impatient = TimestampDifferenceExceeds(need->since, now, TURN_MS);
	if (dclist_is_empty(&worker->pool->waiting) &&
		TimestampDifferenceExceeds(worker->since, now, TURN_MS) &&
		(worker->state == WORKER_FREE ||
		 (impatient && worker->state == WORKER_BOUND &&
		  shared_server->sessions[worker->session].idle)))
		return true;
	if (need->workers >= share)
		return false;
	return worker->pool->workers > share ||
		(need->workers == 0 && impatient &&
		 TimestampDifferenceExceeds(worker->begun, now, TURN_MS));
}

static bool
may_take(Pool *pool, Worker *worker, int share, TimestampTz now)
{
	SharedServerNeed need = need_of(pool);

	return worker->pool != pool && may_take_for(&need, worker, share, now);
}

static int
count_quitting(Pool *pool)
{
	int			count = 0;

	for (int i = 0; i < workers_used; i++)
		count += workers[i].state == WORKER_QUITTING && workers[i].pool == pool;
	return count;
}

/*
 * Does no worker work?  Each waits for its client, in a transaction or pinned,
 * or for a lock that one of them holds; and clients may do nothing before one
 * that waits has been served.
 */
static bool
is_stuck(TimestampTz now)
{
	for (int i = 0; i < workers_used; i++)
	{
		PGPROC	   *proc;

		/* a login waits for nobody's transaction */
		if (workers[i].pool == NULL)
			continue;
		if (workers[i].state != WORKER_BOUND)
			return false;
		proc = BackendPidGetProc(shared_server->sessions[workers[i].session].worker_pid);
		if (proc == NULL || !shared_server_waits(proc))
			return false;
	}
	return shared_server_others_stuck(now);
}

/*
 * How many workers there may be now.
 */
static int
workers_limit(Pool *pool, TimestampTz now)
{
	int			limit = workers_wanted();
	int			most;
	int			pause = shared_server_stall_limit;

	if (!TimestampDifferenceExceeds(waiting_since(pool), now, shared_server_stall_limit))
		return limit;

	/* nobody has got a worker for too long */
	limit += shared_server_reserved_workers;

	/* who was stuck a moment ago may need many more */
	if (!TimestampDifferenceExceeds(shared_server_last_growth(), now, GROWN_MS))
		pause = Max(1, pause / 8);
	if (shared_server_all_workers() < limit ||
		!TimestampDifferenceExceeds(shared_server_last_bind(), now, pause) ||
		!is_stuck(now))
		return limit;

	/* a quarter stays for logins, and for who comes by the other port */
	most = (MaxConnections - SuperuserReservedConnections - ReservedConnections) * 3 / 4;
	if (shared_server_all_workers() < most)
		shared_server_self->last_growth = now;
	return Max(limit, most);
}

/*
 * Give the place of a free worker to a pool that waits: "pool", or, if that is
 * NULL, one of another dispatcher.
 */
static void
give_up_place(Pool *pool, const SharedServerNeed *need, int share, TimestampTz now)
{
	int			oldest = -1;

	for (int i = 0; i < workers_used; i++)
	{
		if (workers[i].state == WORKER_FREE && workers[i].pool != pool &&
			may_take_for(need, &workers[i], share, now) &&
			(oldest < 0 || workers[i].since < workers[oldest].since))
			oldest = i;
	}

	/* unless a place is free soon */
	if (oldest >= 0 && shared_server_leave_only_place(now))
		quit_promised(oldest);
}

/*
 * Tell the other dispatchers what our pools lack.
 */
static void
publish_need(TimestampTz now)
{
	SharedServerNeed need = {0};
	int			active = 0;
	dlist_iter	iter;

	dlist_foreach(iter, &pools)
	{
		Pool	   *pool = dlist_container(Pool, link, iter.cur);

		active += pool->workers > 0 || !dclist_is_empty(&pool->waiting);
		need.pools += wants_worker(pool, now);
	}
	if (need.pools > 0)
	{
		int			count = need.pools;

		need = need_of(neediest_pool(now));
		need.pools = count;
	}
	LWLockAcquire(shared_server->lock, LW_EXCLUSIVE);
	shared_server_self->active_pools = active;
	shared_server_self->need = need;
	LWLockRelease(shared_server->lock);
	if (need.pools == 0 || !TimestampDifferenceExceeds(need_told, now, NEED_MS))
		return;
	need_told = now;
	shared_server_wake_others(false);
}

/*
 * Others' pools that wait may have places of ours.  Who is idle between
 * transactions leaves first, if there are not enough of them whoever ends one.
 */
static void
serve_others(TimestampTz now, int share)
{
	SharedServerNeed need;
	int			wanted = shared_server_other_needs(now, &need);

	if (wanted == 0 || shared_server_all_workers() < workers_wanted())
		return;
	give_up_place(NULL, &need, share, now);
	for (int busy = 0; busy <= 1 && wanted > 0; busy++)
	{
		for (int i = 0; i < workers_used && wanted > 0; i++)
		{
			if (workers[i].state != WORKER_BOUND || workers[i].asked ||
				shared_server->sessions[workers[i].session].idle == busy ||
				!may_take_for(&need, &workers[i], share, now))
				continue;
			ask_to_yield(i);
			wanted--;
		}
	}
}

/*
 * Workers for those pools in which nobody is free: new ones, or somebody's
 * place.
 */
static void
distribute(void)
{
	TimestampTz now = GetCurrentTimestamp();
	int			share = fair_share();
	Pool	   *pool;
	dlist_iter	iter;

	while ((pool = neediest_pool(now)) != NULL)
	{
		SharedServerNeed need = need_of(pool);

		if (!shared_server_take_place(workers_limit(pool, now), &need, now))
		{
			give_up_place(pool, &need, share, now);
			break;
		}
		if (!start_pooled_worker(pool))
			pool->next_spawn = TimestampTzPlusMilliseconds(now, SPAWN_PAUSE_MS);
	}

	/*
	 * Who is idle between transactions may let another in: as many as wait.
	 * If there are not enough of them, whoever ends a transaction first.
	 */
	dlist_foreach(iter, &pools)
	{
		int			wanted;
		bool		outside;

		pool = dlist_container(Pool, link, iter.cur);
		wanted = Min((int) dclist_count(&pool->waiting), workers_used);
		if (wanted == 0)
			continue;
		outside = shared_server_all_workers() >= workers_wanted() && pool->starting == 0;
		for (int i = 0; i < workers_used; i++)
		{
			if (workers[i].state == WORKER_BOUND && workers[i].pool == pool && workers[i].asked &&
				shared_server->sessions[workers[i].session].idle && !workers[i].pinned)
				wanted--;
		}
		for (int busy = 0; busy <= 1 && wanted > 0; busy++)
		{
			for (int i = 0; i < workers_used && wanted > 0; i++)
			{
				if (workers[i].state != WORKER_BOUND || workers[i].asked ||
					shared_server->sessions[workers[i].session].idle == busy ||
					(workers[i].pool != pool && !(outside && may_take(pool, &workers[i], share, now))))
					continue;
				ask_to_yield(i);
				if (!busy)
					wanted--;
			}
		}
	}

	if (is_one_of_many())
	{
		serve_others(now, share);
		publish_need(now);
	}
}

static void
schedule_all(void)
{
	static bool running = false;
	static bool again = false;
	TimestampTz now;
	int			excess;
	dlist_iter	iter;

	/* called by what scheduling does */
	if (running)
	{
		again = true;
		return;
	}
	running = true;
	do
	{
		again = false;
		dlist_foreach(iter, &pools)
			schedule(dlist_container(Pool, link, iter.cur));
		distribute();
	} while (again);
	running = false;

	/* Logins come on top of the workers; too many must not stay */
	if (shared_server_all_workers() <= workers_wanted())
		return;
	now = GetCurrentTimestamp();
	excess = shared_server_all_workers() - shared_server_all_quitting(now) - workers_wanted();
	for (int i = 0; i < workers_used && excess > 0; i++)
	{
		if (workers[i].state != WORKER_FREE || !dclist_is_empty(&workers[i].pool->waiting))
			continue;
		if (!shared_server_leave_place(workers_wanted(), now))
			break;
		quit_promised(i);
		excess--;
	}
	for (int busy = 0; busy <= 1 && excess > 0; busy++)
	{
		for (int i = 0; i < workers_used && excess > 0; i++)
		{
			if (workers[i].state != WORKER_BOUND || workers[i].pinned ||
				shared_server->sessions[workers[i].session].idle == busy)
				continue;
			ask_to_yield(i);
			excess--;
		}
	}
}

/*
 * Is a worker that has let go of its session to make room, although others of
 * its pool wait?
 */
static bool
is_due_elsewhere(Worker *worker)
{
	TimestampTz now = GetCurrentTimestamp();
	int			share = fair_share();
	int			wanted = workers_wanted();
	int			needed = 0;
	int			leaving = shared_server_all_quitting(now);
	int			staying = shared_server_all_workers() - leaving;
	SharedServerNeed need;
	dlist_iter	iter;

	/* what was started because nobody went on */
	if (staying > wanted + shared_server_reserved_workers &&
		TimestampDifferenceExceeds(shared_server_last_growth(), now, GROWN_MS))
		return true;
	if (staying < wanted)
		return false;
	dlist_foreach(iter, &pools)
	{
		Pool	   *pool = dlist_container(Pool, link, iter.cur);

		needed += wants_worker(pool, now) && may_take(pool, worker, share, now);
	}
	if (is_one_of_many())
	{
		int			others = shared_server_other_needs(now, &need);

		if (others > 0 && may_take_for(&need, worker, share, now))
			needed += others;
	}
	return needed > leaving;
}

static void
release_worker(int number)
{
	Worker	   *worker = &workers[number];

	worker->state = WORKER_FREE;
	worker->session = -1;
	worker->asked = worker->pinned = false;
	worker->since = GetCurrentTimestamp();
	dlist_push_head(&worker->pool->free, &worker->link);
	if (worker->worn || is_due_elsewhere(worker))
		quit_worker(number);
	schedule_all();
	if (worker->state == WORKER_FREE && shared_server_all_workers() > workers_wanted() &&
		shared_server_leave_place(workers_wanted(), GetCurrentTimestamp()))
		quit_promised(number);
}

static Pool *
find_pool(const char *key, int key_length, const char *resume, int resume_length)
{
	static uint32 pools_made = 0;
	Pool	   *pool;
	dlist_iter	iter;

	dlist_foreach(iter, &pools)
	{
		pool = dlist_container(Pool, link, iter.cur);
		if (pool->key.len == key_length && memcmp(pool->key.data, key, key_length) == 0)
			return pool;
	}
	pool = palloc0_object(Pool);
	pool->number = ++pools_made;
	pool->key_hash = hash_bytes_extended((const unsigned char *) key, key_length, 0);
	initStringInfo(&pool->key);
	appendBinaryStringInfo(&pool->key, key, key_length);
	initStringInfo(&pool->resume);
	appendBinaryStringInfo(&pool->resume, resume, resume_length);
	dlist_init(&pool->free);
	dclist_init(&pool->waiting);
	dlist_push_tail(&pools, &pool->link);
	return pool;
}

static void
forget_empty_pools(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &pools)
	{
		Pool	   *pool = dlist_container(Pool, link, iter.cur);

		if (pool->workers > 0 || pool->sessions > 0)
			continue;
		dlist_delete(&pool->link);
		pfree(pool->key.data);
		pfree(pool->resume.data);
		pfree(pool);
	}
}

static const char *
get_part(StringInfo body, int *length)
{
	const char *part;

	*length = shared_server_get_int(body);
	part = body->data + body->cursor;
	if (*length < 0 || body->cursor + *length > body->len)
		elog(FATAL, "message of a worker ends too early");
	body->cursor += *length;
	return part;
}

static char *
copy_bytes(const char *bytes, int length)
{
	char	   *copy = palloc(length + 1);

	memcpy(copy, bytes, length);
	copy[length] = '\0';
	return copy;
}

/*
 * A client has logged in, in a backend that may be a worker from now on.
 */
static void
register_session(int worker_number, StringInfo body)
{
	Worker	   *worker = &workers[worker_number];
	Session    *session = &sessions[worker->session];
	SharedServerSession *slot = &shared_server->sessions[worker->session];
	const char *key,
			   *resume,
			   *identity;
	int			key_length,
				resume_length;
	StringInfoData names;
	const char *database;
	const char *user;
	Oid			database_oid;
	Oid			role;

	key = get_part(body, &key_length);
	resume = get_part(body, &resume_length);
	identity = get_part(body, &session->identity_length);
	session->identity = copy_bytes(identity, session->identity_length);
	session->pool = find_pool(key, key_length, resume, resume_length);
	session->pool->sessions++;
	session->last_worker = worker_number;
	session->last_begun = worker->begun;
	leave_starting(worker);
	worker->state = WORKER_BOUND;
	worker->pool = session->pool;
	worker->pool->workers++;
	shared_server_self->workers++;

	/* as in shared_server_append_key() */
	initReadOnlyStringInfo(&names, unconstify(char *, key), key_length);
	database = shared_server_get_string(&names);
	user = shared_server_get_string(&names);
	database_oid = shared_server_get_int(&names);
	role = shared_server_get_int(&names);
	LWLockAcquire(shared_server->lock, LW_EXCLUSIVE);
	slot->state = SHARED_SERVER_BOUND;
	slot->state_time = GetCurrentTimestamp();
	namestrcpy(&slot->database, database);
	namestrcpy(&slot->user, user);
	slot->pool = session->pool->number;
	slot->role = role;
	slot->database_oid = session->pool->database = database_oid;
	LWLockRelease(shared_server->lock);
	shared_server_self->logins++;
	schedule_all();

	/* there may be one too many, which another dispatcher can do without */
	if (is_one_of_many() && shared_server_all_workers() > workers_wanted())
		shared_server_wake_others(false);
}

/*
 * No worker can be started for these sessions any more, so that none of them
 * waits in vain.  Who is parked is told when it speaks.
 */
static void
end_pool(Pool *pool, const char *detail)
{
	while (!dclist_is_empty(&pool->waiting))
		end_waiting(dclist_head_element(Session, link, &pool->waiting) - sessions, "57P01",
					"terminating connection because its role or database has changed", detail);
}

/*
 * A worker was not let in.  Unless that may pass, nobody is to wait for another
 * try.
 */
static void
hear_refusal(Pool *pool, const char *response)
{
	static const char *const passing[] = {
		"08", "53", "57", "58", "40", "XX", /* connections, resources, ends,
											 * the system, conflicts, faults */
		"55P03", "55006",		/* locks, objects in use */
	};
	const char *sqlstate = "";
	const char *message = NULL;

	/* each field has a letter, and a zero at its end, as the whole has */
	for (const char *field = response; *field; field += strlen(field) + 1)
	{
		if (*field == PG_DIAG_SQLSTATE)
			sqlstate = field + 1;
		else if (*field == PG_DIAG_MESSAGE_PRIMARY)
			message = field + 1;
	}
	/* names in it are of the server's encoding, which a client may not know */
	if (message && !pg_is_ascii(message))
		message = NULL;
	for (int i = 0; i < lengthof(passing); i++)
	{
		if (strncmp(sqlstate, passing[i], strlen(passing[i])) == 0)
			return;
	}
	if (sqlstate[0] != '\0')
		end_pool(pool, message);
}

/*
 * A message of a worker.  Returns false if it makes no sense.
 */
static bool
serve_worker(int number, SharedServerHeader *header, StringInfo body)
{
	Worker	   *worker = &workers[number];
	int			session = worker->session;

	switch (header->kind)
	{
		case SHARED_SERVER_HELLO:
			if (worker->state != WORKER_HELLO)
				return false;
			if (session >= 0)
			{
				worker->state = WORKER_LOGIN;
				return shared_server_send(worker->sock, SHARED_SERVER_CLIENT, session,
										  sessions[session].relayed,
										  sessions[session].relayed ? sizeof(SharedServerAddresses) : 0,
										  sessions[session].sock);
			}
			worker->state = WORKER_STARTING;
			return shared_server_send(worker->sock, SHARED_SERVER_RESUME, -1,
									  worker->pool->resume.data, worker->pool->resume.len, -1);

		case SHARED_SERVER_REGISTER:
			if (worker->state != WORKER_LOGIN || session < 0)
				return false;
			register_session(number, body);
			return true;

		case SHARED_SERVER_READY:
			{
				int			length;
				const char *key = get_part(body, &length);

				if (worker->state != WORKER_STARTING)
					return false;
				/* the role, or the database, is not what it was */
				if (length != worker->pool->key.len ||
					memcmp(key, worker->pool->key.data, length) != 0)
				{
					StringInfoData names;

					initReadOnlyStringInfo(&names, worker->pool->key.data, worker->pool->key.len);
					ereport(LOG,
							(errmsg("a worker for database \"%s\" does not fit the sessions that wait for it",
									shared_server_get_string(&names))));
					end_pool(worker->pool, NULL);
					return false;
				}
				leave_starting(worker);
				release_worker(number);
				return true;
			}

		case SHARED_SERVER_REFUSED:
			if (worker->state != WORKER_STARTING || body->len < 2 ||
				body->data[body->len - 1] != '\0' || body->data[body->len - 2] != '\0')
				return false;
			hear_refusal(worker->pool, body->data);
			return true;

		case SHARED_SERVER_WORN:
			if (worker->state != WORKER_BOUND || header->session != session)
				return false;
			worker->worn = true;
			return true;

		case SHARED_SERVER_PARK:
			if (worker->state != WORKER_BOUND || header->session != session)
				return false;
			if (sessions[session].image)
				pfree(sessions[session].image);
			sessions[session].image = copy_bytes(body->data, body->len);
			sessions[session].image_length = body->len;
			sessions[session].worker = -1;
			sessions[session].since = GetCurrentTimestamp();
			forget_cancel(session);
			set_pinned(session, "");
			set_state(session, SHARED_SERVER_PARKED);
			next_idle_timeout = Min(next_idle_timeout, idle_timeout_of(session));
			shared_server_self->parks++;
			if (sessions[session].draining)
				end_session(session, "57P01", ADMIN_COMMAND, NULL);
			else
				watch_session(session);
			release_worker(number);
			return true;

		case SHARED_SERVER_PINNED:
			if (worker->state != WORKER_BOUND || header->session != session)
				return false;
			set_pinned(session, body->data);
			worker->pinned = body->len > 0;
			schedule_all();
			return true;

		case SHARED_SERVER_END:
			if (worker->state != WORKER_BOUND || header->session != session)
				return false;
			worker->session = -1;
			close_session(session);
			release_worker(number);
			return true;
	}
	return false;
}

static void
read_worker(int number)
{
	Worker	   *worker = &workers[number];
	ssize_t		received = 0;

	for (;;)
	{
		SharedServerHeader header;
		StringInfoData body;
		ssize_t		got;

		/* one message at a time: it may change whose worker this is */
		if (worker->input.len >= sizeof(header))
		{
			memcpy(&header, worker->input.data, sizeof(header));
			if (header.length > 4 * SHARED_SERVER_IMAGE_MAX)
			{
				close_worker(number);
				return;
			}
			if (worker->input.len >= sizeof(header) + header.length)
			{
				bool		good;

				initStringInfo(&body);
				appendBinaryStringInfo(&body, worker->input.data + sizeof(header), header.length);
				worker->input.len -= sizeof(header) + header.length;
				memmove(worker->input.data, worker->input.data + sizeof(header) + header.length,
						worker->input.len);
				good = serve_worker(number, &header, &body);
				pfree(body.data);
				if (worker->state == WORKER_NONE)
					return;
				if (!good)
				{
					close_worker(number);
					return;
				}
				continue;
			}
		}
		/* that was all; if not, we are woken again */
		if (received > 0 && received < READ_AT_ONCE)
			return;
		enlargeStringInfo(&worker->input, READ_AT_ONCE);
		got = received = shared_server_receive(worker->sock, worker->input.data + worker->input.len,
											   READ_AT_ONCE, NULL);
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (got <= 0)
		{
			/*
			 * A connection is reset when something is left unread: the
			 * session, if that was the last that we sent.
			 */
			if (got < 0 && errno == ECONNRESET && worker->state == WORKER_BOUND && !worker->told &&
				!sessions[worker->session].draining && sessions[worker->session].image)
				wait_again(number);
			close_worker(number);
			return;
		}
		worker->input.len += got;
		worker->input.data[worker->input.len] = '\0';
	}
}

/*
 * Are clients that ask for TLS to be shared?
 */
static bool
relay_wanted(void)
{
	return shared_server_share_tls && shared_server_enabled && EnableSSL && keeper >= 0;
}

/*
 * Clients that it has already go on without us.
 */
static void
leave_relay(void)
{
	if (relay < 0)
		return;
	(void) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, relay, NULL);
	close(relay);
	relay = -1;

	/* one that has never been of use does not count */
	if (relay_ready)
		relay_missed = GetCurrentTimestamp();
	relay_ready = relay_unable = alive_asked = false;
	pg_atomic_write_u64(&shared_server_self->relay_last_active, 0);
}

/*
 * Have a relay while one is wanted.
 */
static void
keep_relay(void)
{
	TimestampTz now = GetCurrentTimestamp();

	if (!relay_wanted())
	{
		leave_relay();
		relay_missed = now;
		return;
	}
	if (relay >= 0)
	{
		if (relay_outdated && shared_server_relay_send(relay, SHARED_SERVER_RELAY_RELOAD, NULL, 0))
			relay_outdated = false;
		if (!alive_asked && now >= next_alive)
			alive_asked = shared_server_relay_send(relay, SHARED_SERVER_RELAY_ALIVE, NULL, 0);
		return;
	}
	if (now < next_relay)
		return;
	next_relay = TimestampTzPlusMilliseconds(now, RELAY_PAUSE_MS);
	(void) shared_server_relay_send(keeper, SHARED_SERVER_RELAY_BEGIN, NULL, 0);
}

static void
watch_keeper(int sock, uint64 what)
{
	struct epoll_event event = {.events = EPOLLIN,.data.u64 = what};

	if (sock >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, sock, &event) < 0)
		elog(FATAL, "could not watch the keeper of the TLS relay: %m");
}

static void
leave_keeper(int *sock)
{
	(void) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, *sock, NULL);
	close(*sock);
	*sock = -1;
	keeper_ended = true;
}

/*
 * Have a second keeper while there is a first.
 */
static void
keep_keepers(void)
{
	TimestampTz now;

	if (keeper_ended && shared_server_bury_keepers())
		keeper_ended = false;
	if (keeper < 0 || spare_keeper >= 0)
		return;
	now = GetCurrentTimestamp();
	if (now < next_keeper)
		return;
	next_keeper = TimestampTzPlusMilliseconds(now, RELAY_PAUSE_MS);
	(void) shared_server_relay_send(keeper, SHARED_SERVER_RELAY_KEEPER, NULL, 0);
}

static void
read_keeper(void)
{
	int			files[SHARED_SERVER_RELAY_FILES];
	struct epoll_event event = {.events = EPOLLIN,.data.u64 = EVENT_RELAY};
	int			word = shared_server_relay_receive(keeper, files);

	if (word < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return;
	if (word == SHARED_SERVER_RELAY_KEEPER)
	{
		if (spare_keeper >= 0)
			leave_keeper(&spare_keeper);
		spare_keeper = files[0];
		watch_keeper(spare_keeper, EVENT_SPARE);
		return;
	}
	if (word != SHARED_SERVER_RELAY_BEGIN)
	{
		leave_keeper(&keeper);
		ereport(LOG,
				(errmsg("the keeper of the TLS relay has ended"),
				 spare_keeper >= 0 ? errdetail("Another takes its place.") :
				 errdetail("Sessions that use TLS are not shared until the dispatcher is started again.")));
		if (spare_keeper < 0)
			return;
		(void) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, spare_keeper, NULL);
		keeper = spare_keeper;
		spare_keeper = -1;
		watch_keeper(keeper, EVENT_KEEPER);
		return;
	}
	leave_relay();
	relay = files[0];
	if (relay >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, relay, &event) < 0)
		leave_relay();
}

static void
read_relay(void)
{
	int			files[SHARED_SERVER_RELAY_FILES];
	int			word = shared_server_relay_receive(relay, files);

	if (word == SHARED_SERVER_RELAY_READY || word == SHARED_SERVER_RELAY_UNABLE)
	{
		relay_ready = word == SHARED_SERVER_RELAY_READY;
		relay_unable = !relay_ready;
	}
	else if (word == SHARED_SERVER_RELAY_ALIVE)
	{
		TimestampTz now = GetCurrentTimestamp();

		pg_atomic_write_u64(&shared_server_self->relay_last_active, now);
		next_alive = TimestampTzPlusMilliseconds(now, RELAY_ALIVE_MS);
		alive_asked = false;
	}
	else if (word >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
		leave_relay();
}

/*
 * Give a client that wants TLS to the relay.  From then on the session's socket
 * is one end of a pair, on which the client's first word is what it says under
 * TLS.  Returns false if there is no room now.
 */
static bool
hand_to_relay(int number)
{
	Session    *session = &sessions[number];
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT};
	SharedServerAddresses from;
	int			pair[2];
	int			files[SHARED_SERVER_RELAY_FILES];

	memset(&from, 0, sizeof(from));
	from.raddr = shared_server->sessions[number].raddr;
	from.laddr.salen = sizeof(from.laddr.addr);
	if (getsockname(session->sock, (struct sockaddr *) &from.laddr.addr, &from.laddr.salen) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	files[0] = session->sock;
	files[1] = pair[1];
	event.data.u64 = EVENT_SESSION | number;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pair[0], &event) < 0 ||
		!shared_server_relay_send(relay, SHARED_SERVER_RELAY_CLIENT, files, 2))
	{
		close(pair[0]);
		close(pair[1]);
		return false;
	}
	(void) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, session->sock, NULL);
	close(session->sock);
	close(pair[1]);
	session->sock = pair[0];
	session->relayed = palloc_object(SharedServerAddresses);
	*session->relayed = from;
	return true;
}

/*
 * Clients that want TLS go to the relay, or, if there is none for too long, to
 * a backend of their own.
 */
static void
start_relayed(void)
{
	while (!dlist_is_empty(&relay_waiting))
	{
		Session    *session = dlist_head_element(Session, link, &relay_waiting);
		TimestampTz now = GetCurrentTimestamp();

		if (relay_wanted() && !relay_unable)
		{
			if (relay_ready ? !hand_to_relay(session - sessions) :
				!TimestampDifferenceExceeds(relay_missed, now, RELAY_WAIT_MS))
				return;
		}
		dlist_delete(&session->link);
		session->since = now;
		session->silent = session->relayed != NULL;
		dlist_push_tail(session->silent ? &logins_silent : &logins_waiting, &session->link);
	}
}

/*
 * What has a client said that has no backend yet?
 */
static SharedServerSaid
peek_silent(Session *session)
{
	return session->relayed ? shared_server_peek_relayed(session->sock) :
		shared_server_peek_startup(session->sock);
}

/*
 * The client of a parked session has said something, or gone.
 */
static void
wake_session(int number)
{
	Session    *session = &sessions[number];
	SharedServerSession *slot = &shared_server->sessions[number];
	SharedServerSaid said;
	TimestampTz now;
	bool		crowded;

	if (session->sock < 0 || (slot->state != SHARED_SERVER_PARKED && !session->silent))
		return;
	said = session->silent ? peek_silent(session) : shared_server_peek(session->sock);
	if (said <= SHARED_SERVER_SAID_PART)
	{
		session->part_said = said == SHARED_SERVER_SAID_PART;
		watch_session(number);
		return;
	}
	if (session->silent)
		dlist_delete(&session->link);
	if (said == SHARED_SERVER_SAID_GOODBYE)
	{
		drain(session->sock);
		close_session(number);
		return;
	}
	if (session->part_said)
		shared_server_await_bytes(session->sock, 1);
	session->part_said = false;
	if (session->silent)
	{
		/* a backend has the client's time again, as one that was accepted now */
		session->silent = false;
		session->since = GetCurrentTimestamp();
		if (!session->relayed && relay_wanted() && shared_server_peek_tls(session->sock))
		{
			dlist_push_tail(&relay_waiting, &session->link);
			start_relayed();
		}
		else
			dlist_push_tail(&logins_waiting, &session->link);
		return;
	}
	now = GetCurrentTimestamp();
	if (now - session->since < shared_server_quantum * SHARED_SERVER_SILENCE_US)
		slot->talkative = true;
	session->since = now;
	session->passed_over = 0;
	session->pool->waits++;
	set_state(number, SHARED_SERVER_WAITING);
	slot->waits++;

	/*
	 * One more does not matter where each worker is wanted by somebody; what
	 * comes with time, keep_time() sees.
	 */
	crowded = all_are_wanted(session->pool);
	dclist_push_tail(&session->pool->waiting, &session->link);
	if (crowded)
		return;
	schedule(session->pool);
	if (!dclist_is_empty(&session->pool->waiting))
		schedule_all();
}

static void
set_listening(bool on)
{
	for (int i = 0; i < listen_count; i++)
	{
		struct epoll_event event = {.events = on ? EPOLLIN : 0};

		event.data.u64 = EVENT_LISTEN | i;
		if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, listen_sockets[i], &event) < 0)
			elog(LOG, "could not watch a listen socket: %m");
	}
}

/*
 * A client that has been accepted has a session here from now on.
 */
static void
take_client(int sock, const SockAddr *raddr)
{
	SharedServerSession *slot;

	/* once: an error, which is always reported, would be reported for ever */
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT};
	int			number;

	if (free_sessions_count == 0)
	{
		say_fatal(sock, "53300", "sorry, too many clients already", NULL);
		close(sock);
		return;
	}
	number = free_sessions[--free_sessions_count];
	shared_server_self->clients++;
	sessions[number].sock = sock;
	sessions[number].last_worker = -1;
	sessions[number].since = GetCurrentTimestamp();
	event.data.u64 = EVENT_SESSION | number;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, sock, &event) < 0)
		elog(LOG, "could not watch a client: %m");

	slot = &shared_server->sessions[number];
	LWLockAcquire(shared_server->lock, LW_EXCLUSIVE);
	slot->generation++;
	slot->state = SHARED_SERVER_LOGIN;
	slot->login_time = slot->state_time = sessions[number].since;
	slot->raddr = *raddr;
	slot->pinned[0] = '\0';
	NameStr(slot->database)[0] = NameStr(slot->user)[0] = '\0';
	slot->idle = false;
	slot->binds = slot->waits = slot->wait_us = slot->transactions = 0;
	slot->last_wait_us = 0;
	slot->pool = 0;
	slot->role = slot->database_oid = InvalidOid;
	slot->last_worker_pid = 0;
	slot->talkative = true;
	LWLockRelease(shared_server->lock);
	SpinLockAcquire(&slot->mutex);
	slot->key_length = 0;
	slot->worker_pid = 0;
	slot->ending = slot->cancelled = false;
	/* what is left of a session that an earlier dispatcher had */
	pg_atomic_fetch_sub_u64(&shared_server->image_memory, slot->memory);
	slot->memory = 0;
	slot->pid = SHARED_SERVER_FIRST_PID +
		(slot->generation % (SHARED_SERVER_FIRST_PID / shared_server->sessions_max)) * shared_server->sessions_max + number;
	SpinLockRelease(&slot->mutex);
	sessions[number].silent = true;
	dlist_push_tail(&logins_silent, &sessions[number].link);
}

static void
accept_client(pgsocket listening)
{
	SockAddr	raddr = {.salen = sizeof(raddr.addr)};
	int			sock = accept4(listening, (struct sockaddr *) &raddr.addr, &raddr.salen,
							   SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (sock < 0)
	{
		if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ECONNABORTED)
			elog(LOG, "could not accept new connection: %m");
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		{
			/* who knocks would keep us awake */
			accept_again = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 1000);
			set_listening(false);
		}
		return;
	}
	if (is_one_of_many() && shared_server_hand_over(sock))
		close(sock);
	else
		take_client(sock, &raddr);
}

/*
 * Clients that the one that listens has for us.
 */
static void
receive_clients(void)
{
	int			sock;

	while ((sock = shared_server_receive_client(listener)) >= 0)
	{
		SockAddr	raddr = {.salen = sizeof(raddr.addr)};

		if (getpeername(sock, (struct sockaddr *) &raddr.addr, &raddr.salen) == 0)
			take_client(sock, &raddr);
		else
			close(sock);
	}
	if (sock == -1)
		return;
	(void) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, listener, NULL);
	close(listener);
	listener = -1;
}

/*
 * Be among those that the one that listens gives clients to.
 */
static void
keep_joined(void)
{
	struct epoll_event event = {.events = EPOLLIN,.data.u64 = EVENT_LISTENER};
	TimestampTz now;

	if (shared_server_self == &shared_server_dispatchers[0] || listener >= 0)
		return;
	now = GetCurrentTimestamp();
	if (now < next_join)
		return;
	next_join = TimestampTzPlusMilliseconds(now, JOIN_PAUSE_MS);
	listener = shared_server_join();
	if (listener < 0)
		return;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event) < 0)
		elog(FATAL, "could not watch the dispatcher that listens: %m");
	shared_server_self->ready = true;
}

/*
 * Another dispatcher has come to be given clients.
 */
static void
take_peer(void)
{
	int			number = shared_server_take_peer(gathering);
	struct epoll_event event = {.events = EPOLLIN,.data.u64 = EVENT_PEER | number};

	if (number >= 0 &&
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, shared_server_peer_socket(number), &event) < 0)
		shared_server_forget_peer(number);
}

static void
start_logins(void)
{
	while (!dlist_is_empty(&logins_waiting) &&
		   logins < LOGINS_MAX / shared_server_dispatcher_count)
	{
		Session    *session = dlist_head_element(Session, link, &logins_waiting);

		if (!start_worker(session - sessions, NULL))
			return;
		dlist_delete(&session->link);
	}
}

/*
 * Sessions that were silent for too long while nobody served them; where
 * somebody does, the stock code looks at the time.
 */
static void
end_idle(TimestampTz now)
{
	if (now < next_idle_timeout)
		return;
	next_idle_timeout = DT_NOEND;
	for (int i = sessions_begin; i < sessions_end; i++)
	{
		TimestampTz end;

		if (shared_server->sessions[i].state != SHARED_SERVER_PARKED)
			continue;
		end = idle_timeout_of(i);
		if (now < end)
			next_idle_timeout = Min(next_idle_timeout, end);
		else
			end_session(i, "57P05", "terminating connection due to idle-session timeout", NULL);
	}
}

/*
 * Has nobody needed this free worker for long, or will nobody ever?
 */
static bool
is_superfluous(Worker *worker, TimestampTz now)
{
	if (!shared_server_enabled && worker->pool->sessions == 0)
		return true;
	return shared_server_backend_idle_timeout > 0 &&
		TimestampDifferenceExceeds(worker->since, now, shared_server_backend_idle_timeout * 1000) &&
		worker->pool->workers - count_quitting(worker->pool) >
		shared_server_share_of_minimum(worker->pool->key_hash);
}

/*
 * Sessions that have waited too long, workers that nobody needs.  Returns when
 * to look again, in milliseconds.
 */
static long
keep_time(void)
{
	TimestampTz now = GetCurrentTimestamp();
	long		next = 1000;
	dlist_iter	iter;

	pg_atomic_write_u64(&shared_server_self->last_active, now);
	if (accept_again != 0 && now >= accept_again)
	{
		accept_again = 0;
		set_listening(true);
	}

	end_idle(now);
	if (next_idle_timeout != DT_NOEND)
		next = Min(next, TimestampDifferenceMilliseconds(now, next_idle_timeout) + 1);

	/* natively a backend would wait for it, and end as silently */
	while (!dlist_is_empty(&logins_silent))
	{
		Session    *session = dlist_head_element(Session, link, &logins_silent);

		if (!TimestampDifferenceExceeds(session->since, now, AuthenticationTimeout * 1000))
			break;
		dlist_delete(&session->link);
		close_session(session - sessions);
	}

	/* the relay has no room for these */
	while (!dlist_is_empty(&relay_waiting))
	{
		Session    *session = dlist_head_element(Session, link, &relay_waiting);

		if (!TimestampDifferenceExceeds(session->since, now, AuthenticationTimeout * 1000))
		{
			next = Min(next, 20);
			break;
		}
		dlist_delete(&session->link);
		close_session(session - sessions);
	}

	/* a client that no backend could be started for */
	while (!dlist_is_empty(&logins_waiting))
	{
		Session    *session = dlist_head_element(Session, link, &logins_waiting);

		if (!TimestampDifferenceExceeds(session->since, now, AuthenticationTimeout * 1000))
			break;
		shared_server_self->timeouts++;
		end_waiting(session - sessions, "53300", "sorry, too many clients already", NULL);
	}

	dlist_foreach(iter, &pools)
	{
		Pool	   *pool = dlist_container(Pool, link, iter.cur);
		dlist_mutable_iter waiting;

		dclist_foreach_modify(waiting, &pool->waiting)
		{
			Session    *session = dlist_container(Session, link, waiting.cur);
			long		left = shared_server_session_wait_timeout -
				TimestampDifferenceMilliseconds(session->since, now);

			if (shared_server_session_wait_timeout <= 0)
				left = next;
			if (left <= 0)
			{
				shared_server_self->timeouts++;
				end_waiting(session - sessions, "53300",
							"terminating connection because no worker became free in time", NULL);
				continue;
			}
			/* who is behind it has come later */
			next = Min(next, Min(left, 20));
			break;
		}
	}
	if (!dlist_is_empty(&logins_waiting))
		next = Min(next, 20);
	if (listener < 0 && shared_server_self != &shared_server_dispatchers[0])
		next = Min(next, JOIN_PAUSE_MS);

	for (int i = 0; i < workers_used; i++)
	{
		if (workers[i].state == WORKER_FREE && is_superfluous(&workers[i], now))
			quit_worker(i);
	}
	schedule_all();
	forget_empty_pools();
	return next;
}

/*
 * Sessions that were terminated while nobody served them.
 */
static void
end_terminated(void)
{
	if (pg_atomic_exchange_u32(&shared_server_self->ending, 0) == 0)
		return;
	for (int i = sessions_begin; i < sessions_end; i++)
	{
		SharedServerSession *slot = &shared_server->sessions[i];

		/* one that is bound by now ends itself */
		if (!slot->ending)
			continue;
		if (slot->state == SHARED_SERVER_WAITING)
			end_waiting(i, "57P01", ADMIN_COMMAND, NULL);
		else if (slot->state == SHARED_SERVER_PARKED)
			end_session(i, "57P01", ADMIN_COMMAND, NULL);
	}
}

/*
 * All sessions are to end, each when it is idle: those that nobody serves are,
 * and the others are told, or end when their worker lets go of them.  None of
 * what they have said and nobody has read is done.
 */
static void
drain_sessions(void)
{
	if (pg_atomic_exchange_u32(&shared_server_self->draining, 0) == 0)
		return;
	for (int i = sessions_begin; i < sessions_end; i++)
	{
		switch (shared_server->sessions[i].state)
		{
			case SHARED_SERVER_PARKED:
				end_session(i, "57P01", ADMIN_COMMAND, NULL);
				break;
			case SHARED_SERVER_WAITING:
				end_waiting(i, "57P01", ADMIN_COMMAND, NULL);
				break;
			case SHARED_SERVER_BOUND:
				sessions[i].draining = true;
				(void) shared_server_send(workers[sessions[i].worker].sock, SHARED_SERVER_DRAIN,
										  i, NULL, 0, -1);
				break;
			case SHARED_SERVER_FREE:
			case SHARED_SERVER_LOGIN:
				break;
		}
	}
}

/*
 * Somebody needs a database for itself: who serves nobody there leaves.  Those
 * that are asked for at the same moment ask again.
 */
static void
leave_database(void)
{
	Oid			database = pg_atomic_exchange_u32(&shared_server_self->vacated, InvalidOid);

	if (!OidIsValid(database))
		return;
	for (int i = 0; i < workers_used; i++)
	{
		if (workers[i].state == WORKER_FREE && workers[i].pool->database == database)
			quit_worker(i);
	}
}

/*
 * Have the processors of this machine had work for all of the last moments,
 * whoever gave it to them?  The kernel says how many processes could run; we
 * are one of them while we ask.
 */
static void
look_at_processors(void)
{
	static int	file = -1;
	static double running = 0;
	static long processors = 0;
	static uint32 looks = 0;
	char		line[128];
	char	   *slash;
	ssize_t		got;

	if (file < 0)
	{
		file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
		if (file < 0)
			return;
		ReserveExternalFD();
	}
	got = pread(file, line, sizeof(line) - 1, 0);
	if (got <= 0)
		return;
	line[got] = '\0';

	/* 0.20 0.18 0.12 1/80 11206: the first of the pair */
	slash = strchr(line, '/');
	if (slash == NULL)
		return;
	while (slash > line && slash[-1] != ' ')
		slash--;
	running += (atoi(slash) - 1 - running) / 4;

	/* their number is in a file, too, and seldom another */
	if (looks++ % 1024 == 0)
		processors = sysconf(_SC_NPROCESSORS_ONLN);
	shared_server_self->saturated = running >= processors;
}

/*
 * What the views show of the whole, no more often than anybody can look.
 * Returns when to do it again, in milliseconds, or -1.
 */
static long
publish(void)
{
	static TimestampTz published = 0;
	TimestampTz now = GetCurrentTimestamp();
	int			free = 0;
	int			count = 0;
	dlist_iter	iter;

	if (!TimestampDifferenceExceeds(published, now, PUBLISH_MS))
		return PUBLISH_MS;
	published = now;
	look_at_processors();
	for (int i = 0; i < workers_used; i++)
		free += workers[i].state == WORKER_FREE;
	LWLockAcquire(shared_server->lock, LW_EXCLUSIVE);
	dlist_foreach(iter, &pools)
	{
		Pool	   *pool = dlist_container(Pool, link, iter.cur);
		SharedServerPool *shown = &shared_server_self->shown[count];
		StringInfoData names;
		dlist_iter	each;

		if (count == SHARED_SERVER_POOLS_SHOWN)
			break;
		initReadOnlyStringInfo(&names, pool->key.data, pool->key.len);
		namestrcpy(&shown->database, shared_server_get_string(&names));
		namestrcpy(&shown->user, shared_server_get_string(&names));
		shown->number = pool->number;
		shown->key_hash = pool->key_hash;
		shown->transactions = pool->transactions;
		shown->sessions = pool->sessions;
		shown->workers = pool->workers;
		shown->binds = pool->binds;
		shown->waits = pool->waits;
		shown->wait_us = pool->wait_us;
		shown->waiting = dclist_count(&pool->waiting);
		shown->free = shown->pinned = 0;
		dlist_foreach(each, &pool->free)
			shown->free++;
		for (int i = 0; i < workers_used; i++)
			shown->pinned += workers[i].pinned && workers[i].pool == pool;
		count++;
	}
	shared_server_self->pools = count;
	shared_server_self->free_workers = free;
	LWLockRelease(shared_server->lock);
	return -1;
}

/*
 * What others see of a dispatcher that has nothing: none of what an earlier
 * process of it had is ours.
 */
static void
begin_counting(void)
{
	LWLockAcquire(shared_server->lock, LW_EXCLUSIVE);
	shared_server_self->clients = shared_server_self->clients_max = 0;
	shared_server_self->received = 0;
	shared_server_self->workers = shared_server_self->free_workers = shared_server_self->starting = shared_server_self->quitting = 0;
	shared_server_self->active_pools = shared_server_self->pools = 0;
	memset(&shared_server_self->need, 0, sizeof(shared_server_self->need));
	shared_server_self->last_bind = shared_server_self->last_growth = 0;
	shared_server_self->saturated = false;
	pg_atomic_write_u64(&shared_server_self->relay_last_active, 0);
	LWLockRelease(shared_server->lock);
}

static void
shared_server_dispatcher_exit(int code, Datum arg)
{
	if (gathering >= 0)
		shared_server_stop_gathering();
	shared_server_self->token_valid = shared_server_self->ready = false;
	shared_server_self->pid = 0;
	for (int i = sessions_begin; i < sessions_end; i++)
	{
		SharedServerSession *slot = &shared_server->sessions[i];

		if (slot->state == SHARED_SERVER_PARKED || slot->state == SHARED_SERVER_WAITING)
			say_fatal(sessions[i].sock, "57P01", ADMIN_COMMAND, NULL);
		slot->state = SHARED_SERVER_FREE;

		/* the next dispatcher may never come to this slot */
		shared_server_self->transactions += slot->transactions;
		slot->transactions = 0;
		SpinLockAcquire(&slot->mutex);
		pg_atomic_fetch_sub_u64(&shared_server->image_memory, slot->memory);
		slot->memory = 0;
		SpinLockRelease(&slot->mutex);
	}
	begin_counting();
}

static void
listen_on(const char *host)
{
	if (ListenServerPort(AF_UNSPEC, strcmp(host, "*") == 0 ? NULL : host,
						 (unsigned short) shared_server_port, NULL,
						 listen_sockets, &listen_count, LISTEN_MAX) != STATUS_OK)
		ereport(WARNING,
				(errmsg("could not create listen socket for \"%s\" on port %d",
						host, shared_server_port)));
}

/*
 * How many sessions there may be.  A client is a file, and so is a worker; what
 * files of the data directory this process may open besides does not matter
 * here.
 */
static int
usable_sessions(void)
{
	struct rlimit files;
	int			sessions_max = sessions_end - sessions_begin;
	rlim_t		needed = (rlim_t) sessions_max + workers_max + OTHER_FILES;
	int			usable;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		elog(FATAL, "getrlimit() failed: %m");
	if (files.rlim_cur < needed)
	{
		files.rlim_cur = Min(needed, files.rlim_max);
		if (setrlimit(RLIMIT_NOFILE, &files) < 0 && getrlimit(RLIMIT_NOFILE, &files) < 0)
			elog(FATAL, "getrlimit() failed: %m");
	}
	if (files.rlim_cur >= needed)
		return sessions_max;
	usable = Max(1, (int) files.rlim_cur - workers_max - OTHER_FILES);
	ereport(WARNING,
			(errmsg("the limit of open files allows %d sessions, not \"polar_ss_max_sessions\" = %d",
					usable * shared_server_dispatcher_count, shared_server->sessions_max),
			 errhint("Raise the hard limit of open files (RLIMIT_NOFILE) of the server to %lu.",
					 (unsigned long) needed)));
	return usable;
}

static void
make_tables(void)
{
	int			number = shared_server_self - shared_server_dispatchers;
	int			usable;

	workers_max = 2 * MaxConnections;
	sessions_begin = shared_server_first_session(number);
	sessions_end = shared_server_first_session(number + 1);
	usable = usable_sessions();
	workers = palloc0_array(Worker, workers_max);

	/* by their numbers among all; only ours are ever touched */
	sessions = palloc_array(Session, sessions_end);
	free_sessions = palloc_array(int, sessions_end - sessions_begin + 1);
	for (int i = 0; i < workers_max; i++)
	{
		workers[i].sock = workers[i].session = -1;
		initStringInfo(&workers[i].input);
	}
	for (int i = sessions_end - 1; i >= sessions_begin; i--)
	{
		memset(&sessions[i], 0, sizeof(Session));
		sessions[i].sock = sessions[i].worker = -1;
		if (i < sessions_begin + usable)
			free_sessions[free_sessions_count++] = i;
	}
	shared_server_self->clients_max = free_sessions_count;
}

static void
require_socket_directory(void)
{
	if (socket_directory() == NULL)
		ereport(FATAL,
				(errcode(ERRCODE_CONFIG_FILE_ERROR),
				 errmsg("shared sessions need a Unix socket of the server"),
				 errdetail("Clients of port %d are handed over to backends through it.", shared_server_port),
				 errhint("Name a directory in \"unix_socket_directories\".")));
}

static void
begin_listening(void)
{
	List	   *hosts;

	for (int i = 0; i < LISTEN_MAX; i++)
		listen_sockets[i] = PGINVALID_SOCKET;
	if (!SplitGUCList(pstrdup(ListenAddresses), ',', &hosts))
		hosts = NIL;
	foreach_ptr(char, host, hosts)
		listen_on(host);
	if (listen_count == 0)
		ereport(FATAL,
				(errmsg("could not listen on port %d for shared sessions", shared_server_port)));
	for (int i = 0; i < listen_count; i++)
	{
		struct epoll_event event = {.events = EPOLLIN};

		event.data.u64 = EVENT_LISTEN | i;
		if (!pg_set_noblock(listen_sockets[i]) ||
			epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_sockets[i], &event) < 0)
			elog(FATAL, "could not watch a listen socket: %m");
	}
	if (is_one_of_many())
	{
		struct epoll_event event = {.events = EPOLLIN,.data.u64 = EVENT_GATHERING};

		gathering = shared_server_gather();
		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, gathering, &event) < 0)
			elog(FATAL, "could not watch the socket of the other dispatchers: %m");
	}
}

static void
serve_events(void)
{
	struct epoll_event events[EVENTS_MAX];
	int			count = epoll_wait(epoll_fd, events, EVENTS_MAX, 0);

	for (int i = 0; i < count; i++)
	{
		int			number = (int) (events[i].data.u64 & 0xFFFFFFFF);

		switch (events[i].data.u64 & ~(uint64) 0xFFFFFFFF)
		{
			case EVENT_LISTEN:
				accept_client(listen_sockets[number]);
				break;
			case EVENT_WORKER:
				if (workers[number].state != WORKER_NONE)
					read_worker(number);
				break;
			case EVENT_SESSION:
				wake_session(number);
				break;
			case EVENT_KEEPER:
				if (keeper >= 0)
					read_keeper();
				break;
			case EVENT_SPARE:
				/* it says nothing: it has ended */
				if (spare_keeper >= 0)
					leave_keeper(&spare_keeper);
				break;
			case EVENT_RELAY:
				if (relay >= 0)
					read_relay();
				break;
			case EVENT_GATHERING:
				take_peer();
				break;
			case EVENT_PEER:
				/* it says nothing: it has ended */
				shared_server_forget_peer(number);
				break;
			case EVENT_LISTENER:
				if (listener >= 0)
					receive_clients();
				break;
		}
	}
}

void
shared_server_dispatcher_main(Datum arg)
{
	WaitEventSet *set;
	uint32		wait_event;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	/* a worker is registered before settings are known; this one is for good */
	if (shared_server == NULL)
		proc_exit(0);

	shared_server_self = &shared_server_dispatchers[DatumGetInt32(arg)];

	/* it inherits what we know: nothing of any session yet */
	keeper = shared_server_start_keeper();
	spare_keeper = shared_server_start_keeper();
	relay_missed = GetCurrentTimestamp();
	begin_counting();
	make_tables();
	before_shmem_exit(shared_server_dispatcher_exit, 0);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		elog(FATAL, "epoll_create1() failed: %m");
	ReserveExternalFD();
	watch_keeper(keeper, EVENT_KEEPER);
	watch_keeper(spare_keeper, EVENT_SPARE);
	require_socket_directory();
	if (shared_server_self == &shared_server_dispatchers[0])
		begin_listening();

	if (!pg_strong_random(shared_server_self->token, SHARED_SERVER_TOKEN_LENGTH))
		elog(FATAL, "could not generate a token");
	shared_server_self->latch = MyLatch;
	shared_server_self->start = GetCurrentTimestamp();
	pg_atomic_write_u64(&shared_server_self->last_active, shared_server_self->start);
	shared_server_self->token_valid = true;
	shared_server_self->pid = MyProcPid;
	shared_server_self->ready = shared_server_self == &shared_server_dispatchers[0];

	wait_event = WaitEventExtensionNew("SharedServerDispatcherMain");
	set = CreateWaitEventSet(NULL, 3);
	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(set, WL_SOCKET_READABLE, epoll_fd, NULL, NULL);

	for (;;)
	{
		WaitEvent	woken;
		long		next;
		long		again;

		keep_joined();
		keep_keepers();
		keep_relay();
		start_relayed();
		start_logins();
		end_terminated();
		drain_sessions();
		leave_database();
		next = keep_time();
		again = publish();
		(void) WaitEventSetWait(set, again < 0 ? next : Min(next, again), &woken, 1, wait_event);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			relay_outdated = true;
		}
		serve_events();
	}
}

void
shared_server_register_dispatchers(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = 1;
	strlcpy(worker.bgw_library_name, "shared_server", MAXPGPATH);
	strlcpy(worker.bgw_function_name, "shared_server_dispatcher_main", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "shared server dispatcher", BGW_MAXLEN);
	for (int i = 0; i < shared_server_dispatcher_count; i++)
	{
		strlcpy(worker.bgw_name, worker.bgw_type, BGW_MAXLEN);
		if (shared_server_dispatcher_count > 1)
			snprintf(worker.bgw_name, BGW_MAXLEN, "%s %d", worker.bgw_type, i + 1);
		worker.bgw_main_arg = Int32GetDatum(i);
		RegisterBackgroundWorker(&worker);
	}
}
