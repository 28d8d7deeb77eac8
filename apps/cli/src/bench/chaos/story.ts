import { appendFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

/** What happened in each round, line by line, in a file of its own; the lines of the present round are kept at hand. */
export class Story {
  readonly file: string
  #round: string[] = []
  #began = performance.now()

  constructor(directory: string, name: string) {
    mkdirSync(directory, { recursive: true })
    this.file = join(directory, `${name}-${new Date().toISOString().replace(/[-:]|\.\d+Z/g, '')}.log`)
  }

  begin(title: string): void {
    this.#round = []
    this.#began = performance.now()
    appendFileSync(this.file, `\n${title}\n`)
  }

  tell(line: string): void {
    const told = `  ${((performance.now() - this.#began) / 1000).toFixed(1).padStart(6)} s  ${line}`
    this.#round.push(told)
    appendFileSync(this.file, `${told}\n`)
  }

  /** The present round's. */
  get lines(): readonly string[] {
    return this.#round
  }
}
