import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Fault, fault, LOOPBACK } from '@floe/domain'
import { z } from 'zod'
import type { ClusterDetail } from '../../command/find-cluster'
import { type ConsoleClient, createConsoleClient } from '../../console/client'
import { checkoutDirectory, homeAt, requireInstallation } from '../../installation/home'
import { runProgram } from '../../run-program'
import { PsqlSession } from '../psql-session'
import { type Configuration, wordsFor } from './configurations'
import { HostsInNamespaces, type NamespaceHost } from './hosts-in-namespaces'
import { LEDGER } from './ledger'
import type { Story } from './story'
import { WITNESSED } from './witness'

const WEB_PORT = 3000
/** How long a verb may take before a person ends it. */
const VERB_MS = 180_000

const Refused = z.object({ fault: Fault })

/** How a verb ended: what it printed as JSON, or the fault that it named. */
export type Answer = { ok: boolean; value: unknown; fault: Fault | null; words: string }

export const CLUSTER = 'chaos'

/** A console and hosts, each on a network of its own, with one cluster that has a member on every host. */
export class InstallationOnHosts {
  readonly net: HostsInNamespaces
  readonly console: NamespaceHost
  readonly hosts: NamespaceHost[]
  /** Where the ledger's clients are. */
  readonly clients: NamespaceHost
  /** Where the witness is; nothing cuts it off. */
  readonly witness: NamespaceHost
  readonly #story: Story
  #password = ''
  #prefix = ''
  #client: ConsoleClient | undefined
  #uri = ''
  #connections = new Map<string, { host: string; port: number }>()

  constructor(hosts: number, story: Story) {
    this.#story = story
    this.net = new HostsInNamespaces()
    this.console = this.net.add('console')
    this.hosts = Array.from({ length: hosts }, (_, i) => this.net.add(`h${i + 1}`, { disk: true }))
    this.clients = this.net.add('clients')
    this.witness = this.net.add('witness')
  }

  get members(): string[] {
    return this.hosts.map((_, i) => (i === 0 ? CLUSTER : `${CLUSTER}-${i + 1}`))
  }

