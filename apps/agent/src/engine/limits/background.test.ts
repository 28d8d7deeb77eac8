import { describe, expect, test } from 'vitest'
import { backgroundKind } from './background'

describe('processes that limits of I/O do not hold for', () => {
  test.each([
    ['postgres: checkpointer ', 'checkpointer'],
    ['postgres: demo: checkpointer performing checkpoint', 'checkpointer'],
    ['postgres: checkpointer performing end-of-recovery checkpoint', 'checkpointer'],
    ['postgres: walwriter ', 'WAL writer'],
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
