import { scramVerifier } from '@floe/authority/scram-verifier'
import { ConnectionLimit, type DatabaseRole, FlashbackTime, fault, RoleName } from '@floe/domain'
import { type Command, InvalidArgumentError } from 'commander'
import type { z } from 'zod'
import { submitOnce } from '../console/submit-once'
import { waitForOperation } from '../console/wait-for-operation'
import { moment, printResult, table } from '../output'
import { readSecret } from '../read-secret'
import { findInstance, openConsole } from './find-instance'
import { type Submitting, submittingVerb, verb } from './verb'

type Verb = { json?: boolean }
type Attributes = {
  login?: boolean
  createdb?: boolean
  createrole?: boolean
  connectionLimit?: number
  validUntil?: string | null
}

/** A word of the command line as a schema of the API has it. */
const as =
  <S extends z.ZodType>(schema: S, read: (text: string) => unknown = (text) => text) =>
  (text: string): z.output<S> => {
    const parsed = schema.safeParse(read(text))
    if (!parsed.success) throw new InvalidArgumentError(`It ${parsed.error.issues[0]?.message}.`)
    return parsed.data
  }
const roleName = as(RoleName)
const gathered = (text: string, before: string[] = []) => [...before, roleName(text)]
const connectionLimit = (text: string) => {
  const parsed = ConnectionLimit.safeParse(/^-?\d+$/.test(text) ? Number(text) : null)
  if (!parsed.success) throw new InvalidArgumentError('It must be a whole number; -1 is no limit.')
  return parsed.data
}
const validUntil = (text: string) => (text === 'infinity' ? null : as(FlashbackTime)(text))

/** Reads a password and answers what PostgreSQL stores of it; the password goes nowhere. */
function verifierOf(file: string): string {
  const refuse = (detail: string, hint: string) =>
    fault('usage.no_password', 'there is no password for the role', { detail, hint })
  const password = readSecret(file, refuse)
  if (password.includes('\ufffd')) throw refuse('What was read is not UTF-8.', 'Save the file as UTF-8.')
  return scramVerifier(password)
}

const attributesOf = ({ login, createdb, createrole, connectionLimit, validUntil }: Attributes) => ({
  ...(login === undefined ? {} : { login }),
  ...(createdb === undefined ? {} : { createDb: createdb }),
  ...(createrole === undefined ? {} : { createRole: createrole }),
  ...(connectionLimit === undefined ? {} : { connectionLimit }),
  ...(validUntil === undefined ? {} : { validUntil }),
})

const keptWords = { floe: 'Floe’s own', superuser: 'superuser, or could become one' } as const

/** One line a role. */
export function roleRow(role: DatabaseRole): (string | number | null)[] {
  const attributes = [
    role.login ? 'LOGIN' : 'NOLOGIN',
    role.superuser && 'SUPERUSER',
    role.createDb && 'CREATEDB',
    role.createRole && 'CREATEROLE',
    role.replication && 'REPLICATION',
    role.bypassRls && 'BYPASSRLS',
  ]
  return [
    role.name,
    attributes.filter((word) => word !== false).join(' '),
    role.hasPassword ? 'yes' : 'no',
    role.connectionLimit < 0 ? 'no limit' : role.connectionLimit,
    role.validUntil === null ? 'infinity' : moment(role.validUntil),
    role.memberOf.join(', '),
    role.kept === null ? null : keptWords[role.kept],
  ]
}

function addList(role: Command): void {
  verb(
    role,
    'list <name>',
    'list the database roles of an instance',
    'Lists the database roles of an instance, as it has them at this moment; roles that PostgreSQL predefines are left out. Roles of Floe’s own, and those that are superusers or could become one, are not changed by Floe.',
  ).action(async (name: string, { json }: Verb) => {
    const client = openConsole()
    const { instanceId } = await findInstance(client, name)
    const { roles, more } = await client.trpc.role.list.query({ instanceId })
    printResult(json, { roles, more }, () =>
      [
        table(
          ['role', 'attributes', 'password', 'connections', 'valid until', 'member of', 'left alone'],
          roles.map(roleRow),
        ),
        ...(more ? ['There are more; SQL lists them all.'] : []),
      ].join('\n'),
    )
  })
}

type Asked = Submitting & { passwordFile?: string }

/** Submits a change of a role and waits for its end. */
async function order(
  [name, roleNamed, done]: readonly [name: string, role: string, done: string],
  options: Asked,
  send: (
    client: ReturnType<typeof openConsole>,
    of: {
      instanceId: Awaited<ReturnType<typeof findInstance>>['instanceId']
      role: string
      idempotencyKey: string
    },
  ) => Promise<{ operationId: Parameters<typeof waitForOperation>[1] }>,
): Promise<void> {
  const client = openConsole()
  const { instanceId, name: instance } = await findInstance(client, name)
  const { operationId } = await submitOnce(options.idempotencyKey, (idempotencyKey) =>
    send(client, { instanceId, role: roleNamed, idempotencyKey }),
  )
  const operation = options.wait ? await waitForOperation(client, operationId) : null
  printResult(
    options.json,
    { operationId, instanceId, name: instance, role: roleNamed, state: operation?.state ?? 'queued' },
    () =>
      operation === null
        ? `Operation ${operationId} was started.`
        : `Role "${roleNamed}" of instance "${instance}" ${done}.`,
  )
}

