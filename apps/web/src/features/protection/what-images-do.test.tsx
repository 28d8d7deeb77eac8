import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { type ProtectionChange, WhatImagesDo } from './what-images-do'

const source = {
  source: '10.0.0.1:5501/postgres',
  member: 'one-2',
  healthy: true,
  why: null,
  flushLsn: null,
  replayLsn: null,
  lagBytes: null,
  checkedAt: null,
}
const words = (to: ProtectionChange, imagesInForce: boolean | null) =>
  renderToStaticMarkup(<WhatImagesDo to={to} protection={{ imagesInForce, sources: [source as never] }} />)

test('a standby is told that the setting acts once it is promoted', () => {
  for (const to of ['images on', 'images off'] as const) {
    expect(words(to, null)).toContain('Nothing changes now')
    expect(words(to, true)).not.toContain('Nothing changes now')
  }
  expect(words('images off', null)).not.toContain('one-2')
  expect(words('images off', true)).toContain('one-2')
})
