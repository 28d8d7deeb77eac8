import type { TaskInput, TaskStatus } from '@floe/agent-contract'
import { type OperationKind, operationRecord } from '@floe/domain'
import { afterEach, expect, test } from 'vitest'
import { operationDefinition } from './definitions'
import { controls, type InstanceControl } from './instance-control'

const own = controls.agent
afterEach(() => {
  controls.agent = own
})

const instanceId = '6a1b0c7e-5d0e-4f5a-9b0e-0c2d3e4f5a6b'

test.each([
  ['create-instance', 'start', { name: 'a', settings: {}, ownerPasswordVerifier: verifier() }, 'start'],
  ['start-instance', 'start', {}, 'start'],
  ['stop-instance', 'stop', { mode: 'immediate' }, 'stop'],
  ['restart-instance', 'restart', { mode: 'fast' }, 'restart'],
  ['restart-instance', 'start', { mode: 'fast' }, 'start'],
  ['reload-instance', 'reload', {}, 'reload'],
  ['change-settings', 'apply', { changes: [{ name: 'work_mem', value: '8MB' }] }, 'changeSettings'],
  ['resolve-drift', 'resolve', { how: 'adopt' }, 'resolveDrift'],
  ['change-commit-mode', 'apply', { database: 'd', role: null, commitMode: 'local' }, 'setCommitMode'],
] as [OperationKind, string, object, keyof InstanceControl][])(
  '%s, step %s, asks the control of its cluster, and what that answers is sent',
  async (kind, step, input, command) => {
    const asked: string[] = []
    controls.agent = new Proxy(own, {
      get: (control, name: keyof InstanceControl) => {
        if (name in control) asked.push(name)
        return control[name]
      },
    })
    const sent: TaskInput[] = []
    const status = (state: TaskStatus['state']) => ({ state, log: [], message: null, progress: null })
    const agent = {
      checkTask: async () => status(sent.length === 0 ? 'not-started' : 'running'),
      startTask: async ({ task }: { task: TaskInput }) => {
        sent.push(task)
        return status('running')
      },
    }
    const body = operationDefinition(kind).steps[step as never] as {
      run(context: unknown): Promise<{ word: string }>
    }
    const parsed = operationRecord(kind).input.parse({ instanceId, ...input })
    const { word } = await body.run({
      operationId: instanceId,
      input: parsed,
      hostName: 'alpha',
      step: { name: step, attempt: 1, startedAt: new Date(), taskLogSeq: 0 },
      results: {},
      cancelAskedAt: null,
      now: new Date(),
      agent,
      readCluster: async () => ({ control: 'agent', members: [] }),
      record: async () => {},
    })
    expect(word).toBe('wait')
    expect(asked).toEqual([command])
    expect(sent).toEqual([(own[command] as (...args: unknown[]) => TaskInput)(instanceId, ...rest(parsed))])
  },
)

/** What a command takes besides the instance. */
function rest(input: object): unknown[] {
  const known = input as { mode?: string; how?: string; changes?: unknown; commitMode?: string }
  if (known.commitMode !== undefined) return [known]
  return [known.mode ?? known.how ?? known.changes].filter((v) => v !== undefined)
}

function verifier(): string {
  return `SCRAM-SHA-256$4096:${'A'.repeat(24)}$${'A'.repeat(44)}:${'A'.repeat(44)}`
}

test('a cluster that cannot be read is not taken for a host that does not answer', async () => {
  const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const body = operationDefinition('reload-instance').steps.reload as unknown as {
    run(context: unknown): Promise<{ word: string }>
  }
  const context = {
    operationId: instanceId,
    input: { instanceId },
    hostName: 'alpha',
    step: { name: 'reload', attempt: 1, startedAt: new Date(), taskLogSeq: 0 },
    cancelAskedAt: null,
    now: new Date(),
    agent: { checkTask: async () => ({ state: 'not-started', log: [] }) },
    readCluster: () => Promise.reject(away),
  }
  await expect(body.run(context)).rejects.toBe(away)
})
