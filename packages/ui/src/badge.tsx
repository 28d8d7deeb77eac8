import { cva, type VariantProps } from 'class-variance-authority'
import type { ComponentProps } from 'react'
import { classNames } from './class-names'

const badge = cva(
  'inline-flex h-5 items-center gap-1 rounded-full border px-2 text-xs font-medium whitespace-nowrap [&_svg]:size-3 [&_svg]:shrink-0',
  {
    variants: {
      tone: {
        neutral: 'border-line-strong bg-sunken text-ink-muted',
        accent: 'border-accent/30 bg-accent-soft text-accent',
        good: 'border-good/30 bg-good-soft text-good',
        warn: 'border-warn/35 bg-warn-soft text-warn',
        bad: 'border-bad/35 bg-bad-soft text-bad',
      },
    },
    defaultVariants: { tone: 'neutral' },
  },
)
export type BadgeTone = NonNullable<VariantProps<typeof badge>['tone']>

/** A short word about a thing. Colour never stands alone: the word says the same. */
export function Badge({ className, tone, ...props }: ComponentProps<'span'> & VariantProps<typeof badge>) {
  return <span className={classNames(badge({ tone }), className)} {...props} />
}
