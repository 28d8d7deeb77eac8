/*-------------------------------------------------------------------------
 *
 * source.c
 *	  The client's side of a page repair source.
 *
 * Used by the process that recovers and by the guard.  Nothing in here waits
 * without a deadline, and a source that does not answer is an ordinary result,
 * never an error: the caller has others to ask.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/source.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlogutils.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "page_repair.h"
#include "port/pg_bswap.h"
#include "postmaster/startup.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define SOURCE_QUERY \
	"SELECT system_identifier, timeline, in_recovery, streaming, data_checksums," \
	" start_lsn, end_lsn, flush_lsn, pages" \
	" FROM pg_catalog.polar_page_repair_read($1::oid[], $2::oid[], $3::oid[], $4::int4[], $5::int8[])"

static const Oid source_parameter_types[5] = {0};

/* SQLSTATE 22023, invalid_parameter_value */
#define SOURCE_INVALID_PARAMETER "22023"

/* One answer more than this late means that the source is gone */
#define SOURCE_CONNECT_SECONDS "5"

static void
source_fail(PageSource *source, const char *why)
{
	int			length;

	strlcpy(source->why, why, sizeof(source->why));

	/*
	 * libpq's messages end with a newline and may have several lines, those
	 * of its hints with a tab before them
	 */
	length = strlen(source->why);
	while (length > 0 && source->why[length - 1] == '\n')
		source->why[--length] = '\0';
	for (char *c = source->why; *c; c++)
	{
		if (*c == '\n')
			*c = c[1] == '\t' ? '.' : ' ';
		else if (*c == '\t')
			*c = ' ';
	}
	page_source_disconnect(source);
	source->next_try = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 1000);
}

/*
 * Take the list of connection strings apart.  With "sources" NULL only check
 * it.  Returns false and an error when it makes no sense.  Memory is malloc'ed,
 * because a check hook may be called anywhere.
 */
bool
page_repair_parse_sources(const char *list, PageSource **sources, int *nsources, char **error)
{
	static char message[256];
	const char *start = list ? list : "";
	int			found = 0;

	*error = message;
	if (sources)
	{
		*sources = palloc0(PAGE_REPAIR_MAX_SOURCES * sizeof(PageSource));
		*nsources = 0;
	}
	for (;;)
	{
		const char *end = start;
		bool		quoted = false;
		char	   *conninfo;
		PQconninfoOption *options;
		char	   *why = NULL;

		/* A semicolon within single quotes belongs to a value */
		while (*end && (quoted || *end != ';'))
		{
			if (*end == '\\' && end[1])
				end++;
			else if (*end == '\'')
				quoted = !quoted;
			end++;
		}
		while (start < end && isspace((unsigned char) *start))
			start++;
		if (start < end)
		{
			if (found >= PAGE_REPAIR_MAX_SOURCES)
			{
				snprintf(message, sizeof(message), "There are more than %d connection strings.",
						 PAGE_REPAIR_MAX_SOURCES);
				return false;
			}
			conninfo = strndup(start, end - start);
			options = conninfo ? PQconninfoParse(conninfo, &why) : NULL;
			if (options == NULL)
			{
				/* The message may quote the string, but not its values */
				snprintf(message, sizeof(message), "Connection string %d is not valid: %s",
						 found + 1, why ? why : "out of memory");
				for (char *c = message; *c; c++)
					if (*c == '\n')
						*c = (c[1] ? ' ' : '\0');
				free(why);
				free(conninfo);
				return false;
			}
			if (sources)
			{
				const char *host = NULL;
				const char *port = NULL;
				const char *dbname = NULL;
				PageSource *source = &(*sources)[found];

				for (PQconninfoOption *option = options; option->keyword; option++)
				{
					if (option->val == NULL)
						continue;
					if (strcmp(option->keyword, "host") == 0 ||
						(strcmp(option->keyword, "hostaddr") == 0 && host == NULL))
						host = option->val;
					else if (strcmp(option->keyword, "port") == 0)
						port = option->val;
					else if (strcmp(option->keyword, "dbname") == 0)
						dbname = option->val;
				}
				source->conninfo = pstrdup(conninfo);
				source->name = psprintf("%s:%s/%s", host ? host : "", port ? port : "",
										dbname ? dbname : "");
				*nsources = found + 1;
			}
			PQconninfoFree(options);
			free(conninfo);
			found++;
		}
		if (*end == '\0')
			break;
		start = end + 1;
	}
	return true;
}

