/** Waits for a condition with a bound instead of sleeping; throws with what was waited for. */
export async function waitUntil<T>(
  what: string,
  look: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  boundMs = 15_000,
  everyMs = 25,
): Promise<T> {
  const deadline = performance.now() + boundMs
  let last: unknown
  for (;;) {
    try {
      const seen = await look()
      if (seen) return seen
      last = undefined
    } catch (error) {
      last = error
    }
    if (performance.now() >= deadline)
      throw new Error(
        `waited ${boundMs} ms in vain until ${what}`,
        last === undefined ? undefined : { cause: last },
      )
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
