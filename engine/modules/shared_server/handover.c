/*-------------------------------------------------------------------------
 *
 * handover.c
 *	  How a client comes from the dispatcher that accepts it to the one that has
 *	  it from then on.
 *
 * The first dispatcher listens on the port: one process has it, so that no two
 * instances can.  It gives each client, before anything is read of it, to the
 * dispatcher with the fewest.  The others come to it by a socket in the data
 * directory; both ends ask the kernel who the other is, and shared memory who
 * that should be.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/handover.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "shared_server.h"
#include "utils/timestamp.h"

/*
 * Files of this directory are in no backup and in no copy of the instance.  The
 * name is relative to the data directory, in which every process of the server
 * is: a full one may be too long for an address.
 */
#define GATHERING PG_STAT_TMP_DIR "/shared_server.socket"

/* Of the one that listens: sockets of the others, and how many clients each was given */
static int	peers[SHARED_SERVER_DISPATCHERS_MAX];
static uint32 handed[SHARED_SERVER_DISPATCHERS_MAX];

static int
gathering_socket(struct sockaddr_un *address)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	strlcpy(address->sun_path, GATHERING, sizeof(address->sun_path));
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/*
 * The process at the other end, if it is the server's OS user's; or 0.
 */
static int
peer_pid(int sock)
{
	struct ucred peer;
	socklen_t	length = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.uid != geteuid())
		return 0;
	return peer.pid;
}

/*
 * Of the one that listens: where the others come.
 */
int
shared_server_gather(void)
{
	struct sockaddr_un address;
	int			sock = gathering_socket(&address);

	for (int i = 0; i < SHARED_SERVER_DISPATCHERS_MAX; i++)
		peers[i] = -1;

	/* what a dispatcher has left that had no time to say goodbye */
	(void) unlink(GATHERING);
	if (sock < 0 || bind(sock, (struct sockaddr *) &address, sizeof(address)) < 0 ||
		chmod(GATHERING, S_IRUSR | S_IWUSR) < 0 ||
		listen(sock, SHARED_SERVER_DISPATCHERS_MAX) < 0)
		ereport(FATAL,
				(errcode_for_socket_access(),
				 errmsg("could not create socket \"%s\" for the other dispatchers: %m", GATHERING)));
	return sock;
}

void
shared_server_stop_gathering(void)
{
	(void) unlink(GATHERING);
}

/*
 * Returns who has come, or -1.  One that comes again has forgotten what it was
 * given before.
 */
int
shared_server_take_peer(int gathering)
{
	int			sock = accept4(gathering, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int			pid;

	if (sock < 0)
		return -1;
	pid = peer_pid(sock);
	for (int i = 1; i < shared_server_dispatcher_count && pid != 0; i++)
	{
		if (shared_server_dispatchers[i].pid != pid)
			continue;
		shared_server_forget_peer(i);
		peers[i] = sock;
		handed[i] = 0;
		return i;
	}
	close(sock);
	return -1;
}

int
shared_server_peer_socket(int dispatcher)
{
	return peers[dispatcher];
}

void
shared_server_forget_peer(int dispatcher)
{
	if (peers[dispatcher] >= 0)
		close(peers[dispatcher]);
	peers[dispatcher] = -1;
}

/*
 * Give a client to the dispatcher with the fewest, if that is another.  Returns
 * whether it has been given away.
 */
bool
shared_server_hand_over(int sock)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		tried[SHARED_SERVER_DISPATCHERS_MAX] = {0};

	for (;;)
	{
		int			best = -1;
		int			fewest = 0;

		for (int i = 0; i < shared_server_dispatcher_count; i++)
		{
			SharedServerDispatcher *dispatcher = &shared_server_dispatchers[i];
			int			clients = dispatcher->clients;

			if (tried[i] || (i > 0 && (peers[i] < 0 || !shared_server_is_awake(dispatcher, now))))
				continue;
			/* and those that are on their way */
			if (i > 0)
				clients += handed[i] - dispatcher->received;
			if (clients < dispatcher->clients_max && (best < 0 || clients < fewest))
			{
				best = i;
				fewest = clients;
			}
		}
		if (best <= 0)
			return false;
		if (shared_server_relay_send(peers[best], SHARED_SERVER_HAND_OVER, &sock, 1))
		{
			handed[best]++;
			return true;
		}
		tried[best] = true;
	}
}

/*
 * Of the others: go to the one that listens.  Returns a socket, or -1.
 */
int
shared_server_join(void)
{
	struct sockaddr_un address;
	int			sock = gathering_socket(&address);
	int			pid;

	if (sock < 0)
		return -1;
	shared_server_self->received = 0;
	if (connect(sock, (struct sockaddr *) &address, sizeof(address)) == 0)
	{
		pid = peer_pid(sock);
		if (pid != 0 && pid == shared_server_dispatchers[0].pid)
			return sock;
	}
	close(sock);
	return -1;
}

/*
 * Returns a client, -1 if there is none now, or -2 when the one that listens has
 * ended.
 */
int
shared_server_receive_client(int listener)
{
	int			files[SHARED_SERVER_RELAY_FILES];
	int			word;

	for (;;)
	{
		word = shared_server_relay_receive(listener, files);
		if (word < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return -1;
		if (word != SHARED_SERVER_HAND_OVER)
			return -2;
		shared_server_self->received++;

		/* no room for another file: it is as if it had not been accepted */
		if (files[0] >= 0)
			return files[0];
	}
}
