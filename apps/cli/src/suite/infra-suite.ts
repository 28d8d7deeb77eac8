import { join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import type { Counts, Suite, SuiteContext } from './suite'
import { settle } from './test-files'
import { vitest } from './vitest-suites'

/** The preparation of hosts on loop devices, and the modules of Terraform with mocked clouds. Nothing is fetched. */
async function infra(context: SuiteContext): Promise<Counts> {
  // tests say why they are left out without
  for (const name of ['xfsprogs', 'strace']) await context.packages(name)
  const room = join(checkoutDirectory(), 'apps/cli')
  return settle(context, [await vitest(context, room, { config: 'vitest.infra.config.ts' })])
}

export const infraSuite: Suite = {
  name: 'infra',
  about: 'preparing a host’s disks, on loop devices, and the Terraform modules, with mocked clouds',
  needs: 'own',
  run: infra,
}
