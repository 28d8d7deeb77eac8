/*-------------------------------------------------------------------------
 *
 * shared_server.h
 *	  Sessions that are not tied to a backend.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/shared_server.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SHARED_SERVER_H
#define SHARED_SERVER_H

#include "lib/stringinfo.h"
#include "libpq/libpq-be.h"
#include "libpq/pqcomm.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "storage/procsignal.h"
#include "storage/spin.h"

#define SHARED_SERVER_TOKEN_LENGTH 32
#define SHARED_SERVER_REASON_LENGTH 64

/* Virtual process ids begin where no kernel's end */
#define SHARED_SERVER_FIRST_PID (1 << 30)

typedef enum SharedServerState
{
	SHARED_SERVER_FREE = 0,
	SHARED_SERVER_LOGIN,		/* a backend authenticates the client */
	SHARED_SERVER_BOUND,		/* a worker serves it */
	SHARED_SERVER_PARKED,		/* nobody does; its client is silent */
	SHARED_SERVER_WAITING,		/* nobody does, and its client has spoken */
} SharedServerState;

/*
 * What others may see of a session.  Written by the dispatcher under the lock,
 * except for what the mutex protects.
 */
typedef struct SharedServerSession
{
	SharedServerState state;
	uint32		generation;		/* of the use of this slot */
	NameData	database;
	NameData	user;
	SockAddr	raddr;
	TimestampTz login_time;
	TimestampTz state_time;
	char		pinned[SHARED_SERVER_REASON_LENGTH];	/* why, or empty */
	bool		idle;			/* its worker waits for it; a hint, no lock */
	uint64		binds;
	uint64		waits;
	uint64		wait_us;
	int64		last_wait_us;	/* for the worker that it has */
	uint32		pool;			/* its number */
	Oid			role;			/* that has logged in, and where; or invalid */
	Oid			database_oid;
	int			last_worker_pid;

	/* written by its worker, or by the dispatcher while it has none */
	bool		talkative;		/* goes on at once when it has been answered */
	uint64		transactions;
	int			idle_timeout;	/* idle_session_timeout, or 0 */
	TimestampTz idle_since;
	int			memory;			/* bytes, see image_memory */

	/*
	 * For cancel requests.  Who asks has no PGPROC, so that a spinlock must
	 * do; it is held over the signal, so that a session which has left its
	 * worker cannot have that worker's next one cancelled.
	 */
	slock_t		mutex;
	int			pid;			/* what the client knows */
	uint8		key[MAX_CANCEL_KEY_LENGTH];
	int			key_length;
	int			worker_pid;		/* who serves it, or 0 */
	bool		ending;			/* has been terminated while nobody did */
	bool		cancelled;		/* what it waits to be served with has been */
} SharedServerSession;

/* What the views show of a pool */
typedef struct SharedServerPool
{
	NameData	database;
	NameData	user;
	uint32		number;			/* among those of its dispatcher */
	uint64		key_hash;		/* who has logged in as those of another's */
	int			sessions;
	int			workers;
	int			free;
	int			waiting;
	int			pinned;
	uint64		binds;
	uint64		waits;
	uint64		wait_us;
	uint64		transactions;	/* of sessions that have ended */
} SharedServerPool;

/* Waits of less than 2, 4, 8 ... microseconds, and of more in the last */
#define SHARED_SERVER_WAIT_BUCKETS 32

#define SHARED_SERVER_POOLS_SHOWN 128

/* Whose a worker is, by its number among all processes */
typedef struct SharedServerWorker
{
	Oid			database;		/* invalid: it is no worker */
	Oid			role;
	int			dispatcher;
} SharedServerWorker;

/* Pools of a dispatcher that wait for a worker to be started */
typedef struct SharedServerNeed
{
	int			pools;			/* so many */
	int			workers;		/* of the one that has the fewest */
	TimestampTz since;			/* when its wait began */
} SharedServerNeed;

