import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const infra = join(import.meta.dirname, '../../../infra')

// what src/suite/infra-tools.ts found or built: nothing is fetched from here
const {
  FLOE_TEST_TERRAFORM: program = '',
  FLOE_TEST_TERRAFORM_PLUGINS = '',
  FLOE_TEST_TFLINT: tflint = '',
} = process.env
const mirrors = FLOE_TEST_TERRAFORM_PLUGINS.split(':').filter(Boolean)

const folders = (of: string) =>
  readdirSync(join(infra, of), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => `${of}/${entry.name}`)
const rooms = [...folders('modules'), ...folders('environments')]

/** Providers that a room asks for, its own and those of the modules that it is made of. */
function providersOf(room: string): string[] {
  const text = readdirSync(join(infra, room))
    .filter((file) => file.endsWith('.tf'))
    .map((file) => readFileSync(join(infra, room, file), 'utf8'))
    .join('\n')
  const below = [...text.matchAll(/source\s*=\s*"(\.\.?\/[^"]+)"/g)].flatMap(([, path]) =>
    providersOf(join(room, path as string)),
  )
  const own = [...text.matchAll(/source\s*=\s*"(registry\.terraform\.io\/[^"]+)"/g)].map(
    (m) => m[1] as string,
  )
  return [...new Set([...own, ...below])]
}
const absent = (room: string) =>
  providersOf(room).filter((provider) => !mirrors.some((mirror) => existsSync(join(mirror, provider))))

const noProgram = 'neither terraform nor tofu is here: run it by ./floe test infra'

/** Why a room cannot be tried here; null where it can. */
function why(room: string): string | null {
  if (program === '') return noProgram
  const providers = absent(room)
  return providers.length > 0 ? `no provider ${providers.join(', ')}` : null
}

describe.each(rooms)('%s', (room) => {
  const readme = existsSync(join(infra, room, 'README.md'))
    ? readFileSync(join(infra, room, 'README.md'), 'utf8')
    : ''

  test('its README has a line for each variable and output', () => {
    const named = readdirSync(join(infra, room))
      .filter((file) => file.endsWith('.tf'))
      .flatMap((file) => [
        ...readFileSync(join(infra, room, file), 'utf8').matchAll(/^(?:variable|output) "(\w+)"/gm),
      ])
      .map((match) => match[1] as string)
    const described = [...readme.matchAll(/^\| `(\w+)` /gm)].map((match) => match[1])
    expect(described.sort()).toEqual(named.sort())
  })

  test('its providers are pinned', () => {
    for (const file of readdirSync(join(infra, room)).filter((name) => name.endsWith('.tf')))
      for (const [, version] of readFileSync(join(infra, room, file), 'utf8').matchAll(
        /^\s+version\s*=\s*"(.*)"/gm,
      ))
        expect(version).toMatch(/^\d+\.\d+\.\d+$/)
  })
})

describe('terraform', () => {
  let copy: string
  beforeAll(() => {
    // what init makes stays out of the checkout
    copy = mkdtempSync(join(tmpdir(), 'floe-infra-'))
    cpSync(infra, copy, { recursive: true, filter: (path) => !path.endsWith('.terraform') })
    const lines = mirrors.map((mirror) => `  filesystem_mirror {\n    path = "${mirror}"\n  }`)
    writeFileSync(
      join(copy, 'cli.rc'),
      `disable_checkpoint = true\nprovider_installation {\n${lines.join('\n')}\n}\n`,
    )
  })
  afterAll(() => rmSync(copy, { recursive: true, force: true }))
  const run = (room: string, ...words: string[]) => {
    const { status, stdout, stderr } = spawnSync(program, words, {
      cwd: join(copy, room),
      encoding: 'utf8',
      timeout: 240_000,
      env: { ...process.env, TF_CLI_CONFIG_FILE: join(copy, 'cli.rc'), TF_IN_AUTOMATION: '1' },
    })
    expect(`${status} ${words.join(' ')}\n${status === 0 ? '' : stdout + stderr}`).toBe(
      `0 ${words.join(' ')}\n`,
    )
  }

  test.skipIf(program === '')(`fmt${program === '' ? ` (${noProgram})` : ''}`, () =>
    run('.', 'fmt', '-check', '-recursive'),
  )

  for (const room of rooms)
    test.skipIf(tflint === '')(`${room}: tflint${tflint === '' ? ' (it is not installed)' : ''}`, () => {
      const { status, stdout, stderr } = spawnSync(tflint, ['--no-color'], {
        cwd: join(copy, room),
        encoding: 'utf8',
      })
      expect([status, stdout + stderr]).toEqual([0, ''])
    })

  const noXslt = spawnSync('xsltproc', ['--version']).status === 0 ? '' : ' (needs xsltproc)'
  test.skipIf(program === '' || noXslt !== '')(
    `nvme_host_libvirt: QEMU gets the disks and the token, whatever their files are called${noXslt}`,
    () => {
      const files = ['/pool/a,,b&amp;&quot;.raw', '/pool/b.raw']
      const template = join(copy, 'modules/nvme_host_libvirt/nvme.xsl.tftpl')
      const empty = join(copy, 'empty')
      mkdirSync(empty)
      const rendered = spawnSync(program, ['console'], {
        cwd: empty,
        encoding: 'utf8',
        input: `jsonencode(templatefile("${template}", { files = ${JSON.stringify(files)}, token_file = "/tokens/db1" }))\n`,
        env: { ...process.env, TF_CLI_CONFIG_FILE: join(copy, 'cli.rc') },
      })
      writeFileSync(join(empty, 'nvme.xsl'), JSON.parse(JSON.parse(rendered.stdout)))
      writeFileSync(
        join(empty, 'domain.xml'),
        '<domain type="kvm"><name>db1</name><devices><disk type="file"/></devices></domain>',
      )
      const { status, stdout, stderr } = spawnSync('xsltproc', ['nvme.xsl', 'domain.xml'], {
        cwd: empty,
        encoding: 'utf8',
      })
      expect([status, stderr]).toEqual([0, ''])
      expect(stdout).toMatch(/<domain [^>]*type="kvm">[\s\S]*<name>db1<\/name>[\s\S]*<disk type="file"\/>/)
      expect([...stdout.matchAll(/<qemu:arg value="([^"]*)"\/>/g)].map((match) => match[1])).toEqual([
        '-drive',
        'file=/pool/a,,b&amp;&quot;.raw,if=none,id=floe-nvme0,format=raw,cache=none,discard=unmap',
        '-device',
        'nvme,drive=floe-nvme0,serial=floe0',
        '-drive',
        'file=/pool/b.raw,if=none,id=floe-nvme1,format=raw,cache=none,discard=unmap',
        '-device',
        'nvme,drive=floe-nvme1,serial=floe1',
        '-fw_cfg',
        'name=opt/floe.enrolment-token,file=/tokens/db1',
      ])
    },
  )

  for (const room of rooms) {
    const reason = why(room)
    test.skipIf(reason !== null)(
      `${room}: init, and test or validate${reason ? ` (${reason})` : ''}`,
      { timeout: 600_000 },
      () => {
        run(room, 'init', '-input=false', '-no-color')
        // each plan of a test validates all of it first, and to load a large provider takes a while
        if (existsSync(join(copy, room, 'tests'))) run(room, 'test', '-no-color')
        else run(room, 'validate', '-no-color')
      },
    )
  }
})
