/*-------------------------------------------------------------------------
 *
 * log_source.c
 *	  Pages from the flashback log of this instance.
 *
 * In sync mode each page that a crash can tear was written after the point of
 * the last complete checkpoint, and what it was at that point is in the log,
 * durable before the write.  Whether that holds is the log's to say; what is
 * damaged is an ordinary result, as there may be other sources.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/log_source.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "flashback_log_api.h"
#include "fmgr.h"
#include "log_source.h"
#include "utils/memutils.h"

/* The first image of a block after the point */
typedef struct LogImage
{
	RelFileLocator rlocator;	/* hash key, with the block number */
	BlockNumber blkno;
	FlashbackImage image;
} LogImage;

struct LogSource
{
	const FlashbackLogApi *api;
	FlashbackPoint point;
	HTAB	   *images;
	bool		whole;			/* all of the log has been looked at */
	char		damage[256];	/* if not, why */
};

#define LOG_IMAGE_KEY_SIZE (offsetof(LogImage, blkno) + sizeof(BlockNumber))

/*
 * The functions of the log, or NULL.  Its module may be loaded after this one.
 */
static const FlashbackLogApi *
get_api(void)
{
	return *find_rendezvous_variable(FLASHBACK_LOG_API);
}

/*
 * Is the log kept in the mode in which it can be a source?  The same all the
 * time that the server runs.
 */
bool
log_source_is_configured(void)
{
	const FlashbackLogApi *api = get_api();

	return api != NULL && strcmp(api->mode(), "sync") == 0;
}

/*
 * Is there a log at all?
 */
bool
log_source_is_enabled(void)
{
	const FlashbackLogApi *api = get_api();

	return api != NULL && strcmp(api->mode(), "off") != 0;
}

/*
 * If the server crashed now, could recovery from this redo location rebuild each page that a crash tore
 * with the log alone?  If not, say why.  Raises no error.
 */
bool
log_source_protects(XLogRecPtr redo, char *why, Size why_size)
{
	const FlashbackLogApi *api = get_api();

	if (api == NULL)
		strlcpy(why, "its module is not loaded", why_size);
	else if (!DataChecksumsEnabled())
		strlcpy(why, "data checksums are off", why_size);
	else if (page_repair_policy == PAGE_REPAIR_OFF)
		strlcpy(why, "polar_page_repair_policy is off", why_size);
	else if (!log_source_is_configured())
		snprintf(why, why_size, "polar_flashback_log_mode is %s", api->mode());
	else
		return api->protects(redo, NULL, why, why_size);
	return false;
}

/*
 * Has the log room for what will be overwritten next?
 */
bool
log_source_has_room(char *why, Size why_size)
{
	const FlashbackLogApi *api = get_api();

	return api != NULL && api->has_room(why, why_size);
}

/*
 * How many blocks could not be kept, and so not be overwritten.
 */
uint64
log_source_failures(void)
{
	const FlashbackLogApi *api = get_api();

	return api != NULL ? api->failures() : 0;
}

/*
 * The log as a source for a recovery from this redo location, or NULL and the
 * reason.
 */
LogSource *
log_source_open(XLogRecPtr redo, char *why, Size why_size)
{
	const FlashbackLogApi *api = get_api();
	FlashbackPoint point;
	LogSource  *log;

	if (api == NULL)
	{
		strlcpy(why, "its module is not loaded", why_size);
		return NULL;
	}
	if (!api->protects(redo, &point, why, why_size))
		return NULL;
	log = palloc0(sizeof(LogSource));
	log->api = api;
	log->point = point;
	return log;
}

/*
 * What an error of the log was, unless it is one of this process.
 */
static void
take_error(MemoryContext context, char *why, Size why_size)
{
	ErrorData  *error;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	if (error->sqlerrcode == ERRCODE_OUT_OF_MEMORY || error->sqlerrcode == ERRCODE_QUERY_CANCELED)
		PG_RE_THROW();
	FlushErrorState();
	if (error->detail)
		snprintf(why, why_size, "%s: %s", error->message, error->detail);
	else
		strlcpy(why, error->message, why_size);
	/* The reader's details are sentences, this becomes a part of one */
	if (why[0] != '\0' && why[strlen(why) - 1] == '.')
		why[strlen(why) - 1] = '\0';
	FreeErrorData(error);
}

