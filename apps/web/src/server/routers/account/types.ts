export * from './account.types'
export * from './me.types'
