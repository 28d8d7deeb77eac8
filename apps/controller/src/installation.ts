import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { IdentityFile } from '@floe/agent-contract'
import type { Authority } from '@floe/authority'
import { fault, Installation, secretFiles } from '@floe/domain'

export type ControllerInstallation = Installation & {
  /** FLOE_HOME */
  home: string
  /** What hosts' certificates are signed with. */
  authority: Authority
  /** The controller's own certificate, which may start tasks, and the web's, which it renews too. */
  identities: { controller: IdentityFile; web: IdentityFile }
  /** What webhooks' secrets follow from. */
  authSecret: string
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
  const identity = (name: string) => {
    const file = join(home, 'secrets', name)
    read(file)
    return new IdentityFile(file)
  }
  const url = new URL('postgresql://127.0.0.1')
  url.port = String(parsed.data.controlPort)
  url.username = encodeURIComponent(parsed.data.controlDatabase.user)
  url.password = encodeURIComponent(secret(secretFiles.controlPassword))
  url.pathname = `/${encodeURIComponent(parsed.data.controlDatabase.name)}`
  return {
    ...parsed.data,
    home,
    authority: { certificate: secret(secretFiles.authority), key: secret(secretFiles.authorityKey) },
    identities: {
      controller: identity(secretFiles.controllerIdentity),
      web: identity(secretFiles.webIdentity),
    },
    authSecret: secret(secretFiles.authSecret),
    connectionString: url.toString(),
  }
}
