import { randomUUID } from 'node:crypto'
import { insertAuditEvent, showOperation } from '@floe/db'
import { type Fault, FaultError, fault, InstanceId, OperationId } from '@floe/domain'
import { type Context, createContext } from './context'
import { auditDenial } from './denials'
import { log } from './log'
import type { Ports } from './ports'
import { roleTooLow } from './procedures'
import { AccountRole } from './routers/account/account.types'

/** In the audit log, and in what is said of a denial. */
const ACTION = 'flashback.download'
/** Downloads this process passes on at once. */
const DOWNLOADS_MAX = 4
/** Who never reads on must not keep its place for ever. */
const IDLE_MS = 60_000
/** Between two questions for a piece that the engine has not come to yet. */
const AGAIN_MS = 100

let downloading = 0

type Source = { operationId: OperationId; instanceId: InstanceId; name: string; resultName: string }

/**
 * `GET /api/flashback/download?operation=ID`: the rows of a result as CSV, as `export-flashback` opened them, from the agent
 * to the one who asked and nowhere else. For admins; an audit row says who, before the first byte. A piece is asked for when the one
 * before it was taken, so a slow reader lets the engine wait. Values are data: a spreadsheet that takes one that begins
 * with = for a formula has to be set otherwise when the file is opened there.
 */
export async function downloadFlashback(ports: Ports, request: Request): Promise<Response> {
  const ctx = await createContext(ports, request.headers)
  const operation = OperationId.safeParse(new URL(request.url).searchParams.get('operation'))
  const denial = denialOf(ctx)
  if (denial) {
    await auditDenial(ctx, ACTION, 'mutation', denial.fault, async () =>
      operation.success ? { operationId: operation.data } : undefined,
    )
    return refuse(denial.fault.code === 'session.missing' ? 401 : 403, denial.fault)
  }
  if (!operation.success)
    return refuse(400, {
      code: 'input.invalid',
      message: 'invalid input',
      detail: 'operation: must be an id',
    })
  const source = await sourceOf(ports, operation.data)
  if (!source)
    return refuse(404, {
      code: 'flashback.download_not_found',
      message: 'this operation has no download',
      hint: 'Downloads are of exports that have succeeded.',
    })
  if (downloading >= DOWNLOADS_MAX)
    return refuse(429, {
      code: 'export.too_many',
      message: 'too many results are being downloaded',
      hint: 'Try again when one of them has ended.',
    })
  downloading++
  try {
    return await begin(ctx, source, () => downloading--)
  } catch (error) {
    downloading--
    if (error instanceof FaultError) return refuse(409, error.fault)
    throw error
  }
}

/** Why somebody may not see rows; null where he may. */
function denialOf({ actor, sameOrigin }: Context): FaultError | null {
  if (!actor) return fault('session.missing', 'you are not signed in', { hint: 'Sign in and try again.' })
  const rank = (role: AccountRole) => AccountRole.options.indexOf(role)
  if (rank(actor.role) < rank('admin')) return roleTooLow(actor.role, 'admin')
  if (actor.kind === 'user' && !sameOrigin)
    return fault('session.cross_origin', 'the request came from another site', {
      hint: 'Use the console itself, or an API token.',
    })
  return null
}

async function sourceOf(ports: Ports, operationId: OperationId): Promise<Source | null> {
  const operation = await showOperation(ports.database.pool, operationId)
  if (operation?.kind !== 'export-flashback' || operation.state !== 'succeeded' || !operation.instance)
    return null
  const { instanceId, name } = operation.instance
  return {
    operationId,
    instanceId: InstanceId.parse(instanceId),
    name,
    resultName: String(operation.input.resultName),
  }
}

async function begin(ctx: Context, source: Source, ended: () => void): Promise<Response> {
  const { ports } = ctx
  const { operationId, instanceId, name, resultName } = source
  const download = randomUUID()
  const ask = (piece: number, end = false) =>
    ports.agents.probe(instanceId, (trpc) =>
      trpc.flashback.readDownload.query({ operationId, download, piece, end }),
    )
  await insertAuditEvent(ports.database.pool, {
    actor: ctx.actor ?? { id: 'anonymous', name: 'anonymous' },
    action: ACTION,
    outcome: 'allowed',
    objectKind: 'instance',
    objectId: instanceId,
    detail: { operationId, name, resultName },
    ipAddress: ctx.ipAddress,
  })
  // what is refused is said, not sent as a file
  const first = await ask(0)
  const pieces = piecesOf(first, ask)
  let over = false
  const end = () => {
    if (!over) ended()
    over = true
    clearTimeout(idle)
  }
  const stop = () => {
    end()
    // the engine need not wait until the agent notices
    void ask(0, true).catch(() => {})
  }
  const idle = setTimeout(() => {
    stop()
    void pieces.return(undefined)
  }, IDLE_MS)
  idle.unref()
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await pieces.next()
          if (over) throw new Error('nobody read it for a minute')
          idle.refresh()
          if (!done) return controller.enqueue(encoder.encode(value))
          end()
          controller.close()
        } catch (err) {
          stop()
          // the client sees a broken transfer, not a file that looks whole
          log.error('flashback.download_failed', { operationId, instanceId, err: faultWithoutRows(err) })
          controller.error(new Error('download failed'))
        }
      },
      async cancel() {
        stop()
        await pieces.return(undefined)
      },
    },
    // nothing is asked for ahead of the reader
    { highWaterMark: 0 },
  )
  return new Response(body, {
    headers: {
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${fileName(name, resultName)}"`,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
  })
}

type Piece = { text: string; next: number | null }

async function* piecesOf(
  first: Piece,
  ask: (piece: number) => Promise<Piece>,
): AsyncGenerator<string, undefined> {
  for (let piece = first; ; ) {
    if (piece.text !== '') yield piece.text
    if (piece.next === null) return
    if (piece.text === '') await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    piece = await ask(piece.next)
  }
}

/** A fault of an agent names no values; anything else is not logged with its words. */
const faultWithoutRows = (error: unknown) =>
  error instanceof FaultError ? error.fault : { code: 'internal', message: 'the transfer broke' }

/** What every file system takes. */
const fileName = (instance: string, resultName: string) =>
  `${instance}-${resultName.replace(/[^A-Za-z0-9._-]+/g, '_').slice(0, 100)}.csv`

const refuse = (status: number, fault: Fault) =>
  Response.json({ fault }, { status, headers: { 'cache-control': 'no-store' } })
