import { expect, test } from 'vitest'
import { keptInside, movedView, reachOf, viewOn, zoomedBy } from './timeline-view'

const window = { from: 0, to: 1_000_000 }

test('zooming in keeps the moment where it is seen, and zooming out far enough shows the whole window', () => {
  const view = zoomedBy(null, window, 0.5, 250_000)
  expect(view).toEqual({ from: 125_000, to: 625_000 })
  expect(zoomedBy(view, window, 0.5, 250_000)).toEqual({ from: 187_500, to: 437_500 })
  expect(zoomedBy(view, window, 2, 250_000)).toBeNull()
  expect(zoomedBy({ from: 0, to: 15_000 }, window, 0.1, null)).toEqual({ from: 2_500, to: 12_500 })
})

test('a view never leaves the window', () => {
  expect(movedView({ from: 100_000, to: 300_000 }, window, -1)).toEqual({ from: 0, to: 200_000 })
  expect(movedView({ from: 700_000, to: 900_000 }, window, 1)).toEqual({ from: 800_000, to: 1_000_000 })
  expect(keptInside({ from: 100, to: 20_100 }, { from: 5_000, to: 900_000 })).toEqual({
    from: 5_000,
    to: 25_000,
  })
  expect(keptInside({ from: 0, to: 90_000 }, { from: 50_000, to: 100_000 })).toBeNull()
})

test('the view follows a moment that leaves it', () => {
  const view = { from: 100_000, to: 200_000 }
  expect(viewOn(view, window, 150_000)).toBe(view)
  expect(viewOn(view, window, 500_000)).toEqual({ from: 450_000, to: 550_000 })
  expect(viewOn(null, window, 5)).toBeNull()
})

test('of a moment outside the window the nearest one that works is named', () => {
  expect(reachOf({ from: 100.4, to: 900 }, 50, 1_000)).toEqual({ place: 'before', nearest: 101 })
  expect(reachOf({ from: 100.4, to: 900 }, 950, 1_000)).toEqual({ place: 'within' })
  expect(reachOf({ from: 100.4, to: 900 }, 1_500, 1_000)).toEqual({ place: 'after', nearest: 1_000 })
})
