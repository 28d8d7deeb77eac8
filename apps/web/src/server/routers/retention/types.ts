export * from './retention.types'
