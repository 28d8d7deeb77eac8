import type { Socket } from 'node:net'
import type pg from 'pg'

type Wire = {
  query(text: string): void
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
  sendCopyFail(message: string): void
  stream: Socket
}

/** `COPY … FROM STDIN` over a connection of pg: what is written goes on as it comes, and waits where the server is slower. */
export class CopyIn implements pg.Submittable {
  readonly text: string
  /** pg calls nobody back. */
  readonly callback = () => {}
  readonly #began = Promise.withResolvers<Wire>()
  readonly #ended = Promise.withResolvers<number>()
  #rows = 0
  #over = false

  constructor(text: string) {
    this.text = text
    // each is waited for in its turn
    for (const { promise } of [this.#began, this.#ended] as { promise: Promise<unknown> }[])
      promise.catch(() => {})
  }

  /** Resolves once the server can take more; throws what the server says against it. */
  async write(chunk: Buffer): Promise<void> {
    const wire = await this.#began.promise
    if (this.#over) await this.#ended.promise
    wire.sendCopyFromChunk(chunk)
    if (!wire.stream.writableNeedDrain) return
    const drained = new Promise<void>((resolve) => {
      wire.stream.once('drain', resolve)
      wire.stream.once('close', resolve)
    })
    await Promise.race([drained, this.#ended.promise])
  }

  /** The number of rows, once the server has taken all of them. */
  async end(): Promise<number> {
    const wire = await this.#began.promise
    if (!this.#over) wire.endCopyFrom()
    return this.#ended.promise
  }

  /** Has the server drop what it was given; it answers with an error, as if it had found one. */
  async giveUp(): Promise<void> {
    const wire = await this.#began.promise
    if (!this.#over) wire.sendCopyFail('given up')
    await this.#ended.promise
  }

  submit(connection: pg.Connection): void {
    ;(connection as unknown as Wire).query(this.text)
  }

  // what pg calls
  handleCopyInResponse(connection: unknown): void {
    this.#began.resolve(connection as Wire)
  }

  handleCommandComplete(message: { text?: string }): void {
    this.#rows = Number(/^COPY (\d+)$/.exec(message.text ?? '')?.[1] ?? 0)
  }

  handleReadyForQuery(): void {
    this.#over = true
    this.#ended.resolve(this.#rows)
  }

  handleError(error: Error): void {
    this.#over = true
    this.#began.reject(error)
    this.#ended.reject(error)
  }
}
