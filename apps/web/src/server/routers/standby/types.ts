export * from './standby.types'
