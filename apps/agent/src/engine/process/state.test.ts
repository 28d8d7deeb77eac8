import { instanceTransitions, whyInstanceMoved } from '@floe/domain'
import { describe, expect, test } from 'vitest'
import { decideState, type Evidence, walk } from './state'

const evidence = (over: Partial<Evidence>): Evidence => ({
  expected: 'running',
  activity: null,
  alive: true,
  working: false,
  status: 'ready',
  answersSql: true,
  wasStarting: false,
  shutDownCleanly: false,
  machineRestarted: false,
  ...over,
})

describe('state', () => {
  test('running means that it answers SQL', () => {
    expect(decideState(evidence({}))).toBe('running')
    expect(decideState(evidence({ answersSql: false }))).toBe('starting')
  })

  test('a process that is gone though nobody stopped it has crashed', () => {
    expect(decideState(evidence({ alive: false }))).toBe('crashed')
  })

  test('while a process works on without its postmaster it is neither crashed nor stopped', () => {
    expect(decideState(evidence({ alive: false, working: true }))).toBe('stopping')
    expect(decideState(evidence({ alive: false, working: true, expected: 'stopped' }))).toBe('stopping')
    expect(decideState(evidence({ alive: false, working: true, shutDownCleanly: true }))).toBe('stopping')
  })

  test('a stop is no crash, ordered or by hand', () => {
    expect(decideState(evidence({ alive: false, expected: 'stopped' }))).toBe('stopped')
    expect(decideState(evidence({ alive: false, shutDownCleanly: true }))).toBe('stopped')
  })

  test('what a restart of the machine shut down is to come back, unless it had been stopped', () => {
    const restarted = { alive: false, shutDownCleanly: true, machineRestarted: true }
    expect(decideState(evidence(restarted))).toBe('crashed')
    expect(decideState(evidence({ ...restarted, expected: 'stopped' }))).toBe('stopped')
  })

  test('while a task starts it, a process that has not shown up yet is no crash', () => {
    expect(decideState(evidence({ alive: false, activity: 'starting' }))).toBe('starting')
  })

  test('a start that ended before it answered has crashed, whatever the shutdown before it was', () => {
    expect(decideState(evidence({ alive: false, wasStarting: true, shutDownCleanly: true }))).toBe('crashed')
  })

  test('a shutdown by hand shows as stopping', () => {
    expect(decideState(evidence({ status: 'stopping' }))).toBe('stopping')
  })
})

describe('the walk from state to state', () => {
  const states = [...new Set(instanceTransitions.flatMap((t) => [t.from, t.to]))]

  test('takes only edges of the table', () => {
    for (const from of states)
      for (const to of states) {
        if (from === to) continue
        const steps = walk(from, to)
        if (steps.length === 1 && steps[0]?.because === null) continue
        let at = from
        for (const step of steps) {
          expect(whyInstanceMoved(at, step.state)).toBe(step.because)
          at = step.state
        }
        expect(at).toBe(to)
      }
  })

  test('goes over stopping when a shutdown was too fast to be seen', () => {
    expect(walk('running', 'stopped').map((s) => s.state)).toEqual(['stopping', 'stopped'])
  })
})
