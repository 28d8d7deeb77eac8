export * from './checkpoint'
export * from './metric-catalogue'
export * from './rollup'
export * from './sample'
