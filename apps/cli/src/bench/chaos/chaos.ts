import { currentHome } from '../../installation/home'
import { type BenchReport, describeHost, figure } from '../bench'
import type { RoundsAsked } from '../product-benches'
import { median } from '../windows'
import { configurationInWords, configurations } from './configurations'
import { type ChaosFault, faults } from './faults'
import { InstallationOnHosts } from './installation-on-hosts'
import { plan } from './plan'
import { type Kept, playRound, type RoundResult } from './round'
import { Story } from './story'

const ROUNDS = 60
const ROUNDS_SHORT = 8
const HOSTS = 3
const SEED = 1
/** What a person bears: they have to see it, and type. */
const GAP_MEDIAN_MS = 30_000
/** A host that is silent is found so after seconds, and a primary that is gone is told after ten more. */
const GAP_BOUNDED_MS = 60_000

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0)

/** Takes everything away when the person gives up: Ctrl-C, a closed terminal. */
export function untilInterrupted(remove: () => void): () => void {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const end = () => {
    process.stderr.write('floe: taking away hosts, disks and processes\n')
    remove()
    process.exit(130)
  }
  for (const signal of signals) process.once(signal, end)
  return () => {
    for (const signal of signals) process.off(signal, end)
  }
}

/** Faults that this machine can have, and why it cannot have the others. */
export function possibleFaults(
  all: readonly ChaosFault[],
  only: readonly string[] = [],
): { possible: ChaosFault[]; left: string[] } {
  const wanted = only.length === 0 ? all : all.filter((f) => only.includes(f.id))
  const left = wanted.flatMap((f) => {
    const why = f.missing?.()
    return why ? [`${f.id}: ${why}`] : []
  })
  return { possible: wanted.filter((f) => !f.missing?.()), left }
}

/**
 * Rounds of a fault in a configuration, each from a whole cluster to a whole one: what a person does by the product, what the
 * product says, and whether every row that was acknowledged is there unless that was said.
 */
export async function benchChaos(
  short: boolean,
  say: (line: string) => void,
  _log: (line: string) => void,
  asked: RoundsAsked = {},
): Promise<BenchReport> {
  const host = describeHost()
  const seed = asked.seed ?? SEED
  const rounds = asked.rounds ?? (short ? ROUNDS_SHORT : ROUNDS)
  const { possible, left } = possibleFaults(faults, asked.faults)
  const planned = plan(seed, rounds, possible, configurations)
  const story = new Story(currentHome().log, 'chaos')
  say(`seed ${seed}, ${rounds} rounds, ${possible.length} faults; the story of each round: ${story.file}`)
  for (const why of left) say(`left out: ${why}`)

  const results: RoundResult[] = []
  const broken: string[] = []
  let on: InstallationOnHosts | null = null
  const restore = untilInterrupted(() => on?.remove())
  const kept: Kept = new Map()
  try {
    for (const [i, one] of planned.entries()) {
      if (on === null) {
        kept.clear()
        story.begin('a new installation')
        on = new InstallationOnHosts(asked.hosts ?? HOSTS, story)
        await on.bringUp(say)
      }
      const what = `round ${i + 1} of ${rounds}: ${one.fault.id}, ${configurationInWords(one.configuration)}`
      let whole = false
      try {
        const result = await playRound(on, story, kept, { round: i + 1, ...one })
        results.push(result)
        whole = result.missing === null
        say(
          `${what}: ${result.acknowledged} acknowledged, ${result.lost} lost, gap ${Math.round(result.gapMs)} ms${result.failures.length > 0 ? ': FAILED' : ''}`,
        )
        if (result.failures.length > 0) for (const line of story.lines) say(line)
      } catch (error) {
        const words = error instanceof Error ? error.message : String(error)
        story.tell(`BROKEN OFF: ${words}`)
        broken.push(`round ${i + 1} (${one.fault.id}): ${words}`)
        say(`${what}: broken off: ${words}`)
        for (const line of story.lines) say(line)
      }
      if (!whole) {
        // the next round begins with a whole cluster, and with nothing of this one
        on.remove()
        on = null
      }
    }
  } finally {
    restore()
    on?.remove()
  }
  return report({ host, results, broken, rounds, seed, left, story })
}

function report(of: {
  host: Record<string, unknown>
  results: RoundResult[]
  broken: string[]
  rounds: number
  seed: number
  left: string[]
  story: Story
}): BenchReport {
  const { results, rounds } = of
  const gaps = results.map((r) => r.gapMs)
  const bounded = results.filter((r) => r.bounded).map((r) => r.gapMs)
  return {
    bench: 'chaos',
    host: of.host,
    figures: [
      figure('rounds', results.length, '', { least: rounds }),
      figure('acked', sum(results.map((r) => r.acknowledged)), 'rows', { least: results.length * 100 }),
      figure('lost_without_saying', sum(results.map((r) => r.unsaid)), 'rows', { most: 0 }),
      figure('two_primaries_accepting', sum(results.map((r) => r.twoPrimaries.length)), '', { most: 0 }),
      figure('no_primary_unsaid', sum(results.map((r) => r.noPrimaryUnsaid.length)), '', { most: 0 }),
      figure('not_whole', results.filter((r) => r.missing !== null).length + of.broken.length, 'rounds', {
        most: 0,
      }),
      figure('gap_ms_median', gaps.length > 0 ? median(gaps) : Number.NaN, 'ms', { most: GAP_MEDIAN_MS }),
      ...(bounded.length > 0
        ? [figure('gap_ms_worst_bounded', Math.max(...bounded), 'ms', { most: GAP_BOUNDED_MS })]
        : []),
    ],
    table: {
      headings: ['round', 'fault', 'commits', 'acked', 'lost', 'unsaid', 'gap ms', 'failed'],
      rows: results.map((r) => [
        r.round,
        r.fault,
        configurationInWords(r.configuration),
        r.acknowledged,
        r.lost,
        r.unsaid,
        Math.round(r.gapMs),
        r.failures.join('; ') || ' ',
      ]),
    },
    detail: {
      seed: of.seed,
      story: of.story.file,
      'rows lost that the product had said': sum(results.map((r) => r.lost - r.unsaid)),
      'moments with two primaries that the product had said': sum(
        results.map((r) => r.twoPrimariesSaid.length),
      ),
      ...(of.left.length > 0 ? { 'left out': of.left.join('; ') } : {}),
      ...(of.broken.length > 0 ? { 'broken off': of.broken.join('; ') } : {}),
    },
  }
}
