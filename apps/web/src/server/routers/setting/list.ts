import {
  compareMembers,
  FaultError,
  isStandbySensitive,
  type Setting,
  settingImpact,
  settingWords,
  toFault,
  whyOfOneMember,
} from '@floe/domain'
import type { Context } from '../../context'
import { viewerProcedure } from '../../procedures'
import { type MemberInScope, memberOf, readScope } from './scope'
import { SettingList, SettingListInput, type SettingView } from './setting.types'

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

/**
 * Settings as each member's own binary describes them: what it has, what differs, what waits for a restart. Probes of all
 * members at once, within 3 s; a member that does not answer says why and does not delay the others. Where none does, what
 * the first one said is thrown.
 */
export const list = viewerProcedure
  .input(SettingListInput)
  .output(SettingList)
  .query(async ({ ctx, input: { scope, names, search } }) => {
    const { members } = await readScope(ctx.ports.database.pool, scope)
    const read = await Promise.all(members.map((m) => readMember(ctx, m, names)))
    const [unread] = read
    if (unread?.fault && read.every((m) => m.fault)) throw new FaultError(unread.fault)
    const wanted = search?.trim().toLowerCase() ?? ''
    return {
      members: read.map((m) => ({ ...memberOf(m), fault: m.fault })),
      settings: [...new Set(read.flatMap((m) => [...m.settings.keys()]))]
        .sort()
        .map((name) => viewOf(name, read))
        .filter((s) =>
          [s.name, s.title, s.description, s.category].some((text) => text?.toLowerCase().includes(wanted)),
        ),
      observedAt: Math.min(...read.flatMap((m) => m.observedAt ?? [])),
    }
  })

type Read = Awaited<ReturnType<typeof readMember>>

async function readMember(ctx: Context, member: MemberInScope, names: string[] | undefined) {
  const { instanceId } = member
  try {
    const { settings, observedAt } = await ctx.ports.agents.probe(instanceId, (trpc) =>
      trpc.setting.list.query({ instanceId, names }),
    )
    return { ...member, fault: null, observedAt, settings: new Map(settings.map((s) => [s.name, s])) }
  } catch (error) {
    if (!(error instanceof FaultError)) throw error
    return { ...member, fault: toFault(error), observedAt: null, settings: new Map<string, Setting>() }
  }
}

function viewOf(name: string, read: readonly Read[]): SettingView {
  const values = read.map((m) => {
    const own = m.settings.get(name)
    if (!own) return null
    return {
      ...own,
      instanceId: m.instanceId,
      shown: own.shown ?? own.value,
      pending: own.pendingRestart ? (own.managedValue ?? 'default') : null,
    }
  })
  // what the members have in common is said by the first one that answered
  const about = read.map((m) => m.settings.get(name)).find((s) => s !== undefined) as Setting
  const compared = compareMembers(
    read
      .filter((m) => !m.fault)
      .map((m) => ({
        primary: m.memberRole === 'primary',
        name: m.name,
        value: m.settings.get(name)?.value ?? null,
      })),
    name,
  )
  const impact = settingImpact(about.context)
  const ordered = isStandbySensitive(name)
  const words = settingWords[name]
  return {
    ...about,
    impact,
    title: words?.title ?? null,
    meaning: words?.meaning ?? null,
    warning: words?.warning ?? null,
    values,
    ordered,
    ownOfMember: whyOfOneMember(name, read),
    ...compared,
    notable:
      !byNature.has(name) &&
      (ordered ||
        (compared.differs && impact !== 'read-only') ||
        values.some((v) => v && (v.pending !== null || v.managedValue !== null))),
  }
}
