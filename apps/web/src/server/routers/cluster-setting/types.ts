export * from './cluster-setting.types'