/*
 * What others may see of a dispatcher.  It alone writes, but for requests; who
 * compares numbers of several dispatchers to change its own holds the lock.
 */
typedef struct SharedServerDispatcher
{
	/* of the process that runs */
	uint8		token[SHARED_SERVER_TOKEN_LENGTH];
	bool		token_valid;
	int			pid;			/* or 0 */
	bool		ready;			/* can it be given clients? */
	TimestampTz start;
	struct Latch *latch;
	pg_atomic_uint64 last_active;	/* when its loop last went round */
	pg_atomic_uint64 relay_last_active; /* when its relay last answered, or 0 */
	bool		saturated;		/* has no processor been without work lately? */

	/* clients */
	int			clients;
	int			clients_max;
	uint32		received;		/* from the one that listens */

	/* workers */
	int			workers;
	int			free_workers;
	int			starting;
	int			quitting;
	int			active_pools;	/* that have workers, or wait for one */
	SharedServerNeed need;
	TimestampTz last_bind;		/* when a session last got a worker */
	TimestampTz last_growth;	/* when there was last a worker too many */

	/* requests */
	pg_atomic_uint32 ending;	/* is a slot's set? */
	pg_atomic_uint32 vacated;	/* database that free workers are to leave */
	pg_atomic_uint32 draining;	/* are all sessions to end? */

	/* since the server's start */
	uint64		logins;
	uint64		binds;
	uint64		parks;
	uint64		spawns;
	uint64		timeouts;
	uint64		transactions;	/* of sessions that have ended */
	uint64		waits[SHARED_SERVER_WAIT_BUCKETS];

	int			pools;
	SharedServerPool shown[SHARED_SERVER_POOLS_SHOWN];
} SharedServerDispatcher;

typedef struct SharedServerShared
{
	LWLock	   *lock;
	pg_atomic_uint64 image_memory;	/* of all sessions, bytes */
	int			sessions_max;
	SharedServerSession sessions[FLEXIBLE_ARRAY_MEMBER];
} SharedServerShared;

/* What the dispatcher and a worker say to each other */
typedef enum SharedServerMessageKind
{
	/* worker to dispatcher */
	SHARED_SERVER_HELLO = 0x53530001,	/* the token was right: send the rest */
	SHARED_SERVER_REGISTER,		/* key, identity, image: logged in */
	SHARED_SERVER_READY,		/* key: a spawned worker can take a session */
	SHARED_SERVER_REFUSED,		/* an ErrorResponse: why it cannot be one */
	SHARED_SERVER_WORN,			/* it ends when it lets go of its session */
	SHARED_SERVER_PARK,			/* image: the session is the dispatcher's */
	SHARED_SERVER_PINNED,		/* reason, empty when it has gone */
	SHARED_SERVER_END,			/* the session is over, the worker free */
	/* dispatcher to worker */
	SHARED_SERVER_CLIENT,		/* with the client's socket */
	SHARED_SERVER_RESUME,		/* what a spawned worker is to be */
	SHARED_SERVER_YIELD,		/* park when you can */
	SHARED_SERVER_BIND,			/* whether to park when it can, identity,
								 * image, with the socket */
	SHARED_SERVER_QUIT,			/* a free worker is to end */
	SHARED_SERVER_DRAIN,		/* the session is to end when it is idle */
} SharedServerMessageKind;

typedef struct SharedServerHeader
{
	uint32		kind;
	uint32		length;			/* of what follows */
	int32		session;		/* its slot, or -1 */
} SharedServerHeader;

/* What a client has said, see shared_server_peek() */
typedef enum SharedServerSaid
{
	SHARED_SERVER_SAID_NOTHING,
	SHARED_SERVER_SAID_PART,	/* of a message */
	SHARED_SERVER_SAID_SOMETHING,
	SHARED_SERVER_SAID_GOODBYE, /* or it has gone without */
} SharedServerSaid;

