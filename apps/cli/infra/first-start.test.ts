import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MachineOfLoops, whyNoDisks } from './machine-of-loops'
import { wholeMachine, whyNoWholeMachine } from './whole-machine'

const why = whyNoDisks() ?? whyNoWholeMachine()
const here = why ? ` (left out: ${why})` : ''
const checkout = join(import.meta.dirname, '../../..')
const module = join(checkout, 'infra/modules/host_user_data')
const MODEL = 'Amazon EC2 NVMe Instance Storage'

describe.skipIf(why !== null)(`the first start of a machine${here}`, () => {
  let machine: MachineOfLoops
  beforeEach(() => {
    machine = new MachineOfLoops()
  })
  afterEach(() => machine.end())

  type Given = {
    /** What lies at /opt/floe: this checkout unless it is to be fetched. */
    floe?: 'here' | 'fetched'
    archive?: { url: string; sha256: string }
    console?: string
    /** The program that prints the token, in shell. */
    token?: string
    /** With what the console refuses. */
    refusal?: object
    before?: string
    after?: string
  }
  // sparse; of the least size that is used without a word of a person
  const disk = (models: Record<string, string> = { nvme0n1: MODEL }, megabytes = 10_240) => {
    const { disks, nodes } = machine.nvme(models, { megabytes })
    return { disk: disks[0] as (typeof disks)[number], nodes }
  }

  /** Starts a machine with these disks for the first time; the shell scripts run before and after, in the same machine. */
  function start(nodes: string, given: Given = {}) {
    const { archive = { url: 'https://127.0.0.1:1/floe.tar.gz', sha256: '0'.repeat(64) } } = given
    const console = given.console ?? 'http://127.0.0.1:8080'
    const fixture = join(import.meta.dirname, 'console-that-enrols.ts')
    const refusal = given.refusal ? ` '${JSON.stringify(given.refusal)}'` : ''
    return wholeMachine(
      machine,
      nodes,
      `set -e
       umask 022
       ${given.floe === 'fetched' ? 'rm -rf /opt/floe' : `rm -rf /opt/floe; ln -s ${checkout} /opt/floe`}
       mkdir -p /etc/floe
       : >/run/taken
       cd ${join(checkout, 'apps/cli')}
       ${process.execPath} --import tsx ${fixture} /run/authority /run/taken${refusal} >/run/console.log 2>&1 &
       tries=0
       until [ -s /run/authority ]; do
         tries=$((tries + 1)); [ $tries -lt 600 ] || { cat /run/console.log; exit 99; }
         sleep 0.1
       done
       cat >/etc/floe/archive.env <<END
FLOE_ARCHIVE_URL='${archive.url}'
FLOE_ARCHIVE_SHA256='${archive.sha256}'
END
       cat >/etc/floe/first-start.env <<END
FLOE_CONSOLE_URL='${console}'
FLOE_AUTHORITY='$(cat /run/authority)'
FLOE_LAYOUT='single'
FLOE_DISK_MODEL='${MODEL}'
END
       cat >/usr/local/sbin/floe-enrolment-token <<'END'
#!/bin/sh
${given.token ?? `echo floe-${'A'.repeat(43)}; echo asked >>/run/token-asked`}
END
       chmod 700 /usr/local/sbin/floe-enrolment-token
       install -m 755 ${join(module, 'first-start')} /usr/local/sbin/floe-first-start
       install -m 755 ${join(module, '../archive/fetch')} /usr/local/sbin/floe-fetch
       first() { floe-first-start; }
       ${given.before ?? ''}
       set +e
       first; echo "ended with $?"
       [ ! -e /etc/floe/host-prepare.state ] || echo 'a disk was begun'
       [ ! -e /run/token-asked ] || echo 'the token was asked for'
       echo "the console was asked $(wc -l </run/taken) times"
       ${given.after ?? ''}`,
    )
  }

  /** A start that is refused: what it says, and that no disk was touched. */
  function refused(
    given: Given,
    models?: Record<string, string>,
    fill?: (device: string) => void,
    megabytes?: number,
  ) {
    const { disk: one, nodes } = disk(models, megabytes)
    fill?.(one.device)
    const before = machine.fingerprint(one)
    const { stdout, stderr } = start(nodes, given)
    expect(stdout).not.toContain('ended with 0\n')
    expect(stdout).toContain('ended with ')
    expect(stdout).not.toContain('a disk was begun')
    expect(machine.fingerprint(one)).toBe(before)
    return { stdout, stderr }
  }

  test('without a network to the archive it says so, and no disk is touched', () => {
    const { stdout, stderr } = refused({ floe: 'fetched' })
    expect(stderr).toContain('ERROR:  the archive of Floe could not be fetched from https://127.0.0.1:1/')
    expect(stdout).toContain('asked 0 times')
    expect(stdout).not.toContain('the token was asked for')
  })

  /** A server of files by TLS, whose certificate this machine trusts. */
  const files = `mkdir /run/files && cd /run/files
    mkdir -p tree/infra && printf '#!/bin/sh\\nexit 1\\n' >tree/floe && chmod 755 tree/floe
    cp -r ${checkout}/infra/host-prepare ${checkout}/infra/host-check tree/infra/
    tar --create --gzip --file floe.tar.gz tree
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \\
      -keyout /run/key.pem -out /run/certificate.pem 2>/run/openssl.log
    export CURL_CA_BUNDLE=/run/certificate.pem
    openssl s_server -accept 9443 -cert /run/certificate.pem -key /run/key.pem -WWW >/run/files.log 2>&1 &
    tries=0
    until curl --silent --fail --output /dev/null https://127.0.0.1:9443/floe.tar.gz; do
      tries=$((tries + 1)); [ $tries -lt 100 ] || exit 98
      sleep 0.1
    done
    cd /`
  const url = 'https://127.0.0.1:9443/floe.tar.gz'

  test('an archive that is another than the one that was meant is not unpacked', () => {
    const { stderr, stdout } = refused({
      floe: 'fetched',
      archive: { url, sha256: 'a'.repeat(64) },
      before: files,
      after: `[ -e /opt/floe ] || echo 'nothing was unpacked'`,
    })
    expect(stderr).toContain('ERROR:  the archive of Floe is not the one whose SHA-256 was given')
    expect(stdout).toContain('nothing was unpacked')
  })

  test('the archive that was meant is unpacked; a machine without a disk of the right model spends no token', () => {
    const { stderr, stdout } = refused(
      {
        floe: 'fetched',
        archive: { url, sha256: 'a'.repeat(64) },
        before: `${files}
          sum=$(sha256sum /run/files/floe.tar.gz)
          sed -i "s/^FLOE_ARCHIVE_SHA256=.*/FLOE_ARCHIVE_SHA256='\${sum%% *}'/" /etc/floe/archive.env`,
        after: `[ ! -x /opt/floe/infra/host-prepare/floe-host-prepare ] || echo 'it was unpacked'`,
      },
      { nvme0n1: 'Amazon Elastic Block Store' },
    )
    expect(stdout).toContain('it was unpacked')
    expect(stdout).toMatch(/passed over: \/dev\/nvme0n1 .*not of the model asked for/)
    expect(stderr).toContain('ERROR:  there is no empty local NVMe disk')
    expect(stdout).not.toContain('the token was asked for')
  })

  test('an archive of packages is installed, and what runs then is theirs', () => {
    const { stdout, stderr } = refused(
      {
        floe: 'fetched',
        archive: { url, sha256: 'a'.repeat(64) },
        before: `${files}
          cd /run/files
          mkdir -p packages made/DEBIAN made/usr/bin made/usr/sbin made/usr/lib/floe-of-the-test
          cp -r tree/infra made/usr/lib/floe-of-the-test/
          ln -s ../lib/floe-of-the-test/infra/host-prepare/floe-host-prepare made/usr/sbin/floe-host-prepare
          cp tree/floe made/usr/lib/floe-of-the-test/floe
          ln -s ../lib/floe-of-the-test/floe made/usr/bin/floe
          printf 'Package: floe-of-the-test\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@example.org>\\nDescription: a\\n' \\
            >made/DEBIAN/control
          dpkg-deb --build made packages/floe.deb >/run/packed
          tar --create --gzip --file floe.tar.gz packages
          sum=$(sha256sum floe.tar.gz)
          sed -i "s/^FLOE_ARCHIVE_SHA256=.*/FLOE_ARCHIVE_SHA256='\${sum%% *}'/" /etc/floe/archive.env
          cd /`,
        after: `look() { dpkg-query --show floe-of-the-test; readlink -f /opt/floe/floe; ls /opt/floe; }
          look; first; echo "again $?"
          dpkg --remove floe-of-the-test; first; look`,
      },
      { nvme0n1: 'Amazon Elastic Block Store' },
    )
    const [once = '', removed = ''] = stdout.split('Removing floe-of-the-test')
    for (const part of [once, removed]) {
      expect(part).toContain('floe-of-the-test\t1\n/usr/lib/floe-of-the-test/floe\nfloe\ninfra\n')
      expect(part.match(/^Setting up floe-of-the-test/gm)).toHaveLength(1)
    }
    expect(stdout.match(/passed over: \/dev\/nvme0n1 .*not of the model asked for/g)).toHaveLength(3)
    expect(stderr).toContain('ERROR:  there is no empty local NVMe disk')
    expect(stdout).not.toContain('the token was asked for')
  })

  test('a disk that holds data is refused before a token is spent', () => {
    const { stdout, stderr } = refused({}, undefined, (device) => spawnSync('mkfs.xfs', ['-q', device]))
    expect(stdout).toMatch(/passed over: \/dev\/nvme0n1 .*it holds data: xfs/)
    expect(stderr).toContain('ERROR:  there is no empty local NVMe disk')
    expect(stdout).not.toContain('the token was asked for')
  })

  test('a disk that is too small is refused before a token is spent', () => {
    const { stdout, stderr } = refused({}, undefined, undefined, 10_239)
    expect(stdout).toMatch(/passed over: \/dev\/nvme0n1 .*it is smaller than 10240 MB/)
    expect(stderr).toContain('ERROR:  there is no empty local NVMe disk')
    expect(stdout).not.toContain('the token was asked for')
  })

  test('without a token it says so, whether its program fails or prints nothing', () => {
    for (const token of ['echo "no such parameter" >&2; exit 1', ':']) {
      const { stdout, stderr } = refused({ token })
      expect(stderr).toContain('ERROR:  there is no enrolment token to be had')
      expect(stdout).toContain('asked 0 times')
      machine.end()
      machine = new MachineOfLoops()
    }
  })

  test('a token that has expired is told as such', () => {
    const { stdout, stderr } = refused({
      refusal: {
        code: 'enrolment.token_expired',
        message: 'this token has expired',
        hint: 'Get a new one with "./floe host add".',
      },
    })
    expect(stdout).toContain('asked 1 times')
    expect(stderr).toContain('this token has expired')
    expect(stderr).toContain('ERROR:  the console has not taken this host: nothing was done to a disk')
  })

  test('without a network to the console it says so', () => {
    const { stderr } = refused({ console: 'http://127.0.0.1:1' })
    expect(stderr).toContain('could not reach the console at http://127.0.0.1:1')
    expect(stderr).toContain('nothing was done to a disk')
  })

  test('with all of that its disk is prepared, it is enrolled and its agent runs; a later start does only the last', () => {
    const { nodes } = disk()
    const swappiness = readFileSync('/proc/sys/vm/swappiness', 'utf8')
    const { stdout, stderr } = start(nodes, {
      after: `cd /opt/floe
        grep ' /var/lib/floe ' /proc/self/mountinfo
        ./floe agent status
        ls -d /var/lib/floe/*
        ./floe agent stop
        umount /var/lib/floe
        echo 'a later start'
        rm /usr/local/sbin/floe-enrolment-token
        first; echo "later ended with $?"
        grep -c ' /var/lib/floe ' /proc/self/mountinfo
        ./floe agent status
        ./floe agent stop`,
    })
    const [first, later] = stdout.split('a later start\n') as [string, string]
    expect(`${first}${stderr}`).toContain('ended with 0\n')
    expect(first).toContain('asked 1 times')
    expect(first).toMatch(/ \/var\/lib\/floe \S*noatime.* - xfs /)
    expect(first).toMatch(/^host +db1 /m)
    expect(first).toMatch(/^agent +running/m)
    // on the disk, though FLOE_HOME would do
    expect(first).toMatch(/^\/var\/lib\/floe\/[0-9a-f-]{36}$/m)
    expect(`${later}${stderr}`).toContain('later ended with 0\n1\n')
    expect(later).toMatch(/^agent +running/m)
    expect(later).not.toContain('make:')
    expect(readFileSync('/proc/sys/vm/swappiness', 'utf8')).toBe(swappiness)
  })

  test('ended once it was enrolled it goes on by itself, without another token', () => {
    const { nodes } = disk()
    const { stdout, stderr } = start(nodes, {
      // the disk is refused after the enrolment: something was put in its way meanwhile
      token: `echo floe-${'A'.repeat(43)}; mkdir -p /var/lib/floe; echo x >/var/lib/floe/file`,
      after: `rm /var/lib/floe/file /usr/local/sbin/floe-enrolment-token
        first; echo "later ended with $?"
        /opt/floe/floe agent stop`,
    })
    expect(stdout).toMatch(/ended with 3\n[\s\S]*asked 1 times/)
    expect(stderr).toContain('holds files, which the file system would hide')
    expect(`${stdout}${stderr}`).toContain('later ended with 0\n')
  })
})
