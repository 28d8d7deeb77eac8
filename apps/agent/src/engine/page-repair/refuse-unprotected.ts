import { type Fault, fault, type Protection, type SettingChange, toFault } from '@floe/domain'

/** What PostgreSQL takes for "off", by any unambiguous beginning. */
const isOff = (value: string | null | undefined) => /^(of|off|f|fa|fal|fals|false|n|no|0)$/i.test(value ?? '')

/** What is known of an instance when somebody wants its full-page writes off. */
export type ProtectionEvidence = {
  /** Null while it does not run: then nobody can say what protects it. */
  running: {
    fullPageWrites: string | null
    guard: string | null
    policy: string | null
    dataChecksums: boolean
  } | null
  /** Null for a database without the views of page_repair. */
  protection: Protection | null
}

/**
 * Why full_page_writes must not be turned off now, or null. It may be where a healthy source could give a torn page back,
 * or where a person has turned the guard off, in the same change or before.
 */
export function unprotectedFault(changes: readonly SettingChange[], seen: ProtectionEvidence): Fault | null {
  const to = (name: string) => changes.find((c) => c.name.toLowerCase() === name)
  if (!isOff(to('full_page_writes')?.value) || isOff(seen.running?.fullPageWrites)) return null
  const guard = to('polar_page_repair_guard')
  if (isOff(guard ? guard.value : seen.running?.guard)) return null
  const refuse = (detail: string, hint: string) =>
    toFault(
      fault('setting.unprotected', 'full_page_writes stays on: a torn page could not be restored', {
        detail,
        hint,
      }),
    )
  if (!seen.running)
    return refuse('The instance does not run, so no source can be checked.', 'Start it first.')
  if (!seen.running.dataChecksums)
    return refuse(
      'Data checksums are off, so that a torn page would not be noticed.',
      'Stop it and run pg_checksums --enable, or leave full-page writes on.',
    )
  if (!seen.protection)
    return refuse(
      'The database postgres lacks the extension page_repair.',
      'As its owner run CREATE EXTENSION page_repair there.',
    )
  // sources answer whatever the policy is, but the guard has images written for as long as it is off
  const policy = to('polar_page_repair_policy')
  if ((policy ? policy.value : seen.running.policy)?.toLowerCase() === 'off')
    return refuse(
      `polar_page_repair_policy ${policy ? 'would be' : 'is'} off, so that recovery would ask no source.`,
      'Set polar_page_repair_policy to checksum or always first. Only for data that you can load again, turn polar_page_repair_guard off.',
    )
  const { sources } = seen.protection
  if (sources.some((s) => s.healthy)) return null
  const sick = sources.map((s) => `${s.source}: ${s.why ?? 'it was not checked yet'}`).join('; ')
  return refuse(
    sources.length === 0
      ? 'No standby is a page repair source.'
      : `No page repair source is healthy: ${sick}.`,
    sources.length === 0
      ? 'Create a standby: it becomes a source automatically. Without one, keep a flashback log (polar_enable_flashback_log = on, polar_flashback_log_mode = sync). Turn polar_page_repair_guard off only for data that you can load again.'
      : 'Wait until the standby has caught up, or bring it back.',
  )
}
