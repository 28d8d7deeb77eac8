'use client'
import type { SettingChange } from '@floe/domain'
import { Badge, Button, Card, Field, Input, Select } from '@floe/ui'
import { Share2 } from 'lucide-react'
import { useState } from 'react'
import { useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'
import { portProblem, suggestedPort } from './typed-port'

const workers = [
  { value: '-5', label: 'a fifth of max_connections' },
  { value: '-2', label: 'half of max_connections' },
  { value: '-1', label: 'all of max_connections' },
] as const

/** Asks for what Shared Server needs; `onReview` gets the settings that turn it on. */
export function TurnOnCard({
  held,
  onReview,
}: {
  /** Why nothing can be changed now. */
  held: string | null
  onReview: (changes: SettingChange[]) => void
}) {
  const { port: ownPort, state } = useInstance()
  const mayChange = useMayChange()
  const [port, setPort] = useState(() => (ownPort === null ? '' : String(suggestedPort(ownPort))))
  const [most, setMost] = useState<string>('-5')
  const problem = portProblem(port, ownPort ?? 0)
  return (
    <Card
      title={
        <>
          Turn on Shared Server <Badge tone="warn">Experimental</Badge>
        </>
      }
      description="Sessions that come through a port of their own share a few backends, and keep their settings, prepared statements and role. The present port stays as it is."
      actions={
        <Button
          variant="primary"
          disabled={!mayChange || held !== null || state !== 'running' || problem !== null}
          title={mayChange ? (held ?? undefined) : viewerHint}
          onClick={() =>
            onReview([
              { name: 'polar_ss_port', value: port.trim() },
              { name: 'polar_enable_shared_server', value: 'on' },
              { name: 'polar_ss_backend_max_count', value: most },
            ])
          }
        >
          <Share2 aria-hidden />
          Turn on
        </Button>
      }
    >
      <div className="grid gap-3 sm:grid-cols-2">
        <Field label="Shared port" hint="A free port of the host" error={problem ?? undefined}>
          {(control) => (
            <Input
              {...control}
              className="font-mono"
              inputMode="numeric"
              autoComplete="off"
              value={port}
              onChange={(event) => setPort(event.target.value)}
            />
          )}
        </Field>
        <Field label="Workers" hint="The most backends that sessions share">
          {(control) => (
            <Select {...control} value={most} onChange={(event) => setMost(event.target.value)}>
              {workers.map(({ value, label }) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </Select>
          )}
        </Field>
      </div>
      <p className="mt-3 max-w-3xl text-sm text-ink-muted">
        Needs a restart, because the port does; the review shows the rest, and refuses a port that is in use.
        If another program takes the port before the restart, an incident says so; the present port is not
        affected.
      </p>
    </Card>
  )
}
