'use client'
import { PageHeader } from '@floe/ui'
import { useAccount } from '../console/account-context'
import { NameCard } from './name-card'
import { PassphraseCard } from './passphrase-card'
import { SessionsCard } from './sessions-card'
import { TokensCard } from './tokens-card'

/** One's own name, passphrase, sessions and API tokens. */
export function AccountPage() {
  const { email, role } = useAccount()
  return (
    <>
      <PageHeader title="Account" description={`${email ?? 'No e-mail address'} · Role: ${role}`} />
      <div className="flex flex-col gap-3">
        <div className="grid gap-3 lg:grid-cols-2 lg:items-start">
          <NameCard />
          <PassphraseCard />
        </div>
        <SessionsCard />
        <TokensCard />
      </div>
    </>
  )
}
