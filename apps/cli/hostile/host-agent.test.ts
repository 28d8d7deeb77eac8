import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { checkout, freePorts, until } from '../launcher/private-home'
import {
  answerOf,
  ask,
  attempt,
  call,
  gotIn,
  home,
  it,
  NOBODY,
  residentBytes,
  run,
  sha256,
  watcher,
} from './victim'

// A host that was enrolled in good faith, and whose root is hostile: it has a certificate, and answers as it likes.

type Answerer = (request: IncomingMessage, response: ServerResponse, paths: string[]) => void

const owner = { token: it.people.owner.token }
const hostHome = mkdtempSync(join(tmpdir(), 'floe-hostile-host-'))
let server: Server | undefined
let answerer: Answerer
let port = 0
let hostId = ''
let asked = 0
let seen = ''

/** Runs what a person types into a shell on the second host. */
function typeThere(line: string): Promise<{ status: number; said: string }> {
  return new Promise((resolve) => {
    const child = spawn('/bin/bash', ['--norc'], {
      cwd: checkout,
      env: { ...home.environment, FLOE_HOME: hostHome },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (text) => {
        said += text
      })
    child.stdin.on('error', () => {})
    child.stdin.end(`${line}\n`)
    child.on('close', (status) => resolve({ status: status ?? 128, said }))
  })
}

/** Looks for a word in the arguments of every process, without having it in its own. */
const onlooker = `
import hashlib, os, re, sys
print("ready", flush=True)
seen = set()
while True:
    for p in os.listdir("/proc"):
        if not p.isdigit(): continue
        try: words = open("/proc/%s/cmdline" % p, "rb").read()
        except OSError: continue
        if words in seen: continue
        seen.add(words)
        for w in re.split(rb"[^\\w-]+", words):
            if hashlib.sha256(w).hexdigest() == sys.argv[1]: print("SEEN in", words.split(b"\\0")[:3], flush=True)`

/** What an honest agent says, asked with the controller’s certificate as its administrator could. */
async function honestly(agentPort: number, path: string, input: unknown): Promise<unknown> {
  const identity = [
    join(it.consoleDirectory, 'controller/secrets/controller.pem'),
    join(it.homeDirectory, 'secrets/controller.pem'),
  ].find(existsSync) as string
  const { out } = await run('curl', [
    ...['-sk', '--max-time', '10', '--cert', identity, '--key', identity],
    `https://127.0.0.1:${agentPort}/trpc/${path}?input=${encodeURIComponent(JSON.stringify({ json: input }))}`,
  ])
  return (JSON.parse(out) as { result: { data: { json: unknown } } }).result.data.json
}

let truth: { hello: unknown; report: Record<string, unknown>; ofTheOther: Record<string, unknown> }

beforeAll(async () => {
  chmodSync(hostHome, 0o755)
  port = await freePorts(6)
  const added = answerOf<{ token: string; command: string; hostId: string }>(
    await call(owner, 'mutation', 'host.add', { name: 'liar' }),
  )
  hostId = added.hostId
  const where = `--listen 127.0.0.1:${port} --instance-ports ${port + 1}-${port + 5}`
  const looking = await watcher(NOBODY, onlooker, sha256(added.token))
  const enrolled = await typeThere(`${added.command} ${where}`)
  seen = await looking.end()
  expect(enrolled.status, enrolled.said).toBe(0)
  await until(
    'the console knows the host',
    async () => (await home.run(['host', 'show', 'liar', '--json'])).stdout.includes('liar'),
    30_000,
  )
  truth = {
    hello: await honestly(port, 'hello', null),
    report: (await honestly(port, 'report.read', { after: null })) as Record<string, unknown>,
    ofTheOther: (await honestly(it.agentPort, 'report.read', { after: null })) as Record<string, unknown>,
  }
  await typeThere('./floe agent stop')
  const identity = readFileSync(join(hostHome, 'secrets/agent.pem'))
  server = createServer(
    { cert: identity, key: identity, requestCert: true, rejectUnauthorized: false, minVersion: 'TLSv1.3' },
    (request, response) => {
      asked++
      const path = (request.url ?? '').replace(/^\/trpc\//, '').split('?')[0] as string
      response.on('error', () => {})
      answerer(request, response, path.split(','))
    },
  )
  server.on('tlsClientError', () => {})
  answerer = honest
  await new Promise<void>((resolve) => server?.listen(port, '127.0.0.1', resolve))
}, 240_000)

afterAll(async () => {
  server?.closeAllConnections()
  server?.close()
  await call(owner, 'mutation', 'host.revoke', { hostId, confirmName: 'liar' })
  await home.run(['host', 'revoke', 'liar', '--confirm', 'liar'])
  await home.run(['host', 'remove', 'liar', '--confirm', 'liar'])
  await typeThere('./floe agent stop --instances')
  rmSync(hostHome, { recursive: true, force: true })
})

const json = (response: ServerResponse, paths: string[], of: (path: string) => unknown) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(paths.map((path) => ({ result: { data: { json: of(path) } } }))))
}
const answersOf = (path: string): unknown =>
  path === 'hello' ? truth.hello : path === 'report.read' ? truth.report : []
