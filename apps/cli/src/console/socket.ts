import { lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { fault, type Installation } from '@floe/domain'
import { findUser, isRoot } from '../installation/os-user'

/** What fetch gets for a call to the console. */
type Call = { method?: string; headers?: HeadersInit; body?: unknown; signal?: AbortSignal | null }

/** What is read of an answer of the console. */
export type Answer = Pick<Response, 'ok' | 'status' | 'url' | 'redirected' | 'body' | 'json'> & {
  headers: Pick<Headers, 'get'>
}

/** Group or others may write. */
const FOREIGN_WRITE = 0o022

/**
 * Throws unless the socket lies where only web could have put it: in a directory of web's user, below one of root's (of
 * our own, without root). A port or a directory that anybody may take while the console is down gets no token of ours.
 */
export function requireTrustedSocket({ webSocket, users }: Pick<Installation, 'webSocket' | 'users'>): void {
  const us = process.getuid?.() ?? 0
  const web = users === null ? us : isRoot() ? findUser(users.web)?.switchTo?.uid : undefined
  const own = dirname(webSocket)
  for (const [directory, owners] of [
    [dirname(own), [0, us]],
    [own, [web]],
  ] as const) {
    const found = lstatSync(directory, { throwIfNoEntry: false })
    if (found === undefined) throw new Error(`"${directory}" does not exist`)
    const why = !found.isDirectory()
      ? 'It is not a directory.'
      : !(owners as readonly (number | undefined)[]).includes(found.uid)
        ? `It belongs to user ${found.uid}.`
        : (found.mode & FOREIGN_WRITE) !== 0
          ? 'Others than its owner may write it.'
          : null
    if (why !== null)
      throw fault(
        'console.socket_not_trusted',
        `the console’s socket in "${directory}" is not to be trusted`,
        {
          detail: `${why} Nothing was sent.`,
          hint: 'Run "./floe up" as the user that set Floe up: it puts the directory right.',
        },
      )
  }
}

/**
 * `fetch` by the Unix socket of this machine's console, whatever host the address names. It has no use for the classes of
 * the global one: Node loads them at their first use, or when its module http is imported, and that takes as long as a
 * third of a command.
 */
export function socketFetch(installation: Pick<Installation, 'webSocket' | 'users'>) {
  return (
    input: string | URL | Request,
    { method, headers = {}, body, signal }: Call = {},
  ): Promise<Answer> =>
    new Promise((resolve, reject) => {
      requireTrustedSocket(installation)
      const url = new URL(typeof input === 'string' || input instanceof URL ? input : input.url)
      const asked = process.getBuiltinModule('node:http').request(
        {
          socketPath: installation.webSocket,
          method: method ?? 'GET',
          path: `${url.pathname}${url.search}`,
          headers: {
            host: url.host,
            ...(Symbol.iterator in headers ? Object.fromEntries(headers as [string, string][]) : headers),
          },
          signal: signal ?? undefined,
        },
        (answer) => {
          const status = answer.statusCode ?? 0
          const empty = status === 204 || status === 304
          if (empty) answer.resume()
          let body: Answer['body'] = null
          resolve({
            ok: status >= 200 && status < 300,
            status,
            // what follows an event stream asks where it came from
            url: url.href,
            redirected: false,
            headers: { get: (name) => answer.headersDistinct[name.toLowerCase()]?.join(', ') ?? null },
            get body() {
              if (!empty) body ??= Readable.toWeb(answer) as ReadableStream<Uint8Array<ArrayBuffer>>
              return body
            },
            json: () => json(answer),
          })
        },
      )
      asked.once('error', reject)
      asked.end(typeof body === 'string' ? body : undefined)
    })
}

/** What addresses on the console's socket begin with; only the path of them counts. */
export const socketUrl = ({ webUrl }: Pick<Installation, 'webUrl'>): string =>
  `http://${new URL(webUrl).host}`
