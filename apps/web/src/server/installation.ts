import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { IdentityFile } from '@floe/agent-contract'
import {
  controlDatabaseRoles,
  controlDatabaseUrl as databaseUrl,
  fault,
  Installation,
  secretFiles,
} from '@floe/domain'

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

/** Reads `config.json` and the secrets web needs. Throws `installation.missing` or `installation.invalid`. */
export function readInstallation(home = process.env.FLOE_HOME): InstallationFiles {
  if (!home)
    throw fault('installation.missing', 'FLOE_HOME is not set', {
      hint: 'Start the console with "./floe up".',
    })
  const secret = (file: string) => readFileSync(join(home, 'secrets', file), 'utf8').trim()
  let text: string
  try {
    text = readFileSync(join(home, 'config.json'), 'utf8')
  } catch (cause) {
    throw fault('installation.missing', `could not read "${join(home, 'config.json')}"`, {
      hint: 'Start the console with "./floe up".',
      cause,
    })
  }
  const parsed = Installation.safeParse(JSON.parse(text))
  if (!parsed.success)
    throw fault('installation.invalid', 'config.json does not describe an installation', {
      detail: parsed.error.issues.map((i) => `${i.path.join('.')}: ${i.message}`).join('; '),
    })
  const identity = new IdentityFile(join(home, 'secrets', secretFiles.webIdentity))
  return {
    home,
    installation: parsed.data,
    authority: secret(secretFiles.authority),
    identity: () => identity.read(),
    authSecret: secret(secretFiles.authSecret),
    controlPassword:
      parsed.data.controlDatabase.url === null ? undefined : secret(secretFiles.controlWebPassword),
  }
}

/** Connection string of the control database; may hold a password, never log it. */
export function controlDatabaseUrl({ installation, controlPassword }: InstallationFiles): string {
  return databaseUrl(installation, controlDatabaseRoles.web, controlPassword)
}
