import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/** How an attempt ended. `not made`: something else went wrong before it could be judged, which is a failure too. */
export type Outcome = 'held' | 'got in' | 'not made' | 'cannot be tried here'
export type Attempt = {
  /** Numbers of findings of the security review; "neighbour of" one for what lies beside it. */
  finding: string
  guarantee: string
  outcome: Outcome
  detail?: string
}

/** Processes that a test itself ended on purpose, by the name that `./floe status` gives them. */
export type Deliberate = { deliberately: string }
/** An instance that was made, of which nothing may be left at the end. */
export type Made = { instance: string }
type Line = Attempt | Deliberate | Made

export function note(ledger: string, line: Line): void {
  appendFileSync(ledger, `${JSON.stringify(line)}\n`)
}

export function readLedger(ledger: string): {
  attempts: Attempt[]
  deliberate: string[]
  instances: string[]
} {
  const lines = existsSync(ledger)
    ? readFileSync(ledger, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Line)
    : []
  return {
    attempts: lines.filter((line): line is Attempt => 'outcome' in line),
    deliberate: lines.flatMap((line) => ('deliberately' in line ? [line.deliberately] : [])),
    instances: lines.flatMap((line) => ('instance' in line ? [line.instance] : [])),
  }
}
