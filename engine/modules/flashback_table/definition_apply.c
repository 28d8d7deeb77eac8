/*-------------------------------------------------------------------------
 *
 * definition_apply.c
 *	  Gives a table that is given back what its definition says.
 *
 * Each piece is a text that was written when the table was dropped.  It is
 * parsed, must be the one kind of statement that makes such a piece, is run as
 * the owner of the table in a security-restricted operation, in a
 * subtransaction, and fails alone.
 *
 * A text names functions and types, and another role may meanwhile have one of
 * such a name.  So before any of it is evaluated it must be known to refer only
 * to what the piece depended on then, to what the owner of the table has, or
 * to what superusers have.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/definition_apply.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_type.h"
#include "commands/comment.h"
#include "commands/defrem.h"
#include "flashback_console.h"
#include "flashback_definition.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parse_type.h"
#include "parser/parse_utilcmd.h"
#include "parser/parser.h"
#include "tcop/dest.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* A sequence that was made in the place of one that the table had */
typedef struct MadeSequence
{
	Oid			former;
	Oid			relid;
	char	   *name;
} MadeSequence;

/* A piece that is being made */
typedef struct Apply
{
	const FlashbackDefinition *definition;
	const FlashbackPiece *piece;
	Oid			relid;			/* the table that is given back */
	Oid			owner;			/* who had it, and has it */
	char	   *schema;
	char	   *table;
	char	   *statement;
	char	   *sequence;		/* name of the one that it makes or needs */
	List	   *sequences;		/* of MadeSequence */
} Apply;

/*
 * What may be wrong with a piece: what it needs is gone or is another, rows do
 * not satisfy it, or what it runs fails.
 */
static const int expected_errors[] = {
	FLASHBACK_CLASS(ERRCODE_FEATURE_NOT_SUPPORTED),
	FLASHBACK_CLASS(ERRCODE_DATA_EXCEPTION),
	FLASHBACK_CLASS(ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION),
	FLASHBACK_CLASS(ERRCODE_SQL_ROUTINE_EXCEPTION),
	FLASHBACK_CLASS(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
	FLASHBACK_CLASS(ERRCODE_EXTERNAL_ROUTINE_INVOCATION_EXCEPTION),
	FLASHBACK_CLASS(ERRCODE_DEPENDENT_PRIVILEGE_DESCRIPTORS_STILL_EXIST),
	FLASHBACK_CLASS(ERRCODE_INVALID_SCHEMA_NAME),
	FLASHBACK_CLASS(ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION),
	FLASHBACK_CLASS(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
	FLASHBACK_CLASS(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
	FLASHBACK_CLASS(ERRCODE_CARDINALITY_VIOLATION),
	FLASHBACK_CLASS(ERRCODE_PLPGSQL_ERROR),
	ERRCODE_INTERNAL_ERROR,
	0
};

pg_noreturn static void
refuse_statement(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_SYNTAX_ERROR),
			 errmsg("its definition is not the statement that it should be")));
}

/*
 * The owner of an object; invalid if it has none.
 */
static Oid
owner_of(Oid classid, Oid objectid)
{
	AttrNumber	attnum = get_object_attnum_owner(classid);
	Relation	catalog;
	HeapTuple	row;
	bool		isnull;
	Oid			owner = InvalidOid;

	if (attnum == InvalidAttrNumber)
		return InvalidOid;
	catalog = table_open(classid, AccessShareLock);
	row = get_catalog_object_by_oid(catalog, get_object_attnum_oid(classid), objectid);
	if (HeapTupleIsValid(row))
		owner = DatumGetObjectId(heap_getattr(row, attnum, RelationGetDescr(catalog), &isnull));
	table_close(catalog, AccessShareLock);
	return owner;
}