/*
 * Close all connections and free the list.
 */
void
page_repair_close_sources(PageSource *sources, int nsources)
{
	for (int i = 0; i < nsources; i++)
	{
		if (sources[i].copies)
			copies_close(&sources[i]);
		page_source_disconnect(&sources[i]);
		pfree(sources[i].conninfo);
		pfree(sources[i].name);
	}
	if (sources)
		pfree(sources);
}

/*
 * Wait until the connection's socket is ready.  Returns false at the deadline.
 */
static bool
source_wait(PageSource *source, int events, TimestampTz deadline)
{
	for (;;)
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
		int			result;

		if (left <= 0)
			return false;

		/*
		 * The startup process's signals do not set this latch, so look after
		 * them now and then.
		 */
		result = WaitLatchOrSocket(MyLatch,
								   events | WL_LATCH_SET | WL_TIMEOUT |
								   (IsUnderPostmaster ? WL_EXIT_ON_PM_DEATH : 0),
								   PQsocket(source->conn), Min(left, 100),
								   PG_WAIT_EXTENSION);
		if (result & WL_LATCH_SET)
			ResetLatch(MyLatch);
		if (InRecovery)
			ProcessStartupProcInterrupts();
		else
			CHECK_FOR_INTERRUPTS();
		if (result & events)
			return true;
	}
}

/*
 * Begin to connect.  Only the lookup of a host's name may take its time.
 */
static bool
source_connect_start(PageSource *source)
{
	/* What stands before the connection string is a default for it */
	const char *const keywords[] = {"fallback_application_name", "connect_timeout", "dbname", NULL};
	const char *const values[] = {"page_repair", SOURCE_CONNECT_SECONDS, source->conninfo, NULL};

	if (source->refused || GetCurrentTimestamp() < source->next_try)
		return false;
	if (!AcquireExternalFD())
	{
		source_fail(source, "too many open files");
		return false;
	}
	source->conn = PQconnectStartParams(keywords, values, 1);
	if (source->conn == NULL)
	{
		ReleaseExternalFD();
		source_fail(source, "out of memory");
		return false;
	}
	if (PQstatus(source->conn) == CONNECTION_BAD)
	{
		source_fail(source, PQerrorMessage(source->conn));
		return false;
	}
	source->connecting = true;
	source->polling = PGRES_POLLING_WRITING;
	return true;
}

/*
 * Go on with connecting, as the socket is ready.  Returns false if it failed.
 */
static bool
source_connect_step(PageSource *source)
{
	source->polling = PQconnectPoll(source->conn);
	if (source->polling != PGRES_POLLING_FAILED && source->polling != PGRES_POLLING_OK)
		return true;
	if (source->polling == PGRES_POLLING_FAILED || PQsetnonblocking(source->conn, 1) != 0)
	{
		source_fail(source, PQerrorMessage(source->conn));
		return false;
	}
	source->connecting = false;
	return true;
}

/*
 * What the socket has to be ready for before anything can go on.
 */
int
page_source_events(PageSource *source)
{
	if (!source->connecting)
		return source->unsent ? WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE : WL_SOCKET_READABLE;
	if (source->polling == PGRES_POLLING_READING)
		return WL_SOCKET_READABLE;
	return PQstatus(source->conn) == CONNECTION_STARTED ? WL_SOCKET_CONNECTED : WL_SOCKET_WRITEABLE;
}

/*
 * Connect, unless that has been done, or failed less than a second ago.
 */
bool
page_source_connect(PageSource *source, TimestampTz deadline)
{
	if (source->refused)
		return false;
	if (source->copies)
		return true;
	if (source->conn == NULL && !source_connect_start(source))
		return false;
	while (source->connecting)
	{
		if (!source_wait(source, page_source_events(source), deadline))
		{
			source_fail(source, "timed out while connecting");
			return false;
		}
		if (!source_connect_step(source))
			return false;
	}
	return true;
}

/*
 * Close the connection, if there is one.
 */
void
page_source_disconnect(PageSource *source)
{
	if (source->conn == NULL)
		return;
	PQclear(source->result);
	source->result = NULL;
	PQfinish(source->conn);
	ReleaseExternalFD();
	source->conn = NULL;
	source->busy = false;
	source->connecting = false;
	source->asked_wal = false;
}

/*
 * Send a request with these five arrays, and free them.
 */
