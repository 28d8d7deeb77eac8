import { expect, test } from 'vitest'
import { isRecent } from './infra-tools'

test('only what knows write-only arguments is used', () => {
  for (const line of ['Terraform v1.11.4\non linux_amd64', 'OpenTofu v1.12.6', 'Terraform v2.0.0'])
    expect([line, isRecent(line)]).toEqual([line, true])
  for (const line of ['Terraform v1.9.8', 'OpenTofu v1.10.0', 'Terraform v0.11.11', 'tofu', ''])
    expect([line, isRecent(line)]).toEqual([line, false])
})
