export * from './advance'
export * from './definitions'
export * from './step'
export * from './submit'