static bool
source_send(PageSource *source, StringInfo parameters)
{
	const char *values[5];
	bool		sent;

	Assert(source->conn != NULL && !source->busy);
	for (int p = 0; p < 5; p++)
	{
		appendStringInfoChar(&parameters[p], '}');
		values[p] = parameters[p].data;
	}
	sent = PQsendQueryParams(source->conn, SOURCE_QUERY, 5, source_parameter_types, values,
							 NULL, NULL, 1) == 1;
	for (int p = 0; p < 5; p++)
		pfree(parameters[p].data);
	if (!sent)
	{
		source_fail(source, PQerrorMessage(source->conn));
		return false;
	}
	source->busy = true;
	source->unsent = true;
	return true;
}

static void
source_init_arrays(StringInfo parameters)
{
	for (int p = 0; p < 5; p++)
	{
		initStringInfo(&parameters[p]);
		appendStringInfoChar(&parameters[p], '{');
	}
}

static void
source_add_element(StringInfo array, int64 value)
{
	appendStringInfo(array, "%s" INT64_FORMAT, array->len > 1 ? "," : "", value);
}

/*
 * Ask for these blocks; zero blocks ask how the source is.
 */
bool
page_source_send(PageSource *source, const PageRepairBlock *blocks, int nblocks)
{
	StringInfoData parameters[5];

	if (source->copies)
		return copies_send(source, blocks, nblocks);
	source_init_arrays(parameters);
	for (int i = 0; i < nblocks; i++)
	{
		source_add_element(&parameters[0], blocks[i].rlocator.spcOid);
		source_add_element(&parameters[1], blocks[i].rlocator.dbOid);
		source_add_element(&parameters[2], blocks[i].rlocator.relNumber);
		source_add_element(&parameters[3], blocks[i].forknum);
		source_add_element(&parameters[4], blocks[i].blkno);
	}
	return source_send(source, parameters);
}

/*
 * Ask for pages of WAL, those of XLOG_BLCKSZ from this one on.
 */
bool
page_source_send_wal(PageSource *source, TimeLineID timeline, uint64 first_page, int npages)
{
	StringInfoData parameters[5];

	if (source->copies)
		return copies_send_wal(source, timeline, first_page, npages);
	source_init_arrays(parameters);
	for (int i = 0; i < npages; i++)
	{
		source_add_element(&parameters[0], timeline);
		source_add_element(&parameters[1], 0);
		source_add_element(&parameters[2], 0);
		source_add_element(&parameters[3], PAGE_REPAIR_WAL_FORK);
		source_add_element(&parameters[4], first_page + i);
	}
	source->asked_wal = true;
	return source_send(source, parameters);
}

static uint64
result_uint64(PGresult *result, int column)
{
	uint64		value;

	memcpy(&value, PQgetvalue(result, 0, column), sizeof(value));
	return pg_ntoh64(value);
}

/*
 * Take what has come.  Returns false if the connection has failed; source->busy
 * is false when all of the answer is in source->result.
 */
static bool
source_receive_step(PageSource *source)
{
	int			flushed;

	if (!PQconsumeInput(source->conn) || (flushed = PQflush(source->conn)) < 0)
	{
		source_fail(source, PQerrorMessage(source->conn));
		return false;
	}
	source->unsent = (flushed == 1);
	while (!source->unsent && !PQisBusy(source->conn))
	{
		PGresult   *next = PQgetResult(source->conn);

		if (next == NULL)
		{
			source->busy = false;
			break;
		}
		PQclear(source->result);
		source->result = next;
	}
	return true;
}

/*
 * Look at an answer that is complete.  Returns NULL, and says why in the source,
 * when it is an error or not understood; then the connection is closed.
 */
