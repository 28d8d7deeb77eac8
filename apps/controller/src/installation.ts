import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { IdentityFile } from '@floe/agent-contract'
import type { Authority } from '@floe/authority'
import {
  controlDatabaseRoles,
  controlDatabaseUrl,
  fault,
  Installation,
  programHome,
  secretFiles,
} from '@floe/domain'

export type ControllerInstallation = Installation & {
  /** FLOE_HOME */
  home: string
  /** What hosts' certificates are signed with. */
  authority: Authority
  /** The controller's own certificate, which may start tasks, and the web's, which it renews too. */
  identities: { controller: IdentityFile; web: IdentityFile }
  /** What webhooks' secrets follow from. */
  authSecret: string
  /** `postgresql://…` of the control database; may hold a password, never log it. */
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
  const identity = (home: string, name: string) => {
    const file = join(home, 'secrets', name)
    read(file)
    return new IdentityFile(file)
  }
  return {
    ...parsed.data,
    home,
    authority: { certificate: secret(secretFiles.authority), key: secret(secretFiles.authorityKey) },
    identities: {
      controller: identity(home, secretFiles.controllerIdentity),
      web: identity(programHome(parsed.data, 'web'), secretFiles.webIdentity),
    },
    authSecret: secret(secretFiles.authSecret),
    connectionString: controlDatabaseUrl(
      parsed.data,
      controlDatabaseRoles.controller,
      // its own server asks the kernel who we are
      parsed.data.controlDatabase.url === null ? undefined : secret(secretFiles.controlControllerPassword),
    ),
  }
}
