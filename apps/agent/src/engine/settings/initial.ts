import { LOOPBACK } from '@floe/domain'

/** Settings a new instance begins with, besides the engine's own defaults. */
export const initialSettings = ({ hostAddress }: { hostAddress: string }) => ({
  listen_addresses: hostAddress === LOOPBACK ? 'localhost' : `localhost,${hostAddress}`,
  password_encryption: 'scram-sha-256',
})
