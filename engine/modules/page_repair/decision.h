/*-------------------------------------------------------------------------
 *
 * decision.h
 *	  Decisions as tables, which README shows with the same rows.
 *
 * A row says of each fact what it has to be; the first row that applies decides.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/decision.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAGE_REPAIR_DECISION_H
#define PAGE_REPAIR_DECISION_H

typedef enum Fact
{
	ANY,
	NO,
	YES,
} Fact;

#define FACT(condition) ((condition) ? YES : NO)

static inline bool
row_applies(const Fact *row, const Fact *facts, int nfacts)
{
	for (int i = 0; i < nfacts; i++)
	{
		if (row[i] != ANY && row[i] != facts[i])
			return false;
	}
	return true;
}

#endif							/* PAGE_REPAIR_DECISION_H */