static bool
may_refer_to(const Apply *apply, Oid classid, Oid objectid)
{
	Oid			owner;

	if (objectid < FirstNormalObjectId)
		return true;
	if (classid == RelationRelationId && objectid == apply->relid)
		return true;
	foreach_ptr(ObjectAddress, reference, apply->piece->references)
	{
		if (reference->classId == classid && reference->objectId == objectid)
			return true;
	}
	foreach_ptr(MadeSequence, made, apply->sequences)
	{
		if (classid == RelationRelationId && objectid == made->relid)
			return true;
	}

	/* Another table may have a sequence of that name now */
	if (classid == RelationRelationId && get_rel_relkind(objectid) == RELKIND_SEQUENCE)
		return false;
	owner = owner_of(classid, objectid);
	return OidIsValid(owner) && (owner == apply->owner || superuser_arg(owner));
}

static void
check_reference(const Apply *apply, Oid classid, Oid objectid)
{
	ObjectAddress object;

	if (may_refer_to(apply, classid, objectid))
		return;
	ObjectAddressSet(object, classid, objectid);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("%s is not the one that it referred to", getObjectDescription(&object, false))));
}

/*
 * Checks what an object is recorded to depend on.
 */
static void
check_recorded(const Apply *apply, Oid classid, Oid objectid)
{
	foreach_ptr(ObjectAddress, reference, flashback_recorded_references(classid, objectid))
	{
		/* An index of a constraint depends on that */
		if (reference->classId != ConstraintRelationId)
			check_reference(apply, reference->classId, reference->objectId);
	}
}

/*
 * The same for an expression that has been analyzed and not evaluated.  The
 * core records what it refers to, of an object that there is none of.
 */
static void
check_expression(const Apply *apply, ParseState *pstate, Node *expression)
{
	ObjectAddress nothing;

	ObjectAddressSet(nothing, DependRelationId, apply->relid);
	recordDependencyOnExpr(&nothing, expression, pstate->p_rtable, DEPENDENCY_NORMAL);
	CommandCounterIncrement();
	check_recorded(apply, DependRelationId, apply->relid);
	deleteDependencyRecordsFor(DependRelationId, apply->relid, false);
	CommandCounterIncrement();
}

/*
 * Checks the types that an expression names before it is analyzed: a literal
 * is converted then, and that may run the checks of domains.
 */
static bool
check_type_names(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, TypeName))
		check_reference((const Apply *) context, TypeRelationId, typenameTypeId(NULL, (TypeName *) node));
	return raw_expression_tree_walker(node, check_type_names, context);
}

static ParseState *
begin_parse(const Apply *apply, Relation rel)
{
	ParseState *pstate = make_parsestate(NULL);

	pstate->p_sourcetext = apply->statement;
	addNSItemToQuery(pstate, addRangeTableEntryForRelation(pstate, rel, AccessShareLock, NULL, false, true),
					 true, true, true);
	return pstate;
}

/*
 * Analyzes and checks an expression as the core will do; att is the column
 * whose value it is, or NULL.
 */
static void
check_raw(Apply *apply, Node *raw, ParseExprKind kind, Form_pg_attribute att)
{
	Relation	rel;
	ParseState *pstate;
	Node	   *expression;

	if (raw == NULL)
		return;
	(void) check_type_names(raw, apply);
	rel = table_open(apply->relid, AccessExclusiveLock);
	pstate = begin_parse(apply, rel);
	expression = transformExpr(pstate, copyObject(raw), kind);
	if (att)
		expression = coerce_to_target_type(pstate, expression, exprType(expression), att->atttypid, att->atttypmod,
										   COERCION_ASSIGNMENT, COERCE_IMPLICIT_CAST, -1);
	if (expression)
	{
		assign_expr_collations(pstate, expression);
		check_expression(apply, pstate, expression);
	}
	free_parsestate(pstate);
	table_close(rel, NoLock);
}

/*
 * The one statement that a text is.
 */
static Node *
parse_statement(const char *text)
{
	List	   *parsed = raw_parser(text, RAW_PARSE_DEFAULT);

	if (list_length(parsed) != 1)
		refuse_statement();
	return linitial_node(RawStmt, parsed)->stmt;
}

