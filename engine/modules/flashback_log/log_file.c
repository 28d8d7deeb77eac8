/*-------------------------------------------------------------------------
 *
 * log_file.c
 *	  Segments of the flashback log, and the records that are added to them.
 *
 * Nothing here raises an error or allocates memory: images are kept in the
 * middle of other work, also in critical sections.  A function that fails
 * returns false and leaves the reason in flashback_log_error.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/log_file.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "access/xlog.h"
#include "common/file_perm.h"
#include "common/file_utils.h"
#include "flashback_log.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/fd.h"
#include "utils/injection_point.h"
#include "utils/wait_event.h"

#define SPARE FLASHBACK_LOG_DIR "/spare"
#define NEW_SEGMENT FLASHBACK_LOG_DIR "/segment.new"
#define FILL_PIECE (1024 * 1024)

char		flashback_log_error[256];

/* The segment that this process wrote last */
static int	open_file = -1;
static uint64 open_segment = 0;

static bool failed(const char *what, const char *path);

/*
 * Notes why something failed.
 */
static bool
failed(const char *what, const char *path)
{
	int			saved_errno = errno;

	snprintf(flashback_log_error, sizeof(flashback_log_error),
			 "could not %s file \"%s\": %s", what, path, pg_strerror(saved_errno));
	errno = saved_errno;
	return false;
}

/*
 * The name of a segment; path has MAXPGPATH bytes.
 */
void
flashback_log_segment_path(char *path, uint64 segment)
{
	snprintf(path, MAXPGPATH, FLASHBACK_LOG_DIR "/%016" PRIX64, segment);
}

/*
 * Whether a file of a segment may be added: as much must be left to others.
 */
static bool
may_grow(void)
{
	struct statvfs fs;

	if (statvfs(FLASHBACK_LOG_DIR, &fs) != 0 ||
		(uint64) fs.f_bavail * fs.f_frsize >= 2 * FLASHBACK_LOG_SEGMENT_SIZE)
		return true;
	errno = ENOSPC;
	return false;
}

/*
 * Whether another segment can be begun without giving up a point.
 */
bool
flashback_log_has_room(void)
{
	struct stat st;

#ifdef USE_INJECTION_POINTS
	if (IS_INJECTION_POINT_ATTACHED("flashback-log-disk-full"))
	{
		errno = ENOSPC;
		return failed("reserve space for", NEW_SEGMENT);
	}
#endif
	if (stat(SPARE, &st) == 0 && (uint64) st.st_size == FLASHBACK_LOG_SEGMENT_SIZE)
		return true;
	return may_grow() || failed("reserve space for", NEW_SEGMENT);
}

/*
 * Makes a file as large as a segment whose space is reserved.  The caller holds
 * the segment lock.  Space is looked for first: even an attempt that fails
 * takes all there is for a moment, in which the WAL may need it.
 */
bool
flashback_log_create_file(const char *path)
{
	int			fd;
	int			result;

	if (!may_grow())
		return failed("reserve space for", path);
	fd = BasicOpenFile(path, O_RDWR | O_CREAT | O_TRUNC | PG_BINARY);
	if (fd < 0)
		return failed("create", path);

	do
		result = posix_fallocate(fd, 0, FLASHBACK_LOG_SEGMENT_SIZE);
	while (result == EINTR);
	if (result == 0 && flashback_log_mode == FLASHBACK_LOG_SYNC && pg_fsync(fd) != 0)
		result = errno;
	close(fd);
	if (result != 0)
	{
		unlink(path);
		errno = result;
		return failed("reserve space for", path);
	}
	return true;
}

/*
 * Writes a piece of zeroes where a file has none yet, without which each first
 * write of a place costs the file system a change of its own.  False when
 * nothing is left to do before this offset, or it cannot be done.
 */
bool
flashback_log_fill_file(const char *path, uint64 until)
{
	bool		result = false;
#ifdef SEEK_HOLE
	static bool helps = true;
	int			fd = helps ? BasicOpenFile(path, O_RDWR | PG_BINARY) : -1;
	off_t		hole;

	if (fd < 0)
		return false;
	/* Space that was reserved and not written counts as one */
	hole = lseek(fd, 0, SEEK_HOLE);
	if (hole >= 0 && hole < Min(until, FLASHBACK_LOG_SEGMENT_SIZE))
	{
		result = pg_pwrite_zeros(fd, Min(FILL_PIECE, FLASHBACK_LOG_SEGMENT_SIZE - hole), hole) >= 0 &&
			pg_fdatasync(fd) == 0;
		/* A file system may make holes of zeroes again */
		if (lseek(fd, 0, SEEK_HOLE) <= hole)
			helps = result = false;
	}
	close(fd);
#endif
	return result;
}

