import { type CheckedSetting, type Fault, inSafeModules } from '@floe/domain'
import type { TrialResult } from './trial'

/** As the engine says it at its start where there is a shared port, once for each library that it does not know. */
const said =
  /LOG: {2}sessions of "polar_ss_port" stay with their backends because of library "([\w.+-]{1,100})"$/gm

const LIBRARIES_MAX = 20

/** Changes that decide whether a library pins sessions, the one to warn at first. */
const deciding = [
  'shared_preload_libraries',
  'polar_ss_safe_modules',
  'polar_enable_shared_server',
  'polar_ss_port',
]

/** What a trial is asked for this, besides the changes. */
export const SHARED_SERVER_SWITCH = 'polar_enable_shared_server'

/**
 * Warns of libraries that would keep every session with its backend, so that Shared Server gains nothing: otherwise that shows
 * only when somebody waits for a worker.
 */
export function warnOfPinning(results: readonly CheckedSetting[], trial: TrialResult): void {
  if (!trial.starts || trial.settings.find((s) => s.name === SHARED_SERVER_SWITCH)?.value !== 'on') return
  const libraries = [...new Set([...trial.log.matchAll(said)].map((match) => match[1] as string))]
  const [changed] = deciding.flatMap((name) => results.filter((r) => r.name.toLowerCase() === name))
  if (changed && libraries.length > 0) changed.warning = pinningWarning(libraries.slice(0, LIBRARIES_MAX))
}

const pinningWarning = (libraries: readonly string[]): Fault => ({
  code: 'setting.pins_sessions',
  message: `no session of the shared port would share its backend, because of ${
    libraries.length === 1 ? 'library' : 'libraries'
  } ${libraries.map((name) => `"${name}"`).join(', ')}`,
  detail:
    'shared_preload_libraries loads what the engine does not know: it may keep something of a session that another backend does not have.',
  hint: `If it keeps nothing but settings, add it to polar_ss_safe_modules (a reload): ${inSafeModules(libraries)}. Otherwise remove it from shared_preload_libraries, or leave Shared Server off.`,
})
