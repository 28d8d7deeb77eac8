/*-------------------------------------------------------------------------
 *
 * mapped.c
 *	  The file that a mapped catalog had at a moment, if it has been rewritten
 *	  since.
 *
 * Where pg_class and pg_attribute are, the relation map says, and nothing keeps
 * that of then.  WAL has each new map, and the creation of each file: the first
 * map after the moment in which the catalog has a file that was created after
 * it is that of the commit that rewrote it.  This deleted the file of before.
 *
 * That must not be another one: who could name any file as pg_class of then
 * could have any file read as a table of theirs.  So the commit must have
 * deleted just as many files as the catalog has, and only one of these may have
 * been kept; indexes are not.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/mapped.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "access/xlogreader.h"
#include "catalog/pg_class.h"
#include "catalog/storage_xlog.h"
#include "flashback_internal.h"
#include "miscadmin.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/relmapper.h"

/* As in relmapper.c */
#define MAP_MAGIC 0x592717

typedef struct MapHeader
{
	int32		magic;
	int32		nmappings;
} MapHeader;

typedef struct Mapping
{
	Oid			relid;
	RelFileNumber file;
} Mapping;

/*
 * The file of a catalog in a record of a new map of this database; 0 if it is
 * of another one.
 */
static RelFileNumber
file_in_map(XLogReaderState *record, Oid relid)
{
	xl_relmap_update update;
	MapHeader	header;
	const char *data = XLogRecGetData(record) + MinSizeOfRelmapUpdate;

	if (XLogRecGetRmid(record) != RM_RELMAP_ID ||
		(XLogRecGetInfo(record) & ~XLR_INFO_MASK) != XLOG_RELMAP_UPDATE)
		return InvalidRelFileNumber;
	if (XLogRecGetDataLen(record) < MinSizeOfRelmapUpdate + sizeof(MapHeader))
		goto damaged;
	memcpy(&update, XLogRecGetData(record), MinSizeOfRelmapUpdate);
	memcpy(&header, data, sizeof(header));
	if (header.magic != MAP_MAGIC || header.nmappings < 0 ||
		header.nmappings > (XLogRecGetDataLen(record) - MinSizeOfRelmapUpdate - sizeof(MapHeader)) / sizeof(Mapping))
		goto damaged;
	if (update.dbid != MyDatabaseId)
		return InvalidRelFileNumber;
	for (int i = 0; i < header.nmappings; i++)
	{
		Mapping		mapping;

		memcpy(&mapping, data + sizeof(MapHeader) + i * sizeof(Mapping), sizeof(mapping));
		if (mapping.relid == relid)
			return mapping.file;
	}
	return InvalidRelFileNumber;

damaged:
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("invalid relation map in WAL at %X/%X", LSN_FORMAT_ARGS(record->ReadRecPtr))));
}

/*
 * Notes a file of this database that is created.
 */
static List *
note_created(XLogReaderState *record, List *created)
{
	xl_smgr_create create;

	if (XLogRecGetRmid(record) != RM_SMGR_ID ||
		(XLogRecGetInfo(record) & ~XLR_INFO_MASK) != XLOG_SMGR_CREATE ||
		XLogRecGetDataLen(record) < sizeof(create))
		return created;
	memcpy(&create, XLogRecGetData(record), sizeof(create));
	if (create.forkNum != MAIN_FORKNUM || create.rlocator.dbOid != MyDatabaseId ||
		create.rlocator.spcOid != MyDatabaseTableSpace)
		return created;
	return lappend_oid(created, create.rlocator.relNumber);
}

/* A commit that rewrote a catalog */
typedef struct Rewrite
{
	Oid			database;
	Oid			relid;
	XLogRecPtr	from;			/* none did from here on before it */
	XLogRecPtr	commit_lsn;		/* end of its record */
	int			ndeleted;		/* how many files it deleted */
} Rewrite;

/*
 * Looks for the first commit that rewrote a catalog with a map between two
 * positions.
 */
static bool
search_rewrite(XLogRecPtr from, XLogRecPtr to, Rewrite *rewrite)
{
	FlashbackWalPass *pass = flashback_wal_begin(from, flashback_end_of_wal());
	XLogReaderState *record;
	List	   *created = NIL;
	TransactionId xid = InvalidTransactionId;
	bool		found = false;

	while (!found && (record = flashback_wal_next(pass)) != NULL)
	{
		RelFileNumber file;
		FlashbackCommitRecord commit;

		if (TransactionIdIsValid(xid))
		{
			found = flashback_is_commit(record, &commit) && commit.xid == xid;
			if (!found)
				continue;
			rewrite->from = from;
			rewrite->commit_lsn = record->EndRecPtr;
			rewrite->ndeleted = commit.nfiles;
			continue;
		}
		if (record->ReadRecPtr >= to)
			break;
		created = note_created(record, created);
		file = file_in_map(record, rewrite->relid);
		if (RelFileNumberIsValid(file) && list_member_oid(created, file))
			xid = XLogRecGetXid(record);
	}
	flashback_wal_end(pass);
	list_free(created);
	return found;
}

/*
 * The first commit after the moment that rewrote a catalog; false if none did.
 * The last one is remembered, as one moment after the other is looked at.
 */
static bool
find_rewrite(Oid relid, const FlashbackMoment *moment, Rewrite *rewrite)
{
	static Rewrite last[2];
	Rewrite    *known = &last[relid == RelationRelationId ? 0 : 1];
	XLogRecPtr	to = flashback_end_of_wal();
	bool		usable = (known->database == MyDatabaseId && known->relid == relid &&
						  moment->lsn < known->commit_lsn);

	if (usable && known->from < to)
		to = known->from;
	rewrite->database = MyDatabaseId;
	rewrite->relid = relid;
	if (usable && moment->lsn >= known->from)
		*rewrite = *known;
	else if (!search_rewrite(moment->lsn, to, rewrite))
	{
		if (!usable)
			return false;
		known->from = moment->lsn;
		*rewrite = *known;
	}
	*known = *rewrite;
	return true;
}

/*
 * How many files a catalog without a TOAST relation has.
 */
static int
count_files(Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);
	List	   *indexes = RelationGetIndexList(rel);
	int			result = 1 + list_length(indexes);

	if (OidIsValid(rel->rd_rel->reltoastrelid))
		result = 0;
	list_free(indexes);
	table_close(rel, NoLock);
	return result;
}

/*
 * Finds the kept file of a mapped catalog of this database; false if there is
 * none, or it is not certain.
 */
bool
flashback_mapped_file(Oid relid, const FlashbackMoment *moment, FlashbackFile *file)
{
	FlashbackKeptFile *files;
	Rewrite		rewrite;
	int			nfiles;
	int			nfound = 0;

	if (!find_rewrite(relid, moment, &rewrite) || rewrite.ndeleted != count_files(relid))
		return false;
	files = flashback_log()->recycle->list(&nfiles);
	for (int i = 0; i < nfiles; i++)
	{
		if (files[i].commit_lsn != rewrite.commit_lsn || files[i].rlocator.dbOid != MyDatabaseId)
			continue;
		memset(file, 0, sizeof(*file));
		file->rlocator = files[i].rlocator;
		file->nblocks = files[i].nblocks;
		file->kept = true;
		nfound++;
	}
	pfree(files);
	return nfound == 1;
}
