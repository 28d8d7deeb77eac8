'use client'
import { type LimitName, limitNames, limitRecord } from '@floe/domain'
import { Field, Input } from '@floe/ui'
import type { LimitTexts } from './typed-limits'

const examples = { cores: '0.7', bytes: '4GB', IOPS: '800', 'bytes/s': '50MB' } as const

/** A field for every limit; empty is none. */
export function LimitFields({
  texts,
  wrong,
  onChange,
}: {
  texts: LimitTexts
  wrong: ReadonlyMap<LimitName, string>
  onChange: (texts: LimitTexts) => void
}) {
  return (
    <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
      {limitNames.map((name) => {
        const { title, unit } = limitRecord(name)
        return (
          <Field key={name} label={`${title}, ${unit}`} error={wrong.get(name) ?? null}>
            {(control) => (
              <Input
                {...control}
                className="font-mono"
                autoComplete="off"
                autoCapitalize="off"
                spellCheck={false}
                placeholder={`none (e.g. ${examples[unit]})`}
                value={texts[name]}
                onChange={(event) => onChange({ ...texts, [name]: event.target.value })}
              />
            )}
          </Field>
        )
      })}
    </div>
  )
}
