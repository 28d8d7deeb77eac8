import { lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { alive, type Ended, until } from '../launcher/private-home'
import {
  attempt,
  deliberately,
  findSockets,
  gotIn,
  home,
  it,
  must,
  revive,
  shellAs,
  sql,
  uidOf,
  Vault,
} from './victim'

// Whoever owns an instance waits for the console's administrator: what `up`, `down` and a new agent find in the instance's
// places is something else than they left there.

const vaults: Vault[] = []
afterAll(() => {
  for (const vault of vaults) vault.remove()
})

const q = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
const everything = ['supervisor', 'web', 'controller', 'agent', 'control-database']
const configFile = join(it.homeDirectory, 'config.json')

type Kind = 'pipe' | 'link' | 'directory'
const is: Record<Kind, (path: string) => boolean> = {
  pipe: (path) => lstatSync(path).isFIFO(),
  link: (path) => lstatSync(path).isSymbolicLink(),
  directory: (path) => lstatSync(path).isDirectory(),
}

/** Files of an instance's that its user may swap, and that somebody of Floe's reads, writes or asks for. */
function places(): string[] {
  const data = join(it.alpha.directory, 'pgdata')
  const log = join(it.alpha.directory, 'log')
  const socket = findSockets(it.socketDirectory).find((path) => path.endsWith(`/.s.PGSQL.${it.alpha.port}`))
  if (!socket) throw new Error('alpha has no socket')
  const newestLog = readdirSync(log)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .at(-1)
  return [
    ...['postmaster.pid', 'PG_VERSION', 'postgresql.conf', 'postgresql.auto.conf', 'floe.conf'],
    ...['floe.cluster.conf', 'floe_hba.conf', 'pg_hba.conf', 'floe.tls.conf', 'current_logfiles'],
    ...['global/pg_control', 'standby.signal', 'floe_server.pem'],
  ]
    .map((name) => join(data, name))
    .concat(['start.log', ...(newestLog ? [newestLog] : [])].map((name) => join(log, name)))
    .concat([socket, `${socket}.lock`])
}

/** Puts something of a kind in the place of each file, as the instance's user; answers how to take it back. */
async function plant(kindOf: (path: string) => Kind): Promise<{ safe: Vault; restore: () => Promise<void> }> {
  const paths = places()
  const safe = new Vault(paths.map((path) => basename(path)))
  vaults.push(safe)
  const uid = uidOf(it.alpha)
  const how: Record<Kind, (path: string) => string> = {
    pipe: (path) => `mkfifo ${q(path)}`,
    link: (path) => `ln -s ${q(safe.path(basename(path)))} ${q(path)}`,
    directory: (path) => `mkdir ${q(path)}`,
  }
  const restore = async () => {
    await shellAs(
      uid,
      paths
        .map(
          (path) =>
            `if [ -e ${q(path)}.own ] || [ -e ${q(path)}.none ]; then rm -rf ${q(path)}; rm -f ${q(path)}.none; [ -e ${q(path)}.own ] && mv ${q(path)}.own ${q(path)}; fi`,
        )
        .join('\n'),
    )
  }
  const planted = await shellAs(
    uid,
    `set -e\n${paths
      .map(
        (path) =>
          `if [ -e ${q(path)} ]; then mv ${q(path)} ${q(path)}.own; else touch ${q(path)}.none; fi; ${how[kindOf(path)](path)}`,
      )
      .join('\n')}`,
  )
  expect(planted.status, planted.err).toBe(0)
  for (const path of paths) expect(is[kindOf(path)](path), path).toBe(true)
  return { safe, restore }
}

/** Runs a verb that has to end by itself. */
async function bounded(seconds: number, ...args: string[]): Promise<Ended> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), seconds * 1_000)
  })
  const ran = await Promise.race([home.run(args), late])
  clearTimeout(timer)
  if (ran === null) gotIn(true, `./floe ${args.join(' ')} hangs`)
  return ran as Ended
}

