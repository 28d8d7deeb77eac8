export * from './me.types'
