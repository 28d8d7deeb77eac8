/*-------------------------------------------------------------------------
 *
 * flashback_log_fuzz.c
 *		Reads mutated records, segments and indexes of a flashback log, and
 *		counts what the reader says of them.
 *
 * The code of flashback_log that reads is compiled into this module, with a
 * state and a directory of its own.  Half of what is mutated gets a checksum
 * that is right again, as somebody hostile would give it one.  Bytes end where
 * their memory does, so that a sanitizer sees who reads beyond; a page lies
 * between guards.
 *
 * engine/testkit/modules/flashback_log_fuzz/flashback_log_fuzz.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "flashback_log.h"

/* Not the instance's own log */
#undef FLASHBACK_LOG_DIR
#define FLASHBACK_LOG_DIR "flashback_log_fuzz"

#include "log_file.c"
#include "reader.c"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_tablespace_d.h"
#include "common/pg_prng.h"
#include "fmgr.h"
#include "funcapi.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(flashback_log_fuzz);

/* What the code that is included looks at */
bool		flashback_log_enabled = true;
int			flashback_log_mode = FLASHBACK_LOG_ASYNC;
int			flashback_log_segment_size_kb = 1024;
FlashbackLogShared *flashback_log_shared;
LWLockPadded *flashback_log_locks;
uint32		flashback_log_wait_event;
const char *const flashback_log_mode_names[] = {"async", "sync"};
const FlashbackRecycleApi flashback_recycle_api;

bool
flashback_log_make_room(void)
{
	return false;
}

void
flashback_log_wake_worker(void)
{
}

XLogRecPtr
flashback_log_purged_before(const RelFileLocator *rlocator)
{
	return InvalidXLogRecPtr;
}

#define GUARD 0x5A
#define SEGMENT 7
#define NRECORDS 150

/* How many mutations of one record come for each of a whole file */
#define RECORDS_FOR_A_FILE 500

typedef struct Counts
{
	int64		refused;		/* records that were not believed */
	int64		unpacked;		/* pages */
	int64		images;			/* read from mutated files */
	int64		damaged;		/* files of which that was said */
} Counts;

static pg_prng_state prng;
static char *guarded;			/* a page with a guard before and after */
static char *segment;			/* bytes of one that is in order */
static Size segment_used;
static Size offsets[NRECORDS];	/* of its records */
static char *segment_index;		/* and of its index */
static Size index_size;

#define PAGE (guarded + BLCKSZ)

static uint32
choose(uint32 n)
{
	return pg_prng_uint64_range(&prng, 0, n - 1);
}

/*
 * Changes some bytes, to values that are likely to hurt.
 */
static void
mutate(char *bytes, Size length)
{
	static const uint64 evil[] = {0, 1, 7, 8, 23, 24, 0x7FFF, 0x8000, 0xFFFF, 8191, 8192, 8193,
	0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFF00000000, PG_UINT64_MAX, sizeof(FlashbackLogRecord)};

	for (int n = 1 + choose(3); n > 0; n--)
	{
		Size		at = choose(choose(2) ? length : Min(length, sizeof(FlashbackLogRecord)));
		Size		width = (Size) 1 << choose(4);

		if (choose(2) && at + width <= length)
			memcpy(bytes + at, &evil[choose(lengthof(evil))], width);
		else
			bytes[at] ^= 1 << choose(8);
	}
}

static void
check_guards(void)
{
	for (int i = 0; i < BLCKSZ; i++)
		if (guarded[i] != GUARD || guarded[2 * BLCKSZ + i] != GUARD)
			elog(PANIC, "a record wrote beyond its page");
}

/*
 * Gives a record the checksum that its bytes have, if its length fits.
 */
static void
make_right(FlashbackLogRecord *record, Size available)
{
	if (available >= sizeof(FlashbackLogRecord) && record->length <= available - sizeof(FlashbackLogRecord))
		record->crc = record_crc(record, (const char *) (record + 1));
}

