import { fault } from '@floe/domain'
import { exitStatusOf, printFault } from './output'

/** What a shell reports of a program that SIGPIPE ended, as the shell's own tools end when their reader is gone. */
const ENDED_BY_SIGPIPE = 141

/**
 * Ends the process when its output can no longer be written: without a word where the reader has gone (`| head`, a `less`
 * that was quit), else with the reason (a full disk).
 */
export function endWithOutput(): void {
  const end = (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(ENDED_BY_SIGPIPE)
    const failure = fault('output.not_written', 'could not write the output', { detail: error.message })
    printFault(failure.fault, false)
    process.exit(exitStatusOf(failure))
  }
  process.stdout.on('error', end)
  process.stderr.on('error', (error: NodeJS.ErrnoException) =>
    process.exit(error.code === 'EPIPE' ? ENDED_BY_SIGPIPE : 1),
  )
}
