/*-------------------------------------------------------------------------
 *
 * row_image.c
 *	  A row as bytes that can be compared, sorted and read back.
 *
 *	hash of the key, else of the rest | length of the key, the key |
 *	length of the rest, the rest | columns that are not compared | place
 *
 * Two rows are the same if key and rest are the same bytes, as for
 * record_image_eq(): no operator that a user has made decides.  The hash comes
 * first as sorts compare the first eight bytes before any others.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/row_image.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "catalog/pg_index.h"
#include "common/hashfn.h"
#include "executor/tuptable.h"
#include "flashback_console.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#define HASH_AT VARHDRSZ
#define KEY_LENGTH_AT (HASH_AT + sizeof(uint64))
#define KEY_AT (KEY_LENGTH_AT + sizeof(uint32))

/*
 * Whether the columns of an index tell rows apart: those that had no such
 * column (later than natts) are not told apart by it.
 */
static bool
is_key(Relation index, TupleDesc desc, int natts)
{
	Form_pg_index form = index->rd_index;

	if (!form->indisunique || !form->indisvalid || !form->indimmediate || form->indisexclusion ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indexprs, NULL))
		return false;
	for (int i = 0; i < form->indnkeyatts; i++)
	{
		AttrNumber	attnum = form->indkey.values[i];

		if (attnum <= 0 || attnum > natts ||
			TupleDescAttr(desc, attnum - 1)->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL ||
			TupleDescCompactAttr(desc, attnum - 1)->attnullability != ATTNULLABLE_VALID)
			return false;
	}
	return true;
}

/*
 * Puts the columns of the key into the shape: those of the primary key, else
 * of the first index that can be one.
 */
static void
find_key(FlashbackShape *shape, int natts)
{
	Oid			primary = RelationGetPrimaryKeyIndex(shape->rel, false);
	List	   *indexes = RelationGetIndexList(shape->rel);

	if (OidIsValid(primary))
		indexes = lcons_oid(primary, indexes);
	foreach_oid(indexid, indexes)
	{
		Relation	index = index_open(indexid, AccessShareLock);

		if (is_key(index, RelationGetDescr(shape->rel), natts))
		{
			shape->nkeys = index->rd_index->indnkeyatts;
			for (int i = 0; i < shape->nkeys; i++)
				shape->columns[i] = index->rd_index->indkey.values[i];
		}
		index_close(index, AccessShareLock);
		if (shape->nkeys > 0)
			break;
	}
	list_free(indexes);
}

static bool
is_among(AttrNumber attnum, const AttrNumber *columns, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		if (columns[i] == attnum)
			return true;
	}
	return false;
}

/*
 * The shape of rows of a relation that had natts columns then.  Columns that
 * are later, or generated from others, are not compared.
 */
FlashbackShape *
flashback_shape_create(Relation rel, int natts, bool keyed)
{
	TupleDesc	desc = RelationGetDescr(rel);
	FlashbackShape *shape = palloc0(sizeof(FlashbackShape));
	int			n;

	shape->rel = rel;
	shape->columns = palloc_array(AttrNumber, Max(desc->natts, INDEX_MAX_KEYS));
	if (keyed)
		find_key(shape, natts);
	n = shape->nkeys;
	for (int compared = 1; compared >= 0; compared--)
	{
		for (int i = 0; i < desc->natts; i++)
		{
			Form_pg_attribute att = TupleDescAttr(desc, i);
			bool		is_compared = (i < natts && att->attgenerated == '\0');

			if (!att->attisdropped && is_compared == (compared == 1) &&
				!is_among(i + 1, shape->columns, shape->nkeys))
				shape->columns[n++] = i + 1;
		}
		if (compared == 1)
			shape->ncompared = n;
	}
	shape->ncolumns = n;
	initStringInfo(&shape->buffer);
	shape->output = palloc0_array(FmgrInfo, Max(desc->natts, 1));
	shape->computed = flashback_computed_create(rel);
	return shape;
}

/*
 * An image begins with place for what comes before the key.
 */
void
flashback_image_start(FlashbackShape *shape)
{
	static const char zeroes[KEY_AT];

	resetStringInfo(&shape->buffer);
	appendBinaryStringInfo(&shape->buffer, zeroes, KEY_AT);
}

/*
 * Appends a value; large ones are fetched into the current memory context.
 */
void
flashback_image_append(FlashbackShape *shape, AttrNumber attnum, Datum value, bool isnull)
{
	CompactAttribute *att = TupleDescCompactAttr(RelationGetDescr(shape->rel), attnum - 1);
	StringInfo	to = &shape->buffer;
	union
	{
		Datum		datum;
		char		bytes[sizeof(Datum)];
	}			byval;
	const char *data;
	uint32		length;

	appendStringInfoCharMacro(to, isnull ? '\0' : '\1');
	if (isnull)
		return;
	if (att->attbyval)
	{
		store_att_byval(byval.bytes, value, att->attlen);
		data = byval.bytes;
		length = att->attlen;
	}
	else if (att->attlen == -1)
	{
		struct varlena *packed = PG_DETOAST_DATUM_PACKED(value);

		data = VARDATA_ANY(packed);
		length = VARSIZE_ANY_EXHDR(packed);
	}
	else
	{
		data = DatumGetPointer(value);
		length = att->attlen == -2 ? strlen(data) + 1 : att->attlen;
	}
	appendBinaryStringInfo(to, (const char *) &length, sizeof(length));
	appendBinaryStringInfo(to, data, length);
}

/*
 * The image of a row in the shape of the relation; valid until the next.
 */
