import { expect, test } from 'vitest'
import { Choices, ClusterModel, type Seen, Violation } from './testing/cluster-model'

/** Compared verdicts; --long compares a million, FLOE_TEST_CASES as many as it says. */
const CASES = Number(process.env.FLOE_TEST_CASES ?? (process.env.FLOE_TEST_LONG ? 1_000_000 : 100_000))
const SEED = Number(process.env.FLOE_TEST_SEED ?? 1)
const STEPS = 40

/** Plays one history; answers how many verdicts were compared, or what was wrong. */
function play(choices: Choices, seen: Seen): { compared: number; violation?: string; story: string[] } {
  let model: ClusterModel | undefined
  let compared = 0
  try {
    model = new ClusterModel(choices, seen)
    for (let i = 0; i < STEPS; i++) {
      model.step()
      if (i % 2 === 1) compared += model.check()
    }
    return { compared, story: model.story }
  } catch (error) {
    if (!(error instanceof Violation)) throw error
    return { compared, violation: error.message, story: model?.story ?? [] }
  }
}

/** The shortest choices found that still end in a violation. */
function shrink(choices: readonly number[]): readonly number[] {
  const fails = (tried: readonly number[]) => play(new Choices(tried), {}).violation !== undefined
  let best = choices
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best.length; ) {
      const without = [...best.slice(0, at), ...best.slice(at + size)]
      if (fails(without)) best = without
      else at += size
    }
  }
  return best
}

test(`of ${CASES.toLocaleString('en-US')} verdicts over random histories none claims more than is true`, () => {
  const seen: Seen = {}
  let compared = 0
  for (let n = 0; compared < CASES; n++) {
    const choices = new Choices(SEED * 1_000_003 + n)
    const played = play(choices, seen)
    compared += played.compared
    if (played.violation === undefined) continue
    const shortest = play(new Choices(shrink(choices.taken)), {})
    throw new Error(`history ${n} of seed ${SEED}:\n${shortest.story.join('\n')}\n${shortest.violation}`)
  }
  console.log(
    Object.entries(seen)
      .map(([word, count]) => `${word}: ${count.toLocaleString('en-US')}`)
      .join('; '),
  )
  // a test that never sees a verdict of some sort proves nothing of it
  for (const word of [
    'proven by disk',
    'proven by standbys',
    'bounded',
    'unknown',
    'unsettled, proven',
    'unsettled, unknown',
    'unsettled, bounded',
    'several sets, proven',
    'something is lost',
  ])
    expect(seen[word] ?? 0, word).toBeGreaterThan(CASES / 1_000)
}, 600_000)
