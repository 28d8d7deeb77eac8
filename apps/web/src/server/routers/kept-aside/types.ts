export * from './kept-aside.types'