const honest: Answerer = (_, response, paths) => json(response, paths, answersOf)

/** Answers so until Floe has asked several times; the most memory that controller and web took meanwhile. */
async function while_(answers: Answerer, seconds = 8): Promise<{ grown: number; slowest: number }> {
  const pids = [await home.pidOf('controller'), await home.pidOf('web')]
  const before = pids.map(residentBytes)
  answerer = answers
  const from = asked
  let grown = 0
  let slowest = 0
  const end = Date.now() + seconds * 1_000
  await until(
    'Floe has asked the hostile host',
    async () => {
      grown = Math.max(grown, ...pids.map((pid, i) => residentBytes(pid) - (before[i] as number)))
      const began = Date.now()
      const { status } = await call(owner, 'query', 'instance.list')
      slowest = Math.max(slowest, Date.now() - began)
      expect(status).toBe(200)
      return Date.now() > end && asked > from
    },
    40_000,
  )
  answerer = honest
  server?.closeAllConnections()
  expect([await home.pidOf('controller'), await home.pidOf('web')]).toEqual(pids)
  return { grown, slowest }
}
const judge = ({ grown, slowest }: { grown: number; slowest: number }) => {
  gotIn(grown > 250e6, `a process of the console grew by ${Math.round(grown / 1e6)} MB`)
  gotIn(slowest > 3_000, `the console answered after ${slowest} ms`)
}

attempt('18', 'the token of an enrolment stands in no process’s arguments', () => {
  gotIn(/^SEEN/m.test(seen), `somebody else on that host saw it: ${seen.match(/^SEEN.*$/m)?.[0]}`)
})