/*
 * Whether this is the header of that segment of this instance.
 */
bool
flashback_log_header_is_valid(const FlashbackLogHeader *header, uint64 segment)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, header, offsetof(FlashbackLogHeader, crc));
	FIN_CRC32C(crc);

	return header->magic == FLASHBACK_LOG_MAGIC &&
		header->version == FLASHBACK_LOG_VERSION &&
		EQ_CRC32C(crc, header->crc) &&
		header->segment == segment &&
		header->segment_size == FLASHBACK_LOG_SEGMENT_SIZE &&
		header->system_identifier == GetSystemIdentifier();
}

/*
 * Bytes that a record takes, with its payload.
 */
Size
flashback_log_record_size(const FlashbackLogRecord *record)
{
	return MAXALIGN(sizeof(FlashbackLogRecord) + record->length);
}

static pg_crc32c
record_crc(const FlashbackLogRecord *record, const char *payload)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, &record->position,
				sizeof(FlashbackLogRecord) - offsetof(FlashbackLogRecord, position));
	COMP_CRC32C(crc, payload, record->length);
	FIN_CRC32C(crc);
	return crc;
}

/*
 * Whether at this place a record begins that is whole.  "available" bytes may
 * be read from there; whatever they are, nothing beyond is looked at.
 */
bool
flashback_log_record_is_valid(const FlashbackLogRecord *record,
							  uint64 position, uint64 salt, Size available)
{
	return available >= sizeof(FlashbackLogRecord) &&
		record->magic == FLASHBACK_LOG_MAGIC &&
		record->position == position &&
		record->salt == salt &&
		record->length <= BLCKSZ &&
		sizeof(FlashbackLogRecord) + record->length <= available &&
		EQ_CRC32C(record->crc, record_crc(record, (const char *) (record + 1)));
}

/*
 * Opens a segment for writing; it stays open until another one is.
 */
static bool
open_for_writing(uint64 segment)
{
	char		path[MAXPGPATH];

	if (open_file >= 0 && open_segment == segment)
		return true;
	if (open_file >= 0)
	{
		close(open_file);
		open_file = -1;
		ReleaseExternalFD();
	}
	flashback_log_segment_path(path, segment);
	open_file = BasicOpenFile(path, O_RDWR | PG_BINARY);
	if (open_file < 0)
		return failed("open", path);
	ReserveExternalFD();
	open_segment = segment;
	return true;
}

/*
 * Makes the file of the next segment, under a name that a start removes: the
 * spare one, else a new one.
 */
static bool
make_segment(void)
{
	struct stat st;
	bool		full = false;

#ifdef USE_INJECTION_POINTS
	/* A disk that has room for no more than there is */
	full = IS_INJECTION_POINT_ATTACHED("flashback-log-disk-full");
	if (full)
	{
		errno = ENOSPC;
		failed("reserve space for", NEW_SEGMENT);
	}
#endif
	if (!full && stat(SPARE, &st) == 0 && (uint64) st.st_size == FLASHBACK_LOG_SEGMENT_SIZE &&
		rename(SPARE, NEW_SEGMENT) == 0)
		return true;
	if (!full && flashback_log_create_file(NEW_SEGMENT))
		return true;
	while (flashback_log_make_room())
		if (flashback_log_create_file(NEW_SEGMENT))
			return true;
	return false;
}

/*
 * Writes a header, with its checksum.
 */
static bool
write_header(const char *path, FlashbackLogHeader *header)
{
	int			fd = BasicOpenFile(path, O_RDWR | PG_BINARY);
	bool		result = false;

	if (fd < 0)
		return failed("open", path);
	INIT_CRC32C(header->crc);
	COMP_CRC32C(header->crc, header, offsetof(FlashbackLogHeader, crc));
	FIN_CRC32C(header->crc);
	errno = 0;
	if (pg_pwrite(fd, header, sizeof(*header), 0) != sizeof(*header))
	{
		if (errno == 0)
			errno = ENOSPC;
		failed("write", path);
	}
	else if (flashback_log_mode == FLASHBACK_LOG_SYNC && pg_fdatasync(fd) != 0)
		failed("fsync", path);
	else
		result = true;
	close(fd);
	return result;
}

