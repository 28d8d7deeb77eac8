/*-------------------------------------------------------------------------
 *
 * bulk_io.h
 *	  What the files of the module bulk_io share.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/bulk_io/bulk_io.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef BULK_IO_H
#define BULK_IO_H

#include "storage/buf_internals.h"

#define BULK_WRITE_DEFAULT		(128 * 1024 / BLCKSZ)

/* polar_bulk_write_size, in blocks */
extern int	bulk_io_write_size;

extern bool bulk_io_write_run(SMgrRelation smgr, BufferDesc *first, const void *page,
							  IOContext io_context);

#endif							/* BULK_IO_H */
