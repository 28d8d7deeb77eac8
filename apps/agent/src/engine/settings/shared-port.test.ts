import { expect, test } from 'vitest'
import { refuseSharedPort } from './shared-port'

const tried = (value: string, inForce: string | null = null, free = true) =>
  refuseSharedPort(value, { ownPort: 5_500, inForce }, async () => free).then(
    () => null,
    (error) => error.fault,
  )

test('a shared port that the dispatcher could not listen on is refused, and the way out is named', async () => {
  expect(await tried('5500')).toMatchObject({
    code: 'setting.port_taken',
    message: 'port 5500 is the instance’s own port',
    hint: 'Choose another port.',
  })
  expect(await tried('1023')).toMatchObject({
    code: 'setting.invalid_value',
    hint: 'Choose a port from 1024 to 65535, or 0 to close it.',
  })
  expect(await tried('6500', null, false)).toMatchObject({
    code: 'setting.port_taken',
    message: 'port 6500 is in use on this host',
    hint: expect.stringContaining('Choose another port'),
  })
})

test('a free port, none, and the one that its own dispatcher has are taken', async () => {
  expect(await tried('6500')).toBeNull()
  expect(await tried('0', '6500', false)).toBeNull()
  expect(await tried('6500', '6500', false)).toBeNull()
})
