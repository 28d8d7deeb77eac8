/**
 * The console's API as types: what a client of `/api/trpc` compiles against. Schemas of inputs are exported as values,
 * because forms check with them before they send; nothing of the server comes along.
 */
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import type { AppRouter } from './router'

export type { AppRouter } from './router'
export type RouterInputs = inferRouterInputs<AppRouter>
export type RouterOutputs = inferRouterOutputs<AppRouter>

export * from './routers/account/account.types'
export * from './routers/audit/audit.types'
export * from './routers/checkpoint/checkpoint.types'
export * from './routers/cluster/cluster.types'
export * from './routers/control-database/control-database.types'
export * from './routers/flashback/flashback.types'
export * from './routers/host/host.types'
export * from './routers/incident/incident.types'
export * from './routers/instance/instance.types'
export * from './routers/kept-aside/kept-aside.types'
export * from './routers/operation/operation.types'
export * from './routers/protection/protection.types'
export * from './routers/retention/retention.types'
export * from './routers/role/role.types'
export * from './routers/setting/setting.types'
export * from './routers/setup/setup.types'
export * from './routers/shared-server/shared-server.types'
export * from './routers/stall/stall.types'
export * from './routers/standby/standby.types'
export * from './routers/telemetry/telemetry.types'
export * from './routers/token/token.types'
export * from './routers/webhook/webhook.types'
