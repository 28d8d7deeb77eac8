import { Command } from 'commander'
import { beforeEach, expect, test, vi } from 'vitest'
import { addTelemetry } from './telemetry'

const asked: unknown[] = []
let stalls: unknown[] = []
vi.mock('./find-instance', () => ({
  openConsole: () => ({
    trpc: { stall: { list: { query: async (input: unknown) => asked.push(input) > 0 && { stalls } } } },
  }),
  findInstance: async () => ({ instanceId: 'i' }),
}))

const lines: string[] = []
beforeEach(() => {
  asked.length = 0
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => lines.push(String(text)) > 0)
  return () => vi.restoreAllMocks()
})
const floe = async (...words: string[]) => {
  lines.length = 0
  const program = new Command()
  addTelemetry(program)
  await program.parseAsync(['telemetry', ...words], { from: 'user' })
  return lines.join('')
}

test('stalls are listed with how long they were and what they waited for; none is said', async () => {
  expect(await floe('stalls', 'shop')).toBe('No stall in this time.\n')
  expect(asked).toEqual([{ instanceId: 'i', minutes: 1_440, limit: 20 }])
  const stall = { startedAt: 1_764_000_000_000, endedAt: 1_764_000_004_000, sessions: 3 }
  stalls = [
    { ...stall, reason: 'a lock', waited: 'Lock:relation 100 %', checkpoint: { kind: 'time', phase: null } },
    { ...stall, reason: 'storage', waited: '', checkpoint: null },
  ]
  const text = await floe('stalls', 'shop', '--minutes', '5', '--limit', '2')
  expect(asked.at(-1)).toEqual({ instanceId: 'i', minutes: 5, limit: 2 })
  expect(text).toMatch(/4 s +a lock +Lock:relation 100 % +3 +time$/m)
  expect(text).toMatch(/4 s +storage +– +3 +–$/m)
  expect(JSON.parse(await floe('stalls', 'shop', '--json'))).toEqual(stalls)
})
