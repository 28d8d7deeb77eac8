/*-------------------------------------------------------------------------
 *
 * kept.c
 *	  Which blocks need no image any more before the next point.
 *
 * A table of limited size in shared memory: what it has forgotten costs a look
 * at the block, nothing else.  See the claim P15.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/kept.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "flashback_log.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/shmem.h"

#define BLOCKS_PER_BUCKET 6

typedef struct KeptBlock
{
	RelFileLocator rlocator;
	BlockNumber blkno;
	uint32		point;			/* number of the last one; 0: free */
} KeptBlock;

typedef struct KeptBucket
{
	slock_t		mutex;
	uint32		next;			/* to be forgotten */
	KeptBlock	blocks[BLOCKS_PER_BUCKET];
} KeptBucket;

static KeptBucket *buckets = NULL;

/*
 * Room for about twice as many blocks as the buffer pool has.
 */
static uint32
bucket_count(void)
{
	return pg_nextpower2_32(Max(NBuffers / 4, 16));
}

/*
 * Shared memory that is needed.
 */
Size
flashback_log_kept_size(void)
{
	return flashback_log_enabled ? mul_size(bucket_count(), sizeof(KeptBucket)) : 0;
}

/*
 * Makes the table, or finds it.
 */
void
flashback_log_kept_startup(void)
{
	bool		found;

	if (!flashback_log_enabled)
		return;
	buckets = ShmemInitStruct("flashback_log kept", flashback_log_kept_size(), &found);
	if (found)
		return;
	memset(buckets, 0, flashback_log_kept_size());
	for (uint32 i = 0; i < bucket_count(); i++)
		SpinLockInit(&buckets[i].mutex);
}

static KeptBucket *
bucket_of(const RelFileLocator *rlocator, BlockNumber blkno)
{
	uint32		hash = murmurhash32(rlocator->relNumber ^ murmurhash32(rlocator->dbOid ^ murmurhash32(blkno)));

	return &buckets[hash & (bucket_count() - 1)];
}

static KeptBlock *
find(KeptBucket *bucket, const RelFileLocator *rlocator, BlockNumber blkno)
{
	for (int i = 0; i < BLOCKS_PER_BUCKET; i++)
	{
		KeptBlock  *block = &bucket->blocks[i];

		if (block->blkno == blkno && block->point != 0 && RelFileLocatorEquals(block->rlocator, *rlocator))
			return block;
	}
	return NULL;
}

/*
 * Whether this block needs no image any more since this point.  The caller
 * holds the epoch if it relies on the answer.
 */
bool
flashback_log_is_kept(const RelFileLocator *rlocator, BlockNumber blkno, uint64 point)
{
	KeptBucket *bucket = bucket_of(rlocator, blkno);
	KeptBlock  *block;
	bool		result;

	SpinLockAcquire(&bucket->mutex);
	block = find(bucket, rlocator, blkno);
	result = (block != NULL && block->point == (uint32) point);
	SpinLockRelease(&bucket->mutex);
	return result;
}

/*
 * Notes that.  In sync mode the image, if there was one, is durable.
 */
void
flashback_log_note_kept(const RelFileLocator *rlocator, BlockNumber blkno, uint64 point)
{
	KeptBucket *bucket = bucket_of(rlocator, blkno);
	KeptBlock  *block;

	SpinLockAcquire(&bucket->mutex);
	block = find(bucket, rlocator, blkno);
	if (block == NULL)
	{
		block = &bucket->blocks[bucket->next];
		bucket->next = (bucket->next + 1) % BLOCKS_PER_BUCKET;
		block->rlocator = *rlocator;
		block->blkno = blkno;
	}
	block->point = (uint32) point;
	SpinLockRelease(&bucket->mutex);
}
