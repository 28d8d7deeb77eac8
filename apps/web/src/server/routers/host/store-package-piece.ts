import { storePackagePiece as store } from '@floe/db'
import { fault, PACKAGE_PIECE_BYTES } from '@floe/domain'
import { adminProcedure } from '../../procedures'
import { HostPackagePiece, HostPackagePieceStored } from './host.types'

/**
 * Stores a piece of a package of Floe's, by the digest of the whole, until an upgrade that names it has brought it to its host; at
 * most an hour where none does. Throws `package.piece_size` or `package.no_room`.
 */
export const storePackagePiece = adminProcedure
  .input(HostPackagePiece)
  .output(HostPackagePieceStored)
  .mutation(async ({ ctx, input: { digest, number, data } }) => {
    const bytes = Buffer.from(data, 'base64')
    if (bytes.length === 0 || bytes.length > PACKAGE_PIECE_BYTES)
      throw fault('package.piece_size', 'a piece of a package has the wrong size', {
        detail: `It has ${bytes.length} bytes; at most ${PACKAGE_PIECE_BYTES} are taken.`,
      })
    if (!(await store(ctx.ports.database.pool, { digest, number, bytes })))
      throw fault('package.no_room', 'the console stores no more packages now', {
        hint: 'Wait until open upgrades of hosts have brought theirs, or an hour for those that none was asked for.',
      })
    return { stored: true }
  })
