import {
  ClusterControl,
  CommitMode,
  IncidentSeverity,
  InstanceIntent,
  InstanceRole,
  instanceStates,
  MemberRole,
  OperationState,
  operationKindsThat,
  StepState,
} from '@floe/domain'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { recordKinds } from './queries/record-retention'
import { webhookEvents } from './queries/webhook'
import { createTestDatabase, type TestDatabase } from './testing/control-database'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

/** The words a CHECK constraint admits, as the database itself prints it. */
async function wordsOf(constraint: string): Promise<string[]> {
  const { rows } = await db.pool.query<{ definition: string }>(
    'SELECT pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE conname = $1',
    [constraint],
  )
  return [...(rows[0]?.definition ?? '').matchAll(/'([^']+)'::text/g)].map((m) => m[1] as string).sort()
}

test.each([
  ['operation_state_check', OperationState.options],
  ['operation_step_state_check', StepState.options],
  ['instance_state_check', instanceStates],
  ['instance_intent_check', InstanceIntent.options],
  ['instance_role_check', InstanceRole.options],
  ['instance_member_role_check', MemberRole.options],
  ['cluster_control_check', ClusterControl.options],
  ['cluster_commit_mode_check', CommitMode.options],
  ['incident_severity_check', IncidentSeverity.options],
  ['record_retention_kind_check', recordKinds],
  ['webhook_delivery_event_check', webhookEvents],
])('%s admits exactly the words of the code', async (constraint, words) => {
  expect(await wordsOf(constraint)).toEqual([...words].sort())
})

test.each(['operation_one_open_per_instance', 'operation_one_open_per_cluster'])(
  '%s leaves out exactly the operations that only read',
  async (index) => {
    const { rows } = await db.pool.query<{ predicate: string }>(
      'SELECT pg_get_expr(indpred, indrelid) AS predicate FROM pg_index WHERE indexrelid = $1::regclass',
      [index],
    )
    const [, excepted = ''] = (rows[0]?.predicate ?? '').split('<> ALL')
    expect([...excepted.matchAll(/'([^']+)'::text/g)].map((m) => m[1]).sort()).toEqual(
      operationKindsThat(({ readsOnly }) => readsOnly === true).sort(),
    )
  },
)
