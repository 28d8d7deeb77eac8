/*-------------------------------------------------------------------------
 *
 * wire.c
 *	  Messages between the dispatcher and a worker, with sockets in them; and
 *	  a look at what a client has said.
 *
 * Both ends are processes of one server and one build.  Each message is sent
 * with one call; a socket travels with its first byte.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/wire.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libpq/pqcomm.h"
#include "libpq/protocol.h"
#include "port/pg_bswap.h"
#include "shared_server.h"

/*
 * Longer messages are rare, and find room whatever the default of the host's
 * sockets is, if its limit allows it.
 */
#define LONG_MESSAGE (16 * 1024)

static void
make_room(int sock)
{
	int			room = 4 * SHARED_SERVER_IMAGE_MAX;
	int			present;
	socklen_t	length = sizeof(present);

	if (getsockopt(sock, SOL_SOCKET, SO_SNDBUF, &present, &length) == 0 && present < room)
		(void) setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
}

/*
 * Send a message, with a socket unless "passed" is -1.
 *
 * Never waits: a message that does not fit into the socket's buffer at once is
 * for somebody who does not listen, which is the same as nobody.
 */
bool
shared_server_send(int sock, SharedServerMessageKind kind, int session,
				   const void *data, uint32 length, int passed)
{
	SharedServerHeader header = {.kind = kind,.length = length,.session = session};
	struct iovec iov[2];
	struct msghdr msg = {0};
	union
	{
		struct cmsghdr header;
		char		space[CMSG_SPACE(sizeof(int))];
	}			control;
	size_t		total = sizeof(header) + length;
	ssize_t		sent;

	iov[0].iov_base = &header;
	iov[0].iov_len = sizeof(header);
	iov[1].iov_base = unconstify(void *, data);
	iov[1].iov_len = length;
	msg.msg_iov = iov;
	msg.msg_iovlen = length > 0 ? 2 : 1;
	if (passed >= 0)
	{
		struct cmsghdr *cmsg;

		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.space);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &passed, sizeof(int));
	}
	if (total > LONG_MESSAGE)
		make_room(sock);
	do
	{
		sent = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (sent < 0 && errno == EINTR);
	return sent == (ssize_t) total;
}

/*
 * Receive what is there, at most "length" bytes, and the socket that came with
 * it; *passed is left alone without one.  As recv(): 0 at the end, -1 with
 * errno.
 */
ssize_t
shared_server_receive(int sock, void *data, size_t length, int *passed)
{
	struct iovec iov = {.iov_base = data,.iov_len = length};
	union
	{
		struct cmsghdr header;
		char		space[CMSG_SPACE(sizeof(int))];
	}			control;
	struct msghdr msg = {0};
	struct cmsghdr *cmsg;
	ssize_t		got;

	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control.space);
	do
	{
		got = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got;

	for (cmsg = CMSG_FIRSTHDR(&msg); cmsg != NULL; cmsg = CMSG_NXTHDR(&msg, cmsg))
	{
		int			fd;

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS ||
			cmsg->cmsg_len != CMSG_LEN(sizeof(int)))
			continue;
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(int));
		if (passed && *passed < 0)
			*passed = fd;
		else
			close(fd);
	}
	return got;
}

/* Type and length */
#define MESSAGE_HEAD 5

void
shared_server_await_bytes(int sock, int count)
{
	(void) setsockopt(sock, SOL_SOCKET, SO_RCVLOWAT, &count, sizeof(count));
}

/*
 * Is the rest there?  If not, the socket waits for it, unless it will never
 * come.  It may be there although nobody sees it: we look no further than to
 * urgent data, which the kernel counts with the rest.  The stock code passes
 * them over; we would be woken for ever.
 */
