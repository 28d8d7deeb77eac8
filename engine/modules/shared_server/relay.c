/*-------------------------------------------------------------------------
 *
 * relay.c
 *	  The process that ends TLS, so that sessions which use it can move.
 *
 * The keys of a TLS session cannot be given to another process.  So the relay
 * keeps them, and gives what they protect to whoever holds the other end of a
 * pair of sockets: the dispatcher, which passes it on as it does the socket of
 * a plain client.
 *
 * All that is TLS is the stock code's, with the stock code's settings.  Of what
 * clients say the relay knows how long each message is, no more: it passes on
 * whole ones, so that a client which has said part of one holds no worker.
 *
 * The relay reads what strangers say, so it shares no memory with the server:
 * if it ends, its clients do, and nobody else.  It is forked by the keeper, a
 * process that the dispatcher has forked before it knew of any session and that
 * reads nothing but the dispatcher's requests.  There is another such process:
 * if one ends the other forks its successor, since the dispatcher, which knows
 * of sessions by then, cannot.  None of them has an address that somebody could
 * connect to.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/relay.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "common/ip.h"
#include "lib/ilist.h"
#include "libpq/libpq.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "postmaster/fork_process.h"
#include "postmaster/postmaster.h"
#include "shared_server.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/waiteventset.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#ifndef USE_OPENSSL
#error "the relay needs OpenSSL"
#endif

/* The one file that a process of ours begins with */
#define CONTROL 3

/* Of what a client has said at most so much is here */
#define IN_SIZE (32 * 1024)

/* What fits into one record of TLS */
#define OUT_SIZE (16 * 1024)

/* A certificate that is larger is nobody's */
#define FACTS_MAX (64 * 1024)

/* Handshakes cost a thousand times as much as messages: so many between two looks */
#define HANDSHAKES 8

/* A client does not keep the others waiting for longer than this */
#define ROUNDS 8
#define EVENTS_MAX 128

/*
 * After so many seconds a client that does not read has lost what the server
 * has said before it left; the second is for when the dispatcher has ended.
 */
#define LAST_WORDS 60
#define LAST_WORDS_LATE 5

typedef enum ClientState
{
	CLIENT_HANDSHAKE,
	CLIENT_OPEN,
	CLIENT_GONE,				/* freed when nobody looks at it any more */
} ClientState;

typedef struct Client
{
	dlist_node	link;			/* in "clients", or in "gone" */
	dlist_node	again_link;		/* in "again", if "again" */
	ClientState state;
	Port		port;			/* its socket, and TLS */
	int			pair;			/* towards its worker */
	bool		direct;			/* began with TLS, without asking for it */
	bool		again;			/* there is more to do, whatever the kernel
								 * says */
	bool		told;			/* has the worker been told what it is? */
	bool		client_ended;	/* says nothing more */
	bool		server_ended;
	bool		server_deaf;
	bool		shut;			/* has the worker been told that it says
								 * nothing more? */
	TimestampTz ended_at;		/* since when server_ended */

	/* from the client */
	char	   *in;
	int			in_length;
	int			in_ready;		/* so much of it may go on */
	uint32		in_rest;		/* and so much that has not come yet */
	bool		in_started;		/* has logged in: messages have a type */
	bool		in_raw;			/* what makes no sense is for the worker to
								 * refuse */

	/* to the client */
	char	   *out;
	int			out_start;
	int			out_length;

	/* may there be more than has been read? */
	bool		client_readable;
	bool		pair_readable;

	/* what TLS needs, and what we wait for */
	int			reads_when;
	int			writes_when;
	uint32		client_events;
	uint32		pair_events;
} Client;

static int	control = -1;
static int	epoll_fd = -1;
static bool loaded = false;
static dlist_head clients = DLIST_STATIC_INIT(clients);
static dlist_head gone = DLIST_STATIC_INIT(gone);
static dlist_head again = DLIST_STATIC_INIT(again);
static int	ended_count = 0;
static int	handshakes = 0;

/* Of a keeper: the one that it has forked last */
static pid_t other_keeper = -1;

static pg_noreturn void keeper_main(int sock);

/*
 * A word between the dispatcher, the keeper and the relay, with files.
 */
