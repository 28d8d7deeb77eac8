import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readEncrypted, writeEncrypted } from './encrypted-file'

const directory = mkdtempSync(join(tmpdir(), 'floe-backup-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const path = (name: string) => join(directory, name)

// quick to derive; the header says it, so that reading needs no such argument
const WORK_FACTOR = 8
const PASSPHRASE = 'correct horse battery staple'
const plain = Buffer.alloc(200_000, 'Floe ')
async function* pieces() {
  for (let at = 0; at < plain.length; at += 9_999) yield plain.subarray(at, at + 9_999)
}
const read = async (name: string, passphrase = PASSPHRASE) => {
  const all: Uint8Array[] = []
  for await (const piece of readEncrypted(path(name), passphrase)) all.push(piece)
  return Buffer.concat(all)
}
let whole: Buffer
beforeAll(async () => {
  await writeEncrypted(path('whole'), PASSPHRASE, pieces(), WORK_FACTOR)
  whole = readFileSync(path('whole'))
})

test('what is written is read again; the file is its owner’s alone and shows nothing of its content', async () => {
  expect(plain.equals(await read('whole'))).toBe(true)
  expect(statSync(path('whole')).mode & 0o777).toBe(0o600)
  expect(statSync(path('whole')).nlink).toBe(1)
  expect(whole.includes('Floe Floe')).toBe(false)
  expect(whole.toString('latin1', 0, 22)).toBe('age-encryption.org/v1\n')
})

test('a wrong passphrase opens nothing', async () => {
  await expect(read('whole', 'correct horse battery stable')).rejects.toMatchObject({
    fault: { code: 'backup.not_opened' },
  })
})

test('a file that is cut anywhere, or has one bit changed, is not read to its end', async () => {
  const portion = 64 * 1024 + 16
  const header = whole.indexOf('\n--- ') + 1
  const body = whole.indexOf(0x0a, header) + 1 + 16
  const cuts = [0, 1, 21, 22, header, body - 17, body - 16, body - 1, body, body + 1, body + 15, body + 16]
  for (const n of [1, 2, 3]) cuts.push(body + n * portion - 1, body + n * portion, body + n * portion + 1)
  for (const length of [...cuts, whole.length - 1].filter((n) => n < whole.length)) {
    writeFileSync(path('cut'), whole.subarray(0, length))
    await expect(read('cut'), `cut at ${length}`).rejects.toMatchObject({
      fault: { code: expect.stringMatching(/^backup\.(damaged|not_opened)$/) },
    })
  }
  for (const at of [10, 40, 80, header + 10, body - 10, body + 5, body + portion + 5, whole.length - 1]) {
    const changed = Buffer.from(whole)
    changed[at] = (changed[at] as number) ^ 1
    writeFileSync(path('changed'), changed)
    await expect(read('changed'), `changed at ${at}`).rejects.toMatchObject({
      fault: { code: expect.stringMatching(/^backup\./) },
    })
  }
  writeFileSync(path('longer'), Buffer.concat([whole, Buffer.from('x')]))
  await expect(read('longer')).rejects.toMatchObject({ fault: { code: 'backup.damaged' } })
})

test('what is no file of ours is refused before anything is derived from it', async () => {
  writeFileSync(path('text'), 'hello\n'.repeat(10_000))
  // a work factor that would take for ever
  writeFileSync(path('slow'), whole.toString('latin1').replace(/^(.*\n-> scrypt \S+) \d+/, '$1 63'), 'latin1')
  writeFileSync(path('endless'), `age-encryption.org/v1\n-> scrypt ${'a'.repeat(1e6)}\n`)
  mkdirSync(path('directory'))
  for (const name of ['text', 'slow', 'endless', 'directory'])
    await expect(read(name), name).rejects.toMatchObject({
      fault: { code: expect.stringMatching(/^backup\./) },
    })
  await expect(read('missing')).rejects.toMatchObject({ fault: { code: 'backup.not_read' } })
})

test('a file that is there is never overwritten, and nothing is left of a run that failed', async () => {
  await expect(writeEncrypted(path('whole'), PASSPHRASE, pieces(), WORK_FACTOR)).rejects.toMatchObject({
    fault: { code: 'backup.exists' },
  })
  expect(whole.equals(readFileSync(path('whole')))).toBe(true)
  const broken = async function* () {
    yield plain
    throw new Error('the dump ended early')
  }
  await expect(writeEncrypted(path('broken'), PASSPHRASE, broken(), WORK_FACTOR)).rejects.toThrow(
    'ended early',
  )
  expect(
    readdirSync(directory).filter((name) => name.startsWith('broken') || name.endsWith('.part')),
  ).toEqual([])
})
