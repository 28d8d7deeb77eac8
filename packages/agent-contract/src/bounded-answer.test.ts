import { expect, test } from 'vitest'
import { boundedAnswer } from './bounded-answer'

/** A body that never ends by itself, and whether its reader has turned away. */
function endless(piece: string) {
  const state = { sent: 0, cancelled: false }
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const bytes = new TextEncoder().encode(piece)
      state.sent += bytes.length
      controller.enqueue(bytes)
    },
    cancel() {
      state.cancelled = true
    },
  })
  return { answer: new Response(body), state }
}

test('an answer without an end is not read to its end', async () => {
  const { answer, state } = endless('x'.repeat(1_000))
  await expect(boundedAnswer(answer, 'all', 10_000).text()).rejects.toThrow('too large')
  expect(state.cancelled).toBe(true)
  expect(state.sent).toBeLessThan(20_000)
})

test('a stream may go on for ever, but no event of it', async () => {
  const lines = endless(`${'x'.repeat(900)}\n${'x'.repeat(900)}`)
  const reader = boundedAnswer(lines.answer, 'line', 2_000).body?.getReader()
  for (let i = 0; i < 100; i++) expect((await reader?.read())?.done).toBe(false)
  await reader?.cancel()
  const { answer, state } = endless('x'.repeat(1_000))
  await expect(boundedAnswer(answer, 'line', 10_000).text()).rejects.toThrow('too large')
  expect(state.cancelled).toBe(true)
})

test('an answer within bounds is as it was', async () => {
  const said = boundedAnswer(new Response('{"a":1}', { status: 400, headers: { 'x-a': 'b' } }), 'all')
  expect([said.status, said.headers.get('x-a'), await said.json()]).toEqual([400, 'b', { a: 1 }])
})
