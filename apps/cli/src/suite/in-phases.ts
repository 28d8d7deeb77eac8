import type { Suite } from './suite'

/**
 * Runs suites, two at a time: each has programs that run at once, and waits. One lane begins with those that read the
 * checkout, the other one with those that need the users of instances to themselves. As soon as none of the latter is left,
 * each lane goes on with the others, in the order given.
 */
export async function inPhases<C extends { suite: Pick<Suite, 'needs'> }, R>(
  chosen: readonly C[],
  run: (one: C) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const that = (needs: Suite['needs']) => chosen.filter(({ suite }) => suite.needs === needs)
  const runAll = async (left: C[]) => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) results.push(await run(one))
  }
  const others = that('own')
  const alone = runAll(that('users'))
  await Promise.all([
    alone.then(() => runAll(others)),
    runAll(that('checkout'))
      .then(() => alone)
      .then(() => runAll(others)),
  ])
  return results
}
