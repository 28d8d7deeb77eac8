/**
 * The console's API as types: what a client of `/api/trpc` compiles against. Schemas of inputs are exported as values,
 * because forms check with them before they send; nothing of the server comes along.
 */
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import type { AppRouter } from './router'

export type { AppRouter } from './router'
export type RouterInputs = inferRouterInputs<AppRouter>
export type RouterOutputs = inferRouterOutputs<AppRouter>

export * from './routers/account/types'
export * from './routers/audit/types'
export * from './routers/checkpoint/types'
export * from './routers/cluster/types'
export * from './routers/control-database/types'
export * from './routers/host/types'
export * from './routers/incident/types'
export * from './routers/instance/types'
export * from './routers/kept-aside/types'
export * from './routers/operation/types'
export * from './routers/retention/types'
export * from './routers/setting/types'
export * from './routers/setup/types'
export * from './routers/standby/types'
export * from './routers/telemetry/types'
export * from './routers/webhook/types'
