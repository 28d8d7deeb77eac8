/*-------------------------------------------------------------------------
 *
 * reader.c
 *	  Reads the log: segment by segment, through indexes, and for other
 *	  modules.
 *
 * Nothing that is read is believed before its CRC is right and its lengths fit
 * into what was read.  In a segment that has all its records, one that is
 * missing is damage, never the end.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/reader.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <lz4.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "access/xlogdefs.h"
#include "common/pg_lzcompress.h"
#include "flashback_log.h"
#include "miscadmin.h"
#include "storage/bufpage.h"
#include "storage/fd.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"

#define SCAN_BUFFER ((Size) 1024 * 1024)

/* What next_image() has taken of the log already, and what comes */
struct FlashbackImages
{
	FlashbackPoint point;
	bool		filtered;
	RelFileLocator rlocator;
	uint64		segment;		/* the one that is read, or comes next */
	uint64		end;			/* position up to which the log is read */
	FlashbackLogIndexEntry *entries;	/* of this segment, or NULL */
	uint32		nentries;
	uint32		next;
	FlashbackLogScan *scan;		/* if it has no index */
};

static void damaged(FlashbackLogScan *scan, const char *fmt,...) pg_attribute_printf(2, 3);

static void
damaged(FlashbackLogScan *scan, const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	vsnprintf(scan->damage, sizeof(scan->damage), fmt, args);
	va_end(args);
}

/*
 * The name of a segment's index; path has MAXPGPATH bytes.
 */
void
flashback_log_index_path(char *path, uint64 segment)
{
	snprintf(path, MAXPGPATH, FLASHBACK_LOG_DIR "/%016" PRIX64 ".idx", segment);
}

static bool
read_header(uint64 segment, FlashbackLogHeader *header)
{
	char		path[MAXPGPATH];
	int			fd;
	bool		result;

	flashback_log_segment_path(path, segment);
	fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
	if (fd < 0)
		return false;
	result = pg_pread(fd, header, sizeof(*header), 0) == sizeof(*header) &&
		flashback_log_header_is_valid(header, segment);
	CloseTransientFile(fd);
	return result;
}

/*
 * Opens a segment; false, with the reason in scan->damage, if that cannot be.
 */
bool
flashback_log_scan_open(FlashbackLogScan *scan, uint64 segment)
{
	FlashbackLogShared *shared = flashback_log_shared;
	FlashbackLogHeader next;
	char		path[MAXPGPATH];
	uint64		position;
	uint64		last;
	uint64		begun;
	bool		active;
	struct stat st;

	memset(scan, 0, sizeof(*scan));
	scan->fd = -1;
	scan->segment = segment;

	SpinLockAcquire(&shared->mutex);
	position = shared->insert_position;
	last = shared->last_record;
	SpinLockRelease(&shared->mutex);

	/*
	 * Everything that has a position by now is there after this, or known not
	 * to be.
	 */
	flashback_log_drain();
	active = (position / FLASHBACK_LOG_SEGMENT_SIZE == segment &&
			  position % FLASHBACK_LOG_SEGMENT_SIZE != 0);
	SpinLockAcquire(&shared->mutex);
	begun = flashback_log_last_begun(shared->insert_position);
	scan->expected_last = shared->last_record;
	scan->whole = shared->whole;
	SpinLockRelease(&shared->mutex);

	flashback_log_segment_path(path, segment);
	scan->fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
	if (scan->fd < 0)
	{
		damaged(scan, "could not open file \"%s\": %m", path);
		return false;
	}
	if (fstat(scan->fd, &st) != 0 ||
		pg_pread(scan->fd, &scan->header, sizeof(scan->header), 0) != sizeof(scan->header) ||
		!flashback_log_header_is_valid(&scan->header, segment))
	{
		damaged(scan, "file \"%s\" has no valid header", path);
		flashback_log_scan_close(scan);
		return false;
	}

	scan->end = Min((uint64) st.st_size, FLASHBACK_LOG_SEGMENT_SIZE);
	if (segment < begun)
	{
		if (!read_header(segment + 1, &next))
		{
			damaged(scan, "the segment after %" PRIX64 " of the flashback log, which says where that ends, is missing or damaged",
					segment);
			flashback_log_scan_close(scan);
			return false;
		}
		scan->expected_last = next.previous_last;
		scan->whole = next.previous_whole;
	}
	if (active)
	{
		scan->end = Min(scan->end, position % FLASHBACK_LOG_SEGMENT_SIZE);
		scan->expected_last = last;
	}
	scan->offset = FLASHBACK_LOG_FIRST_OFFSET;
	scan->buffer = palloc(SCAN_BUFFER);
	return true;
}

