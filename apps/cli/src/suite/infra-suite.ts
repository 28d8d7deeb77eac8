import { join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import { buildWorkspace } from '../up/workspace-build'
import { infraTools } from './infra-tools'
import { filesToRun } from './quick-files'
import type { Counts, Suite, SuiteContext } from './suite'
import { settle } from './test-files'
import { vitest } from './vitest-suites'

/** The preparation and first start of hosts on loop devices, and the modules of Terraform with mocked clouds. */
async function infra(context: SuiteContext): Promise<Counts> {
  // a first start enrols a host, and starts its agent
  await context.enginePrefix()
  await buildWorkspace({ now: context.log, log: context.log }, ['agent'])
  // tests say why they are left out without
  for (const name of ['xfsprogs', 'strace', 'iproute2', 'nftables', 'curl', 'openssl', 'xsltproc'])
    await context.packages(name)
  const { more, whole } = filesToRun(context, 'infra')
  // a quick run has no file that needs them; fetched or built, they take minutes the first time
  const tools = whole || context.more.length > 0 ? await infraTools(context) : null
  const env = {
    FLOE_TEST_TERRAFORM: tools?.program ?? '',
    FLOE_TEST_TERRAFORM_PLUGINS: tools?.mirrors.join(':') ?? '',
    FLOE_TEST_TFLINT: tools?.tflint ?? '',
    FLOE_TEST_CHECKOV: tools?.checkov ?? '',
    FLOE_TEST_GUEST: tools?.guest ?? '',
    FLOE_TEST_CADDY: tools?.caddy ?? '',
  }
  const room = join(checkoutDirectory(), 'apps/cli')
  return settle(context, [
    await vitest({ ...context, more }, room, { config: 'vitest.infra.config.ts', env }),
  ])
}

export const infraSuite: Suite = {
  name: 'infra',
  about:
    'hosts’ disks and first start, on loop devices, the Terraform modules, with mocked clouds, and the provider',
  needs: 'own',
  run: infra,
}
