import type { Suite } from './suite'

/** Suites with private installations that run beside each other: each has programs that run at once, and waits. */
const BESIDE = 2

/**
 * Runs suites: first those that read the checkout, one after another, beside those that need the users of instances to
 * themselves; then the others, so many at a time, each as soon as there is room, in the order given.
 */
export async function inPhases<C extends { suite: Pick<Suite, 'needs'> }, R>(
  chosen: readonly C[],
  run: (one: C) => Promise<R>,
): Promise<R[]> {
  const that = (needs: Suite['needs']) => chosen.filter(({ suite }) => suite.needs === needs)
  const first = await Promise.all([upTo(1, that('checkout'), run), upTo(1, that('users'), run)])
  return [...first.flat(), ...(await upTo(BESIDE, that('own'), run))]
}

/** Runs at most so many at a time, and begins them in order. */
async function upTo<C, R>(most: number, all: readonly C[], run: (one: C) => Promise<R>): Promise<R[]> {
  const left = [...all]
  const results: R[] = []
  const lane = async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) results.push(await run(one))
  }
  await Promise.all(Array.from({ length: most }, lane))
  return results
}
