/**
 * What Node is started with wherever an agent is: what it takes its instances lack. It makes little garbage a second and
 * lives for months, so a small young generation is enough, and code is compiled to be small. The C library has one arena,
 * and gives back pieces of 16 kB and more at once: what V8 took to compile would stay between others, 4 to 10 MB.
 */
export const agentStart = {
  options: [
    '--max-semi-space-size=2',
    '--semi-space-growth-factor=1',
    '--max-old-space-size=128',
    '--optimize-for-size',
  ],
  environment: { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '16384' },
}
