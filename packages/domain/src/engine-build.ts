import { z } from 'zod'

/** A build of the engine: the name of the directory that it is installed in, e.g. `release-1da26ba6c0b9a383`. */
export const EngineBuild = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._+~-]{0,99}$/)
export type EngineBuild = z.infer<typeof EngineBuild>

/** Of which build an instance's engine is. */
export const InstanceEngine = z.object({
  /** The one that it starts with. */
  build: EngineBuild,
  /** The one that its server was started from; null while none runs, and where it is neither `build` nor the installed one. */
  running: EngineBuild.nullable(),
  /** Whether both are the installed one, as far as they are known: the one that new instances of its host get. */
  current: z.boolean(),
})
export type InstanceEngine = z.infer<typeof InstanceEngine>
