import { z } from 'zod'

/** Ids are UUIDs, branded so that one noun's id cannot be passed for another's. Parse at the edge, pass the brand inside. */
export const HostId = z.uuid().brand<'HostId'>()
export type HostId = z.infer<typeof HostId>

export const InstanceId = z.uuid().brand<'InstanceId'>()
export type InstanceId = z.infer<typeof InstanceId>

export const OperationId = z.uuid().brand<'OperationId'>()
export type OperationId = z.infer<typeof OperationId>

export const IncidentId = z.uuid().brand<'IncidentId'>()
export type IncidentId = z.infer<typeof IncidentId>

/** What a person types to name an instance: also a directory, a unit and a label, hence the narrow alphabet. */
export const InstanceName = z
  .string()
  .regex(
    /^[a-z][a-z0-9-]{0,39}$/,
    'must start with a letter and contain only lower-case letters, digits and hyphens (at most 40)',
  )
  .brand<'InstanceName'>()
export type InstanceName = z.infer<typeof InstanceName>

/** What PostgreSQL stores of a password; useless for connecting. */
export const ScramVerifier = z
  .string()
  .regex(
    /^SCRAM-SHA-256\$\d+:[A-Za-z0-9+/]+=*\$[A-Za-z0-9+/]+=*:[A-Za-z0-9+/]+=*$/,
    'must be a SCRAM-SHA-256 verifier',
  )
