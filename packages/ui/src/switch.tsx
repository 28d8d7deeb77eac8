'use client'
import { Check } from 'lucide-react'
import { Checkbox as RadixCheckbox, Slider as RadixSlider, Switch as RadixSwitch } from 'radix-ui'
import type { ComponentProps } from 'react'
import { classNames } from './class-names'

/** On or off, with effect only when the person applies it. */
export function Switch({ className, ...props }: ComponentProps<typeof RadixSwitch.Root>) {
  return (
    <RadixSwitch.Root
      className={classNames(
        'relative inline-flex h-5 w-9 shrink-0 items-center rounded-full bg-field-line transition-colors disabled:opacity-55 data-[state=checked]:bg-accent-strong',
        className,
      )}
      {...props}
    >
      <RadixSwitch.Thumb className="block size-4 translate-x-0.5 rounded-full bg-white shadow-raised transition-transform data-[state=checked]:translate-x-4.5" />
    </RadixSwitch.Root>
  )
}

/** A box to tick. */
export function Checkbox({ className, ...props }: ComponentProps<typeof RadixCheckbox.Root>) {
  return (
    <RadixCheckbox.Root
      className={classNames(
        'inline-flex size-4 shrink-0 items-center justify-center rounded-sm border border-field-line bg-surface data-[state=checked]:border-accent-strong data-[state=checked]:bg-accent-strong',
        className,
      )}
      {...props}
    >
      <RadixCheckbox.Indicator>
        <Check aria-hidden className="size-3 text-on-accent" strokeWidth={3} />
      </RadixCheckbox.Indicator>
    </RadixCheckbox.Root>
  )
}

/** One thumb on a track of whole steps; `thumbLabel` and `valueText` are what a screen reader says. */
export function Slider({
  className,
  thumbLabel,
  valueText,
  thumbId,
  describedBy,
  ...props
}: ComponentProps<typeof RadixSlider.Root> & {
  thumbLabel: string
  valueText?: string
  thumbId?: string
  describedBy?: string
}) {
  return (
    <RadixSlider.Root
      className={classNames(
        'relative flex h-5 w-full touch-none items-center select-none data-[disabled]:opacity-55',
        className,
      )}
      {...props}
    >
      <RadixSlider.Track className="relative h-1.5 w-full grow rounded-full bg-line-strong">
        <RadixSlider.Range className="absolute h-full rounded-full bg-accent-strong" />
      </RadixSlider.Track>
      <RadixSlider.Thumb
        id={thumbId}
        aria-label={thumbLabel}
        aria-valuetext={valueText}
        aria-describedby={describedBy}
        className="block size-4 rounded-full border-2 border-accent-strong bg-surface shadow-raised"
      />
    </RadixSlider.Root>
  )
}
