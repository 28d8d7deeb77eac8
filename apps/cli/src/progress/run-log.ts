import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { type Home, makeDirectory } from '../installation/home'

/** The log of this run, for its owner alone: the one that the launcher's script opened, or a new one in the installation. */
export function runLog(home: Home, verb: string): string {
  if (process.env.FLOE_LOG) return process.env.FLOE_LOG
  makeDirectory(home.log)
  const stamp = new Date().toISOString().replace(/[-:]/g, '').slice(0, 15)
  const file = join(home.log, `${verb}-${stamp}.log`)
  closeSync(openSync(file, 'a', 0o600))
  process.env.FLOE_LOG = file
  return file
}
