import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'

/** One psql that runs statements in order and answers what each printed; it ends with its connection. */
export class PsqlSession {
  readonly #child: ChildProcessWithoutNullStreams
  #output = ''
  #waiting: { marker: string; resolve: (text: string) => void; reject: (error: Error) => void } | null = null
  #ended = false
  #count = 0

  /** `psql` may be a program, or the words that start it elsewhere. */
  constructor(psql: string | readonly string[], uri: string, password: string) {
    const [file, ...words] = typeof psql === 'string' ? [psql] : psql
    this.#child = spawn(file as string, [...words, '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', uri], {
      env: { PATH: process.env.PATH ?? '', PGPASSWORD: password, PGCONNECT_TIMEOUT: '2' },
    })
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => this.#read(text))
    this.#child.stderr.resume()
    this.#child.stdin.on('error', () => {})
    // a program that cannot be started is closed, too
    this.#child.on('error', () => {})
    this.#child.on('close', () => {
      this.#ended = true
      this.#waiting?.reject(new Error('psql ended'))
      this.#waiting = null
    })
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Runs a statement; rejects when the connection broke before it was answered. */
  run(statement: string): Promise<string> {
    if (this.#ended) return Promise.reject(new Error('psql ended'))
    const marker = `--end ${++this.#count}--`
    return new Promise((resolve, reject) => {
      this.#waiting = { marker, resolve, reject }
      this.#child.stdin.write(`${statement};\n\\echo ${marker}\n`)
    })
  }

  end(): void {
    this.#child.kill('SIGKILL')
  }

  #read(text: string): void {
    this.#output += text
    const waiting = this.#waiting
    const at = waiting ? this.#output.indexOf(`${waiting.marker}\n`) : -1
    if (!waiting || at < 0) return
    const answer = this.#output.slice(0, at).trim()
    this.#output = this.#output.slice(at + waiting.marker.length + 1)
    this.#waiting = null
    waiting.resolve(answer)
  }
}
