/*-------------------------------------------------------------------------
 *
 * flashback_sql.h
 *	  What lies between a scan and SQL: partitions, conditions, privileges,
 *	  the result table, progress.  See README.invariants.md.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_table/flashback_sql.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef FLASHBACK_SQL_H
#define FLASHBACK_SQL_H

#include "flashback_table.h"
#include "nodes/parsenodes.h"
#include "parser/parse_node.h"
#include "tcop/utility.h"

/* command.c */
extern ObjectAddress flashback_execute_command(ParseState *pstate, FlashbackTableStmt *stmt,
											   ParamListInfo params);

/* condition.c */
typedef struct FlashbackCondition FlashbackCondition;

extern Node *flashback_parse_condition(ParseState *pstate, const char *text);
extern FlashbackCondition *flashback_condition_create(Relation rel, const char *text);
extern bool flashback_condition_holds(FlashbackCondition *condition, TupleTableSlot *slot);
extern void flashback_condition_free(FlashbackCondition *condition);

/* partitions.c */
typedef struct FlashbackRows FlashbackRows;

/* The current user may see all rows of the table */
#define FLASHBACK_OWNED 1
/* Rows may have the columns of then */
#define FLASHBACK_THEN 2
/* Differences between the partitions of then and now are reported */
#define FLASHBACK_REPORT 4

extern bool flashback_descendants(Oid parent, const FlashbackMoment *moment, List **descendants,
								  FlashbackRefusal *refusal);
extern bool flashback_is_possible(Relation rel, const FlashbackMoment *moment, int64 *pages,
								  FlashbackRefusal *refusal);
extern FlashbackRows *flashback_rows_begin(Relation rel, TimestampTz time,
										   const char *condition, int flags);
extern FlashbackRows *flashback_rows_begin_before(Oid relid, XLogRecPtr commit_lsn);
extern Relation flashback_rows_relation(const FlashbackRows *rows);
extern const FlashbackFormer *flashback_rows_former(const FlashbackRows *rows);
extern TupleDesc flashback_rows_columns(const FlashbackRows *rows, bool *then);
extern const FlashbackMoment *flashback_rows_moment(const FlashbackRows *rows);
extern FlashbackScan *flashback_rows_take_scan(FlashbackRows *rows);
extern bool flashback_rows_next(FlashbackRows *rows, TupleTableSlot **slot);
extern void flashback_rows_end(FlashbackRows *rows);

/* keys.c: all of the memory context that is current */
typedef struct FlashbackKeys FlashbackKeys;
typedef struct FlashbackDefinition FlashbackDefinition;

extern FlashbackKeys *flashback_keys_read(const FlashbackFormer *table, const FlashbackMoment *moment,
										  FlashbackRefusal *refusal);
extern void flashback_keys_forbid_nulls(const FlashbackKeys *keys, Oid relid);
extern void flashback_keys_build(const FlashbackKeys *keys, Oid relid);
extern void flashback_keys_complete(const FlashbackKeys *keys, const FlashbackDefinition *definition,
									Oid relid);

/* functions.c */
extern bool flashback_kind_is_possible(Relation rel, FlashbackRefusal *refusal);

/* privileges.c */
extern void flashback_check_owners(List *relids);
extern void flashback_check_former_owner(Oid relid, const FlashbackFormer *former);
extern Oid	flashback_heir(const FlashbackFormer *former);
pg_noreturn extern void flashback_refuse_undecided(Relation rel, const char *reason);

/* progress.c */
extern void flashback_progress_request(void);
extern void flashback_progress_startup(void);
extern void flashback_progress_begin(Oid relid, TimestampTz time);
extern int	flashback_progress_number(void);
extern void flashback_progress_join(int number);
extern void flashback_progress_next_relation(void);
extern void flashback_progress_partition(int done, int total);
extern void flashback_progress_rows(uint64 rows);
extern void flashback_progress_all_rows(uint64 rows);
extern void flashback_progress_indexes(int done, int total);
extern void flashback_progress_end(void);

/* result_table.c */
typedef struct FlashbackResult
{
	Oid			relid;
	uint64		rows;
	FlashbackMoment moment;
} FlashbackResult;

/* As many workers as the settings make of the size of the table */
#define FLASHBACK_WORKERS_DEFAULT (-1)

extern void flashback_make_result(Relation rel, TimestampTz time, const char *name,
								  const char *schema, bool with_indexes,
								  const char *condition, int workers, FlashbackResult *result);
extern void flashback_make_result_before(Oid relid, XLogRecPtr commit_lsn, const char *name,
										 const char *schema, const char *condition,
										 FlashbackResult *result);

/* dropped.c */
extern Oid	flashback_give_back(RangeVar *relation, const char *newname);

#endif							/* FLASHBACK_SQL_H */