/*
 * Bytes from the offset on, as many as there are and a record may have.
 */
static const char *
window(FlashbackLogScan *scan, uint64 offset, Size *available)
{
	Size		want = Min(FLASHBACK_LOG_MAX_RECORD, scan->end - offset);

	if (offset < scan->buffer_offset ||
		offset + want > scan->buffer_offset + scan->buffer_length)
	{
		ssize_t		n;

		n = pg_pread(scan->fd, scan->buffer, Min(SCAN_BUFFER, scan->end - offset), offset);
		scan->buffer_offset = offset;
		scan->buffer_length = Max(n, 0);
		if (n < 0)
			damaged(scan, "could not read segment %" PRIX64 " at %" PRIu64 ": %m", scan->segment, offset);
	}
	*available = scan->buffer_offset + scan->buffer_length - offset;
	return scan->buffer + (offset - scan->buffer_offset);
}

/*
 * The next record, or NULL at the end or at damage.  It is valid until the
 * next call.
 */
const FlashbackLogRecord *
flashback_log_scan_next(FlashbackLogScan *scan)
{
	uint64		base = scan->segment * FLASHBACK_LOG_SEGMENT_SIZE;

	while (scan->damage[0] == '\0' &&
		   scan->offset + sizeof(FlashbackLogRecord) <= scan->end)
	{
		Size		available;
		const FlashbackLogRecord *record;

		if (scan->whole && scan->last == scan->expected_last)
			return NULL;

		record = (const FlashbackLogRecord *) window(scan, scan->offset, &available);
		if (flashback_log_record_is_valid(record, base + scan->offset, scan->header.salt, available))
		{
			if (scan->whole && record->previous != scan->last)
				break;
			scan->last = record->position;
			scan->offset += flashback_log_record_size(record);
			return record;
		}
		if (scan->whole)
			break;
		/* What was being written when everything stopped */
		scan->offset += sizeof(uint64);
		if ((scan->offset & 0xFFFFF) == 0)
			CHECK_FOR_INTERRUPTS();
	}
	if (scan->whole && scan->last != scan->expected_last && scan->damage[0] == '\0')
		damaged(scan, "a record of segment %" PRIX64 " of the flashback log is damaged, at %" PRIu64,
				scan->segment, scan->offset);
	return NULL;
}

/*
 * Ends the reading of a segment.
 */
void
flashback_log_scan_close(FlashbackLogScan *scan)
{
	if (scan->fd >= 0)
		CloseTransientFile(scan->fd);
	scan->fd = -1;
	if (scan->buffer)
		pfree(scan->buffer);
	scan->buffer = NULL;
}

static int
compare_rlocators(const RelFileLocator *a, const RelFileLocator *b)
{
	if (a->spcOid != b->spcOid)
		return a->spcOid < b->spcOid ? -1 : 1;
	if (a->dbOid != b->dbOid)
		return a->dbOid < b->dbOid ? -1 : 1;
	if (a->relNumber != b->relNumber)
		return a->relNumber < b->relNumber ? -1 : 1;
	return 0;
}

