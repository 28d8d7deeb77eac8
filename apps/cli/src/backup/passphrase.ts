import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { fault } from '@floe/domain'

/** Who has the file can try passphrases for ever: a short one would be found. */
const LENGTH_MIN = 12
const BYTES_MAX = 1_024

const noPassphrase = (detail: string, hint: string) =>
  fault('usage.no_passphrase', 'there is no passphrase for the backup', { detail, hint })

/**
 * The passphrase: of a file, or of standard input ("-"), without the newline at its end; else a person at the terminal is
 * asked, twice where a file is about to be encrypted with it.
 */
export async function readPassphrase(file: string | undefined, purpose: 'new' | 'known'): Promise<string> {
  const text = file === undefined ? await askPassphrase(purpose) : readFromFile(file)
  if (purpose === 'new' && [...text].length < LENGTH_MIN)
    throw noPassphrase(
      `It has fewer than ${LENGTH_MIN} characters.`,
      'Four random words, or 16 random letters and digits, are enough.',
    )
  return text
}

function readFromFile(file: string): string {
  let text: string
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8').replace(/\r?\n$/, '')
  } catch (cause) {
    throw noPassphrase(
      cause instanceof Error ? cause.message : String(cause),
      'Name a readable file, or "-" for standard input.',
    )
  }
  if (text === '' || Buffer.byteLength(text) > BYTES_MAX || /[\r\n\0]/.test(text))
    throw noPassphrase(
      text === '' ? 'The input is empty.' : 'What was read is not one line of a passphrase’s length.',
      'The file, or standard input, must hold the passphrase and nothing else.',
    )
  return text
}

async function askPassphrase(purpose: 'new' | 'known'): Promise<string> {
  if (!process.stdin.isTTY)
    throw noPassphrase(
      'Standard input is no terminal to ask at.',
      'Give --passphrase-file FILE; "-" reads it from standard input.',
    )
  const first = await ask('Passphrase: ')
  if (purpose === 'new' && (await ask('Again: ')) !== first)
    throw noPassphrase('The two are not the same.', 'Try again.')
  return first
}

/** Asks without showing what is typed. */
function ask(question: string): Promise<string> {
  process.stderr.write(question)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  return new Promise((resolve, reject) => {
    terminal.once('SIGINT', () => {
      process.stderr.write('\n')
      terminal.close()
      reject(noPassphrase('It was not typed.', 'Try again.'))
    })
    terminal.question('', (text) => {
      process.stderr.write('\n')
      terminal.close()
      resolve(text)
    })
  })
}