bool
shared_server_relay_send(int sock, char word, const int *files, int count)
{
	struct iovec iov = {.iov_base = &word,.iov_len = 1};
	union
	{
		struct cmsghdr header;
		char		space[CMSG_SPACE(SHARED_SERVER_RELAY_FILES * sizeof(int))];
	}			rights;
	struct msghdr msg = {.msg_iov = &iov,.msg_iovlen = 1};
	ssize_t		sent;

	if (count > 0)
	{
		struct cmsghdr *cmsg;

		memset(&rights, 0, sizeof(rights));
		msg.msg_control = &rights;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(cmsg), files, count * sizeof(int));
	}
	do
	{
		sent = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (sent < 0 && errno == EINTR);
	return sent == 1;
}

/*
 * Returns the word, 0 at the end, -1 with errno.  Files that did not come are -1.
 */
int
shared_server_relay_receive(int sock, int *files)
{
	char		word;
	struct iovec iov = {.iov_base = &word,.iov_len = 1};
	union
	{
		struct cmsghdr header;
		char		space[CMSG_SPACE(SHARED_SERVER_RELAY_FILES * sizeof(int))];
	}			rights;
	struct msghdr msg = {.msg_iov = &iov,.msg_iovlen = 1};
	struct cmsghdr *cmsg;
	ssize_t		got;

	for (int i = 0; i < SHARED_SERVER_RELAY_FILES; i++)
		files[i] = -1;
	msg.msg_control = &rights;
	msg.msg_controllen = sizeof(rights.space);
	do
	{
		got = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got <= 0)
		return (int) got;
	for (cmsg = CMSG_FIRSTHDR(&msg); cmsg != NULL; cmsg = CMSG_NXTHDR(&msg, cmsg))
	{
		if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
			memcpy(files, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
	}
	return (unsigned char) word;
}

/*
 * Whatever memory anybody else can see: the server's, and what the kernel
 * shares with the processes of the server.  The C library's caches, which nobody
 * can write to, stay.
 */
static void
leave_shared_memory(void)
{
	FILE	   *maps = fopen("/proc/self/maps", "r");
	char		line[1024];
	struct
	{
		void	   *begin;
		size_t		length;
	}			shared[256];
	int			count = 0;

	if (maps == NULL)
		elog(FATAL, "could not open file \"%s\": %m", "/proc/self/maps");
	while (fgets(line, sizeof(line), maps))
	{
		unsigned long begin,
					end;
		char		rights[5];

		if (sscanf(line, "%lx-%lx %4s", &begin, &end, rights) != 3 ||
			rights[1] != 'w' || rights[3] != 's')
			continue;
		if (count == lengthof(shared))
			elog(FATAL, "too many parts of memory are shared");
		shared[count].begin = (void *) begin;
		shared[count++].length = end - begin;
	}
	fclose(maps);
	for (int i = 0; i < count; i++)
	{
		if (munmap(shared[i].begin, shared[i].length) < 0)
			elog(FATAL, "munmap() failed: %m");
	}
}

static void
die_at_once(SIGNAL_ARGS)
{
	_exit(2);
}

/* There is something to wait for; poll() returns */
static void
child_has_ended(SIGNAL_ARGS)
{
}

/*
 * In a process that has just been forked: nothing of the server stays but its
 * settings, its log, and this socket.
 */
static void
leave_server(int sock, const char *name)
{
	on_exit_reset();
	PG_exception_stack = NULL;
	error_context_stack = NULL;
	emit_log_hook = NULL;
	MyProc = NULL;
	MyProcNumber = INVALID_PROC_NUMBER;
	MyBEEntry = NULL;
	MyLatch = NULL;
	shared_server = NULL;
	shared_server_dispatchers = shared_server_self = NULL;
	shared_server_workers = NULL;
	pgstat_reset_wait_event_storage();
	leave_shared_memory();

	if (sock != CONTROL && dup2(sock, CONTROL) < 0)
		elog(FATAL, "dup2() failed: %m");
	/* a client must not get the number of its socket */
	closelog();
	(void) close_range(CONTROL + 1, ~0U, 0);
	(void) fcntl(CONTROL, F_SETFD, FD_CLOEXEC);
	control = CONTROL;

	/* who ends us ends the dispatcher, which we notice; only haste is obeyed */
	pqsignal(SIGHUP, SIG_IGN);
	pqsignal(SIGINT, SIG_IGN);
	pqsignal(SIGTERM, SIG_IGN);
	pqsignal(SIGALRM, SIG_IGN);
	pqsignal(SIGPIPE, SIG_IGN);
	pqsignal(SIGUSR1, SIG_IGN);
	pqsignal(SIGUSR2, SIG_IGN);
	pqsignal(SIGCHLD, SIG_DFL);
	pqsignal(SIGQUIT, die_at_once);
	sigprocmask(SIG_SETMASK, &UnBlockSig, NULL);
	init_ps_display(name);
	set_ps_display("");
}

/* A client may be two files; what the administrator allows is allowed */
static void
allow_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
	{
		files.rlim_cur = files.rlim_max;
		(void) setrlimit(RLIMIT_NOFILE, &files);
	}
}

