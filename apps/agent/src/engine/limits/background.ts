/**
 * Processes whose throttling would stop WAL from being recycled, or everybody who writes to the log: limits of I/O do not
 * hold for them. Their titles are told in full: a session's ends in its address and what it does, so no name of a role or a
 * database makes it one of these.
 */
const titles = {
  checkpointer: /^checkpointer(?: performing (?:[a-z-]+ )*(?:checkpoint|restartpoint))?$/,
  'WAL writer': /^walwriter$/,
  // WAL that it has not read yet is kept
  'WAL summarizer': /^walsummarizer$/,
  archiver: /^archiver(?: (?:archiving|last was|failed on) [0-9A-Za-z.]+)?$/,
  logger: /^logger$/,
} as const

export type BackgroundKind = keyof typeof titles

type Identity = { pid: number; startTicks: number }

/** Which process is taken for each kind: one at most, for as long as that very process runs. */
export class BackgroundProcesses {
  readonly #known = new Map<BackgroundKind, Identity>()

  get kinds(): BackgroundKind[] {
    return [...this.#known.keys()]
  }

  /** Whether a process that has the title of a kind may be that one: it is, or nobody else is. */
  mayBe(kind: BackgroundKind, { pid, startTicks }: Identity): boolean {
    const known = this.#known.get(kind)
    return known === undefined || (known.pid === pid && known.startTicks === startTicks)
  }

  take(kind: BackgroundKind, { pid, startTicks }: Identity): void {
    this.#known.set(kind, { pid, startTicks })
  }

  /**
   * Drops those that have ended, and answers their pids. `startTicksOf` is null where no process has the pid; where another
   * one has it by now, the place of the kind is free all the same.
   */
  dropEnded(startTicksOf: (pid: number) => number | null): number[] {
    const ended: number[] = []
    for (const [kind, { pid, startTicks }] of this.#known) {
      if (startTicksOf(pid) === startTicks) continue
      this.#known.delete(kind)
      ended.push(pid)
    }
    return ended
  }

  clear(): void {
    this.#known.clear()
  }
}

/** Which of them a title names; a cluster_name stands before it. */
export function backgroundKind(title: string): BackgroundKind | null {
  const [, rest] = /^postgres: (.*)$/.exec(title.trimEnd()) ?? []
  if (rest === undefined) return null
  for (const [kind, pattern] of Object.entries(titles) as [BackgroundKind, RegExp][])
    if (pattern.test(rest) || pattern.test(rest.replace(/^.*: /, ''))) return kind
  return null
}
