import { setFlagsFromString } from 'node:v8'

// An agent makes little garbage a second and lives for months: a young generation of 2 MB is enough for it, where V8 would
// grow to 128 MB. Imported first, before anything is allocated.
setFlagsFromString('--semi-space-growth-factor=1')
