import { spawn, spawnSync } from 'node:child_process'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePorts, PrivateHome } from '../launcher/private-home'

const room = join(import.meta.dirname, '../../../infra/provider')
/** A program that is recent enough, as the suite found it. */
const terraform = process.env.FLOE_TEST_TERRAFORM ?? ''
/** Why the provider cannot be built here; null where it can. */
const notBuilt =
  spawnSync('go', ['version']).status !== 0
    ? 'go is not installed'
    : spawnSync('go', ['mod', 'download'], { cwd: room, timeout: 300_000 }).status !== 0
      ? 'its modules cannot be fetched'
      : null
const why = notBuilt ?? (terraform ? null : 'there is neither terraform nor tofu')

/** Runs go to its end; answers its status and what it printed. */
const run = (
  args: string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ status: number | null; output: string }> =>
  new Promise((resolve) => {
    const child = spawn('go', args, { cwd: room, env: { ...process.env, CGO_ENABLED: '0', ...env } })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    child.once('close', (status) => resolve({ status, output }))
  })

describe('the provider of Floe', () => {
  test.skipIf(notBuilt !== null)(
    `is sound, and its client holds to what it says${notBuilt ? `: ${notBuilt}` : ''}`,
    async () => {
      expect(spawnSync('gofmt', ['-l', '.'], { cwd: room, encoding: 'utf8' }).stdout).toBe('')
      expect(await run(['vet', './...'])).toMatchObject({ status: 0 })
      expect(await run(['test', '-count=1', './internal/console'])).toMatchObject({ status: 0 })
    },
    900_000,
  )
})

describe('against a console', () => {
  const home = new PrivateHome()
  let environment: NodeJS.ProcessEnv
  beforeAll(async () => {
    if (why) return
    const base = await freePorts(24)
    const ports = ['--port', String(base), '--instance-ports', `${base + 3}-${base + 23}`]
    const { url } = await home.json<{ url: string }>('up', ...ports)
    const made = await home.json<{ secret: string }>(
      'token',
      'create',
      'terraform',
      '--role',
      'admin',
      '--days',
      '1',
    )
    environment = {
      TF_ACC: '1',
      TF_ACC_TERRAFORM_PATH: spawnSync('sh', ['-c', `command -v ${terraform}`], {
        encoding: 'utf8',
      }).stdout.trim(),
      // OpenTofu's providers have other addresses
      ...(basename(terraform) === 'tofu'
        ? { TF_ACC_PROVIDER_HOST: 'registry.opentofu.org', TF_ACC_PROVIDER_NAMESPACE: 'hashicorp' }
        : {}),
      CHECKPOINT_DISABLE: '1',
      TF_CLI_CONFIG_FILE: '/dev/null',
      FLOE_CONSOLE_URL: new URL(url).origin,
      FLOE_CONSOLE_TOKEN: made.secret,
    }
  }, 900_000)
  afterAll(() => home.remove(), 120_000)

  test.skipIf(why !== null)(
    `each resource is created, changed, imported and destroyed, and a second plan is empty${why ? `: ${why}` : ''}`,
    async () => {
      const { status, output } = await run(
        ['test', '-count=1', '-v', '-timeout', '15m', './internal/provider'],
        environment,
      )
      expect(output).not.toMatch(/^\s*--- SKIP/m)
      expect({ status, output: status === 0 ? '' : output.slice(-6_000) }).toEqual({ status: 0, output: '' })
    },
    900_000,
  )
})
