import { type FaultError, fault } from '@floe/domain'

/** True for an error that says that a file system or a quota is full. */
export function isNoRoom(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code
  return code === 'ENOSPC' || code === 'EDQUOT'
}

/** The fault of something that cannot be begun because it could not be kept. */
export function noRoom(what: string, directory: string, cause: unknown): FaultError {
  return fault('host.no_room', `no room to keep ${what}`, {
    detail: `The file system of "${directory}" is full.`,
    hint: 'Free space on it. Instances can be stopped and deleted meanwhile.',
    cause,
  })
}
