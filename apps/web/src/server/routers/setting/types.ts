export * from './setting.types'