/*
 * Look up the first image of each block that is wanted (NULL: of all), before
 * recovery itself overwrites anything.  False, and the reason, if the log could
 * not be read to its end: then only what was found is known.
 */
bool
log_source_index(LogSource *log, bool (*is_wanted) (const PageRepairBlock *block, void *arg), void *arg,
				 char *why, Size why_size)
{
	HASHCTL		control = {.keysize = LOG_IMAGE_KEY_SIZE,.entrysize = sizeof(LogImage),
	.hcxt = CurrentMemoryContext};
	MemoryContext context = CurrentMemoryContext;
	FlashbackImages *volatile images = NULL;

	log->images = hash_create("page repair images", 1024, &control,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	PG_TRY();
	{
		FlashbackImage image;

		images = log->api->begin_images(&log->point, NULL);
		while (log->api->next_image(images, &image))
		{
			PageRepairBlock block = {image.rlocator, MAIN_FORKNUM, image.blkno};
			LogImage	key = {.rlocator = image.rlocator,.blkno = image.blkno};
			LogImage   *entry;
			bool		found;

			if (is_wanted != NULL && !is_wanted(&block, arg))
				continue;
			entry = hash_search(log->images, &key, HASH_ENTER, &found);
			if (!found)
				entry->image = image;
		}
		log->whole = true;
	}
	PG_CATCH();
	{
		take_error(context, log->damage, sizeof(log->damage));
		strlcpy(why, log->damage, why_size);
	}
	PG_END_TRY();
	if (images != NULL)
		log->api->end_images(images);
	return log->whole;
}

/*
 * What the log has for this block: BLCKSZ and its page, or one of the values
 * in log_source.h.
 *
 * A block that could not be read when it was overwritten was torn by an
 * earlier crash, without an image from before: then it held nothing at the
 * point; or it was damaged already.  Which one, the caller's WAL tells, as for
 * a block that has no image at all.
 */
int
log_source_read(LogSource *log, const PageRepairBlock *block, char *page,
				char *why, Size why_size)
{
	LogImage	key = {.rlocator = block->rlocator,.blkno = block->blkno};
	LogImage   *entry = NULL;
	MemoryContext context = CurrentMemoryContext;
	volatile int result = LOG_SOURCE_UNKNOWN;

	if (block->forknum == VISIBILITYMAP_FORKNUM)
		return LOG_SOURCE_NO_CONTENT;
	if (block->forknum == MAIN_FORKNUM)
		entry = hash_search(log->images, &key, HASH_FIND, NULL);
	if (entry == NULL)
	{
		if (log->whole && block->forknum == MAIN_FORKNUM)
			return LOG_SOURCE_KEEP;
		strlcpy(why, log->whole ? "it has main forks only" : log->damage, why_size);
		return LOG_SOURCE_UNKNOWN;
	}
	if (entry->image.kind != FLASHBACK_IMAGE_PAGE)
		return LOG_SOURCE_NO_CONTENT;

	PG_TRY();
	{
		log->api->read_image(&entry->image, page);
		result = BLCKSZ;
	}
	PG_CATCH();
	{
		take_error(context, why, why_size);
	}
	PG_END_TRY();
	return result;
}

/*
 * To be asked after pages have been read, before they are used.
 */
bool
log_source_is_complete(LogSource *log)
{
	return log->api->is_complete(&log->point);
}

/*
 * Where its pages have all changes of, and after which they have none.
 */
XLogRecPtr
log_source_redo(const LogSource *log)
{
	return log->point.redo;
}

XLogRecPtr
log_source_lsn(const LogSource *log)
{
	return log->point.lsn;
}

TimeLineID
log_source_timeline(const LogSource *log)
{
	return log->point.timeline;
}

/*
 * Nothing more is wanted of it.
 */
void
log_source_close(LogSource *log)
{
	if (log->images)
		hash_destroy(log->images);
	pfree(log);
}