/*
 * Certificate, key, lists of revocation, versions, ciphers: as the postmaster
 * does it.  What cannot be loaded leaves what there was, if anything: the
 * postmaster's, when this process begins.  Connections keep what they began
 * with.
 */
static void
load_tls(void)
{
	ProcessConfigFile(PGC_SIGHUP);
	if (EnableSSL && secure_initialize(false) == 0)
		loaded = true;
	(void) shared_server_relay_send(control, loaded ? SHARED_SERVER_RELAY_READY : SHARED_SERVER_RELAY_UNABLE,
									NULL, 0);
}

static void
watch(Client *client, int file, bool is_pair, uint32 wanted)
{
	uint32	   *events = is_pair ? &client->pair_events : &client->client_events;
	struct epoll_event event = {.events = wanted};

	if (*events == wanted)
		return;
	event.data.u64 = (uint64) (uintptr_t) client | is_pair;
	if (epoll_ctl(epoll_fd, wanted == 0 ? EPOLL_CTL_DEL : *events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD,
				  file, &event) < 0)
		elog(FATAL, "could not watch a client: %m");
	*events = wanted;
}

/*
 * Both sides are left; the memory is freed when no event can be about it.
 */
static void
leave_client(Client *client)
{
	if (client->state == CLIENT_GONE)
		return;
	watch(client, client->port.sock, false, 0);
	watch(client, client->pair, true, 0);
	client->state = CLIENT_GONE;
	if (client->again)
		dlist_delete(&client->again_link);
	if (client->server_ended)
		ended_count--;
	be_tls_close(&client->port);

	/* unread, what it says would take back what is under way to it */
	(void) shutdown(client->port.sock, SHUT_WR);
	for (int i = 0; i < 16; i++)
	{
		if (recv(client->port.sock, NULL, 1024 * 1024, MSG_TRUNC | MSG_DONTWAIT) <= 0)
			break;
	}
	close(client->port.sock);
	close(client->pair);
	if (client->in)
		pfree(client->in);
	if (client->out)
		pfree(client->out);
	pfree(client->port.remote_host);
	dlist_delete(&client->link);
	dlist_push_tail(&gone, &client->link);
}

static void
free_gone(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &gone)
	{
		dlist_delete(iter.cur);
		pfree(dlist_container(Client, link, iter.cur));
	}
}

/*
 * How much of what has come may go on?  Whole messages; of one that is long,
 * everything once SHARED_SERVER_MESSAGE_AWAITED bytes of it are here.
 */
static void
find_ready(Client *client)
{
	while (client->in_ready < client->in_length)
	{
		const char *next = client->in + client->in_ready;
		uint32		there = client->in_length - client->in_ready;
		uint32		head = client->in_started ? 5 : 4;
		uint32		length;
		uint32		code;

		if (client->in_raw || client->client_ended)
			client->in_rest = there;
		if (client->in_rest > 0)
		{
			uint32		part = Min(client->in_rest, there);

			client->in_ready += part;
			client->in_rest -= part;
			continue;
		}
		if (there < head)
			return;
		memcpy(&length, next + head - 4, sizeof(length));
		length = pg_ntoh32(length);
		if (length < 4 || length == PG_UINT32_MAX ||
			(!client->in_started && length > MAX_STARTUP_PACKET_LENGTH))
		{
			client->in_raw = true;
			continue;
		}
		length += head - 4;
		if (there < length && there < SHARED_SERVER_MESSAGE_AWAITED)
			return;
		client->in_rest = length;
		if (client->in_started)
			continue;

		/* who asks for more encryption is refused, and may go on */
		code = 0;
		if (length == 8)
			memcpy(&code, next + 4, sizeof(code));
		code = pg_ntoh32(code);
		client->in_started = code != NEGOTIATE_SSL_CODE && code != NEGOTIATE_GSS_CODE;
	}
}

