export * from './history.types'
export * from './latest.types'
export * from './stream.types'
