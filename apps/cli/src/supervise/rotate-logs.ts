import { copyFileSync, existsSync, readdirSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import type { Home } from '../installation/home'

const LOG_BYTES_MAX = 20 * 1024 * 1024
const LOGS_KEPT = 3
const RUN_LOGS_KEPT = 20
const LOOK_MS = 60_000

/**
 * Rotates one log when it is too large. The process that writes it has it open for appending and keeps it, so the text is
 * copied away and the file emptied; what is written in between (a line or two) may be lost.
 */
export function rotateLog(file: string, bytesMax = LOG_BYTES_MAX, kept = LOGS_KEPT): boolean {
  if (!existsSync(file) || statSync(file).size <= bytesMax) return false
  rmSync(`${file}.${kept}`, { force: true })
  for (let i = kept - 1; i >= 1; i--)
    if (existsSync(`${file}.${i}`)) renameSync(`${file}.${i}`, `${file}.${i + 1}`)
  copyFileSync(file, `${file}.1`)
  truncateSync(file, 0)
  return true
}

/** Removes the oldest logs of finished runs (`up-….log`, `test-…/`), keeping the newest. */
export function forgetRunLogs(directory: string, kept = RUN_LOGS_KEPT): void {
  const runs = readdirSync(directory).filter((name) => /^[a-z]+-\d{8}T\d{6}(\.log)?$/.test(name))
  runs.sort((a, b) => a.slice(a.indexOf('-')).localeCompare(b.slice(b.indexOf('-'))))
  for (const name of runs.slice(0, Math.max(0, runs.length - kept)))
    rmSync(join(directory, name), { recursive: true, force: true })
}

/** Looks at the installation's logs once a minute. */
export function keepLogsSmall(
  home: Home,
  say: (event: string, fields?: Record<string, unknown>) => void,
): void {
  const look = () => {
    try {
      for (const name of ['control-database', 'agent', 'controller', 'web', 'supervisor'])
        if (rotateLog(join(home.log, `${name}.log`))) say('log.rotated', { name })
      forgetRunLogs(home.log)
    } catch (error) {
      say('log.not_rotated', { error: String(error) })
    }
  }
  look()
  setInterval(look, LOOK_MS)
}
