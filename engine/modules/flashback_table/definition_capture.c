/*-------------------------------------------------------------------------
 *
 * definition_capture.c
 *	  Notes what a table has while it is being dropped.
 *
 * Whatever depends on a table is deleted before it, one object after the
 * other, and each while all that it depends on is still there.  So each piece
 * is put into words just before it is deleted, and kept in memory until the
 * table's turn comes, or the transaction ends.  Then all of it goes into WAL,
 * as a record of the transaction that drops the table.
 *
 * No DROP fails because of that: what cannot be put into words is left out.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/definition_capture.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_index.h"
#include "catalog/pg_sequence.h"
#include "catalog/pg_type.h"
#include "commands/comment.h"
#include "commands/sequence.h"
#include "flashback_console.h"
#include "flashback_definition.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/*
 * More than this is not kept in memory.  A schema of 10,000 tables needs far
 * less, as what a command gathers for a table is freed when it is written.
 */
#define GATHERED_MAX_BYTES ((Size) 64 * 1024 * 1024)

/* A piece that has been, or is about to be, deleted */
typedef struct Gathered
{
	SubTransactionId subid;
	FlashbackPiece *piece;
	MemoryContext context;		/* that has both */
} Gathered;

/* Those of a table */
typedef struct GatheredTable
{
	Oid			relid;			/* hash key, must be first */
	List	   *pieces;			/* of Gathered, in the order of deletion */
} GatheredTable;

static object_access_hook_type prev_object_access_hook = NULL;

/* NULL: nothing was gathered in this transaction */
static MemoryContext gathered_context = NULL;
static HTAB *gathered_tables = NULL;
static Size gathered_bytes = 0;

/* No subtransaction that began later has gathered anything */
static SubTransactionId newest_subid = InvalidSubTransactionId;

/* What is being looked at, for attempts */
typedef struct Capture
{
	Oid			objectId;
	Oid			relid;			/* its table */
	MemoryContext context;		/* for what is kept */
	FlashbackPiece *piece;		/* NULL: there is none */
	char	   *payload;
	Size		size;
} Capture;

/*
 * Whether files of dropped tables are kept, so that there is something that the
 * definition would belong to.
 */
static bool
is_wanted(void)
{
	const char *area;
	const char *enabled;

	if (IsBinaryUpgrade || !IsUnderPostmaster || !OidIsValid(MyDatabaseId) || !IsTransactionState())
		return false;
	area = GetConfigOption("polar_enable_fast_recovery_area", true, false);
	enabled = GetConfigOption("polar_enable_flashback_log", true, false);
	return area && enabled && strcmp(area, "on") == 0 && strcmp(enabled, "on") == 0;
}

/*
 * Whether a table can come back at all.  What does not hold the lock on it that
 * dropping it takes does not drop it, and must not wait for another here.
 */
static bool
can_come_back(Oid relid)
{
	HeapTuple	row;
	Form_pg_class form;
	bool		possible;

	if (relid < FirstNormalObjectId || !CheckRelationOidLockedByMe(relid, AccessExclusiveLock, false))
		return false;
	row = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(row))
		return false;
	form = (Form_pg_class) GETSTRUCT(row);
	possible = form->relpersistence == RELPERSISTENCE_PERMANENT &&
		(form->relkind == RELKIND_RELATION || form->relkind == RELKIND_MATVIEW ||
		 form->relkind == RELKIND_PARTITIONED_TABLE);
	ReleaseSysCache(row);
	return possible;
}

static FlashbackPiece *
make_piece(Capture *capture, FlashbackPieceKind kind, Oid classid, Oid objectid)
{
	FlashbackPiece *piece = palloc0(sizeof(FlashbackPiece));

	piece->kind = kind;
	ObjectAddressSet(piece->object, classid, objectid);
	piece->name = piece->text = pstrdup("");
	piece->comment = GetComment(objectid, classid, 0);
	if (piece->comment == NULL)
		piece->comment = pstrdup("");
	capture->piece = piece;
	return piece;
}

