import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Installation, LOOPBACK, secretFiles, webSocketIn } from '@floe/domain'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'

let home: string
/** More than a pipe holds. */
const settings = Array.from({ length: 5_000 }, (_, n) => ({
  name: `setting_${n}`,
  impact: 'reload',
  values: [{ value: 'on', shown: 'on', source: 'default', pending: null }],
}))
const members = [{ name: 'demo', fault: null }]
const instance = { instanceId: '6a1b0c7e-5d0e-4f5a-9b0e-0c2d3e4f5a6b', name: 'demo' }
const server = createServer((request, response) => {
  const procedures = (request.url ?? '').replace(/^.*\/trpc\/|\?.*$/g, '').split(',')
  const answers = procedures.map((p) => ({
    result: { data: { json: p === 'setting.list' ? { members, settings } : { instances: [instance] } } },
  }))
  response.setHeader('content-type', 'application/json').end(JSON.stringify(answers))
})

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'floe-output-'))
  const socket = webSocketIn(home)
  mkdirSync(join(home, 'secrets'))
  mkdirSync(dirname(socket), { mode: 0o700 })
  writeFileSync(join(home, 'secrets', secretFiles.cliToken), 'token')
  const installation: Installation = {
    version: 1,
    installationId: randomUUID(),
    hostId: randomUUID(),
    hostName: 'h',
    hostAddress: LOOPBACK,
    webAddress: LOOPBACK,
    webPort: 3000,
    webUrl: 'http://127.0.0.1:3000',
    agentPort: 3001,
    instancePorts: { from: 5500, to: 5510 },
    enginePrefix: '/none',
    instancesDirectory: '/none',
    socketDirectory: home,
    engineUser: 'floe',
    startCrashed: false,
    webSocket: socket,
    controlDatabase: { name: 'console', socketDirectory: '/none', port: 3002, url: null },
    users: null,
    consoleDirectory: home,
  }
  writeFileSync(join(home, 'config.json'), JSON.stringify(installation))
  await new Promise<void>((resolve) => server.listen(socket, resolve))
  await build({
    entryPoints: [join(import.meta.dirname, 'main.ts')],
    outfile: join(home, 'main.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'warning',
    banner: {
      js: "import { createRequire as floeRequire } from 'node:module'; const require = floeRequire(import.meta.url);",
    },
  })
}, 60_000)
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve))
  rmSync(home, { recursive: true })
})

/** Runs a verb with its output going to `into`, a piece of shell; answers the verb's own status and all that was printed. */
async function listing(into: string) {
  const child = spawn(
    'bash',
    [
      '-c',
      `"$0" "$1/main.mjs" setting list demo ${into}; echo "status \${PIPESTATUS[0]}"`,
      process.execPath,
      home,
    ],
    { env: { ...process.env, FLOE_HOME: home, FLOE_CHECKOUT: home } },
  )
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (text) => (stdout += text))
  child.stderr.on('data', (text) => (stderr += text))
  await new Promise((resolve) => child.once('close', resolve))
  return { lines: stdout.trimEnd().split('\n'), stderr }
}

test('a reader that closes the pipe after its first line ends a verb without a word', async () => {
  const { lines, stderr } = await listing('| head -1')
  expect(stderr).toBe('')
  expect(lines[0]).toMatch(/^name +value/)
  expect(lines.slice(1)).toEqual(['status 141'])
  expect((await listing('')).lines).toHaveLength(settings.length + 2)
}, 30_000)

test('output that cannot be written is a failure with its reason', async () => {
  const { lines, stderr } = await listing('> /dev/full')
  expect(lines).toEqual(['status 1'])
  expect(stderr).toMatch(/^floe: error: could not write the output\nDETAIL: +.*ENOSPC.*\n$/)
}, 30_000)
