import { expect, test } from 'vitest'
import { portProblem, suggestedPort } from './typed-port'

test('a suggested port is one that can be typed', () => {
  for (const own of [1_024, 5_500, 64_535, 64_536, 65_535])
    expect([own, portProblem(String(suggestedPort(own)), own)]).toEqual([own, null])
})

test('what is no port, or the instance’s own, is told before anything is asked of the instance', () => {
  for (const text of ['', '0', '80', '1023', '65536', '6500x', '-6500', '6e3', '65.5', '123456'])
    expect([text, portProblem(text, 5_500)]).toEqual([text, 'Must be a number from 1024 to 65535.'])
  expect(portProblem('5500', 5_500)).toBe('This is the instance’s own port.')
  expect(portProblem(' 6500 ', 5_500)).toBeNull()
})
