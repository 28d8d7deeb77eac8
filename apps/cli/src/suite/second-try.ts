import type { SuiteContext } from './suite'
import type { TestFile, TestRun } from './test-files'

/** More failed files than this are no accident: none is tried again. */
const MOST_BY_CHANCE = 5

/** A run of which each file can be run again, alone. */
export type RepeatableRun = TestRun & { again: (file: string) => Promise<TestRun> }

const hasFailed = ({ tests, fault }: TestFile) =>
  fault !== undefined || tests.some(({ state }) => state === 'failed')

/**
 * A file by both of its runs, and a line for each test that passed in only one of them. What passed once counts as passed;
 * what failed twice, or failed and was not seen to pass, has failed.
 */
export function bothTries(first: TestFile, run: TestRun): { file: TestFile; flaky: string[] } {
  const second = run.files.find(({ file }) => file === first.file)
  if (!second || run.faults.length > 0) return { file: first, flaky: [] }
  const flaky: string[] = []
  const once = (what: string, message: string | undefined) =>
    flaky.push(`${what}: failed once with ${message}, passed at the second try`)
  const atLast = (what: string, message: string | undefined) =>
    flaky.push(`${what}: passed, and failed at the second try with ${message}`)

  // hooks that failed had tests skipped, or not seen at all; otherwise what was not asked for stays out
  const unseen = first.fault !== undefined
  // several tests of a file may have one name; they come in the same order
  const left = [...second.tests]
  const tests = first.tests.map((test) => {
    const at = left.findIndex(({ name }) => name === test.name)
    const [again] = at < 0 ? [] : left.splice(at, 1)
    const what = `${first.file} > ${test.name}`
    if (test.state === 'skipped') return unseen && again ? again : test
    if (test.state === 'passed') {
      if (again?.state === 'failed') atLast(what, again.message)
      return test
    }
    if (again?.state !== 'passed') return test
    once(what, test.message)
    return again
  })
  if (unseen && second.fault === undefined) once(first.file, first.fault)
  if (!unseen && second.fault !== undefined) atLast(first.file, second.fault)
  if (!unseen) return { file: { ...first, tests }, flaky }
  const { file, seconds } = first
  return {
    file: { file, seconds, tests: [...tests, ...left], ...(second.fault && { fault: second.fault }) },
    flaky,
  }
}

/** The runs of a suite that has ended, with each file that failed run again, alone, and judged by both runs. */
export async function triedTwice(
  context: Pick<SuiteContext, 'log' | 'say' | 'flaky'>,
  runs: RepeatableRun[],
): Promise<TestRun[]> {
  const failed = runs.flatMap(({ files }) => files.filter(hasFailed)).length
  if (failed > MOST_BY_CHANCE) {
    context.say(`${failed} files failed, which is no accident: none is tried again`)
    return runs
  }
  const judged: TestRun[] = []
  for (const { files, faults, again } of runs) {
    const settled: TestFile[] = []
    for (const file of files) {
      if (!hasFailed(file)) {
        settled.push(file)
        continue
      }
      context.log(`\nsecond try of ${file.file}, alone`)
      const both = bothTries(file, await again(file.file))
      for (const line of both.flaky) context.flaky(line)
      settled.push(both.file)
    }
    judged.push({ files: settled, faults })
  }
  return judged
}
