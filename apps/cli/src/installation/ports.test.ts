import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { portIsFree, portOwner } from './ports'

test('a port that is held is not free, and its owner is named', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  expect(await portIsFree(port)).toBe(false)
  expect(portOwner(port)).toContain(`(pid ${process.pid})`)
  await new Promise((resolve) => server.close(resolve))
  expect(await portIsFree(port)).toBe(true)
  expect(portOwner(port)).toBeNull()
})