static int
compare_entries(const void *a, const void *b)
{
	const FlashbackLogIndexEntry *x = a;
	const FlashbackLogIndexEntry *y = b;
	int			result = compare_rlocators(&x->rlocator, &y->rlocator);

	if (result != 0)
		return result;
	if (x->blkno != y->blkno)
		return x->blkno < y->blkno ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void
index_crcs(FlashbackLogIndexHeader *header, const FlashbackLogIndexEntry *entries,
		   pg_crc32c *crc, pg_crc32c *header_crc)
{
	INIT_CRC32C(*crc);
	COMP_CRC32C(*crc, entries, header->nentries * sizeof(FlashbackLogIndexEntry));
	FIN_CRC32C(*crc);
	INIT_CRC32C(*header_crc);
	COMP_CRC32C(*header_crc, header, offsetof(FlashbackLogIndexHeader, header_crc));
	FIN_CRC32C(*header_crc);
}

/*
 * Reads the index of a segment; NULL if it has none that is right.
 */
static FlashbackLogIndexEntry *
read_index(uint64 segment, uint32 *nentries)
{
	char		path[MAXPGPATH];
	FlashbackLogIndexHeader header;
	FlashbackLogHeader segment_header;
	FlashbackLogIndexEntry *entries = NULL;
	pg_crc32c	crc;
	pg_crc32c	header_crc;
	struct stat st;
	int			fd;

	flashback_log_index_path(path, segment);
	fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 &&
		pg_pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
		header.magic == FLASHBACK_LOG_MAGIC &&
		header.version == FLASHBACK_LOG_VERSION &&
		header.segment == segment &&
		header.nentries <= FLASHBACK_LOG_SEGMENT_SIZE / sizeof(FlashbackLogRecord) &&
		(uint64) st.st_size == sizeof(header) + header.nentries * sizeof(FlashbackLogIndexEntry))
	{
		Size		length = header.nentries * sizeof(FlashbackLogIndexEntry);

		entries = palloc_extended(Max(length, 1), MCXT_ALLOC_HUGE);
		if (pg_pread(fd, entries, length, sizeof(header)) != (ssize_t) length)
			header.nentries = 0;
		index_crcs(&header, entries, &crc, &header_crc);
		if (!EQ_CRC32C(crc, header.crc) || !EQ_CRC32C(header_crc, header.header_crc) ||
			!read_header(segment, &segment_header) || segment_header.salt != header.salt)
		{
			pfree(entries);
			entries = NULL;
		}
		*nentries = header.nentries;
	}
	CloseTransientFile(fd);
	return entries;
}

/*
 * Whether a segment has an index; it may be damaged.
 */
bool
flashback_log_has_index(uint64 segment)
{
	char		path[MAXPGPATH];
	struct stat st;

	flashback_log_index_path(path, segment);
	return stat(path, &st) == 0;
}

/*
 * Writes the index of a segment that is complete, and gives back the space
 * that it did not need.  False if the segment is damaged; if it can be read but
 * the index not be written there is none afterwards, and the reason is known.
 */
