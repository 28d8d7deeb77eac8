/*-------------------------------------------------------------------------
 *
 * definition_message.c
 *	  The definition of a dropped table as a record in WAL.
 *
 * It is a logical message of the transaction that drops the table, which any
 * server can replay, since replay does nothing.  It names no database where
 * others name their own: no SQL function can write such a one, and logical
 * decoding passes none on.
 *
 * Whoever can write WAL by other means could forge one, so it is taken apart
 * with care, and its texts are only ever run as the owner of the table.  Its
 * checksum is that of the record.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/definition_message.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/rmgr.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xloginsert.h"
#include "catalog/pg_type_d.h"
#include "flashback_definition.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "replication/message.h"
#include "utils/memutils.h"

#define PREFIX "polar_flashback_definition"
#define VERSION 1

/*
 * A table with 1,600 columns, each with a default and a check of some 300
 * characters, takes this much.
 */
#define MAX_SIZE ((Size) 1024 * 1024)

/* What a payload begins with */
typedef struct MessageHeader
{
	uint32		version;
	Oid			database;
	Oid			relid;
	int32		ncolumns;
	int32		npieces;
} MessageHeader;

/* What a column, and a piece, begins with */
typedef struct MessageColumn
{
	Oid			typid;
	int32		typmod;
	AttrNumber	attnum;
	bool		notnull;
} MessageColumn;

typedef struct MessagePiece
{
	FlashbackSequence parameters;
	ObjectAddress object;
	Oid			sequence;
	int32		nreferences;
	AttrNumber	attnum;
	uint8		kind;
	char		type;
	bool		unique;
	bool		self;
} MessagePiece;

/* What is left to be read */
typedef struct MessageReader
{
	const char *at;
	Size		left;
	bool		damaged;
} MessageReader;

static void
put(StringInfo buffer, const void *data, Size size)
{
	appendBinaryStringInfo(buffer, data, size);
}

static void
put_string(StringInfo buffer, const char *string)
{
	int32		length = string ? strlen(string) : 0;

	put(buffer, &length, sizeof(length));
	put(buffer, string ? string : "", length);
}

/*
 * The payload for a definition.
 */
char *
flashback_definition_encode(const FlashbackDefinition *definition, Size *size)
{
	StringInfoData buffer;
	MessageHeader header = {0};

	header.version = VERSION;
	header.database = MyDatabaseId;
	header.relid = definition->relid;
	header.ncolumns = list_length(definition->columns);
	header.npieces = list_length(definition->pieces);
	initStringInfo(&buffer);
	put(&buffer, &header, sizeof(header));
	put_string(&buffer, definition->schema);
	put_string(&buffer, definition->name);
	put_string(&buffer, definition->comment);
	foreach_ptr(FlashbackDefinedColumn, column, definition->columns)
	{
		MessageColumn fixed;

		memset(&fixed, 0, sizeof(fixed));
		fixed.typid = column->typid;
		fixed.typmod = column->typmod;
		fixed.attnum = column->attnum;
		fixed.notnull = column->notnull;
		put(&buffer, &fixed, sizeof(fixed));
		put_string(&buffer, column->name);
		put_string(&buffer, column->type);
		put_string(&buffer, column->comment);
	}
	foreach_ptr(FlashbackPiece, piece, definition->pieces)
	{
		MessagePiece fixed;

		memset(&fixed, 0, sizeof(fixed));
		fixed.parameters = piece->parameters;
		fixed.object = piece->object;
		fixed.sequence = piece->sequence;
		fixed.nreferences = list_length(piece->references);
		fixed.attnum = piece->attnum;
		fixed.kind = piece->kind;
		fixed.type = piece->type;
		fixed.unique = piece->unique;
		fixed.self = piece->self;
		put(&buffer, &fixed, sizeof(fixed));
		foreach_ptr(ObjectAddress, reference, piece->references)
			put(&buffer, reference, sizeof(ObjectAddress));
		put_string(&buffer, piece->name);
		put_string(&buffer, piece->text);
		put_string(&buffer, piece->comment);
	}
	if (buffer.len > MAX_SIZE)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the definition of table \"%s\" is longer than %zu bytes", definition->name, MAX_SIZE)));
	*size = buffer.len;
	return buffer.data;
}

/*
 * Writes a payload, as a part of the current (sub)transaction.
 */
void
flashback_definition_write(const char *payload, Size size)
{
	xl_logical_message message;

	(void) GetCurrentTransactionId();
	memset(&message, 0, sizeof(message));
	message.dbId = InvalidOid;
	message.transactional = true;
	message.prefix_size = sizeof(PREFIX);
	message.message_size = size;
	XLogBeginInsert();
	XLogRegisterData(&message, SizeOfLogicalMessage);
	XLogRegisterData(PREFIX, sizeof(PREFIX));
	XLogRegisterData(payload, size);
	XLogSetRecordFlags(XLOG_INCLUDE_ORIGIN);
	(void) XLogInsert(RM_LOGICALMSG_ID, XLOG_LOGICAL_MESSAGE);
}

