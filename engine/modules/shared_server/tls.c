/*-------------------------------------------------------------------------
 *
 * tls.c
 *	  What a worker knows of a client whose TLS the relay ends.
 *
 * The relay says it once, before the client's first byte: version and cipher,
 * the hash of the server's certificate, and the client's certificate, which it
 * has verified.  The stock code finds all of it in the port, where a handshake
 * of its own would have put it; so it is for pg_hba.conf, SCRAM, certificate
 * authentication, pg_stat_ssl and sslinfo.
 *
 * The addresses are the dispatcher's word: what the relay says of them is not
 * asked for.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/shared_server/tls.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "shared_server.h"
#include "utils/memutils.h"

/* What is said now, as it was said, and what the port has of it */
static StringInfoData said;
static SharedServerAddresses addresses;
static RelayedTls relayed;
static MemoryContext context = NULL;

static void
append_bytes(StringInfo buf, const void *bytes, int length)
{
	shared_server_append_int(buf, length);
	if (length > 0)
		appendBinaryStringInfo(buf, bytes, length);
}

/*
 * The relay's part: what there is to say of a connection whose handshake is
 * done.  A certificate whose hash cannot be told serves all but channel
 * binding, as natively.
 */
void
shared_server_append_tls(StringInfo buf, Port *port)
{
	unsigned char *certificate = NULL;
	char	   *volatile hash = NULL;
	volatile size_t hash_length = 0;
	MemoryContext caller = CurrentMemoryContext;
	int			length = 0;

	PG_TRY();
	{
		size_t		got;

		hash = be_tls_get_certificate_hash(port, &got);
		hash_length = hash ? got : 0;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller);
		FlushErrorState();
	}
	PG_END_TRY();

	if (port->peer_cert_valid)
		length = i2d_X509(port->peer, &certificate);
	if (length < 0)
		elog(FATAL, "could not write a client's certificate");
	shared_server_append_string(buf, be_tls_get_version(port));
	shared_server_append_string(buf, be_tls_get_cipher(port));
	shared_server_append_int(buf, be_tls_get_cipher_bits(port));
	append_bytes(buf, hash, hash_length);
	append_bytes(buf, certificate, length);
	OPENSSL_free(certificate);
}

/*
 * Nothing of a client's TLS stays for the next one.
 */
void
shared_server_forget_tls(Port *port)
{
	if (port->relayed_tls == NULL)
		return;
	be_tls_close(port);
	port->ssl_in_use = port->peer_cert_valid = false;
	port->relayed_tls = NULL;
	MemoryContextReset(context);
}

/*
 * Believe what the relay has said of the client in this port.
 */
bool
shared_server_believe_tls(Port *port, const SharedServerAddresses *from,
						  const char *facts, int length)
{
	MemoryContext old;
	const unsigned char *certificate;
	const char *text;
	int			certificate_length;

	shared_server_forget_tls(port);
	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "shared_server TLS",
										ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	initStringInfo(&said);
	appendBinaryStringInfo(&said, facts, length);
	text = shared_server_get_string(&said);
	relayed.version = text ? pstrdup(text) : NULL;
	text = shared_server_get_string(&said);
	relayed.cipher = text ? pstrdup(text) : NULL;

	relayed.cipher_bits = shared_server_get_int(&said);
	relayed.certificate_hash_len = shared_server_get_int(&said);
	relayed.certificate_hash = shared_server_get_bytes(&said, relayed.certificate_hash_len);
	certificate_length = shared_server_get_int(&said);
	certificate = shared_server_get_bytes(&said, certificate_length);
	MemoryContextSwitchTo(old);

	memcpy(&addresses, from, sizeof(addresses));
	port->raddr = addresses.raddr;
	port->laddr = addresses.laddr;
	port->ssl_in_use = true;
	port->relayed_tls = &relayed;
	if (certificate_length == 0)
		return true;
	port->peer = d2i_X509(NULL, &certificate, certificate_length);
	return port->peer != NULL && be_tls_describe_peer(port) == 0;
}

/*
 * As much of it as another worker must be told.
 */
void
shared_server_append_relayed(StringInfo buf)
{
	if (MyProcPort->relayed_tls == NULL)
	{
		shared_server_append_int(buf, 0);
		return;
	}
	append_bytes(buf, said.data, said.len);
	appendBinaryStringInfo(buf, &addresses, sizeof(addresses));
}

void
shared_server_apply_relayed(StringInfo buf)
{
	SharedServerAddresses from;
	int			length = shared_server_get_int(buf);
	const char *facts;

	shared_server_forget_tls(MyProcPort);
	if (length == 0)
		return;
	facts = shared_server_get_bytes(buf, length);
	shared_server_get_value(buf, &from, sizeof(from));
	if (!shared_server_believe_tls(MyProcPort, &from, facts, length))
		elog(ERROR, "could not read a client's certificate");
}
