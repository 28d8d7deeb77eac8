export * from './cluster.types'
export * from './list.types'
export * from './switchover.types'
export * from './synchronous.types'
