/*-------------------------------------------------------------------------
 *
 * flashback_forge.c
 *		Writes into WAL what passes for the definition of a dropped table.
 *
 * engine/testkit/modules/flashback_fuzz/flashback_forge.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xloginsert.h"
#include "fmgr.h"
#include "replication/message.h"
#include "varatt.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(flashback_forge);

/*
 * flashback_forge(prefix cstring, payload bytea)
 */
Datum
flashback_forge(PG_FUNCTION_ARGS)
{
	const char *prefix = PG_GETARG_CSTRING(0);
	bytea	   *payload = PG_GETARG_BYTEA_PP(1);
	xl_logical_message message;

	(void) GetCurrentTransactionId();
	memset(&message, 0, sizeof(message));
	message.dbId = InvalidOid;
	message.transactional = true;
	message.prefix_size = strlen(prefix) + 1;
	message.message_size = VARSIZE_ANY_EXHDR(payload);
	XLogBeginInsert();
	XLogRegisterData(&message, SizeOfLogicalMessage);
	XLogRegisterData(prefix, message.prefix_size);
	XLogRegisterData(VARDATA_ANY(payload), message.message_size);
	(void) XLogInsert(RM_LOGICALMSG_ID, XLOG_LOGICAL_MESSAGE);
	PG_RETURN_VOID();
}
