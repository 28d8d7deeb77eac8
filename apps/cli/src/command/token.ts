import { fault, TOKEN_DAYS_DEFAULT, TOKEN_DAYS_MAX, TokenRole } from '@floe/domain'
import type { Command } from 'commander'
import { duration, moment, printResult, table } from '../output'
import { openConsole } from './find-instance'
import { oneOf, verb, wholeNumber } from './verb'

type Verb = { json?: boolean }

export function addToken(program: Command): void {
  const token = program
    .command('token')
    .summary('create, list and revoke API tokens for programs')
    .description(
      'API tokens: what a program presents to the API of the console, with a role and an end. Hosts are enrolled with tokens of their own ("./floe host add").',
    )
  verb(
    token,
    'create <name>',
    'create an API token',
    'Creates an API token with a role and an end. The token is shown only once; what is stored is its hash. Programs send it as "Authorization: Bearer TOKEN".',
  )
    .requiredOption('--role <role>', 'viewer, operator or admin', oneOf(...TokenRole.options))
    .option(
      '--days <days>',
      'after how many days it ends',
      wholeNumber(1, TOKEN_DAYS_MAX),
      TOKEN_DAYS_DEFAULT,
    )
    .action(async (name: string, { json, role, days }: Verb & { role: TokenRole; days: number }) => {
      const made = await openConsole().trpc.token.create.mutate({ name, role, days })
      printResult(json, made, () =>
        [
          `token    ${made.secret}  (shown this once)`,
          `role     ${role}`,
          `expires  ${moment(made.expiresAt)}`,
          `id       ${made.tokenId}`,
        ].join('\n'),
      )
    })
  verb(token, 'list', 'list the API tokens').action(async ({ json }: Verb) => {
    const { tokens, now } = await openConsole().trpc.token.list.query()
    printResult(json, tokens, () =>
      tokens.length === 0
        ? 'There are no API tokens.'
        : table(
            ['name', 'role', 'by', 'expires', 'last used', 'id'],
            tokens.map((t) => [
              t.name,
              t.role,
              t.madeByName,
              t.expired ? `expired ${moment(t.expiresAt)}` : moment(t.expiresAt),
              t.lastUsedAt === null ? 'never' : `${duration(now - t.lastUsedAt)} ago`,
              t.tokenId,
            ]),
          ),
    )
  })
  verb(token, 'revoke <name>', 'revoke an API token, by its name or id').action(
    async (name: string, { json }: Verb) => {
      const client = openConsole()
      const { tokens } = await client.trpc.token.list.query()
      const found = tokens.filter((t) => t.tokenId === name || t.name === name)
      if (found.length > 1)
        throw fault('usage.token', `${found.length} API tokens have the name "${name}"`, {
          hint: 'Name one by its id: "./floe token list" shows it.',
        })
      if (!found[0])
        throw fault('token.not_found', `API token "${name}" does not exist`, {
          hint: 'Run "./floe token list".',
        })
      const revoked = await client.trpc.token.revoke.mutate({ tokenId: found[0].tokenId })
      printResult(json, revoked, () => `API token "${revoked.name}" was revoked.`)
    },
  )
}
