/** Puts what a browser loads beside the standalone server, which Next leaves to the deployment. */
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'

const here = import.meta.dirname
const target = join(here, '.next/standalone/apps/web')
cpSync(join(here, '.next/static'), join(target, '.next/static'), { recursive: true })
if (existsSync(join(here, 'public')))
  cpSync(join(here, 'public'), join(target, 'public'), { recursive: true })
