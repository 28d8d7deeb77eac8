import { type OperationRecord, operationKindsThat } from '@floe/domain'

/** The kinds of operations that make the instance they belong to, as the elements of a list in SQL. */
export const kindsThatMake = (...what: NonNullable<OperationRecord['makes']>[]): string =>
  operationKindsThat(({ makes }) => makes !== undefined && what.includes(makes))
    .map((kind) => `'${kind}'`)
    .join(', ')