static void
make_header_right(FlashbackLogHeader *header)
{
	INIT_CRC32C(header->crc);
	COMP_CRC32C(header->crc, header, offsetof(FlashbackLogHeader, crc));
	FIN_CRC32C(header->crc);
}

/*
 * A segment with records of each kind and compression.
 */
static void
make_segment_bytes(void)
{
	FlashbackLogHeader *header = (FlashbackLogHeader *) segment;
	uint64		previous = 0;
	Size		at = FLASHBACK_LOG_FIRST_OFFSET;

	memset(segment, 0, FLASHBACK_LOG_SEGMENT_SIZE);
	header->magic = FLASHBACK_LOG_MAGIC;
	header->version = FLASHBACK_LOG_VERSION;
	header->system_identifier = GetSystemIdentifier();
	header->segment = SEGMENT;
	header->segment_size = FLASHBACK_LOG_SEGMENT_SIZE;
	header->salt = pg_prng_uint64(&prng);
	make_header_right(header);

	for (int i = 0; i < NRECORDS; i++)
	{
		FlashbackLogRecord *record = (FlashbackLogRecord *) (segment + at);
		char	   *payload = (char *) (record + 1);
		char		page[BLCKSZ];
		char		packed[BLCKSZ * 2];
		int			length = -1;
		int			dense;

		memset(page, 'x', sizeof(page));
		for (int n = choose(400); n > 0; n--)
			page[choose(BLCKSZ)] = choose(256);

		record->magic = FLASHBACK_LOG_MAGIC;
		record->position = SEGMENT * FLASHBACK_LOG_SEGMENT_SIZE + at;
		record->previous = previous;
		record->salt = header->salt;
		record->lsn = 1000 + i;
		record->rlocator.spcOid = DEFAULTTABLESPACE_OID;
		record->rlocator.dbOid = 5;
		record->rlocator.relNumber = 16384 + choose(5);
		record->blkno = choose(50);
		record->kind = choose(5) ? FLASHBACK_IMAGE_PAGE : FLASHBACK_IMAGE_UNREADABLE;
		if (record->kind == FLASHBACK_IMAGE_PAGE)
		{
			record->hole_offset = 24 + choose(1000);
			record->hole_length = choose(4000);
			dense = BLCKSZ - record->hole_length;
			record->compression = choose(4);
			if (record->compression == FLASHBACK_LOG_PGLZ)
				length = pglz_compress(page, dense, packed, PGLZ_strategy_always);
			else if (record->compression == FLASHBACK_LOG_LZ4)
				length = LZ4_compress_default(page, packed, dense, sizeof(packed));
			else if (record->compression == FLASHBACK_LOG_ZSTD)
				length = ZSTD_compress(packed, sizeof(packed), page, dense, 1);
			if (length <= 0 || length > BLCKSZ)
			{
				record->compression = FLASHBACK_LOG_PLAIN;
				memcpy(packed, page, dense);
				length = dense;
			}
			record->length = length;
			memcpy(payload, packed, length);
		}
		make_right(record, FLASHBACK_LOG_MAX_RECORD);
		previous = record->position;
		offsets[i] = at;
		at += flashback_log_record_size(record);
		if (at + FLASHBACK_LOG_MAX_RECORD > FLASHBACK_LOG_SEGMENT_SIZE)
			elog(ERROR, "the records do not fit into a segment");
	}
	segment_used = at;
	flashback_log_shared->insert_position = (SEGMENT + 1) * FLASHBACK_LOG_SEGMENT_SIZE + FLASHBACK_LOG_FIRST_OFFSET;
	flashback_log_shared->whole = true;
}

static void
write_file(const char *path, const char *bytes, Size length)
{
	int			fd = OpenTransientFile(path, O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY);

	if (fd < 0 || write(fd, bytes, length) != (ssize_t) length)
		elog(ERROR, "could not write file \"%s\": %m", path);
	CloseTransientFile(fd);
}

/*
 * The header of the segment after, which says where this one ends.
 */
