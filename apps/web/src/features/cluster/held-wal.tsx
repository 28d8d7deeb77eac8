'use client'
import { type AskedMember, doubtSentences, exactBytes, proofSentence, type Verdict } from '@floe/domain'
import { Table, TableBody, TableCell, TableHead, TableHeader, TableRow } from '@floe/ui'
import type { Member } from './use-cluster'

const answerWords: Record<AskedMember['state'], string> = {
  isolated: 'standby, isolated',
  fenced: 'fenced',
  primary: 'accepts writes',
  silent: 'no answer',
}

/** What a member is now. That it is fenced, or isolated, is only said of answers to a failover. */
function stateWords({ hostState, state, role, fenced }: Member): string {
  if (hostState !== 'online') return 'host unreachable'
  if (fenced) return 'fenced'
  return state === 'running' ? (role ?? 'running') : state
}

function comparison({ relation, beyondBytes }: AskedMember): string {
  switch (relation) {
    case 'same':
      return 'same WAL'
    case 'behind':
      return 'less WAL'
    case 'ahead':
      return beyondBytes === null ? 'more WAL' : `${exactBytes(beyondBytes)} more`
    case 'diverged':
      return beyondBytes ? `diverged, ${exactBytes(beyondBytes)} of its own` : 'diverged'
    case 'unknown':
      return 'unknown'
  }
}

/**
 * What each member holds, beside the candidate. `seen`: the members as they are now, where this is a forecast; without it
 * these are the answers that a failover was judged by.
 */
export function HeldWal({
  asked,
  candidate,
  seen,
}: {
  asked: readonly AskedMember[]
  candidate: string
  seen?: readonly Member[]
}) {
  const words = (a: AskedMember) => {
    const member = seen?.find((m) => m.name === a.name)
    return member ? stateWords(member) : answerWords[a.state]
  }
  return (
    <Table label="WAL on each member">
      <TableHead>
        <tr>
          <TableHeader>Member</TableHeader>
          <TableHeader>State</TableHeader>
          <TableHeader>Compared with {candidate}</TableHeader>
          <TableHeader>WAL up to</TableHeader>
        </tr>
      </TableHead>
      <TableBody>
        {asked.map((a) => (
          <TableRow key={a.name}>
            <TableCell className="whitespace-nowrap">
              {a.name} <span className="text-ink-muted">on {a.hostName}</span>
            </TableCell>
            <TableCell className="whitespace-nowrap">{words(a)}</TableCell>
            <TableCell className="whitespace-nowrap tabular-nums">
              {a.name === candidate ? <span className="text-ink-muted">candidate</span> : comparison(a)}
            </TableCell>
            <TableCell className="whitespace-nowrap tabular-nums">
              {a.end ? `${a.end.lsn}, timeline ${a.end.timeline}` : 'unknown'}
            </TableCell>
          </TableRow>
        ))}
      </TableBody>
    </Table>
  )
}

/** What a failover lost: the proof that it is nothing, or why that could not be proven. */
export function VerdictView({ verdict, candidate }: { verdict: Verdict; candidate: string }) {
  const proven = verdict.kind === 'proven'
  const reasons = proven ? verdict.proof.because : verdict.doubts.map(doubtSentences)
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <p className="font-medium break-words">
        {proven
          ? proofSentence(verdict.proof)
          : verdict.kind === 'bounded'
            ? `At most ${exactBytes(verdict.lossBytes)} of WAL is lost.`
            : 'The amount of lost WAL is unknown.'}
      </p>
      <ul className="list-disc pl-4 break-words text-ink-muted">
        {reasons.map((reason) => (
          <li key={reason}>{reason}</li>
        ))}
      </ul>
      <HeldWal
        asked={proven ? verdict.proof.asked : verdict.asked}
        candidate={proven ? verdict.proof.candidate : candidate}
      />
    </div>
  )
}
