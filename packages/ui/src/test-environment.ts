import { cleanup } from '@testing-library/react'
import { afterEach } from 'vitest'

// jsdom lays nothing out; the charts only ask for a width
globalThis.ResizeObserver = class {
  constructor(private readonly report: ResizeObserverCallback) {}
  observe(target: Element) {
    this.report(
      [{ contentRect: { width: 600, height: 200 }, target } as unknown as ResizeObserverEntry],
      this,
    )
  }
  unobserve() {}
  disconnect() {}
}
Element.prototype.scrollIntoView ??= () => {}
Element.prototype.hasPointerCapture ??= () => false

afterEach(cleanup)
