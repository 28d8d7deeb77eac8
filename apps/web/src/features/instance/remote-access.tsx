'use client'
import { requiresTls, withoutTlsWarning } from '@floe/domain'
import { Alert, Button, FaultAlert } from '@floe/ui'
import { faultOf } from '@/trpc/fault'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from './instance-context'
import { useInstanceVerbs } from './use-instance-verbs'

/** How clients on other hosts come in: a warning with its one button, or the fact and what it asks of them. */
export function RemoteAccessAlert() {
  const { instanceId, name, remoteAccess, state, cluster } = useInstance()
  const { requireTls } = useInstanceVerbs(name)
  const warning = withoutTlsWarning(remoteAccess)
  if (warning === null)
    return requiresTls(remoteAccess) ? (
      <Alert title="Clients on other hosts connect over TLS only">
        The instance’s certificate is self-signed. Drivers with channel binding (channel_binding=require)
        still verify the server; sslmode=verify-full needs a certificate of your own (ssl_cert_file,
        ssl_key_file).
      </Alert>
    ) : null
  return (
    <Alert
      tone={remoteAccess?.listens ? 'warn' : 'info'}
      title={
        remoteAccess?.listens ? 'TLS is not required' : 'TLS is not required; no other host can connect now'
      }
      actions={
        <Button
          busy={requireTls.isPending}
          disabled={state !== 'running'}
          onClick={() => requireTls.mutate({ instanceId, idempotencyKey: newIdempotencyKey() })}
        >
          Require TLS
        </Button>
      }
    >
      {warning} “Require TLS” changes pg_hba.conf{cluster.members > 1 ? ' of every member' : ''}; it refuses
      new connections without TLS, and open sessions continue.
      {requireTls.error ? <FaultAlert fault={faultOf(requireTls.error)} /> : null}
    </Alert>
  )
}
