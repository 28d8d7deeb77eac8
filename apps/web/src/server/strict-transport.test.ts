import { expect, test } from 'vitest'

type Answer = (request: object, response: { setHeader(name: string, value: string): void }) => unknown

test('browsers are told to keep to https only where the console is reached by it', async () => {
  const { keepingToHttps } = (await import('../../strict-transport.mjs' as string)) as {
    keepingToHttps(webUrl: string, answer: Answer): Answer
  }
  const headersFor = (webUrl: string) => {
    const headers: Record<string, string> = {}
    const setHeader = (name: string, value: string) => {
      headers[name] = value
    }
    keepingToHttps(webUrl, () => undefined)({}, { setHeader })
    return headers
  }
  expect(headersFor('https://floe.example')).toEqual({ 'strict-transport-security': 'max-age=31536000' })
  expect(headersFor('http://127.0.0.1:3000')).toEqual({})
})
