import {
  type Fault,
  FaultError,
  FORMER_READERS,
  fault,
  foreseeableLogin,
  type LoginPurpose,
  purposeOf,
} from '@floe/domain'
import pg from 'pg'
import { sqlState } from '../process/connection'
import type { Work } from '../work'

/**
 * Roles by which members log in at each other.
 *
 * **Claim.** A role has a right of Floe's only if Floe created it. Nobody else's role is taken over, altered or dropped.
 * **Because.** Rights are granted in the transaction that creates the role, by a CREATE ROLE that fails where there is one
 * of that name; a role that exists is used only if it has exactly the rights and attributes given below. EXECUTE on these
 * functions is a superuser's to grant, so that a role that has it was made by Floe: CREATEROLE cannot forge that mark, and
 * a standby that is promoted finds it in its own catalog. The catalogs of roles are locked from the look to the commit.
 * **Test.** apps/agent/test/member-roles.test.ts
 */
type RoleKind = { attributes: string; replication: boolean; functions: readonly string[]; comment: string }

export const READ_PAGES = 'polar_page_repair_read(oid[],oid[],oid[],integer[],bigint[])'

const kinds: Record<LoginPurpose, RoleKind> = {
  standby: {
    attributes: 'LOGIN REPLICATION',
    replication: true,
    // what pg_rewind has to call on the instance it reads from
    functions: [
      'pg_ls_dir(text,boolean,boolean)',
      'pg_stat_file(text,boolean)',
      'pg_read_binary_file(text)',
      'pg_read_binary_file(text,bigint,bigint,boolean)',
    ],
    comment: 'A standby replicates as this role; made by Floe',
  },
  repair: {
    attributes: 'LOGIN',
    replication: false,
    functions: [READ_PAGES],
    comment: 'A member asks for pages as this role; made by Floe',
  },
}

const LOCK_BOUND = '10s'

type Seen = {
  mayMore: boolean
  replication: boolean
  mayLogin: boolean
  limited: boolean
  members: string | null
  memberOf: string | null
  settings: boolean
  owns: boolean
  granted: number
}

/** Runs something in a transaction in which nobody else makes, alters or grants roles. */
export async function withRolesLocked<T>(client: pg.Client, run: () => Promise<T>): Promise<T> {
  await client.query('begin')
  try {
    await client.query(`set local lock_timeout = '${LOCK_BOUND}'`)
    await client.query(
      `lock table pg_catalog.pg_authid, pg_catalog.pg_auth_members, pg_catalog.pg_db_role_setting
         in share row exclusive mode`,
    )
    const result = await run()
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback').catch(() => {})
    if (sqlState(error) !== '55P03') throw error
    throw fault('role.locked', 'another session is changing roles', {
      detail: `It has held its lock for more than ${LOCK_BOUND}.`,
      hint: 'End that transaction (pg_locks shows its process), then try again.',
    })
  }
}

async function look(client: pg.Client, role: string): Promise<Seen | undefined> {
  const { rows } = await client.query<Seen>(
    `select r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolbypassrls as "mayMore",
            r.rolreplication as replication, r.rolcanlogin as "mayLogin",
            r.rolconnlimit <> -1 or r.rolvaliduntil is not null as limited,
            (select string_agg(quote_ident(pg_get_userbyid(m.member)), ', ') from pg_auth_members m
              where m.roleid = r.oid) as members,
            (select string_agg(quote_ident(pg_get_userbyid(m.roleid)), ', ') from pg_auth_members m
              where m.member = r.oid) as "memberOf",
            exists (select from pg_db_role_setting s where s.setrole = r.oid) as settings,
            exists (select from pg_shdepend d where d.refclassid = 'pg_authid'::regclass and d.refobjid = r.oid
                       and d.deptype = 'o') as owns,
            (select count(*)::int from unnest($2::text[]) f
               join pg_proc p on p.oid = to_regprocedure('pg_catalog.' || f), aclexplode(p.proacl) a
              where a.grantee = r.oid and a.privilege_type = 'EXECUTE') as granted
       from pg_roles r where r.rolname = $1`,
    [role, kinds[purposeOf(role)].functions],
  )
  return rows[0]
}