bool
flashback_log_index_segment(uint64 segment)
{
	FlashbackLogIndexHeader header;
	FlashbackLogIndexEntry *entries;
	FlashbackLogScan scan;
	const FlashbackLogRecord *record;
	char		path[MAXPGPATH];
	char		new_path[MAXPGPATH];
	uint32		allocated = 1024;
	Size		length;
	int			fd;
	bool		written;

	if (!flashback_log_scan_open(&scan, segment))
	{
		strlcpy(flashback_log_error, scan.damage, sizeof(flashback_log_error));
		return false;
	}
	memset(&header, 0, sizeof(header));
	entries = palloc(allocated * sizeof(FlashbackLogIndexEntry));
	while ((record = flashback_log_scan_next(&scan)) != NULL)
	{
		FlashbackLogIndexEntry *entry;

		if (header.nentries == allocated)
		{
			allocated *= 2;
			entries = repalloc_huge(entries, allocated * sizeof(FlashbackLogIndexEntry));
		}
		entry = &entries[header.nentries++];
		entry->rlocator = record->rlocator;
		entry->blkno = record->blkno;
		entry->offset = record->position % FLASHBACK_LOG_SEGMENT_SIZE;
		entry->kind = record->kind;
		entry->lsn = record->lsn;
		header.last = record->position;
	}
	if (scan.damage[0] != '\0')
	{
		strlcpy(flashback_log_error, scan.damage, sizeof(flashback_log_error));
		flashback_log_scan_close(&scan);
		return false;
	}

	qsort(entries, header.nentries, sizeof(FlashbackLogIndexEntry), compare_entries);
	header.magic = FLASHBACK_LOG_MAGIC;
	header.version = FLASHBACK_LOG_VERSION;
	header.segment = segment;
	header.salt = scan.header.salt;
	index_crcs(&header, entries, &header.crc, &header.header_crc);

	flashback_log_index_path(path, segment);
	snprintf(new_path, sizeof(new_path), "%s.new", path);
	length = header.nentries * sizeof(FlashbackLogIndexEntry);
	fd = OpenTransientFile(new_path, O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY);
	errno = fd >= 0 ? ENOSPC : errno;
	written = fd >= 0 && !IS_INJECTION_POINT_ATTACHED("flashback-log-index-fails") &&
		write(fd, &header, sizeof(header)) == sizeof(header) &&
		write(fd, entries, length) == (ssize_t) length;
	if (!written)
		snprintf(flashback_log_error, sizeof(flashback_log_error),
				 "could not write file \"%s\": %s", new_path, pg_strerror(errno));
	if (fd >= 0)
		CloseTransientFile(fd);
	if (written && durable_rename(new_path, path, LOG) == 0)
	{
		/* Only after an end that nobody foresaw is there much left */
		uint64		used = header.last == 0 ? FLASHBACK_LOG_FIRST_OFFSET : scan.offset;
		char		segment_path[MAXPGPATH];

		if (!scan.whole && header.nentries > 0)
			used = (header.last % FLASHBACK_LOG_SEGMENT_SIZE) + FLASHBACK_LOG_MAX_RECORD;
		flashback_log_segment_path(segment_path, segment);
		if (used + FLASHBACK_LOG_MAX_RECORD < scan.end && truncate(segment_path, used) != 0)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not truncate file \"%s\": %m", segment_path)));
	}
	else
	{
		if (written)
			snprintf(flashback_log_error, sizeof(flashback_log_error),
					 "could not rename file \"%s\"", new_path);
		unlink(new_path);
	}

	flashback_log_scan_close(&scan);
	pfree(entries);
	return true;
}

static bool
copy_point(bool (*is_it) (const FlashbackPoint *point, const void *arg),
		   const void *arg, FlashbackPoint *result)
{
	FlashbackLogShared *shared = flashback_log_shared;
	bool		found = false;

	if (!flashback_log_enabled)
		return false;
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK), LW_SHARED);
	SpinLockAcquire(&shared->mutex);
	found = shared->broken;
	SpinLockRelease(&shared->mutex);
	if (found)
	{
		LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
		return false;
	}
	for (int i = shared->npoints - 1; i >= 0 && !found; i--)
		if (is_it(&shared->points[i], arg))
		{
			found = true;
			if (result)
				*result = shared->points[i];
		}
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_STATE_LOCK));
	return found;
}

static bool
is_before_time(const FlashbackPoint *point, const void *arg)
{
	return point->time <= *(const TimestampTz *) arg;
}

static bool
is_before_lsn(const FlashbackPoint *point, const void *arg)
{
	return point->lsn <= *(const XLogRecPtr *) arg;
}

static bool
is_redo(const FlashbackPoint *point, const void *arg)
{
	return point->redo == *(const XLogRecPtr *) arg;
}

static bool
is_same(const FlashbackPoint *point, const void *arg)
{
	return point->number == ((const FlashbackPoint *) arg)->number;
}

static bool
find_point(TimestampTz time, FlashbackPoint *point)
{
	return copy_point(is_before_time, &time, point);
}

