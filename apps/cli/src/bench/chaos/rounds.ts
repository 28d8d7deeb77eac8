import { InstallationOnHosts } from './installation-on-hosts'
import type { Planned } from './plan'
import type { Kept, RoundResult } from './round'
import type { Story } from './story'

const HOSTS = 3

/** Takes everything away when the person gives up: Ctrl-C, a closed terminal. Answers how to end that. */
function onInterrupt(remove: () => void): () => void {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const end = () => {
    process.stderr.write('floe: taking away hosts, disks and processes\n')
    remove()
    process.exit(130)
  }
  for (const signal of signals) process.once(signal, end)
  return () => {
    for (const signal of signals) process.off(signal, end)
  }
}

type Playing<P> = {
  story: Story
  say: (line: string) => void
  hosts: number | undefined
  title: (one: P) => string
  play: (on: InstallationOnHosts, kept: Kept, round: number, one: P) => Promise<RoundResult>
}

/**
 * Plays rounds one after another, on one installation for as long as it comes out whole; after one that does not the next
 * begins with a new one. A round that cannot be played to its end is told of and counts as broken off. Takes everything away.
 */
export async function playAll<P extends Planned<unknown, unknown>>(
  planned: readonly P[],
  { story, say, hosts, title, play }: Playing<P>,
): Promise<{ results: RoundResult[]; broken: string[] }> {
  const results: RoundResult[] = []
  const broken: string[] = []
  const kept: Kept = new Map()
  let on: InstallationOnHosts | null = null
  const noMore = onInterrupt(() => on?.remove())
  try {
    for (const [i, one] of planned.entries()) {
      const what = `round ${i + 1} of ${planned.length}: ${title(one)}`
      let whole = false
      if (on === null) {
        kept.clear()
        story.begin('a new installation')
        on = new InstallationOnHosts(hosts ?? HOSTS, story)
        await on.bringUp(say)
      }
      try {
        const result = await play(on, kept, i + 1, one)
        results.push(result)
        whole = result.missing === null
        const failed = result.failures.length > 0 ? ': FAILED' : ''
        say(
          `${what}: ${result.acknowledged} acknowledged, ${result.lost} lost, gap ${Math.round(result.gapMs)} ms${failed}`,
        )
        if (failed) for (const line of story.lines) say(line)
      } catch (error) {
        const words = error instanceof Error ? error.message : String(error)
        story.tell(`BROKEN OFF: ${words}`)
        broken.push(`round ${i + 1} (${title(one)}): ${words}`)
        say(`${what}: broken off: ${words}`)
        for (const line of story.lines) say(line)
      }
      if (!whole) {
        on.remove()
        on = null
      }
    }
  } finally {
    noMore()
    on?.remove()
  }
  return { results, broken }
}