/*
 * What the worker must know comes with the first that the client says, at once:
 * who sees something of it has all of it.
 */
static bool
tell_worker(Client *client)
{
	StringInfoData all;
	uint32		length;
	ssize_t		sent;

	initStringInfo(&all);
	appendBinaryStringInfo(&all, "\0\0\0\0", 4);
	shared_server_append_tls(&all, &client->port);
	length = all.len - 4;
	memcpy(all.data, &length, sizeof(length));
	if (all.len > FACTS_MAX)
	{
		ereport(COMMERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("SSL certificate of a client is too large")));
		pfree(all.data);
		return false;
	}
	appendBinaryStringInfo(&all, client->in, client->in_ready);
	sent = send(client->pair, all.data, all.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent != all.len)
	{
		pfree(all.data);
		return false;
	}
	pfree(all.data);
	client->told = true;

	/* it has the names by itself */
	if (client->port.peer)
		X509_free(client->port.peer);
	client->port.peer = NULL;
	if (client->port.peer_cn)
		pfree(client->port.peer_cn);
	if (client->port.peer_dn)
		pfree(client->port.peer_dn);
	client->port.peer_cn = client->port.peer_dn = NULL;
	return true;
}

static void
drop_in(Client *client, int count)
{
	client->in_length -= count;
	client->in_ready -= count;
	memmove(client->in, client->in + count, client->in_length);
}

/*
 * From the client to its worker.  Returns whether there was anything.
 */
static bool
carry_in(Client *client)
{
	bool		moved = false;

	if (client->client_readable && !client->client_ended && !client->server_deaf &&
		client->in_length < IN_SIZE)
	{
		int			room = IN_SIZE - client->in_length;
		ssize_t		got;

		if (client->in == NULL)
			client->in = MemoryContextAlloc(TopMemoryContext, IN_SIZE);
		got = be_tls_read(&client->port, client->in + client->in_length, room, &client->reads_when);
		client->client_readable = got == room || (got > 0 && SSL_has_pending(client->port.ssl));
		if (got > 0)
		{
			client->in_length += got;
			moved = true;
		}
		else if (got == 0 || client->port.last_read_was_eof)
			client->client_ended = true;
		else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
		{
			/* what it had said before is lost natively too */
			leave_client(client);
			return false;
		}
	}
	find_ready(client);
	if (client->in_ready > 0 && !client->server_deaf)
	{
		if (!client->told)
		{
			if (!tell_worker(client))
			{
				leave_client(client);
				return false;
			}
			drop_in(client, client->in_ready);
			moved = true;
		}
		else
		{
			ssize_t		sent = send(client->pair, client->in, client->in_ready,
									MSG_NOSIGNAL | MSG_DONTWAIT);

			if (sent > 0)
			{
				drop_in(client, sent);
				moved = true;
			}
			else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
				client->server_deaf = true;
		}
	}
	if (client->server_deaf)
		client->in_length = client->in_ready = 0;
	if (client->client_ended && client->in_length == 0 && !client->shut)
	{
		(void) shutdown(client->pair, SHUT_WR);
		client->shut = true;
	}
	return moved;
}

/*
 * From the worker to the client.
 */
static bool
carry_out(Client *client)
{
	bool		moved = false;

	if (client->pair_readable && !client->server_ended && client->out_length == 0)
	{
		ssize_t		got;

		if (client->out == NULL)
			client->out = MemoryContextAlloc(TopMemoryContext, OUT_SIZE);
		got = recv(client->pair, client->out, OUT_SIZE, MSG_DONTWAIT);
		client->pair_readable = got == OUT_SIZE;
		if (got > 0)
		{
			client->out_start = 0;
			client->out_length = got;
			moved = true;
		}
		else if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
		{
			client->server_ended = true;
			client->ended_at = GetCurrentTimestamp();
			ended_count++;
		}
	}
	if (client->out_length > 0)
	{
		ssize_t		sent = be_tls_write(&client->port, client->out + client->out_start,
										client->out_length, &client->writes_when);

		if (sent > 0)
		{
			client->out_start += sent;
			client->out_length -= sent;
			moved = true;
		}
		else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
		{
			leave_client(client);
			return false;
		}
	}
	if (client->server_ended && client->out_length == 0)
	{
		leave_client(client);
		return false;
	}
	return moved;
}

