/*-------------------------------------------------------------------------
 *
 * definition_text.c
 *	  The definition of a dropped table as SQL.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/definition_text.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_attribute.h"
#include "catalog/pg_constraint.h"
#include "flashback_definition.h"
#include "utils/builtins.h"

/*
 * The column of a number; NULL if there is none.
 */
FlashbackDefinedColumn *
flashback_definition_column(const FlashbackDefinition *definition, AttrNumber attnum)
{
	foreach_ptr(FlashbackDefinedColumn, column, definition->columns)
	{
		if (column->attnum == attnum)
			return column;
	}
	return NULL;
}

static const char *
column_name(const FlashbackDefinition *definition, const FlashbackPiece *piece)
{
	return quote_identifier(flashback_definition_column(definition, piece->attnum)->name);
}

/*
 * What a piece is, for messages.
 */
char *
flashback_piece_describe(const FlashbackDefinition *definition, const FlashbackPiece *piece)
{
	const char *column = piece->attnum ? flashback_definition_column(definition, piece->attnum)->name : NULL;

	switch (piece->kind)
	{
		case FLASHBACK_PIECE_SEQUENCE:
			return psprintf("sequence \"%s\"", piece->name);
		case FLASHBACK_PIECE_DEFAULT:
			return psprintf("default of column \"%s\"", column);
		case FLASHBACK_PIECE_IDENTITY:
			return psprintf("identity of column \"%s\"", column);
		case FLASHBACK_PIECE_GENERATED:
			return psprintf("expression of generated column \"%s\"", column);
		case FLASHBACK_PIECE_CONSTRAINT:
			return psprintf(piece->type == CONSTRAINT_FOREIGN ? "foreign key \"%s\"" : "constraint \"%s\"", piece->name);
		case FLASHBACK_PIECE_INDEX:
			break;
	}
	return psprintf("index \"%s\"", piece->name);
}

static void
append_parameters(StringInfo text, const FlashbackSequence *parameters)
{
	appendStringInfo(text, "INCREMENT BY " INT64_FORMAT " MINVALUE " INT64_FORMAT " MAXVALUE " INT64_FORMAT
					 " START WITH " INT64_FORMAT " CACHE " INT64_FORMAT "%s",
					 parameters->increment, parameters->min, parameters->max, parameters->start,
					 parameters->cache, parameters->cycle ? " CYCLE" : "");
}

static void
append_identity(StringInfo text, const FlashbackPiece *piece, const char *schema, const char *sequence)
{
	appendStringInfo(text, "GENERATED %s AS IDENTITY (",
					 piece->type == ATTRIBUTE_IDENTITY_ALWAYS ? "ALWAYS" : "BY DEFAULT");
	if (sequence)
		appendStringInfo(text, "SEQUENCE NAME %s ", quote_qualified_identifier(schema, sequence));
	append_parameters(text, &piece->parameters);
	appendStringInfoChar(text, ')');
}

/*
 * The statement that makes a piece in a table.  sequence is the name of the one
 * that a default needs, or that a piece is or has, if it has a name.
 */
char *
flashback_piece_statement(const FlashbackDefinition *definition, const FlashbackPiece *piece,
						  const char *schema, const char *table, const char *sequence)
{
	StringInfoData text;
	const char *relation = quote_qualified_identifier(schema, table);
	const char *column = piece->attnum ? column_name(definition, piece) : NULL;

	initStringInfo(&text);
	switch (piece->kind)
	{
		case FLASHBACK_PIECE_SEQUENCE:
			appendStringInfo(&text, "CREATE SEQUENCE %s AS %s ", quote_qualified_identifier(schema, sequence),
							 format_type_be_qualified(piece->parameters.type));
			append_parameters(&text, &piece->parameters);
			appendStringInfo(&text, " OWNED BY %s.%s", relation, column);
			break;
		case FLASHBACK_PIECE_DEFAULT:
			appendStringInfo(&text, "ALTER TABLE %s ALTER COLUMN %s SET DEFAULT ", relation, column);
			if (sequence)
				appendStringInfo(&text, "nextval(%s::regclass)",
								 quote_literal_cstr(quote_qualified_identifier(schema, sequence)));
			else
				appendStringInfoString(&text, piece->text);
			break;
		case FLASHBACK_PIECE_IDENTITY:
			appendStringInfo(&text, "ALTER TABLE %s ALTER COLUMN %s ADD ", relation, column);
			append_identity(&text, piece, schema, sequence);
			break;
		case FLASHBACK_PIECE_GENERATED:
			appendStringInfo(&text, "ALTER TABLE %s ALTER COLUMN %s SET EXPRESSION AS (%s)", relation, column,
							 piece->text);
			break;
		case FLASHBACK_PIECE_CONSTRAINT:
			appendStringInfo(&text, "ALTER TABLE %s ADD CONSTRAINT %s %s", relation,
							 quote_identifier(piece->name), piece->text);
			break;
		case FLASHBACK_PIECE_INDEX:
			appendStringInfo(&text, "CREATE %sINDEX %s ON %s %s", piece->unique ? "UNIQUE " : "",
							 quote_identifier(piece->name), relation, piece->text);
			break;
	}
	return text.data;
}

/*
 * What a user can do to have a piece that could not be made.
 */
