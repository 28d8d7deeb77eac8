/*-------------------------------------------------------------------------
 *
 * parallel.c
 *	  Parallel workers that take part in making a result page by page.
 *
 * Each participant, of which the process that was called is one, reads its
 * share of the blocks, and writes pages of its own into the result's file; see
 * README.parallel.md.  Here is what they have in common, in dynamic shared
 * memory, and how they begin and end.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/parallel.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/table.h"
#include "access/tupdesc_details.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "executor/instrument.h"
#include "flashback_copy.h"
#include "flashback_sql.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "storage/barrier.h"
#include "storage/condition_variable.h"
#include "storage/sharedfileset.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/datum.h"
#include "utils/dsa.h"
#include "utils/injection_point.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/sharedtuplestore.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

/* Keys of what is in the segment */
#define KEY_SHARED			UINT64CONST(0xF1A5000000000001)
#define KEY_XIDS			UINT64CONST(0xF1A5000000000002)
#define KEY_DESCRIPTORS		UINT64CONST(0xF1A5000000000003)
#define KEY_AREA			UINT64CONST(0xF1A5000000000004)
#define KEY_LARGE			UINT64CONST(0xF1A5000000000005)
#define KEY_WAL_USAGE		UINT64CONST(0xF1A5000000000006)
#define KEY_BUFFER_USAGE	UINT64CONST(0xF1A5000000000007)
#define KEY_QUERY			UINT64CONST(0xF1A5000000000008)

/* Participants take turns after so many blocks, less in a small file */
#define RUN_MAX ((BlockNumber) (1024 * 1024 / BLCKSZ))
#define RUNS_EACH 16

/* Unless told otherwise, so much of maintenance_work_mem (kB) is for each */
#define LEAST_MEMORY (8 * 1024)

/* WAL is read about so many times as fast as pages are copied */
#define WAL_SPEED 4

/* What a participant has to tell the others */
typedef struct Part
{
	uint64		tuples[2];		/* that it has copied, by FlashbackTarget */
	dsa_pointer values;			/* array of FlashbackValue */
	uint32		nvalues;
} Part;

/* The values of all; a hash table that has at most half of its places taken */
typedef struct Values
{
	uint64		mask;
	FlashbackValue places[FLEXIBLE_ARRAY_MEMBER];	/* id 0: free */
} Values;

typedef struct Shared
{
	/* Set before the workers begin */
	Oid			relid;			/* to be opened; InvalidOid: it has been
								 * dropped, or has another file now */
	Oid			result;
	FlashbackFormer former;		/* without columns */
	FlashbackMoment moment;		/* without transactions */
	TransactionId xid;
	int			progress;

	/* Set when it is known how many there are */
	slock_t		mutex;
	ConditionVariable ready;
	int			participants;	/* 0: not yet */
	Barrier		barrier;

	FlashbackNewFile files[2];	/* by FlashbackTarget */
	dsa_pointer values;			/* of all; InvalidDsaPointer: none */
	SharedFileSet fileset;
	Part		parts[FLEXIBLE_ARRAY_MEMBER];
} Shared;

struct FlashbackTeam
{
	ParallelContext *context;	/* NULL in a worker */
	Shared	   *shared;
	int			number;			/* 0: the one that was called */
	int			participants;
	dsa_area   *area;
	SharedTuplestoreAccessor *large;
	Values	   *values;
	WalUsage   *wal_usage;
	BufferUsage *buffer_usage;
};

static uint32
wait_event(void)
{
	static uint32 event = 0;

	if (event == 0)
		event = WaitEventExtensionNew("FlashbackParallel");
	return event;
}

/*
 * How many workers a copy gets.  As for the build of an index, more for a
 * larger file, but each needs memory for pages, and reads the WAL by itself.
 */
