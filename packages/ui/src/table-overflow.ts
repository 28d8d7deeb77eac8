/** How far a box can be scrolled to either side, in pixels. */
export type Overflow = {
  left: number
  right: number
  /** What its content needs where it is too wide: then its first column wraps. Null while everything fits. */
  neededWidth: number | null
}
export const noOverflow: Overflow = { left: 0, right: 0, neededWidth: null }

type Box = { scrollLeft: number; scrollWidth: number; clientWidth: number }

/**
 * What lies beyond the edges of a box after a change. A first column that wraps may make everything fit; it goes on wrapping until
 * there is room for what was needed without, or the two would take turns for ever.
 */
export function overflowAfter(before: Overflow, { scrollLeft, scrollWidth, clientWidth }: Box): Overflow {
  const left = Math.round(scrollLeft)
  // a pixel of rounding hides nothing
  const right = Math.max(0, scrollWidth - clientWidth - left - 1)
  const fits = left === 0 && right === 0
  const { neededWidth: needed } = before
  const neededWidth = needed === null ? (fits ? null : scrollWidth) : clientWidth >= needed ? null : needed
  return before.left === left && before.right === right && needed === neededWidth
    ? before
    : { left, right, neededWidth }
}
