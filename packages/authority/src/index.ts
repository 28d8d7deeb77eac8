export * from './authority'
export * from './inspect'
export * from './request'
export * from './token'
