import { Button } from './button'

/** Below a table that shows its first rows: all of them, and back. Nothing where there are no more. */
export function ShowAll({
  first,
  count,
  all,
  onChange,
}: {
  /** So many are shown at first. */
  first: number
  count: number
  all: boolean
  onChange: (all: boolean) => void
}) {
  if (count <= first) return null
  return (
    <div className="border-t border-line px-4 py-2">
      <Button variant="link" size="small" onClick={() => onChange(!all)}>
        {all ? `Show the first ${first}` : `Show all ${count}`}
      </Button>
    </div>
  )
}