static SharedServerSaid
await_rest(int sock, int needed)
{
	struct pollfd hangup = {.fd = sock,.events = POLLRDHUP};
	struct pollfd rest = {.fd = sock,.events = POLLIN};
	int			there;

	/* one that has hung up may have said the rest before, since we looked */
	if (poll(&hangup, 1, 0) != 0)
		return ioctl(sock, FIONREAD, &there) == 0 && there >= needed ?
			SHARED_SERVER_SAID_SOMETHING : SHARED_SERVER_SAID_GOODBYE;
	shared_server_await_bytes(sock, needed);
	if (poll(&rest, 1, 0) == 0)
		return SHARED_SERVER_SAID_PART;
	shared_server_await_bytes(sock, 1);
	return SHARED_SERVER_SAID_SOMETHING;
}

/*
 * What has a client said that has not logged in yet?  As below.
 */
SharedServerSaid
shared_server_peek_startup(int sock)
{
	uint32		length;
	int			there;
	ssize_t		got = recv(sock, &length, sizeof(length), MSG_PEEK | MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ?
			SHARED_SERVER_SAID_NOTHING : SHARED_SERVER_SAID_GOODBYE;
	if (got == 0)
		return SHARED_SERVER_SAID_GOODBYE;
	if (got < sizeof(length))
		return await_rest(sock, sizeof(length));

	/* what is no startup packet, such as TLS, is for the stock code */
	length = pg_ntoh32(length);
	if (length > MAX_STARTUP_PACKET_LENGTH ||
		ioctl(sock, FIONREAD, &there) < 0 || there >= length)
		return SHARED_SERVER_SAID_SOMETHING;
	return await_rest(sock, length);
}

/*
 * Does a client that has said something ask for TLS, or begin with it?
 */
bool
shared_server_peek_tls(int sock)
{
	uint32		said[2];
	ssize_t		got = recv(sock, said, sizeof(said), MSG_PEEK | MSG_DONTWAIT);

	if (got > 0 && *(unsigned char *) said == SHARED_SERVER_TLS_HANDSHAKE)
		return true;
	return got == sizeof(said) && said[0] == pg_hton32(sizeof(said)) &&
		said[1] == pg_hton32(NEGOTIATE_SSL_CODE);
}

/*
 * The same of one whose TLS the relay ends: it passes on all that is needed, or
 * nothing.
 */
SharedServerSaid
shared_server_peek_relayed(int sock)
{
	char		first;
	ssize_t		got = recv(sock, &first, 1, MSG_PEEK | MSG_DONTWAIT);

	if (got > 0)
		return SHARED_SERVER_SAID_SOMETHING;
	return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ?
		SHARED_SERVER_SAID_NOTHING : SHARED_SERVER_SAID_GOODBYE;
}

/*
 * What has a client said that waits between two transactions?  Nothing is
 * read.  If it has said a part of a message, its socket is not readable until
 * the rest is there; that must be undone before anybody reads from it.
 */
SharedServerSaid
shared_server_peek(int sock)
{
	unsigned char said[256];
	ssize_t		got;
	uint32		length;
	int			needed = MESSAGE_HEAD;
	int			there;

	got = recv(sock, said, sizeof(said), MSG_PEEK | MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ?
			SHARED_SERVER_SAID_NOTHING : SHARED_SERVER_SAID_GOODBYE;
	if (got == 0)
		return SHARED_SERVER_SAID_GOODBYE;
	if (got >= MESSAGE_HEAD)
	{
		memcpy(&length, said + 1, sizeof(length));
		length = pg_ntoh32(length);
		if (said[0] == PqMsg_Terminate && length == MESSAGE_HEAD - 1)
			return SHARED_SERVER_SAID_GOODBYE;

		/* a length that cannot be is for the stock code to refuse */
		needed = length < SHARED_SERVER_MESSAGE_AWAITED ?
			(int) length + 1 : SHARED_SERVER_MESSAGE_AWAITED;
		if (got >= needed)
			return SHARED_SERVER_SAID_SOMETHING;
		if (got == sizeof(said) && (ioctl(sock, FIONREAD, &there) < 0 || there >= needed))
			return SHARED_SERVER_SAID_SOMETHING;
	}
	return await_rest(sock, needed);
}
