const LEAST = 1_024
const MOST = 65_535

/** A port to begin with: an instance's ports are consecutive, so that this one is another instance's neither. */
export const suggestedPort = (port: number): number => (port + 1_000 <= MOST ? port + 1_000 : port - 1_000)

/** What is wrong with a port that was typed; null where nothing is. */
export function portProblem(text: string, instancePort: number): string | null {
  const port = /^\d{1,5}$/.test(text.trim()) ? Number(text) : Number.NaN
  if (!(port >= LEAST && port <= MOST)) return `Must be a number from ${LEAST} to ${MOST}.`
  return port === instancePort ? 'This is the instance’s own port.' : null
}
