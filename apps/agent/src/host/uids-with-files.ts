import { readMounts } from './disks'
import { runCommand } from './run-command'

const SEARCH_MS = 3_600_000

/**
 * What a search for files leaves out: the kernel's own, and what is another machine's or a program's (FUSE). A uid is given
 * out on one host only, and who can write to a shared file system as any uid is not kept from it by the uids of this host.
 */
const notSearched =
  /^(?:proc|sysfs|cgroup2?|autofs|nfs4?|cifs|smb3|ceph|afs|lustre|9p|virtiofs|fuse|fuse\..*)$/

/**
 * Uids of a range that own any file below a directory, on local file systems. Takes as long as these are large. Throws an
 * Error with the reason where one could not be searched as a whole.
 */
export async function uidsWithFiles(top: string, { from, to }: UidRange): Promise<Set<number>> {
  const seen = new Map(readMounts().map((m) => [m.mount, m.fileSystem]))
  // the root is searched whatever it lies on: it is this host's
  const left = [...seen].filter(([mount, type]) => mount !== '/' && notSearched.test(type)).map(([m]) => m)
  const prune = left.flatMap((mount) => ['-o', '-path', mount.replace(/[*?[\]\\]/g, '\\$&')])
  const r = await runCommand(
    '/bin/sh',
    [
      '-c',
      '{ find "$@" -printf "%U\\n"; echo "ended $?"; } | sort -u',
      'sh',
      top,
      '-ignore_readdir_race',
      ...['(', '-false', ...prune, ')', '-prune', '-o'],
      ...['-uid', `+${from - 1}`, '-uid', `-${to + 1}`],
    ],
    { timeoutMs: SEARCH_MS },
  )
  const lines = r.stdout.split('\n').filter(Boolean)
  const complaints = complaintsOf(r.stderr, left)
  const ended = r.status === 0 && lines.find((line) => line.startsWith('ended '))
  if (!(ended === 'ended 0' || (ended === 'ended 1' && r.stderr !== '' && complaints.length === 0)))
    throw new Error(complaints[0] ?? 'find did not come to its end')
  return new Set(lines.filter((line) => /^\d+$/.test(line)).map(Number))
}

/** What find could not search, without mounts that are not searched: a person's FUSE keeps even root from looking at it. */
export function complaintsOf(stderr: string, mounts: readonly string[]): string[] {
  const expected = new Set(mounts.map((mount) => `find: ‘${mount}’: Permission denied`))
  return stderr.split('\n').filter((line) => line !== '' && !expected.has(line))
}

export type UidRange = { from: number; to: number }
