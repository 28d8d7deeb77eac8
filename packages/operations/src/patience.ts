/** How long operations wait for what may not come, in ms. A controller takes the product's; tests may wait less. */
export type Patience = {
  /** A question to an agent that gets no answer has failed after this. */
  questionMs: number
  /** After this long without an answer a cancelled step is given up, although its task may still run on the host. */
  cancelGiveUpMs: number
  /** When steps are undone, a host that has not answered for this long is left as it is, and the operation reports that. */
  undoGiveUpMs: number
  /** A host that a person named as unreachable is tried for this long all the same. */
  withoutHostMs: number
  /** For this long after its begin or a standstill, a controller may lack reports of hosts that are well. */
  lookAgainMs: number
  /** A failover waits this long for a host that has to be fenced, or may hold what the candidate lacks. */
  neededMs: number
  /** Synchronous standbys may take this long to connect before the operation ends with commits waiting. */
  connectMs: number
}

/** The product's patience. */
export const PATIENCE: Readonly<Patience> = {
  questionMs: 3_000,
  cancelGiveUpMs: 60_000,
  undoGiveUpMs: 15_000,
  withoutHostMs: 5_000,
  lookAgainMs: 10_000,
  neededMs: 15_000,
  connectMs: 15_000,
}

/**
 * The product's patience with other values, for tests. Throws where one is shorter than what it waits for: a host that
 * answers slowly is not a silent one, and what is given up may not be given up before it was asked again.
 */
export function patienceWith(changes: Partial<Patience>): Patience {
  const patience = { ...PATIENCE, ...changes }
  const atLeast = (name: keyof Patience, ms: number, why: string) => {
    if (!(patience[name] >= ms)) throw new RangeError(`${name} must be at least ${ms} ms: ${why}`)
  }
  const { questionMs } = patience
  atLeast('neededMs', questionMs, 'a host that is needed is asked until its question ends')
  atLeast('undoGiveUpMs', questionMs, 'a host is asked once before it is left as it is')
  atLeast('cancelGiveUpMs', questionMs, 'a host is asked once before its step is given up')
  atLeast(
    'cancelGiveUpMs',
    patience.withoutHostMs,
    'a step that can go on without its host is not given up before',
  )
  return patience
}
