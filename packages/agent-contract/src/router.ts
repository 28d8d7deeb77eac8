import { type AgentRight, type Fault, FaultError, toFault } from '@floe/domain'
import type { Sample } from '@floe/telemetry'
import { initTRPC, TRPCError, tracked } from '@trpc/server'
import superjson from 'superjson'
import type { z } from 'zod'
import * as s from './schemas'

/** What the caller's certificate lets it do; null for one without a certificate of this installation. */
export type AgentContext = {
  right: AgentRight | null
  /** Why the caller has none, where that is its certificate's time by the agent's clock. */
  refused?: CertificateTime | null
}

/** A certificate that is not yet valid, or has expired, by the clock of its verifier. */
export type CertificateTime = 'expired' | 'not yet valid'

/** What an agent has to implement. Handlers throw FaultError; everything else becomes `internal`. */
export interface AgentHandlers {
  hello(): Promise<s.Hello>
  readReport(input: z.output<typeof s.ReportInput>, signal: AbortSignal | undefined): Promise<s.Report>
  startTask(input: z.output<typeof s.TaskStartInput>): Promise<s.TaskStatus>
  checkTask(input: z.output<typeof s.TaskCheckInput>): Promise<s.TaskStatus>
  cancelTask(key: s.TaskKey): Promise<s.TaskStatus>
  listSettings(input: z.output<typeof s.SettingListInput>): Promise<z.output<typeof s.SettingList>>
  /** Gives up when the signal says that nobody waits for the answer. */
  checkSettings(
    input: z.output<typeof s.SettingCheckInput>,
    signal: AbortSignal | undefined,
  ): Promise<s.SettingCheck>
  listCommitModes(input: z.output<typeof s.CommitModeListInput>): Promise<z.output<typeof s.CommitModeList>>
  listDatabaseRoles(
    input: z.output<typeof s.DatabaseRoleListInput>,
  ): Promise<z.output<typeof s.DatabaseRoleList>>
  readProtection(input: z.output<typeof s.ProtectionReadInput>): Promise<z.output<typeof s.ProtectionRead>>
  readFlashback(input: z.output<typeof s.FlashbackReadInput>): Promise<z.output<typeof s.FlashbackRead>>
  listFlashbackTables(
    input: z.output<typeof s.FlashbackTablesInput>,
    signal: AbortSignal | undefined,
  ): Promise<z.output<typeof s.FlashbackTables>>
  readFlashbackActivity(
    input: z.output<typeof s.FlashbackActivityInput>,
    signal: AbortSignal | undefined,
  ): Promise<z.output<typeof s.FlashbackActivity>>
  listFlashbackLost(
    input: z.output<typeof s.FlashbackLostInput>,
    signal: AbortSignal | undefined,
  ): Promise<z.output<typeof s.FlashbackLostList>>
  listFlashbackResults(
    input: z.output<typeof s.FlashbackResultsInput>,
    signal: AbortSignal | undefined,
  ): Promise<z.output<typeof s.FlashbackResults>>
  readFlashbackRows(
    input: z.output<typeof s.FlashbackRowsInput>,
  ): Promise<z.output<typeof s.FlashbackRowsRead>>
  readFlashbackDownload(
    input: z.output<typeof s.FlashbackDownloadInput>,
  ): Promise<z.output<typeof s.FlashbackDownload>>
  readSharedServer(
    input: z.output<typeof s.SharedServerReadInput>,
  ): Promise<z.output<typeof s.SharedServerRead>>
  readTelemetry(input: z.output<typeof s.TelemetryReadInput>): Promise<z.output<typeof s.TelemetryRead>>
  streamTelemetry(
    input: { instanceId: z.output<typeof s.TelemetryStreamInput>['instanceId']; afterSeq: number | null },
    signal: AbortSignal | undefined,
  ): AsyncIterable<Sample>
  readCheckpoints(input: z.output<typeof s.CheckpointReadInput>): Promise<z.output<typeof s.CheckpointRead>>
  listKeptAside(input: z.output<typeof s.KeptAsideListInput>): Promise<z.output<typeof s.KeptAsideList>>
  readKeptAside(
    input: z.output<typeof s.KeptAsideReadInput>,
    signal: AbortSignal | undefined,
  ): Promise<z.output<typeof s.KeptAsideRead>>
  requestCertificate(): Promise<s.CertificateRequest>
  installCertificate(input: s.CertificateInstallInput): Promise<s.CertificateFacts>
}

const t = initTRPC.context<AgentContext>().create({
  transformer: superjson,
  sse: { ping: { enabled: true, intervalMs: 3_000 }, client: { reconnectAfterInactivityMs: 10_000 } },
  errorFormatter: ({ shape, error }) => ({
    ...shape,
    data: { ...shape.data, stack: undefined, fault: faultOf(error) },
  }),
})

