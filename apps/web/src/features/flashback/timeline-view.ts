import { type Stretch, within } from './window-scale'

/** Zoomed in further, a second would be wider than a hand's breadth. */
const SHORTEST_VIEW_MS = 10_000

/** A stretch of this length as near to the wanted one as the window allows. */
function inside({ from, to }: Stretch, window: Stretch): Stretch {
  const span = Math.min(to - from, window.to - window.from)
  const begin = Math.min(Math.max(from, window.from), window.to - span)
  return { from: begin, to: begin + span }
}

/** The view with `factor` times the length, in which `at` keeps its place; null is the whole window. */
export function zoomedBy(
  view: Stretch | null,
  window: Stretch,
  factor: number,
  at: number | null,
): Stretch | null {
  const seen = view ?? window
  const span = seen.to - seen.from
  const next = Math.max(SHORTEST_VIEW_MS, span * factor)
  if (next >= window.to - window.from) return null
  const middle = at !== null && at >= seen.from && at <= seen.to ? at : (seen.from + seen.to) / 2
  const share = span > 0 ? (middle - seen.from) / span : 0.5
  const from = middle - share * next
  return inside({ from, to: from + next }, window)
}

/** The view moved by a share of its length. */
export const movedView = (view: Stretch, window: Stretch, share: number): Stretch => {
  const by = (view.to - view.from) * share
  return inside({ from: view.from + by, to: view.to + by }, window)
}

/** The view from which a moment can be seen: the same one, or one of the same length around the moment. */
export function viewOn(view: Stretch | null, window: Stretch, at: number): Stretch | null {
  if (view === null || (at >= view.from && at <= view.to)) return view
  const half = (view.to - view.from) / 2
  const shown = within(window, at)
  return inside({ from: shown - half, to: shown + half }, window)
}

/** A view of a window that has moved on since. */
export const keptInside = (view: Stretch | null, window: Stretch): Stretch | null =>
  view === null || view.to - view.from >= window.to - window.from ? null : inside(view, window)

/** Where a moment is seen from the window, and the nearest moment that works. */
export type Reach = { place: 'within' } | { place: 'before' | 'after'; nearest: number }

/** `newest` is now, or the last moment that a standby knows all of. */
export function reachOf(window: Stretch, at: number, newest: number): Reach {
  if (at < window.from) return { place: 'before', nearest: Math.ceil(window.from) }
  return at > newest ? { place: 'after', nearest: Math.floor(newest) } : { place: 'within' }
}