/*
 * Gives the file of the next segment its name.  Only now, with its header: one
 * without would count as damaged after a crash.
 */
static bool
place_segment(const char *path)
{
	if (rename(NEW_SEGMENT, path) != 0)
		return failed("rename", NEW_SEGMENT);
	if (flashback_log_mode == FLASHBACK_LOG_SYNC &&
		fsync_fname_ext(FLASHBACK_LOG_DIR, true, false, LOG) != 0)
		return failed("fsync", FLASHBACK_LOG_DIR);
	return true;
}

/*
 * Waits until everything that has a place in the segment before is written and,
 * in sync mode, durable: see the claim P14.  Returns whether all of it is.
 * Nobody has a place there any more who needs a lock that the caller holds.
 */
static bool
close_segment(uint64 last)
{
	FlashbackLogShared *shared = flashback_log_shared;
	bool		whole;

	flashback_log_drain();
	SpinLockAcquire(&shared->mutex);
	whole = shared->whole;
	SpinLockRelease(&shared->mutex);
	if (whole && last != 0 && flashback_log_mode == FLASHBACK_LOG_SYNC)
		whole = flashback_log_sync(last);
	return whole;
}

/*
 * Begins the next segment, unless someone else has since the position was
 * read.
 */
static bool
begin_segment(uint64 expected)
{
	FlashbackLogShared *shared = flashback_log_shared;
	FlashbackLogHeader header;
	char		path[MAXPGPATH];
	uint64		position;
	uint64		segment;
	uint64		last;
	bool		result = false;

	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_SEGMENT), LW_EXCLUSIVE);

	SpinLockAcquire(&shared->mutex);
	position = shared->insert_position;
	SpinLockRelease(&shared->mutex);
	if (position != expected)
	{
		LWLockRelease(flashback_log_lock(FLASHBACK_LOG_SEGMENT));
		return true;
	}

	segment = position / FLASHBACK_LOG_SEGMENT_SIZE;
	if (position % FLASHBACK_LOG_SEGMENT_SIZE != 0)
		segment++;

	/* From here on nobody reserves anything in the segment before */
	SpinLockAcquire(&shared->mutex);
	shared->insert_position = segment * FLASHBACK_LOG_SEGMENT_SIZE;
	last = shared->last_record;
	SpinLockRelease(&shared->mutex);

	INJECTION_POINT("flashback-log-segment", NULL);

	memset(&header, 0, sizeof(header));
	header.magic = FLASHBACK_LOG_MAGIC;
	header.version = FLASHBACK_LOG_VERSION;
	header.system_identifier = GetSystemIdentifier();
	header.segment = segment;
	header.segment_size = FLASHBACK_LOG_SEGMENT_SIZE;
	header.previous_last = last;
	header.previous_whole = close_segment(last);
	flashback_log_segment_path(path, segment);

	if (!pg_strong_random(&header.salt, sizeof(header.salt)))
		snprintf(flashback_log_error, sizeof(flashback_log_error), "could not get a random number");
	else if (make_segment())
	{
		INJECTION_POINT("flashback-log-segment-header", NULL);
		result = write_header(NEW_SEGMENT, &header) && place_segment(path);
		INJECTION_POINT("flashback-log-segment-placed", NULL);
	}

	if (result)
	{
		SpinLockAcquire(&shared->mutex);
		shared->insert_position = segment * FLASHBACK_LOG_SEGMENT_SIZE + FLASHBACK_LOG_FIRST_OFFSET;
		shared->last_record = 0;
		shared->whole = true;
		shared->at_rest = false;
		shared->salt = header.salt;
		SpinLockRelease(&shared->mutex);
	}

	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_SEGMENT));

	/* A spare one is wanted again, and the one before can be indexed */
	flashback_log_wake_worker();
	return result;
}

/*
 * Writes a record to the place that it has.
 */
static bool
write_record(uint64 position, const char *bytes, Size size)
{
	ssize_t		written;

	if (!open_for_writing(position / FLASHBACK_LOG_SEGMENT_SIZE))
		return false;

#ifdef USE_INJECTION_POINTS
	if (IS_INJECTION_POINT_ATTACHED("flashback-log-append-fails"))
	{
		errno = ENOSPC;
		return failed("write", FLASHBACK_LOG_DIR);
	}
#endif

	errno = 0;
	pgstat_report_wait_start(flashback_log_wait_event);
	written = pg_pwrite(open_file, bytes, size, position % FLASHBACK_LOG_SEGMENT_SIZE);
	pgstat_report_wait_end();
	if (written != (ssize_t) size)
	{
		char		path[MAXPGPATH];

		if (errno == 0)
			errno = ENOSPC;
		flashback_log_segment_path(path, position / FLASHBACK_LOG_SEGMENT_SIZE);
		return failed("write", path);
	}
	return true;
}