static bool
is_our_table(const Apply *apply, const RangeVar *relation)
{
	return relation->catalogname == NULL && relation->schemaname &&
		strcmp(relation->schemaname, apply->schema) == 0 && strcmp(relation->relname, apply->table) == 0;
}

/*
 * Parses the statement as an ALTER TABLE with the one action.
 */
static AlterTableStmt *
parse_alter(const Apply *apply, AlterTableType action, AlterTableCmd **command)
{
	AlterTableStmt *stmt = (AlterTableStmt *) parse_statement(apply->statement);

	if (!IsA(stmt, AlterTableStmt) || stmt->objtype != OBJECT_TABLE || stmt->missing_ok ||
		!is_our_table(apply, stmt->relation) || list_length(stmt->cmds) != 1)
		refuse_statement();
	*command = linitial_node(AlterTableCmd, stmt->cmds);
	if ((*command)->subtype != action)
		refuse_statement();
	return stmt;
}

static void
run(const Apply *apply, Node *stmt)
{
	PlannedStmt *wrapper = makeNode(PlannedStmt);

	wrapper->commandType = CMD_UTILITY;
	wrapper->utilityStmt = stmt;
	wrapper->stmt_location = -1;
	ProcessUtility(wrapper, apply->statement, false, PROCESS_UTILITY_SUBCOMMAND, NULL, NULL, None_Receiver, NULL);
	CommandCounterIncrement();
}

static AttrNumber
column_of(const Apply *apply)
{
	const char *name = flashback_definition_column(apply->definition, apply->piece->attnum)->name;
	AttrNumber	attnum = get_attnum(apply->relid, name);

	if (attnum == InvalidAttrNumber)
		elog(ERROR, "column \"%s\" of relation %u does not exist", name, apply->relid);
	return attnum;
}

/*
 * A sequence goes on where the former one was.
 */
static void
set_sequence(const Apply *apply, Oid sequenceid)
{
	(void) OidFunctionCall3(F_SETVAL_REGCLASS_INT8_BOOL, ObjectIdGetDatum(sequenceid),
							Int64GetDatum(apply->piece->parameters.last_value),
							BoolGetDatum(apply->piece->parameters.is_called));
}

static void
make_sequence(Apply *apply)
{
	Node	   *stmt = parse_statement(apply->statement);

	if (!IsA(stmt, CreateSeqStmt))
		refuse_statement();
	run(apply, stmt);
	set_sequence(apply, get_relname_relid(apply->sequence, get_rel_namespace(apply->relid)));
}

static void
make_identity(Apply *apply)
{
	AlterTableCmd *command;
	AlterTableStmt *stmt = parse_alter(apply, AT_AddIdentity, &command);
	Relation	rel;
	Oid			sequenceid;

	run(apply, (Node *) stmt);
	rel = table_open(apply->relid, NoLock);
	sequenceid = getIdentitySequence(rel, column_of(apply), false);
	table_close(rel, NoLock);
	set_sequence(apply, sequenceid);
}

static void
store_expression(Apply *apply, Node *raw, char generated)
{
	RawColumnDefault *column = palloc0(sizeof(RawColumnDefault));
	Relation	rel = table_open(apply->relid, AccessExclusiveLock);

	column->attnum = column_of(apply);
	column->raw_default = raw;
	column->generated = generated;
	foreach_ptr(CookedConstraint, made, AddRelationNewConstraints(rel, list_make1(column), NIL, false, true, false,
																  apply->statement))
	{
		CommandCounterIncrement();
		check_recorded(apply, AttrDefaultRelationId, made->conoid);
	}
	table_close(rel, NoLock);
	CommandCounterIncrement();
}

static void
make_default(Apply *apply)
{
	AlterTableCmd *command;

	(void) parse_alter(apply, AT_ColumnDefault, &command);
	if (command->def == NULL)
		refuse_statement();
	(void) check_type_names(command->def, apply);

	/* Nothing evaluates it here */
	store_expression(apply, command->def, '\0');
}

