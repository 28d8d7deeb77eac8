import { PASSPHRASE_MIN } from '@/server/api'

export type Strength = { word: 'too short' | 'weak' | 'fair' | 'strong'; hint: string }

/** How hard a passphrase is to guess, by its length and how varied it is: length is worth more than odd characters. */
export function passphraseStrength(passphrase: string): Strength {
  if (passphrase.length < PASSPHRASE_MIN)
    return { word: 'too short', hint: `At least ${PASSPHRASE_MIN} characters.` }
  const varied = new Set(passphrase.toLowerCase()).size
  const kinds = [/\p{Ll}/u, /\p{Lu}/u, /\p{N}/u, /[^\p{L}\p{N}]/u].filter((kind) =>
    kind.test(passphrase),
  ).length
  const words = passphrase.split(/[^\p{L}\p{N}]+/u).filter((word) => word.length > 2).length
  if (varied < 6) return { word: 'weak', hint: 'It repeats few characters.' }
  if (passphrase.length >= 20 && (words >= 4 || kinds >= 3)) return { word: 'strong', hint: 'Hard to guess.' }
  if (passphrase.length >= 16 || kinds >= 3) return { word: 'fair', hint: 'Another word makes it strong.' }
  return { word: 'weak', hint: 'Four or more random words are easy to remember and hard to guess.' }
}