/*
 * Adds a record.  The caller fills in what concerns the page, and holds the
 * epoch lock.  On success the record has its position.
 */
bool
flashback_log_append(FlashbackLogRecord *record, const char *payload)
{
	FlashbackLogShared *shared = flashback_log_shared;
	static union
	{
		FlashbackLogRecord record;
		char		bytes[FLASHBACK_LOG_MAX_RECORD];
	}			buffer;
	Size		size = flashback_log_record_size(record);
	uint64		position;
	bool		written;

	for (;;)
	{
		uint64		offset;
		bool		fits;

		LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_WRITE), LW_SHARED);
		SpinLockAcquire(&shared->mutex);
		position = shared->insert_position;
		offset = position % FLASHBACK_LOG_SEGMENT_SIZE;
		fits = (offset != 0 && offset + size <= FLASHBACK_LOG_SEGMENT_SIZE);
		if (fits)
		{
			record->previous = shared->last_record;
			record->salt = shared->salt;
			shared->last_record = position;
			shared->insert_position += size;
		}
		SpinLockRelease(&shared->mutex);
		if (fits)
			break;
		LWLockRelease(flashback_log_lock(FLASHBACK_LOG_WRITE));
		if (!begin_segment(position))
			return false;
	}
	INJECTION_POINT("flashback-log-reserved", NULL);

	record->magic = FLASHBACK_LOG_MAGIC;
	record->position = position;
	record->unused = 0;
	record->crc = record_crc(record, payload);

	buffer.record = *record;
	memcpy(buffer.bytes + sizeof(FlashbackLogRecord), payload, record->length);
	memset(buffer.bytes + sizeof(FlashbackLogRecord) + record->length, 0,
		   size - sizeof(FlashbackLogRecord) - record->length);

	written = write_record(position, buffer.bytes, size);
	if (!written)
	{
		/* It has its place, which stays empty; known before who waits goes on */
		SpinLockAcquire(&shared->mutex);
		if (flashback_log_last_begun(shared->insert_position) == position / FLASHBACK_LOG_SEGMENT_SIZE)
			shared->whole = false;
		SpinLockRelease(&shared->mutex);
	}
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_WRITE));
	if (!written)
	{
		flashback_log_abandon(position / FLASHBACK_LOG_SEGMENT_SIZE);
		return false;
	}

	pg_atomic_fetch_add_u64(&shared->bytes, size);
	INJECTION_POINT("flashback-log-appended", NULL);
	return true;
}

/*
 * Whether a sync of this segment is over that began after another one, of that
 * number, had begun.  The order of the two reads matters: what the segment is
 * now was synced by the sync of that number, or by a later one.
 */
static bool
is_synced(uint64 segment, uint64 started)
{
	uint64		done = pg_atomic_read_membarrier_u64(&flashback_log_shared->sync_done);

	return done > started && pg_atomic_read_u64(&flashback_log_shared->sync_segment) == segment;
}

/*
 * Syncs a segment.  The caller holds the sync lock.
 */
static bool
sync_segment(uint64 segment)
{
	FlashbackLogShared *shared = flashback_log_shared;
	uint64		mine = pg_atomic_fetch_add_u64(&shared->sync_started, 1) + 1;
	int			error;

	if (!open_for_writing(segment))
		return false;
	pgstat_report_wait_start(flashback_log_wait_event);
	error = pg_fdatasync(open_file);
	pgstat_report_wait_end();
#ifdef USE_INJECTION_POINTS
	if (IS_INJECTION_POINT_ATTACHED("flashback-log-sync-fails"))
	{
		errno = EIO;
		error = -1;
	}
#endif
	if (error != 0)
	{
		char		path[MAXPGPATH];

		flashback_log_segment_path(path, segment);
		failed("fdatasync", path);
		pg_atomic_write_u64(&shared->failed_segment, segment);
		return false;
	}
	pg_atomic_write_u64(&shared->sync_segment, segment);
	pg_atomic_write_membarrier_u64(&shared->sync_done, mine);
	pg_atomic_fetch_add_u64(&shared->syncs, 1);
	return true;
}

/*
 * Makes the record at this position durable.  Who comes while another process
 * is at it waits for that one's sync to end, and then one of those that wait
 * makes all of them durable.
 */