static int
count_workers(const FlashbackScan *scan, int wanted)
{
	const FlashbackMoment *moment = flashback_scan_moment(scan);
	uint64		wal = moment->lsn - moment->point.redo;
	BlockNumber nblocks = flashback_scan_size(scan);
	uint64		threshold = Max(min_parallel_table_scan_size, 1);
	int			workers = 0;

	if (!IsUnderPostmaster || IsInParallelMode() || !ActiveSnapshotSet())
		return 0;
	if (wanted != FLASHBACK_WORKERS_DEFAULT)
		return wanted;
	while (workers < max_parallel_maintenance_workers && nblocks >= threshold)
	{
		workers++;
		threshold *= 3;
	}
	while (workers > 0 &&
		   (maintenance_work_mem / (workers + 1) < LEAST_MEMORY ||
			workers * wal > (uint64) nblocks * BLCKSZ * WAL_SPEED))
		workers--;
	return workers;
}

/*
 * A descriptor as bytes: what is needed to take tuples apart, and the values
 * of columns that short ones lack.
 */
static void
write_descriptor(StringInfo to, TupleDesc desc)
{
	appendBinaryStringInfo(to, &desc->natts, sizeof(int));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		AttrMissing *missing = NULL;
		Size		size;
		char	   *at;

		appendBinaryStringInfo(to, att, ATTRIBUTE_FIXED_PART_SIZE);
		if (att->atthasmissing && desc->constr && desc->constr->missing &&
			desc->constr->missing[i].am_present)
			missing = &desc->constr->missing[i];
		size = datumEstimateSpace(missing ? missing->am_value : (Datum) 0, missing == NULL,
								  att->attbyval, att->attlen);
		enlargeStringInfo(to, size);
		at = to->data + to->len;
		datumSerialize(missing ? missing->am_value : (Datum) 0, missing == NULL,
					   att->attbyval, att->attlen, &at);
		to->len += size;
	}
}

static TupleDesc
read_descriptor(char **from)
{
	int			natts;
	TupleDesc	desc;

	memcpy(&natts, *from, sizeof(int));
	*from += sizeof(int);
	desc = CreateTemplateTupleDesc(natts);
	for (int i = 0; i < natts; i++)
	{
		Datum		value;
		bool		isnull;

		memcpy(TupleDescAttr(desc, i), *from, ATTRIBUTE_FIXED_PART_SIZE);
		*from += ATTRIBUTE_FIXED_PART_SIZE;
		populate_compact_attribute(desc, i);
		value = datumRestore(from, &isnull);
		if (isnull)
			continue;
		if (desc->constr == NULL)
		{
			desc->constr = palloc0(sizeof(TupleConstr));
			desc->constr->missing = palloc0_array(AttrMissing, natts);
		}
		desc->constr->missing[i].am_present = true;
		desc->constr->missing[i].am_value = value;
	}
	return desc;
}

static void *
allocate(ParallelContext *context, uint64 key, Size size)
{
	void	   *result = shm_toc_allocate(context->toc, size);

	shm_toc_insert(context->toc, key, result);
	return result;
}

static void
estimate(ParallelContext *context, Size size)
{
	shm_toc_estimate_chunk(&context->estimator, size);
	shm_toc_estimate_keys(&context->estimator, 1);
}

/*
 * Ends parallel mode, without any worker.
 */
static void
give_up(ParallelContext *context)
{
	DestroyParallelContext(context);
	ExitParallelMode();
}

/*
 * Starts workers for a scan that has not begun, whose result is made by a
 * transaction; NULL if there are none.
 */
