import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, ftruncateSync, openSync, rmSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { waitUntil } from '@floe/host/wait'

/** Directory of a guest's kernel, from the suite; empty where there is none. */
export const { FLOE_TEST_GUEST: guest = '' } = process.env
export const here = guest === '' ? ' (left out: ./floe test --long infra makes one)' : ''

export const MEGABYTE = 1_048_576

/** An empty disk, of which only what is written takes room. */
export function emptyDisk(path: string, megabytes: number): void {
  const descriptor = openSync(path, 'w')
  ftruncateSync(descriptor, megabytes * MEGABYTE)
  closeSync(descriptor)
}

/** A disk by its serial number; of one that is only read, what the guest writes is dropped. */
type Disk = { serial: string; path: string; keeps?: boolean }

type Machine = {
  memoryMegabytes: number
  append: string
  arguments?: readonly string[]
  disks: readonly Disk[]
  boundMs: number
  onLine?: (line: string) => void
  /** What QEMU is put behind, as to run in a network namespace. */
  command?: readonly string[]
  /** The tap that is its network; none where there is none. */
  tap?: string
  /** Socket of its second serial port. */
  shell?: string
}

/** A machine of QEMU with these NVMe disks in this order; a restart ends it, as switching it off does. */
function qemu(o: Machine): ChildProcess {
  const devices = o.disks.flatMap(({ serial, path, keeps = true }, i) => [
    ...['-drive', `file=${path},if=none,id=d${i},format=raw,cache=unsafe,snapshot=${keeps ? 'off' : 'on'}`],
    ...['-device', `nvme,drive=d${i},serial=${serial}`],
  ])
  // it starts from no network, so that it needs no firmware for that
  const card = ['-device', 'virtio-net-pci,netdev=n0,romfile=']
  const network = o.tap
    ? ['-netdev', `tap,id=n0,ifname=${o.tap},script=no,downscript=no`, ...card]
    : ['-nic', 'none']
  const [file, ...words] = [...(o.command ?? []), 'nice', '-n', '10', 'qemu-system-x86_64']
  return spawn(
    file as string,
    [
      ...words,
      ...['-accel', 'tcg,thread=multi', '-cpu', 'max', '-smp', '2', '-m', String(o.memoryMegabytes)],
      ...['-nographic', '-no-reboot', ...network, '-monitor', 'none', '-serial', 'stdio'],
      ...(o.shell ? ['-serial', `unix:${o.shell},server=on,wait=off`] : []),
      ...['-kernel', join(guest, 'kernel'), ...(o.arguments ?? [])],
      // emulated processors leak nothing to each other, and the test of timers at boot fails on a busy machine
      ...['-append', `console=ttyS0 quiet panic=-1 mitigations=off no_timer_check ${o.append}`],
      ...devices,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], timeout: o.boundMs, killSignal: 'SIGKILL' },
  )
}

type Ended = { status: number | null; said: string }

function endOf(child: ChildProcess, onLine?: (line: string) => void): Promise<Ended> {
  let said = ''
  let line = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      const clean = text.replaceAll('\r', '')
      said += clean
      const lines = (line + clean).split('\n')
      line = lines.pop() ?? ''
      for (const one of lines) onLine?.(one)
    })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (status) => resolve({ status, said }))
  })
}

/**
 * Runs a machine of QEMU until it switches itself off, and answers how QEMU ended and what the console said. It gives way to
 * everything else on the machine; where that is busy its timers are late, and what it measures falls short.
 */
export const runGuest = (o: Machine): Promise<Ended> => endOf(qemu(o), o.onLine)

/** A machine that runs on, and does what it is asked on its second serial port (the script `shell`). */
export class RunningGuest {
  readonly ended: Promise<Ended>
  readonly #child: ChildProcess
  readonly #path: string
  #socket: Socket | undefined
  #heard = ''

  constructor(o: Machine & { shell: string }) {
    // what a machine left whose power was cut, so that what answers there is this one
    rmSync(o.shell, { force: true })
    this.#child = qemu(o)
    this.#path = o.shell
    this.ended = endOf(this.#child, o.onLine)
  }

  /** Waits until it answers; a machine that ended meanwhile is told with what its console said. */
  async answers(boundMs: number): Promise<void> {
    this.#socket = await waitUntil('QEMU opens the port', () => this.#connected(), 60_000, 100)
    this.#socket.setEncoding('latin1').on('data', (text) => {
      this.#heard += text
    })
    this.#socket.on('error', () => {})
    await this.#line('the guest starts', boundMs)
  }

  #connected = (): Promise<Socket | null> =>
    new Promise((resolve) => {
      const socket = createConnection(this.#path)
      socket.once('connect', () => resolve(socket))
      socket.once('error', () => resolve(null))
    })

  async #line(what: string, boundMs: number): Promise<string> {
    const ended = this.ended.then(({ said }) => {
      throw new Error(`the guest ended before ${what}:\n${said}`)
    })
    const line = waitUntil(what, () => /^.*?\n/.exec(this.#heard)?.[0] ?? null, boundMs, 100)
    const found = await Promise.race([line, ended])
    this.#heard = this.#heard.slice(found.length)
    return found.trim()
  }

  /** Runs a shell script of at most 3000 characters as root, and answers how it ended and what it said. */
  async run(script: string, boundMs = 300_000): Promise<{ status: number; said: string }> {
    this.#socket?.write(`${Buffer.from(script).toString('base64')}\n`)
    const [status, said = ''] = (await this.#line(`it has run ${script}`, boundMs)).split(' ')
    return { status: Number(status), said: Buffer.from(said, 'base64').toString('utf8') }
  }

  /** Has it restart, which ends it here. */
  async restarts(boundMs: number): Promise<void> {
    // it goes down before it has answered, or after
    this.#socket?.write(`${Buffer.from('systemctl --no-block reboot').toString('base64')}\n`)
    const { status, said } = await this.#goesDown(boundMs)
    if (status !== 0) throw new Error(`QEMU ended with ${status}:\n${said}`)
  }

  /** Cuts its power, where it has any; its disks and its tap are free for another one then. */
  async powerOff(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#goesDown(60_000)
  }

  async #goesDown(boundMs: number): Promise<Ended> {
    let isDown = false
    const down = () => {
      isDown = true
    }
    this.ended.then(down, down)
    await waitUntil('QEMU has ended', () => isDown, boundMs, 100)
    return this.ended
  }
}
