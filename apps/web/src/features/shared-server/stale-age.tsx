import { Age } from '@floe/ui'

/** When a card was read, before what it says, where that may no longer hold; null: it holds. */
export const StaleAge = ({ at }: { at: number | null }) =>
  at === null ? null : (
    <>
      <Age prefix="Read" at={at} className="text-warn" />.{' '}
    </>
  )
