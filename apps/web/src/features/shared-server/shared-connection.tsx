'use client'
import { sharedConnection, sharedServerState } from '@floe/domain'
import { ConnectionCard } from '../instance/connection-card'
import { useInstance } from '../instance/instance-context'

/** How to reach the shared port of the instance, where it has one that answers. */
export function SharedConnection() {
  const { connection, remoteAccess, sharedServer, state } = useInstance()
  if (!connection || !sharedServer?.port || state !== 'running') return null
  const server = sharedServerState(sharedServer)
  if (server === 'down') return null
  const { port, sharesTls } = sharedServer
  const { forms, shared } = sharedConnection(connection, { port, sharesTls }, remoteAccess)
  return (
    <ConnectionCard
      connection={forms}
      testId="shared-connection"
      title="Shared port"
      description={
        server === 'native'
          ? 'Shared Server is off for new sessions: each gets a backend of its own, as at the other port.'
          : sharesTls
            ? 'Sessions share backends here, with TLS and without: processes of the server end TLS for them.'
            : shared
              ? 'Sessions share backends here. A client that uses TLS gets a backend of its own, so these strings leave TLS out: use them where the network is trusted.'
              : 'Clients on other hosts connect over TLS only, and each gets a backend of its own. Clients on this host share backends with sslmode=disable.'
      }
    />
  )
}