FlashbackTeam *
flashback_team_begin(FlashbackScan *scan, Relation result, TransactionId xid, int wanted)
{
	int			workers = count_workers(scan, wanted);
	const FlashbackMoment *moment = flashback_scan_moment(scan);
	Size		running = moment->nrunning * sizeof(TransactionId);
	Size		committed = moment->ncommitted * sizeof(TransactionId);
	ParallelContext *context;
	FlashbackTeam *team;
	FlashbackStored stored;
	StringInfoData descriptors;
	Size		query = debug_query_string ? strlen(debug_query_string) + 1 : 0;
	Size		shared_size;
	Size		large_size;
	Shared	   *shared;
	char	   *xids;
	void	   *area;

	if (workers == 0)
		return NULL;
	flashback_scan_describe(scan, &stored);
	initStringInfo(&descriptors);
	write_descriptor(&descriptors, stored.desc);
	write_descriptor(&descriptors, stored.shape);

	EnterParallelMode();
	context = CreateParallelContext("flashback_table", "flashback_team_main", workers);
	workers = context->nworkers;
	shared_size = offsetof(Shared, parts) + (workers + 1) * sizeof(Part);
	large_size = sts_estimate(workers + 1);
	estimate(context, shared_size);
	estimate(context, running + committed);
	estimate(context, descriptors.len);
	estimate(context, dsa_minimum_size());
	estimate(context, large_size);
	estimate(context, mul_size(sizeof(WalUsage), workers));
	estimate(context, mul_size(sizeof(BufferUsage), workers));
	if (query > 0)
		estimate(context, query);
	InitializeParallelDSM(context);
	if (context->seg == NULL)
	{
		give_up(context);
		return NULL;
	}

	shared = allocate(context, KEY_SHARED, shared_size);
	memset(shared, 0, shared_size);
	flashback_scan_former(scan, &shared->former);
	shared->relid = shared->former.file.kept ? InvalidOid : RelationGetRelid(flashback_scan_relation(scan));
	shared->result = RelationGetRelid(result);
	shared->moment = *moment;
	shared->xid = xid;
	shared->progress = flashback_progress_number();
	SpinLockInit(&shared->mutex);
	ConditionVariableInit(&shared->ready);
	shared->values = InvalidDsaPointer;
	SharedFileSetInit(&shared->fileset, context->seg);

	xids = allocate(context, KEY_XIDS, running + committed);
	if (running > 0)
		memcpy(xids, moment->running, running);
	if (committed > 0)
		memcpy(xids + running, moment->committed, committed);
	memcpy(allocate(context, KEY_DESCRIPTORS, descriptors.len), descriptors.data, descriptors.len);
	area = allocate(context, KEY_AREA, dsa_minimum_size());
	if (query > 0)
		memcpy(allocate(context, KEY_QUERY, query), debug_query_string, query);

	team = palloc0(sizeof(FlashbackTeam));
	team->context = context;
	team->shared = shared;
	team->area = dsa_create_in_place(area, dsa_minimum_size(), LWTRANCHE_PARALLEL_QUERY_DSA,
									 context->seg);
	team->large = sts_initialize(allocate(context, KEY_LARGE, large_size), workers + 1, 0, 0, 0,
								 &shared->fileset, "flashback");
	team->wal_usage = allocate(context, KEY_WAL_USAGE, mul_size(sizeof(WalUsage), workers));
	team->buffer_usage = allocate(context, KEY_BUFFER_USAGE, mul_size(sizeof(BufferUsage), workers));

	LaunchParallelWorkers(context);
	if (context->nworkers_launched == 0)
	{
		dsa_detach(team->area);
		give_up(context);
		return NULL;
	}

	/* One that cannot begin is an error; without it blocks would be missing */
	WaitForParallelWorkersToAttach(context);
	team->participants = context->nworkers_launched + 1;
	BarrierInit(&shared->barrier, team->participants);
	SpinLockAcquire(&shared->mutex);
	shared->participants = team->participants;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->ready);
	return team;
}

/*
 * The file that all participants write.
 */
FlashbackNewFile *
flashback_team_file(FlashbackTeam *team, FlashbackTarget target)
{
	return &team->shared->files[target];
}

/*
 * Our share of the blocks that are read for it: all participants must go by the
 * same size, while the file may grow.
 */
void
flashback_team_share(const FlashbackTeam *team, FlashbackTarget target, FlashbackShare *share)
{
	const FlashbackFormer *former = &team->shared->former;
	BlockNumber nblocks = target == FLASHBACK_TABLE ? former->file.nblocks : former->toast.nblocks;

	share->number = team->number;
	share->of = team->participants;
	share->run = Max(Min(nblocks / (team->participants * RUNS_EACH), RUN_MAX), 1);
}

