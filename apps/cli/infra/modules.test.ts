import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
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
  FLOE_TEST_CHECKOV: checkov = '',
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

  /** A copy of a module in which somebody was careless. */
  function careless(room: string, addition: string): string {
    const path = `careless/${room}`
    rmSync(join(copy, path), { recursive: true, force: true })
    cpSync(join(copy, room), join(copy, path), { recursive: true })
    appendFileSync(join(copy, path, 'main.tf'), addition)
    return path
  }

  const lint = (room: string) => {
    const { status, stdout, stderr } = spawnSync(
      tflint,
      ['--no-color', '--format=compact', '--config', join(copy, '.tflint.hcl')],
      { cwd: join(copy, room), encoding: 'utf8' },
    )
    return { status, said: stdout + stderr }
  }
  const noLinter = tflint === '' ? ' (left out: no tflint was built)' : ''
  for (const room of rooms)
    test.skipIf(tflint === '')(`${room}: tflint${noLinter}`, () =>
      expect(lint(room)).toEqual({ status: 0, said: '' }),
    )
  test.skipIf(tflint === '')(`tflint finds what is used by nothing, and has no type${noLinter}`, () => {
    const { status, said } = lint(careless('modules/archive', '\nvariable "forgotten" {}\n'))
    expect(status).toBe(2)
    for (const rule of ['unused_declarations', 'typed_variables', 'documented_variables'])
      expect(said).toContain(`(terraform_${rule})`)
  })

  type Finding = { check_id: string; resource: string; check_result: { suppress_comment?: string } }
  type Scan = {
    summary: { failed: number; parsing_errors: number; resource_count: number }
    results: { failed_checks: Finding[]; skipped_checks: Finding[] }
  }
  function scan(...directories: string[]): { status: number | null; found: Scan } {
    const { status, stdout, stderr } = spawnSync(
      checkov,
      [
        ...['-m', 'checkov.main', '--config-file', join(copy, '.checkov.yaml'), '--output', 'json'],
        ...directories.flatMap((directory) => ['--directory', join(copy, directory)]),
      ],
      { cwd: copy, encoding: 'utf8', timeout: 240_000, maxBuffer: 1 << 26 },
    )
    expect(stdout, stderr).toMatch(/^\s*\{/)
    return { status, found: JSON.parse(stdout) as Scan }
  }
  const noScan = checkov === '' ? ' (left out: checkov was not installed)' : ''
  test.skipIf(checkov === '')(
    `no resource is insecure, as far as checkov knows; each waiver has a reason${noScan}`,
    { timeout: 300_000 },
    () => {
      const { status, found } = scan('modules')
      const { failed_checks: failed, skipped_checks: waived } = found.results
      expect(failed.map(({ check_id, resource }) => `${check_id} ${resource}`)).toEqual([])
      expect([status, found.summary.parsing_errors]).toEqual([0, 0])
      // it read the modules: each provider has its own resources
      expect(found.summary.resource_count).toBeGreaterThan(20)
      for (const one of waived) expect(one.check_result.suppress_comment, one.check_id).toMatch(/\S+ \S+ \S+/)
    },
  )
  test.skipIf(checkov === '')(
    `checkov finds a port for remote logins that is open to everybody${noScan}`,
    { timeout: 300_000 },
    () => {
      const room = careless(
        'modules/network_aws',
        `
resource "aws_vpc_security_group_ingress_rule" "everybody" {
  security_group_id = aws_security_group.host.id
  description       = "for a moment"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 22
  to_port           = 22
}
`,
      )
      const { status, found } = scan(room)
      expect(status).toBe(1)
      expect(found.results.failed_checks.map(({ check_id }) => check_id)).toEqual(['CKV_AWS_24'])
    },
  )

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
