import { InstanceId } from '@floe/domain'
import { z } from 'zod'
import { LiveSample } from './stream.types'

export const TelemetryLatestInput = z.object({ instanceIds: z.array(InstanceId).min(1).max(100) })
/** The newest stored sample of each instance that has one. */
export const TelemetryLatest = z.object({ samples: z.array(LiveSample), now: z.number() })
