import { fault } from '@floe/domain'
import { isPortFree } from '../../host/ports'

const LEAST = 1_024

/**
 * Refuses a `polar_ss_port` that the dispatcher could not listen on: it would only fail after the restart, and again each
 * second. `inForce` is what the running instance has; its dispatcher may hold that.
 */
export async function refuseSharedPort(
  value: string,
  { ownPort, inForce }: { ownPort: number | null; inForce: string | null },
  isFree: (port: number) => Promise<boolean> = isPortFree,
): Promise<void> {
  const port = Number(value)
  if (!Number.isInteger(port) || port === 0) return
  if (port === ownPort)
    throw fault('setting.port_taken', `port ${port} is the instance’s own port`, {
      detail: 'Sessions that share backends need another one.',
      hint: 'Choose another port.',
    })
  if (port < LEAST)
    throw fault('setting.invalid_value', `setting "polar_ss_port" does not accept the value "${value}"`, {
      detail: `Ports below ${LEAST} are root’s, and the engine does not run as root.`,
      hint: `Choose a port from ${LEAST} to 65535, or 0 to close it.`,
    })
  if (port !== Number(inForce ?? 0) && !(await isFree(port)))
    throw fault('setting.port_taken', `port ${port} is in use on this host`, {
      detail: 'Another program or instance listens on it.',
      hint: `Choose another port, or end that program: "ss -ltnp sport = :${port}" names it.`,
    })
}