function faultOf(error: TRPCError): Fault {
  if (error.cause instanceof FaultError) return error.cause.fault
  if (error.code === 'INTERNAL_SERVER_ERROR') return toFault(error.cause ?? error)
  return { code: `agent.${error.code.toLowerCase()}`, message: error.message }
}

/** Said to a caller without a certificate of this installation, or with one that is not good at the agent's time. */
export const noCertificate = (time: CertificateTime | null = null, now = new Date()) =>
  time === null
    ? new FaultError({
        code: 'agent.no_certificate',
        message: 'client certificate missing or not accepted',
        detail: 'An agent answers only to certificates of its own installation’s authority.',
        hint: 'The console’s certificates are made by "./floe up"; run it again on the host of the console.',
      })
    : new FaultError({
        code: 'agent.no_certificate',
        message: `client certificate ${time === 'expired' ? 'has expired' : 'is not valid yet'} by the clock of the host`,
        detail: `The clock of the host says ${now.toISOString()}.`,
        hint: 'Compare it with the clock of the console and set the one that is wrong, e.g. with chrony. Where both are right, run "./floe up" on the host of the console.',
      })

/** FaultErrors of handlers keep their fault; the HTTP status only says whose mistake it was. */
const guarded = t.procedure.use(async ({ next, ctx }) => {
  if (ctx.right === null) throw new TRPCError({ code: 'UNAUTHORIZED', cause: noCertificate(ctx.refused) })
  const result = await next()
  if (!result.ok && result.error.cause instanceof FaultError && result.error.code === 'INTERNAL_SERVER_ERROR')
    throw new TRPCError({ code: 'BAD_REQUEST', message: result.error.message, cause: result.error.cause })
  return result
})

const read = guarded
const task = guarded.use(({ next, ctx }) => {
  if (ctx.right !== 'task')
    throw new TRPCError({
      code: 'FORBIDDEN',
      cause: new FaultError({ code: 'agent.read_only', message: 'this certificate may only read' }),
    })
  return next()
})

/** A throw-away engine is started for it: a question that only who may start tasks may ask. Since contract 1.8. */
const trial = guarded.use(({ next, ctx }) => {
  if (ctx.right !== 'task')
    throw new TRPCError({
      code: 'FORBIDDEN',
      cause: new FaultError({
        code: 'agent.read_only',
        message: 'this certificate may only read',
        detail: 'A check of settings starts an engine; this agent lets only the controller do that.',
        hint: 'The console is older than this agent: run "git pull" and "./floe up" on its machine.',
      }),
    })
  return next()
})

