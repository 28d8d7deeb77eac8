import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { EngineUser } from '../../host/engine-user'
import { readOwnedFile, statOwnedFile } from '../../host/owned-files'
import { isThere, replaceInTree } from '../../host/tree'
import type { dataFiles } from '../directory/layout'
import { completeManagedFile } from '../settings/managed-file'
import { valuesOf } from '../settings/tracked-files'

/**
 * TLS between members. Each instance has a certificate of its own that nobody signs. Members ask for TLS and for channel
 * binding: in the SCRAM exchange the server proves for which certificate it knows the password's verifier, so who stands
 * between two members, with whatever certificate, is found out. No authority, no renewal, no host names to be right.
 *
 * - The settings come before all others of the managed file: a person's own certificate (ssl_cert_file, ssl_key_file) wins.
 * - An instance of an earlier version for which a person had set up TLS is left as it is.
 * - A copy of another instance gets a certificate and a key of its own.
 */
const tlsSettings = `# Written by Floe: the certificate that standbys, and those that ask for torn pages, reach this instance with.
# Do not edit: a setting of the same name that is read later wins.

ssl = 'on'
ssl_cert_file = 'floe_server.pem'
ssl_key_file = 'floe_server.pem'
`

type Files = Pick<
  ReturnType<typeof dataFiles>,
  'certificateFile' | 'tlsFile' | 'mainFile' | 'managedFile' | 'autoFile'
>

/** What makes certificates is rarely needed and not small: it is loaded only then. */
async function makeCertificate(name: string): Promise<string> {
  const { makeSelfSignedIdentity } = await import('@floe/authority/self-signed')
  return makeSelfSignedIdentity(name)
}

/** Certificate and settings of a new instance, by the paths of their files; its managed file brings the settings in. */
export async function newServerCertificate(
  files: Pick<Files, 'certificateFile' | 'tlsFile'>,
  name: string,
): Promise<[path: string, text: string][]> {
  return [
    [files.certificateFile, await makeCertificate(name)],
    [files.tlsFile, tlsSettings],
  ]
}

/**
 * Sees to certificate and settings, in an order in which a kill between two of them leaves what starts. Answers whether
 * anything changed; an engine that runs has to read its configuration again then.
 */
export async function ensureServerCertificate(
  files: Files,
  name: string,
  user: EngineUser,
): Promise<boolean> {
  if (!isThere(files.tlsFile) && setsTls(files)) return false
  let changed = false
  if (!isSound(files.certificateFile, user)) {
    replaceInTree(files.certificateFile, await makeCertificate(name), user)
    changed = true
  }
  if (readOwnedFile(files.tlsFile) !== tlsSettings) {
    replaceInTree(files.tlsFile, tlsSettings, user)
    changed = true
  }
  return completeManagedFile(files.managedFile, user) || changed
}

function setsTls(files: Files): boolean {
  return [files.mainFile, files.managedFile, files.autoFile].some((path) =>
    [...valuesOf(readOwnedFile(path) ?? '').keys()].some((name) => /^ssl(_|$)/.test(name)),
  )
}

/** An engine does not start with a key that others could read, or that is not the certificate's. */
function isSound(path: string, user: EngineUser): boolean {
  try {
    const stat = statOwnedFile(path)
    if (!stat || (stat.mode & 0o077) !== 0 || stat.uid !== (user.uid ?? process.getuid?.())) return false
    const text = readOwnedFile(path) ?? ''
    return new X509Certificate(text).checkPrivateKey(createPrivateKey(text))
  } catch {
    return false
  }
}

/**
 * What libpq needs to reach a member: encrypted, and with proof of whom it speaks to. Neither a client certificate nor a
 * root certificate in the home of who runs the engine is taken; the latter would ask every member for a certificate that
 * it vouches for.
 */
export const memberTls = (own: { noRootFile: string }) => ({
  sslmode: 'require',
  channel_binding: 'require',
  sslcertmode: 'disable',
  sslrootcert: own.noRootFile,
})
