import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '@floe/host/wait'
import pg from 'pg'
import { testEnginePrefix, testEngineUser } from './engine'
import { freePorts } from './free-ports'
import { giveTo, makeScratchDirectory } from './scratch-directory'
import { endEnginesBelow } from './throwaway-agent'

export type ThrowawayInstance = {
  directory: string
  dataDirectory: string
  port: number
  /** Superuser `postgres`, trusted at 127.0.0.1. */
  connectionString: string
  connect(): Promise<pg.Client>
  remove(): Promise<void>
}

/** An engine of its own for a test, without an agent: initdb, start, answers SQL. Nothing of it is durable. */
export async function startThrowawayInstance(
  o: { enginePrefix?: string; settings?: Record<string, string> } = {},
): Promise<ThrowawayInstance> {
  const prefix = o.enginePrefix ?? testEnginePrefix()
  const user = testEngineUser()
  const scratch = makeScratchDirectory()
  const directory = join(scratch.path, 'e')
  mkdirSync(directory, { mode: 0o700 })
  giveTo(directory, user)
  const dataDirectory = join(directory, 'pgdata')
  const [port] = (await freePorts(1)) as [number]
  const identity = user.uid === undefined ? {} : { uid: user.uid, gid: user.gid }
  await run(
    join(prefix, 'bin', 'initdb'),
    [
      '-D',
      dataDirectory,
      '-U',
      'postgres',
      '-A',
      'trust',
      '-k',
      '-N',
      '--no-instructions',
      '--locale=C.UTF-8',
      '-E',
      'UTF8',
    ],
    identity,
  )
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: directory,
    fsync: 'off',
    ...o.settings,
  }
  const lines = Object.entries(settings).map(
    ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
  )
  writeFileSync(join(dataDirectory, 'postgresql.auto.conf'), lines.join(''))
  const child = spawn(join(prefix, 'bin', 'postgres'), ['-D', dataDirectory], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
    ...identity,
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-8_192)
  })
  const connectionString = `postgresql://postgres@127.0.0.1:${port}/postgres`
  const connect = async () => {
    const client = new pg.Client({ connectionString })
    client.on('error', () => {})
    await client.connect()
    return client
  }
  await waitUntil('the throw-away instance answers', async () => {
    if (child.exitCode !== null) throw new Error(said)
    await (await connect()).end()
    return true
  })
  return {
    directory,
    dataDirectory,
    port,
    connectionString,
    connect,
    remove: async () => {
      await endEnginesBelow(directory)
      scratch.remove()
    },
  }
}

function run(file: string, args: string[], identity: object): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd: '/', stdio: ['ignore', 'ignore', 'pipe'], ...identity })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    child.once('error', reject)
    child.once('close', (status) => (status === 0 ? resolve() : reject(new Error(`${file}: ${said}`))))
  })
}
