// The console's part of an enrolment and nothing else, for a machine of the tests: it answers at 127.0.0.1, port 8080, writes
// the fingerprint of its authority to the first file named once it does, and each request that it took to the second.
// With a third word it refuses with that, as the console does.
import { randomUUID } from 'node:crypto'
import { appendFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { fingerprintOf, issueHostCertificate, makeAuthority } from '@floe/authority'

const [ready, taken, refusal] = process.argv.slice(2) as [string, string, string | undefined]
const authority = await makeAuthority()
const [installationId, hostId] = [randomUUID(), randomUUID()]

createServer(async (incoming, response) => {
  let text = ''
  for await (const more of incoming.setEncoding('utf8')) text += more
  const { request, agentUrl } = JSON.parse(text) as { request: string; agentUrl: string }
  appendFileSync(taken, `${agentUrl}\n`)
  const answer = refusal ?? {
    ...{ state: 'enrolled', installationId, hostId, hostName: 'db1', authority: authority.certificate },
    certificate: await issueHostCertificate(authority, {
      request,
      hostId,
      addresses: [new URL(agentUrl).hostname],
    }),
  }
  response.writeHead(refusal === undefined ? 200 : 403, { 'content-type': 'application/json' })
  response.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
}).listen(8080, '127.0.0.1', () => {
  writeFileSync(`${ready}.new`, `sha256:${fingerprintOf(authority.certificate)}`)
  renameSync(`${ready}.new`, ready)
})
