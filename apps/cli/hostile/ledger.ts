import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** How an attempt ended. `not made`: something else went wrong before it could be judged, which is a failure too. */
export type Outcome = 'held' | 'got in' | 'not made' | 'cannot be tried here'
export type Attempt = {
  /** Numbers of findings of the security review; "neighbour of" one for what lies beside it. */
  finding: string
  guarantee: string
  outcome: Outcome
  detail?: string
}

/**
 * A process that a test itself ended on purpose, by the name that `./floe status` gives it, or `beta`; `pid` is the one that
 * runs in its place, which is looked after from then on, and null where none does yet.
 */
export type Deliberate = { deliberately: string; pid: number | null }
/** An instance that was made, and the uid of its user: of neither may anything be left at the end. */
export type Made = { instance: string; uid: number }
type Line = Attempt | Deliberate | Made

export function note(ledger: string, line: Line): void {
  appendFileSync(ledger, `${JSON.stringify(line)}\n`)
}

const USERS = '/var/lib/floe/users'

/** Notes an instance while it is there: whose uid was whose is forgotten with it. */
export function noteInstance(ledger: string, instance: string): void {
  const claims = readdirSync(USERS)
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(join(USERS, name), 'utf8')) as { instanceId: string; uid: number })
  const uid = claims.find((claim) => claim.instanceId === instance)?.uid
  if (uid === undefined) throw new Error(`instance ${instance} has no user of its own`)
  note(ledger, { instance, uid })
}

export function readLedger(ledger: string): {
  attempts: Attempt[]
  deliberate: Deliberate[]
  made: Made[]
} {
  const lines = existsSync(ledger)
    ? readFileSync(ledger, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Line)
    : []
  return {
    attempts: lines.filter((line): line is Attempt => 'outcome' in line),
    deliberate: lines.filter((line): line is Deliberate => 'deliberately' in line),
    made: lines.filter((line): line is Made => 'instance' in line),
  }
}
