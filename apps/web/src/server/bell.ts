/** Wakes a loop that waits for a change: what rings while the loop does something else is not missed. */
export class Bell {
  #rung = false
  #wake = () => {}

  ring(): void {
    this.#rung = true
    this.#wake()
  }

  /** Whether it rang since this was asked last. */
  takeRing(): boolean {
    const rung = this.#rung
    this.#rung = false
    return rung
  }

  /** Ends at a ring, which may have come already, or after so long. */
  async wait(atMostMs: number): Promise<void> {
    if (this.#rung) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, atMostMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
