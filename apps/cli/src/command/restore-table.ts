import { FlashbackTime, formatBytes, HostDirectory, QualifiedName, RestoredTable } from '@floe/domain'
import { type Command, InvalidArgumentError } from 'commander'
import type { z } from 'zod'
import { submitOnce } from '../console/submit-once'
import { moment } from '../output'
import { carryOut } from './cluster'
import { findInstance, openConsole } from './find-instance'
import { type Submitting, submittingVerb } from './verb'

/** What an option holds, refused before the console is asked. */
const of =
  (schema: z.ZodType) =>
  (text: string): string => {
    const parsed = schema.safeParse(text)
    if (!parsed.success) throw new InvalidArgumentError(`It ${parsed.error.issues[0]?.message}.`)
    return text
  }

const restoredWords = (result: unknown): string => {
  const { resultName, rows, bytes, reachedAt, warnings } = RestoredTable.parse(result)
  return [
    `Table ${resultName} has ${rows} rows (${formatBytes(bytes)}).`,
    reachedAt === null
      ? 'The backup holds no later transaction.'
      : `The newest transaction in it ended at ${moment(Date.parse(reachedAt))}.`,
    ...warnings,
  ].join('\n')
}

type Options = Submitting & {
  database: string
  table: string
  at: string
  backup: string
  wal: string
  result?: string
}

/** The way back to a moment that no window reaches. */
export function addRestoreTable(flashback: Command): void {
  submittingVerb(
    flashback,
    'restore <name>',
    'restore a table from a base backup and a WAL archive',
    'Restores a plain base backup and a WAL archive, both on the host of the primary, beside the instance up to a moment, and copies one table out into a new one. The instance itself keeps running. The copy takes the size of the backup on its disk unless the file system can share blocks, and is removed in the end. The instance’s own user has to be able to read both directories. Needs role admin.',
  )
    .requiredOption('--database <name>', 'the database of the table')
    .requiredOption('--table <schema.name>', 'the table as it was named then', of(QualifiedName))
    .requiredOption(
      '--at <time>',
      'the moment, with a time zone: 2026-11-23T23:40:00+01:00',
      of(FlashbackTime),
    )
    .requiredOption('--backup <directory>', 'base backup, as pg_basebackup -Fp makes it', of(HostDirectory))
    .requiredOption('--wal <directory>', 'WAL archive: plain files of WAL', of(HostDirectory))
    .option('--result <name>', 'name of the new table (default: polar_restored_…)')
    .option('--no-wait', 'do not wait for the operation to end')
    .action(async (name: string, options: Options) => {
      const client = openConsole()
      const { instanceId } = await findInstance(client, name)
      const started = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
        client.trpc.flashback.restore.mutate({
          instanceId,
          database: options.database,
          tableName: options.table,
          at: options.at,
          backupDirectory: options.backup,
          walDirectory: options.wal,
          resultName: options.result,
          idempotencyKey,
        }),
      )
      await carryOut(client, started, options, restoredWords)
    })
}
