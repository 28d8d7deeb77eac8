import type { OperationId } from '@floe/domain'
import Link from 'next/link'
import type { ReactNode } from 'react'

/** The permanent address of an operation. */
export function OperationLink({
  operationId,
  children = 'Open the operation',
}: {
  operationId: OperationId
  children?: ReactNode
}) {
  return (
    <Link href={`/operations/${operationId}`} className="font-medium text-accent hover:underline">
      {children}
    </Link>
  )
}
