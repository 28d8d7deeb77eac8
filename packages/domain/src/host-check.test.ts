import { expect, test } from 'vitest'
import { HostCheck, hostCheckSummary, hostCheckTally, isPlainText, sortedHostCheck } from './host-check'

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
    actual: null,
    wanted: 'w',
    severity: 'advice',
    why: 'y',
    command: 'c',
  }
  const check = (more: object) =>
    HostCheck.parse({
      ...{ version: 1, host: 'h', kernel: null, cpus: 2, memoryBytes: null, container: false, disks: [] },
      lines: [{ ...line, ...more }],
    })
  expect(isPlainText(check({ actual: 'a\\040b' }))).toBe(true)
  for (const odd of ['\u001b[2J', 'a\nrm -rf /', 'a\u202eb', '\u0000', '\u007f'])
    for (const part of ['name', 'actual', 'wanted', 'why', 'command'])
      expect(isPlainText(check({ [part]: odd }))).toBe(false)
})
