import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cruise } from 'dependency-cruiser'
import { featureRooms } from './feature-rooms.mjs'
import { forbidden, rooms } from './rules.mjs'

/** Every import below the rooms of a tree that breaks a rule, as {rule, from, to}. */
export async function brokenRules(root) {
  const folders = Object.keys(rooms).filter((room) => existsSync(join(root, room)))
  const { output } = await cruise(
    folders,
    {
      baseDir: root,
      ruleSet: { forbidden: forbidden(featureRooms(root)) },
      validate: true,
      tsPreCompilationDeps: true,
      doNotFollow: { path: 'node_modules' },
      exclude: { path: '(^|/)(dist|\\.next|generated|coverage|results)/|\\.d\\.ts$' },
      enhancedResolveOptions: {
        exportsFields: ['exports'],
        conditionNames: ['import', 'types', 'node', 'default'],
        extensions: ['.ts', '.tsx', '.mjs', '.js', '.json'],
      },
      combinedDependencies: true,
      moduleSystems: ['es6'],
    },
    // apps/web's own short name for its sources
    { alias: { '@': join(root, 'apps/web/src') } },
  )
  const broken = output.summary.violations.map(({ rule, from, to }) => ({ rule: rule.name, from, to }))
  return { broken, modules: output.summary.totalCruised }
}