bool
flashback_log_sync(uint64 position)
{
	FlashbackLogShared *shared = flashback_log_shared;
	uint64		segment = position / FLASHBACK_LOG_SEGMENT_SIZE;
	uint64		started = pg_atomic_read_membarrier_u64(&shared->sync_started);
	instr_time	before,
				after;
	bool		result = true;

	INSTR_TIME_SET_CURRENT(before);
	while (!is_synced(segment, started))
	{
		/* False when it was free only for a moment: look again */
		if (!LWLockAcquireOrWait(flashback_log_lock(FLASHBACK_LOG_SYNC_LOCK), LW_EXCLUSIVE))
			continue;
		if (segment <= pg_atomic_read_u64(&shared->failed_segment))
		{
			/*
			 * What a failed sync has lost no later one brings back.  Of those
			 * that failed only the last is known.
			 */
			snprintf(flashback_log_error, sizeof(flashback_log_error),
					 "segment %" PRIX64 " of the flashback log could not be synced", segment);
			result = false;
		}
		else if (!is_synced(segment, started))
			result = sync_segment(segment);
		LWLockRelease(flashback_log_lock(FLASHBACK_LOG_SYNC_LOCK));
		break;
	}
	INSTR_TIME_SET_CURRENT(after);
	INSTR_TIME_SUBTRACT(after, before);
	pg_atomic_fetch_add_u64(&shared->sync_us, INSTR_TIME_GET_MICROSEC(after));
	return result;
}

/*
 * Notes in the header of the next segment that this one lacks records.  If
 * that cannot be written the records count as damage.
 */
static void
note_not_whole(uint64 segment)
{
	char		path[MAXPGPATH];
	FlashbackLogHeader header;
	int			fd;
	bool		valid;

	flashback_log_segment_path(path, segment + 1);
	fd = BasicOpenFile(path, O_RDONLY | PG_BINARY);
	if (fd < 0)
		return;
	valid = pg_pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
		flashback_log_header_is_valid(&header, segment + 1);
	close(fd);
	if (valid && header.previous_whole)
	{
		header.previous_whole = false;
		(void) write_header(path, &header);
	}
}

/*
 * The segment that was begun last, at this insert position.
 */
uint64
flashback_log_last_begun(uint64 position)
{
	uint64		segment = position / FLASHBACK_LOG_SEGMENT_SIZE;

	return position % FLASHBACK_LOG_SEGMENT_SIZE == 0 ? segment - 1 : segment;
}

/*
 * Adds nothing more to a segment whose file fails.  A record that is missing
 * there was one whose page has not been overwritten, or, in async mode, one
 * that ended the window.
 */
void
flashback_log_abandon(uint64 segment)
{
	FlashbackLogShared *shared = flashback_log_shared;
	char		why[sizeof(flashback_log_error)];
	bool		last;

	strlcpy(why, flashback_log_error, sizeof(why));
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_SEGMENT), LW_EXCLUSIVE);
	SpinLockAcquire(&shared->mutex);
	last = (flashback_log_last_begun(shared->insert_position) == segment);
	if (last)
	{
		shared->whole = false;
		shared->insert_position = (segment + 1) * FLASHBACK_LOG_SEGMENT_SIZE;
	}
	SpinLockRelease(&shared->mutex);
	if (!last)
		note_not_whole(segment);
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_SEGMENT));
	strlcpy(flashback_log_error, why, sizeof(flashback_log_error));
}

/*
 * Makes everything durable, from this segment on to where the log ends.
 */
bool
flashback_log_sync_segments(uint64 segment, uint64 end)
{
	for (; segment * FLASHBACK_LOG_SEGMENT_SIZE < end; segment++)
	{
		char		path[MAXPGPATH];

		flashback_log_segment_path(path, segment);
		if (fsync_fname_ext(path, false, false, LOG) != 0)
			return failed("fsync", path);
#ifdef USE_INJECTION_POINTS
		if (IsUnderPostmaster && IS_INJECTION_POINT_ATTACHED("flashback-log-sync-fails"))
		{
			errno = EIO;
			return failed("fsync", path);
		}
#endif
	}
	return true;
}

/*
 * Waits until everything that has a position is written, or known not to be.
 */
void
flashback_log_drain(void)
{
	LWLockAcquire(flashback_log_lock(FLASHBACK_LOG_WRITE), LW_EXCLUSIVE);
	LWLockRelease(flashback_log_lock(FLASHBACK_LOG_WRITE));
}
