import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { SignInForm } from './sign-in-form'

test('as the server sends it nobody can submit it: the browser would put the passphrase into the address', () => {
  const html = renderToStaticMarkup(<SignInForm next="/instances" />)
  expect(html).toMatch(/<form [^>]*method="post"/)
  expect(html).toMatch(/<button [^>]*disabled=""[^>]*>.*Sign in/)
})
