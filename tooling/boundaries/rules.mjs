import { join } from 'node:path'
import { featureRules } from './feature-rooms.mjs'
import { importRooms } from './import-table.mjs'

// The import rules of ARCHITECTURE.md. A room not named in a row may not be imported by that row.

/** Which rooms each room may import, by the table there; `types` only for types. */
export const rooms = importRooms(join(import.meta.dirname, '../..'))

const ofEngine = (...names) => names.map((name) => `engine/${name}`)

/**
 * The rooms of apps/agent/src, and which of them each may import. Of what binds them together (an instance and all of them)
 * the rooms of the engine know the types only.
 */
export const agentRooms = {
  ...{ host: [], 'host/limits': ['host'] },
  ...{ 'engine/libraries': [], 'engine/shared-server': [], 'engine/sql': [], 'engine/directory': ['host'] },
  'engine/registry': ['host', ...ofEngine('directory')],
  'engine/process': ['host', ...ofEngine('directory', 'registry')],
  'engine/limits': ['host', ...ofEngine('process')],
  sampler: ['host', ...ofEngine('directory', 'process')],
  'engine/page-repair': ['sampler'],
  'engine/flashback': ofEngine('process'),
  'engine/settings': ['host', ...ofEngine('directory', 'libraries', 'page-repair', 'process')],
  'engine/access': ['host', ...ofEngine('directory', 'page-repair', 'process', 'settings')],
  'engine/cluster': ['host', ...ofEngine('access', 'directory', 'process', 'registry', 'settings')],
  'engine/roles': ofEngine('cluster', 'process'),
  'engine/wal': ['host', ...ofEngine('cluster', 'directory')],
  'engine/copies': ['host', ...ofEngine('directory', 'wal')],
  'engine/creation': ['host', ...ofEngine('access', 'directory', 'libraries', 'page-repair', 'settings')],
  'engine/restore': ['host', ...ofEngine('creation', 'directory', 'process', 'wal')],
  metrics: ['engine'],
  'tasks/runner': ['host', 'engine'],
  'tasks/instance': ['host', 'engine', 'tasks/runner'],
  'tasks/host': ['host', 'tasks/runner'],
  'tasks/primary': ['host', 'engine', 'tasks/runner', 'tasks/instance'],
  'tasks/standby': ['host', 'engine', 'tasks/runner', 'tasks/instance'],
  'tasks/member-role': ['host', 'engine', 'tasks/runner'],
  'tasks/database-role': ['engine', 'tasks/runner'],
  'tasks/flashback': ['host', 'engine', 'tasks/runner'],
  'tasks/page-repair': ['host', 'engine', 'tasks/runner'],
  'tasks/settings': ['host', 'engine', 'tasks/runner', 'tasks/instance'],
  watch: ['engine', 'tasks/runner'],
  router: ['engine', 'sampler', 'metrics', 'tasks/runner', 'tasks/bodies.ts'],
}

/** What every room of the agent may know: what is wrong with it, where it is installed, and the queries. */
const AGENT_GROUND = ['(identity|installation|problems|version)\\.ts$', 'engine/sql/']

const TEST_FILE =
  '(\\.test\\.tsx?$|/testing/|^apps/[^/]+/test/|/vitest\\.[a-z.]*\\.?ts$|vitest\\.config\\.ts$)'
const anyOf = (paths) => `^(${paths.join('|')})/`

/** One rule a room of the agent, and one for what the rooms of the engine know of the instance that they belong to. */
function forbiddenInAgent() {
  const src = 'apps/agent/src'
  const below = (path) => `^${src}/${path}${path.endsWith('.ts') ? '$' : '/'}`
  const bound = `^${src}/engine/(instance|instances|work)\\.ts$`
  return [
    ...Object.entries(agentRooms).map(([room, others]) => ({
      name: `${room} of the agent imports only what agentRooms in tooling/boundaries/rules.mjs allows`,
      severity: 'error',
      from: { path: below(room), pathNot: TEST_FILE },
      to: {
        path: `^${src}/`,
        pathNot: [
          ...[room, ...others].map(below),
          ...AGENT_GROUND.map((path) => `^${src}/${path}`),
          ...(room.startsWith('engine/') ? [bound] : []),
        ],
      },
    })),
    {
      name: 'rooms of the engine know of an instance only the type',
      severity: 'error',
      from: { path: `^${src}/engine/[^/]+/`, pathNot: TEST_FILE },
      to: { path: bound, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'only the agent itself starts the runner and the watches',
      severity: 'error',
      from: { path: `^${src}/`, pathNot: [TEST_FILE, `^${src}/(agent\\.ts|tasks/runner/|watch/)`] },
      to: { path: `^${src}/(tasks/runner/(runner|store)\\.ts$|watch/)`, dependencyTypesNot: ['type-only'] },
    },
  ]
}

/**
 * Forbidden imports in dependency-cruiser's words, those of the rooms of apps/web/src/features included. Tests may also
 * import packages/testkit.
 */
export function forbidden(features) {
  const rules = featureRules(features)
  for (const [room, { code, types }] of Object.entries(rooms)) {
    const others = Object.keys(rooms).filter((other) => other !== room)
    const never = others.filter(
      (other) => !code.includes(other) && !types.includes(other) && other !== 'packages/testkit',
    )
    rules.push({
      name: `${room} imports only what ARCHITECTURE.md allows`,
      severity: 'error',
      from: { path: `^${room}/` },
      to: { path: anyOf(never) },
    })
    if (types.length > 0)
      rules.push({
        name: `${room} imports only types of ${types.join(', ')}`,
        severity: 'error',
        from: { path: `^${room}/` },
        to: { path: anyOf(types), dependencyTypesNot: ['type-only'] },
      })
  }
  rules.push(
    ...forbiddenInAgent(),
    {
      name: 'only tests import packages/testkit',
      severity: 'error',
      from: {
        path: '^(apps|packages|e2e)/',
        pathNot: [TEST_FILE, '^packages/testkit/', '^apps/[^/]+/tools/'],
      },
      to: { path: '^packages/testkit/' },
    },
    {
      name: 'only packages/db imports Prisma',
      severity: 'error',
      from: { path: '^(apps|packages|e2e)/', pathNot: ['^packages/db/', '^apps/web/src/(server/)?auth/'] },
      to: { path: 'node_modules/(@prisma|prisma|\\.prisma)/' },
    },
    {
      name: 'web submits operations and runs none',
      severity: 'error',
      from: { path: '^apps/web/', pathNot: TEST_FILE },
      to: { path: '^packages/operations/', pathNot: '^packages/operations/src/submit\\.ts$' },
    },
    {
      name: 'web speaks to agents by the read-only client',
      severity: 'error',
      from: { path: '^apps/web/', pathNot: TEST_FILE },
      to: { path: '^packages/agent-contract/src/(router|tasks)', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'web and agents sign no certificate',
      severity: 'error',
      from: { path: '^apps/(web|agent)/', pathNot: TEST_FILE },
      to: { path: '^packages/authority/src/(index|authority)\\.ts$' },
    },
    {
      name: 'no test support in what people run',
      severity: 'error',
      from: { path: '^(apps|packages)/[^/]+/src/', pathNot: TEST_FILE },
      to: { path: '\\.test\\.tsx?$|/testing/' },
    },
    {
      name: 'no circle of imports',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'every import is found',
      severity: 'error',
      from: { path: '^(apps|packages|e2e)/' },
      to: { couldNotResolve: true, pathNot: ['generated', '\\.sql$', '\\.css$'] },
    },
  )
  return rules
}
