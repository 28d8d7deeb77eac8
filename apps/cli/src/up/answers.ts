import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import { fault, type HostConfiguration, hostUri, type Installation, secretFiles, urisOf } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import { createConsoleClient } from '../console/client'
import { socketFetch, socketUrl } from '../console/socket'
import type { Home } from '../installation/home'
import { liveRecord, type ProgramName } from '../process/records'
import type { StepReport } from '../progress/progress'

const ANSWER_MS = 3_000
const LOOK_MS = 150
const DEADLINE_MS = 90_000
/** The controller is up when it has seen the agent within this time. */
const OBSERVED_MS_MAX = 5_000

async function webAnswers(installation: Installation): Promise<boolean> {
  const response = await socketFetch(installation)(`${socketUrl(installation)}/healthz`, {
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  await response.body?.cancel()
  return response.ok
}

export function agentAnswers(home: Home, host: HostConfiguration): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(
      {
        host: host.hostAddress,
        port: host.agentPort,
        path: '/healthz',
        ca: readFileSync(join(home.secrets, secretFiles.authority)),
        // its certificate says which host it is, whatever the address
        checkServerIdentity: (_address, { subjectaltname }) =>
          urisOf(subjectaltname).includes(hostUri(host.hostId))
            ? undefined
            : new Error('the agent of another host answers'),
        timeout: ANSWER_MS,
        agent: false,
      },
      (response) => {
        response.resume()
        resolve(response.statusCode === 200)
      },
    )
    request.once('timeout', () => request.destroy(new Error('no answer')))
    request.once('error', reject)
    request.end()
  })
}

/** True when the controller has lately written what the agent reported to it: the whole way from engine host to console works. */
async function controllerAnswers(home: Home, installation: Installation): Promise<boolean> {
  const client = createConsoleClient(home, installation)
  const { hosts } = await client.trpc.host.list.query()
  const host = hosts.find((h) => h.hostId === installation.hostId)
  return host?.ageMs != null && host.ageMs <= OBSERVED_MS_MAX
}

export const answers: Record<ProgramName, (home: Home, installation: Installation) => Promise<boolean>> = {
  agent: agentAnswers,
  web: (_home, installation) => webAnswers(installation),
  controller: controllerAnswers,
}

const TOLD_BYTES = 16_384
const TOLD_LINES = 5

/** The last lines of a log, however large it is. */
function endOfLog(home: Home, name: string): string {
  try {
    const fd = openSync(join(home.log, `${name}.log`), 'r')
    try {
      const { size } = fstatSync(fd)
      const buffer = Buffer.alloc(Math.min(size, TOLD_BYTES))
      const read = readSync(fd, buffer, 0, buffer.length, size - buffer.length)
      return buffer.toString('utf8', 0, read).trim().split('\n').slice(-TOLD_LINES).join('\n')
    } finally {
      closeSync(fd)
    }
  } catch {
    return ''
  }
}

/** Waits until agent, web and controller answer, in that order. */
export async function waitForAnswers(
  home: Home,
  installation: Installation,
  report: StepReport,
): Promise<void> {
  for (const name of ['agent', 'web', 'controller'] as const)
    await waitForAnswer(home, name, () => answers[name](home, installation), report)
}

/** Waits until the agent of an enrolled host answers. */
export const waitForAgent = (home: Home, host: HostConfiguration, report: StepReport): Promise<void> =>
  waitForAnswer(home, 'agent', () => agentAnswers(home, host), report)

async function waitForAnswer(
  home: Home,
  name: ProgramName,
  look: () => Promise<boolean>,
  report: StepReport,
): Promise<void> {
  report.now(`waiting for ${name}`)
  let last = 'no answer'
  const answered = await waitFor(
    async () => {
      try {
        last = 'not ready'
        return await look()
      } catch (error) {
        last = error instanceof Error ? error.message : String(error)
        return false
      }
    },
    { boundMs: DEADLINE_MS, everyMs: LOOK_MS },
  )
  if (answered) return
  throw fault(`${name}.not_answering`, `${name} does not answer`, {
    detail: [
      `Last try: ${last}.`,
      liveRecord(home, name) === null ? 'Its process is not running.' : '',
      endOfLog(home, name),
    ]
      .filter(Boolean)
      .join('\n'),
    hint: `Its log is "${join(home.log, `${name}.log`)}".`,
  })
}
