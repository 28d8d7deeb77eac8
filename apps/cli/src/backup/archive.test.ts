// What is in a backup is a stranger's: files of known names, whole, and nothing else.
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { type ArchiveEntry, readArchive, writeArchive } from './archive'
import { bytesMaxOf } from './contents'

const entry = (name: string, text: string): ArchiveEntry => ({
  name,
  size: Buffer.byteLength(text),
  content: [Buffer.from(text)],
})
const bytesOf = async (pieces: AsyncIterable<Uint8Array>) => {
  const all: Uint8Array[] = []
  for await (const piece of pieces) all.push(piece)
  return Buffer.concat(all)
}
async function* inPieces(bytes: Buffer, length: number) {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}
const read = async (bytes: Buffer, length = 700) => {
  const found: Record<string, string> = {}
  await readArchive(inPieces(bytes, length), { bytesMaxOf }, async (name, _size, content) => {
    found[name] = (await bytesOf(content)).toString()
  })
  return found
}
const files = {
  'manifest.json': '{}',
  'secrets/ca.key': 'k'.repeat(511),
  'secrets/ca.pem': 'c'.repeat(512),
  'config.json': '',
  'control.dump': 'd'.repeat(5_000),
}
const archive = () => bytesOf(writeArchive(Object.entries(files).map(([name, text]) => entry(name, text))))

test('what is written is read again, in pieces of any length, and by tar', async () => {
  const bytes = await archive()
  for (const length of [1, 7, 511, 512, 513, 100_000]) expect(await read(bytes, length)).toEqual(files)
  const listed = execFileSync('tar', ['-t'], { input: bytes, encoding: 'utf8' })
  expect(listed.trim().split('\n')).toEqual(Object.keys(files))
})

test('an archive that ends anywhere before its end is refused', async () => {
  const bytes = await archive()
  for (let length = 0; length < bytes.length; length += 97)
    await expect(read(bytes.subarray(0, length)), `${length}`).rejects.toMatchObject({
      fault: { code: 'backup.damaged' },
    })
  await expect(read(bytes.subarray(0, -1))).rejects.toThrow('not a backup')
  await expect(read(Buffer.concat([bytes, Buffer.alloc(1)]))).rejects.toThrow('not a backup')
})

/** The archive with its first header changed, and that header's checksum made right again. */
const altered = async (alter: (header: Buffer) => void) => {
  const bytes = Buffer.from(await archive())
  const header = bytes.subarray(0, 512)
  alter(header)
  header.fill(0x20, 148, 156)
  const sum = header.reduce((a, b) => a + b, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return read(bytes)
}

test('paths that lead elsewhere, links, devices and what is too large are refused', async () => {
  const name = (to: string) =>
    altered((header) => {
      header.fill(0, 0, 100)
      header.write(to, 0)
    })
  for (const to of [
    '../manifest.json',
    '/etc/passwd',
    'secrets/../manifest.json',
    './manifest.json',
    'secrets/ca.key/x',
    'manifest.json/',
    'secrets',
    '',
  ])
    await expect(name(to), to).rejects.toMatchObject({ fault: { code: 'backup.damaged' } })
  // the control: the same change with the name that it had
  expect(await name('manifest.json')).toEqual(files)
  for (const type of ['1', '2', '3', '4', '5', '6', 'L', 'x', 'g', '\0'])
    await expect(
      altered((h) => h.write(type, 156, 'latin1')),
      type,
    ).rejects.toThrow('not a backup')
  await expect(altered((h) => h.write('../../etc', 345, 'latin1'))).rejects.toThrow('not a backup')
  await expect(altered((h) => h.write('77777777777', 124, 'latin1'))).rejects.toMatchObject({
    fault: { detail: expect.stringContaining('at most') },
  })
  await expect(altered((h) => h.write('-0000000001', 124, 'latin1'))).rejects.toThrow('not a backup')
})

test('a file that comes twice is refused', async () => {
  const twice = await bytesOf(writeArchive([entry('manifest.json', 'a'), entry('manifest.json', 'b')]))
  await expect(read(twice)).rejects.toMatchObject({ fault: { code: 'backup.damaged' } })
})

test('a file that changes its size while it is read is no backup', async () => {
  const short = { ...entry('manifest.json', 'abc'), size: 4 }
  await expect(bytesOf(writeArchive([short]))).rejects.toThrow('3 bytes instead of 4')
})
