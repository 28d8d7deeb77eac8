import { isLocalPeer } from '../peer-address'

const WINDOW_MS = 60_000
/** Failures within a minute before one has to wait: of an account, from however many addresses it is guessed at … */
const ACCOUNT_MAX = 5
/** … and of a peer, however many accounts it tries. On this machine it may be a proxy with everybody behind it. */
const PEER_MAX = 30
const LOCAL_PEER_MAX = 300
/** Audit rows that failures may cause in a minute: whoever fails on purpose must not fill the control database. */
const AUDITED_MAX = 60
const KEPT_MAX = 10_000

export type Attempt = { email: string; peer: string | null }

/** Counts failed sign-ins in this process, by account and by the peer that the server itself sees. */
export class SignInLimit {
  readonly #accounts: Failures
  readonly #peers: Failures
  readonly #audited: Failures
  #unwritten = 0

  constructor(now: () => number = Date.now) {
    this.#accounts = new Failures(now)
    this.#peers = new Failures(now)
    this.#audited = new Failures(now)
  }

  /** Milliseconds to wait before trying; 0 when one may try. */
  waitMs({ email, peer }: Attempt): number {
    const peerMax = isLocalPeer(peer) ? LOCAL_PEER_MAX : PEER_MAX
    return Math.max(
      this.#accounts.waitMs(accountKey(email), ACCOUNT_MAX),
      this.#peers.waitMs(peer ?? '', peerMax),
    )
  }

  /** Notes a failure. Answers how many failures before it left no audit row, or null when this one is to leave none either. */
  failed({ email, peer }: Attempt): number | null {
    this.#accounts.add(accountKey(email))
    this.#peers.add(peer ?? '')
    if (this.#audited.waitMs('', AUDITED_MAX) > 0) {
      this.#unwritten++
      return null
    }
    this.#audited.add('')
    const unwritten = this.#unwritten
    this.#unwritten = 0
    return unwritten
  }

  /** A success forgets the account's failures; the peer's stay, for it may have got into one account only. */
  succeeded({ email }: Attempt) {
    this.#accounts.forget(accountKey(email))
  }
}

const accountKey = (email: string) => email.toLowerCase()

/** Moments of failures by key, as far as they count. */
class Failures {
  readonly #moments = new Map<string, number[]>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  waitMs(key: string, max: number): number {
    const recent = this.#recent(key)
    if (recent.length < max) return 0
    return Math.max(0, (recent[recent.length - max] as number) + WINDOW_MS - this.#now())
  }

  add(key: string) {
    const recent = [...this.#recent(key), this.#now()]
    // to the end: the first key is always the one that failed longest ago
    this.#moments.delete(key)
    this.#moments.set(key, recent)
    if (this.#moments.size > KEPT_MAX) this.#moments.delete(this.#moments.keys().next().value as string)
  }

  forget(key: string) {
    this.#moments.delete(key)
  }

  #recent(key: string): number[] {
    const since = this.#now() - WINDOW_MS
    return (this.#moments.get(key) ?? []).filter((at) => at > since)
  }
}
