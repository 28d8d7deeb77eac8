import { type FlashbackMade, MISSING_MAX } from '@floe/domain'

/** What a dropped table that is back does not have, in the engine's words; or that nothing was left out; or that it is not known. */
export function MissingPieces({ missing }: Pick<FlashbackMade, 'missing'>) {
  const never = 'Triggers, rules, policies and privileges do not come back.'
  if (missing === undefined)
    return <p>What of its definition could not be made is in the operation’s log. {never}</p>
  if (missing.length === 0)
    return <p>It has the columns, keys, indexes, constraints and defaults of just before the drop. {never}</p>
  return (
    <>
      <p>
        It has what its definition had just before the drop, but for this. {never}
        {missing.length < MISSING_MAX ? '' : ' What else is missing is in the operation’s log.'}
      </p>
      <ul aria-label="What is missing" className="mt-2 flex list-disc flex-col gap-1.5 pl-5">
        {missing.map((words) => (
          <li key={words} className="[overflow-wrap:anywhere]">
            {words}
          </li>
        ))}
      </ul>
    </>
  )
}