/*
 * What an object is recorded to depend on, except what initdb made; a list of
 * ObjectAddress.
 */
List *
flashback_recorded_references(Oid classid, Oid objectid)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	List	   *references = NIL;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	row;

	ScanKeyInit(&key[0], Anum_pg_depend_classid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(classid));
	ScanKeyInit(&key[1], Anum_pg_depend_objid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(objectid));
	scan = systable_beginscan(depend, DependDependerIndexId, true, NULL, 2, key);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(row);
		ObjectAddress *reference;

		if (form->refobjid < FirstNormalObjectId)
			continue;
		reference = palloc(sizeof(ObjectAddress));
		ObjectAddressSet(*reference, form->refclassid, form->refobjid);
		references = lappend(references, reference);
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return references;
}

static void
add_references(FlashbackPiece *piece, Oid classid, Oid objectid)
{
	piece->references = list_concat(piece->references, flashback_recorded_references(classid, objectid));
}

static char *
constraint_text(Oid constraintid)
{
	return TextDatumGetCString(DirectFunctionCall1(pg_get_constraintdef, ObjectIdGetDatum(constraintid)));
}

/*
 * Whether a foreign key stands for a part of another one of the same table: to
 * a partition of the table that it refers to.
 */
static bool
is_part_of_another(Form_pg_constraint form)
{
	HeapTuple	row;
	bool		part;

	if (!OidIsValid(form->conparentid))
		return false;
	row = SearchSysCache1(CONSTROID, ObjectIdGetDatum(form->conparentid));
	if (!HeapTupleIsValid(row))
		return false;
	part = ((Form_pg_constraint) GETSTRUCT(row))->conrelid == form->conrelid;
	ReleaseSysCache(row);
	return part;
}

/*
 * Whether catalogs of then are enough for a not-null constraint: see keys.c.
 */
static bool
is_plain_not_null(Form_pg_constraint form, AttrNumber attnum)
{
	HeapTuple	row = SearchSysCache2(ATTNUM, ObjectIdGetDatum(form->conrelid), Int16GetDatum(attnum));
	bool		plain;

	if (!HeapTupleIsValid(row))
		return true;
	plain = form->convalidated &&
		((Form_pg_attribute) GETSTRUCT(row))->attgenerated != ATTRIBUTE_GENERATED_VIRTUAL;
	ReleaseSysCache(row);
	return plain;
}

/*
 * A constraint that has no index.
 */
static void
capture_constraint(Capture *capture)
{
	HeapTuple	row = SearchSysCache1(CONSTROID, ObjectIdGetDatum(capture->objectId));
	Form_pg_constraint form;
	FlashbackPiece *piece;
	AttrNumber	attnum = 0;

	if (!HeapTupleIsValid(row))
		return;
	form = (Form_pg_constraint) GETSTRUCT(row);
	if (form->contype == CONSTRAINT_NOTNULL)
		attnum = extractNotNullColumn(row);
	if (form->contype == CONSTRAINT_CHECK ||
		(form->contype == CONSTRAINT_NOTNULL && !is_plain_not_null(form, attnum)) ||
		(form->contype == CONSTRAINT_FOREIGN && !is_part_of_another(form)))
	{
		piece = make_piece(capture, FLASHBACK_PIECE_CONSTRAINT, ConstraintRelationId, form->oid);
		piece->type = form->contype;
		piece->attnum = attnum;
		piece->self = (form->confrelid == form->conrelid);
		piece->name = pstrdup(NameStr(form->conname));
		piece->text = constraint_text(form->oid);
		add_references(piece, ConstraintRelationId, form->oid);
	}
	ReleaseSysCache(row);
}

/*
 * What a command for an index has after the name of its table.
 */