static void
write_next_header(bool whole)
{
	FlashbackLogHeader header = *(FlashbackLogHeader *) segment;
	char		path[MAXPGPATH];

	header.segment = SEGMENT + 1;
	header.previous_last = SEGMENT * FLASHBACK_LOG_SEGMENT_SIZE + offsets[NRECORDS - 1];
	header.previous_whole = whole;
	make_header_right(&header);
	flashback_log_segment_path(path, SEGMENT + 1);
	write_file(path, (char *) &header, sizeof(header));
}

static void
read_file(const char *path, char **bytes, Size *length)
{
	struct stat st;
	int			fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);

	if (fd < 0 || fstat(fd, &st) != 0)
		elog(ERROR, "could not open file \"%s\": %m", path);
	*length = st.st_size;
	*bytes = MemoryContextAlloc(TopMemoryContext, Max(*length, 1));
	if (read(fd, *bytes, *length) != (ssize_t) *length)
		elog(ERROR, "could not read file \"%s\": %m", path);
	CloseTransientFile(fd);
}

/*
 * One mutated record, and if it is believed, its page.
 */
static void
try_record(Counts *counts)
{
	const FlashbackLogRecord *original = (FlashbackLogRecord *) (segment + offsets[choose(NRECORDS)]);
	Size		size = sizeof(FlashbackLogRecord) + original->length;
	Size		available = choose(4) ? size : choose(size + 1);
	FlashbackLogRecord *record = malloc(Max(available, 1));

	if (record == NULL)
		elog(ERROR, "out of memory");
	memcpy(record, original, available);
	if (available > 0 && choose(16))
		mutate((char *) record, available);
	if (choose(2))
		make_right(record, available);

	memset(guarded, GUARD, 3 * BLCKSZ);
	if (!flashback_log_record_is_valid(record, original->position, original->salt, available))
		counts->refused++;
	else if (unpack_page(record, PAGE))
		counts->unpacked++;
	check_guards();
	free(record);
}

/*
 * Reads all that a segment and its index give, in each way.
 */
static void
read_all(Counts *counts)
{
	FlashbackPoint point = {.lsn = PG_UINT64_MAX,.position = SEGMENT * FLASHBACK_LOG_SEGMENT_SIZE + FLASHBACK_LOG_FIRST_OFFSET};
	RelFileLocator rlocator = {DEFAULTTABLESPACE_OID, 5, 16384 + choose(6)};
	FlashbackImages *images = begin_images(&point, choose(2) ? NULL : &rlocator);
	FlashbackImageReader *reader = begin_reading();
	FlashbackImage image;
	int			n = 0;

	while (next_image(images, &image))
	{
		/* An index says how many there are, a segment has no room for more */
		if (++n > FLASHBACK_LOG_SEGMENT_SIZE / sizeof(FlashbackLogRecord))
			elog(PANIC, "reading does not end");
		counts->images++;
		if (image.kind == FLASHBACK_IMAGE_PAGE)
		{
			memset(guarded, GUARD, 3 * BLCKSZ);
			read_next(reader, &image, PAGE);
			check_guards();
		}
	}
	end_images(images);
	end_reading(reader);
}

/*
 * A mutated segment or index, as files.
 */
