import { z } from 'zod'
import { EnrolmentSummary, HostSummary } from './host.types'

export const HostList = z.object({
  hosts: z.array(HostSummary),
  /** Tokens that are waited for, or that came to nothing within the last hour. */
  enrolments: z.array(EnrolmentSummary),
  now: z.number(),
})
