import { z } from 'zod'
import { ClusterSummary } from './cluster.types'

export const ClusterList = z.object({ clusters: z.array(ClusterSummary), now: z.number() })
