import { join } from 'node:path'
import { IdentityFile } from '@floe/agent-contract'
import {
  controlDatabaseRoles,
  controlDatabaseUrl as databaseUrl,
  fault,
  Installation,
  secretFiles,
} from '@floe/domain'
import { readConfigurationFile, readSecretFile } from '@floe/host/configuration'

/** What `./floe up` decided and made, read from FLOE_HOME at run time; a build needs none of it. */
export type InstallationFiles = {
  home: string
  installation: Installation
  /** PEM of the authority that signed the agents' certificates. */
  authority: string
  /** The web's certificate and key, which may only read. Asked before every use, since the controller renews it. */
  identity: () => string
  authSecret: string
  /** Of a control database that Floe does not run; its own asks the kernel who we are. */
  controlPassword?: string
}

/** Reads `config.json` and the secrets web needs; throws a fault that names the file that is wrong. */
export function readInstallation(home = process.env.FLOE_HOME): InstallationFiles {
  if (!home)
    throw fault('installation.missing', 'FLOE_HOME is not set', {
      hint: 'Start the console with "./floe up".',
    })
  const hint = 'Start the console with "./floe up".'
  const installation = readConfigurationFile(join(home, 'config.json'), Installation, hint)
  const secret = (file: string) => readSecretFile(join(home, 'secrets', file), hint)
  const identity = new IdentityFile(join(home, 'secrets', secretFiles.webIdentity))
  return {
    home,
    installation,
    authority: secret(secretFiles.authority),
    identity: () => identity.read(),
    authSecret: secret(secretFiles.authSecret),
    controlPassword:
      installation.controlDatabase.url === null ? undefined : secret(secretFiles.controlWebPassword),
  }
}

/** Connection string of the control database; may hold a password, never log it. */
export function controlDatabaseUrl({ installation, controlPassword }: InstallationFiles): string {
  return databaseUrl(installation, controlDatabaseRoles.web, controlPassword)
}
