'use client'
import { InstanceName, type InstanceState } from '@floe/domain'
import { Card, FaultAlert, noteConsoleTime, PageHeader, SkeletonRows } from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { Database } from 'lucide-react'
import { createContext, type ReactNode, useContext, useEffect } from 'react'
import { InstanceShowInput, type RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf, isNotFound } from '@/trpc/fault'
import { NotThere } from '../console/not-there'

export type InstanceDetail = RouterOutputs['instance']['show']

const InstanceContext = createContext<InstanceDetail | null>(null)

const moving: readonly InstanceState[] = ['creating', 'starting', 'stopping', 'deleting']

/** What an address names: an instance by its name, or by its id. Null when it can be neither. */
export function instanceOfAddress(segment: string) {
  const byId = InstanceShowInput.safeParse({ instanceId: segment })
  if (byId.success) return byId.data
  const name = InstanceName.safeParse(segment)
  return name.success ? { name: name.data } : null
}

/** Reads the instance that the address names, keeps it fresh, and gives it to everything below. */
export function InstanceProvider({ segment, children }: { segment: string; children: ReactNode }) {
  const trpc = useTRPC()
  const input = instanceOfAddress(segment)
  const query = useQuery({
    ...trpc.instance.show.queryOptions(input ?? { name: segment as InstanceName }),
    enabled: input !== null,
    refetchInterval: ({ state: { data } }) =>
      data && (data.openOperation || moving.includes(data.state)) ? 700 : 2_000,
  })
  const consoleNow = query.data?.now
  useEffect(() => {
    if (consoleNow !== undefined) noteConsoleTime(consoleNow)
  }, [consoleNow])

  if (query.data) return <InstanceContext.Provider value={query.data}>{children}</InstanceContext.Provider>
  const fault = query.error ? faultOf(query.error) : null
  if (input === null || isNotFound(fault))
    return (
      <NotThere
        title={segment}
        what={`Instance "${segment}" does not exist`}
        icon={Database}
        list={{ href: '/instances', label: 'All instances' }}
      >
        It may have been deleted; its operations are kept.
      </NotThere>
    )
  return (
    <Titled title={segment}>
      {fault ? (
        <FaultAlert fault={fault} onRetry={() => void query.refetch()} />
      ) : (
        <Card>
          <SkeletonRows label={`Loading ${segment}`} />
        </Card>
      )}
    </Titled>
  )
}

function Titled({ title, children }: { title: string; children: ReactNode }) {
  return (
    <>
      <PageHeader title={title} />
      {children}
    </>
  )
}

/** The instance of this page. */
export function useInstance(): InstanceDetail {
  const instance = useContext(InstanceContext)
  if (!instance) throw new Error('useInstance() needs an InstanceProvider around it')
  return instance
}
