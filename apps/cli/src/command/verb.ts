import { isIP } from 'node:net'
import { type Command, InvalidArgumentError } from 'commander'
import { idempotencyKey } from '../console/submit-once'

/** A verb of the command line: every one has --json. `run` gets the arguments, then the options. */
export function verb(
  parent: Command,
  usage: string,
  summary: string,
  about?: string,
  options: { hidden?: boolean } = {},
): Command {
  const command = parent
    .command(usage, options)
    .summary(summary)
    .description(about ?? `${summary}.`)
  return command.option('--json', 'print the result as JSON')
}

/** A verb that submits an operation: it also takes the key by which it can be repeated without doing it twice. */
export const submittingVerb = (...of: Parameters<typeof verb>): Command =>
  verb(...of).option(
    '--idempotency-key <key>',
    'return the operation that an earlier call with this key started, or start it',
    idempotencyKey,
  )

/** What every verb that submits an operation accepts. */
export type Submitting = { json?: boolean; wait: boolean; idempotencyKey?: string }

/** Parses a whole number of a range. */
export function wholeNumber(from: number, to: number) {
  return (text: string): number => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < from || value > to)
      throw new InvalidArgumentError(`It must be a whole number from ${from} to ${to}.`)
    return value
  }
}

export const port = wholeNumber(1, 65_535)

/** `5500-5999` */
export function portRange(text: string): { from: number; to: number } {
  const match = text.match(/^(\d+)-(\d+)$/)
  if (!match) throw new InvalidArgumentError('It must be two ports, e.g. 5500-5999.')
  const [from, to] = [port(match[1] as string), port(match[2] as string)]
  if (from > to) throw new InvalidArgumentError('The first port must not be greater than the last.')
  return { from, to }
}

/** An IP address that names one host, e.g. `10.0.0.4`. */
export function hostAddress(text: string): string {
  if (isIP(text) === 0 || text === '0.0.0.0' || text === '::')
    throw new InvalidArgumentError('It must be an IP address of this host, e.g. 10.0.0.4.')
  return text
}

/** Addresses or networks of proxies, gathered: `10.0.0.7`, `fd00::/64`. */
export function proxyAddress(text: string, before: string[] = []): string[] {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const most = isIP(address) === 6 ? 128 : 32
  if (isIP(address) === 0 || Number(bits ?? most) > most)
    throw new InvalidArgumentError('It must be an IP address or a network, e.g. 127.0.0.1 or fd00::/64.')
  return [...before, text]
}

/** `name=value`, gathered over repeated options. The value may be empty or hold further equals signs. */
export function assignment(text: string, before: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('It must be name=value.')
  return { ...before, [text.slice(0, at).trim()]: text.slice(at + 1).trim() }
}

/** One of a few words. */
export function oneOf<const T extends string>(...words: T[]) {
  return (text: string): T => {
    const found = words.find((word) => word === text)
    if (found === undefined) throw new InvalidArgumentError(`It must be one of: ${words.join(', ')}.`)
    return found
  }
}
