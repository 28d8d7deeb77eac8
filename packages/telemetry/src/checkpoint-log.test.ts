import { expect, test } from 'vitest'
import { parseCheckpointLine } from './checkpoint-log'

const tail = {
  walFilesAdded: 0,
  walFilesRemoved: 1,
  walFilesRecycled: 33,
  writeMs: 26_999,
  syncMs: 14,
  totalMs: 27_080,
  syncFiles: 12,
  longestSyncMs: 8,
  averageSyncMs: 2,
  distanceBytes: 540_672 * 1024,
  estimateBytes: 543_210 * 1024,
}
const middle =
  '0 WAL file(s) added, 1 removed, 33 recycled; write=26.999 s, sync=0.014 s, total=27.080 s; sync files=12, longest=0.008 s, average=0.002 s; distance=540672 kB, estimate=543210 kB'

test('the line of PostgreSQL 14 and 15 (no LSN) is read in full', () => {
  expect(parseCheckpointLine(`checkpoint complete: wrote 16370 buffers (99.9%); ${middle}`)).toEqual({
    event: 'complete',
    record: {
      kind: 'checkpoint',
      buffersWritten: 16_370,
      buffersPercent: 99.9,
      slruBuffersWritten: null,
      ...tail,
      lsn: null,
      redoLsn: null,
    },
  })
})

test('the line of PostgreSQL 16 (with LSN) is read in full', () => {
  const line = `checkpoint complete: wrote 16370 buffers (99.9%); ${middle}; lsn=2/5A0B7C28, redo lsn=2/3C001F68`
  expect(parseCheckpointLine(line)).toMatchObject({
    record: { slruBuffersWritten: null, ...tail, lsn: '2/5A0B7C28', redoLsn: '2/3C001F68' },
  })
})

test('the line of PostgreSQL 17 and 18 (with SLRU buffers) is read in full', () => {
  const line = `restartpoint complete: wrote 921 buffers (5.6%), wrote 3 SLRU buffers; ${middle}; lsn=0/174B6B8, redo lsn=0/174B660`
  expect(parseCheckpointLine(line)).toMatchObject({
    event: 'complete',
    record: {
      kind: 'restartpoint',
      buffersWritten: 921,
      slruBuffersWritten: 3,
      ...tail,
      redoLsn: '0/174B660',
    },
  })
})

test('the reasons of a start line keep PostgreSQL’s words and order', () => {
  expect(parseCheckpointLine('checkpoint starting: immediate force wait')).toEqual({
    event: 'starting',
    kind: 'checkpoint',
    reasons: ['immediate', 'force', 'wait'],
  })
  expect(parseCheckpointLine('restartpoint starting: time')).toMatchObject({
    kind: 'restartpoint',
    reasons: ['time'],
  })
  expect(parseCheckpointLine('checkpoint starting: shutdown immediate')).toMatchObject({
    reasons: ['shutdown', 'immediate'],
  })
  expect(parseCheckpointLine('checkpoint starting:')).toMatchObject({ reasons: [] })
})

test('times lose no thousandth to binary rounding', () => {
  const line = `checkpoint complete: wrote 1 buffers (0.0%), wrote 0 SLRU buffers; 0 WAL file(s) added, 0 removed, 0 recycled; write=1.001 s, sync=4.035 s, total=8.201 s; sync files=1, longest=2.003 s, average=1.009 s; distance=0 kB, estimate=0 kB; lsn=0/1, redo lsn=0/1`
  expect(parseCheckpointLine(line)).toMatchObject({
    record: { writeMs: 1_001, syncMs: 4_035, totalMs: 8_201, longestSyncMs: 2_003, averageSyncMs: 1_009 },
  })
})

test('other messages about checkpoints are not taken for one', () => {
  for (const text of [
    'checkpoints are occurring too frequently (9 seconds apart)',
    'redo done at 0/174B680 system usage: CPU: user: 0.00 s',
    'checkpoint complete',
    'recovery restart point at 0/174B660',
  ])
    expect(parseCheckpointLine(text)).toBeNull()
})
