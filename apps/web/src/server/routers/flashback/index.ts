import { router } from '../../procedures'
import { activity } from './activity'
import { beforeDrop } from './before-drop'
import { compare } from './compare'
import { drop } from './drop'
import { exportResult } from './export-result'
import { lost } from './lost'
import { merge } from './merge'
import { prepare } from './prepare'
import { preview } from './preview'
import { read } from './read'
import { restore } from './restore'
import { results } from './results'
import { rows } from './rows'
import { swap } from './swap'
import { tables } from './tables'
import { to } from './to'

export const flashback = router({
  read,
  tables,
  activity,
  lost,
  results,
  prepare,
  preview,
  to,
  beforeDrop,
  restore,
  compare,
  merge,
  swap,
  drop,
  export: exportResult,
  rows,
})
