import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePorts, PrivateHome, until } from '../launcher/private-home'

const { FLOE_TEST_TERRAFORM: terraform = '', FLOE_TEST_CADDY: caddy = '' } = process.env
const why = terraform
  ? caddy
    ? null
    : 'there is no Caddy'
  : 'there is neither terraform nor tofu: run it by ./floe test infra'
const NAME = 'console.example.org'
const module = join(import.meta.dirname, '../../../infra/modules/console_user_data')

/** What the module writes to a machine, by path. */
function written(room: string, enrolmentPort: number): Map<string, string> {
  writeFileSync(
    join(room, 'main.tf'),
    `module "console" {
      source              = "${relative(room, module)}"
      name                = "${NAME}"
      archive             = { url = "https://files.example.org/floe.tar.gz", sha256 = "${'a'.repeat(64)}" }
      certificate_program = "#!/bin/sh\\n"
      enrolment_port      = ${enrolmentPort}
    }
    output "files" { value = { for f in yamldecode(module.console.user_data).write_files : f.path => f.content } }`,
  )
  const run = (...args: string[]) =>
    execFileSync(terraform, args, {
      cwd: room,
      encoding: 'utf8',
      env: { ...process.env, TF_CLI_CONFIG_FILE: '/dev/null', CHECKPOINT_DISABLE: '1' },
    })
  run('init', '-input=false')
  run('apply', '-auto-approve', '-input=false')
  const { files } = JSON.parse(run('output', '-json')) as { files: { value: Record<string, string> } }
  return new Map(Object.entries(files.value))
}

/** The proxy that the module configures, before a real console. */
describe.skipIf(why !== null)(`the console behind its proxy${why ? ` (left out: ${why})` : ''}`, () => {
  const home = new PrivateHome()
  const room = mkdtempSync(join(tmpdir(), 'floe-proxy-'))
  let proxy: ChildProcess | undefined
  let said = ''
  let secret = ''
  let port = 0

  /** Asks the proxy as a client does; answers status, headers and body as they came. */
  const ask = (address: string, ...more: string[]) =>
    execFileSync(
      'curl',
      [
        ...[
          '--silent',
          '--show-error',
          '--include',
          '--max-time',
          '60',
          '--cacert',
          join(room, 'certificate'),
        ],
        ...['--resolve', `${NAME}:${port}:127.0.0.1`, ...more, address],
      ],
      { encoding: 'utf8' },
    )

  beforeAll(async () => {
    port = await freePorts(26)
    const console = port + 3
    execFileSync('openssl', [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', `/CN=${NAME}`],
      ...[
        '-addext',
        `subjectAltName=DNS:${NAME}`,
        '-keyout',
        join(room, 'key'),
        '-out',
        join(room, 'certificate'),
      ],
    ])
    execFileSync('sh', ['-c', 'cat key certificate >both.pem'], { cwd: room })
    await home.json(
      ...['up', '--port', String(console), '--instance-ports', `${console + 3}-${console + 22}`],
      ...['--url', `https://${NAME}:${port}`, '--trusted-proxy', '127.0.0.1', '::1'],
    )
    const token = ['token', 'create', 'proxied', '--role', 'viewer', '--days', '1']
    secret = (await home.json<{ secret: string }>(...token)).secret

    const text = written(room, port + 2).get('/etc/floe/Caddyfile') as string
    // the machine has the usual ports to itself, which this one has not
    const own = text
      .replaceAll('127.0.0.1:3000', `127.0.0.1:${console}`)
      .replaceAll('/etc/floe/certificate.pem', join(room, 'both.pem'))
    expect(own).not.toContain('/etc/floe')
    writeFileSync(
      join(room, 'Caddyfile'),
      `{\n\thttps_port ${port}\n\thttp_port ${port + 1}\n\tadmin off\n}\n${own}`,
    )
    mkdirSync(join(room, 'home'))
    const env = { PATH: process.env.PATH, HOME: join(room, 'home') }
    proxy = spawn(caddy, ['run', '--config', join(room, 'Caddyfile'), '--adapter', 'caddyfile'], { env })
    proxy.stderr?.on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
    await until('the proxy serves, or says why not', () => /serving initial|^Error/m.test(said))
    expect(said).toContain('serving initial configuration')
  }, 900_000)
  afterAll(async () => {
    proxy?.kill()
    rmSync(room, { recursive: true, force: true })
    await home.remove()
  }, 120_000)

  test('a browser is shown the page to sign in, by TLS only', () => {
    expect(ask(`https://${NAME}:${port}/sign-in`)).toMatch(/^HTTP\/2 200 /)
    const plain = ask(`http://${NAME}:${port + 1}/`, '--resolve', `${NAME}:${port + 1}:127.0.0.1`)
    expect(plain).toMatch(/^HTTP\/1.1 308 /)
    expect(plain).toContain(`https://${NAME}`)
  })

  test('a program is let in by its token', () => {
    const answer = ask(
      `https://${NAME}:${port}/api/trpc/host.list`,
      ...['--header', `Authorization: Bearer ${secret}`],
    )
    expect(answer).toMatch(/^HTTP\/2 200 /)
  })

  test('who asks is known by the address that the proxy saw, not by one that he states', async () => {
    const origin = `https://${NAME}:${port}`
    ask(
      `${origin}/api/auth/sign-in/email`,
      ...['--header', `Origin: ${origin}`, '--header', 'Content-Type: application/json'],
      ...['--header', 'X-Forwarded-For: 203.0.113.9', '--header', 'X-Real-IP: 203.0.113.9'],
      ...['--data', JSON.stringify({ email: 'nobody@example.org', password: 'not the passphrase' })],
    )
    const rows = await home.json<{ action: string; ipAddress: string | null }[]>('audit', 'list')
    const addresses = rows.filter(({ action }) => action.startsWith('session.')).map((row) => row.ipAddress)
    expect(addresses).toEqual(addresses.map(() => '127.0.0.1'))
    expect(addresses.length).toBeGreaterThan(0)
  })

  test('at the port of enrolment nothing but enrolment is answered', () => {
    const at = `http://127.0.0.1:${port + 2}`
    for (const path of ['/', '/sign-in', '/api/trpc/host.list', '/api/enrol/x', '/api/auth/session'])
      expect(ask(`${at}${path}`, '--header', `Authorization: Bearer ${secret}`), path).toMatch(
        /^HTTP\/1.1 404 /,
      )
    const enrolled = ask(`${at}/api/enrol`, '--header', 'Content-Type: application/json', '--data', '{}')
    expect(enrolled).toMatch(/^HTTP\/1.1 4(?!04)\d\d /)
  })
})
