import { exactBytes } from '@floe/domain'

/**
 * What a failover that accepts no loss is refused with, by the bytes of WAL that the candidate lacks of what the primary
 * was last seen to have; null where that is unknown. Having all that was seen proves nothing about later commits.
 */
export function lossForecast(bytes: number | null): { message: string; hint: string } {
  if (bytes === null)
    return {
      message: 'how much would be lost is unknown',
      hint: 'Name the accepted loss, in bytes.',
    }
  if (bytes === 0)
    return {
      message: 'commits after the last report of the primary may be lost',
      hint: 'The standby has everything that the primary last reported. Name the accepted loss, in bytes: 0 refuses the failover if the primary turns out to have more.',
    }
  return {
    message: `about ${exactBytes(bytes)} of WAL would be lost`,
    hint: 'Name the accepted loss, in bytes.',
  }
}