static char *
index_text(Oid indexid, Form_pg_index form)
{
	char	   *command = pg_get_indexdef_string(indexid);
	char	   *table = quote_qualified_identifier(get_namespace_name(get_rel_namespace(form->indrelid)),
												   get_rel_name(form->indrelid));
	char	   *prefix = psprintf("CREATE %sINDEX %s ON %s ", form->indisunique ? "UNIQUE " : "",
								  quote_identifier(get_rel_name(indexid)), table);

	if (strncmp(command, prefix, strlen(prefix)) != 0)
		elog(ERROR, "unexpected definition of index %u", indexid);
	return pstrdup(command + strlen(prefix));
}

/*
 * An index, or the constraint that it belongs to: that is deleted after it, and
 * cannot be put into words without it.
 */
static void
capture_index(Capture *capture)
{
	HeapTuple	row = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(capture->objectId));
	Form_pg_index form;
	Oid			constraintid;
	FlashbackPiece *piece;

	if (!HeapTupleIsValid(row))
		return;
	form = (Form_pg_index) GETSTRUCT(row);
	constraintid = get_index_constraint(capture->objectId);
	if (OidIsValid(constraintid))
	{
		piece = make_piece(capture, FLASHBACK_PIECE_CONSTRAINT, ConstraintRelationId, constraintid);
		piece->type = get_constraint_type(constraintid);
		piece->name = get_constraint_name(constraintid);
		piece->text = constraint_text(constraintid);
		add_references(piece, ConstraintRelationId, constraintid);
	}
	else
	{
		piece = make_piece(capture, FLASHBACK_PIECE_INDEX, RelationRelationId, capture->objectId);
		piece->name = get_rel_name(capture->objectId);
		piece->text = index_text(capture->objectId, form);
	}
	piece->unique = form->indisunique;
	add_references(piece, RelationRelationId, capture->objectId);
	ReleaseSysCache(row);
}

/*
 * The sequence whose next value an expression is, and nothing more.
 */
static Oid
sequence_of(Node *expression)
{
	FuncExpr   *call;
	Const	   *sequence;

	expression = strip_implicit_coercions(expression);
	if (!IsA(expression, FuncExpr))
		return InvalidOid;
	call = (FuncExpr *) expression;
	if (call->funcid != F_NEXTVAL || !IsA(linitial(call->args), Const))
		return InvalidOid;
	sequence = linitial_node(Const, call->args);
	return sequence->constisnull ? InvalidOid : DatumGetObjectId(sequence->constvalue);
}

/*
 * A default, or the expression of a generated column.
 */
static void
capture_default(Capture *capture)
{
	ObjectAddress column = GetAttrDefaultColumnAddress(capture->objectId);
	Relation	rel;
	Form_pg_attribute att;
	Node	   *expression;
	FlashbackPiece *piece;

	rel = relation_open(column.objectId, NoLock);
	att = TupleDescAttr(RelationGetDescr(rel), column.objectSubId - 1);
	expression = TupleDescGetDefault(RelationGetDescr(rel), column.objectSubId);
	if (expression)
	{
		piece = make_piece(capture, att->attgenerated ? FLASHBACK_PIECE_GENERATED : FLASHBACK_PIECE_DEFAULT,
						   AttrDefaultRelationId, capture->objectId);
		piece->attnum = column.objectSubId;
		piece->type = att->attgenerated;
		piece->text = deparse_expression(expression,
										 deparse_context_for(RelationGetRelationName(rel), column.objectId),
										 false, false);
		if (att->attgenerated == '\0')
			piece->sequence = sequence_of(expression);
		add_references(piece, AttrDefaultRelationId, capture->objectId);
	}
	relation_close(rel, NoLock);
}

/*
 * Where a sequence is.
 */