  /** Brings up the console, enrols the hosts as a person would, and makes the cluster. */
  async bringUp(say: (line: string) => void): Promise<void> {
    say('bringing up the console')
    const { address } = this.console
    await this.must(this.console, ['up', '--listen', address, '--host-address', address])
    for (const host of this.hosts) {
      say(`enrolling host ${host.name}`)
      const added = (await this.must(this.console, ['host', 'add', host.name])) as Record<string, string>
      const words = ['agent', 'enrol', '--console', `http://${address}:${WEB_PORT}`, '--token', '-']
      const input = `${added.token}\n`
      await this.must(host, [...words, '--authority', added.authority as string], input)
    }
    this.#prefix = requireInstallation(homeAt(this.console.home)).enginePrefix
    const [first, ...others] = this.hosts as [NamespaceHost, ...NamespaceHost[]]
    say('creating the cluster')
    const made = (await this.must(this.console, ['instance', 'create', CLUSTER, '--host', first.name])) as {
      password: string
    }
    this.#password = made.password
    for (const [i, host] of others.entries()) {
      say(`creating a standby on ${host.name}`)
      const name = this.members[i + 1] as string
      await this.must(this.console, ['standby', 'create', CLUSTER, name, '--host', host.name])
    }
    await this.show()
    const uri = this.#memberUri(CLUSTER)
    const session = new PsqlSession(this.#psql(this.witness), uri, this.#password)
    await session.run(
      `create table ${LEDGER} (round int, client int, n int, primary key (round, client, n));
create table ${WITNESSED} (at timestamptz default clock_timestamp())`,
    )
    session.end()
  }

  remove(): void {
    this.net.remove()
  }

  /** Runs `./floe … --json` on a host and tells the story of it. */
  async floe(host: NamespaceHost, words: readonly string[], input?: string): Promise<Answer> {
    const began = performance.now()
    const [file, ...args] = [...host.command, join(checkoutDirectory(), 'floe'), ...words, '--json']
    const { status, stdout, tail } = await runProgram(file as string, args, {
      env: { ...process.env, FLOE_HOME: host.home, FLOE_LOG: undefined, FLOE_STARTED: undefined },
      input,
      signal: AbortSignal.timeout(VERB_MS),
      // a Ctrl-C is for the benchmark, which takes everything away
      detached: true,
    })
    let value: unknown = null
    try {
      value = JSON.parse(stdout)
    } catch {
      // it was ended, or said nothing
    }
    const refused = Refused.safeParse(value)
    const said = refused.success ? refused.data.fault : null
    const answer = {
      ok: status === 0,
      value,
      fault: said,
      words: said
        ? [said.message, said.detail && `DETAIL: ${said.detail}`, said.hint && `HINT: ${said.hint}`]
            .filter(Boolean)
            .join(' ')
        : status === 0
          ? ''
          : tail.slice(-4).join(' / '),
    }
    const took = `${((performance.now() - began) / 1000).toFixed(1)} s`
    this.#story.tell(`${host.name}$ ./floe ${words.join(' ')} → ${answer.ok ? 'done' : 'refused'} in ${took}`)
    if (!answer.ok) this.#story.tell(`  ${answer.words}`)
    return answer
  }

  async must(host: NamespaceHost, words: readonly string[], input?: string): Promise<unknown> {
    const { ok, value, words: said } = await this.floe(host, words, input)
    if (!ok) throw fault('bench.floe_failed', `"floe ${words.join(' ')}" failed`, { detail: said })
    return value
  }

  /** What a person types on the console's machine. */
  verb(...words: string[]): Promise<Answer> {
    return this.floe(this.console, words)
  }

  async configure(configuration: Configuration, primary: string): Promise<Answer> {
    const standbys = this.members.filter((m) => m !== primary)
    return this.verb('cluster', 'synchronous', CLUSTER, ...wordsFor(configuration, standbys))
  }

  #api(): ConsoleClient {
    this.#client ??= createConsoleClient(
      homeAt(this.console.home),
      requireInstallation(homeAt(this.console.home)),
    )
    return this.#client
  }

  /** The console was restored, and its token with it. */
  forgetClient(): void {
    this.#client = undefined
  }

  /** The cluster as the console shows it. */
  async show(): Promise<ClusterDetail> {
    const detail = await this.#api().trpc.cluster.show.query({ name: CLUSTER as never })
    this.#uri = detail.connections?.primary.uri ?? this.#uri
    for (const { name, connection } of detail.cluster.members)
      if (connection && connection.host !== LOOPBACK) this.#connections.set(name, connection)
    return detail
  }

  async incidents() {
    return (await this.#api().trpc.incident.list.query({ state: 'open', limit: 100 })).incidents
  }

  hostOf(member: string): NamespaceHost {
    const host = this.hosts[this.members.indexOf(member)]
    if (!host) throw fault('bench.no_member', `there is no member "${member}"`)
    return host
  }

  async directoryOf(member: string): Promise<string> {
    const shown = (await this.must(this.console, ['instance', 'show', member])) as { directory: string }
    return shown.directory
  }

  #psql(from: NamespaceHost): string[] {
    return [...from.command, join(this.#prefix, 'bin/psql')]
  }

  #memberUri(member: string): string {
    const at = this.#connections.get(member)
    if (!at) throw fault('bench.no_member', `where member "${member}" is reached is not known`)
    return `postgresql://postgres@${at.host}:${at.port}/postgres`
  }

  /** A client's connection, which finds the primary by itself. */
  connectAsClient = (): PsqlSession => new PsqlSession(this.#psql(this.clients), this.#uri, this.#password)

  connectAsWitness = (member: string): PsqlSession =>
    new PsqlSession(this.#psql(this.witness), this.#memberUri(member), this.#password)

  /** To one member, from where the clients are. */
  connectFromClients = (member: string): PsqlSession =>
    new PsqlSession(this.#psql(this.clients), this.#memberUri(member), this.#password)

  /** A passphrase's file for backups of the console. */
  passphraseFile(): string {
    const file = join(this.net.directory, 'passphrase')
    writeFileSync(file, `${randomBytes(16).toString('hex')}\n`, { mode: 0o600, flag: 'w' })
    return file
  }
}