bytea *
flashback_image_make(FlashbackShape *shape, TupleTableSlot *slot, bool *null_key)
{
	StringInfo	to = &shape->buffer;
	FlashbackPlace place;
	uint64		hash;
	uint32		length;
	int			rest_at;

	slot_getallattrs(slot);
	flashback_image_start(shape);
	for (int i = 0; i < shape->nkeys; i++)
	{
		AttrNumber	attnum = shape->columns[i];

		if (slot->tts_isnull[attnum - 1])
			*null_key = true;
		flashback_image_append(shape, attnum, slot->tts_values[attnum - 1],
							   slot->tts_isnull[attnum - 1]);
	}
	length = to->len - KEY_AT;
	memcpy(to->data + KEY_LENGTH_AT, &length, sizeof(length));

	rest_at = to->len;
	appendBinaryStringInfo(to, (const char *) &length, sizeof(length));
	for (int i = shape->nkeys; i < shape->ncompared; i++)
	{
		AttrNumber	attnum = shape->columns[i];

		flashback_image_append(shape, attnum, slot->tts_values[attnum - 1],
							   slot->tts_isnull[attnum - 1]);
	}
	length = to->len - rest_at - sizeof(length);
	memcpy(to->data + rest_at, &length, sizeof(length));

	if (shape->nkeys > 0)
		hash = hash_bytes_extended((unsigned char *) to->data + KEY_AT,
								   rest_at - KEY_AT, 0);
	else
		hash = hash_bytes_extended((unsigned char *) to->data + rest_at,
								   to->len - rest_at, 0);
	memcpy(to->data + HASH_AT, &hash, sizeof(hash));

	for (int i = shape->ncompared; i < shape->ncolumns; i++)
	{
		AttrNumber	attnum = shape->columns[i];

		flashback_image_append(shape, attnum, slot->tts_values[attnum - 1],
							   slot->tts_isnull[attnum - 1]);
	}
	memset(&place, 0, sizeof(place));
	place.relid = slot->tts_tableOid;
	place.tid = slot->tts_tid;
	appendBinaryStringInfo(to, (const char *) &place, sizeof(place));
	SET_VARSIZE(to->data, to->len);
	return (bytea *) to->data;
}

uint64
flashback_image_hash(const bytea *image)
{
	uint64		hash;

	memcpy(&hash, (const char *) image + HASH_AT, sizeof(hash));
	return hash;
}

/*
 * How many bytes of an image are the same for the same row.
 */
Size
flashback_image_compared(const bytea *image)
{
	Size		length;
	const char *rest = flashback_image_rest(image, &length);

	return rest + length - VARDATA(image);
}

/*
 * The bytes that are the same for the same key.
 */
const char *
flashback_image_key(const bytea *image, Size *length)
{
	uint32		key_length;

	memcpy(&key_length, (const char *) image + KEY_LENGTH_AT, sizeof(key_length));
	*length = key_length;
	return (const char *) image + KEY_AT;
}

/*
 * And those that are the same for the rest of a row.
 */
const char *
flashback_image_rest(const bytea *image, Size *length)
{
	Size		key_length;
	const char *rest = flashback_image_key(image, &key_length) + key_length;
	uint32		rest_length;

	memcpy(&rest_length, rest, sizeof(rest_length));
	*length = rest_length;
	return rest + sizeof(rest_length);
}

void
flashback_image_place(const bytea *image, FlashbackPlace *place)
{
	memcpy(place, (const char *) image + VARSIZE(image) - sizeof(*place), sizeof(*place));
}

/*
 * The row again, with values in the current memory context; those that are
 * computed are valid until the next call.
 */
void
flashback_image_read(const FlashbackShape *shape, const bytea *image, TupleTableSlot *slot)
{
	TupleDesc	desc = RelationGetDescr(shape->rel);
	Size		length;
	const char *at = flashback_image_key(image, &length);
	FlashbackPlace place;

	ExecClearTuple(slot);
	memset(slot->tts_isnull, true, desc->natts * sizeof(bool));
	memset(slot->tts_values, 0, desc->natts * sizeof(Datum));
	for (int i = 0; i < shape->ncolumns; i++)
	{
		AttrNumber	attnum = shape->columns[i];
		CompactAttribute *att = TupleDescCompactAttr(desc, attnum - 1);
		uint32		size;
		char	   *value;

		if (i == shape->nkeys)
			at += sizeof(uint32);
		if (*at++ == '\0')
			continue;
		memcpy(&size, at, sizeof(size));
		at += sizeof(size);
		value = palloc(size + VARHDRSZ + sizeof(Datum));
		if (att->attlen == -1)
		{
			SET_VARSIZE(value, size + VARHDRSZ);
			memcpy(VARDATA(value), at, size);
		}
		else
			memcpy(value, at, size);
		slot->tts_values[attnum - 1] = fetch_att(value, att->attbyval, att->attlen);
		slot->tts_isnull[attnum - 1] = false;
		at += size;
	}
	ExecStoreVirtualTuple(slot);
	flashback_compute(shape->computed, slot);
	flashback_image_place(image, &place);
	slot->tts_tid = place.tid;
	slot->tts_tableOid = place.relid;
}

/*
 * The value of a column as text.
 */
char *
flashback_value_text(FlashbackShape *shape, AttrNumber attnum, Datum value)
{
	FmgrInfo   *output = &shape->output[attnum - 1];

	if (!OidIsValid(output->fn_oid))
	{
		Oid			function;
		bool		is_varlena;

		getTypeOutputInfo(TupleDescAttr(RelationGetDescr(shape->rel), attnum - 1)->atttypid,
						  &function, &is_varlena);
		fmgr_info_cxt(function, output, GetMemoryChunkContext(shape));
	}
	return OutputFunctionCall(output, value);
}