static void
read_sequence(Oid sequenceid, FlashbackSequence *parameters)
{
	Relation	sequence = relation_open(sequenceid, NoLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = table_beginscan(sequence, snapshot, 0, NULL);
	TupleTableSlot *slot = table_slot_create(sequence, NULL);
	bool		isnull;

	if (!table_scan_getnextslot(scan, ForwardScanDirection, slot))
		elog(ERROR, "sequence %u has no value", sequenceid);
	parameters->last_value = DatumGetInt64(slot_getattr(slot, SEQ_COL_LASTVAL, &isnull));
	parameters->is_called = DatumGetBool(slot_getattr(slot, SEQ_COL_CALLED, &isnull));
	ExecDropSingleTupleTableSlot(slot);
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	relation_close(sequence, NoLock);
}

/*
 * A sequence that a column owns.
 */
static void
capture_sequence(Capture *capture)
{
	HeapTuple	row;
	Form_pg_sequence form;
	bool		identity;
	int32		attnum;
	Oid			relid;
	FlashbackPiece *piece;

	identity = sequenceIsOwned(capture->objectId, DEPENDENCY_INTERNAL, &relid, &attnum);
	if (!identity && !sequenceIsOwned(capture->objectId, DEPENDENCY_AUTO, &relid, &attnum))
		return;
	row = SearchSysCache1(SEQRELID, ObjectIdGetDatum(capture->objectId));
	if (!HeapTupleIsValid(row))
		return;
	form = (Form_pg_sequence) GETSTRUCT(row);
	piece = make_piece(capture, identity ? FLASHBACK_PIECE_IDENTITY : FLASHBACK_PIECE_SEQUENCE,
					   RelationRelationId, capture->objectId);
	piece->attnum = attnum;
	piece->name = get_rel_name(capture->objectId);
	piece->parameters.type = form->seqtypid;
	piece->parameters.start = form->seqstart;
	piece->parameters.increment = form->seqincrement;
	piece->parameters.max = form->seqmax;
	piece->parameters.min = form->seqmin;
	piece->parameters.cache = form->seqcache;
	piece->parameters.cycle = form->seqcycle;
	ReleaseSysCache(row);
	read_sequence(capture->objectId, &piece->parameters);
	if (identity)
	{
		row = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relid), Int16GetDatum(attnum));
		if (HeapTupleIsValid(row))
		{
			piece->type = ((Form_pg_attribute) GETSTRUCT(row))->attidentity;
			ReleaseSysCache(row);
		}
	}
}

/*
 * The columns of a table, its comments, and all pieces that were gathered.
 */
static void
capture_table(Capture *capture)
{
	Relation	rel = relation_open(capture->objectId, NoLock);
	FlashbackDefinition definition = {.relid = capture->objectId};
	GatheredTable *gathered = NULL;

	definition.schema = get_namespace_name(RelationGetNamespace(rel));
	definition.name = pstrdup(RelationGetRelationName(rel));
	definition.comment = GetComment(capture->objectId, RelationRelationId, 0);
	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);
		FlashbackDefinedColumn *column;

		if (att->attisdropped)
			continue;
		column = palloc0(sizeof(FlashbackDefinedColumn));
		column->attnum = att->attnum;
		column->typid = att->atttypid;
		column->typmod = att->atttypmod;
		column->notnull = att->attnotnull;
		column->name = pstrdup(NameStr(att->attname));
		column->type = format_type_extended(att->atttypid, att->atttypmod,
											FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);
		if (OidIsValid(att->attcollation) && att->attcollation != get_typcollation(att->atttypid))
			column->type = psprintf("%s COLLATE %s", column->type, generate_collation_name(att->attcollation));
		column->comment = GetComment(capture->objectId, RelationRelationId, att->attnum);
		definition.columns = lappend(definition.columns, column);
	}
	if (gathered_tables)
		gathered = hash_search(gathered_tables, &capture->objectId, HASH_FIND, NULL);
	foreach_ptr(Gathered, entry, gathered ? gathered->pieces : NIL)
		definition.pieces = lappend(definition.pieces, entry->piece);
	relation_close(rel, NoLock);
	capture->payload = flashback_definition_encode(&definition, &capture->size);
}

/*
 * Calls a function in a subtransaction, with names qualified and values in one
 * format.  False if it fails; except that a cancel and the like, which the DROP
 * would meet anyway, are raised again.
 *
 * The subtransaction is undone in any case, as it changes nothing: its commit
 * would begin another command in the middle of one that has not finished its
 * changes.
 */
