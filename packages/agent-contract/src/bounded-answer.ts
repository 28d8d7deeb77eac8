import { fault } from '@floe/domain'

/** More than any answer has: 3,600 samples, or 600 of each of ten instances. */
export const ANSWER_MAX_BYTES = 32 * 1024 * 1024
/** More than any event of a stream has. */
export const EVENT_MAX_BYTES = 1024 * 1024

const LINE_END = 0x0a

/** A body that ends with a fault once it has too many bytes: in all, or since the last end of a line. */
function bounded(body: ReadableStream<Uint8Array>, most: number, of: 'all' | 'line') {
  let bytes = 0
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const end = of === 'line' ? chunk.lastIndexOf(LINE_END) : -1
        bytes = end < 0 ? bytes + chunk.byteLength : chunk.byteLength - end - 1
        if (bytes > most)
          controller.error(
            fault('agent.answer_too_large', 'the agent’s answer is too large', {
              detail: `It has more than ${most / 1024 ** 2} MB and was not read to its end.`,
              hint: 'An agent does not answer so. Look at what answers at its address.',
            }),
          )
        else controller.enqueue(chunk)
      },
    }),
  )
}

type Answered = { status: number; headers: Iterable<[string, string]>; body: unknown }

/** An agent's answer, of which no more is read than an agent ever says: its host may be anybody's. */
export function boundedAnswer(
  { status, headers, body }: Answered,
  of: 'all' | 'line',
  most = of === 'all' ? ANSWER_MAX_BYTES : EVENT_MAX_BYTES,
): Response {
  const read = body ? bounded(body as ReadableStream<Uint8Array>, most, of) : null
  return new Response(read, { status, headers: [...headers] })
}
