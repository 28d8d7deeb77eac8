import type { Fault } from '@floe/domain'

/** Calls one of better-auth's endpoints; answers the fault, or null when it went well. */
async function post(path: string, body: object): Promise<Fault | null> {
  let response: Response
  try {
    response = await fetch(`/api/auth${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  } catch (error) {
    return {
      code: 'console.unreachable',
      message: 'could not reach the console',
      detail: error instanceof Error ? error.message : String(error),
    }
  }
  if (response.ok) return null
  const answer = (await response.json().catch(() => null)) as { message?: string; fault?: Fault } | null
  if (answer?.fault) return answer.fault
  if (response.status === 429)
    return {
      code: 'session.too_many_attempts',
      message: 'too many attempts to sign in',
      hint: 'Wait a minute and try again.',
    }
  if (response.status === 401)
    return {
      code: 'session.refused',
      message: 'e-mail address or passphrase is wrong',
    }
  return { code: 'session.failed', message: answer?.message ?? `the console answered ${response.status}` }
}

/** Starts a session; null when signed in. */
export function signIn(email: string, passphrase: string): Promise<Fault | null> {
  return post('/sign-in/email', { email, password: passphrase })
}

/** Ends the session of this browser. */
export function signOut(): Promise<Fault | null> {
  return post('/sign-out', {})
}
