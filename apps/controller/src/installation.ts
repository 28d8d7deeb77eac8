import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fault, Installation, secretFiles } from '@floe/domain'

export type ControllerInstallation = Installation & {
  /** FLOE_HOME */
  home: string
  /** PEM of the authority of the agents' certificates. */
  authority: string
  /** The key that may start tasks. */
  taskKey: string
  /** `postgresql://…` of the control database. */
  connectionString: string
}

/** Reads config.json and the controller's secrets below FLOE_HOME; throws a fault that names the file that is wrong. */
export function readInstallation(home: string): ControllerInstallation {
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      throw fault('controller.installation_unreadable', `could not read file "${path}"`, {
        detail: error instanceof Error ? error.message : String(error),
        hint: 'The file is written by "./floe up".',
        cause: error,
      })
    }
  }
  const path = join(home, 'config.json')
  let config: unknown
  const text = read(path)
  try {
    config = JSON.parse(text)
  } catch (error) {
    throw fault('controller.installation_invalid', `file "${path}" is not valid JSON`, { cause: error })
  }
  const parsed = Installation.safeParse(config)
  if (!parsed.success)
    throw fault('controller.installation_invalid', `file "${path}" does not hold an installation`, {
      detail: parsed.error.issues.map((i) => `${i.path.join('.')}: ${i.message}`).join('; '),
    })
  const secret = (name: string) => read(join(home, 'secrets', name)).trim()
  const url = new URL('postgresql://127.0.0.1')
  url.port = String(parsed.data.controlPort)
  url.username = encodeURIComponent(parsed.data.controlDatabase.user)
  url.password = encodeURIComponent(secret(secretFiles.controlPassword))
  url.pathname = `/${encodeURIComponent(parsed.data.controlDatabase.name)}`
  return {
    ...parsed.data,
    home,
    authority: secret(secretFiles.authority),
    taskKey: secret(secretFiles.agentTaskKey),
    connectionString: url.toString(),
  }
}
