import { join } from 'node:path'
import { IdentityFile } from '@floe/agent-contract'
import type { Authority } from '@floe/authority'
import {
  controlDatabaseRoles,
  controlDatabaseUrl,
  Installation,
  programHome,
  secretFiles,
} from '@floe/domain'
import { readConfigurationFile, readSecretFile } from '@floe/host/configuration'

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
  const hint = 'The file is written by "./floe up".'
  const installation = readConfigurationFile(join(home, 'config.json'), Installation, hint)
  const secret = (name: string) => readSecretFile(join(home, 'secrets', name), hint)
  const identity = (home: string, name: string) => {
    const file = join(home, 'secrets', name)
    readSecretFile(file, hint)
    return new IdentityFile(file)
  }
  return {
    ...installation,
    home,
    authority: { certificate: secret(secretFiles.authority), key: secret(secretFiles.authorityKey) },
    identities: {
      controller: identity(home, secretFiles.controllerIdentity),
      web: identity(programHome(installation, 'web'), secretFiles.webIdentity),
    },
    authSecret: secret(secretFiles.authSecret),
    connectionString: controlDatabaseUrl(
      installation,
      controlDatabaseRoles.controller,
      // its own server asks the kernel who we are
      installation.controlDatabase.url === null ? undefined : secret(secretFiles.controlControllerPassword),
    ),
  }
}