/* What follows ADOPT_CONNECTION_CODE in the startup packet */
typedef struct SharedServerAdopt
{
	uint8		token[SHARED_SERVER_TOKEN_LENGTH];
	int32		dispatcher;
	int32		session;
	int32		resume;			/* no client, but a worker */
} SharedServerAdopt;

/* A client whose TLS the relay ends: its socket cannot tell its addresses */
typedef struct SharedServerAddresses
{
	SockAddr	raddr;
	SockAddr	laddr;
} SharedServerAddresses;

/* What the dispatcher, the keeper and the relay say to each other */
#define SHARED_SERVER_RELAY_BEGIN	'B' /* fork a relay; and back, with its
										 * socket */
#define SHARED_SERVER_RELAY_KEEPER	'K' /* the same of another keeper */
#define SHARED_SERVER_RELAY_CLIENT	'C' /* with its socket, and one for its
										 * worker */
#define SHARED_SERVER_RELAY_RELOAD	'R'
#define SHARED_SERVER_RELAY_READY	'T' /* there is a certificate */
#define SHARED_SERVER_RELAY_UNABLE	'N' /* there is none */
#define SHARED_SERVER_RELAY_ALIVE	'A' /* are you? and back: yes */
#define SHARED_SERVER_RELAY_FILES	2

/* What the dispatcher that listens says to the others: here is a client */
#define SHARED_SERVER_HAND_OVER		'H'

#define SHARED_SERVER_DISPATCHERS_MAX 16

/* Who has not gone round for longer is taken for one that does nothing */
#define SHARED_SERVER_AWAKE_MS 3000

/* The first byte of a client that begins with TLS */
#define SHARED_SERVER_TLS_HANDSHAKE 0x16

/*
 * After how many bytes a client is believed to have something to say, although
 * its message is longer: it might not fit into the socket's buffer.
 */
#define SHARED_SERVER_MESSAGE_AWAITED (16 * 1024)

/* For each millisecond of the quantum a client may be silent for so long */
#define SHARED_SERVER_SILENCE_US INT64CONST(250)

/* The most that a session may need to move; else it stays where it is */
#define SHARED_SERVER_IMAGE_MAX (96 * 1024)

/* settings */
extern bool shared_server_enabled;
extern int	shared_server_port;
extern int	shared_server_dispatcher_count;
extern int	shared_server_backend_max_count;
extern int	shared_server_backend_idle_timeout;
extern int	shared_server_backend_pool_min_size;
extern int	shared_server_session_wait_timeout;
extern char *shared_server_dedicated_dbuser_names;
extern char *shared_server_dedicated_guc_names;
extern char *shared_server_safe_modules;
extern int	shared_server_max_sessions;
extern int	shared_server_shared_memory_size;
extern int	shared_server_worker_cache_size;
extern int	shared_server_quantum;
extern int	shared_server_stall_limit;
extern int	shared_server_reserved_workers;
extern bool shared_server_shm_aset;
extern bool shared_server_force_migrate;
extern bool shared_server_share_tls;

extern SharedServerShared *shared_server;
extern SharedServerDispatcher *shared_server_dispatchers;
extern SharedServerWorker *shared_server_workers;

/* wire.c */
extern bool shared_server_send(int sock, SharedServerMessageKind kind,
							   int session, const void *data, uint32 length,
							   int passed);
extern ssize_t shared_server_receive(int sock, void *data, size_t length,
									 int *passed);
extern SharedServerSaid shared_server_peek(int sock);
extern SharedServerSaid shared_server_peek_startup(int sock);
extern SharedServerSaid shared_server_peek_relayed(int sock);
extern bool shared_server_peek_tls(int sock);
extern void shared_server_await_bytes(int sock, int count);

/* worker.c */
extern void shared_server_worker_init(void);

/* sessions.c */
extern void shared_server_sessions_init(void);

