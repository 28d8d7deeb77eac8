import { createHash, timingSafeEqual } from 'node:crypto'
import type { AgentKey } from '@floe/agent-contract'

/** Which key a request shows; null for none or a wrong one. Hashes are compared, so neither length nor content leaks. */
export function keyOf(
  authorization: string | undefined,
  keys: { read: string; task: string },
): AgentKey | null {
  const shown = /^Bearer (\S+)$/.exec(authorization ?? '')?.[1]
  if (shown === undefined) return null
  // both are compared in every case
  const isTask = equals(shown, keys.task)
  const isRead = equals(shown, keys.read)
  return isTask ? 'task' : isRead ? 'read' : null
}

function equals(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return b !== '' && timingSafeEqual(hash(a), hash(b))
}
