/*-------------------------------------------------------------------------
 *
 * page_check.c
 *	  Whether a page, or a tuple, can be worked on without reading or writing
 *	  beyond its end, whatever its bytes are.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/page_check.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/tupmacs.h"
#include "flashback_internal.h"
#include "varatt.h"

/*
 * NULL if a page is in order, else what is wrong.  A new page is.
 */
const char *
flashback_check_page(const char *page)
{
	const PageHeaderData *header = (const PageHeaderData *) page;
	int			nline;

	if (PageIsNew((Page) page))
		return NULL;
	if (PageGetPageSize((Page) page) != BLCKSZ ||
		PageGetPageLayoutVersion((Page) page) != PG_PAGE_LAYOUT_VERSION ||
		header->pd_special != BLCKSZ)
		return "it is no page of a heap";
	if (header->pd_lower < SizeOfPageHeaderData ||
		header->pd_lower > header->pd_upper ||
		header->pd_upper > header->pd_special ||
		header->pd_upper != MAXALIGN(header->pd_upper) ||
		(header->pd_lower - SizeOfPageHeaderData) % sizeof(ItemIdData) != 0)
		return "its header is damaged";
	nline = (header->pd_lower - SizeOfPageHeaderData) / sizeof(ItemIdData);
	if (nline > MaxHeapTuplesPerPage)
		return "it has too many line pointers";

	for (int i = 0; i < nline; i++)
	{
		const ItemIdData *lp = &header->pd_linp[i];

		switch (lp->lp_flags)
		{
			case LP_UNUSED:
			case LP_DEAD:
				if (lp->lp_len != 0)
					return "a line pointer without a tuple has a length";
				break;
			case LP_REDIRECT:
				if (lp->lp_len != 0 || lp->lp_off < FirstOffsetNumber || lp->lp_off > nline)
					return "a line pointer is redirected to nowhere";
				break;
			default:
				if (lp->lp_len < SizeofHeapTupleHeader ||
					lp->lp_off < header->pd_upper ||
					lp->lp_off != MAXALIGN(lp->lp_off) ||
					lp->lp_off + MAXALIGN(lp->lp_len) > BLCKSZ)
					return "a tuple is outside of it";
				break;
		}
	}
	return NULL;
}

/*
 * NULL if all attributes of a tuple of this length are inside of it.
 */
const char *
flashback_check_tuple(TupleDesc desc, HeapTupleHeader tuple, uint32 len)
{
	int			natts;
	bool		has_nulls;
	uint32		header_length = SizeofHeapTupleHeader;
	const char *data;
	uint32		offset = 0;
	uint32		data_length;

	if (len < SizeofHeapTupleHeader)
		return "it is too short";
	natts = HeapTupleHeaderGetNatts(tuple);
	has_nulls = (tuple->t_infomask & HEAP_HASNULL) != 0;
	if (has_nulls)
		header_length += BITMAPLEN(natts);
	if (tuple->t_hoff != MAXALIGN(header_length) || tuple->t_hoff > len)
		return "its header has a wrong length";
	if (natts > desc->natts)
		return "it has more columns than the table";

	data = (const char *) tuple + tuple->t_hoff;
	data_length = len - tuple->t_hoff;
	for (int i = 0; i < natts; i++)
	{
		CompactAttribute *att = TupleDescCompactAttr(desc, i);
		const char *value;

		if (has_nulls && att_isnull(i, tuple->t_bits))
			continue;
		if (att->attlen == -1)
		{
			if (offset >= data_length)
				return "a column is outside of it";
			offset = att_pointer_alignby(offset, att->attalignby, -1, data + offset);
			if (offset >= data_length)
				return "a column is outside of it";
			value = data + offset;
			if (VARATT_IS_EXTERNAL(value))
			{
				if (offset + 2 > data_length || VARTAG_EXTERNAL(value) != VARTAG_ONDISK ||
					offset + TOAST_POINTER_SIZE > data_length)
					return "a column has no valid TOAST pointer";
				offset += TOAST_POINTER_SIZE;
			}
			else if (VARATT_IS_1B(value))
			{
				if (VARSIZE_1B(value) > data_length - offset)
					return "a column is longer than it";
				offset += VARSIZE_1B(value);
			}
			else
			{
				if (data_length - offset < VARHDRSZ ||
					VARSIZE_4B(value) < VARHDRSZ ||
					VARSIZE_4B(value) > data_length - offset ||
					(VARATT_IS_COMPRESSED(value) && VARSIZE_4B(value) < VARHDRSZ_COMPRESSED))
					return "a column is longer than it";
				offset += VARSIZE_4B(value);
			}
		}
		else if (att->attlen == -2)
		{
			if (offset > data_length)
				return "a column is outside of it";
			offset += strnlen(data + offset, data_length - offset) + 1;
			if (offset > data_length)
				return "a column is longer than it";
		}
		else
		{
			offset = att_nominal_alignby(offset, att->attalignby);
			if (att->attlen <= 0 || offset > data_length || att->attlen > data_length - offset)
				return "a column is outside of it";
			offset += att->attlen;
		}
	}
	return NULL;
}