/** What a role has otherwise than Floe makes it; empty where it is one of Floe's. */
function differences(seen: Seen, kind: RoleKind): string[] {
  return [
    seen.granted !== kind.functions.length && 'it lacks rights that Floe grants when it creates a role',
    seen.mayMore && 'it is a superuser, or may create roles or databases, or bypasses row security',
    seen.replication !== kind.replication &&
      (kind.replication ? 'it has no REPLICATION' : 'it has REPLICATION'),
    !seen.mayLogin && 'it has NOLOGIN',
    seen.limited && 'it has a connection limit or an end of validity',
    seen.members !== null && `it is granted to ${seen.members}`,
    seen.memberOf !== null && `it is a member of ${seen.memberOf}`,
    seen.settings && 'settings are set for it',
    seen.owns && 'it owns objects',
  ].filter((text) => text !== false)
}

const notOurs = (role: string, found: string[]): Fault => ({
  code: 'role.not_ours',
  message: `role ${pg.escapeIdentifier(role)} is not as Floe made it, or was not made by Floe`,
  detail: `Of this role: ${found.join('; ')}.`,
  hint: `If the role is not needed, run DROP ROLE ${pg.escapeIdentifier(role)} on the primary, then try again.`,
})

/**
 * Sees to a member's role, with its rights, inside withRolesLocked(). Throws `role.not_ours` where there is one of that name
 * that Floe did not make, or that somebody changed.
 */
export async function defineMemberRole(client: pg.Client, role: string, verifier: string): Promise<void> {
  const kind = kinds[purposeOf(role)]
  const name = pg.escapeIdentifier(role)
  const password = pg.escapeLiteral(verifier)
  const seen = await look(client, role)
  if (seen) {
    const found = differences(seen, kind)
    if (found.length > 0) throw new FaultError(notOurs(role, found))
    const same = 'select from pg_authid where rolname = $1 and rolpassword = $2'
    if ((await client.query(same, [role, verifier])).rowCount === 0)
      await client.query(`ALTER ROLE ${name} PASSWORD ${password}`)
    return
  }
  await client.query(`CREATE ROLE ${name} ${kind.attributes} PASSWORD ${password}`)
  await client.query(`COMMENT ON ROLE ${name} IS ${pg.escapeLiteral(kind.comment)}`)
  for (const f of kind.functions) await client.query(`GRANT EXECUTE ON FUNCTION pg_catalog.${f} TO ${name}`)
}

/** Ends the sessions of roles that may log in no longer; `oids` are what they were known by. */
export async function endSessionsOfRetired(client: pg.Client, oids: readonly number[]): Promise<void> {
  await client.query(
    `select pg_terminate_backend(a.pid) from pg_stat_activity a left join pg_roles r on r.oid = a.usesysid
      where a.usesysid = any($1::oid[]) and (r.oid is null or not r.rolcanlogin)`,
    [oids],
  )
}

/** Whether a role of this name exists, whether or not Floe made it. */
export const roleExists = async (client: pg.Client, role: string): Promise<boolean> =>
  (await client.query('select 1 from pg_roles where rolname = $1', [role])).rowCount === 1

/**
 * Takes a member's role away, inside withRolesLocked(). One that Floe never gave a right is somebody else's and left as it
 * is. One that somebody has since built on keeps its name, and nothing else that Floe gave. Answers whether it is gone.
 */
export async function retireMemberRole(
  client: pg.Client,
  role: string,
  log: (text: string) => void,
): Promise<boolean> {
  const seen = await look(client, role)
  if (!seen) return false
  const kind = kinds[purposeOf(role)]
  const name = pg.escapeIdentifier(role)
  const inGroup = purposeOf(role) === 'repair' && (await isInFormerGroup(client, role))
  if (seen.granted === 0 && !inGroup) {
    log(`role ${name} was not made by Floe; it is left alone`)
    return false
  }
  if (seen.granted > 0)
    for (const f of kind.functions)
      await client.query(`REVOKE EXECUTE ON FUNCTION pg_catalog.${f} FROM ${name} CASCADE`)
  await client.query(`ALTER ROLE ${name} NOLOGIN NOREPLICATION PASSWORD NULL`)
  // its members, also those that an earlier version let it keep, go with it
  if (await dropIfFree(client, role)) {
    log(`dropped role ${name}`)
    return true
  }
  log(`role ${name} has lost its rights; it is not dropped, because objects depend on it`)
  return false
}

