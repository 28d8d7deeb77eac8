import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the packages are that files of the suite share. */
    packagesDirectory: string
  }
}

/** Vitest's global set-up: a directory for the packages; a run that needs none builds none. */
export default function packagesForSuite(project: TestProject) {
  const directory = mkdtempSync(join(tmpdir(), 'floe-packages-'))
  project.provide('packagesDirectory', directory)
  return () => rmSync(directory, { recursive: true, force: true })
}

/** Builds the packages as a person does; answers their files, in the order in which they are printed. */
export function buildPackages(output: string): string[] {
  const { FLOE_LOG: _, FLOE_STARTED: __, FLOE_CHECKOUT: ___, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(
    join(import.meta.dirname, '../../../floe'),
    ['engine', 'package', '--output', output],
    { encoding: 'utf8', env },
  )
  const files = stdout.trim().split('\n')
  if (status !== 0 || files.length !== 3) throw new Error(`no packages, status ${status}: ${stderr}`)
  return files
}

/** Those of the suite; the file that asks first builds them, which takes a processor twenty seconds. Nobody changes them. */
export function builtPackages(directory: string): string[] {
  const list = join(directory, 'built.json')
  if (!existsSync(list)) writeFileSync(list, JSON.stringify(buildPackages(join(directory, 'built'))))
  return JSON.parse(readFileSync(list, 'utf8')) as string[]
}
