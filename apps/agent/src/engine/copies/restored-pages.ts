import { join } from 'node:path'
import { type BlockAddress, blockKey, COPY_RECORD_BYTES, fault, PIECE_BLOCKS_MAX } from '@floe/domain'
import { closeOwnedFile, makeOwnedDirectory, readOwnedBytes } from '../../host/owned-files'
import { openBelow, removeTree, writeInTree } from '../../host/tree'
import type { Instance } from '../instance'
import { parseCopyRecord, readPages } from './read-pieces'

/** Beside the data directory: pages of a base backup that was restored for the others of the cluster. */
const DIRECTORY = 'restored-pages'
const FILE = 'pages'

const placeOf = ({ layout }: Instance) => join(layout.directory, DIRECTORY)

/** Keeps blocks of a data directory that is stopped, in this order; none of them where one is not whole. */
export async function keepRestoredPages(
  instance: Instance,
  dataDirectory: string,
  blocks: readonly BlockAddress[],
  { signal, worked }: { signal: AbortSignal; worked: (doneBytes: number, totalBytes: number) => void },
): Promise<void> {
  await dropRestoredPages(instance)
  const place = placeOf(instance)
  makeOwnedDirectory(place, instance.user)
  for (let first = 0; first < blocks.length; first += PIECE_BLOCKS_MAX) {
    signal.throwIfAborted()
    const { bytes, damaged } = readPages(dataDirectory, blocks.slice(first, first + PIECE_BLOCKS_MAX))
    if (damaged[0])
      throw fault('restore.damaged_page', 'a page of the restored backup is damaged', {
        detail: `It is block ${damaged[0].block} of relation ${damaged[0].relation} of database ${damaged[0].database}.`,
        hint: 'Name another backup.',
      })
    writeInTree(place, FILE, first * COPY_RECORD_BYTES, bytes, instance.user)
    const done = Math.min(first + PIECE_BLOCKS_MAX, blocks.length)
    worked(done * COPY_RECORD_BYTES, blocks.length * COPY_RECORD_BYTES)
    // each is a moment's work of this process; others get their turn in between
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** The record of a block; null where what lies at that number is not one of it, or is damaged. */
export function readRestoredPage(instance: Instance, number: number, block: BlockAddress): Buffer | null {
  const fd = openBelow(placeOf(instance), FILE)
  if (fd === null) return null
  try {
    const record = readOwnedBytes(fd, number * COPY_RECORD_BYTES, COPY_RECORD_BYTES)
    const found = record.length === COPY_RECORD_BYTES ? parseCopyRecord(record) : null
    return found && blockKey(found) === blockKey(block) ? record : null
  } finally {
    closeOwnedFile(fd)
  }
}

export const dropRestoredPages = (instance: Instance): Promise<void> =>
  removeTree(placeOf(instance), instance.user)
