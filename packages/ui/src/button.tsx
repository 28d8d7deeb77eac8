import { cva, type VariantProps } from 'class-variance-authority'
import { LoaderCircle } from 'lucide-react'
import { Slot } from 'radix-ui'
import type { ComponentProps } from 'react'
import { classNames } from './class-names'

const button = cva(
  'inline-flex shrink-0 items-center justify-center gap-1.5 rounded-md font-medium whitespace-nowrap transition-colors select-none disabled:cursor-not-allowed disabled:opacity-55 aria-disabled:cursor-not-allowed aria-disabled:opacity-55 [&_svg]:shrink-0',
  {
    variants: {
      variant: {
        primary: 'bg-accent-strong text-on-accent hover:bg-accent-hover',
        secondary: 'border border-line-strong bg-surface text-ink hover:bg-hover',
        quiet: 'text-ink-muted hover:bg-hover hover:text-ink',
        danger: 'bg-bad-strong text-on-accent hover:opacity-90',
        'danger-quiet': 'border border-line-strong bg-surface text-bad hover:border-bad hover:bg-bad-soft',
        link: 'h-auto! px-0! text-accent underline-offset-2 hover:underline',
      },
      size: {
        small: 'h-7 px-2.5 text-xs [&_svg]:size-3.5',
        medium: 'h-8 px-3 text-sm [&_svg]:size-4',
        large: 'h-10 px-4 text-sm [&_svg]:size-4',
        icon: 'size-8 [&_svg]:size-4',
        'icon-small': 'size-7 [&_svg]:size-3.5',
      },
    },
    defaultVariants: { variant: 'secondary', size: 'medium' },
  },
)

export type ButtonProps = ComponentProps<'button'> &
  VariantProps<typeof button> & {
    /** Renders the single child (a link, say) with the button's looks. */
    asChild?: boolean
    /** Shows that the press is being worked on and takes no second one. */
    busy?: boolean
  }

/** A button; `type` is `button` unless said otherwise, so that it never submits by accident. */
export function Button({
  className,
  variant,
  size,
  asChild,
  busy,
  disabled,
  children,
  ...props
}: ButtonProps) {
  const classes = classNames(button({ variant, size }), className)
  if (asChild)
    return (
      <Slot.Root className={classes} {...props}>
        {children}
      </Slot.Root>
    )
  return (
    <button
      type="button"
      className={classes}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      {...props}
    >
      {busy ? <LoaderCircle aria-hidden className="animate-spin" /> : null}
      {children}
    </button>
  )
}
