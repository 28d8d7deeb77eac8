import { writeFileSync } from 'node:fs'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'
import { firstLine, type TestFile, type TestRun } from './test-files'

/** The variable that names the file which the report is written to. */
export const reportVariable = 'FLOE_TEST_REPORT'

/**
 * Vitest's reporter for `./floe test`. Its own JSON report leaves out what hooks took and why they failed.
 */
export default class FilesReporter implements Reporter {
  private readonly began = new Map<string, number>()
  private readonly took = new Map<string, number>()

  onTestModuleQueued({ id }: TestModule): void {
    this.began.set(id, Date.now())
  }

  onTestModuleEnd({ id }: TestModule): void {
    this.took.set(id, (Date.now() - (this.began.get(id) ?? Date.now())) / 1000)
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const run: TestRun = {
      files: modules.map((module) => this.fileOf(module)),
      faults: unhandled.map(({ message }) => firstLine(message)),
    }
    writeFileSync(process.env[reportVariable] as string, JSON.stringify(run))
  }

  private fileOf(module: TestModule): TestFile {
    const tests = [...module.children.allTests()].map((test): TestFile['tests'][number] => {
      const { state, errors } = test.result()
      if (state === 'failed')
        return { name: test.fullName, state, message: firstLine(errors[0]?.message ?? '') }
      return { name: test.fullName, state: state === 'passed' ? 'passed' : 'skipped' }
    })
    const file = { file: module.moduleId, seconds: this.took.get(module.id) ?? 0, tests }
    if (module.state() !== 'failed' || tests.some(({ state }) => state === 'failed')) return file
    const errors = [module, ...module.children.allSuites()].flatMap((part) => part.errors())
    return { ...file, fault: firstLine(errors[0]?.message ?? '') }
  }
}
