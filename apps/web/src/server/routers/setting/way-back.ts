import { listSettingRevisions, type Queryable, type SettingRevisionView } from '@floe/db'
import {
  fault,
  type MemberSettings,
  type SettingChange,
  type SettingScope,
  whyOfOneMember,
} from '@floe/domain'
import type { MemberInScope, Scope } from './scope'

type Managed = Record<string, string>

/** The changes that lead from one revision of the managed file to another, by name. */
export function changesTo(from: Managed, to: Managed): SettingChange[] {
  return [...new Set([...Object.keys(from), ...Object.keys(to)])]
    .filter((name) => from[name] !== to[name])
    .sort()
    .map((name) => ({ name, value: to[name] ?? null }))
}

const currentOf = (rows: readonly SettingRevisionView[], id: string) =>
  rows.find((r) => r.instanceId === id)?.managed

/** Of a member, what it held when a revision was written; undefined where that is not known. */
function heldAt(rows: readonly SettingRevisionView[], id: string, revisionId: string): Managed | undefined {
  const own = rows.filter((r) => r.instanceId === id)
  const oldest = own.at(-1)
  // what was found at a later change had held before it, too
  const found = oldest?.operationId === null ? oldest : undefined
  return (own.find((r) => BigInt(r.id) <= BigInt(revisionId)) ?? found)?.managed
}

/**
 * What each member held at a revision, and what rolling back to it changes there. A member that joined later goes the way
 * of the primary. Across several members, settings that are each one's own stay as they are.
 */
export function changesBack(
  rows: readonly SettingRevisionView[],
  { members, leaderId }: Scope,
  revisionId: string,
): (MemberInScope & { managed: Managed; changes: SettingChange[] })[] {
  const wayOf = (id: string) => {
    const managed = heldAt(rows, id, revisionId)
    if (!managed) return null
    const changes = changesTo(currentOf(rows, id) ?? {}, managed)
    return { managed, changes: changes.filter((c) => whyOfOneMember(c.name, members) === null) }
  }
  const ofLeader = wayOf(leaderId) ?? { managed: {}, changes: [] }
  return members.map((m) => ({ ...m, ...(wayOf(m.instanceId) ?? ofLeader) }))
}

/** The same names on every member, also where one has that value already: the order is decided over all of them. */
function completed(
  rows: readonly SettingRevisionView[],
  members: readonly { instanceId: MemberSettings['instanceId']; changes: SettingChange[] }[],
  leaderId: string,
): MemberSettings[] {
  const names = [...new Set(members.flatMap((m) => m.changes.map((c) => c.name)))].sort()
  return members.map(({ instanceId, changes }) => {
    // a member without a revision of its own was copied from the primary
    const current = currentOf(rows, instanceId) ?? currentOf(rows, leaderId) ?? {}
    return {
      instanceId,
      changes: names.map(
        (name) => changes.find((c) => c.name === name) ?? { name, value: current[name] ?? null },
      ),
    }
  })
}

/**
 * What is asked of every member to roll back to a revision, and why where nobody said it. Throws
 * `setting.revision_not_found` or `setting.revision_current`.
 */
export async function wayBack(
  on: Queryable,
  scope: SettingScope,
  named: Scope,
  revisionId: string,
): Promise<{ because: string; members: MemberSettings[] }> {
  const rows = await listSettingRevisions(on, scope, { asOf: revisionId })
  const revision = rows.find((r) => r.id === revisionId)
  if (!revision)
    throw fault(
      'setting.revision_not_found',
      `the ${named.cluster ? 'cluster' : 'instance'} has no revision ${revisionId} of its settings`,
      { hint: 'List them with setting.revisions.' },
    )
  const members = changesBack(rows, named, revisionId)
  if (members.every((m) => m.changes.length === 0))
    throw fault('setting.revision_current', 'the settings are as they were in that revision', {
      detail: 'Rolling back to it would change nothing.',
    })
  const at = revision.at.toISOString().slice(0, 19).replace('T', ' ')
  return {
    because: `rolled back to the revision of ${at} UTC`,
    members: completed(rows, members, named.leaderId),
  }
}
