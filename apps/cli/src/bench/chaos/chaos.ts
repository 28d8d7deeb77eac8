import { currentHome } from '../../installation/home'
import { type BenchReport, describeHost, figure } from '../bench'
import type { RoundsAsked } from '../product-benches'
import { median } from '../windows'
import { configurations, formatConfiguration } from './configurations'
import { faults, possibleFaults } from './faults'
import { plan } from './plan'
import { playRound, type RoundResult } from './round'
import { playAll } from './rounds'
import { Story } from './story'

const ROUNDS = 60
const ROUNDS_SHORT = 8
const SEED = 1
/** What a person bears: they have to see it, and type. */
const GAP_MEDIAN_MS = 30_000
/** A host that is silent is found so after seconds, and a primary that is gone is told after ten more. */
const GAP_BOUNDED_MS = 60_000

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0)

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

  const { results, broken } = await playAll(planned, {
    story,
    say,
    hosts: asked.hosts,
    title: ({ fault, configuration }) => `${fault.id}, ${formatConfiguration(configuration)}`,
    play: (on, kept, round, one) => playRound(on, story, kept, { round, ...one }),
  })
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
        formatConfiguration(r.configuration),
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
