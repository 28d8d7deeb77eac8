export * from './complete.types'
export * from './status.types'