async function dropIfFree(client: pg.Client, role: string): Promise<boolean> {
  await client.query('savepoint dropping')
  try {
    await client.query(`DROP ROLE ${pg.escapeIdentifier(role)}`)
    await client.query('release savepoint dropping')
    return true
  } catch (error) {
    await client.query('rollback to savepoint dropping')
    if (sqlState(error) === '2BP01') return false
    throw error
  }
}

const isInFormerGroup = async (client: pg.Client, role: string): Promise<boolean> =>
  (
    await client.query(
      `select 1 from pg_auth_members
        where roleid = (select oid from pg_roles where rolname = $1)
          and member = (select oid from pg_roles where rolname = $2)`,
      [FORMER_READERS, role],
    )
  ).rowCount !== 0

/** Roles that may read pages by Floe's grant and that no member asks as any more. */
export async function formerRepairRoles(client: pg.Client, wanted: ReadonlySet<string>): Promise<string[]> {
  const { rows } = await client.query<{ role: string }>(
    `select r.rolname as role from pg_roles r
      where r.rolname ~ '^floe_repair_[a-z0-9_]+$'
        and (exists (select from pg_proc p, aclexplode(p.proacl) a
                      where p.oid = to_regprocedure($1) and a.grantee = r.oid)
             or exists (select from pg_auth_members m join pg_roles g on g.oid = m.roleid
                         where m.member = r.oid and g.rolname = $2))`,
    [`pg_catalog.${READ_PAGES}`, FORMER_READERS],
  )
  return rows.map((r) => r.role).filter((role) => !wanted.has(role))
}

/** Roles that may replicate by Floe's grant and that no member comes as: a standby that was promoted out of its cluster keeps the others'. */
export async function abandonedStandbyRoles(
  client: pg.Client,
  wanted: ReadonlySet<string>,
): Promise<string[]> {
  const { rows } = await client.query<{ role: string }>(
    `select r.rolname as role from pg_roles r
      where r.rolname ~ '^floe_standby_[a-z0-9_]+$'
        and exists (select from unnest($1::text[]) f
                      join pg_proc p on p.oid = to_regprocedure('pg_catalog.' || f), aclexplode(p.proacl) a
                     where a.grantee = r.oid and a.privilege_type = 'EXECUTE')
      order by 1`,
    [kinds.standby.functions],
  )
  return rows.map((r) => r.role).filter((role) => !wanted.has(role))
}

/**
 * Takes from the group of earlier versions its right to read pages: a person with CREATEROLE could have made it, or have
 * been granted it. It is dropped once nobody is a member of it.
 */
export async function retireFormerGroup(client: pg.Client, log: (text: string) => void): Promise<void> {
  const { rowCount } = await client.query(
    `select 1 from pg_proc p, aclexplode(p.proacl) a, pg_roles r
      where p.oid = to_regprocedure($1) and a.grantee = r.oid and r.rolname = $2`,
    [`pg_catalog.${READ_PAGES}`, FORMER_READERS],
  )
  if (!rowCount) return
  await client.query(`REVOKE EXECUTE ON FUNCTION pg_catalog.${READ_PAGES} FROM ${FORMER_READERS} CASCADE`)
  log(`role "${FORMER_READERS}" of an earlier version may read pages no longer`)
  const { rows } = await client.query<{ members: string | null }>(
    `select (select string_agg(quote_ident(pg_get_userbyid(m.member)), ', ') from pg_auth_members m
              where m.roleid = r.oid) as members from pg_roles r where r.rolname = $1`,
    [FORMER_READERS],
  )
  const members = rows[0]?.members ?? null
  if (members === null && (await dropIfFree(client, FORMER_READERS))) log(`dropped role "${FORMER_READERS}"`)
  else if (members !== null) log(`role "${FORMER_READERS}" is left: it is granted to ${members}`)
}

/** The role of this member of the time when its name was computed: nobody comes as it any more. */
export async function retireForeseeable(
  client: pg.Client,
  standbyName: string,
  role: string,
  { log }: Pick<Work, 'log'>,
): Promise<void> {
  const former = foreseeableLogin('standby', standbyName)
  if (former !== role && (await roleExists(client, former))) await retireMemberRole(client, former, log)
}
