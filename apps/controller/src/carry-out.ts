import { type LoopOptions, runLoop, type Wake } from './loop'

/** So many at a time, of one kind. */
const AT_ONCE = 16

/**
 * A loop that takes what was asked for, as much as it may carry out beside what it is at, and looks again as soon as it may
 * take more. Ends once all that it began has ended.
 */
export async function carryOutWhatIsTaken<Asked>(
  loop: LoopOptions & { wake: Wake },
  take: (limit: number) => Promise<Asked[]>,
  carryOut: (asked: Asked) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>()
  await runLoop(loop, async () => {
    const limit = AT_ONCE - running.size
    if (limit <= 0) return
    for (const asked of await take(limit)) {
      const run = carryOut(asked)
        .catch((error: unknown) => loop.database.missed(error))
        .finally(() => {
          running.delete(run)
          if (running.size === AT_ONCE - 1) loop.wake.now()
        })
      running.add(run)
    }
  })
  await Promise.all(running)
}
