import { isLocalPeer } from '../peer-address'

const WINDOW_MS = 60_000
/** Wrong passphrases within a minute before one has to wait: of a peer for one account, or of a browser known to it … */
const PAIR_MAX = 5
/** … for one account, from however many peers it is guessed at … */
const ACCOUNT_MAX = 100
/** … and of a peer, however many accounts it tries. On this machine it may be a proxy with everybody behind it. */
const PEER_MAX = 30
const LOCAL_PEER_MAX = 300
const KEPT_MAX = 10_000

export type Attempt = {
  email: string
  peer: string | null
  /** Of a browser that has signed in to this account before (known-device.ts): nobody else can make it wait. */
  device: string | null
}

/**
 * Counts wrong passphrases in this process; who is over a bound is not refused but late (late-checks.ts). An attempt counts from its beginning, so that many at once are not all let
 * through, and is not counted when no passphrase was looked at or it was right.
 */
export class SignInLimit {
  readonly #moments = new Map<string, object[]>()
  readonly #at = new WeakMap<object, number>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** Milliseconds until an attempt is within the bounds; 0 when it is. */
  waitMs(attempt: Attempt): number {
    return Math.max(
      ...boundsOf(attempt).map(({ key, max }) => {
        const recent = this.#recent(key)
        const oldest = recent[recent.length - max]
        return oldest === undefined ? 0 : this.#momentOf(oldest) + WINDOW_MS - this.#now()
      }),
    )
  }

  /** Notes an attempt. Call what is answered unless its passphrase was wrong. */
  begin(attempt: Attempt): () => void {
    const moment = {}
    this.#at.set(moment, this.#now())
    const keys = boundsOf(attempt).map(({ key }) => key)
    for (const key of keys) this.#keep(key, [...this.#recent(key), moment])
    return () => {
      for (const key of keys)
        this.#keep(
          key,
          this.#recent(key).filter((m) => m !== moment),
        )
    }
  }

  /** A success forgets what this peer got wrong for the account; it may have got into one account only. */
  succeeded(attempt: Attempt) {
    const [pair] = boundsOf(attempt)
    if (pair) this.#moments.delete(pair.key)
  }

  #momentOf(moment: object): number {
    return this.#at.get(moment) as number
  }

  #recent(key: string): object[] {
    const since = this.#now() - WINDOW_MS
    return (this.#moments.get(key) ?? []).filter((moment) => this.#momentOf(moment) > since)
  }

  #keep(key: string, moments: object[]) {
    // to the end: the first key is always the one that failed longest ago
    this.#moments.delete(key)
    if (moments.length > 0) this.#moments.set(key, moments)
    if (this.#moments.size > KEPT_MAX) this.#moments.delete(this.#moments.keys().next().value as string)
  }
}

/** What an attempt counts for; the pair of account and peer comes first. */
function boundsOf({ email, peer, device }: Attempt): { key: string; max: number }[] {
  const account = email.toLowerCase()
  if (device !== null) return [{ key: `device ${device} ${account}`, max: PAIR_MAX }]
  return [
    { key: `pair ${peer} ${account}`, max: PAIR_MAX },
    { key: `account ${account}`, max: ACCOUNT_MAX },
    { key: `peer ${peer}`, max: isLocalPeer(peer) ? LOCAL_PEER_MAX : PEER_MAX },
  ]
}
