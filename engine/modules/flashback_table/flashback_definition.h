/*-------------------------------------------------------------------------
 *
 * flashback_definition.h
 *	  What a table that was dropped had beyond rows and columns.
 *
 * The session that drops a table says so in WAL, as texts.  See
 * README.definition.md.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/flashback_definition.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef FLASHBACK_DEFINITION_H
#define FLASHBACK_DEFINITION_H

#include "catalog/objectaddress.h"
#include "flashback_internal.h"
#include "flashback_sql.h"

typedef enum FlashbackPieceKind
{
	FLASHBACK_PIECE_SEQUENCE,	/* owned by a column, for its default */
	FLASHBACK_PIECE_DEFAULT,
	FLASHBACK_PIECE_IDENTITY,	/* with its sequence */
	FLASHBACK_PIECE_GENERATED,
	FLASHBACK_PIECE_CONSTRAINT,
	FLASHBACK_PIECE_INDEX,		/* that belongs to no constraint */
#define FLASHBACK_PIECE_KINDS (FLASHBACK_PIECE_INDEX + 1)
} FlashbackPieceKind;

typedef struct FlashbackSequence
{
	Oid			type;
	int64		start;
	int64		increment;
	int64		max;
	int64		min;
	int64		cache;
	int64		last_value;
	bool		cycle;
	bool		is_called;
} FlashbackSequence;

typedef struct FlashbackPiece
{
	FlashbackPieceKind kind;
	ObjectAddress object;		/* that it was; identity: its sequence */
	AttrNumber	attnum;			/* of the column, or 0; constraints: if it
								 * forbids nulls */
	char		type;			/* as pg_constraint.contype,
								 * pg_attribute.attidentity or attgenerated
								 * say */
	bool		unique;			/* an index */
	bool		self;			/* a foreign key to the table itself */
	Oid			sequence;		/* a default that is no more than its next
								 * value, or InvalidOid */
	char	   *name;			/* of the constraint, index or sequence */
	char	   *text;			/* what follows the name, or the expression */
	char	   *comment;		/* '' = none */
	FlashbackSequence parameters;
	List	   *references;		/* of ObjectAddress: what it depended on */
} FlashbackPiece;

typedef struct FlashbackDefinedColumn
{
	AttrNumber	attnum;
	Oid			typid;
	int32		typmod;
	bool		notnull;
	char	   *name;
	char	   *type;			/* as text, with a collation of its own */
	char	   *comment;
} FlashbackDefinedColumn;

struct FlashbackDefinition
{
	Oid			relid;
	char	   *schema;
	char	   *name;
	char	   *comment;
	List	   *columns;		/* of FlashbackDefinedColumn, without dropped
								 * ones */
	List	   *pieces;			/* of FlashbackPiece */
};

/* Where a (sub)transaction has said what a table was that it drops */
typedef struct FlashbackDefinitionPlace
{
	Oid			relid;
	TransactionId xid;
	XLogRecPtr	lsn;
} FlashbackDefinitionPlace;

/* What the table had at the moment, and does not have yet */
typedef struct FlashbackMissing
{
	ObjectAddress object;		/* identity: none */
	Oid			parent;			/* foreign keys: what it may be a part of */
	AttrNumber	attnum;			/* of the column, or 0 */
	bool		may_be_text;	/* its text means now what it meant then */
	char	   *name;			/* for messages, with what it is */
} FlashbackMissing;

/* definition_capture.c */
extern void flashback_definition_install(void);
extern List *flashback_recorded_references(Oid classid, Oid objectid);

/* definition_message.c: all of the memory context that is current */
extern char *flashback_definition_encode(const FlashbackDefinition *definition, Size *size);
extern void flashback_definition_write(const char *payload, Size size);
extern bool flashback_definition_is(XLogReaderState *record, Oid *relid);
extern bool flashback_is_committed_by(const FlashbackCommitRecord *commit, TransactionId xid);
extern void flashback_definition_note(List **places, XLogReaderState *record, Oid relid);
extern List *flashback_definition_find(Oid relid, XLogRecPtr commit_lsn);
extern XLogRecPtr flashback_definition_place(List *places, Oid relid);
extern FlashbackDefinition *flashback_definition_read(XLogRecPtr lsn, Oid relid);

/* definition_text.c */
extern char *flashback_definition_text(const FlashbackDefinition *definition);
extern FlashbackDefinedColumn *flashback_definition_column(const FlashbackDefinition *definition, AttrNumber attnum);
extern char *flashback_piece_statement(const FlashbackDefinition *definition, const FlashbackPiece *piece,
									   const char *schema, const char *table, const char *sequence);
extern char *flashback_piece_remedy(const FlashbackDefinition *definition, const FlashbackPiece *piece,
									const char *schema, const char *table, const char *sequence);
extern char *flashback_piece_describe(const FlashbackDefinition *definition, const FlashbackPiece *piece);

/* definition_apply.c */
extern List *flashback_definition_apply(const FlashbackDefinition *definition, const FlashbackFormer *former,
										Oid relid, List *missing);

#endif							/* FLASHBACK_DEFINITION_H */