static bool
attempt(void (*act) (Capture *capture), Capture *capture)
{
	MemoryContext old_context = CurrentMemoryContext;
	ResourceOwner old_owner = CurrentResourceOwner;
	volatile bool succeeded = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(capture->context);
	PG_TRY();
	{
		int			nestlevel = NewGUCNestLevel();

		RestrictSearchPath();
		flashback_set_output_format();
		act(capture);
		AtEOXact_GUC(false, nestlevel);
		RollbackAndReleaseCurrentSubTransaction();
		succeeded = true;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(old_context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(old_context);
		CurrentResourceOwner = old_owner;
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED ||
			ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION)
			ReThrowError(error);
		ereport(LOG,
				(errmsg("part of the definition of a table that is being dropped is not kept: %s", error->message)));
		FreeErrorData(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old_context);
	CurrentResourceOwner = old_owner;
	return succeeded;
}

/*
 * Gathers a piece of a table before it is deleted.
 */
static void
gather(void (*act) (Capture *capture), Oid objectId, Oid relid)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(GatheredTable)};
	Capture		capture = {.objectId = objectId,.relid = relid};
	SubTransactionId subid = GetCurrentSubTransactionId();
	MemoryContext old_context;
	GatheredTable *table;
	Gathered   *gathered;
	bool		found;

	if (!can_come_back(relid))
		return;
	if (gathered_context == NULL)
		gathered_context = AllocSetContextCreate(TopTransactionContext, "flashback definitions",
												 ALLOCSET_DEFAULT_SIZES);
	if (gathered_bytes > GATHERED_MAX_BYTES)
		return;
	if (gathered_tables == NULL)
	{
		ctl.hcxt = gathered_context;
		gathered_tables = hash_create("flashback definitions", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	capture.context = AllocSetContextCreate(gathered_context, "flashback definition", ALLOCSET_SMALL_SIZES);
	if (!attempt(act, &capture) || capture.piece == NULL)
	{
		MemoryContextDelete(capture.context);
		return;
	}
	table = hash_search(gathered_tables, &capture.relid, HASH_ENTER, &found);
	if (!found)
		table->pieces = NIL;
	old_context = MemoryContextSwitchTo(gathered_context);
	gathered = palloc(sizeof(Gathered));
	gathered->subid = subid;
	gathered->piece = capture.piece;
	gathered->context = capture.context;
	gathered_bytes += MemoryContextMemAllocated(capture.context, false);
	newest_subid = Max(newest_subid, subid);
	table->pieces = lappend(table->pieces, gathered);
	MemoryContextSwitchTo(old_context);
}

/*
 * Removes what a subtransaction has gathered for a table.
 */
static void
forget(GatheredTable *table, SubTransactionId subid)
{
	foreach_ptr(Gathered, gathered, table->pieces)
	{
		if (gathered->subid != subid)
			continue;
		gathered_bytes -= MemoryContextMemAllocated(gathered->context, false);
		MemoryContextDelete(gathered->context);
		table->pieces = foreach_delete_current(table->pieces, gathered);
		pfree(gathered);
	}
}

/*
 * Writes what is known of a table before it is deleted.  Should this
 * subtransaction fail, then what it has gathered comes back to be dropped
 * again; what others have gathered before stays.
 */
static void
write_table(Oid relid)
{
	Capture		capture = {.objectId = relid};
	GatheredTable *table = NULL;

	capture.context = AllocSetContextCreate(CurrentMemoryContext, "flashback definition",
											ALLOCSET_DEFAULT_SIZES);
	if (attempt(capture_table, &capture) && capture.payload)
		flashback_definition_write(capture.payload, capture.size);
	MemoryContextDelete(capture.context);

	if (gathered_tables)
		table = hash_search(gathered_tables, &relid, HASH_FIND, NULL);
	if (table)
		forget(table, GetCurrentSubTransactionId());
	if (table && table->pieces == NIL)
		(void) hash_search(gathered_tables, &relid, HASH_REMOVE, NULL);
}

/*
 * The table that owns a sequence, which is locked like that; or invalid.
 */
static Oid
table_of_sequence(Oid sequenceid)
{
	Oid			relid;
	int32		attnum;

	if (CheckRelationOidLockedByMe(sequenceid, AccessExclusiveLock, false) &&
		(sequenceIsOwned(sequenceid, DEPENDENCY_INTERNAL, &relid, &attnum) ||
		 sequenceIsOwned(sequenceid, DEPENDENCY_AUTO, &relid, &attnum)))
		return relid;
	return InvalidOid;
}

/*
 * The table of a constraint; invalid if it is that of a domain.
 */
static Oid
table_of_constraint(Oid constraintid)
{
	HeapTuple	row = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraintid));
	Oid			relid;

	if (!HeapTupleIsValid(row))
		return InvalidOid;
	relid = ((Form_pg_constraint) GETSTRUCT(row))->conrelid;
	ReleaseSysCache(row);
	return relid;
}

