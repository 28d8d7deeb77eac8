export * from './submit'
