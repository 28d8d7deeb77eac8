import { expect, test } from 'vitest'
import { HostCheckLine, hostCheckSummary, hostCheckTally, sortedHostCheck } from './host-check'

const lines = (['ok', 'advice', 'fault', 'ok', 'unknown', 'advice'] as const).map((severity, i) => ({
  severity,
  name: `${i}`,
}))

test('the worst comes first, and what is equally bad keeps its order', () => {
  expect(sortedHostCheck(lines).map((l) => l.name)).toEqual(['2', '1', '5', '4', '0', '3'])
})

test('a summary counts each severity and leaves out what there is none of', () => {
  expect(hostCheckTally(lines)).toEqual({ fault: 1, advice: 2, unknown: 1, ok: 2 })
  expect(hostCheckSummary(lines)).toBe('1 fault, 2 to improve, 1 unknown, 2 as wanted')
  expect(hostCheckSummary([{ severity: 'ok' }])).toBe('1 as wanted')
  expect(hostCheckSummary([])).toBe('nothing was checked')
})

test('what a host tells is text and nothing more', () => {
  const line = {
    name: 'n',
    group: 'clock',
    actual: 'a',
    wanted: 'w',
    severity: 'advice',
    why: 'y',
    command: 'c',
  }
  expect(HostCheckLine.safeParse(line).success).toBe(true)
  for (const odd of ['\u001b[2J', 'a\nrm -rf /', 'a\u202eb', '\u0000', 'x'.repeat(1_001)])
    for (const part of ['name', 'actual', 'wanted', 'why', 'command'])
      expect(HostCheckLine.safeParse({ ...line, [part]: odd }).success).toBe(false)
})
