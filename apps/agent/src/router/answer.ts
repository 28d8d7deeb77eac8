// What an answer of tRPC's is made of. These stand for the global classes of the same names in the bundle (build.mjs):
// Node's load its client of HTTP with a compiled WebAssembly, up to 17 MB of a process that calls nobody. So does an import
// of node:http that is more than types.

/** The fields of a head, by their names in lower case. */
export class Headers {
  readonly #fields = new Map<string, string>()

  constructor(fields: Iterable<readonly [string, string]> = []) {
    for (const [name, value] of fields) this.append(name, value)
  }

  get(name: string): string | null {
    return this.#fields.get(name.toLowerCase()) ?? null
  }

  has(name: string): boolean {
    return this.#fields.has(name.toLowerCase())
  }

  set(name: string, value: string): void {
    this.#fields.set(name.toLowerCase(), value)
  }

  append(name: string, value: string): void {
    const present = this.get(name)
    this.set(name, present === null ? value : `${present}, ${value}`)
  }

  entries(): MapIterator<[string, string]> {
    return this.#fields.entries()
  }

  [Symbol.iterator](): MapIterator<[string, string]> {
    return this.entries()
  }
}

export class Response {
  readonly body: string | ReadableStream<Uint8Array> | null
  readonly status: number
  readonly headers: Headers

  constructor(
    body: string | ReadableStream<Uint8Array> | null = null,
    { status = 200, headers = new Headers() }: { status?: number; headers?: Headers } = {},
  ) {
    this.body = body
    this.status = status
    this.headers = headers
  }
}
