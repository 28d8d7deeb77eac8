/*-------------------------------------------------------------------------
 *
 * monitor.h
 *	  What the files of this module share.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/monitor/monitor.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONITOR_H
#define MONITOR_H

/* Raises an error unless the module's shared memory exists. */
extern void monitor_check_loaded(const void *shared);

/* stat_wal.c */
extern void monitor_stat_wal_install_hooks(void);
extern Size monitor_stat_wal_shmem_size(void);
extern void monitor_stat_wal_shmem_init(void);

/* stat_checkpoint.c */
extern void monitor_stat_checkpoint_install_hooks(void);
extern Size monitor_stat_checkpoint_shmem_size(void);
extern void monitor_stat_checkpoint_shmem_init(void);

#endif							/* MONITOR_H */
