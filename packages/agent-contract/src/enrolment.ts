import { HostId } from '@floe/domain'
import { z } from 'zod'

/** Where the console takes requests of hosts that want to be enrolled, below its address. */
export const ENROLMENT_PATH = '/api/enrol'

/**
 * The only thing an agent ever sends to a console: a certificate request, signed by the one-time token's key. The same
 * request may be sent again until it is answered; another one by the same token is refused.
 */
export const EnrolmentRequest = z.object({
  /** PKCS#10 in PEM, by a key that the agent made and keeps. */
  request: z.string().max(4_000),
  /** Where the agent will answer: `https://ADDRESS:PORT`. */
  agentUrl: z
    .string()
    .max(200)
    .regex(/^https:\/\/([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}$/, 'must be https://ADDRESS:PORT'),
  /** Of the token, and its signature of `enrolmentMessage()`, both base64url. */
  tokenKey: z.string().max(200),
  signature: z.string().max(200),
})
export type EnrolmentRequest = z.infer<typeof EnrolmentRequest>

/** What the token's key signs. */
export const enrolmentMessage = (enrolment: Pick<EnrolmentRequest, 'request' | 'agentUrl'>) =>
  `floe enrolment\n${enrolment.agentUrl}\n${enrolment.request}`

/** `pending`: taken, and not signed yet; ask again. */
export const EnrolmentAnswer = z.discriminatedUnion('state', [
  z.object({ state: z.literal('pending') }),
  z.object({
    state: z.literal('enrolled'),
    installationId: z.uuid(),
    hostId: HostId,
    hostName: z.string(),
    /** PEM of the agent's certificate and of the authority; the agent checks the latter by the fingerprint it was given. */
    certificate: z.string(),
    authority: z.string(),
  }),
])
export type EnrolmentAnswer = z.infer<typeof EnrolmentAnswer>