/*
 * The payload of a record, if it has one of this database; it need not be
 * aligned.
 */
static bool
get_payload(XLogReaderState *record, MessageReader *payload, MessageHeader *header)
{
	const char *data = XLogRecGetData(record);
	Size		length = XLogRecGetDataLen(record);
	xl_logical_message message;

	if (XLogRecGetRmid(record) != RM_LOGICALMSG_ID ||
		(XLogRecGetInfo(record) & ~XLR_INFO_MASK) != XLOG_LOGICAL_MESSAGE ||
		length < SizeOfLogicalMessage + sizeof(PREFIX) + sizeof(MessageHeader))
		return false;
	memcpy(&message, data, SizeOfLogicalMessage);
	if (OidIsValid(message.dbId) || message.prefix_size != sizeof(PREFIX) ||
		memcmp(data + SizeOfLogicalMessage, PREFIX, sizeof(PREFIX)) != 0)
		return false;
	payload->at = data + SizeOfLogicalMessage + sizeof(PREFIX);
	payload->left = length - SizeOfLogicalMessage - sizeof(PREFIX);
	payload->damaged = false;
	memcpy(header, payload->at, sizeof(MessageHeader));
	return message.message_size == payload->left && payload->left <= MAX_SIZE &&
		header->version == VERSION && header->database == MyDatabaseId;
}

/*
 * Whether a record is the definition of a table of this database.
 */
bool
flashback_definition_is(XLogReaderState *record, Oid *relid)
{
	MessageReader payload;
	MessageHeader header;

	if (!get_payload(record, &payload, &header))
		return false;
	*relid = header.relid;
	return true;
}

/*
 * Takes so many bytes; zeroes if that many are not left.
 */
static void
take(MessageReader *payload, void *data, Size size)
{
	if (payload->damaged || payload->left < size)
	{
		payload->damaged = true;
		memset(data, 0, size);
		return;
	}
	memcpy(data, payload->at, size);
	payload->at += size;
	payload->left -= size;
}

static char *
take_string(MessageReader *payload)
{
	int32		length;
	char	   *string;

	take(payload, &length, sizeof(length));
	if (length < 0 || payload->left < length)
	{
		payload->damaged = true;
		length = 0;
	}
	string = palloc(length + 1);
	take(payload, string, length);
	string[length] = '\0';
	if (strlen(string) != length || !pg_verifymbstr(string, length, true))
		payload->damaged = true;
	return string;
}

/*
 * A name that can be one.
 */
static char *
take_name(MessageReader *payload)
{
	char	   *name = take_string(payload);

	if (strlen(name) >= NAMEDATALEN)
		payload->damaged = true;
	return name;
}

static FlashbackDefinedColumn *
take_column(MessageReader *payload)
{
	FlashbackDefinedColumn *column = palloc0(sizeof(FlashbackDefinedColumn));
	MessageColumn fixed;

	take(payload, &fixed, sizeof(fixed));
	column->typid = fixed.typid;
	column->typmod = fixed.typmod;
	column->attnum = fixed.attnum;
	column->notnull = fixed.notnull;
	column->name = take_name(payload);
	column->type = take_string(payload);
	column->comment = take_string(payload);
	return column;
}

static bool
is_possible(const MessagePiece *piece)
{
	switch (piece->kind)
	{
		case FLASHBACK_PIECE_SEQUENCE:
		case FLASHBACK_PIECE_IDENTITY:
			return piece->attnum != 0 &&
				(piece->parameters.type == INT2OID || piece->parameters.type == INT4OID ||
				 piece->parameters.type == INT8OID);
		case FLASHBACK_PIECE_DEFAULT:
		case FLASHBACK_PIECE_GENERATED:
			return piece->attnum != 0;
		case FLASHBACK_PIECE_CONSTRAINT:
		case FLASHBACK_PIECE_INDEX:
			return true;
	}
	return false;
}

static FlashbackPiece *
take_piece(MessageReader *payload)
{
	FlashbackPiece *piece = palloc0(sizeof(FlashbackPiece));
	MessagePiece fixed;

	take(payload, &fixed, sizeof(fixed));
	payload->damaged |= !is_possible(&fixed);
	piece->kind = fixed.kind;
	piece->parameters = fixed.parameters;
	piece->object = fixed.object;
	piece->sequence = fixed.sequence;
	piece->attnum = fixed.attnum;
	piece->type = fixed.type;
	piece->unique = fixed.unique;
	piece->self = fixed.self;
	for (int i = 0; i < fixed.nreferences && !payload->damaged; i++)
	{
		ObjectAddress *reference = palloc(sizeof(ObjectAddress));

		take(payload, reference, sizeof(ObjectAddress));
		piece->references = lappend(piece->references, reference);
	}
	piece->name = take_name(payload);
	piece->text = take_string(payload);
	piece->comment = take_string(payload);
	return piece;
}

/*
 * Takes a payload apart; NULL if it is damaged.
 */
