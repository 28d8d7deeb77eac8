/** Blanks and the like in paths of the kernel's tables of mounts are written in octal: `a\\040b`. */
export const unescapeMount = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** The file system that a path lies on: the one mounted deepest above it, and of those the last. */
export function mountAbove<M extends { mount: string }>(path: string, mounts: readonly M[]): M | null {
  let best: M | null = null
  for (const one of mounts) {
    const above = one.mount === '/' || path === one.mount || path.startsWith(`${one.mount}/`)
    if (above && one.mount.length >= (best?.mount.length ?? 0)) best = one
  }
  return best
}
