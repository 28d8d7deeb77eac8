import { join } from 'node:path'
import { checkoutDirectory } from '../installation/home'
import { buildWorkspace } from '../up/workspace-build'
import { infraTools } from './infra-tools'
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
  const { program, mirrors, tflint, checkov, caddy, guest } = await infraTools(context)
  const env = {
    FLOE_TEST_TERRAFORM: program ?? '',
    FLOE_TEST_TERRAFORM_PLUGINS: mirrors.join(':'),
    FLOE_TEST_TFLINT: tflint ?? '',
    FLOE_TEST_CHECKOV: checkov ?? '',
    FLOE_TEST_GUEST: guest ?? '',
    FLOE_TEST_CADDY: caddy ?? '',
  }
  const room = join(checkoutDirectory(), 'apps/cli')
  return settle(context, [await vitest(context, room, { config: 'vitest.infra.config.ts', env })])
}

export const infraSuite: Suite = {
  name: 'infra',
  about:
    'hosts’ disks and first start, on loop devices, the Terraform modules, with mocked clouds, and the provider',
  needs: 'own',
  run: infra,
}
