/**
 * Processes whose throttling would stop WAL from being recycled, or everybody who writes to the log: limits of I/O do not
 * hold for them. Their titles are told in full: a session's ends in its address and what it does, so no name of a role or a
 * database makes it one of these.
 */
const titles = {
  checkpointer: /^checkpointer(?: performing (?:[a-z-]+ )*(?:checkpoint|restartpoint))?$/,
  'WAL writer': /^walwriter$/,
  archiver: /^archiver(?: (?:archiving|last was|failed on) [0-9A-Za-z.]+)?$/,
  logger: /^logger$/,
} as const

export type BackgroundKind = keyof typeof titles

/** Which of them a title names; a cluster_name stands before it. */
export function backgroundKind(title: string): BackgroundKind | null {
  const [, rest] = /^postgres: (.*)$/.exec(title.trimEnd()) ?? []
  if (rest === undefined) return null
  for (const [kind, pattern] of Object.entries(titles) as [BackgroundKind, RegExp][])
    if (pattern.test(rest) || pattern.test(rest.replace(/^.*: /, ''))) return kind
  return null
}
