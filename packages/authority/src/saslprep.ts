import {
  leftToRight,
  mappedToNothing,
  nonAsciiSpaces,
  prohibited,
  rightToLeft,
  unassigned,
} from './saslprep-ranges'

/** Whether a code point lies in one of some ranges: first and last of each, in order. */
function isIn(ranges: readonly number[], code: number): boolean {
  let [from, to] = [0, ranges.length / 2]
  while (from < to) {
    const middle = (from + to) >> 1
    if (code < (ranges[2 * middle] as number)) to = middle
    else if (code > (ranges[2 * middle + 1] as number)) from = middle + 1
    else return true
  }
  return false
}

/**
 * A password as PostgreSQL and its clients prepare it before they hash it (pg_saslprep(), RFC 4013), so that one that is typed
 * in another form of Unicode is the same password. As there, a password of ASCII, or one that may not be prepared, is taken as
 * it is, and what is prohibited is looked for before the normalisation.
 */
export function preparedPassword(password: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII is all of it
  if (/^[\x00-\x7f]*$/.test(password)) return password
  const mapped = [...password].flatMap((character) => {
    const code = character.codePointAt(0) as number
    if (isIn(nonAsciiSpaces, code)) return [0x20]
    return isIn(mappedToNothing, code) ? [] : [code]
  })
  if (mapped.length === 0 || mapped.some((code) => isIn(prohibited, code) || isIn(unassigned, code)))
    return password
  if (mapped.some((code) => isIn(rightToLeft, code)) && !isBidirectional(mapped)) return password
  return String.fromCodePoint(...mapped).normalize('NFKC')
}

/** RFC 3454, section 6: what has characters that run right to left begins and ends with one, and has none that run otherwise. */
const isBidirectional = (codes: readonly number[]): boolean =>
  !codes.some((code) => isIn(leftToRight, code)) &&
  [codes[0], codes.at(-1)].every((code) => isIn(rightToLeft, code as number))
