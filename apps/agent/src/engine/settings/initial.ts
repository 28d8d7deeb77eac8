import { LOOPBACK } from '@floe/domain'

/** Settings a new instance begins with, besides what the engine takes by itself. */
export const initialSettings = ({ hostAddress }: { hostAddress: string }) => ({
  listen_addresses: hostAddress === LOOPBACK ? 'localhost' : `localhost,${hostAddress}`,
  password_encryption: 'scram-sha-256',
})