static bool
find_point_lsn(XLogRecPtr lsn, FlashbackPoint *point)
{
	return copy_point(is_before_lsn, &lsn, point);
}

static bool
find_point_redo(XLogRecPtr redo, FlashbackPoint *point)
{
	return copy_point(is_redo, &redo, point);
}

static bool
is_complete(const FlashbackPoint *point)
{
	return copy_point(is_same, point, NULL);
}

static bool
may_read(const FlashbackPoint *point, const RelFileLocator *rlocator)
{
	return flashback_log_purged_before(rlocator) <= point->lsn;
}

static FlashbackImages *
begin_images(const FlashbackPoint *point, const RelFileLocator *rlocator)
{
	FlashbackImages *images;

	/* Recovery needs what flashback must not show */
	if (rlocator && !AmStartupProcess() && !may_read(point, rlocator))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the past of relation %u was purged", rlocator->relNumber),
				 errhint("It can be read as of a point after that.")));

	images = palloc0(sizeof(FlashbackImages));
	images->point = *point;
	images->filtered = (rlocator != NULL);
	if (rlocator)
		images->rlocator = *rlocator;
	images->segment = point->position / FLASHBACK_LOG_SEGMENT_SIZE;

	SpinLockAcquire(&flashback_log_shared->mutex);
	images->end = flashback_log_shared->insert_position;
	SpinLockRelease(&flashback_log_shared->mutex);
	return images;
}

/*
 * Opens the next segment that has something of what is asked for.
 */
static bool
next_segment(FlashbackImages *images)
{
	uint64		segment = images->segment;
	uint64		last = images->end / FLASHBACK_LOG_SEGMENT_SIZE;

	if (images->end % FLASHBACK_LOG_SEGMENT_SIZE == 0)
		last--;
	if (segment > last)
		return false;
	images->segment++;

	if (images->entries)
		pfree(images->entries);
	images->entries = NULL;
	if (segment < last)
		images->entries = read_index(segment, &images->nentries);
	if (images->entries)
	{
		uint32		low = 0;

		if (images->filtered)
		{
			uint32		high = images->nentries;

			while (low < high)
			{
				uint32		middle = low + (high - low) / 2;

				if (compare_rlocators(&images->entries[middle].rlocator, &images->rlocator) < 0)
					low = middle + 1;
				else
					high = middle;
			}
		}
		images->next = low;
		return true;
	}

	images->scan = palloc(sizeof(FlashbackLogScan));
	if (!flashback_log_scan_open(images->scan, segment))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the flashback log is damaged, or no longer reaches back to the point"),
				 errdetail("%s.", images->scan->damage)));
	return true;
}

/*
 * Whether an image says something about the point.  One that is newer than it
 * is of a block that held nothing then, and was kept for a later point.
 */
static bool
belongs(const FlashbackImages *images, uint64 position, XLogRecPtr lsn)
{
	return position >= images->point.position && lsn <= images->point.lsn;
}

static bool
next_image(FlashbackImages *images, FlashbackImage *image)
{
	for (;;)
	{
		uint64		base = (images->segment - 1) * FLASHBACK_LOG_SEGMENT_SIZE;

		CHECK_FOR_INTERRUPTS();
		if (images->scan)
		{
			const FlashbackLogRecord *record = flashback_log_scan_next(images->scan);

			if (record == NULL)
			{
				if (images->scan->damage[0] != '\0')
					ereport(ERROR,
							(errcode(ERRCODE_DATA_CORRUPTED),
							 errmsg("the flashback log is damaged"),
							 errdetail("%s.", images->scan->damage)));
				flashback_log_scan_close(images->scan);
				pfree(images->scan);
				images->scan = NULL;
				if (!next_segment(images))
					return false;
				continue;
			}
			if (!belongs(images, record->position, record->lsn) ||
				(images->filtered && !RelFileLocatorEquals(record->rlocator, images->rlocator)))
				continue;
			image->rlocator = record->rlocator;
			image->blkno = record->blkno;
			image->kind = record->kind;
			image->lsn = record->lsn;
			image->position = record->position;
			return true;
		}
		if (images->entries && images->next < images->nentries)
		{
			FlashbackLogIndexEntry *entry = &images->entries[images->next];

			if (!images->filtered || RelFileLocatorEquals(entry->rlocator, images->rlocator))
			{
				images->next++;
				if (!belongs(images, base + entry->offset, entry->lsn))
					continue;
				image->rlocator = entry->rlocator;
				image->blkno = entry->blkno;
				image->kind = entry->kind;
				image->lsn = entry->lsn;
				image->position = base + entry->offset;
				return true;
			}
		}
		if (!next_segment(images))
			return false;
	}
}

