export * from './accept-restored.types'