async function betaIsServed(): Promise<void> {
  expect(await must(sql(it.beta, 'select 1'))).toBe('1')
  const { state } = await home.json<{ state: string }>('instance', 'show', 'beta')
  gotIn(state !== 'running', `beta is ${state}`)
}

/** A server that reads a pipe in the place of its own file stands still: it is ended by force and started again. */
async function bringBack(): Promise<void> {
  await bounded(60, 'instance', 'stop', 'alpha', '--mode', 'immediate')
  await revive('alpha')
}

const reasons = /its settings cannot be read: .* is not a regular file|runs without its postmaster\.pid/

/** The new agent's report has come, which the other instances' states come with, and says what is wrong with this one. */
async function isToldOf(): Promise<void> {
  let said = ''
  await until('what is wrong is told', async () => {
    said = (await bounded(25, 'instance', 'show', 'alpha')).stdout
    return reasons.test(said) && !said.includes('stale')
  }).catch(() =>
    gotIn(true, `the host is silent, or the instance is shown as if nothing were wrong: ${said}`),
  )
}

describe('lies in wait for up, down and an update', () => {
  for (const kind of ['pipe', 'link', 'directory'] as const)
    attempt(
      '15, 3',
      `with a ${kind} in the place of each file Floe goes down and comes up again`,
      async () => {
        const { safe, restore } = await plant(() => kind)
        try {
          const agent = await home.pidOf('agent')
          await deliberately(everything, async () => {
            const down = await bounded(60, 'down')
            expect(down.status, down.stderr).toBe(0)
            expect(alive(agent)).toBe(false)
            const up = await bounded(80, 'up')
            gotIn(up.status !== 0, `./floe up failed: ${up.stderr}`)
          })
          await isToldOf()
          await betaIsServed()
          gotIn(safe.changed() !== null, safe.changed() ?? '')
        } finally {
          await restore()
        }
        await bringBack()
      },
    )

  attempt(
    '15, 3',
    'an update takes the agent’s place while files of an instance are something else',
    async () => {
      const kinds: Kind[] = ['pipe', 'link', 'directory']
      const paths = places()
      const { safe, restore } = await plant((path) => kinds[paths.indexOf(path) % kinds.length] as Kind)
      try {
        const agent = await home.pidOf('agent')
        // what runs with another configuration is replaced, as what runs from another build is
        const config = JSON.parse(readFileSync(configFile, 'utf8')) as object
        writeFileSync(
          configFile,
          JSON.stringify({ ...config, webhookAddresses: [it.webhookAddress, '127.0.0.3'] }),
        )
        await deliberately(everything, async () => {
          const up = await bounded(80, 'up')
          gotIn(up.status !== 0, `./floe up failed: ${up.stderr}`)
          expect(up.stderr).toContain('restarting agent')
        })
        expect(await home.pidOf('agent')).not.toBe(agent)
        await isToldOf()
        await betaIsServed()
        gotIn(safe.changed() !== null, safe.changed() ?? '')
      } finally {
        await restore()
      }
      await bringBack()
    },
  )

  attempt(
    '15, 3',
    'an instance with links for files keeps no other from being stopped and started',
    async () => {
      const { safe, restore } = await plant(() => 'link')
      try {
        await deliberately([...everything, 'beta'], async () => {
          const down = await bounded(60, 'down', '--instances', '--json')
          expect(down.status, down.stderr).toBe(0)
          const { instancesStopped } = JSON.parse(down.stdout) as { instancesStopped: string[] }
          expect(instancesStopped.sort()).toEqual(['alpha', 'beta'])
          const up = await bounded(80, 'up')
          gotIn(up.status !== 0, `./floe up failed: ${up.stderr}`)
          const beta = await bounded(60, 'instance', 'start', 'beta')
          expect(beta.status, beta.stderr).toBe(0)
        })
        await betaIsServed()
        const started = await bounded(60, 'instance', 'start', 'alpha')
        expect(started.status).not.toBe(0)
        expect(started.stderr).toMatch(/Its settings cannot be read: .* is not a regular file/)
        gotIn(safe.changed() !== null, safe.changed() ?? '')
      } finally {
        await restore()
      }
      await bringBack()
    },
  )
})
