import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { identify } from '@floe/host/process'
import { checkoutDirectory } from '../../installation/home'
import { programs } from '../../process/records'
import { programEnvironment } from '../../supervise/spawn'
import type { NamespaceHost } from './hosts-in-namespaces'
import type { InstallationOnHosts } from './installation-on-hosts'
import { pause } from './ledger'

/** Who is who when a fault begins. */
export type Stage = {
  on: InstallationOnHosts
  /** Name and host of the primary, of the standby that a switchover goes to, and of another one. */
  primary: { name: string; host: NamespaceHost }
  candidate: { name: string; host: NamespaceHost }
  other: { name: string; host: NamespaceHost }
  tell: (line: string) => void
}

export type ChaosFault = {
  id: string
  /** What happens, as the story tells it. */
  words: string
  /** What a person does about it, or was about to do. */
  person: 'waits' | 'switches over' | 'fails over'
  /** When it begins: before the person acts, or while the product carries that out. */
  begins?: 'during the operation'
  /** A person who goes there finds that the primary's host cannot be reached. */
  hostGone?: boolean
  /** The product alone can end the pause of clients; else it lasts as long as the fault may. */
  bounded: boolean
  /** How long it lasts at most when nobody heals it earlier. */
  lastsMs: number
  /** How long it lasts at least, also where the person has done what there was to do; 3 s where it is left out. */
  leastMs?: number
  /** It counts as healed as soon as clients write again, for whatever reason. */
  healsWhen?: 'clients write'
  /** The console is away itself, or nothing but the clients' way is broken: it cannot say that they have no primary. */
  consoleCannotKnow?: boolean
  /** Why it cannot be had on this machine; null where it can. */
  missing?: () => string | null
  inject(stage: Stage): Promise<void>
  heal(stage: Stage): Promise<void>
}

const both = (...addresses: string[]) =>
  addresses.flatMap((of) => [
    { of, direction: 'in' as const },
    { of, direction: 'out' as const },
  ])

/** All that a host talks to but the witness. */
const everybody = ({ on }: Stage) => [on.console, ...on.hosts, on.clients].map((h) => h.address)

const standbysOf = ({ on, primary }: Stage) =>
  on.hosts.filter((h) => h !== primary.host).map((h) => h.address)

/** Takes every loss of packets away. */
const joinAgain = async ({ on }: Stage) => {
  for (const host of [...on.hosts, on.console, on.clients]) host.lose([])
}

const pausing = (host: (stage: Stage) => NamespaceHost): Pick<ChaosFault, 'inject' | 'heal'> => ({
  inject: async (stage) => host(stage).pause(),
  heal: async (stage) => host(stage).resume(),
})

const cutting = (addresses: (stage: Stage) => string[]): Pick<ChaosFault, 'inject' | 'heal'> => ({
  inject: async (stage) => stage.primary.host.lose(both(...addresses(stage))),
  heal: joinAgain,
})

const losing = (
  percent: number,
  hosts: (stage: Stage) => NamespaceHost[],
): Pick<ChaosFault, 'inject' | 'heal'> => ({
  inject: async (stage) => {
    for (const host of hosts(stage))
      host.lose(
        everybody(stage)
          .filter((of) => of !== host.address)
          .map((of) => ({ of, direction: 'in' as const, percent })),
      )
  },
  heal: joinAgain,
})

const hanging = (host: (stage: Stage) => NamespaceHost): Pick<ChaosFault, 'inject' | 'heal'> => ({
  inject: async (stage) => host(stage).freeze(),
  heal: async (stage) => host(stage).thaw(),
})

const filling = (host: (stage: Stage) => NamespaceHost): Pick<ChaosFault, 'inject' | 'heal'> => ({
  inject: async (stage) => host(stage).fillDisk(),
  heal: async (stage) => host(stage).emptyDisk(),
})

