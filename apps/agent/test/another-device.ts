import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { makeScratchDirectory } from '@floe/testkit'

/** Whether this machine lets tests mount file systems of their own. */
export const mayMount =
  process.getuid?.() === 0 &&
  spawnSync('losetup', ['--version']).status === 0 &&
  spawnSync('mkfs.ext4', ['-V']).status === 0

export function run(file: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${file} ${args.join(' ')}: ${stderr}`)
  return stdout.trim()
}

/** With a file system on a device of its own, which is gone afterwards. */
export async function onAnotherDevice(
  body: (o: { mounted: string; device: string }) => Promise<void>,
): Promise<void> {
  const scratch = makeScratchDirectory('another-device')
  const [image, mounted] = [join(scratch.path, 'image'), join(scratch.path, 'mounted')]
  run('truncate', '-s', '1G', image)
  mkdirSync(mounted)
  const device = run('losetup', '--find', '--show', image)
  try {
    run('mkfs.ext4', '-q', device)
    run('mount', device, mounted)
    await body({ mounted, device: basename(device) })
  } finally {
    spawnSync('umount', ['--lazy', mounted])
    run('losetup', '--detach', device)
    scratch.remove()
  }
}
