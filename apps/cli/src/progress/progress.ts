import { appendFileSync } from 'node:fs'
import type { Durations } from './durations'

/** One step of a long command. `seconds` is what it takes where nothing is remembered. */
export type Step = {
  name: string
  title: string
  seconds: number
  run: (report: StepReport) => Promise<void>
}

export type StepReport = {
  /** What the step does now, shown beside its title. */
  now(text: string): void
  /** A line for the log only. */
  log(line: string): void
}

/** `1:05` */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}

/** Seconds that are probably left: what the step may still take, and all that follow. Never less than nothing. */
export function estimateLeft(stepExpected: number, stepElapsed: number, following: number[]): number {
  return Math.max(0, stepExpected - stepElapsed) + following.reduce((sum, s) => sum + s, 0)
}

/**
 * Runs steps and shows which one runs, the time so far and an estimate of what is left: one moving line on a terminal,
 * else a line when a step begins and every 30 s. Everything also goes to the log.
 */
export class Progress {
  private timer: NodeJS.Timeout | undefined
  private shown = ''
  private readonly out: NodeJS.WriteStream
  private readonly logFile: string
  private readonly durations: Durations
  private readonly startedAt: number

  constructor(options: {
    out: NodeJS.WriteStream
    logFile: string
    durations: Durations
    startedAt: number
  }) {
    this.out = options.out
    this.logFile = options.logFile
    this.durations = options.durations
    this.startedAt = options.startedAt
  }

  log(line: string): void {
    appendFileSync(this.logFile, `${line}\n`)
  }

  elapsed(): number {
    return (Date.now() - this.startedAt) / 1000
  }

  /** A line that stays. */
  say(line: string): void {
    this.clear()
    this.out.write(`floe: ${line}\n`)
    this.log(line)
  }

  private clear(): void {
    if (this.out.isTTY && this.shown !== '') this.out.write('\r\x1b[K')
    this.shown = ''
  }

  private draw(line: string): void {
    const width = this.out.columns ?? 80
    const cut = line.length >= width ? `${line.slice(0, width - 2)}…` : line
    this.clear()
    this.out.write(cut)
    this.shown = cut
  }

  async run(steps: Step[]): Promise<void> {
    const expected = steps.map((step) => this.durations.expected(step.name, step.seconds))
    for (const [i, step] of steps.entries()) {
      const began = Date.now()
      let now = ''
      const line = () => {
        const took = (Date.now() - began) / 1000
        const left = estimateLeft(expected[i] as number, took, expected.slice(i + 1))
        const doing = now === '' ? step.title : `${step.title}: ${now}`
        return `floe: [${i + 1}/${steps.length}] ${doing}  ${clock(this.elapsed())}, about ${clock(left)} left`
      }
      this.log(`\n== ${step.title}`)
      if (this.out.isTTY) {
        this.draw(line())
        this.timer = setInterval(() => this.draw(line()), 250)
      } else if ((expected[i] as number) >= 2) {
        this.out.write(`${line()}\n`)
        this.timer = setInterval(() => this.out.write(`${line()}\n`), 30_000)
      }
      try {
        await step.run({
          now: (text) => {
            now = text
            this.log(text)
          },
          log: (text) => this.log(text),
        })
      } finally {
        clearInterval(this.timer)
        this.clear()
      }
      const took = (Date.now() - began) / 1000
      this.log(`== ${step.title}: ${took.toFixed(1)} s`)
      this.durations.remember(step.name, took)
      if (took >= 2) this.out.write(`floe: ${step.title}: done in ${clock(took)}\n`)
    }
  }
}