/*
 * A row that is too long for a page is left to the first participant.
 */
void
flashback_team_put_large(FlashbackTeam *team, HeapTuple tuple)
{
	MinimalTuple minimal = minimal_tuple_from_heap_tuple(tuple, 0);

	sts_puttuple(team->large, NULL, minimal);
	pfree(minimal);
}

/*
 * The place of a value, or the free one where it would be.
 */
static FlashbackValue *
find_place(Values *values, Oid id)
{
	uint64		i = murmurhash32(id) & values->mask;

	while (values->places[i].id != id && values->places[i].id != InvalidOid)
		i = (i + 1) & values->mask;
	return &values->places[i];
}

/*
 * Brings together what the participants have found; one that they have both
 * must be of one size.
 */
static void
merge_values(FlashbackTeam *team, flashback_refuse_value refuse, void *arg)
{
	Shared	   *shared = team->shared;
	uint64		n = 0;
	uint64		nplaces;

	for (int i = 0; i < team->participants; i++)
		n += shared->parts[i].nvalues;
	if (n == 0)
		return;
	nplaces = pg_nextpower2_64(n * 2);
	shared->values = dsa_allocate_extended(team->area, offsetof(Values, places) + nplaces * sizeof(FlashbackValue),
										   DSA_ALLOC_HUGE | DSA_ALLOC_ZERO);
	team->values = dsa_get_address(team->area, shared->values);
	team->values->mask = nplaces - 1;
	for (int i = 0; i < team->participants; i++)
	{
		Part	   *part = &shared->parts[i];
		FlashbackValue *values = part->nvalues > 0 ? dsa_get_address(team->area, part->values) : NULL;

		for (uint32 k = 0; k < part->nvalues; k++)
		{
			FlashbackValue *place = find_place(team->values, values[k].id);

			if (place->id == values[k].id && place->size != values[k].size)
				refuse(arg, place->id, "Two rows have it, of different sizes");
			*place = values[k];
		}
		if (values)
			dsa_free(team->area, part->values);
	}
}

/*
 * Room for the values that this participant has found.
 */
FlashbackValue *
flashback_team_give_values(FlashbackTeam *team, uint32 n)
{
	Part	   *part = &team->shared->parts[team->number];

	part->nvalues = n;
	if (n == 0)
		return NULL;
	part->values = dsa_allocate_extended(team->area, n * sizeof(FlashbackValue), DSA_ALLOC_HUGE);
	return dsa_get_address(team->area, part->values);
}

/*
 * So many tuples of a file are from this participant.
 */
void
flashback_team_copied(FlashbackTeam *team, FlashbackTarget target, uint64 tuples)
{
	team->shared->parts[team->number].tuples[target] = tuples;
}

/*
 * The first file has been copied by all when this returns; true if any rows
 * have values to be copied, too.
 */
bool
flashback_team_meet(FlashbackTeam *team, flashback_refuse_value refuse, void *arg)
{
	Shared	   *shared = team->shared;

	BarrierArriveAndWait(&shared->barrier, wait_event());
	if (team->number == 0)
	{
		merge_values(team, refuse, arg);
		flashback_progress_next_relation();
	}
	BarrierArriveAndWait(&shared->barrier, wait_event());
	if (team->values == NULL && DsaPointerIsValid(shared->values))
		team->values = dsa_get_address(team->area, shared->values);
	return team->values != NULL;
}

/*
 * A value that some row has, or NULL.
 */
FlashbackValue *
flashback_team_find_value(FlashbackTeam *team, Oid id)
{
	FlashbackValue *place = OidIsValid(id) ? find_place(team->values, id) : NULL;

	return place && OidIsValid(place->id) ? place : NULL;
}

/*
 * All values, one after the other: NULL after the last.  *position begins at 0.
 */
FlashbackValue *
flashback_team_next_value(FlashbackTeam *team, uint64 *position)
{
	while (*position <= team->values->mask)
	{
		FlashbackValue *place = &team->values->places[(*position)++];

		if (OidIsValid(place->id))
			return place;
	}
	return NULL;
}

