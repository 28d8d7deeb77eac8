import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { foreseeableLogin, type LoginPurpose } from '@floe/domain'
import type { ThrowawayHome } from './throwaway-home'

type Renamed = { role: string; former: string }

/** What the registry keeps of a member's role, and the file with its password, by what the role is for. */
const kept: Record<LoginPurpose, { keys: string[]; passFile: string }> = {
  standby: { keys: ['followsAs', 'replicationRole'], passFile: 'replication.pgpass' },
  repair: { keys: ['repairRole'], passFile: 'page-repair.pgpass' },
}

/**
 * Puts a member's files on its host as a version left them whose members had roles that anybody could foresee. Its agent
 * must not run. Answers which roles are to be renamed on the primary.
 */
export function useForeseeableRoles(home: ThrowawayHome, instanceId: string): Renamed[] {
  const file = join(home.home, 'agent/instances', `${instanceId}.json`)
  const registered = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>
  const renamed = (['standby', 'repair'] as const).flatMap((purpose) => {
    const { keys, passFile } = kept[purpose]
    const role = keys.map((key) => registered[key]).find((name) => name !== undefined)
    if (role === undefined) return []
    for (const key of keys) delete registered[key]
    const former = foreseeableLogin(purpose, registered.name as string)
    edit(join(home.installation.instancesDirectory, instanceId, passFile), (text) =>
      text
        .split('\n')
        .filter((line) => !line.includes(`:${role}:`))
        .join('\n'),
    )
    return [{ role, former }]
  })
  writeFileSync(file, JSON.stringify(registered))
  return renamed
}

/** Writes the names of before into a member's pg_hba.conf and into what it follows and asks for pages by. */
export function renameRolesInFiles(
  home: ThrowawayHome,
  instanceId: string,
  renamed: readonly Renamed[],
): void {
  for (const name of ['floe_hba.conf', 'floe.cluster.conf'])
    edit(join(home.installation.instancesDirectory, instanceId, 'pgdata', name), (text) =>
      renamed.reduce((now, { role, former }) => now.replaceAll(role, former), text),
    )
}

/** In place, so that the file stays its owner's. */
function edit(file: string, change: (text: string) => string): void {
  writeFileSync(file, change(readFileSync(file, 'utf8')))
}