static void
try_file(Counts *counts)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	char		path[MAXPGPATH];
	char		index_path[MAXPGPATH];
	char	   *bytes;
	Size		length;

	flashback_log_segment_path(path, SEGMENT);
	flashback_log_index_path(index_path, SEGMENT);
	write_next_header(choose(2));

	bytes = palloc(FLASHBACK_LOG_SEGMENT_SIZE);
	memcpy(bytes, segment, segment_used);
	length = choose(4) ? segment_used : choose(segment_used + 1);
	if (choose(2))
		for (int n = choose(5); n > 0; n--)
		{
			Size		at = offsets[choose(NRECORDS)];
			FlashbackLogRecord *record = (FlashbackLogRecord *) (bytes + at);
			Size		size = flashback_log_record_size(record);

			mutate((char *) record, size);
			if (choose(2))
				make_right(record, size);
		}
	if (choose(8) == 0)
	{
		mutate(bytes, sizeof(FlashbackLogHeader));
		if (choose(2))
			make_header_right((FlashbackLogHeader *) bytes);
	}
	write_file(path, bytes, length);

	(void) unlink(index_path);
	if (choose(2))
	{
		FlashbackLogIndexHeader *header = (FlashbackLogIndexHeader *) bytes;

		length = index_size;
		memcpy(bytes, segment_index, index_size);
		mutate(bytes, choose(2) ? sizeof(FlashbackLogIndexHeader) : index_size);
		if (choose(4) == 0)
			length = choose(index_size + 1);
		if (choose(2) && header->nentries <= (index_size - sizeof(*header)) / sizeof(FlashbackLogIndexEntry))
			index_crcs(header, (FlashbackLogIndexEntry *) (header + 1), &header->crc, &header->header_crc);
		write_file(index_path, bytes, length);
	}
	pfree(bytes);

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		MemoryContextSwitchTo(context);
		read_all(counts);
		if (choose(4) == 0)
			(void) flashback_log_index_segment(SEGMENT);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		/* An index may name a segment that is not there */
		if (geterrcode() != ERRCODE_DATA_CORRUPTED && geterrcode() != ERRCODE_UNDEFINED_FILE)
			PG_RE_THROW();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		counts->damaged++;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
}

/*
 * flashback_log_fuzz(seed, rounds)
 */
Datum
flashback_log_fuzz(PG_FUNCTION_ARGS)
{
	int			rounds = PG_GETARG_INT32(1);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fuzz", ALLOCSET_DEFAULT_SIZES);
	char		path[MAXPGPATH];
	TupleDesc	desc;
	Datum		values[4];
	bool		nulls[4] = {0};
	Counts		counts = {0};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	pg_prng_seed(&prng, PG_GETARG_INT32(0));
	guarded = palloc_aligned(3 * BLCKSZ, PG_IO_ALIGN_SIZE, 0);
	segment = palloc(FLASHBACK_LOG_SEGMENT_SIZE);
	flashback_log_shared = palloc0(sizeof(FlashbackLogShared));
	SpinLockInit(&flashback_log_shared->mutex);
	flashback_log_locks = palloc_aligned(FLASHBACK_LOG_NLOCKS * sizeof(LWLockPadded), PG_CACHE_LINE_SIZE, MCXT_ALLOC_ZERO);
	for (int i = 0; i < FLASHBACK_LOG_NLOCKS; i++)
		LWLockInitialize(flashback_log_lock(i), LWTRANCHE_FIRST_USER_DEFINED);
	if (mkdir(FLASHBACK_LOG_DIR, S_IRWXU) != 0 && errno != EEXIST)
		elog(ERROR, "could not create directory \"%s\": %m", FLASHBACK_LOG_DIR);

	make_segment_bytes();
	flashback_log_segment_path(path, SEGMENT);
	write_file(path, segment, segment_used);
	write_next_header(true);
	if (!flashback_log_index_segment(SEGMENT))
		elog(ERROR, "what is in order is not read: %s", flashback_log_error);
	flashback_log_index_path(path, SEGMENT);
	read_file(path, &segment_index, &index_size);
	read_all(&counts);
	if (counts.images == 0)
		elog(ERROR, "what is in order gives nothing");

	/* What refuses a file may say so; here it would say it thousands of times */
	log_min_messages = FATAL;
	client_min_messages = ERROR;
	for (int i = 0; i < rounds; i++)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);

		CHECK_FOR_INTERRUPTS();
		if (i % RECORDS_FOR_A_FILE == 0)
			try_file(&counts);
		else
			try_record(&counts);
		MemoryContextSwitchTo(old_context);
		MemoryContextReset(context);
	}
	pfree(segment_index);

	values[0] = Int64GetDatum(counts.refused);
	values[1] = Int64GetDatum(counts.unpacked);
	values[2] = Int64GetDatum(counts.images);
	values[3] = Int64GetDatum(counts.damaged);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
