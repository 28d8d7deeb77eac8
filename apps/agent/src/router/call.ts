import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { AgentContext, AgentRouter } from '@floe/agent-contract'
import { type HTTPBaseHandlerOptions, resolveResponse } from '@trpc/server/http'
import { Headers, type Response } from './answer'

export type CallOptions = HTTPBaseHandlerOptions<AgentRouter, IncomingMessage>

/** The body of a request; null for one that is longer than it may be. Rejects when the caller leaves before its end. */
export function bodyOf(request: IncomingMessage, most: number): Promise<string | null> {
  if (Number(request.headers['content-length'] ?? 0) > most) return Promise.resolve(null)
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    let bytes = 0
    request.on('data', (piece: Buffer) => {
      bytes += piece.length
      if (bytes <= most) return void pieces.push(piece)
      pieces.length = 0
      request.pause()
      resolve(null)
    })
    request.once('end', () => resolve(Buffer.concat(pieces).toString('utf8')))
    request.once('error', reject)
  })
}

/** Answers a call of the contract, whose procedures the path names. */
export async function answerCall(
  request: IncomingMessage,
  response: ServerResponse,
  o: { path: string; body: string; context: AgentContext; options: CallOptions },
): Promise<void> {
  const left = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) left.abort()
  })
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers))
    if (typeof value === 'string') headers.set(name, value)
  const asked = {
    method: request.method ?? '',
    url: `https://agent${request.url}`,
    headers,
    signal: left.signal,
    json: async () => JSON.parse(o.body),
  }
  const answer = (await resolveResponse({
    ...o.options,
    req: asked as never,
    path: o.path,
    error: null,
    createContext: async () => o.context,
  } as never)) as unknown as Response
  response.statusCode = answer.status
  for (const [name, value] of answer.headers) response.setHeader(name, value)
  if (answer.body === null || typeof answer.body === 'string') return void response.end(answer.body ?? '')
  // a stream says nothing until there is something to say
  response.flushHeaders()
  try {
    await pipeline(Readable.fromWeb(answer.body as never), response)
  } catch (error) {
    // who listened has left
    if (!response.destroyed) throw error
  }
}