/*
 * Makes a plain column a generated one.  Its rows have the values that were
 * stored then, or none if they are computed when they are read.
 */
static void
make_generated(Apply *apply)
{
	AttrNumber	attnum = column_of(apply);
	AlterTableCmd *command;
	Relation	attributes;
	HeapTuple	row;

	(void) parse_alter(apply, AT_SetExpression, &command);
	if (apply->piece->type != ATTRIBUTE_GENERATED_STORED && apply->piece->type != ATTRIBUTE_GENERATED_VIRTUAL)
		refuse_statement();
	row = SearchSysCacheCopyAttNum(apply->relid, attnum);
	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for attribute %d of relation %u", attnum, apply->relid);
	check_raw(apply, command->def, EXPR_KIND_GENERATED_COLUMN, (Form_pg_attribute) GETSTRUCT(row));

	attributes = table_open(AttributeRelationId, RowExclusiveLock);
	((Form_pg_attribute) GETSTRUCT(row))->attgenerated = apply->piece->type;
	CatalogTupleUpdate(attributes, &row->t_self, row);
	table_close(attributes, RowExclusiveLock);
	CommandCounterIncrement();
	store_expression(apply, command->def, apply->piece->type);
}

static ConstrType
constraint_kind(char type)
{
	switch (type)
	{
		case CONSTRAINT_CHECK:
			return CONSTR_CHECK;
		case CONSTRAINT_NOTNULL:
			return CONSTR_NOTNULL;
		case CONSTRAINT_FOREIGN:
			return CONSTR_FOREIGN;
		case CONSTRAINT_PRIMARY:
			return CONSTR_PRIMARY;
		case CONSTRAINT_UNIQUE:
			return CONSTR_UNIQUE;
		case CONSTRAINT_EXCLUSION:
			return CONSTR_EXCLUSION;
	}
	refuse_statement();
}

/*
 * The index of a constraint has its name, which may have been taken meanwhile.
 */
static void
choose_constraint_name(const Apply *apply, Constraint *constraint)
{
	Oid			namespace = get_rel_namespace(apply->relid);

	if ((constraint->contype == CONSTR_EXCLUSION || constraint->contype == CONSTR_UNIQUE ||
		 constraint->contype == CONSTR_PRIMARY) &&
		OidIsValid(get_relname_relid(constraint->conname, namespace)))
		constraint->conname = ChooseRelationName(apply->table, NULL,
												 constraint->contype == CONSTR_EXCLUSION ? "excl" : "key",
												 namespace, true);
}

/*
 * Parses the statement as one that adds a constraint, and checks it as far as
 * that must be done before it is added; returns the table that a foreign key
 * refers to.
 */
static AlterTableStmt *
parse_constraint(Apply *apply, Constraint **constraint, Oid *referenced)
{
	AlterTableCmd *command;
	AlterTableStmt *stmt = parse_alter(apply, AT_AddConstraint, &command);
	Constraint *parsed = (Constraint *) command->def;

	if (!IsA(parsed, Constraint) || parsed->contype != constraint_kind(apply->piece->type) ||
		parsed->conname == NULL || strcmp(parsed->conname, apply->piece->name) != 0 || parsed->indexname)
		refuse_statement();
	parsed->indexspace = NULL;
	choose_constraint_name(apply, parsed);
	*referenced = InvalidOid;
	(void) check_type_names(parsed->raw_expr, apply);
	foreach_node(List, pair, parsed->exclusions)
		check_raw(apply, linitial_node(IndexElem, pair)->expr, EXPR_KIND_INDEX_EXPRESSION, NULL);
	check_raw(apply, parsed->where_clause, EXPR_KIND_INDEX_PREDICATE, NULL);
	if (parsed->contype == CONSTR_FOREIGN)
	{
		if (apply->piece->self)
			parsed->pktable = makeRangeVar(apply->schema, apply->table, -1);

		/* Whether it is still that one is asked again when it is added */
		*referenced = RangeVarGetRelid(parsed->pktable, NoLock, false);
		check_reference(apply, RelationRelationId, *referenced);
	}
	*constraint = parsed;
	return stmt;
}

