import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { memoryMapOf, sumUpMaps } from './memory-map'
import { residentMegabytes } from './processor-time'

const smaps = `00400000-00746000 r--p 00000000 fe:00 12 /opt/node
Rss:                1024 kB
Pss:                 512 kB
Anonymous:             0 kB
0074a000-03044000 r-xp 0034a000 fe:00 12                         /opt/node
Rss:                2048 kB
Pss:                1024 kB
Anonymous:             0 kB
13bd1000-13e00000 rw-p 00000000 00:00 0                          [heap]
Rss:                4096 kB
Pss:                4096 kB
Anonymous:          4096 kB
7f0000000000-7f0000100000 rw-p 00000000 00:00 0 
Rss:                8192 kB
Pss:                8192 kB
Anonymous:          8192 kB
7f1000000000-7f1000100000 r-xp 00000000 fe:00 9                  /lib/libc.so.6
Rss:                1024 kB
Pss:                 256 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
`

test('memory is the program’s, of libraries, of the arena, or other memory of no file', () => {
  expect(sumUpMaps(smaps, '/opt/node')).toEqual({
    resident: 16,
    proportional: 13.75,
    anonymous: 12,
    arena: 4,
    program: 3,
    programText: 2,
    libraries: 1,
  })
})

test('the parts of a real process come to what the kernel says that it has', async () => {
  const child = spawn(process.execPath, ['-e', 'process.stdout.write("."); setInterval(() => {}, 1e9)'])
  try {
    await once(child.stdout, 'data')
    const pid = child.pid as number
    const map = memoryMapOf(pid)
    // the kernel counts pages by processor and adds them up late
    expect(Math.abs(map.resident - residentMegabytes(pid))).toBeLessThan(2)
    expect(map.anonymous + map.program + map.libraries).toBeLessThan(map.resident + 2)
    expect(map.programText).toBeGreaterThan(1)
    expect(map.program).toBeGreaterThan(map.programText)
  } finally {
    child.kill('SIGKILL')
  }
})
