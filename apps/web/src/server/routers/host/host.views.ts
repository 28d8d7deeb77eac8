import type { EnrolmentView, HostCheckView, HostView } from '@floe/db'
import type { HostId } from '@floe/domain'
import { ms } from '../operation/operation.views'
import type { EnrolmentSummary, HostCheckShown, HostSummary } from './host.types'

/** `ownHostId`: of the console's own machine. */
export function hostSummary({ createdAt: _createdAt, ...host }: HostView, ownHostId: string): HostSummary {
  return {
    ...host,
    hostId: host.hostId as HostId,
    own: host.hostId === ownHostId,
    observedAt: ms(host.observedAt),
    enrolledAt: ms(host.enrolledAt),
    revokedAt: ms(host.revokedAt),
    certificateEndsAt: ms(host.certificateEndsAt),
    // not known before its agent answered for the first time
    capabilities: host.capabilities ?? [],
  }
}

export function enrolmentSummary(enrolment: EnrolmentView): EnrolmentSummary {
  return {
    ...enrolment,
    hostId: enrolment.hostId as HostId,
    createdAt: enrolment.createdAt.getTime(),
    expiresAt: enrolment.expiresAt.getTime(),
  }
}

export const hostCheckShown = ({ last, failed, openSince }: HostCheckView): HostCheckShown => ({
  last: last && { ...last, at: last.at.getTime() },
  failed: failed && { ...failed, at: failed.at.getTime() },
  openSince: ms(openSince),
})
