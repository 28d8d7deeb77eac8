import { describe, expect, test } from 'vitest'
import { BackgroundProcesses, backgroundKind } from './background'

describe('processes that limits of I/O do not hold for', () => {
  test.each([
    ['postgres: checkpointer ', 'checkpointer'],
    ['postgres: demo: checkpointer performing checkpoint', 'checkpointer'],
    ['postgres: checkpointer performing end-of-recovery checkpoint', 'checkpointer'],
    ['postgres: walwriter ', 'WAL writer'],
    ['postgres: walsummarizer ', 'WAL summarizer'],
    ['postgres: archiver last was 000000010000000000000001', 'archiver'],
    ['postgres: archiver archiving 00000002.history', 'archiver'],
    ['postgres: a: b: logger ', 'logger'],
  ])('%s', (title, kind) => {
    expect(backgroundKind(title)).toBe(kind)
  })

  test.each([
    // sessions of roles and in databases that are named so
    'postgres: checkpointer checkpointer [local] idle',
    'postgres: x: walwriter walwriter 10.0.0.1(5432) SELECT',
    'postgres: walsummarizer postgres [local] idle',
    'postgres: archiver last was [local] COPY',
    'postgres: background writer ',
    'postgres: autovacuum worker logger',
    'postgres: io worker 0',
    'checkpointer',
    '/usr/bin/postgres -D /d -c cluster_name=checkpointer',
    '',
  ])('%s is none', (title) => {
    expect(backgroundKind(title)).toBeNull()
  })
})

describe('which process is the one of its kind', () => {
  const first = { pid: 70, startTicks: 1_000 }
  const ticks = (all: Record<number, number>) => (pid: number) => all[pid] ?? null

  test('a second one with the same title is none while the first runs', () => {
    const known = new BackgroundProcesses()
    known.take('checkpointer', first)
    expect(known.mayBe('checkpointer', first)).toBe(true)
    expect(known.mayBe('checkpointer', { pid: 71, startTicks: 2_000 })).toBe(false)
    expect(known.mayBe('archiver', { pid: 71, startTicks: 2_000 })).toBe(true)
    expect(known.dropEnded(ticks({ 70: 1_000 }))).toEqual([])
    expect(known.kinds).toEqual(['checkpointer'])
  })

  test('a session that got the pid of one that ended does not keep its place', () => {
    const known = new BackgroundProcesses()
    known.take('checkpointer', first)
    expect(known.mayBe('checkpointer', { pid: 70, startTicks: 3_000 })).toBe(false)
    expect(known.dropEnded(ticks({ 70: 3_000 }))).toEqual([70])
    expect(known.mayBe('checkpointer', { pid: 80, startTicks: 3_001 })).toBe(true)
  })
})