static PGresult *
source_answer(PageSource *source, PageSourceHeader *header)
{
	static const int lengths[] = {8, 4, 1, 1, 1, 8, 8, 8};
	PGresult   *result = source->result;
	uint32		timeline;

	source->result = NULL;
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);

		/* A release that knows nothing of WAL finds the fork invalid */
		if (source->asked_wal && sqlstate != NULL && strcmp(sqlstate, SOURCE_INVALID_PARAMETER) == 0)
			source->without_wal = true;
		source->asked_wal = false;
		source_fail(source, result ? PQresultErrorMessage(result) : PQerrorMessage(source->conn));
		PQclear(result);
		return NULL;
	}
	if (PQntuples(result) != 1 || PQnfields(result) != lengthof(lengths) + 1)
	{
		PQclear(result);
		source_fail(source, "its answer has another shape");
		return NULL;
	}
	for (int i = 0; i < lengthof(lengths); i++)
	{
		if (PQgetisnull(result, 0, i) || PQfformat(result, i) != 1 ||
			PQgetlength(result, 0, i) != lengths[i])
		{
			PQclear(result);
			source_fail(source, "its answer has another shape");
			return NULL;
		}
	}
	memcpy(&timeline, PQgetvalue(result, 0, 1), sizeof(timeline));
	header->system_identifier = result_uint64(result, 0);
	header->timeline = pg_ntoh32(timeline);
	header->in_recovery = PQgetvalue(result, 0, 2)[0] != 0;
	header->streaming = PQgetvalue(result, 0, 3)[0] != 0;
	header->data_checksums = PQgetvalue(result, 0, 4)[0] != 0;
	header->start_lsn = result_uint64(result, 5);
	header->end_lsn = result_uint64(result, 6);
	header->flush_lsn = result_uint64(result, 7);
	source->asked_wal = false;
	return result;
}

/*
 * Wait for the answer.  Returns NULL, and says why in the source, when there
 * is none or it is an error; then the connection is closed.
 */
PGresult *
page_source_receive(PageSource *source, TimestampTz deadline, PageSourceHeader *header)
{
	Assert(source->busy);
	if (source->copies)
		source->busy = false;
	while (source->busy)
	{
		if (!source_receive_step(source))
			return NULL;
		if (source->busy && !source_wait(source, page_source_events(source), deadline))
		{
			source_fail(source, "timed out while waiting for its answer");
			return NULL;
		}
	}
	return source_answer(source, header);
}

/*
 * Begin to ask a source how it is.  Nothing waits; page_source_proceed() is to
 * be called when the socket is ready for page_source_events().
 */
bool
page_source_ask(PageSource *source)
{
	Assert(!source->busy && !source->connecting);
	return source->conn == NULL ? source_connect_start(source) : page_source_send(source, NULL, 0);
}

/*
 * Go on with such a question.
 */
PageSourceProgress
page_source_proceed(PageSource *source, PageSourceHeader *header)
{
	PGresult   *result;

	if (source->connecting)
	{
		if (!source_connect_step(source))
			return PAGE_SOURCE_FAILED;
		if (source->connecting)
			return PAGE_SOURCE_PENDING;
		return page_source_send(source, NULL, 0) ? PAGE_SOURCE_PENDING : PAGE_SOURCE_FAILED;
	}
	if (!source_receive_step(source))
		return PAGE_SOURCE_FAILED;
	if (source->busy)
		return PAGE_SOURCE_PENDING;
	result = source_answer(source, header);
	PQclear(result);
	return result ? PAGE_SOURCE_ANSWERED : PAGE_SOURCE_FAILED;
}

/*
 * It has not answered in time.
 */
void
page_source_timed_out(PageSource *source)
{
	source_fail(source, source->connecting ? "timed out while connecting" : "timed out while waiting for its answer");
}

/*
 * Find the pages in the answer, a bytea[] in binary form.  A length of -1 says
 * that the source has not the block, 0 that it could not read it.  The pages
 * live as long as the result does.  Returns false when the shape is another.
 */
bool
page_source_pages(PGresult *result, int nblocks, const char **pages, int *lengths)
{
	const char *at = PQgetvalue(result, 0, 8);
	const char *end = at + PQgetlength(result, 0, 8);
	uint32		word[5];

	if (PQgetisnull(result, 0, 8) || end - at < (ptrdiff_t) sizeof(word))
		return false;
	memcpy(word, at, sizeof(word));
	at += sizeof(word);
	if (pg_ntoh32(word[0]) != 1 || pg_ntoh32(word[3]) != (uint32) nblocks)
		return false;
	for (int i = 0; i < nblocks; i++)
	{
		uint32		length;

		if (end - at < (ptrdiff_t) sizeof(length))
			return false;
		memcpy(&length, at, sizeof(length));
		at += sizeof(length);
		lengths[i] = (int) pg_ntoh32(length);
		pages[i] = at;
		if (lengths[i] == -1)
			continue;
		if ((lengths[i] != 0 && lengths[i] != BLCKSZ) || end - at < lengths[i])
			return false;
		at += lengths[i];
	}
	return at == end;
}
