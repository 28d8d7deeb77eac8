import { currentHome } from '../../installation/home'
import { type BenchReport, describeHost, figure } from '../bench'
import type { RoundsAsked } from '../product-benches'
import { median } from '../windows'
import { type Configuration, configurations, formatConfiguration } from './configurations'
import { disturbances } from './disturbances'
import { type ChaosFault, faults, possibleFaults } from './faults'
import { CLUSTER, type InstallationOnHosts } from './installation-on-hosts'
import { plan } from './plan'
import { type Kept, playRound, type RoundResult } from './round'
import { playAll } from './rounds'
import { Story } from './story'

const ROUNDS = 40
const ROUNDS_SHORT = 4
const SEED = 1
/** With the product's own time to wait before it decides. */
const GAP_MEDIAN_MS = 10_000
const GAP_WORST_MS = 20_000
/** Clients of such a cluster give a statement up soon: of a paused host nobody tells them. */
const STATEMENT_MS = 3_000
/** A fault that nobody fails over from ends at last. */
const GONE_MS = 90_000

/** The primary's host, or its engine, is gone: the cluster has to get another primary by itself. */
const gone = [
  'postmaster-killed',
  'engine-paused',
  'host-paused',
  'host-off',
  'primary-alone',
  'nothing-leaves-primary',
  'nothing-reaches-primary',
]
/** Something is wrong, and the primary serves: nothing may happen to it. */
const harmless = [
  ...disturbances.map((d) => d.id),
  'agent-paused',
  'standby-killed',
  'standby-paused',
  'other-standby-silent',
  'primary-without-console',
  'clients-without-primary',
  'console-paused',
  'packets-lost-at-primary',
  'packets-lost-everywhere',
  'candidate-disk-full',
  'clock-ahead',
  'clock-behind',
]

const named = (ids: readonly string[]): ChaosFault[] =>
  ids.map((id) => {
    const found = [...faults, ...disturbances].find((f) => f.id === id)
    if (!found) throw new Error(`there is no fault "${id}"`)
    return found
  })

/** Those that go with automatic failover: a strict set, and a level that waits for standbys. */
const strict = configurations.filter(
  (c) => c.method === 'any' && c.strict && c.commitMode !== 'local' && c.commitMode !== 'off',
)

async function automatic(on: InstallationOnHosts, configuration: Configuration, primary: string) {
  // a set is changed while nothing is decided about it
  await on.verb('cluster', 'automatic', CLUSTER, 'off')
  const configured = await on.configure(configuration, primary)
  if (!configured.ok) return configured
  return on.verb('cluster', 'automatic', CLUSTER, 'on', '--interval', '0')
}

/** Loses the primary of a cluster that fails over by itself, and disturbs it where it must not. Nobody helps. */
export async function benchFailoverAutomatic(
  short: boolean,
  say: (line: string) => void,
  _log: (line: string) => void,
  asked: RoundsAsked = {},
): Promise<BenchReport> {
  const host = describeHost()
  const seed = asked.seed ?? SEED
  const each = asked.rounds ?? (short ? ROUNDS_SHORT : ROUNDS)
  const story = new Story(currentHome().log, 'failover-automatic')
  const of = (ids: readonly string[]) => possibleFaults(named(ids), asked.faults)
  const [lost, disturbed] = [of(gone), of(harmless)]
  say(`seed ${seed}, ${each} losses and ${each} disturbances; the story of each round: ${story.file}`)
  const alone = (fault: ChaosFault): ChaosFault => ({ ...fault, person: 'waits', begins: undefined })
  const losses = lost.possible.map((f) => ({
    ...alone(f),
    healsWhen: 'clients write' as const,
    lastsMs: GONE_MS,
  }))
  const planned = [
    ...(losses.length > 0 ? plan(seed, each, losses, strict) : []),
    ...(disturbed.possible.length > 0 ? plan(seed + 1, each, disturbed.possible.map(alone), strict) : []),
  ]
  const { results, broken } = await playAll(planned, {
    story,
    say,
    hosts: asked.hosts,
    title: ({ fault, configuration }) => `${fault.id}, ${formatConfiguration(configuration)}`,
    play: (on: InstallationOnHosts, kept: Kept, round, one) =>
      playRound(on, story, kept, { round, ...one, configure: automatic, statementMs: STATEMENT_MS }),
  })
  const wasLost = (r: RoundResult) => gone.includes(r.fault)
  // also those in which a crashed primary was started again, which is its own way back, and those that nobody ended
  const losing = results.filter(wasLost)
  const gaps = losing.map((r) => r.gapMs)
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0)
  return {
    bench: 'failover-automatic',
    host,
    figures: [
      figure('auto_rounds', losing.length, '', { least: losses.length > 0 ? each : 0 }),
      figure('auto_acked_rows_lost', sum(results.map((r) => r.lost)), 'rows', { most: 0 }),
      ...(gaps.length > 0
        ? [
            figure('auto_gap_ms_median', median(gaps), 'ms', { most: GAP_MEDIAN_MS }),
            figure('auto_gap_ms_worst', Math.max(...gaps), 'ms', { most: GAP_WORST_MS }),
          ]
        : []),
      figure(
        'false_failovers',
        sum(results.filter((r) => !wasLost(r)).map((r) => r.automaticFailovers)),
        '',
        { most: 0 },
      ),
      figure('two_primaries_accepting', sum(results.map((r) => r.twoPrimaries.length)), '', { most: 0 }),
      figure('not_whole', results.filter((r) => r.missing !== null).length + broken.length, 'rounds', {
        most: 0,
      }),
    ],
    table: {
      headings: ['round', 'fault', 'commits', 'acked', 'lost', 'failovers', 'gap ms', 'failed'],
      rows: results.map((r) => [
        r.round,
        r.fault,
        formatConfiguration(r.configuration),
        r.acknowledged,
        r.lost,
        r.automaticFailovers,
        Math.round(r.gapMs),
        r.failures.join('; ') || ' ',
      ]),
    },
    detail: {
      seed,
      story: story.file,
      failovers: losing.filter((r) => r.automaticFailovers > 0).length,
      disturbances: results.filter((r) => !wasLost(r)).length,
      ...(broken.length > 0 ? { 'broken off': broken.join('; ') } : {}),
    },
  }
}
