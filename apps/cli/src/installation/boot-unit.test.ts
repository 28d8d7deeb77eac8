import { expect, test } from 'vitest'
import { bootUnitText } from './boot-unit'

const asked = {
  title: 'Floe: the console in /opt/floe/.floe',
  verbs: { start: ['up'], stop: ['down'] },
  home: '/opt/floe/.floe',
  checkout: '/opt/floe',
  cache: '/var/cache/floe',
  instancesDirectory: '/var/lib/floe/0b0c2f34',
}

test('the unit runs the verbs of the checkout for this home, once its file systems are there', () => {
  const text = bootUnitText(asked)
  expect(text).toContain('\nExecStart="/opt/floe/floe" up\nExecStop="/opt/floe/floe" down\n')
  expect(text).toContain('\nEnvironment="FLOE_HOME=/opt/floe/.floe" "FLOE_CACHE=/var/cache/floe"\n')
  expect(text).toContain(
    '\nRequiresMountsFor="/opt/floe" "/opt/floe/.floe" "/var/cache/floe" "/var/lib/floe/0b0c2f34"\n',
  )
})

test('what systemd would replace, or take for the end of a word, is only a character of a path', () => {
  const text = bootUnitText({ ...asked, checkout: '/a b/%h/$x/"\\', home: '/h%n$y' })
  expect(text).toContain('ExecStart="/a b/%%h/$$x/\\"\\\\/floe" up\n')
  expect(text).toContain('Environment="FLOE_HOME=/h%%n$y" ')
})

test('the unit of a package is there before the host is enrolled, and starts nothing then', () => {
  const text = bootUnitText({ ...asked, shipped: true })
  expect(text).toContain('\nConditionPathExists=/opt/floe/.floe/config.json\n')
  expect(text).toMatch(/^# Of the package/)
  expect(bootUnitText(asked)).not.toContain('ConditionPathExists')
})