static Oid
referenced_table(Oid constraintid)
{
	HeapTuple	row = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraintid));
	Oid			relid;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for constraint %u", constraintid);
	relid = ((Form_pg_constraint) GETSTRUCT(row))->confrelid;
	ReleaseSysCache(row);
	return relid;
}

/*
 * Adds a constraint.  What is evaluated for rows is only validated when it is
 * known what it refers to.
 */
static void
make_constraint(Apply *apply)
{
	Constraint *constraint;
	Oid			referenced;
	AlterTableStmt *stmt = parse_constraint(apply, &constraint, &referenced);
	bool		validate = (constraint->contype == CONSTR_CHECK || constraint->contype == CONSTR_FOREIGN) &&
		!constraint->skip_validation && constraint->is_enforced;
	Oid			constraintid;

	if (validate)
	{
		constraint->skip_validation = true;
		constraint->initially_valid = false;
	}
	run(apply, (Node *) stmt);
	constraintid = get_relation_constraint_oid(apply->relid, constraint->conname, false);
	check_recorded(apply, ConstraintRelationId, constraintid);
	if (referenced_table(constraintid) != referenced)
		refuse_statement();
	if (OidIsValid(get_constraint_index(constraintid)) && constraint->contype != CONSTR_FOREIGN)
		check_recorded(apply, RelationRelationId, get_constraint_index(constraintid));
	if (validate)
	{
		AlterTableCmd *command = makeNode(AlterTableCmd);

		command->subtype = AT_ValidateConstraint;
		command->name = constraint->conname;
		stmt = makeNode(AlterTableStmt);
		stmt->relation = makeRangeVar(apply->schema, apply->table, -1);
		stmt->objtype = OBJECT_TABLE;
		stmt->cmds = list_make1(command);
		run(apply, (Node *) stmt);
	}
}

static void
make_index(Apply *apply)
{
	IndexStmt  *stmt = (IndexStmt *) parse_statement(apply->statement);
	Relation	rel;
	ParseState *pstate;
	ObjectAddress made;

	if (!IsA(stmt, IndexStmt) || stmt->concurrent || stmt->if_not_exists || !is_our_table(apply, stmt->relation) ||
		stmt->idxname == NULL || strcmp(stmt->idxname, apply->piece->name) != 0)
		refuse_statement();
	if (OidIsValid(get_relname_relid(stmt->idxname, get_rel_namespace(apply->relid))))
		stmt->idxname = NULL;
	stmt->tableSpace = NULL;
	foreach_node(IndexElem, element, stmt->indexParams)
		(void) check_type_names(element->expr, apply);
	(void) check_type_names(stmt->whereClause, apply);
	stmt = transformIndexStmt(apply->relid, stmt, apply->statement);

	rel = table_open(apply->relid, AccessExclusiveLock);
	pstate = begin_parse(apply, rel);
	foreach_node(IndexElem, element, stmt->indexParams)
	{
		if (element->expr)
			check_expression(apply, pstate, element->expr);
	}
	if (stmt->whereClause)
		check_expression(apply, pstate, stmt->whereClause);
	free_parsestate(pstate);
	table_close(rel, NoLock);
	made = DefineIndex(apply->relid, stmt, InvalidOid, InvalidOid, InvalidOid, -1, false, false, false, false, true);
	CommandCounterIncrement();
	check_recorded(apply, RelationRelationId, made.objectId);
}

/*
 * Makes a piece as the owner of the table.
 */
