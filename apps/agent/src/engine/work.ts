/** What longer work on an instance is given by who ordered it: the parts of a task's context that the engine's rooms need. */
export type Work = {
  /** Aborted when somebody asked to give up. */
  signal: AbortSignal
  /** A line for people who watch the operation. */
  log: (text: string) => void
  /** Bytes done so far and of how many, null where that cannot be known: sets the progress too. */
  worked: (doneBytes: number, totalBytes: number | null) => void
}
