import { type CommitMode, commitModes } from '@floe/domain'

/** What commits of a round wait for. */
export type Configuration = {
  method: 'asynchronous' | 'any' | 'first'
  strict: boolean
  commitMode: CommitMode
}

const sets: Pick<Configuration, 'method' | 'strict'>[] = [
  { method: 'asynchronous', strict: false },
  { method: 'any', strict: false },
  { method: 'any', strict: true },
  { method: 'first', strict: false },
  { method: 'first', strict: true },
]

/** Every one there is. */
export const configurations: readonly Configuration[] = sets.flatMap((set) =>
  commitModes.map((commitMode) => ({ ...set, commitMode })),
)

export const formatConfiguration = ({ method, strict, commitMode }: Configuration): string =>
  `${method === 'asynchronous' ? method : `${method.toUpperCase()} 1${strict ? ' strict' : ''}`}, ${commitMode}`

/** What a person types behind `./floe cluster synchronous NAME` for it. */
export function wordsFor(
  { method, strict, commitMode }: Configuration,
  standbys: readonly string[],
): string[] {
  const mode = ['--mode', commitMode]
  if (method === 'asynchronous') return ['--off', ...mode]
  return [...standbys, `--${method}`, '1', ...(strict ? ['--strict'] : []), ...mode]
}
