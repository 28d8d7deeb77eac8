import { crc32 } from 'node:zlib'
import { type BlockAddress, fault } from '@floe/domain'
import { readPages, readWal } from '../../engine/copies/read-pieces'
import { readRestoredPage } from '../../engine/copies/restored-pages'
import { controlChecksum, refuseAwake } from '../../engine/copies/torn-list'
import type { Instance } from '../../engine/instance'
import type { TaskBody, TaskOf } from '../runner/task'

/** Reads a piece of an instance that rests. That nobody started it meanwhile is looked at before, and again after. */
export const readCopies: TaskBody<'read-copies'> = async ({ instanceId, control, piece }, context) => {
  const instance = context.instances.get(instanceId)
  const { dataDirectory } = instance.layout
  refuseStarted(instance, control)
  const { bytes, damaged } =
    piece.kind === 'pages'
      ? piecePages(instance, piece)
      : { bytes: readWal(dataDirectory, piece), damaged: [] }
  refuseStarted(instance, control)
  return { data: bytes.toString('base64'), crc32: crc32(bytes), damaged }
}

type Pages = Extract<TaskOf<'read-copies'>['piece'], { kind: 'pages' }>

/** Where a base backup was restored, it gives what is not whole here, or all that is asked for. */
function piecePages(
  instance: Instance,
  { blocks, restored }: Pages,
): { bytes: Buffer; damaged: BlockAddress[] } {
  const { dataDirectory } = instance.layout
  if (!restored) return readPages(dataDirectory, blocks)
  const own = restored.all ? null : blocks.map((block) => readPages(dataDirectory, [block]))
  const damaged: BlockAddress[] = []
  const records = blocks.flatMap((block, i) => {
    const read = own?.[i]
    if (read && read.damaged.length === 0) return [read.bytes]
    const record = readRestoredPage(instance, restored.first + i, block)
    if (record === null) damaged.push(block)
    return record ?? []
  })
  return { bytes: Buffer.concat(records), damaged }
}

function refuseStarted(instance: Instance, control: string): void {
  refuseAwake(instance)
  if (controlChecksum(instance.layout.dataDirectory) === control) return
  throw fault('recover.started_meanwhile', `instance "${instance.registered.name}" was started meanwhile`, {
    detail: 'Its control file has changed since its torn pages were listed.',
    hint: 'Recover the cluster again, which lists them again.',
  })
}
