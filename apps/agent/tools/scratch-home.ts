import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeThrowawayHome } from '@floe/testkit'

// Makes a FLOE_HOME to try the agent by hand: `tsx tools/scratch-home.ts ENGINE_PREFIX` prints what to do with it.
const prefix = process.argv[2]
if (!prefix) throw new Error('usage: tsx tools/scratch-home.ts ENGINE_PREFIX')
const home = await makeThrowawayHome({ enginePrefix: prefix, instances: 64 })
writeFileSync(join(home.home, 'agent-url'), home.agentUrl)
process.stdout.write(`FLOE_HOME=${home.home}\nAGENT_URL=${home.agentUrl}\n`)
