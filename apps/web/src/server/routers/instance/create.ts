import { randomInt, randomUUID } from 'node:crypto'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { FaultError, InstanceId, newSettingFaults } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { submit } from '../operation/submit'
import { InstanceCreate, InstanceCreateInput } from './instance.types'
import { RecentPasswords } from './recent-passwords'

const recent = new RecentPasswords()

/**
 * Orders a new instance. Its password is made here, leaves only with this answer and is stored nowhere, unless the caller has
 * one and sends its verifier; what the operation carries is PostgreSQL's verifier.
 */
export const create = operatorProcedure
  .input(InstanceCreateInput)
  .output(InstanceCreate)
  .mutation(async ({ ctx, input }) => {
    const { name, settings, limits, hostId, passwordVerifier, idempotencyKey } = input
    // what is known to be refused begins nothing: there is no operation to look into and no name to free
    const refused = newSettingFaults(Object.keys(settings).map((n) => ({ name: n }))).find((f) => f !== null)
    if (refused) throw new FaultError(refused)
    const password = passwordVerifier === undefined ? makePassword() : null
    const submitted = await submit(ctx, {
      kind: 'create-instance',
      input: {
        instanceId: InstanceId.parse(randomUUID()),
        name,
        settings,
        ...(limits === undefined ? {} : { limits }),
        ownerPasswordVerifier: passwordVerifier ?? scramVerifier(password as string),
      },
      hostId,
      idempotencyKey,
    })
    if (password !== null && submitted.created && idempotencyKey)
      recent.keep(ctx.actor.id, idempotencyKey, password)
    // asked before: the first request's instance, with its password as long as this process still knows it
    const known =
      password === null
        ? null
        : submitted.created
          ? password
          : recent.find(ctx.actor.id, idempotencyKey ?? '')
    return {
      operationId: submitted.operationId,
      instanceId: submitted.instanceId,
      name: submitted.input.name,
      user: 'postgres',
      database: 'postgres',
      password: known,
    }
  })

// no characters that look alike or that a shell or a URI would take for something else
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789'

/** 24 characters, some 139 bits. */
function makePassword(): string {
  return Array.from({ length: 24 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}
