import { spawn } from 'node:child_process'
import { closeSync, ftruncateSync, openSync } from 'node:fs'
import { join } from 'node:path'

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

/**
 * Runs a machine of QEMU with these NVMe disks in this order until it switches itself off, and answers how QEMU ended and
 * what the console said. It gives way to everything else on the machine; where that is busy its
 * timers are late, and what it measures falls short.
 */
export async function runGuest(o: {
  memoryMegabytes: number
  append: string
  arguments?: readonly string[]
  disks: readonly Disk[]
  boundMs: number
  onLine?: (line: string) => void
}): Promise<{ status: number | null; said: string }> {
  const devices = o.disks.flatMap(({ serial, path, keeps = true }, i) => [
    ...['-drive', `file=${path},if=none,id=d${i},format=raw,cache=unsafe,snapshot=${keeps ? 'off' : 'on'}`],
    ...['-device', `nvme,drive=d${i},serial=${serial}`],
  ])
  const child = spawn(
    'nice',
    [
      ...['-n', '10', 'qemu-system-x86_64'],
      ...['-accel', 'tcg,thread=multi', '-cpu', 'max', '-smp', '2', '-m', String(o.memoryMegabytes)],
      ...['-nographic', '-no-reboot', '-nic', 'none', '-monitor', 'none', '-serial', 'stdio'],
      ...['-kernel', join(guest, 'kernel'), ...(o.arguments ?? [])],
      // emulated processors leak nothing to each other, and the test of timers at boot fails on a busy machine
      ...['-append', `console=ttyS0 quiet panic=-1 mitigations=off no_timer_check ${o.append}`],
      ...devices,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], timeout: o.boundMs, killSignal: 'SIGKILL' },
  )
  let said = ''
  let line = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      const clean = text.replaceAll('\r', '')
      said += clean
      const lines = (line + clean).split('\n')
      line = lines.pop() ?? ''
      for (const one of lines) o.onLine?.(one)
    })
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return { status, said }
}