static uint32
events_for(int waitfor, uint32 otherwise)
{
	return waitfor == WL_SOCKET_READABLE ? EPOLLIN :
		waitfor == WL_SOCKET_WRITEABLE ? EPOLLOUT : otherwise;
}

/*
 * All that can be done for a client now, and what to wait for then.
 */
static void
serve_client(Client *client)
{
	uint32		from_client = 0;
	uint32		from_pair = 0;
	bool		moved = true;

	for (int round = 0; moved && round < ROUNDS; round++)
	{
		moved = carry_in(client);
		if (client->state != CLIENT_GONE)
			moved |= carry_out(client);
		if (client->state == CLIENT_GONE)
			return;
	}
	if (moved != client->again)
	{
		if (moved)
			dlist_push_tail(&again, &client->again_link);
		else
			dlist_delete(&client->again_link);
		client->again = moved;
	}

	/* who is silent costs no buffers */
	if (client->in_length == 0 && client->in)
	{
		pfree(client->in);
		client->in = NULL;
	}
	if (client->out_length == 0 && client->out)
	{
		pfree(client->out);
		client->out = NULL;
	}

	if (!client->client_ended && !client->server_deaf && client->in_length < IN_SIZE)
		from_client |= events_for(client->reads_when, EPOLLIN);
	if (client->out_length > 0)
		from_client |= events_for(client->writes_when, EPOLLOUT);
	if (!client->server_ended && client->out_length == 0)
		from_pair |= EPOLLIN;
	if (client->in_ready > 0 && !client->server_deaf)
		from_pair |= EPOLLOUT;
	watch(client, client->port.sock, false, from_client);
	watch(client, client->pair, true, from_pair);
}

/*
 * Go on with a handshake.
 */
static void
shake_hands(Client *client)
{
	int			result;

	handshakes++;
	result = be_tls_open_server(&client->port);

	if (result == WL_SOCKET_READABLE || result == WL_SOCKET_WRITEABLE)
	{
		/* the other end goes when its time is up */
		watch(client, client->port.sock, false, events_for(result, 0));
		watch(client, client->pair, true, EPOLLRDHUP);
		return;
	}
	if (result == 0 && client->direct && !client->port.alpn_used)
	{
		ereport(COMMERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("received direct SSL connection request without ALPN protocol negotiation extension")));
		result = -1;
	}
	if (result != 0)
	{
		leave_client(client);
		return;
	}
	SSL_set_mode(client->port.ssl, SSL_MODE_RELEASE_BUFFERS);

	/* a record, and what follows it, with one call instead of two each */
	SSL_set_read_ahead(client->port.ssl, 1);
	client->state = CLIENT_OPEN;
	client->client_readable = true;
	serve_client(client);
}

/*
 * A client that has asked for TLS, or begins with it.  The dispatcher has seen
 * as much of what it says.
 */
