import { existsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

/** What V8 made of this bundle, beside it and as trusted as it; where it cannot be written, nothing is kept. */
const compiled = join(import.meta.dirname, 'compiled')
if (existsSync(compiled)) enableCompileCache(compiled)
await import('./main')
