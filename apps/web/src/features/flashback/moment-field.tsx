'use client'
import { Button, Field, Input } from '@floe/ui'
import { useEffect, useState } from 'react'
import { momentOfText, momentText, zoneText } from './moment-text'

const quick = [
  { text: '5 min ago', ms: 300_000 },
  { text: '15 min ago', ms: 900_000 },
  { text: '1 h ago', ms: 3_600_000 },
] as const

/** The moment as text, exactly; what is typed is taken with Enter or when the field is left. */
export function MomentField({
  moment,
  now,
  oldest,
  onMoment,
}: {
  moment: number | null
  now: number
  oldest: number
  onMoment: (at: number) => void
}) {
  const shown = moment === null ? '' : momentText(moment)
  const [text, setText] = useState(shown)
  const [wrong, setWrong] = useState(false)
  useEffect(() => {
    setText(shown)
    setWrong(false)
  }, [shown])
  const take = () => {
    if (text === shown) return setWrong(false)
    const at = momentOfText(text, now)
    setWrong(at === null)
    if (at === null) return
    onMoment(at)
    // the same moment in other words leaves `shown` as it is
    setText(momentText(at))
  }
  return (
    <div className="flex flex-wrap items-end gap-x-3 gap-y-2">
      <Field
        label="Time"
        className="w-full max-w-76"
        hint={`${zoneText(moment ?? now)}. A time alone, a time with a zone or “10 min ago” work, too.`}
        error={wrong ? 'Type a time, e.g. 14:03:12.345 or 2026-11-24 14:03:12+01' : undefined}
      >
        {(control) => (
          <Input
            {...control}
            className="tabular-nums"
            value={text}
            placeholder="2026-11-24 14:03:12.345"
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => setText(event.target.value)}
            onBlur={take}
            onKeyDown={(event) => {
              if (event.key === 'Enter') take()
            }}
          />
        )}
      </Field>
      <div className="flex flex-wrap gap-1.5 pb-6">
        {quick
          .filter(({ ms }) => now - ms >= oldest)
          .map(({ text: words, ms }) => (
            <Button key={ms} size="small" onClick={() => onMoment(Math.floor(now - ms))}>
              {words}
            </Button>
          ))}
      </div>
    </div>
  )
}
