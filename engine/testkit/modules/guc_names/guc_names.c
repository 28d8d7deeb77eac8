/*-------------------------------------------------------------------------
 *
 * guc_names.c
 *		Settings named polar_* in every context, for the tests of their names.
 *
 * The engine's own modules define such settings too, but their names and
 * ranges are theirs to change; the tests of the mechanism need fixed ones.
 *
 * engine/testkit/modules/guc_names/guc_names.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

static int	user_size = 16;
static int	superuser_size = 16;
static bool start_switch = false;
static char *reload_word = NULL;

void
_PG_init(void)
{
	DefineCustomIntVariable("polar_names_user_size",
							"A setting that every user may change, in blocks.",
							NULL,
							&user_size,
							16, 0, 128,
							PGC_USERSET, GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("polar_names_superuser_size",
							"A setting that only superusers may change, in blocks.",
							NULL,
							&superuser_size,
							16, 0, 128,
							PGC_SUSET, GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);
	DefineCustomStringVariable("polar_names_reload_word",
							   "A setting that changes on reload.",
							   NULL,
							   &reload_word,
							   "none",
							   PGC_SIGHUP, 0,
							   NULL, NULL, NULL);

	/* LOAD after the start must work as well, without this one */
	if (process_shared_preload_libraries_in_progress)
		DefineCustomBoolVariable("polar_names_start_switch",
								 "A setting that changes on restart.",
								 NULL,
								 &start_switch,
								 false,
								 PGC_POSTMASTER, 0,
								 NULL, NULL, NULL);
}
