import { join } from 'node:path'
import { type Home, makeDirectory } from '../installation/home'

/** The log of this run: the one that the launcher's script opened, or a new one in the installation. */
export function runLog(home: Home, verb: string): string {
  if (process.env.FLOE_LOG) return process.env.FLOE_LOG
  makeDirectory(home.log)
  const stamp = new Date().toISOString().replace(/[-:]/g, '').slice(0, 15)
  const file = join(home.log, `${verb}-${stamp}.log`)
  process.env.FLOE_LOG = file
  return file
}