static void
end_images(FlashbackImages *images)
{
	if (images->scan)
	{
		flashback_log_scan_close(images->scan);
		pfree(images->scan);
	}
	if (images->entries)
		pfree(images->entries);
	pfree(images);
}

/*
 * Decompresses with a context that is made once; -1 if that is not possible.
 */
static int
decompress_zstd(const char *from, uint32 size, char *to, int capacity)
{
	static ZSTD_DCtx *context = NULL;
	size_t		result;

	if (context == NULL && (context = ZSTD_createDCtx()) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	result = ZSTD_decompressDCtx(context, to, capacity, from, size);
	return ZSTD_isError(result) ? -1 : (int) result;
}

/*
 * The page of a record.
 */
static bool
unpack_page(const FlashbackLogRecord *record, char *page)
{
	char		dense[BLCKSZ];
	const char *payload = (const char *) (record + 1);
	int			length;

	if (record->kind != FLASHBACK_IMAGE_PAGE ||
		record->hole_offset > BLCKSZ || record->hole_length > BLCKSZ - record->hole_offset)
		return false;
	length = BLCKSZ - record->hole_length;

	switch (record->compression)
	{
		case FLASHBACK_LOG_PLAIN:
			if (record->length != length)
				return false;
			memcpy(dense, payload, length);
			break;
		case FLASHBACK_LOG_PGLZ:
			if (pglz_decompress(payload, record->length, dense, length, true) != length)
				return false;
			break;
		case FLASHBACK_LOG_ZSTD:
			if (decompress_zstd(payload, record->length, dense, length) != length)
				return false;
			break;
		case FLASHBACK_LOG_LZ4:
			if (LZ4_decompress_safe(payload, dense, record->length, length) != length)
				return false;
			break;
		default:
			return false;
	}
	memcpy(page, dense, record->hole_offset);
	memset(page + record->hole_offset, 0, record->hole_length);
	memcpy(page + record->hole_offset + record->hole_length,
		   dense + record->hole_offset, length - record->hole_offset);
	return true;
}

struct FlashbackImageReader
{
	int			fd;				/* of this segment, or -1 */
	uint64		segment;
	bool		valid;			/* its header is */
	FlashbackLogHeader header;
	union
	{
		FlashbackLogRecord record;
		char		bytes[FLASHBACK_LOG_MAX_RECORD];
	}			buffer;
};

static FlashbackImageReader *
begin_reading(void)
{
	FlashbackImageReader *reader = palloc(sizeof(FlashbackImageReader));

	reader->fd = -1;
	return reader;
}

static void
end_reading(FlashbackImageReader *reader)
{
	if (reader->fd >= 0)
		CloseTransientFile(reader->fd);
	pfree(reader);
}

static void
read_next(FlashbackImageReader *reader, const FlashbackImage *image, char *page)
{
	uint64		segment = image->position / FLASHBACK_LOG_SEGMENT_SIZE;
	ssize_t		n = -1;

	if (reader->fd < 0 || reader->segment != segment)
	{
		char		path[MAXPGPATH];

		if (reader->fd >= 0)
			CloseTransientFile(reader->fd);
		flashback_log_segment_path(path, segment);
		reader->fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
		if (reader->fd < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not open file \"%s\": %m", path)));
		reader->segment = segment;
		reader->valid = pg_pread(reader->fd, &reader->header, sizeof(reader->header), 0) == sizeof(reader->header) &&
			flashback_log_header_is_valid(&reader->header, segment);
	}
	if (reader->valid)
		n = pg_pread(reader->fd, &reader->buffer, sizeof(reader->buffer),
					 image->position % FLASHBACK_LOG_SEGMENT_SIZE);
	if (n < 0 ||
		!flashback_log_record_is_valid(&reader->buffer.record, image->position, reader->header.salt, n) ||
		!RelFileLocatorEquals(reader->buffer.record.rlocator, image->rlocator) ||
		reader->buffer.record.blkno != image->blkno ||
		!unpack_page(&reader->buffer.record, page))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the flashback log is damaged"),
				 errdetail("The record at %" PRIX64 " is not the one of block %u of relation %u.",
						   image->position, image->blkno, image->rlocator.relNumber)));
}

