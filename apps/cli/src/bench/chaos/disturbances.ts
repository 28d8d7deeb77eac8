import type { ChaosFault, Stage } from './faults'
import type { NamespaceHost } from './hosts-in-namespaces'

/** As many processes that do nothing but work. */
const LOAD = 10

const everyHost = ({ on }: Stage) => [on.console, ...on.hosts]

/** Starts a shell loop on a host that goes on until `end` ends it. */
function looping(host: NamespaceHost, script: string): { end(): void } {
  const child = host.start(['sh', '-c', script], { detached: true, stdio: 'ignore' })
  child.unref()
  const group = -(child.pid as number)
  return {
    end: () => {
      try {
        process.kill(group, 'SIGKILL')
      } catch {
        // it ended before, with its host
      }
    },
  }
}

/** Loops of the round that is being played. */
const running: { end(): void }[] = []
const endAll = () => {
  for (const loop of running.splice(0)) loop.end()
}

/**
 * What a cluster has to live with, beside those faults that only look like the loss of a primary: `failover-automatic` plays
 * them, and no failover may come of them.
 */
export const disturbances: readonly ChaosFault[] = [
  {
    id: 'machine-loaded',
    words: `${LOAD} processes that only work share the processors of the primary’s host for 30 s`,
    person: 'waits',
    bounded: true,
    leastMs: 30_000,
    lastsMs: 30_000,
    inject: async ({ primary: { host } }) => {
      for (let n = 0; n < LOAD; n++) running.push(looping(host, 'while :; do :; done'))
    },
    heal: async () => endAll(),
  },
  {
    id: 'agents-killed',
    words: 'the agents of all hosts are killed (SIGKILL), and come up again',
    person: 'waits',
    bounded: true,
    leastMs: 20_000,
    lastsMs: 20_000,
    inject: async (stage) => {
      for (const host of everyHost(stage)) host.signal('SIGKILL', host.pidsOfApp('agent'))
    },
    heal: async () => {},
  },
  {
    id: 'controller-paused',
    words: 'the controller is stopped (SIGSTOP) for 20 s, and goes on',
    person: 'waits',
    consoleCannotKnow: true,
    bounded: true,
    leastMs: 20_000,
    lastsMs: 20_000,
    inject: async ({ on }) => void on.console.signal('SIGSTOP', on.console.pidsOfApp('controller')),
    heal: async ({ on }) => void on.console.signal('SIGCONT', on.console.pidsOfApp('controller')),
  },
  {
    id: 'primary-disk-slow',
    words: 'the disk of the primary’s host takes no write for half of each second, for 30 s',
    person: 'waits',
    bounded: true,
    leastMs: 30_000,
    lastsMs: 30_000,
    inject: async ({ primary: { host } }) => {
      running.push(
        looping(
          host,
          `while :; do fsfreeze -f '${host.home}'; sleep 0.5; fsfreeze -u '${host.home}'; sleep 0.5; done`,
        ),
      )
    },
    heal: async ({ primary: { host } }) => {
      endAll()
      host.thaw()
    },
  },
]