/** Builds the agent's router over an implementation. The shape is the contract; nothing else is served. */
export function createAgentRouter(h: AgentHandlers) {
  return t.router({
    /** Who the agent is and what it can do. */
    hello: read.output(s.Hello).query(() => h.hello()),
    report: t.router({
      /** State of host and instances; long-polls up to waitMs for news. */
      read: read
        .input(s.ReportInput)
        .output(s.Report)
        .query(({ input, signal }) => h.readReport(input, signal)),
    }),
    task: t.router({
      /** Starts a task once per key; answers at once with its status. */
      start: task
        .input(s.TaskStartInput)
        .output(s.TaskStatus)
        .mutation(({ input }) => h.startTask(input)),
      /** Status of a task and its log lines after afterLogSeq. */
      check: read
        .input(s.TaskCheckInput)
        .output(s.TaskStatus)
        .query(({ input }) => h.checkTask(input)),
      /** Asks a running task to give up; it may still succeed. */
      cancel: task
        .input(s.TaskKey)
        .output(s.TaskStatus)
        .mutation(({ input }) => h.cancelTask(input)),
    }),
    setting: t.router({
      /** The catalogue of the instance's own binary with values, sources and errors. */
      list: read
        .input(s.SettingListInput)
        .output(s.SettingList)
        .query(({ input }) => h.listSettings(input)),
      /** What changes would do, checked by the binary; changes nothing. */
      check: trial
        .input(s.SettingCheckInput)
        .output(s.SettingCheck)
        .query(({ input, signal }) => h.checkSettings(input, signal)),
    }),
    commitMode: t.router({
      /** What synchronous_commit is set to for databases and roles. */
      list: read
        .input(s.CommitModeListInput)
        .output(s.CommitModeList)
        .query(({ input }) => h.listCommitModes(input)),
    }),
    databaseRole: t.router({
      /** Database roles, read from the instance at this moment. Since contract 1.24. */
      list: read
        .input(s.DatabaseRoleListInput)
        .output(s.DatabaseRoleList)
        .query(({ input }) => h.listDatabaseRoles(input)),
    }),
    protection: t.router({
      /** What protects the instance against torn pages, asked of it at this moment. */
      read: read
        .input(s.ProtectionReadInput)
        .output(s.ProtectionRead)
        .query(({ input }) => h.readProtection(input)),
    }),
    flashback: t.router({
      /** The flashback log of the instance and its points, asked of it at this moment. Since contract 1.15. */
      read: read
        .input(s.FlashbackReadInput)
        .output(s.FlashbackRead)
        .query(({ input }) => h.readFlashback(input)),
      /** Tables of a database. Since contract 1.16. */
      tables: read
        .input(s.FlashbackTablesInput)
        .output(s.FlashbackTables)
        .query(({ input, signal }) => h.listFlashbackTables(input, signal)),
      /** What happened to its tables, as the WAL of the window has it. Since contract 1.16. */
      activity: read
        .input(s.FlashbackActivityInput)
        .output(s.FlashbackActivity)
        .query(({ input, signal }) => h.readFlashbackActivity(input, signal)),
      /** Tables that were dropped, truncated or rewritten and can be had back. Since contract 1.16. */
      lost: read
        .input(s.FlashbackLostInput)
        .output(s.FlashbackLostList)
        .query(({ input, signal }) => h.listFlashbackLost(input, signal)),
      /** Tables that flashbacks made. Since contract 1.16. */
      results: read
        .input(s.FlashbackResultsInput)
        .output(s.FlashbackResults)
        .query(({ input, signal }) => h.listFlashbackResults(input, signal)),
      /** Sample rows of an operation of this agent, from its memory. Since contract 1.16. */
      rows: read
        .input(s.FlashbackRowsInput)
        .output(s.FlashbackRowsRead)
        .query(({ input }) => h.readFlashbackRows(input)),
      /** A piece of the CSV that an export opened. Since contract 1.16. */
      readDownload: read
        .input(s.FlashbackDownloadInput)
        .output(s.FlashbackDownload)
        .query(({ input }) => h.readFlashbackDownload(input)),
    }),
    sharedServer: t.router({
      /** Who shares backends, who does not and why, asked of the instance at this moment. Since contract 1.24. */
      read: read
        .input(s.SharedServerReadInput)
        .output(s.SharedServerRead)
        .query(({ input }) => h.readSharedServer(input)),
    }),
    telemetry: t.router({
      /** Samples after a number from the ring of 60 minutes. */
      read: read
        .input(s.TelemetryReadInput)
        .output(s.TelemetryRead)
        .query(({ input }) => h.readTelemetry(input)),
      /** Samples after a number, then each new one as it is taken. The event id is the sample's seq. */
      stream: read.input(s.TelemetryStreamInput).subscription(async function* ({ input, signal }) {
        const afterSeq = input.lastEventId ? Number(input.lastEventId) : null
        for await (const sample of h.streamTelemetry({ instanceId: input.instanceId, afterSeq }, signal))
          yield tracked(String(sample.seq), sample)
      }),
    }),
    checkpoint: t.router({
      /** Checkpoints and stalls after a number of each, and those that are running. */
      read: read
        .input(s.CheckpointReadInput)
        .output(s.CheckpointRead)
        .query(({ input }) => h.readCheckpoints(input)),
    }),
    keptAside: t.router({
      /** What was kept aside of an instance at its rejoins, the newest first. Since contract 1.13. */
      list: read
        .input(s.KeptAsideListInput)
        .output(s.KeptAsideList)
        .query(({ input }) => h.listKeptAside(input)),
      /** A piece of its records, decoded by pg_waldump of the instance's own engine. Since contract 1.13. */
      read: read
        .input(s.KeptAsideReadInput)
        .output(s.KeptAsideRead)
        .query(({ input, signal }) => h.readKeptAside(input, signal)),
    }),
    certificate: t.router({
      /** A request for the agent's next certificate, by a key it made now; the one in use stays until the next is installed. */
      request: task.output(s.CertificateRequest).mutation(() => h.requestCertificate()),
      /** Takes the certificate for the newest request into use; connections that are open stay. */
      install: task
        .input(s.CertificateInstallInput)
        .output(s.CertificateFacts)
        .mutation(({ input }) => h.installCertificate(input)),
    }),
  })
}

export type AgentRouter = ReturnType<typeof createAgentRouter>

/** Every procedure of the contract by its path, e.g. `telemetry.read`; the router calls a handler only when it is asked. */
export const agentProcedures: readonly string[] = Object.keys(
  createAgentRouter({} as AgentHandlers)._def.procedures,
).sort()
