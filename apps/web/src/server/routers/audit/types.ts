export * from './list.types'
export * from './verify.types'
