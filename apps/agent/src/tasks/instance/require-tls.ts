import { fault, type HbaRule, letsInWithoutTls } from '@floe/domain'
import type pg from 'pg'
import { requireTlsInFile, restoreHbaFile } from '../../engine/access/host-based-authentication'
import { readRemoteAccess } from '../../engine/access/remote-access'
import { serveTls } from '../../engine/access/serve-tls'
import { reload } from '../../engine/process/reload'
import type { TaskBody } from '../runner/task'

/**
 * Clients on other hosts come in over TLS only from now on. Only lines that Floe wrote are changed; where another one lets
 * such a client in without TLS, nothing is, and the refusal names it. The engine itself reads the file before it is ordered to.
 */
export const requireTls: TaskBody<'require-tls'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  return instance.connect(async (client) => {
    await serveTls(instance, client)
    const before = requireTlsInFile(instance.layout, instance.user)
    const found = await readRules(client)
    const letsIn = letsInWithoutTls(found)
    if (letsIn !== false) {
      if (before !== null) restoreHbaFile(instance.layout, before, instance.user)
      throw letsIn === null ? broken(found) : changedByHand(found)
    }
    // also where nothing changed: a run that was killed here had written the file
    await reload(instance, client)
    const access = await readRemoteAccess(async (sql) => (await client.query(sql)).rows)
    await instance.lookAtRemoteAccess()
    const sessionsWithoutTls = access?.sessionsWithoutTls ?? 0
    context.log(
      before === null
        ? 'pg_hba.conf require TLS from clients on other hosts already'
        : 'clients on other hosts come in over TLS only',
    )
    if (sessionsWithoutTls > 0)
      context.log(
        `${sessionsWithoutTls} ${sessionsWithoutTls === 1 ? 'session that was' : 'sessions that were'} open without TLS ${sessionsWithoutTls === 1 ? 'stays' : 'stay'} until ${sessionsWithoutTls === 1 ? 'it ends' : 'they end'}`,
      )
    return { changed: before !== null, sessionsWithoutTls }
  })
}

type PlacedRule = HbaRule & { file: string; line: number }

async function readRules(client: pg.Client): Promise<PlacedRule[]> {
  const { rows } = await client.query<PlacedRule>(
    `select type, database, user_name as "userName", address, netmask, auth_method as "authMethod", error,
            regexp_replace(file_name, '.*/', '') as file, line_number as line
       from pg_hba_file_rules order by rule_number nulls last`,
  )
  return rows
}

const placeOf = ({ file, line }: PlacedRule) => `line ${line} of ${file}`

const changedByHand = (rules: PlacedRule[]) => {
  const guilty = rules.filter((rule) => letsInWithoutTls([rule]) === true).map(placeOf)
  return fault('tls.changed_by_hand', 'pg_hba.conf has lines that Floe did not write', {
    detail: `Clients on other hosts may come in without TLS by ${guilty.join(', ')}.`,
    hint: 'Change "host" to "hostssl" there, or remove the line, then try again.',
  })
}

const broken = (rules: PlacedRule[]) => {
  const [first] = rules.filter((rule) => rule.error !== null)
  return fault('tls.hba_invalid', 'pg_hba.conf has an error, so that the engine would not read it', {
    detail: first ? `At ${placeOf(first)}: ${first.error}.` : 'It could not be read.',
    hint: 'Correct the file, then try again.',
  })
}