static void
make_piece(void *arg)
{
	Apply	   *apply = arg;
	Relation	rel = table_open(apply->relid, AccessExclusiveLock);
	FlashbackOwner scope;

	flashback_begin_as_owner(rel, &scope);
	table_close(rel, NoLock);
	switch (apply->piece->kind)
	{
		case FLASHBACK_PIECE_SEQUENCE:
			make_sequence(apply);
			break;
		case FLASHBACK_PIECE_DEFAULT:
			make_default(apply);
			break;
		case FLASHBACK_PIECE_IDENTITY:
			make_identity(apply);
			break;
		case FLASHBACK_PIECE_GENERATED:
			make_generated(apply);
			break;
		case FLASHBACK_PIECE_CONSTRAINT:
			make_constraint(apply);
			break;
		case FLASHBACK_PIECE_INDEX:
			make_index(apply);
			break;
	}
	flashback_end_as_owner(&scope);
}

/*
 * The name for a sequence: the former one, unless it is taken.
 */
static char *
choose_name(const Apply *apply)
{
	Oid			namespace = get_rel_namespace(apply->relid);

	if (!OidIsValid(get_relname_relid(apply->piece->name, namespace)))
		return apply->piece->name;
	return ChooseRelationName(apply->table,
							  flashback_definition_column(apply->definition, apply->piece->attnum)->name,
							  "seq", namespace, false);
}

static MadeSequence *
made_for(const Apply *apply, Oid former)
{
	foreach_ptr(MadeSequence, made, apply->sequences)
	{
		if (made->former == former)
			return made;
	}
	return NULL;
}

/*
 * Makes a piece, or says why not, and how it can be made.
 */
static void
try_piece(Apply *apply, const FlashbackPiece *piece)
{
	ErrorData  *error;

	apply->piece = piece;
	apply->sequence = NULL;
	if (piece->kind == FLASHBACK_PIECE_SEQUENCE || piece->kind == FLASHBACK_PIECE_IDENTITY)
		apply->sequence = choose_name(apply);
	else if (piece->kind == FLASHBACK_PIECE_DEFAULT && OidIsValid(piece->sequence))
	{
		MadeSequence *made = made_for(apply, piece->sequence);

		apply->sequence = made ? made->name : NULL;
	}
	apply->statement = flashback_piece_statement(apply->definition, piece, apply->schema, apply->table,
												 apply->sequence);
	error = flashback_attempt(make_piece, apply, false, expected_errors);
	if (error == NULL)
	{
		if (piece->kind == FLASHBACK_PIECE_SEQUENCE)
		{
			MadeSequence *made = palloc(sizeof(MadeSequence));

			made->former = piece->object.objectId;
			made->relid = get_relname_relid(apply->sequence, get_rel_namespace(apply->relid));
			made->name = apply->sequence;
			apply->sequences = lappend(apply->sequences, made);
		}
		return;
	}
	ereport(WARNING,
			(errmsg("table \"%s\" is given back without %s", apply->table,
					flashback_piece_describe(apply->definition, piece)),
			 errdetail("It failed: %s.", error->message),
			 errhint("It would be made by: %s;",
					 flashback_piece_remedy(apply->definition, piece, apply->schema, apply->table, apply->sequence))));
	FreeErrorData(error);
}

/*
 * What a piece is among what is missing; NULL if the table did not have it, or
 * its text may not mean the same any more.
 */
static FlashbackMissing *
find_missing(List *missing, const FlashbackPiece *piece)
{
	foreach_ptr(FlashbackMissing, item, missing)
	{
		if (!item->may_be_text)
			continue;
		if (piece->kind == FLASHBACK_PIECE_IDENTITY)
		{
			if (!OidIsValid(item->object.classId) && item->attnum == piece->attnum)
				return item;
		}
		else if (item->object.classId == piece->object.classId && item->object.objectId == piece->object.objectId)
			return item;
	}
	return NULL;
}

/*
 * Whether the columns are those that the table had at the moment: the
 * transaction that dropped it may have changed them before.
 */
