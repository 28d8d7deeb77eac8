import type { AgentHandlers } from '@floe/agent-contract'
import type { Sample } from '@floe/telemetry'
import type { Instances } from '../engine/instances'
import type { Sampler } from '../sampler/sampler'

/** A reader slower than this many samples gets them from the ring instead. */
const QUEUE_MAX = 60
const PAGE = 300

/**
 * Samples after a number, without gap or repetition: first from the ring, then each as it is taken. Without a number it
 * begins with the next one. Ends when the caller goes away.
 */
export async function* streamSamples(
  sampler: Sampler,
  afterSeq: number | null,
  signal: AbortSignal | undefined,
): AsyncGenerator<Sample> {
  let last = afterSeq ?? sampler.ring.newestSeq ?? -1
  let queue: Sample[] = []
  let behind = true
  let wake = () => {}
  const unsubscribe = sampler.subscribe((sample) => {
    if (queue.length < QUEUE_MAX) queue.push(sample)
    else {
      queue = []
      behind = true
    }
    wake()
  })
  const onAbort = () => wake()
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    while (!signal?.aborted) {
      if (behind) {
        const page = sampler.ring.read(last, PAGE)
        behind = page.length === PAGE
        for (const sample of page) {
          last = sample.seq
          yield sample
        }
        continue
      }
      const sample = queue.shift()
      if (!sample) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        continue
      }
      if (sample.seq <= last) continue
      last = sample.seq
      yield sample
    }
  } finally {
    signal?.removeEventListener('abort', onAbort)
    unsubscribe()
  }
}

export const telemetryHandlers = (
  instances: Instances,
): Pick<AgentHandlers, 'readTelemetry' | 'streamTelemetry'> => ({
  async readTelemetry({ instanceId, afterSeq, limit }) {
    const { ring } = instances.get(instanceId).sampler
    return { samples: ring.read(afterSeq, limit), oldestSeq: ring.oldestSeq, newestSeq: ring.newestSeq }
  },
  streamTelemetry: ({ instanceId, afterSeq }, signal) =>
    streamSamples(instances.get(instanceId).sampler, afterSeq, signal),
})
