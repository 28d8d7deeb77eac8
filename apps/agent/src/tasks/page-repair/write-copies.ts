import { refuseAwake } from '../../engine/copies/torn-list'
import {
  beginCopies,
  removeCopies,
  writeOrigin,
  writePages,
  writeWal,
} from '../../engine/copies/write-pieces'
import type { Instance } from '../../engine/instance'
import type { TaskBody, TaskOf } from '../runner/task'

/** Writes a piece into the directory of copies, at its place: a second run writes the same. */
export const writeCopies: TaskBody<'write-copies'> = async ({ instanceId, piece }, context) => {
  const instance = context.instances.get(instanceId)
  // one that has started with the copies needs them no longer, as soon as it is consistent
  if (piece.kind !== 'remove') refuseAwake(instance)
  return { bytes: await write(instance, piece) }
}

function write(instance: Instance, piece: TaskOf<'write-copies'>['piece']): number | Promise<number> {
  switch (piece.kind) {
    case 'begin':
      return beginCopies(instance, piece.bytes)
    case 'pages':
      return writePages(instance, piece.first, piece)
    case 'wal':
      return writeWal(instance, piece, piece)
    case 'origin':
      return writeOrigin(instance, piece.header)
    case 'remove':
      return removeCopies(instance)
  }
}