describe('answers of a hostile host', () => {
  attempt('neighbour of 10, 25', 'an answer without an end fills no memory and holds nobody up', async () => {
    judge(
      await while_((_, response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        const more = () => {
          while (!response.destroyed && response.write('[{"result":{"data":{"json":"'.padEnd(1 << 20, 'x')));
          if (!response.destroyed) response.once('drain', more)
        }
        response.write('[')
        more()
      }),
    )
  })

  attempt('neighbour of 25', 'an answer that comes one byte a second holds nobody up', async () => {
    judge(
      await while_((_, response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        const timer = setInterval(() => response.write(' '), 1_000)
        response.on('close', () => clearInterval(timer))
      }),
    )
  })

  attempt(
    'neighbour of 21',
    'answers that are no answers are refused, and the host is shown as failing',
    async () => {
      const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
      const odd = [
        '',
        'null',
        '{',
        deep,
        '[{"result":{"data":{"json":null}}}]',
        '[{"error":"x"}]',
        '<html>',
        '\0\0\0',
      ]
      let n = 0
      judge(
        await while_((_, response) => {
          response.writeHead(n % 5 === 4 ? 500 : 200, { 'content-type': 'application/json' })
          response.end(odd[n++ % odd.length])
        }),
      )
    },
  )

  attempt('neighbour of 1', 'what it says of another host’s instance is not believed', async () => {
    const before = await home.json<Record<string, unknown>>('instance', 'show', 'beta')
    const stolen = JSON.parse(JSON.stringify(truth.ofTheOther), (key, value) =>
      key === 'state' ? 'stopped' : key === 'port' ? 1 : value,
    ) as Record<string, unknown>
    judge(
      await while_((_, response, paths) =>
        json(response, paths, (path) =>
          path === 'report.read' ? { ...truth.report, instances: stolen.instances } : answersOf(path),
        ),
      ),
    )
    const after = await home.json<Record<string, unknown>>('instance', 'show', 'beta')
    for (const fact of ['state', 'port', 'host', 'hostId', 'connectionString'])
      gotIn(
        JSON.stringify(after[fact]) !== JSON.stringify(before[fact]),
        `${fact} of beta is now ${after[fact]}`,
      )
  })

  attempt('neighbour of 14', 'texts, numbers and times beyond all bounds are not kept', async () => {
    let n = 0
    const spoilt = () => {
      n++
      return JSON.parse(JSON.stringify(truth.report), (_, value) =>
        typeof value === 'string'
          ? [`${'x'.repeat(100_000)}`, '\u0000', '<img src=x onerror=alert(1)>', value][n % 4]
          : typeof value === 'number'
            ? [1e308, -1, 2 ** 53, value][n % 4]
            : value,
      )
    }
    judge(
      await while_((_, response, paths) =>
        json(response, paths, (path) => (path === 'hello' ? truth.hello : spoilt())),
      ),
    )
    const { text } = await call(owner, 'query', 'host.list')
    gotIn(text.length > 200_000, `the list of hosts has ${text.length} characters`)
    const page = await ask('/sign-in')
    expect(page.status).toBe(200)
  })

  attempt(
    'neighbour of 14',
    'what it tells of its machine is bounded text, in a page and in a terminal',
    async () => {
      const odd = [
        '\u001b]0;owned\u0007',
        'safe\n        As root: rm -rf /',
        'a\u202eb',
        'x'.repeat(3_000_000),
      ]
      const line = (text: string) => ({
        ...{
          name: text,
          group: 'disk',
          actual: text,
          wanted: text,
          severity: 'fault',
          why: text,
          command: text,
        },
      })
      const before = asked
      for (const text of odd) {
        const disk = {
          mount: text,
          device: text,
          disk: text,
          fileSystem: text,
          options: text,
          scheduler: text,
        }
        const result = {
          ...{ version: 1, host: text, kernel: text, cpus: 2, memoryBytes: 1e9, container: false },
          disks: [{ ...disk, sizeBytes: 1, freeBytes: 1, nvme: null, rotational: null, writeCache: text }],
          lines: [line(text)],
        }
        answerer = (_, response, paths) =>
          json(response, paths, (path) =>
            path.startsWith('task.')
              ? {
                  key: { operationId: it.beta.instanceId, step: 'check-host', attempt: 1 },
                  ...{ state: 'succeeded', progress: 1, message: null, log: [], result, fault: null },
                  ...{ startedAt: 1, endedAt: 2 },
                }
              : answersOf(path),
          )
        try {
          const { status, text: answer } = await call(owner, 'mutation', 'host.check', { hostId })
          gotIn(status === 200 || answer.length > 100_000, `kept: ${answer.length} characters`)
          const { stdout } = await home.run(['host', 'check', 'liar', '--last', '--all'])
          const control = [...stdout].find((c) => (c < ' ' && c !== '\n') || c === '\u007f' || c === '\u202e')
          gotIn(control !== undefined || stdout.includes('rm -rf'), JSON.stringify(stdout.slice(0, 200)))
        } finally {
          answerer = honest
        }
      }
      expect(asked).toBeGreaterThan(before)
    },
  )

  attempt('neighbour of 6', 'it cannot speak for another host: its certificate names its own', async () => {
    const hosts = answerOf<{ hosts: { name: string; state?: string }[] } | { name: string }[]>(
      await call(owner, 'query', 'host.list'),
    )
    expect(JSON.stringify(hosts)).toContain('liar')
    // its certificate is no client's: the honest agent does not answer it
    const identity = join(hostHome, 'secrets/agent.pem')
    for (const path of ['hello', 'report.read', 'telemetry.read', 'certificate.request']) {
      const { out } = await run('curl', [
        ...['-sk', '--max-time', '10', '--cert', identity, '--key', identity],
        `https://127.0.0.1:${it.agentPort}/trpc/${path}?input=${encodeURIComponent('{"json":{"after":null}}')}`,
      ])
      gotIn(/"result"/.test(out), `${path}: ${out.slice(0, 100)}`)
    }
  })
})
