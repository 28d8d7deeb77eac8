import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emptyDisk, guest, here, runGuest } from './guest/machine'

const checkout = join(import.meta.dirname, '../../..')
const MINUTE_MS = 60_000

/** A Debian that Floe's packages make a host, under its own systemd; its power goes off and on again once. */
describe.skipIf(guest === '')(`a host from packages${here}`, () => {
  let room: string
  let first = ''
  let second = ''
  const part = (name: string) => {
    const from = `${first}${second}`.split(`\n== ${name}\n`)[1]
    return from?.slice(0, from.indexOf('\n== ')) ?? `there is no part ${name}:\n${first}${second}`
  }

  beforeAll(async () => {
    room = mkdtempSync(join(tmpdir(), 'floe-guest-host-'))
    const packages = join(room, 'packages')
    mkdirSync(packages)
    const { FLOE_LOG: _, FLOE_STARTED: __, FLOE_CHECKOUT: ___, ...env } = process.env
    const packed = spawnSync(join(checkout, 'floe'), ['engine', 'package', '--output', packages], {
      encoding: 'utf8',
      env,
    })
    expect([packed.status, packed.stderr]).toEqual([0, expect.anything()])
    const program = join(room, 'program.js')
    await build({
      absWorkingDir: join(checkout, 'apps/agent'),
      entryPoints: ['test/guest/host.ts'],
      outfile: program,
      bundle: true,
      platform: 'node',
      target: 'node22',
      format: 'esm',
      external: ['pg-native'],
      logLevel: 'warning',
      // packages written for CommonJS still ask for require
      banner: {
        js: "import { createRequire as floeRequire } from 'node:module'; const require = floeRequire(import.meta.url);",
      },
    })
    const root = join(room, 'root')
    execFileSync(join(import.meta.dirname, 'guest/build-host'), [guest, packages, program, root], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const data = join(room, 'data')
    emptyDisk(data, 2_048)
    const start = async () => {
      const { status, said } = await runGuest({
        memoryMegabytes: 2_048,
        append: 'root=/dev/nvme0n1 rw',
        disks: [
          { serial: 'root', path: root },
          { serial: 'data', path: data },
        ],
        boundMs: 30 * MINUTE_MS,
      })
      expect([status, said]).toEqual([0, expect.stringContaining('\n== end\n')])
      return said
    }
    first = await start()
    second = await start()
  }, 80 * MINUTE_MS)
  afterAll(() => rmSync(room, { recursive: true, force: true }))

  test('they install under its systemd, and start nothing before it is enrolled', () => {
    expect(part('install')).toMatch(/\nended with 0$/m)
    expect(part('units')).toBe('disabled\ninactive\n')
  })

  test('its data goes onto the empty NVMe disk', () => {
    const text = part('disks')
    expect(text).toMatch(/^disk: \/dev\/nvme1n1 .*serial data\) is empty$/m)
    expect(text).toMatch(/^passed over: \/dev\/nvme0n1 .*serial root\)/m)
    expect(text).toContain('\nended with 0\n')
    expect(text).toMatch(/ \/var\/lib\/floe \S*noatime.* - xfs /)
  })

  test('enrolment starts the agent, as a unit that is enabled', () => {
    expect(part('enrol')).toContain('ended with 0\nenabled\n')
    expect(part('fill')).toContain('rows 20000, as written 20000\nended with 0\nactive\n')
  })

  test('after a restart the agent starts what ran, with its rows', () => {
    const text = part('back')
    expect(text).toMatch(/ \/var\/lib\/floe \S*noatime.* - xfs /)
    expect(text).toContain('rows 20000, as written 20000\n')
    expect(text).toContain('running ActiveState=active\n')
    expect(text).toContain('\nended with 0\n')
  })

  test('no unit of an instance is enabled or restarts by itself, and a former primary stays down', () => {
    const text = part('back')
    expect(text).toContain('running UnitFileState=static\n')
    expect(text).toContain('running Restart=no\n')
    expect(text).toMatch(/^the former primary is (stopped|fenced|crashed)$/m)
    expect(text).toMatch(/^its start by hand ended with [1-9]/m)
    expect(text).toContain('former ActiveState=inactive\n')
    expect(text).toContain('former UnitFileState=static\n')
  })

  test('the host check finds nothing that is a fault', () => {
    expect(part('check')).toMatch(/^0 faults, \d+ to improve, 0 unknown, /m)
    expect(part('check')).toContain('\nended with 0\n')
    // what is left belongs to the emulation: its clock, and the root file system, where no data is
    const advice = [...part('check').matchAll(/^advice {2}([^:]*):/gm)].map((match) => match[1])
    expect(advice.filter((of) => !['access times of /', 'clocksource'].includes(of as string))).toEqual([])
  })

  const postmaster = (text: string) => /^postmaster (\d+)$/m.exec(text)?.[1]
  test('an upgrade and a removal of the agent leave the instance running', () => {
    const before = postmaster(part('back'))
    expect(before).toMatch(/^\d+$/)
    expect(part('upgrade')).toContain('rows 20000, as written 20000\n')
    expect(postmaster(part('upgrade'))).toBe(before)
    expect(part('remove')).toMatch(/^ended with 0\ninactive$/m)
    expect(postmaster(part('remove'))).toBe(before)
    expect(part('remove')).toContain('rows 20000, as written 20000\n')
  })
})
