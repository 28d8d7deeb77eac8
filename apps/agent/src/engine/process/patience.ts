import type { Socket } from 'node:net'
import { fault } from '@floe/domain'
import type pg from 'pg'

/** An engine that answers nothing for so long hangs. */
const ANSWER_MS = 15_000

/** What an engine answers within the time that one may take that does not hang; throws `instance.no_answer`. */
export async function answered<T>(answer: Promise<T>, withinMs = ANSWER_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const seconds = withinMs / 1_000
      reject(
        fault('instance.no_answer', `the instance has not answered for ${seconds} s`, {
          hint: 'Its log says why.',
        }),
      )
    }, withinMs)
  })
  return Promise.race([answer, late]).finally(() => clearTimeout(timer))
}

/** Ends a connection without a word to the engine, which might not read it. */
export const abandon = (client: pg.Client) =>
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy()