/** The postmaster of the only instance on a host: of all engines the one whose parent is none of them. */
function postmasterOf(host: NamespaceHost): number {
  const all = host.pidsOf('postgres')
  const parent = (pid: number) => {
    const { stdout } = spawnSync('ps', ['-o', 'ppid=', '-p', String(pid)], { encoding: 'utf8' })
    return Number(stdout.trim())
  }
  const pid = all.find((p) => !all.includes(parent(p)))
  if (pid === undefined) throw fault('chaos.no_postmaster', `no engine runs on host "${host.name}"`)
  return pid
}

const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'
const clockMissing = () =>
  existsSync(FAKETIME) ? null : 'a clock of its own needs libfaketime (package libfaketime)'

/**
 * The agent of the primary's host comes up with a clock that is wrong. Its engine's clock stays right: a kernel has one
 * CLOCK_REALTIME for all namespaces, and an engine takes nothing of the agent's environment.
 */
const clock = (shift: string): Pick<ChaosFault, 'inject' | 'heal' | 'missing'> => ({
  missing: clockMissing,
  inject: async ({ on, primary: { host } }) => {
    await on.floe(host, ['agent', 'stop'])
    const { options, entry } = programs.agent
    const environment = {
      ...programEnvironment(host.home, 'agent'),
      LD_PRELOAD: FAKETIME,
      FAKETIME: shift,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }
    const child = host.start([process.execPath, ...options, join(checkoutDirectory(), entry)], {
      cwd: host.home,
      env: environment,
      detached: true,
      stdio: 'ignore',
    })
    child.unref()
    if (child.pid === undefined || identify(child.pid) === null)
      throw fault('chaos.agent_not_started', `the agent of host "${host.name}" did not start`)
  },
  heal: async ({ on, primary: { host } }) => {
    host.signal('SIGTERM', host.pidsOfApp('agent'))
    for (let i = 0; i < 100 && host.pidsOfApp('agent').length > 0; i++) await pause(100)
    await on.floe(host, ['agent', 'start'])
  },
})

