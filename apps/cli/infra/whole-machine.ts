import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDirectory } from '../src/installation/home'
import type { MachineOfLoops } from './machine-of-loops'

const checkout = join(import.meta.dirname, '../../..')

/** Why there can be no copy of this machine; null where there can. */
export function whyNoWholeMachine(): string | null {
  if (!readFileSync('/proc/filesystems', 'utf8').includes('overlay')) return 'needs overlayfs'
  for (const program of ['ip', 'curl', 'openssl'])
    if (spawnSync('which', [program]).status !== 0) return `needs ${program}`
  return null
}

/**
 * Runs a shell script in a copy of this whole machine: its files lie below an overlay, it has processes and a network to
 * itself, what it sets of the kernel is a copy, and it has no disks but those whose nodes are given. At its end all of it is
 * gone.
 */
export function wholeMachine(machine: MachineOfLoops, nodes: string, script: string) {
  machine.put('pages', 'always [madvise] never\n')
  machine.put('script', script)
  const layers = join(machine.root, 'layers')
  const enter = `set -e
    mkdir ${layers}; mount -t tmpfs tmpfs ${layers}; cd ${layers}; mkdir upper work root kernel
    # others have hosts and disks there
    mkdir -p upper/var/lib; mknod upper/var/lib/floe c 0 0
    mount -t overlay overlay -o lowerdir=/,upperdir=${layers}/upper,workdir=${layers}/work root
    # what lies on another file system is not below the overlay
    for place in ${checkout} ${cacheDirectory()}; do
      [ -n "$(ls -A "root$place" 2>/dev/null)" ] || { mkdir -p "root$place"; mount --bind "$place" "root$place"; }
    done
    rm -rf root/etc/floe; : >root/etc/fstab
    mount -t proc proc root/proc
    mount --rbind /sys root/sys
    mount -t tmpfs tmpfs root/run
    cp -r /proc/sys/. kernel 2>/dev/null || true
    rm -rf kernel/kernel/random; mkdir kernel/kernel/random
    mount --bind /proc/sys/kernel/random kernel/kernel/random
    mount --rbind kernel root/proc/sys
    mount --bind ${machine.root}/block root/sys/block
    [ ! -e root/sys/kernel/mm/transparent_hugepage/enabled ] ||
      mount --bind ${machine.root}/pages root/sys/kernel/mm/transparent_hugepage/enabled
    cp ${machine.root}/script root/run/script
    ip link set lo up
    exec chroot root sh -c '
      set -e
      mount -t tmpfs tmpfs /dev
      for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9"; do
        set -- $node; mknod -m 666 /dev/$1 c $2 $3
      done
      ln -s /proc/self/fd /dev/fd; mkdir /dev/shm; chmod 1777 /dev/shm
      ${nodes}
      exec sh /run/script'`
  return spawnSync(
    'unshare',
    ['--mount', '--propagation', 'private', '--net', '--pid', '--fork', '--kill-child', 'sh', '-c', enter],
    {
      encoding: 'utf8',
      timeout: 300_000,
      // as a machine starts: of this one's variables only where programs are
      env: {
        PATH: process.env.PATH,
        LANG: 'C.UTF-8',
        FLOE_CACHE: cacheDirectory(),
        FLOE_HOME: '/opt/floe-home',
      },
    },
  )
}
