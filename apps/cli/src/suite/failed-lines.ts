/** A line that names a failure, by who writes it: Vitest, TAP, Playwright, tsc, Biome and others. */
const named = [
  /^ FAIL {2}/,
  /^failed: /,
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
    // the engine's tool bounds what it shows of a failure, and indents it
    const ofEngine = /^failed: /.test(line)
    const follow = ofEngine ? AT_MOST : /^not ok/.test(line) ? 0 : FOLLOWING
    for (let n = i; n <= Math.min(i + follow, lines.length - 1); n++) {
      if (ofEngine && n > i && !lines[n]?.startsWith('  ')) break
      if (lines[n] !== '') shown.add(n)
    }
  })
  const found = [...shown].sort((a, b) => a - b).map((i) => lines[i] as string)
  if (found.length === 0) return lines.filter((line) => line !== '').slice(-10)
  const rest = found.length - AT_MOST
  return rest > 0 ? [...found.slice(0, AT_MOST), `(${rest} more lines)`] : found
}

/** How many failures of one suite are named at the end of a run. */
const NAMED = 40

/**
 * The failures of a suite as the end of a run names them: those that it named itself (`file > test: message`), else what
 * its log shows first.
 */
export function failureLines(suite: string, named: readonly string[], shown: readonly string[]): string[] {
  const lines = named.length > 0 ? named : [shown[0]?.trim() ?? 'it left no word of it']
  const rest = lines.length - NAMED
  const kept = rest > 0 ? [...lines.slice(0, NAMED), `${rest} more`] : lines
  return kept.map((line) => `${suite}: ${line}`)
}
