'use client'
import { useInstance } from '../instance/instance-context'
import { OperationList } from './operation-list'

/** The operations of the instance of this page. */
export function InstanceOperations() {
  return <OperationList instanceId={useInstance().instanceId} />
}