static void
read_image(const FlashbackImage *image, char *page)
{
	FlashbackImageReader *reader = begin_reading();

	read_next(reader, image, page);
	end_reading(reader);
}

static FlashbackImageKind
first_image(const FlashbackPoint *point, const RelFileLocator *rlocator,
			BlockNumber blkno, char *page)
{
	FlashbackImages *images = begin_images(point, rlocator);
	FlashbackImageKind kind = FLASHBACK_IMAGE_NONE;
	FlashbackImage image;

	while (kind == FLASHBACK_IMAGE_NONE && next_image(images, &image))
	{
		if (image.blkno != blkno)
			continue;
		kind = image.kind;
		if (kind == FLASHBACK_IMAGE_PAGE && page)
			read_image(&image, page);
	}
	end_images(images);
	return kind;
}

static const char *
mode(void)
{
	return flashback_log_enabled ? flashback_log_mode_names[flashback_log_mode] : "off";
}

static bool
protects(XLogRecPtr redo, FlashbackPoint *point, char *why, Size why_size)
{
	FlashbackLogShared *shared = flashback_log_shared;
	FlashbackPoint found;

	if (!flashback_log_enabled)
		strlcpy(why, "polar_enable_flashback_log is off", why_size);
	else if (find_point_redo(redo, &found))
	{
		if (found.durable)
		{
			if (point)
				*point = found;
			return true;
		}
		snprintf(why, why_size, "it was kept with polar_flashback_log_mode = async since the checkpoint at %X/%X",
				 LSN_FORMAT_ARGS(redo));
	}
	else if (find_point_lsn(PG_UINT64_MAX, NULL))
		snprintf(why, why_size, "it has no point of the checkpoint at %X/%X", LSN_FORMAT_ARGS(redo));
	else
	{
		char		reason[sizeof(shared->why)];

		SpinLockAcquire(&shared->mutex);
		memcpy(reason, shared->why, sizeof(reason));
		SpinLockRelease(&shared->mutex);
		if (reason[0] != '\0')
			snprintf(why, why_size, "its window ended: %s", reason);
		else
			strlcpy(why, "it has no point yet", why_size);
	}
	return false;
}

static bool
has_room(char *why, Size why_size)
{
	if (flashback_log_has_room())
		return true;
	strlcpy(why, flashback_log_error, why_size);
	return false;
}

static uint64
failures(void)
{
	return pg_atomic_read_u64(&flashback_log_shared->failures);
}

const FlashbackLogApi flashback_log_api = {
	.find_point = find_point,
	.find_point_lsn = find_point_lsn,
	.find_point_redo = find_point_redo,
	.begin_images = begin_images,
	.next_image = next_image,
	.end_images = end_images,
	.read_image = read_image,
	.begin_reading = begin_reading,
	.read_next = read_next,
	.end_reading = end_reading,
	.first_image = first_image,
	.is_complete = is_complete,
	.may_read = may_read,
	.recycle = &flashback_recycle_api,

	.mode = mode,
	.protects = protects,
	.has_room = has_room,
	.failures = failures,
};
