import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { buildPackages, builtPackages } from './built-packages'
import { field, laterPackages } from './later-packages'
import { MachineOfLoops } from './machine-of-loops'
import { wholeMachine, whyNoWholeMachine } from './whole-machine'

const checkout = join(import.meta.dirname, '../../..')
const root = process.getuid?.() === 0
const why = root ? whyNoWholeMachine() : 'needs root: packages are installed in a copy of this machine'
const here = why ? ` (left out: ${why})` : ''

let directory: string
/** Files of the packages, by the beginning of their name. */
let engine: string
let newest: string
let agent: string

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-packages-'))
  ;[engine, newest, agent] = builtPackages(inject('packagesDirectory')) as [string, string, string]
}, 600_000)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Lines of `tar -tv`: mode, owner, size, date, name. */
const contents = (deb: string) =>
  execFileSync('dpkg-deb', ['--contents', deb], { encoding: 'utf8', maxBuffer: 1 << 24 })
    .trim()
    .split('\n')
const nameIn = (line: string) => line.slice(line.indexOf(' ./') + 1)

describe('the packages', () => {
  test('say what they are: an engine by its key, the newest one, the agent', () => {
    const marker = JSON.parse(
      execFileSync(
        'sh',
        ['-c', 'dpkg-deb --fsys-tarfile "$0" | tar -xO --wildcards "*/.floe-engine"', engine],
        {
          encoding: 'utf8',
        },
      ),
    ) as { release: string; key: string; variant: string }
    expect(marker.variant).toBe('release')
    expect(field(engine, 'Package')).toBe(`floe-engine-${marker.release}-${marker.key}`)
    expect(field(newest, 'Package')).toBe('floe-engine')
    expect(field(newest, 'Depends')).toBe(field(engine, 'Package'))
    expect(field(agent, 'Package')).toBe('floe-agent')
    expect(field(agent, 'Depends')).toMatch(/^libc6 \(>= 2\.\d+\), .*libstdc\+\+6, bash, floe-engine, /)
    for (const deb of [engine, newest, agent]) {
      expect(field(deb, 'Version')).toMatch(/^\d+\.\d+(\.\d+)?\+\d{14}\.[0-9a-f]{12,16}$/)
      expect(field(deb, 'Floe-Distribution')).toMatch(/^(debian|ubuntu)-\d+/)
      expect(field(deb, 'Maintainer')).toMatch(/^.+ <.+@.+>$/)
      expect(field(deb, 'Description').split('\n')[0]?.length).toBeLessThan(60)
      expect(Number(field(deb, 'Installed-Size'))).toBeGreaterThan(0)
      expect(basename(deb)).toBe(
        `${field(deb, 'Package')}_${field(deb, 'Version')}_${field(deb, 'Architecture')}.deb`,
      )
    }
  })

  test('hold root’s files, in order, where files of packages belong, and nothing that gives rights', () => {
    for (const deb of [engine, newest, agent]) {
      const lines = contents(deb)
      const names = lines.map(nameIn)
      expect(names).toContain(`./usr/share/doc/${field(deb, 'Package')}/copyright`)
      for (const line of lines) {
        expect(line).toMatch(/^(lrwxrwxrwx|[-dh]rw[x-]r-[x-]r-[x-]) root\/root /)
        expect(nameIn(line)).toMatch(
          /^\.\/($|etc\/|usr\/($|bin\/|sbin\/|lib\/($|floe\/|systemd\/)|share\/($|doc\/)))/,
        )
      }
      // one date, so that the same sources give the same bytes
      expect(new Set(lines.map((line) => line.match(/ (\d{4}-\d\d-\d\d \d\d:\d\d) /)?.[1])).size).toBe(1)
    }
  })

  test('name nothing of the machine that they were built on', () => {
    const holds = (deb: string, places: string[]) =>
      spawnSync('sh', [
        '-c',
        'deb=$1; shift; dpkg-deb --fsys-tarfile "$deb" | grep --quiet --text --fixed-strings "$@"',
        ...['sh', deb, ...places.map((place) => `--regexp=${place}`)],
      ]).status === 0
    // a debugger reads from the engine where it was compiled, in the cache
    const places = [checkout, dirname(engine)]
    expect(holds(engine, places)).toBe(false)
    expect(holds(agent, [...places, '/var/cache/floe/'])).toBe(false)
    expect(holds(newest, ['NeverAutoRemove'])).toBe(true)
  })

  test.skipIf(process.env.FLOE_TEST_LONG !== '1')('are the same bytes when they are built again', () => {
    const sum = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')
    expect(buildPackages(join(directory, 'again')).map(sum)).toEqual([engine, newest, agent].map(sum))
  })
})

