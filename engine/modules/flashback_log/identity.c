/*-------------------------------------------------------------------------
 *
 * identity.c
 *	  What tells a file from each copy of it, also after the operating system
 *	  was started again.
 *
 * The number of a device is not part of that: device mapper, btrfs, ZFS and
 * network file systems may give another one at each mount.  The inode's number
 * alone is not enough: a copy on a file system of its own may well get the
 * same.  When the inode was made and the handle by which a file server would
 * know it (which has the inode's generation, and on btrfs its subvolume, on NFS
 * the server's file system) last as long as the inode does, and no copy made
 * file by file has them.  See the claim P5.
 *
 * Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group
 *
 * IDENTIFICATION
 *	  engine/modules/flashback_log/identity.c
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#ifdef MAX_HANDLE_SZ
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

#include "flashback_log.h"

/*
 * Of an open file; false if there is nothing to be had.  What the file system
 * does not tell stays zero.
 */
bool
flashback_log_identify(int fd, FlashbackLogIdentity *identity)
{
	struct stat st;

	memset(identity, 0, sizeof(*identity));
	if (fstat(fd, &st) != 0)
		return false;
	identity->device = st.st_dev;
	identity->inode = st.st_ino;

#ifdef STATX_BTIME
	{
		struct statx stx;

		if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &stx) == 0 &&
			(stx.stx_mask & STATX_BTIME) != 0)
			identity->born_ns = stx.stx_btime.tv_sec * INT64CONST(1000000000) + stx.stx_btime.tv_nsec;
	}
#endif
#ifdef MAX_HANDLE_SZ
	{
		struct statfs fs;
		union
		{
			struct file_handle handle;
			char		space[sizeof(struct file_handle) + FLASHBACK_LOG_MAX_HANDLE];
		}			buffer;
		int			mount;

		buffer.handle.handle_bytes = FLASHBACK_LOG_MAX_HANDLE;
		/* With FUSE a handle is good until the inode leaves memory */
		if (fstatfs(fd, &fs) == 0 && fs.f_type != FUSE_SUPER_MAGIC &&
			name_to_handle_at(fd, "", &buffer.handle, &mount, AT_EMPTY_PATH) == 0 &&
			buffer.handle.handle_bytes <= FLASHBACK_LOG_MAX_HANDLE)
		{
			identity->handle_type = buffer.handle.handle_type;
			identity->handle_length = buffer.handle.handle_bytes;
			memcpy(identity->handle, buffer.handle.f_handle, buffer.handle.handle_bytes);
		}
	}
#endif
	return true;
}

/*
 * Whether it is the same inode.  Its number on a device and its birth are
 * enough; on another device, or without a birth, the handle must be the same,
 * too; and with neither only the same device will do.
 */
bool
flashback_log_is_same_inode(const FlashbackLogIdentity *before, const FlashbackLogIdentity *now)
{
	if (before->inode == 0 || before->inode != now->inode ||
		(before->born_ns != 0 && before->born_ns != now->born_ns))
		return false;
	if (before->device == now->device && before->born_ns != 0)
		return true;
	if (before->handle_length == 0)
		return before->device == now->device || before->born_ns != 0;
	return before->handle_type == now->handle_type &&
		before->handle_length == now->handle_length &&
		memcmp(before->handle, now->handle, before->handle_length) == 0;
}
