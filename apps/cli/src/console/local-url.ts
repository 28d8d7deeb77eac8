import type { Installation } from '@floe/domain'

/** Where this machine reaches the console, whatever its public address is. */
export function localWebUrl(installation: Installation): string {
  const { webAddress, webPort } = installation
  const host =
    webAddress === '0.0.0.0' || webAddress === '::' || webAddress === 'localhost' ? '127.0.0.1' : webAddress
  return `http://${host.includes(':') ? `[${host}]` : host}:${webPort}`
}
