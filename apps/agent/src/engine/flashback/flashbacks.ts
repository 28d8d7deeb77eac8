import { Activity } from './activity'
import { Downloads } from './downloads'
import { RowsInMemory } from './kept-rows'

/** What the agent keeps of flashbacks, all of it in memory only. */
export class Flashbacks {
  readonly rows = new RowsInMemory()
  readonly downloads = new Downloads()
  readonly activity = new Activity()
}
