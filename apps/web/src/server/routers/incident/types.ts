export * from './list.types'
