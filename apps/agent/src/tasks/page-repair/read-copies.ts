import { crc32 } from 'node:zlib'
import { fault } from '@floe/domain'
import { readPages, readWal } from '../../engine/copies/read-pieces'
import { controlChecksum, refuseAwake } from '../../engine/copies/torn-list'
import type { Instance } from '../../engine/instance'
import type { TaskBody } from '../runner/task'

/** Reads a piece of an instance that rests. That nobody started it meanwhile is looked at before, and again after. */
export const readCopies: TaskBody<'read-copies'> = async ({ instanceId, control, piece }, context) => {
  const instance = context.instances.get(instanceId)
  const { dataDirectory } = instance.layout
  refuseStarted(instance, control)
  const { bytes, damaged } =
    piece.kind === 'pages'
      ? readPages(dataDirectory, piece.blocks)
      : { bytes: readWal(dataDirectory, piece), damaged: [] }
  refuseStarted(instance, control)
  return { data: bytes.toString('base64'), crc32: crc32(bytes), damaged }
}

function refuseStarted(instance: Instance, control: string): void {
  refuseAwake(instance)
  if (controlChecksum(instance.layout.dataDirectory) === control) return
  throw fault('recover.started_meanwhile', `instance "${instance.registered.name}" was started meanwhile`, {
    detail: 'Its control file has changed since its torn pages were listed.',
    hint: 'Recover the cluster again, which lists them anew.',
  })
}