/* image.c */
extern void shared_server_append_key(StringInfo buf);
extern void shared_server_append_settings(StringInfo buf);
extern void shared_server_append_meanings(StringInfo buf);
extern void shared_server_append_constant_meanings(StringInfo buf);
extern void shared_server_append_identity(StringInfo buf);
extern const char *shared_server_append_image(StringInfo buf);
extern void shared_server_apply_settings(StringInfo buf);
extern bool shared_server_apply_identity(StringInfo buf);
extern void shared_server_apply_image(StringInfo buf, StringInfo last,
									  bool known, bool told);
extern void shared_server_append_string(StringInfo buf, const char *text);
extern const char *shared_server_get_string(StringInfo buf);
extern int32 shared_server_get_int(StringInfo buf);
extern void shared_server_append_int(StringInfo buf, int32 value);
extern const void *shared_server_get_bytes(StringInfo buf, int length);
extern void shared_server_get_value(StringInfo buf, void *value, int length);

/* statements.c */
extern void shared_server_statements_init(void);
extern const char *shared_server_append_statements(StringInfo buf);
extern void shared_server_apply_statements(StringInfo buf);
extern void shared_server_forget_statements(void);
extern bool shared_server_switch_statements(int slot, uint32 generation);

/* functions.c */
extern bool shared_server_between;
extern void shared_server_functions_init(void);
extern void shared_server_switch_functions(int slot, uint32 generation);

/* taint.c */
extern void shared_server_libraries_init(void);
extern void shared_server_taint_init(void);
extern const char *shared_server_taint(void);

/* tls.c */
extern void shared_server_append_tls(StringInfo buf, Port *port);
extern bool shared_server_believe_tls(Port *port, const SharedServerAddresses *from,
									  const char *facts, int length);
extern void shared_server_forget_tls(Port *port);
extern void shared_server_append_relayed(StringInfo buf);
extern void shared_server_apply_relayed(StringInfo buf);

/* relay.c */
extern bool shared_server_relay_send(int sock, char word, const int *files, int count);
extern int	shared_server_relay_receive(int sock, int *files);
extern int	shared_server_start_keeper(void);
extern bool shared_server_bury_keepers(void);

/* places.c */
extern SharedServerDispatcher *shared_server_self;
extern int	shared_server_first_session(int dispatcher);
extern SharedServerDispatcher *shared_server_dispatcher_of(int session);
extern void shared_server_wake(SharedServerDispatcher *dispatcher);
extern void shared_server_wake_others(bool needy);
extern bool shared_server_is_awake(SharedServerDispatcher *dispatcher, TimestampTz now);
extern int	shared_server_all_workers(void);
extern int	shared_server_all_quitting(TimestampTz now);
extern int	shared_server_other_pools(void);
extern TimestampTz shared_server_last_bind(void);
extern TimestampTz shared_server_last_growth(void);
extern bool shared_server_waits(struct PGPROC *proc);
extern bool shared_server_others_stuck(TimestampTz now);
extern int	shared_server_other_needs(TimestampTz now, SharedServerNeed *neediest);
extern bool shared_server_is_needier(const SharedServerNeed *one, const SharedServerNeed *other);
extern bool shared_server_take_place(int limit, const SharedServerNeed *need, TimestampTz now);
extern bool shared_server_leave_place(int above, TimestampTz now);
extern bool shared_server_leave_only_place(TimestampTz now);
extern int	shared_server_share_of_minimum(uint64 key_hash);

/* handover.c */
extern int	shared_server_gather(void);
extern int	shared_server_take_peer(int gathering);
extern int	shared_server_peer_socket(int dispatcher);
extern void shared_server_forget_peer(int dispatcher);
extern void shared_server_stop_gathering(void);
extern bool shared_server_hand_over(int sock);
extern int	shared_server_join(void);
extern int	shared_server_receive_client(int listener);

/* dispatcher.c */
extern void shared_server_register_dispatchers(void);
extern PGDLLEXPORT void shared_server_dispatcher_main(Datum arg);

#endif							/* SHARED_SERVER_H */