static FlashbackDefinition *
decode(MessageReader *payload)
{
	FlashbackDefinition *definition = palloc0(sizeof(FlashbackDefinition));
	MessageHeader header;

	take(payload, &header, sizeof(header));
	definition->relid = header.relid;
	definition->schema = take_name(payload);
	definition->name = take_name(payload);
	definition->comment = take_string(payload);
	for (int i = 0; i < header.ncolumns && !payload->damaged; i++)
		definition->columns = lappend(definition->columns, take_column(payload));
	for (int i = 0; i < header.npieces && !payload->damaged; i++)
	{
		FlashbackPiece *piece = take_piece(payload);

		if (piece->attnum != 0 && flashback_definition_column(definition, piece->attnum) == NULL)
			payload->damaged = true;
		definition->pieces = lappend(definition->pieces, piece);
	}
	return payload->damaged || payload->left > 0 ? NULL : definition;
}

/*
 * The definition of a table in the record at a position; NULL if there is
 * another one, or it is damaged.
 */
FlashbackDefinition *
flashback_definition_read(XLogRecPtr lsn, Oid relid)
{
	FlashbackWalPass *pass = flashback_wal_begin(lsn, flashback_end_of_wal());
	XLogReaderState *record = flashback_wal_next(pass);
	FlashbackDefinition *definition = NULL;
	MessageReader payload;
	MessageHeader header;

	if (record && record->ReadRecPtr == lsn && get_payload(record, &payload, &header) && header.relid == relid)
	{
		definition = decode(&payload);
		if (definition == NULL)
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("the definition of dropped table %u is damaged", relid)));
	}
	flashback_wal_end(pass);
	return definition;
}

/*
 * Whether a (sub)transaction is one of those that a record commits.
 */
bool
flashback_is_committed_by(const FlashbackCommitRecord *commit, TransactionId xid)
{
	TransactionId subxid;

	if (xid == commit->xid)
		return true;
	for (uint32 i = 0; i < commit->nsubxids; i++)
	{
		memcpy(&subxid, commit->subxids + i * sizeof(TransactionId), sizeof(subxid));
		if (subxid == xid)
			return true;
	}
	return false;
}

/*
 * Notes where a definition is; relid is the only table that is wanted, unless
 * it is invalid.
 */
void
flashback_definition_note(List **places, XLogReaderState *record, Oid relid)
{
	FlashbackDefinitionPlace *place;
	Oid			named;

	if (!flashback_definition_is(record, &named) || (OidIsValid(relid) && named != relid))
		return;
	place = palloc(sizeof(FlashbackDefinitionPlace));
	place->relid = named;
	place->xid = XLogRecGetXid(record);
	place->lsn = record->ReadRecPtr;
	*places = lappend(*places, place);
}

/*
 * Those between a point and a commit that are the commit's own.  *xid is the
 * transaction that commits.
 */
static List *
find_after(Oid relid, XLogRecPtr commit_lsn, const FlashbackPoint *point, TransactionId *xid)
{
	FlashbackWalPass *pass = flashback_wal_begin(point->redo, commit_lsn);
	XLogReaderState *record;
	List	   *places = NIL;
	List	   *found = NIL;

	*xid = InvalidTransactionId;
	while ((record = flashback_wal_next(pass)) != NULL)
	{
		FlashbackCommitRecord commit;

		flashback_definition_note(&places, record, relid);
		if (record->EndRecPtr != commit_lsn || !flashback_is_commit(record, &commit))
			continue;
		*xid = commit.xid;
		foreach_ptr(FlashbackDefinitionPlace, place, places)
		{
			if (flashback_is_committed_by(&commit, place->xid))
				found = lappend(found, place);
		}
	}
	flashback_wal_end(pass);
	return found;
}

/*
 * Where the transaction that committed at a position has said what the tables
 * were that it dropped (relid: only this one, unless it is invalid), in the
 * order of WAL.  What lies before the window is not found.
 */
List *
flashback_definition_find(Oid relid, XLogRecPtr commit_lsn)
{
	FlashbackPoint point;
	FlashbackPoint older;
	TransactionId xid;
	List	   *found;

	if (!flashback_log()->find_point_lsn(commit_lsn - 1, &point))
		return NIL;
	found = find_after(relid, commit_lsn, &point, &xid);
	if (!TransactionIdIsValid(xid) || !TransactionIdPrecedes(xid, XidFromFullTransactionId(point.next_xid)))
		return found;

	/* It had begun before that point */
	while (TransactionIdPrecedes(xid, XidFromFullTransactionId(point.next_xid)) &&
		   flashback_log()->find_point_lsn(point.lsn - 1, &older))
		point = older;
	return find_after(relid, commit_lsn, &point, &xid);
}

/*
 * The one of a table among those that were found; invalid if there is none.
 */
XLogRecPtr
flashback_definition_place(List *places, Oid relid)
{
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	foreach_ptr(FlashbackDefinitionPlace, place, places)
	{
		if (place->relid == relid)
			lsn = place->lsn;
	}
	return lsn;
}
