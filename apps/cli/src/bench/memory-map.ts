import { readFileSync, readlinkSync } from 'node:fs'

/** Where the resident memory of a process is, in MB of 1024 kB. */
export type MemoryMap = {
  resident: number
  /** Its proportional share: a page that n processes have counts as 1/n. */
  proportional: number
  /** Pages of no file: its own, whatever else runs. */
  anonymous: number
  /** Of those, what the C library allocated from its main arena. */
  arena: number
  /** Pages of its program's file, which every process of that program shares and the kernel can drop. */
  program: number
  /** Of those, machine code. */
  programText: number
  /** Pages of libraries. */
  libraries: number
}

const header = /^[0-9a-f]+-[0-9a-f]+ (\S{4}) \S+ \S+ \S+ *(.*)$/
const field = /^(Rss|Pss|Anonymous): +(\d+) kB$/

/** Sums up a text of /proc/PID/smaps. */
export function sumUpMaps(smaps: string, program: string): MemoryMap {
  const sums: MemoryMap = {
    resident: 0,
    proportional: 0,
    anonymous: 0,
    arena: 0,
    program: 0,
    programText: 0,
    libraries: 0,
  }
  let permissions = ''
  let name = ''
  const addResident = (megabytes: number) => {
    sums.resident += megabytes
    if (name === '[heap]') sums.arena += megabytes
    else if (name === program) {
      sums.program += megabytes
      if (permissions.includes('x')) sums.programText += megabytes
    } else if (name.startsWith('/')) sums.libraries += megabytes
  }
  for (const line of smaps.split('\n')) {
    const [, key, kilobytes] = field.exec(line) ?? []
    if (key === undefined) {
      const [, allowed, of] = header.exec(line) ?? []
      if (allowed !== undefined) [permissions, name] = [allowed, of ?? '']
      continue
    }
    const megabytes = Number(kilobytes) / 1024
    if (key === 'Rss') addResident(megabytes)
    else if (key === 'Pss') sums.proportional += megabytes
    else sums.anonymous += megabytes
  }
  return sums
}

export const memoryMapOf = (pid: number): MemoryMap =>
  sumUpMaps(readFileSync(`/proc/${pid}/smaps`, 'utf8'), readlinkSync(`/proc/${pid}/exe`))
