/** Where text is that PostgreSQL cannot store: U+0000, or half of a surrogate pair. Null when there is none. */
export function unstorableText(value: unknown, path: readonly string[] = []): string | null {
  if (typeof value === 'string') return isStorable(value) ? null : path.join('.') || 'input'
  if (typeof value !== 'object' || value === null) return null
  for (const [key, inner] of Object.entries(value)) {
    if (!isStorable(key)) return path.join('.') || 'input'
    const found = unstorableText(inner, [...path, key])
    if (found !== null) return found
  }
  return null
}

const isStorable = (text: string) => !text.includes('\0') && text.isWellFormed()