static bool
begin_client(Client *client)
{
	unsigned char first;
	uint32		request[2];
	int			more;

	if (recv(client->port.sock, &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
		return false;
	if (first == SHARED_SERVER_TLS_HANDSHAKE)
	{
		client->direct = true;
		return true;
	}
	if (recv(client->port.sock, request, sizeof(request), MSG_DONTWAIT) != sizeof(request) ||
		request[0] != pg_hton32(sizeof(request)) || request[1] != pg_hton32(NEGOTIATE_SSL_CODE) ||
		ioctl(client->port.sock, FIONREAD, &more) < 0)
		return false;

	/* it was not the client that has said it, or it does not know better */
	if (more > 0)
	{
		ereport(COMMERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("received unencrypted data after SSL request"),
				 errdetail("This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.")));
		return false;
	}
	return send(client->port.sock, "S", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

static void
take_client(int sock, int pair)
{
	Client	   *client;
	Port	   *port;
	char		host[NI_MAXHOST];
	int			on = 1;

	if (sock < 0 || pair < 0)
	{
		/* no room for more files: it is as if it had not been accepted */
		ereport(LOG,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not take a TLS client: too many open files")));
		if (sock >= 0)
			close(sock);
		if (pair >= 0)
			close(pair);
		return;
	}
	client = MemoryContextAllocZero(TopMemoryContext, sizeof(Client));
	port = &client->port;
	client->pair = pair;
	port->sock = sock;
	port->noblock = true;
	port->raddr.salen = sizeof(port->raddr.addr);
	port->laddr.salen = sizeof(port->laddr.addr);
	dlist_push_tail(&clients, &client->link);
	if (getpeername(sock, (struct sockaddr *) &port->raddr.addr, &port->raddr.salen) < 0 ||
		getsockname(sock, (struct sockaddr *) &port->laddr.addr, &port->laddr.salen) < 0 ||
		pg_getnameinfo_all(&port->raddr.addr, port->raddr.salen, host, sizeof(host),
						   NULL, 0, NI_NUMERICHOST) != 0)
		host[0] = '\0';
	port->remote_host = MemoryContextStrdup(TopMemoryContext, host);
	(void) setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void) setsockopt(sock, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void) pq_setkeepalivesidle(tcp_keepalives_idle, port);
	(void) pq_setkeepalivesinterval(tcp_keepalives_interval, port);
	(void) pq_setkeepalivescount(tcp_keepalives_count, port);
	(void) pq_settcpusertimeout(tcp_user_timeout, port);

	/* messages tell whose they are about */
	MyProcPort = port;
	if (loaded && host[0] != '\0' && begin_client(client))
	{
		watch(client, sock, false, EPOLLIN);
		watch(client, pair, true, EPOLLRDHUP);
	}
	else
		leave_client(client);
	MyProcPort = NULL;
}

static void
serve_dispatcher(void)
{
	for (int i = 0; i < EVENTS_MAX && control >= 0; i++)
	{
		int			files[SHARED_SERVER_RELAY_FILES];
		int			word = shared_server_relay_receive(control, files);

		if (word < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (word == SHARED_SERVER_RELAY_CLIENT)
			take_client(files[0], files[1]);
		else if (word == SHARED_SERVER_RELAY_RELOAD)
			load_tls();
		else if (word == SHARED_SERVER_RELAY_ALIVE)
			(void) shared_server_relay_send(control, SHARED_SERVER_RELAY_ALIVE, NULL, 0);
		else
		{
			/* no more clients; those that are here go on */
			close(control);
			control = -1;
		}
	}
}

/*
 * Those who do not read what the server has said before it left.
 */
static void
leave_late(void)
{
	TimestampTz now = GetCurrentTimestamp();
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &clients)
	{
		Client	   *client = dlist_container(Client, link, iter.cur);

		if (client->server_ended &&
			TimestampDifferenceExceeds(client->ended_at, now,
									   (control < 0 ? LAST_WORDS_LATE : LAST_WORDS) * 1000))
			leave_client(client);
	}
}

static void
serve_events(int timeout)
{
	struct epoll_event events[EVENTS_MAX];
	int			count = epoll_wait(epoll_fd, events, EVENTS_MAX, timeout);

	handshakes = 0;
	for (int i = 0; i < count; i++)
	{
		bool		is_pair = (events[i].data.u64 & 1) != 0;
		Client	   *client = (Client *) (uintptr_t) (events[i].data.u64 & ~UINT64CONST(1));

		if (client == NULL)
		{
			serve_dispatcher();
			continue;
		}
		MyProcPort = &client->port;
		if (client->state == CLIENT_OPEN)
		{
			/* what has been read of TLS may have to be, to write */
			client->client_readable |= !is_pair;
			client->pair_readable |= is_pair;
			serve_client(client);
		}
		else if (client->state == CLIENT_HANDSHAKE && is_pair)
			leave_client(client);
		else if (client->state == CLIENT_HANDSHAKE && handshakes < HANDSHAKES)
			shake_hands(client);
		MyProcPort = NULL;
	}
}

static pg_noreturn void
relay_main(int sock)
{
	struct epoll_event event = {.events = EPOLLIN};
	MemoryContext round;

	leave_server(sock, "shared server TLS relay");
	allow_files();
	loaded = LoadedSSL;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, control, &event) < 0)
		elog(FATAL, "could not watch the dispatcher: %m");
	load_tls();

	/* what lives longer than a round is allocated elsewhere */
	round = AllocSetContextCreate(TopMemoryContext, "relay", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(round);
	while (control >= 0 || !dlist_is_empty(&clients))
	{
		serve_events(!dlist_is_empty(&again) ? 0 : ended_count > 0 ? 1000 : -1);

		/* each once: who has still more goes to the end */
		for (int i = 0; i < EVENTS_MAX && !dlist_is_empty(&again); i++)
		{
			Client	   *client = dlist_container(Client, again_link, dlist_pop_head_node(&again));

			client->again = false;
			MyProcPort = &client->port;
			serve_client(client);
			MyProcPort = NULL;
		}
		if (ended_count > 0)
			leave_late();
		free_gone();
		MemoryContextReset(round);
	}
	_exit(0);
}

/*
 * Fork a relay, or another keeper, and give the dispatcher the socket by which
 * to reach it.
 */
static void
start_child(char word)
{
	int			pair[2];
	pid_t		pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
	{
		elog(LOG, "could not create a pair of sockets: %m");
		return;
	}
	pid = fork_process();
	if (pid == 0 && word == SHARED_SERVER_RELAY_KEEPER)
		keeper_main(pair[1]);
	if (pid == 0)
		relay_main(pair[1]);
	if (pid < 0)
		elog(LOG, "could not fork a process for TLS: %m");
	else
		(void) shared_server_relay_send(control, word, pair, 1);
	if (word == SHARED_SERVER_RELAY_KEEPER)
		other_keeper = pid;
	close(pair[0]);
	close(pair[1]);
}

static void
bury_relays(void)
{
	pid_t		pid;
	int			status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
	{
		/* the dispatcher sees to it, and says so */
		if (pid == other_keeper)
			continue;
		if (WIFSIGNALED(status))
			ereport(LOG,
					(errmsg("TLS relay (PID %d) was terminated by signal %d: %s",
							(int) pid, WTERMSIG(status), pg_strsignal(WTERMSIG(status))),
					 errdetail("The sessions of its clients have ended.")));
		else if (WEXITSTATUS(status) != 0)
			ereport(LOG,
					(errmsg("TLS relay (PID %d) exited with exit code %d",
							(int) pid, WEXITSTATUS(status)),
					 errdetail("The sessions of its clients have ended.")));
	}
}

static pg_noreturn void
keeper_main(int sock)
{
	leave_server(sock, "shared server TLS keeper");
	other_keeper = -1;
	pqsignal(SIGCHLD, child_has_ended);
	for (;;)
	{
		int			files[SHARED_SERVER_RELAY_FILES];
		struct pollfd wait = {.fd = control,.events = POLLIN};
		int			word;

		/* a child that ends just before is seen to a moment later */
		(void) poll(&wait, 1, 10 * 1000);
		bury_relays();
		word = shared_server_relay_receive(control, files);
		if (word == SHARED_SERVER_RELAY_BEGIN || word == SHARED_SERVER_RELAY_KEEPER)
			start_child(word);
		else if (word == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
			_exit(0);
	}
}

/*
 * Called by the dispatcher before it has any session.  Returns the socket of a
 * keeper, or -1.
 */
int
shared_server_start_keeper(void)
{
	int			pair[2];
	pid_t		pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
	{
		elog(LOG, "could not create a pair of sockets: %m");
		return -1;
	}
	pid = fork_process();
	if (pid == 0)
		keeper_main(pair[1]);
	close(pair[1]);
	if (pid < 0)
	{
		elog(LOG, "could not fork the keeper of the TLS relay: %m");
		close(pair[0]);
		return -1;
	}
	return pair[0];
}

/*
 * Has one of those ended that the dispatcher has forked?  Not to be asked again
 * for the same; it has no other children.
 */
bool
shared_server_bury_keepers(void)
{
	return waitpid(-1, NULL, WNOHANG) != 0;
}