char *
flashback_piece_remedy(const FlashbackDefinition *definition, const FlashbackPiece *piece,
					   const char *schema, const char *table, const char *sequence)
{
	const char *column;

	if (piece->kind != FLASHBACK_PIECE_GENERATED)
		return flashback_piece_statement(definition, piece, schema, table, sequence);

	/* No command makes a plain column a generated one */
	column = column_name(definition, piece);
	return psprintf("ALTER TABLE %s DROP COLUMN %s, ADD COLUMN %s %s GENERATED ALWAYS AS (%s)%s",
					quote_qualified_identifier(schema, table), column, column,
					flashback_definition_column(definition, piece->attnum)->type, piece->text,
					piece->type == ATTRIBUTE_GENERATED_STORED ? " STORED" : "");
}

static const FlashbackPiece *
piece_of_column(const FlashbackDefinition *definition, AttrNumber attnum, FlashbackPieceKind kind)
{
	foreach_ptr(FlashbackPiece, piece, definition->pieces)
	{
		if (piece->attnum == attnum && piece->kind == kind)
			return piece;
	}
	return NULL;
}

static void
append_column(StringInfo text, const FlashbackDefinition *definition, const FlashbackDefinedColumn *column)
{
	const FlashbackPiece *piece;

	appendStringInfo(text, "\n    %s %s", quote_identifier(column->name), column->type);
	if ((piece = piece_of_column(definition, column->attnum, FLASHBACK_PIECE_DEFAULT)) != NULL)
		appendStringInfo(text, " DEFAULT %s", piece->text);
	else if ((piece = piece_of_column(definition, column->attnum, FLASHBACK_PIECE_GENERATED)) != NULL)
		appendStringInfo(text, " GENERATED ALWAYS AS (%s)%s", piece->text,
						 piece->type == ATTRIBUTE_GENERATED_STORED ? " STORED" : "");
	else if ((piece = piece_of_column(definition, column->attnum, FLASHBACK_PIECE_IDENTITY)) != NULL)
	{
		appendStringInfoChar(text, ' ');
		append_identity(text, piece, definition->schema, piece->name);
	}
	if (column->notnull && piece_of_column(definition, column->attnum, FLASHBACK_PIECE_CONSTRAINT) == NULL)
		appendStringInfoString(text, " NOT NULL");
}

static void
append_comment(StringInfo text, const char *comment, const char *kind, const char *what)
{
	if (comment[0] != '\0')
		appendStringInfo(text, "\nCOMMENT ON %s %s IS %s;", kind, what, quote_literal_cstr(comment));
}

/*
 * The statements that make a table like it was, without its rows.
 */
char *
flashback_definition_text(const FlashbackDefinition *definition)
{
	StringInfoData text;
	const char *relation = quote_qualified_identifier(definition->schema, definition->name);
	bool		first = true;

	initStringInfo(&text);
	foreach_ptr(FlashbackPiece, piece, definition->pieces)
	{
		if (piece->kind != FLASHBACK_PIECE_SEQUENCE)
			continue;
		appendStringInfo(&text, "CREATE SEQUENCE %s AS %s ", quote_qualified_identifier(definition->schema, piece->name),
						 format_type_be_qualified(piece->parameters.type));
		append_parameters(&text, &piece->parameters);
		appendStringInfoString(&text, ";\n");
	}
	appendStringInfo(&text, "CREATE TABLE %s (", relation);
	foreach_ptr(FlashbackDefinedColumn, column, definition->columns)
	{
		appendStringInfoString(&text, first ? "" : ",");
		append_column(&text, definition, column);
		first = false;
	}
	appendStringInfoString(&text, "\n);");
	foreach_ptr(FlashbackPiece, piece, definition->pieces)
	{
		if (piece->kind == FLASHBACK_PIECE_SEQUENCE)
			appendStringInfo(&text, "\nALTER SEQUENCE %s OWNED BY %s.%s;",
							 quote_qualified_identifier(definition->schema, piece->name), relation,
							 column_name(definition, piece));
	}

	/* Keys first: foreign keys of the table to itself need them */
	for (int foreign = 0; foreign <= 1; foreign++)
	{
		foreach_ptr(FlashbackPiece, piece, definition->pieces)
		{
			if ((piece->kind == FLASHBACK_PIECE_CONSTRAINT || piece->kind == FLASHBACK_PIECE_INDEX) &&
				(piece->type == CONSTRAINT_FOREIGN) == (foreign == 1))
				appendStringInfo(&text, "\n%s;",
								 flashback_piece_statement(definition, piece, definition->schema, definition->name, NULL));
		}
	}
	append_comment(&text, definition->comment, "TABLE", relation);
	foreach_ptr(FlashbackDefinedColumn, column, definition->columns)
		append_comment(&text, column->comment, "COLUMN",
					   psprintf("%s.%s", relation, quote_identifier(column->name)));
	foreach_ptr(FlashbackPiece, piece, definition->pieces)
	{
		if (piece->kind == FLASHBACK_PIECE_CONSTRAINT)
			append_comment(&text, piece->comment, "CONSTRAINT",
						   psprintf("%s ON %s", quote_identifier(piece->name), relation));
		else if (piece->kind == FLASHBACK_PIECE_INDEX)
			append_comment(&text, piece->comment, "INDEX",
						   quote_qualified_identifier(definition->schema, piece->name));
	}
	return text.data;
}
