export * from './webhook.types'
