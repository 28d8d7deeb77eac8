import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { becomeTheOnlyAgent } from './exclusive'

test('a second agent of an installation is refused, one of another installation is not', async () => {
  const home = `/somewhere/${randomUUID()}`
  const leave = await becomeTheOnlyAgent(home)
  await expect(becomeTheOnlyAgent(home)).rejects.toMatchObject({ fault: { code: 'agent.already_running' } })
  ;(await becomeTheOnlyAgent(`${home}-other`))()
  leave()
  ;(await becomeTheOnlyAgent(home))()
})