describe.skipIf(why !== null)(`a host that is made from them${here}`, () => {
  let machine: MachineOfLoops
  let output: string
  const between = (from: string, to: string) =>
    output.slice(output.indexOf(`\n== ${from}\n`), output.indexOf(`\n== ${to}\n`))

  beforeAll(() => {
    machine = new MachineOfLoops()
    mkdirSync(join(machine.root, 'block'))
    const own = field(engine, 'Package')
    laterPackages([engine, newest, agent], join(directory, 'later'))
    const fixture = join(import.meta.dirname, 'console-that-enrols.ts')
    const { stdout, stderr } = wholeMachine(
      machine,
      ':',
      `exec 2>&1
       unset FLOE_HOME FLOE_CACHE
       part() { printf '\\n== %s\\n' "$1"; }
       state() { find /var/lib/floe-agent -name log -prune -o -name run -prune -o -type f ! -name 'config*' -exec sha256sum {} + | sort -k 2; }
       # what a host has no need of
       rm -f /usr/bin/node /usr/bin/npm /usr/bin/cc /usr/bin/gcc* /usr/bin/make /usr/bin/git
       part install
       dpkg --install ${dirname(engine)}/*.deb; echo "ended with $?"
       part versions
       floe --version
       floe up; echo "up ended with $?"
       command -v floe-host-check; command -v floe-host-prepare
       part engine
       engine=$(readlink -f /usr/lib/floe/engine/current)
       install -d -o nobody /srv/data /srv/socket
       as() { setpriv --reuid nobody --regid nogroup --clear-groups env -i PATH="$engine/bin:/usr/bin:/bin" "$@"; }
       as initdb -D /srv/data -A trust -N --no-instructions >/dev/null; echo "initdb ended with $?"
       as pg_ctl start -w -D /srv/data -l /srv/data/log -o "-k /srv/socket -c listen_addresses=''" >/dev/null
       ask() { as psql -h /srv/socket -d postgres -AtX -c "$1"; }
       ask "SELECT 'answers ' || current_setting('server_version') || ' ' || (SELECT count(*) FROM pg_available_extensions WHERE name = 'monitor')"
       first=$(head -n 1 /srv/data/postmaster.pid)
       part units
       systemd-analyze verify --man=no /usr/lib/systemd/system/floe-agent.service; echo "verified with $?"
       part enrol
       : >/run/taken
       cd ${join(checkout, 'apps/cli')}
       ${process.execPath} --import tsx ${fixture} /run/authority /run/taken >/run/console.log 2>&1 &
       tries=0
       until [ -s /run/authority ]; do
         tries=$((tries + 1)); [ $tries -lt 600 ] || { cat /run/console.log; exit 99; }
         sleep 0.1
       done
       cd /
       echo floe-${'A'.repeat(43)} |
         floe agent enrol --console http://127.0.0.1:8080 --authority "$(cat /run/authority)" --token -
       floe agent status
       grep -h -e enginePrefix -e bootUnit /var/lib/floe-agent/config.json
       part upgrade
       state >/run/before
       dpkg --install ${join(directory, 'later')}/*.deb; echo "ended with $?"
       state | diff /run/before - && echo 'the state is the same'
       floe agent start >/dev/null; floe agent status
       grep -h -e enginePrefix /var/lib/floe-agent/config.json
       floe --version
       [ "$first" = "$(head -n 1 /srv/data/postmaster.pid)" ] && ask "SELECT 'still answers'"
       part remove
       dpkg --remove ${own}; echo "ended with $?"
       as pg_ctl stop -m fast -D /srv/data >/dev/null
       dpkg --remove floe-agent; echo "agent ended with $?"
       [ ! -e /usr/lib/floe/apps ] && echo 'its files are gone'
       mkdir -p /var/lib/floe-agent/agent/instances
       printf '{ "enginePrefix": "%s" }' "$engine" >/var/lib/floe-agent/agent/instances/one.json
       dpkg --remove ${own}; echo "of a stopped instance ended with $?"
       rm /var/lib/floe-agent/agent/instances/one.json
       dpkg --remove ${own}; echo "unused ended with $?"
       ls /usr/lib/floe/engine
       dpkg --purge floe-agent; echo "purge ended with $?"
       state | diff /run/before - && echo 'the state is the same'
       ls /srv/data/PG_VERSION
       part end`,
    )
    output = `${stdout}${stderr}`
  }, 600_000)
  afterAll(() => machine?.end())

  test('installs with what Debian has, without a compiler, a checkout or a Node of its own', () => {
    expect(between('install', 'versions')).toContain('ended with 0\n')
  })

  test('the command says its version and knows the verbs of a host only', () => {
    const text = between('versions', 'engine')
    expect(text).toContain(`\n${field(agent, 'Version')}\n`)
    expect(text).toMatch(/unknown command 'up'[\s\S]*up ended with 2/)
    expect(text).toContain('/usr/sbin/floe-host-check\n/usr/sbin/floe-host-prepare\n')
  })

  test('its engine makes a cluster and starts as an unprivileged user, with our modules', () => {
    const text = between('engine', 'units')
    expect(text).toContain('initdb ended with 0\n')
    expect(text).toMatch(/^answers 18\.\d+ 1$/m)
  })

  test('the unit of the agent is one that systemd takes', () => {
    expect(between('units', 'enrol')).toContain('verified with 0\n')
  })

  test('it enrols and its agent runs, with the package’s engine', () => {
    const text = between('enrol', 'upgrade')
    expect(text).toMatch(/^Host "db1" is enrolled/m)
    expect(text).toMatch(/^agent +running/m)
    expect(text).toMatch(/^home +\/var\/lib\/floe-agent$/m)
    expect(text).toContain(`"enginePrefix": "/usr/lib/floe/engine/${field(engine, 'Package').slice(12)}"`)
    expect(text).toContain('"bootUnit": "floe-agent.service"')
  })

  test('an upgrade brings agent and engine; what runs goes on from the former build, and the state is the same', () => {
    const text = between('upgrade', 'remove')
    expect(text).toContain('ended with 0\n')
    expect(text).toContain('the state is the same\n')
    expect(text).toMatch(/^agent +running/m)
    expect(text).toMatch(/"enginePrefix": "\/usr\/lib\/floe\/engine\/.*next"/)
    expect(text).toContain(`\n${field(agent, 'Version')}.1\n`)
    expect(text).toContain('still answers\n')
  })

  test('a build that something runs from, or an instance was made with, is not removed; nothing removes data', () => {
    const text = between('remove', 'end')
    expect(text).toMatch(/error: a process runs from [\s\S]*\nended with 1\n/)
    expect(text).toContain('agent ended with 0\n')
    expect(text).toContain('its files are gone\n')
    expect(text).toMatch(
      /error: an instance that is stopped is registered with [\s\S]*of a stopped instance ended with 1\n/,
    )
    expect(text).toContain('unused ended with 0\n')
    expect(text).toMatch(/unused ended with 0\n\S+next\ncurrent\n/)
    expect(text).toContain('purge ended with 0\n')
    expect(text).toContain('the state is the same\n/srv/data/PG_VERSION\n')
  })
})
