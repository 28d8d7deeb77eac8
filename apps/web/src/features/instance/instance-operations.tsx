'use client'
import { OperationList } from '../operation/operation-list'
import { useInstance } from './instance-context'

/** The operations of the instance of this page. */
export function InstanceOperations() {
  return <OperationList instanceId={useInstance().instanceId} />
}
