/** Waits until `look` answers something; null after the bound. `everyMs` between looks. */
export async function waitFor<T>(
  look: () => Promise<T | null | undefined | false>,
  o: { boundMs: number; everyMs: number; signal?: AbortSignal },
): Promise<T | null> {
  const deadline = performance.now() + o.boundMs
  for (;;) {
    o.signal?.throwIfAborted()
    const seen = await look()
    if (seen) return seen
    if (performance.now() >= deadline) return null
    await new Promise((resolve) => setTimeout(resolve, o.everyMs))
  }
}