static void
note_relation(Oid relid, int flags)
{
	switch (get_rel_relkind(relid))
	{
		case RELKIND_INDEX:
		case RELKIND_PARTITIONED_INDEX:
			gather(capture_index, relid, IndexGetRelation(relid, true));
			break;
		case RELKIND_SEQUENCE:
			gather(capture_sequence, relid, table_of_sequence(relid));
			break;
		default:
			/* What rewrites a table drops one of its own making */
			if ((flags & PERFORM_DELETION_INTERNAL) == 0 && can_come_back(relid))
				write_table(relid);
			break;
	}
}

static void
note_access(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	int			flags;

	if (prev_object_access_hook)
		prev_object_access_hook(access, classId, objectId, subId, arg);
	if (access != OAT_DROP || subId != 0 || objectId < FirstNormalObjectId ||
		(classId != RelationRelationId && classId != ConstraintRelationId && classId != AttrDefaultRelationId) ||
		!is_wanted())
		return;
	flags = ((ObjectAccessDrop *) arg)->dropflags;
	if (flags & (PERFORM_DELETION_CONCURRENTLY | PERFORM_DELETION_CONCURRENT_LOCK))
		return;
	if (classId == RelationRelationId)
		note_relation(objectId, flags);
	else if (classId == ConstraintRelationId)
		gather(capture_constraint, objectId, table_of_constraint(objectId));
	else
		gather(capture_default, objectId, GetAttrDefaultColumnAddress(objectId).objectId);
}

static void
end_transaction(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE ||
		event == XACT_EVENT_PARALLEL_COMMIT || event == XACT_EVENT_PARALLEL_ABORT)
	{
		/* The memory goes with the transaction */
		gathered_context = NULL;
		gathered_tables = NULL;
		gathered_bytes = 0;
		newest_subid = InvalidSubTransactionId;
	}
}

/*
 * What a subtransaction has gathered is its parent's, or never happened.
 */
static void
end_subtransaction(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *arg)
{
	HASH_SEQ_STATUS status;
	GatheredTable *table;

	if (gathered_tables == NULL || subid > newest_subid ||
		(event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB))
		return;
	hash_seq_init(&status, gathered_tables);
	while ((table = hash_seq_search(&status)) != NULL)
	{
		if (event == SUBXACT_EVENT_ABORT_SUB)
			forget(table, subid);
		else
		{
			foreach_ptr(Gathered, gathered, table->pieces)
			{
				if (gathered->subid == subid)
					gathered->subid = parent;
			}
		}
	}
}

/*
 * Called when the library is loaded.
 */
void
flashback_definition_install(void)
{
	prev_object_access_hook = object_access_hook;
	object_access_hook = note_access;
	RegisterXactCallback(end_transaction, NULL);
	RegisterSubXactCallback(end_subtransaction, NULL);
}
