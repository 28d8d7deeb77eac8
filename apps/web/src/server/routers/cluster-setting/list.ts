import {
  compareMembers,
  FaultError,
  isStandbySensitive,
  type Setting,
  settingImpact,
  settingsOfOneMember,
  settingWords,
  toFault,
} from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { requireCluster } from '../cluster/find'
import { ClusterSettingList, ClusterSettingListInput, type ClusterSettingView } from './cluster-setting.types'

/** Each member has its own by the nature of it: said on its own pages. */
const byNature = new Set([
  'cluster_name',
  'config_file',
  'data_directory',
  'external_pid_file',
  'hba_file',
  'ident_file',
  'in_hot_standby',
  'log_directory',
  'port',
  'primary_conninfo',
  'primary_slot_name',
  'synchronous_standby_names',
  'transaction_read_only',
  'unix_socket_directories',
])

type Read = { settings: Map<string, Setting> | null }

/**
 * Settings across a cluster: what each member has, what differs, what waits for a restart. Probes of all members at once,
 * within 3 s; a member that does not answer says why and does not delay the others.
 */
export const list = viewerProcedure
  .input(ClusterSettingListInput)
  .output(ClusterSettingList)
  .query(async ({ ctx, input: { clusterId, names } }) => {
    const cluster = await requireCluster(ctx.ports.database.pool, { clusterId })
    const read = await Promise.all(
      cluster.members.map(async (m) => {
        const member = { instanceId: m.instanceId, name: m.name, memberRole: m.memberRole }
        try {
          const { settings } = await ctx.ports.agents.probe(m.instanceId, (trpc) =>
            trpc.setting.list.query({ instanceId: m.instanceId, names }),
          )
          return { ...member, fault: null, settings: new Map(settings.map((s) => [s.name, s])) }
        } catch (error) {
          if (!(error instanceof FaultError)) throw error
          return { ...member, fault: toFault(error), settings: null }
        }
      }),
    )
    const all = [...new Set(read.flatMap((m) => [...(m.settings?.keys() ?? [])]))].sort()
    const views = all.flatMap((name) => {
      const view = viewOf(name, read)
      return view && (names || worthShowing(view, read)) ? [view] : []
    })
    return {
      members: read.map(({ settings: _, ...member }) => member),
      // those whose order matters first
      settings: [...views.filter((v) => v.ordered), ...views.filter((v) => !v.ordered)],
      observedAt: Date.now(),
    }
  })

function viewOf(
  name: string,
  read: readonly (Read & { name: string; memberRole: string; instanceId: ClusterSettingMemberId })[],
): ClusterSettingView | null {
  const any = read.map((m) => m.settings?.get(name)).find((s) => s !== undefined)
  if (!any) return null
  const answered = read.filter((m) => m.settings !== null)
  const compared = compareMembers(
    answered.map((m) => ({
      primary: m.memberRole === 'primary',
      name: m.name,
      value: m.settings?.get(name)?.value ?? null,
    })),
    name,
  )
  return {
    name,
    title: settingWords[name]?.title ?? null,
    description: settingWords[name]?.meaning ?? any.description,
    impact: settingImpact(any.context),
    ordered: isStandbySensitive(name),
    ownOfMember: settingsOfOneMember[name] ?? null,
    values: read.map((m) => {
      const own = m.settings?.get(name)
      return own
        ? {
            instanceId: m.instanceId,
            shown: own.shown ?? own.value,
            pending: own.pendingRestart ? (own.managedValue ?? 'default') : null,
          }
        : null
    }),
    ...compared,
  }
}
type ClusterSettingMemberId = NonNullable<ClusterSettingView['values'][number]>['instanceId']

function worthShowing(view: ClusterSettingView, read: readonly Read[]): boolean {
  if (byNature.has(view.name)) return false
  return (
    view.ordered ||
    (view.differs && view.impact !== 'read-only') ||
    view.values.some((v) => v?.pending != null) ||
    read.some((m) => m.settings?.get(view.name)?.managedValue != null)
  )
}