/*
 * Waits for the workers to end.
 */
void
flashback_team_finish(FlashbackTeam *team)
{
	sts_end_write(team->large);
	WaitForParallelWorkersToFinish(team->context);
	for (int i = 0; i < team->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&team->buffer_usage[i], &team->wal_usage[i]);
}

/*
 * How many tuples all of them have copied, once they have finished.
 */
uint64
flashback_team_tuples(const FlashbackTeam *team, FlashbackTarget target)
{
	uint64		result = 0;

	for (int i = 0; i < team->participants; i++)
		result += team->shared->parts[i].tuples[target];
	return result;
}

/*
 * The next row that is too long, once all have finished; NULL after the last.
 */
MinimalTuple
flashback_team_next_large(FlashbackTeam *team, bool first)
{
	if (first)
		sts_begin_parallel_scan(team->large);
	return sts_parallel_scan_next(team->large, NULL);
}

/*
 * Ends parallel mode.
 */
void
flashback_team_end(FlashbackTeam *team)
{
	sts_end_parallel_scan(team->large);
	dsa_detach(team->area);
	give_up(team->context);
	pfree(team);
}

/*
 * Waits until it is known how many take part.
 */
static int
await_participants(Shared *shared)
{
	int			result;

	ConditionVariablePrepareToSleep(&shared->ready);
	for (;;)
	{
		SpinLockAcquire(&shared->mutex);
		result = shared->participants;
		SpinLockRelease(&shared->mutex);
		if (result > 0)
			break;
		ConditionVariableSleep(&shared->ready, wait_event());
	}
	ConditionVariableCancelSleep();
	return result;
}

/*
 * A worker.
 */
void
flashback_team_main(dsm_segment *segment, shm_toc *toc)
{
	Shared	   *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	char	   *xids = shm_toc_lookup(toc, KEY_XIDS, false);
	char	   *descriptors = shm_toc_lookup(toc, KEY_DESCRIPTORS, false);
	FlashbackTeam team = {0};
	FlashbackMoment moment = shared->moment;
	FlashbackScan *scan;
	FlashbackShare share;
	TupleDesc	desc;
	TupleDesc	shape;
	Relation	rel = NULL;
	Relation	result;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);

	team.shared = shared;
	team.number = ParallelWorkerNumber + 1;
	team.area = dsa_attach_in_place(shm_toc_lookup(toc, KEY_AREA, false), segment);
	SharedFileSetAttach(&shared->fileset, segment);
	team.large = sts_attach(shm_toc_lookup(toc, KEY_LARGE, false), team.number, &shared->fileset);
	team.wal_usage = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	team.buffer_usage = shm_toc_lookup(toc, KEY_BUFFER_USAGE, false);
	moment.running = (TransactionId *) xids;
	moment.committed = (TransactionId *) xids + moment.nrunning;
	desc = read_descriptor(&descriptors);
	shape = read_descriptor(&descriptors);

	INJECTION_POINT("flashback-table-worker", NULL);
	team.participants = await_participants(shared);
	InstrStartParallelQuery();
	flashback_progress_join(shared->progress);

	/* The first participant holds the locks that matter */
	if (OidIsValid(shared->relid))
		rel = table_open(shared->relid, AccessShareLock);
	result = table_open(shared->result, RowExclusiveLock);
	flashback_team_share(&team, FLASHBACK_TABLE, &share);
	scan = flashback_scan_join(&shared->former, rel, desc, shape, &moment, &share);
	flashback_copy_share(scan, result, shared->xid, &team);
	sts_end_write(team.large);
	flashback_scan_end(scan);
	flashback_report(flashback_progress.phase);
	INJECTION_POINT("flashback-table-worker-copied", NULL);

	InstrEndParallelQuery(&team.buffer_usage[ParallelWorkerNumber], &team.wal_usage[ParallelWorkerNumber]);
	table_close(result, NoLock);
	if (rel)
		table_close(rel, NoLock);
	dsa_detach(team.area);
}
