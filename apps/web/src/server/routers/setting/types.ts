export * from './check.types'
export * from './history.types'
export * from './list.types'
export * from './set.types'
