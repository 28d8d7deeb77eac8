/** A line that names a failure, by who writes it: Vitest, TAP, Playwright, tsc, Biome and others. */
const named = [
  /^ FAIL {2}/,
  /^not ok \d+/,
  /^ +\d+\) .+ › /,
  /error TS\d+:/,
  /^(?:\S+: )?(?:error|FATAL): /i,
  /^× /,
]
/** How much of what follows is shown: the message, and where it was thrown. */
const FOLLOWING = 8
const AT_MOST = 60

/** The failures in a suite's log, for readers who see only the output of the run; without any, its last lines. */
export function failedLines(log: string): string[] {
  const lines = log.split('\n').map((line) => line.trimEnd())
  const shown = new Set<number>()
  lines.forEach((line, i) => {
    if (!named.some((pattern) => pattern.test(line))) return
    const follow = /^not ok/.test(line) ? 0 : FOLLOWING
    for (let n = i; n <= Math.min(i + follow, lines.length - 1); n++) if (lines[n] !== '') shown.add(n)
  })
  const found = [...shown].sort((a, b) => a - b).map((i) => lines[i] as string)
  if (found.length === 0) return lines.filter((line) => line !== '').slice(-10)
  const rest = found.length - AT_MOST
  return rest > 0 ? [...found.slice(0, AT_MOST), `(${rest} more lines)`] : found
}
