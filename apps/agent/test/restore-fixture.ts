import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskStatus } from '@floe/agent-contract'
import type { RestoredTable } from '@floe/domain'
import { makeScratchDirectory, waitUntil } from '@floe/testkit'
import pg from 'pg'
import type { AgentFixture } from './agent-fixture'

/** An instance that archives its WAL, base backups of it, and the verbs that tests of restores say. */
export class RestoreFixture {
  readonly f: AgentFixture
  readonly id: string
  readonly scratch: ReturnType<typeof makeScratchDirectory>
  readonly walDirectory: string
  /** Asked once: there is not always an agent to ask. */
  #port = 0

  private constructor(f: AgentFixture, id: string, scratch: ReturnType<typeof makeScratchDirectory>) {
    this.f = f
    this.id = id
    this.scratch = scratch
    this.walDirectory = join(scratch.path, 'wal')
  }

  static async start(f: AgentFixture, settings: Record<string, string> = {}): Promise<RestoreFixture> {
    const scratch = makeScratchDirectory('restore')
    chmodSync(scratch.path, 0o777)
    const wal = join(scratch.path, 'wal')
    mkdirSync(wal)
    chmodSync(wal, 0o777)
    const id = await f.createRunning({
      settings: { archive_mode: 'on', archive_command: `cp %p ${wal}/%f`, ...settings },
    })
    const r = new RestoreFixture(f, id, scratch)
    r.#port = (await f.observed(id))?.port as number
    await r.sql('create database shop', 'postgres')
    return r
  }

  /** A session of the superuser in a database. */
  async session<T>(run: (client: pg.Client) => Promise<T>, database = 'shop', user = 'postgres'): Promise<T> {
    const client = new pg.Client({
      host: '127.0.0.1',
      port: this.#port,
      user,
      password: 'open sesame',
      database,
    })
    client.on('error', () => {})
    await client.connect()
    try {
      return await run(client)
    } finally {
      await client.end()
    }
  }

  async sql<T = Record<string, unknown>>(text: string, database = 'shop', user = 'postgres'): Promise<T[]> {
    return this.session(async (client) => (await client.query(text)).rows as T[], database, user)
  }

  /** A base backup as a person makes it, as the instance's user. */
  async backUp(name: string, ...options: string[]): Promise<string> {
    const directory = join(this.scratch.path, name)
    const r = spawnSync(
      join(this.f.installation.enginePrefix, 'bin/pg_basebackup'),
      [
        '-D',
        directory,
        '-Fp',
        '-Xs',
        '-c',
        'fast',
        '-h',
        '127.0.0.1',
        '-p',
        String(this.#port),
        '-U',
        'postgres',
        ...options,
      ],
      { cwd: '/', env: { PGPASSWORD: 'open sesame' }, encoding: 'utf8', ...this.f.userOf(this.id) },
    )
    if (r.status !== 0) throw new Error(`pg_basebackup: ${r.stderr}`)
    return directory
  }

  /** A moment that lies between what was committed before and what is committed after. */
  async moment(): Promise<string> {
    const [row] = await this.sql<{ at: string }>(
      `select pg_sleep(0.01), to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`,
    )
    await this.sql('select pg_sleep(0.01)')
    return row?.at as string
  }

  /** Everything that was written until now is in the archive. */
  async archived(): Promise<void> {
    const [row] = await this.sql<{ file: string }>(
      'select pg_walfile_name(pg_current_wal_lsn()) as file, pg_switch_wal()',
    )
    await waitUntil('the WAL is archived', () => readdirSync(this.walDirectory).includes(row?.file as string))
  }

  task(o: { at: string; backup: string; table?: string; wal?: string; result?: string }) {
    return {
      kind: 'restore-table',
      instanceId: this.id,
      database: 'shop',
      tableName: o.table ?? 'public.account',
      at: o.at,
      backupDirectory: o.backup,
      walDirectory: o.wal ?? this.walDirectory,
      resultName: o.result ?? null,
    } as never
  }

  async run(o: Parameters<RestoreFixture['task']>[0]): Promise<TaskStatus> {
    return this.f.run(this.task(o))
  }

  async must(o: Parameters<RestoreFixture['task']>[0]): Promise<RestoredTable> {
    const status = await this.run(o)
    if (status.state !== 'succeeded')
      throw new Error(`${JSON.stringify(status.fault)} ${status.log.map((l) => l.text).join('\n')}`)
    return status.result as RestoredTable
  }

  /** Directories of restores that the host has. */
  left(): string[] {
    const { instancesDirectory, socketDirectory } = this.f.installation
    return [join(instancesDirectory, this.id), socketDirectory].flatMap((directory) =>
      readdirSync(directory).filter((name) => name.startsWith('restore-')),
    )
  }

  remove(): void {
    this.scratch.remove()
  }
}