const PASSWORD_FILE = [
  '--password-file <file>',
  'file with its password; "-" reads it from standard input',
] as const
const NO_WAIT = ['--no-wait', 'do not wait for the operation to end'] as const

function addCreate(role: Command): void {
  submittingVerb(
    role,
    'create <name> <role>',
    'create a database role',
    'Creates a database role on the primary; standbys have it by replication. Names are exact: nothing is folded to lower case. Of the password only the SCRAM verifier leaves this command. Without --login the role cannot log in.',
  )
    .option('--login', 'it may log in')
    .option('--createdb', 'it may create databases')
    .option('--createrole', 'it may create roles')
    .option('--connection-limit <count>', 'sessions it may have at once', connectionLimit)
    .option('--valid-until <time>', 'until when its password is accepted', validUntil)
    .option('--member-of <role>', 'a role that is granted to it (may be repeated)', gathered)
    .option(...PASSWORD_FILE)
    .option(...NO_WAIT)
    .action((name: string, named: string, options: Asked & Attributes & { memberOf?: string[] }) => {
      const passwordVerifier = options.passwordFile === undefined ? null : verifierOf(options.passwordFile)
      return order([name, requireName(named), 'is created'], options, ({ trpc }, of) =>
        trpc.role.create.mutate({
          ...of,
          ...attributesOf(options),
          memberOf: options.memberOf ?? [],
          passwordVerifier,
        }),
      )
    })
}

type Change = Asked & Attributes & { grant?: string[]; revoke?: string[]; removePassword?: boolean }

function addChange(role: Command): void {
  submittingVerb(
    role,
    'change <name> <role>',
    'change a database role',
    'Changes what is named of a database role on the primary, and nothing else. Sessions that are open go on: --no-login and a new password hold for new ones.',
  )
    .option('--login', 'it may log in')
    .option('--no-login', 'it may not log in')
    .option('--createdb', 'it may create databases')
    .option('--no-createdb', 'it may not create databases')
    .option('--createrole', 'it may create roles')
    .option('--no-createrole', 'it may not create roles')
    .option('--connection-limit <count>', 'sessions it may have at once; -1 is no limit', connectionLimit)
    .option('--valid-until <time>', 'until when its password is accepted; "infinity" is for ever', validUntil)
    .option('--grant <role>', 'a role that is granted to it (may be repeated)', gathered)
    .option('--revoke <role>', 'a role that is taken from it (may be repeated)', gathered)
    .option(...PASSWORD_FILE)
    .option('--remove-password', 'take its password away')
    .option(...NO_WAIT)
    .action((name: string, named: string, options: Change) => {
      if (options.removePassword && options.passwordFile !== undefined)
        throw fault('usage.password', 'a password cannot be set and removed at once')
      const password = options.removePassword
        ? { passwordVerifier: null }
        : options.passwordFile === undefined
          ? {}
          : { passwordVerifier: verifierOf(options.passwordFile) }
      return order([name, requireName(named), 'is changed'], options, ({ trpc }, of) =>
        trpc.role.change.mutate({
          ...of,
          ...attributesOf(options),
          ...password,
          grant: options.grant ?? [],
          revoke: options.revoke ?? [],
        }),
      )
    })
}

function addDrop(role: Command): void {
  submittingVerb(
    role,
    'drop <name> <role>',
    'drop a database role',
    'Drops a database role on the primary. PostgreSQL refuses that while the role owns objects or has privileges on them, and says which. Sessions of the role that are open go on.',
  )
    .requiredOption('--confirm <role>', 'the name of the role, once more')
    .option(...NO_WAIT)
    .action((name: string, named: string, options: Asked & { confirm: string }) =>
      order([name, requireName(named), 'is dropped'], options, ({ trpc }, of) =>
        trpc.role.drop.mutate({ ...of, confirmRole: options.confirm }),
      ),
    )
}

function requireName(named: string): string {
  const parsed = RoleName.safeParse(named)
  if (parsed.success) return parsed.data
  throw fault('usage.role_name', 'this cannot be the name of a role', {
    detail: `A name ${parsed.error.issues[0]?.message}.`,
  })
}

export function addRole(program: Command): void {
  const role = program
    .command('role')
    .summary('list, create, change and drop database roles of an instance')
    .description(
      'Database roles: who may log in to an instance, and groups of them. <name> is the instance, the primary of its cluster.',
    )
  addList(role)
  addCreate(role)
  addChange(role)
  addDrop(role)
}
