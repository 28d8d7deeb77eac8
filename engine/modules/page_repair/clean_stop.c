/*-------------------------------------------------------------------------
 *
 * clean_stop.c
 *	  Was this standby stopped with all that it had written on its disk?
 *
 * A standby that stops skips its restartpoint when its primary has made no
 * checkpoint, so a clean stop alone does not sync what was written.  The
 * checkpointer does so here, and leaves a note for the next start (R19).
 *
 * IDENTIFICATION
 *	  engine/modules/page_repair/clean_stop.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "page_repair.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/sync.h"

#define CLEAN_STOP_FILE "page_repair.synced"
#define CLEAN_STOP_MAGIC 0x50524353

typedef struct CleanStop
{
	uint32		magic;
	uint64		system_identifier;
	pg_crc32c	control;		/* of pg_control, which each start changes */
	pg_crc32c	crc;
} CleanStop;

static void
fill_note(CleanStop *note, const ControlFileData *control)
{
	memset(note, 0, sizeof(*note));
	note->magic = CLEAN_STOP_MAGIC;
	note->system_identifier = control->system_identifier;
	note->control = control->crc;
	INIT_CRC32C(note->crc);
	COMP_CRC32C(note->crc, note, offsetof(CleanStop, crc));
	FIN_CRC32C(note->crc);
}

/*
 * The last thing that the checkpointer does.  Without the note the next start
 * is only as it was before, so a failure is told and nothing more.
 */
static void
note_clean_stop(int code, Datum arg)
{
	ControlFileData *control;
	bool		crc_ok;
	CleanStop	note;
	int			fd;
	bool		whole;
	XLogRecPtr	redo;

	if (code != 0 || !HotStandbyActive())
		return;
	SpinLockAcquire(&page_repair_shared->mutex);
	whole = page_repair_shared->whole;
	redo = page_repair_shared->recovered_from;
	SpinLockRelease(&page_repair_shared->mutex);
	control = get_controlfile(DataDir, &crc_ok);
	if (!crc_ok || control->state != DB_SHUTDOWNED_IN_RECOVERY)
		return;

	/* A restartpoint has synced all that an earlier crash could have torn */
	if (!whole && (XLogRecPtrIsInvalid(redo) || control->checkPointCopy.redo <= redo))
		return;

	ProcessSyncRequests();
	fill_note(&note, control);
	fd = BasicOpenFile(CLEAN_STOP_FILE, O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY);
	if (fd < 0 || pg_pwrite(fd, &note, sizeof(note), 0) != sizeof(note) || pg_fsync(fd) != 0)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", CLEAN_STOP_FILE)));
	if (fd >= 0)
		close(fd);
	fsync_fname(".", true);
}

/*
 * To be called by the checkpointer now and then.
 */
void
page_repair_watch_stop(void)
{
	static bool watching = false;

	if (!watching)
		before_shmem_exit(note_clean_stop, 0);
	watching = true;
}

/*
 * Was the last stop one that left no page to be torn?  The note counts once, and
 * must be gone before anything is written again: the postmaster asks.
 */
bool
page_repair_was_stopped_whole(void)
{
	ControlFileData *control;
	CleanStop	note;
	CleanStop	expected;
	bool		crc_ok;
	ssize_t		got;
	int			fd = BasicOpenFile(CLEAN_STOP_FILE, O_RDONLY | PG_BINARY);

	if (fd < 0 && errno == ENOENT)
		return false;
	memset(&note, 0, sizeof(note));
	got = fd < 0 ? -1 : pg_pread(fd, &note, sizeof(note), 0);
	if (fd >= 0)
		close(fd);
	(void) durable_unlink(CLEAN_STOP_FILE, FATAL);
	control = get_controlfile(DataDir, &crc_ok);
	fill_note(&expected, control);
	return crc_ok && control->state == DB_SHUTDOWNED_IN_RECOVERY &&
		got == sizeof(note) && memcmp(&note, &expected, sizeof(note)) == 0;
}
