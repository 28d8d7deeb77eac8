/*-------------------------------------------------------------------------
 *
 * copies.c
 *	  A directory of copies as a source: pages and WAL of a primary at rest.
 *
 * When one power failure has torn a primary and its standbys, neither can ask
 * the other.  But the files of the primary are a source as good as a running
 * one, as long as nobody starts it (R21): somebody brings the whole pages of
 * what the standby lacks, and the WAL, into a directory here.  Its answers have
 * the shape of a server's, so that nothing that comes from it is checked less.
 *
 *	  origin	 header of the primary's list of torn blocks (torn_list.c)
 *	  pages		 a CopyRecord for each page, in any order
 *	  wal/		 segments
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/copies.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "catalog/pg_type_d.h"
#include "lib/stringinfo.h"
#include "port/pg_bswap.h"
#include "postmaster/startup.h"
#include "repair.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "utils/pg_crc.h"

/* A header is far shorter */
#define ORIGIN_MAX 4096

/* In a record and in an answer: the server has not this block */
#define NO_BLOCK 0xFFFFFFFF

/* In network byte order */
typedef struct CopyRecord
{
	uint32		spcOid;
	uint32		dbOid;
	uint32		relNumber;
	uint32		forknum;
	uint32		blkno;
	uint32		length;			/* BLCKSZ, or NO_BLOCK */
	char		page[BLCKSZ];	/* zeroes if there is no block */
	uint32		crc;			/* CRC-32 of all before it */
} CopyRecord;

typedef struct CopyEntry
{
	PageRepairBlock block;		/* hash key, must be first */
	int64		number;			/* of the record */
} CopyEntry;

struct PageCopies
{
	PageSourceHeader header;
	HTAB	   *entries;		/* NULL: there are no pages */
	int			fd;
};

/*
 * Open a file of the directory.  Whoever brought it may have left anything
 * there: a link leads out of it, and a pipe would be waited for.
 */
static int
open_copy(const char *path)
{
	int			fd = OpenTransientFile(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | PG_BINARY);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)))
	{
		CloseTransientFile(fd);
		errno = EINVAL;
		fd = -1;
	}
	return fd;
}

/*
 * Read a line "name: value" of the header, which must be the next one.
 */
static const char *
next_value(char **at, const char *name)
{
	char	   *line = *at;
	char	   *end = strchr(line, '\n');
	Size		length = strlen(name);

	if (end == NULL || strncmp(line, name, length) != 0 || strncmp(line + length, ": ", 2) != 0)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return line + length + 2;
}

static bool
read_number(char **at, const char *name, uint64 *value)
{
	const char *number = next_value(at, name);
	char	   *end;

	if (number == NULL || *number < '0' || *number > '9')
		return false;
	errno = 0;
	*value = strtou64(number, &end, 10);
	return errno == 0 && *end == '\0';
}

static bool
read_position(char **at, const char *name, XLogRecPtr *value)
{
	const char *text = next_value(at, name);
	uint32		high;
	uint32		low;
	int			length = 0;

	if (text == NULL || sscanf(text, "%X/%X%n", &high, &low, &length) != 2 || text[length] != '\0')
		return false;
	*value = ((uint64) high << 32) | low;
	return true;
}

/*
 * Take the header of the origin's list apart.  Returns false, and why, if that
 * is not what it is.
 */
static bool
parse_origin(char *text, PageSourceHeader *header, char *why, Size why_size)
{
	char	   *at = text;
	char	   *crc_line = strstr(text, "\ncrc32: ");
	const char *value;
	uint64		version;
	uint64		timeline;
	uint64		segment_size;
	uint64		nblocks;
	uint32		stored;
	XLogRecPtr	consistent;
	pg_crc32	crc;

	strlcpy(why, "its file \"origin\" is damaged", why_size);
	if (crc_line == NULL || sscanf(crc_line, "\ncrc32: %X", &stored) != 1)
		return false;
	INIT_TRADITIONAL_CRC32(crc);
	COMP_TRADITIONAL_CRC32(crc, text, crc_line + 1 - text);
	FIN_TRADITIONAL_CRC32(crc);
	if (crc != stored)
		return false;
	if (!read_number(&at, "version", &version) || version != 1)
	{
		strlcpy(why, "its file \"origin\" is of another release", why_size);
		return false;
	}
	if (!read_number(&at, "system identifier", &header->system_identifier) ||
		(value = next_value(&at, "role")) == NULL)
		return false;
	if (strcmp(value, "primary") != 0)
	{
		strlcpy(why, "it is not of a primary", why_size);
		return false;
	}
	if (!read_number(&at, "timeline", &timeline) ||
		!read_position(&at, "redo", &header->start_lsn) ||
		!read_position(&at, "end", &header->end_lsn) ||
		!read_position(&at, "consistent", &consistent) ||
		!read_number(&at, "segment size", &segment_size) ||
		!read_number(&at, "blocks", &nblocks))
		return false;
	if (segment_size != (uint64) wal_segment_size)
	{
		strlcpy(why, "its WAL segments are of another size", why_size);
		return false;
	}
	header->timeline = (TimeLineID) timeline;
	header->flush_lsn = header->end_lsn;
	header->in_recovery = false;
	header->streaming = false;
	/* Without them there is no list */
	header->data_checksums = true;
	return true;
}

