export * from './list.types'
export * from './running.types'
