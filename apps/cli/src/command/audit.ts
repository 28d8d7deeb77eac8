import { fault } from '@floe/domain'
import type { RouterInputs, RouterOutputs } from '@floe/web/api'
import { type Command, InvalidArgumentError } from 'commander'
import { moment, printResult, table } from '../output'
import { openConsole } from './find-instance'
import { oneOf, verb, wholeNumber } from './verb'

type Verb = { json?: boolean }
type Filter = Pick<RouterInputs['audit']['list'] & object, 'actor' | 'action' | 'outcome' | 'object'>
type Event = RouterOutputs['audit']['list']['events'][number]
type Verified = RouterOutputs['audit']['verify']

const PAGE = 200

function hash(text: string): string {
  const wanted = text.toLowerCase()
  if (!/^[0-9a-f]{64}$/.test(wanted)) throw new InvalidArgumentError('It must be 64 hexadecimal digits.')
  return wanted
}

/** Words of other people, without what a terminal would obey. */
const plain = (text: string | null): string | null =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  text?.replace(/[\u0000-\u001f\u007f-\u009f]/g, '?') ?? null

/** What `audit verify` prints of a chain that holds. */
function formatVerified(v: Verified): string {
  const { known } = v
  return [
    `${v.rows} audit rows verified: none was changed or removed.`,
    ...(v.anchorId === '0' ? [] : [`Rows up to ${v.anchorId} were removed after their retention.`]),
    ...(known
      ? [
          known.at === null
            ? `The given hash is that of row ${known.eventId}, the last one removed.`
            : `The given hash is that of row ${known.eventId} of ${moment(known.at)}.`,
        ]
      : []),
    `newest row   ${v.headId}`,
    `head hash    ${v.headHash}`,
  ].join('\n')
}

export function addAudit(program: Command): void {
  const audit = program
    .command('audit')
    .summary('list audit rows, or verify that none was changed')
    .description(
      'Audit rows: one for each change and each refused request. Admins and owners can read them; nobody can change them.',
    )

  verb(audit, 'list', 'list audit rows, newest first')
    .option('--actor <name>', 'only those of a user, by name or id')
    .option('--action <action>', 'only an action, e.g. instance.stop, or all of a noun, e.g. instance')
    .option('--outcome <outcome>', 'only allowed or only denied ones', oneOf('allowed', 'denied'))
    .option('--object <name>', 'only those of an object, by name or id')
    .option('--limit <n>', 'at most this many', wholeNumber(1, 10_000), 50)
    .action(async ({ json, limit, ...filter }: Verb & Filter & { limit: number }) => {
      const { trpc } = openConsole()
      const events: Event[] = []
      for (let cursor: string | undefined; events.length < limit; ) {
        const page = await trpc.audit.list.query({
          ...filter,
          limit: Math.min(PAGE, limit - events.length),
          cursor,
        })
        events.push(...page.events)
        if (page.nextCursor === null) break
        cursor = page.nextCursor
      }
      printResult(json, events, () =>
        events.length === 0
          ? 'There are no such audit rows.'
          : table(
              ['row', 'time', 'user', 'action', 'outcome', 'object', 'address'],
              events.map((e) => [
                e.eventId,
                moment(e.at),
                plain(e.actorName),
                plain(e.action),
                e.outcome,
                plain(e.objectName ?? e.objectId),
                plain(e.ipAddress),
              ]),
            ),
      )
    })

  verb(
    audit,
    'verify',
    'verify that no audit row was changed or removed',
    'Computes the hash of each audit row again and names the first one that was changed or is missing. Prints the hash of the newest row: keep it outside this installation and give it as --head later, to prove that no row up to that one was rewritten.',
  )
    .option('--head <hash>', 'a hash that an earlier run printed', hash)
    .action(async ({ json, head }: Verb & { head?: string }) => {
      const verified = await openConsole().trpc.audit.verify.query({ head })
      const { broken } = verified
      if (!broken && verified.known !== null) {
        printResult(json, verified, () => formatVerified(verified))
        return
      }
      if (broken)
        throw fault('audit.broken', broken.message, {
          detail: `The ${verified.rows} rows before it are unchanged.${broken.at === null ? '' : ` Its time is ${moment(broken.at)}.`}`,
          hint: 'Only the owner of the tables, a superuser of the control database, can change audit rows. Compare with a backup.',
        })
      throw fault('audit.head_unknown', 'no audit row has the given hash', {
        detail:
          'The chain is intact, but it is a different chain, or the row was removed after its retention.',
        hint: `${verified.anchorId === '0' ? 'No row was' : `Rows up to ${verified.anchorId} were`} removed after their retention. If the hash is of a later row, the chain was rewritten: compare with a backup.`,
      })
    })
}