/*
 * Which block is in which record.
 */
static bool
index_pages(PageCopies *copies, char *why, Size why_size)
{
	HASHCTL		control = {.keysize = sizeof(PageRepairBlock),.entrysize = sizeof(CopyEntry),
	.hcxt = CurrentMemoryContext};
	struct stat st;

	StaticAssertStmt(sizeof(PageRepairBlock) == 5 * sizeof(uint32), "the key must not have padding");
	StaticAssertStmt(sizeof(CopyRecord) == BLCKSZ + 7 * sizeof(uint32), "the record must not have padding");
	copies->fd = open_copy(COPIES_DIR "/pages");
	if (copies->fd < 0 && errno == ENOENT)
		return true;
	if (copies->fd < 0)
	{
		snprintf(why, why_size, "its file \"pages\" cannot be opened: %s", strerror(errno));
		return false;
	}
	if (fstat(copies->fd, &st) != 0 || st.st_size % sizeof(CopyRecord) != 0)
	{
		strlcpy(why, "its file \"pages\" is not complete", why_size);
		return false;
	}
	copies->entries = hash_create("page repair copies", 1024, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	for (int64 number = 0; number < (int64) (st.st_size / sizeof(CopyRecord)); number++)
	{
		uint32		key[5];
		PageRepairBlock block;
		CopyEntry  *entry;

		if (number % 1024 == 0)
			ProcessStartupProcInterrupts();
		if (pg_pread(copies->fd, key, sizeof(key), number * sizeof(CopyRecord)) != sizeof(key))
		{
			strlcpy(why, "its file \"pages\" cannot be read", why_size);
			return false;
		}
		block.rlocator.spcOid = pg_ntoh32(key[0]);
		block.rlocator.dbOid = pg_ntoh32(key[1]);
		block.rlocator.relNumber = pg_ntoh32(key[2]);
		block.forknum = pg_ntoh32(key[3]);
		block.blkno = pg_ntoh32(key[4]);
		entry = hash_search(copies->entries, &block, HASH_ENTER, NULL);
		entry->number = number;
	}
	return true;
}

/*
 * Open the directory.  Returns false if there is none; if it is of no use, the
 * source is refused and says why.
 */
bool
copies_open(PageSource *source)
{
	PageCopies *copies;
	char	   *text;
	ssize_t		length;
	int			fd = open_copy(COPIES_DIR "/origin");

	if (fd < 0 && errno == ENOENT)
		return false;
	memset(source, 0, sizeof(*source));
	source->conninfo = pstrdup("");
	source->name = pstrdup(COPIES_DIR);
	copies = palloc0(sizeof(PageCopies));
	copies->fd = -1;
	source->copies = copies;
	text = palloc0(ORIGIN_MAX);

	length = fd < 0 ? -1 : pg_pread(fd, text, ORIGIN_MAX - 1, 0);
	if (length < 0)
		snprintf(source->why, sizeof(source->why), "its file \"origin\" cannot be read: %s", strerror(errno));
	if (fd >= 0)
		CloseTransientFile(fd);
	if (length < 0 || !parse_origin(text, &copies->header, source->why, sizeof(source->why)) ||
		!index_pages(copies, source->why, sizeof(source->why)))
		source->refused = true;
	else
		source->why[0] = '\0';
	pfree(text);
	if (source->refused)
		ereport(LOG,
				(errmsg("page repair source \"%s\" is refused: %s", source->name, source->why)));
	return true;
}

/*
 * Nothing more is wanted of it.
 */
void
copies_close(PageSource *source)
{
	PageCopies *copies = source->copies;

	if (copies->entries)
		hash_destroy(copies->entries);
	if (copies->fd >= 0)
		CloseTransientFile(copies->fd);
	pfree(copies);
	source->copies = NULL;
}

/*
 * The copy of a block: its length as in an answer, 0 when there is none that
 * could be used.
 */
static uint32
read_copy(PageCopies *copies, const PageRepairBlock *block, char *page)
{
	CopyEntry  *entry = copies->entries ? hash_search(copies->entries, block, HASH_FIND, NULL) : NULL;
	CopyRecord	record;
	pg_crc32	crc;

	if (entry == NULL ||
		pg_pread(copies->fd, &record, sizeof(record), entry->number * sizeof(record)) != sizeof(record))
		return 0;
	INIT_TRADITIONAL_CRC32(crc);
	COMP_TRADITIONAL_CRC32(crc, &record, offsetof(CopyRecord, crc));
	FIN_TRADITIONAL_CRC32(crc);
	if (crc != pg_ntoh32(record.crc))
		return 0;
	if (pg_ntoh32(record.length) == NO_BLOCK)
		return NO_BLOCK;
	if (pg_ntoh32(record.length) != BLCKSZ)
		return 0;
	memcpy(page, record.page, BLCKSZ);
	return BLCKSZ;
}

/*
 * A page of WAL, as above.
 */
static uint32
read_wal_page(TimeLineID timeline, uint64 number, char *page)
{
	uint64		pages_of_segment = wal_segment_size / XLOG_BLCKSZ;
	char		name[MAXFNAMELEN];
	char		path[MAXPGPATH];
	ssize_t		got;
	int			fd;

	XLogFileName(name, timeline, number / pages_of_segment, wal_segment_size);
	snprintf(path, sizeof(path), "%s/wal/%s", COPIES_DIR, name);
	fd = open_copy(path);
	if (fd < 0)
		return errno == ENOENT ? NO_BLOCK : 0;
	got = pg_pread(fd, page, XLOG_BLCKSZ, (off_t) (number % pages_of_segment) * XLOG_BLCKSZ);
	CloseTransientFile(fd);
	return got == XLOG_BLCKSZ ? XLOG_BLCKSZ : 0;
}

static void
add_uint32(StringInfo array, uint32 value)
{
	value = pg_hton32(value);
	appendBinaryStringInfo(array, &value, sizeof(value));
}

/*
 * Begin a bytea[] in binary form.
 */
static void
begin_pages(StringInfo array, int npages)
{
	initStringInfo(array);
	add_uint32(array, npages > 0 ? 1 : 0);
	add_uint32(array, 0);
	add_uint32(array, BYTEAOID);
	if (npages == 0)
		return;
	add_uint32(array, npages);
	add_uint32(array, 1);
}

static void
add_page(StringInfo array, uint32 length, const char *page)
{
	add_uint32(array, length);
	if (length != NO_BLOCK)
		appendBinaryStringInfo(array, page, length);
}

/*
 * Put an answer into the source, in the shape of polar_page_repair_read().
 */
static bool
answer(PageSource *source, StringInfo pages)
{
	static const int lengths[] = {8, 4, 1, 1, 1, 8, 8, 8};
	const PageSourceHeader *header = &source->copies->header;
	const uint64 values[] = {header->system_identifier, header->timeline, header->in_recovery,
	header->streaming, header->data_checksums, header->start_lsn, header->end_lsn, header->flush_lsn};
	PGresAttDesc columns[lengthof(lengths) + 1] = {0};
	PGresult   *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	bool		good;

	for (int i = 0; i < lengthof(columns); i++)
	{
		columns[i].name = "";
		columns[i].format = 1;
	}
	good = result != NULL && PQsetResultAttrs(result, lengthof(columns), columns);
	for (int i = 0; i < lengthof(lengths) && good; i++)
	{
		uint64		value = pg_hton64(values[i]);

		good = PQsetvalue(result, 0, i, (char *) &value + sizeof(value) - lengths[i], lengths[i]);
	}
	good = good && PQsetvalue(result, 0, lengthof(lengths), pages->data, pages->len);
	pfree(pages->data);
	if (!good)
	{
		PQclear(result);
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	}
	source->result = result;
	source->busy = true;
	return true;
}

/*
 * As page_source_send(); the answer is there at once.
 */
bool
copies_send(PageSource *source, const PageRepairBlock *blocks, int nblocks)
{
	StringInfoData pages;
	PGAlignedBlock page;

	begin_pages(&pages, nblocks);
	for (int i = 0; i < nblocks; i++)
		add_page(&pages, read_copy(source->copies, &blocks[i], page.data), page.data);
	return answer(source, &pages);
}

/*
 * As page_source_send_wal().
 */
bool
copies_send_wal(PageSource *source, TimeLineID timeline, uint64 first_page, int npages)
{
	StringInfoData pages;
	PGAlignedXLogBlock page;

	begin_pages(&pages, npages);
	for (int i = 0; i < npages; i++)
		add_page(&pages, read_wal_page(timeline, first_page + i, page.data), page.data);
	return answer(source, &pages);
}
