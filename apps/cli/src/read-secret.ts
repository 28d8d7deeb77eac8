import { readFileSync } from 'node:fs'
import type { FaultError } from '@floe/domain'

const BYTES_MAX = 1_024

/**
 * One secret of a file, or of standard input ("-"), without the newline at its end; `refuse` makes the fault. A secret is never
 * an argument: those stand in the list of processes.
 */
export function readSecret(file: string, refuse: (detail: string, hint: string) => FaultError): string {
  let text: string
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8').replace(/\r?\n$/, '')
  } catch (cause) {
    throw refuse(
      cause instanceof Error ? cause.message : String(cause),
      'Name a readable file, or "-" for standard input.',
    )
  }
  if (text === '' || Buffer.byteLength(text) > BYTES_MAX || /[\r\n\0]/.test(text))
    throw refuse(
      text === '' ? 'The input is empty.' : `What was read is not one line of at most ${BYTES_MAX} bytes.`,
      'The file, or standard input, must hold the secret and nothing else.',
    )
  return text
}