/** Every fault of the benchmark. */
export const faults: readonly ChaosFault[] = [
  {
    id: 'postmaster-killed',
    words: 'the postmaster of the primary is killed (SIGKILL)',
    person: 'waits',
    bounded: true,
    lastsMs: 1_000,
    inject: async ({ primary: { host } }) => void host.signal('SIGKILL', [postmasterOf(host)]),
    heal: async () => {},
  },
  {
    id: 'engine-paused',
    words: 'every process of the primary is stopped (SIGSTOP); its agent is well',
    person: 'fails over',
    bounded: false,
    lastsMs: 45_000,
    inject: async ({ primary: { host } }) => void host.signal('SIGSTOP', host.pidsOf('postgres')),
    heal: async ({ primary: { host } }) => void host.signal('SIGCONT', host.pidsOf('postgres')),
  },
  {
    id: 'agent-paused',
    words: 'the agent of the primary’s host is stopped (SIGSTOP); its engine is well',
    person: 'switches over',
    bounded: false,
    lastsMs: 20_000,
    inject: async ({ primary: { host } }) => void host.signal('SIGSTOP', host.pidsOfApp('agent')),
    heal: async ({ primary: { host } }) => void host.signal('SIGCONT', host.pidsOfApp('agent')),
  },
  {
    id: 'agent-killed-in-switchover',
    words: 'the agent of the primary’s host is killed in the middle of a switchover',
    person: 'switches over',
    begins: 'during the operation',
    bounded: true,
    lastsMs: 3_000,
    inject: async ({ primary: { host } }) => void host.signal('SIGKILL', host.pidsOfApp('agent')),
    heal: async () => {},
  },
  {
    id: 'host-paused',
    words: 'the whole host of the primary is paused, and comes back',
    person: 'fails over',
    hostGone: true,
    bounded: false,
    lastsMs: 45_000,
    ...pausing((s) => s.primary.host),
  },
  {
    id: 'host-off',
    words: 'the primary’s host loses its power, and boots later',
    person: 'fails over',
    hostGone: true,
    bounded: false,
    lastsMs: 45_000,
    inject: async ({ on, primary: { host } }) => {
      // of a host without power nobody is told that its connections ended
      host.lose(both(...[...on.hosts, on.console, on.clients, on.witness].map((h) => h.address)))
      host.powerOff()
    },
    heal: async ({ on, primary: { host } }) => {
      host.lose([])
      await on.floe(host, ['agent', 'start'])
    },
  },
  {
    id: 'standby-killed',
    words: 'the postmaster of a standby is killed (SIGKILL)',
    person: 'waits',
    bounded: true,
    lastsMs: 1_000,
    inject: async ({ candidate: { host } }) => void host.signal('SIGKILL', [postmasterOf(host)]),
    heal: async () => {},
  },
  {
    id: 'standby-paused',
    words: 'the whole host of a standby is paused, and comes back',
    person: 'waits',
    bounded: false,
    lastsMs: 20_000,
    ...pausing((s) => s.other.host),
  },
  {
    id: 'console-paused',
    words: 'the whole console is paused, and comes back',
    person: 'waits',
    consoleCannotKnow: true,
    bounded: true,
    lastsMs: 20_000,
    ...pausing((s) => s.on.console),
  },
  {
    id: 'candidate-paused-in-switchover',
    words: 'the candidate’s whole host is paused in the middle of a switchover',
    person: 'switches over',
    begins: 'during the operation',
    bounded: false,
    lastsMs: 30_000,
    ...pausing((s) => s.candidate.host),
  },
  {
    id: 'console-paused-in-switchover',
    words: 'the whole console is paused in the middle of a switchover',
    person: 'switches over',
    begins: 'during the operation',
    consoleCannotKnow: true,
    bounded: false,
    lastsMs: 15_000,
    ...pausing((s) => s.on.console),
  },
  {
    id: 'primary-without-console',
    words: 'packets between the primary’s host and the console are lost',
    person: 'fails over',
    bounded: false,
    leastMs: 20_000,
    lastsMs: 30_000,
    ...cutting((s) => [s.on.console.address]),
  },
  {
    id: 'primary-without-standbys',
    words: 'packets between the primary’s host and the standbys’ are lost',
    person: 'switches over',
    bounded: false,
    leastMs: 20_000,
    lastsMs: 30_000,
    ...cutting(standbysOf),
  },
  {
    id: 'primary-alone',
    words: 'the primary’s host is cut off from everything',
    person: 'fails over',
    hostGone: true,
    bounded: false,
    lastsMs: 45_000,
    ...cutting(everybody),
  },
  {
    id: 'primary-with-clients-only',
    words: 'the primary’s host reaches its clients and nobody else',
    person: 'fails over',
    hostGone: true,
    bounded: false,
    lastsMs: 45_000,
    ...cutting((s) => [s.on.console.address, ...standbysOf(s)]),
  },
  {
    id: 'clients-without-primary',
    words: 'packets between the clients and the primary’s host are lost; all else is well',
    person: 'switches over',
    consoleCannotKnow: true,
    bounded: true,
    leastMs: 8_000,
    lastsMs: 20_000,
    ...cutting((s) => [s.on.clients.address]),
  },
  {
    id: 'nothing-reaches-primary',
    words: 'what is sent to the primary’s host is lost; what it sends arrives',
    person: 'fails over',
    hostGone: true,
    bounded: false,
    lastsMs: 45_000,
    inject: async (stage) =>
      stage.primary.host.lose(everybody(stage).map((of) => ({ of, direction: 'in' as const }))),
    heal: joinAgain,
  },
  {
    id: 'nothing-leaves-primary',
    words: 'what the primary’s host sends is lost; what is sent to it arrives',
    person: 'fails over',
    hostGone: true,
    bounded: false,
    lastsMs: 45_000,
    inject: async (stage) =>
      stage.primary.host.lose(everybody(stage).map((of) => ({ of, direction: 'out' as const }))),
    heal: joinAgain,
  },
  {
    id: 'other-standby-silent',
    words: 'packets of the other standby’s host are lost; a switchover goes to the one that is well',
    person: 'switches over',
    bounded: true,
    lastsMs: 40_000,
    inject: async (stage) =>
      stage.other.host.lose(both(...everybody(stage).filter((a) => a !== stage.other.host.address))),
    heal: joinAgain,
  },
  {
    id: 'packets-lost-at-primary',
    words: '20 % of the packets to the primary’s host are lost',
    person: 'switches over',
    bounded: false,
    leastMs: 8_000,
    lastsMs: 30_000,
    ...losing(20, (s) => [s.primary.host]),
  },
  {
    id: 'packets-lost-everywhere',
    words: '10 % of the packets to every host are lost',
    person: 'switches over',
    bounded: false,
    leastMs: 8_000,
    lastsMs: 30_000,
    ...losing(10, (s) => s.on.hosts),
  },
  {
    id: 'pid-file-removed',
    words: 'postmaster.pid is removed while the primary serves',
    person: 'fails over',
    bounded: true,
    lastsMs: 20_000,
    inject: async ({ on, primary: { name } }) =>
      rmSync(join(await on.directoryOf(name), 'pgdata/postmaster.pid')),
    heal: async () => {},
  },
  {
    id: 'console-restored',
    words: 'the console is restored from a backup of before the last switchover',
    person: 'waits',
    consoleCannotKnow: true,
    bounded: false,
    lastsMs: 1_000,
    inject: async ({ on, candidate, tell }) => {
      const passphrase = on.passphraseFile()
      const file = join(on.net.directory, 'console.backup')
      rmSync(file, { force: true })
      await on.must(on.console, ['console', 'backup', file, '--passphrase-file', passphrase])
      await on.verb('cluster', 'switchover', 'chaos', '--to', candidate.name)
      await on.must(on.console, ['down'])
      tell('the console is gone, and is restored')
      await on.must(on.console, ['console', 'restore', file, '--passphrase-file', passphrase, '--replace'])
      on.forgetClient()
    },
    heal: async () => {},
  },
  {
    id: 'primary-disk-full',
    words: 'the disk of the primary’s host is full: engine, WAL and agent',
    person: 'switches over',
    bounded: false,
    leastMs: 15_000,
    lastsMs: 30_000,
    ...filling((s) => s.primary.host),
  },
  {
    id: 'candidate-disk-full',
    words: 'the disk of the candidate’s host is full, and a switchover goes there',
    person: 'switches over',
    bounded: false,
    leastMs: 15_000,
    lastsMs: 30_000,
    ...filling((s) => s.candidate.host),
  },
  {
    id: 'primary-disk-hangs',
    words: 'the disk of the primary’s host takes no write any more, and says nothing',
    person: 'fails over',
    // its agent waits for the disk, too
    hostGone: true,
    bounded: false,
    leastMs: 15_000,
    lastsMs: 40_000,
    ...hanging((s) => s.primary.host),
  },
  {
    id: 'other-disk-hangs',
    words:
      'the disk of the other standby’s host takes no write any more; a switchover goes to the one that is well',
    person: 'switches over',
    bounded: false,
    leastMs: 12_000,
    lastsMs: 30_000,
    ...hanging((s) => s.other.host),
  },
  {
    id: 'clock-ahead',
    words: 'the agent of the primary’s host comes up with a clock of tomorrow',
    person: 'switches over',
    bounded: true,
    lastsMs: 15_000,
    ...clock('+1d'),
  },
  {
    id: 'clock-behind',
    words: 'the agent of the primary’s host comes up with a clock of yesterday',
    person: 'switches over',
    bounded: true,
    lastsMs: 15_000,
    ...clock('-1d'),
  },
]

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
