import { showHost, showInstance } from '@floe/db'
import { fault, profileCeiling, profileSettings, proposedShare } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { readScope } from './scope'
import { SettingProfile, SettingProfileInput } from './setting.types'

/**
 * What a profile proposes for an instance, or all members of a cluster, computed from the smallest of their hosts and the
 * share of it, and from the lowest of their limits. Changes nothing: what is wanted of it goes the way of any change. Throws `host.facts_unknown`.
 */
export const profile = viewerProcedure
  .input(SettingProfileInput)
  .output(SettingProfile)
  .query(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    const { members } = await readScope(pool, input.scope)
    const [hosts, instances] = await Promise.all([
      Promise.all([...new Set(members.map((m) => m.hostId))].map((id) => showHost(pool, id))),
      Promise.all(members.map((m) => showInstance(pool, m.instanceId))),
    ])
    const known = hosts.flatMap((host) =>
      host?.facts && host.observedAt
        ? {
            hostName: host.name,
            observedAt: host.observedAt.getTime(),
            memoryBytes: host.facts.memoryBytes,
            cpus: host.facts.cpus,
            instances: host.instances,
          }
        : [],
    )
    // a member must be able to take over with the same settings
    const [smallest] = known.toSorted((a, b) => a.memoryBytes - b.memoryBytes)
    if (!smallest)
      throw fault('host.facts_unknown', 'the size of the host is not known yet', {
        hint: 'Wait until its agent has answered.',
      })
    const share = input.share ?? proposedShare(smallest.instances)
    const ceiling = profileCeiling(instances.flatMap((instance) => instance?.limits ?? []))
    return {
      host: smallest,
      share,
      ceiling,
      lines: profileSettings(input.profile, smallest, share, ceiling),
    }
  })
