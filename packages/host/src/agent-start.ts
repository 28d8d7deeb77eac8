/**
 * What Node is started with wherever an agent is: what it takes its instances lack. It makes little garbage a second and
 * lives for months, so a small young generation is enough, code is compiled to be small, and the C library has one arena.
 */
export const agentStart = {
  options: [
    '--max-semi-space-size=2',
    '--semi-space-growth-factor=1',
    '--max-old-space-size=128',
    '--optimize-for-size',
  ],
  environment: { MALLOC_ARENA_MAX: '1' },
}