static bool
columns_are_same(const FlashbackDefinition *definition, const FlashbackFormer *former)
{
	int			n = 0;

	for (int i = 0; i < former->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(former->desc, i);
		FlashbackDefinedColumn *column;

		if (att->attisdropped)
			continue;
		n++;
		column = flashback_definition_column(definition, att->attnum);
		if (column == NULL || strcmp(column->name, NameStr(att->attname)) != 0 ||
			column->typid != att->atttypid || column->typmod != att->atttypmod)
			return false;
	}
	return n == list_length(definition->columns);
}

/*
 * Gives comments back.  That of the table says whose rows it has, unless it
 * has the name and the schema of then.
 */
static void
comment(const Apply *apply)
{
	const FlashbackDefinition *definition = apply->definition;
	Oid			namespace = get_rel_namespace(apply->relid);

	if (definition->comment[0] != '\0' && strcmp(definition->schema, apply->schema) == 0 &&
		strcmp(definition->name, apply->table) == 0)
		CreateComments(apply->relid, RelationRelationId, 0, definition->comment);
	foreach_ptr(FlashbackDefinedColumn, column, definition->columns)
	{
		AttrNumber	attnum = get_attnum(apply->relid, column->name);

		if (column->comment[0] != '\0' && attnum != InvalidAttrNumber)
			CreateComments(apply->relid, RelationRelationId, attnum, column->comment);
	}
	foreach_ptr(FlashbackPiece, piece, definition->pieces)
	{
		Oid			made = InvalidOid;

		if (piece->comment[0] == '\0')
			continue;
		if (piece->kind == FLASHBACK_PIECE_CONSTRAINT)
		{
			made = get_relation_constraint_oid(apply->relid, piece->name, true);
			if (OidIsValid(made))
				CreateComments(made, ConstraintRelationId, 0, piece->comment);
		}
		else if (piece->kind == FLASHBACK_PIECE_INDEX)
		{
			made = get_relname_relid(piece->name, namespace);
			if (OidIsValid(made) && get_rel_relkind(made) == RELKIND_INDEX &&
				IndexGetRelation(made, true) == apply->relid)
				CreateComments(made, RelationRelationId, 0, piece->comment);
		}
	}
	CommandCounterIncrement();
}

/*
 * Gives a table that has its rows, keys and indexes what else its definition
 * has, as far as it is missing.  Returns what is still missing, and was not
 * spoken of.
 */
List *
flashback_definition_apply(const FlashbackDefinition *definition, const FlashbackFormer *former,
						   Oid relid, List *missing)
{
	Apply		apply = {.definition = definition,.relid = relid,.owner = former->owner};
	Relation	rel = table_open(relid, NoLock);
	Oid			owner = rel->rd_rel->relowner;

	table_close(rel, NoLock);

	/* It is somebody else's now, who has not written any of it */
	if (owner != former->owner)
		return missing;
	apply.schema = get_namespace_name(get_rel_namespace(relid));
	apply.table = get_rel_name(relid);
	if (!columns_are_same(definition, former))
	{
		ereport(NOTICE,
				(errmsg("columns of table \"%s\" were changed by the transaction that dropped it", apply.table),
				 errdetail("What the definition of that moment has besides them is left out.")));
		return missing;
	}

	/* Of two defaults of a column the one of the moment is missing */
	for (int kind = 0; kind < FLASHBACK_PIECE_KINDS; kind++)
	{
		for (int foreign = 0; foreign <= 1; foreign++)
		{
			foreach_ptr(FlashbackPiece, piece, definition->pieces)
			{
				FlashbackMissing *item = find_missing(missing, piece);

				if (piece->kind != kind || (piece->type == CONSTRAINT_FOREIGN) != (foreign == 1) ||
					(item == NULL && kind != FLASHBACK_PIECE_SEQUENCE))
					continue;
				CHECK_FOR_INTERRUPTS();
				try_piece(&apply, piece);
				if (item)
					missing = list_delete_ptr(missing, item);
			}
		}
	}
	comment(&apply);
	return missing;
}
