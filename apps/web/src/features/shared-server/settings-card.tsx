'use client'
import { SHARED_SERVER_LIMITS, sharedServerSettings } from '@floe/domain'
import {
  Badge,
  Button,
  Card,
  FaultAlert,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import Link from 'next/link'
import { Fragment } from 'react'
import { useInstance } from '../instance/instance-context'
import { ImpactBadge } from '../setting/impact-badge'
import { leadValue } from '../setting/setting-diff'
import type { useSettings } from '../setting/use-settings'

/** The settings of Shared Server as the instance runs with them, what a change of each needs, and what is not there yet. */
export function SettingsCard({ asked }: { asked: ReturnType<typeof useSettings> }) {
  const { name } = useInstance()
  const { settings, fault, retry } = asked
  return (
    <Card
      title="Settings"
      description="Read from pg_settings. Opening or closing the port needs a restart; turning Shared Server on or off at an open port is a reload."
      bodyClassName="p-0"
      actions={
        <Button asChild>
          <Link href={`/instances/${name}/settings/all?search=polar_ss`}>All settings</Link>
        </Button>
      }
    >
      {settings ? (
        <Table label="Settings of Shared Server">
          <TableHead>
            <tr>
              <TableHeader>Setting</TableHeader>
              <TableHeader>Value</TableHeader>
              <TableHeader>A change needs</TableHeader>
              <TableHeader>Meaning</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {sharedServerSettings
              .flatMap((wanted) => settings.find((s) => s.name === wanted) ?? [])
              .map((setting) => (
                <TableRow key={setting.name}>
                  <TableCell className="font-mono">
                    {/* where it is narrow a name breaks between its words */}
                    {setting.name.split(/(?<=_)/).map((word, i) => (
                      <Fragment key={word}>
                        {i > 0 ? <wbr /> : null}
                        {word}
                      </Fragment>
                    ))}
                  </TableCell>
                  <TableCell className="font-mono whitespace-nowrap">
                    {leadValue(setting)?.shown || '–'}
                    {leadValue(setting)?.pendingRestart ? (
                      <Badge tone="warn" className="ml-2 font-sans">
                        waits for a restart
                      </Badge>
                    ) : null}
                  </TableCell>
                  <TableCell>
                    <ImpactBadge impact={setting.impact} />
                  </TableCell>
                  <TableCell className="min-w-64">{setting.meaning ?? setting.description}</TableCell>
                </TableRow>
              ))}
          </TableBody>
        </Table>
      ) : fault ? (
        <FaultAlert fault={fault} onRetry={retry} className="m-3" />
      ) : (
        <SkeletonRows label="Reading the settings" />
      )}
      <ul className="list-disc border-t border-line py-3 pr-4 pl-8 text-sm text-ink-muted break-words">
        {SHARED_SERVER_LIMITS.map((limit) => (
          <li key={limit}>{limit}</li>
        ))}
      </ul>
    </Card>
  )
}
