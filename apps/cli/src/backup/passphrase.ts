import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { fault } from '@floe/domain'
import { readSecret } from '../read-secret'

/** Who has the file can try passphrases for ever: a short one would be found. */
const LENGTH_MIN = 12

const noPassphrase = (detail: string, hint: string) =>
  fault('usage.no_passphrase', 'there is no passphrase for the backup', { detail, hint })

/**
 * The passphrase: of a file, or of standard input ("-"), without the newline at its end; else a person at the terminal is
 * asked, twice where a file is about to be encrypted with it.
 */
export async function readPassphrase(file: string | undefined, purpose: 'new' | 'known'): Promise<string> {
  const text = file === undefined ? await askPassphrase(purpose) : readSecret(file, noPassphrase)
  if (purpose === 'new' && [...text].length < LENGTH_MIN)
    throw noPassphrase(
      `It has fewer than ${LENGTH_MIN} characters.`,
      'Four random words, or 16 random letters and digits, are enough.',
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
