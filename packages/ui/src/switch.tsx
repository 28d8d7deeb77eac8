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

/** A mark below the track of a slider; `label` only where there is room for one. */
export type SliderTick = { at: number; label?: string }

/** Its middle stays half of it away from the ends of the track. */
const THUMB_PX = 16

/**
 * One thumb on a track of whole steps; `thumbLabel` and `valueText` are what a screen reader says, so the ticks are only
 * for the eye.
 */
export function Slider({
  className,
  thumbLabel,
  valueText,
  thumbId,
  describedBy,
  ticks,
  ...props
}: ComponentProps<typeof RadixSlider.Root> & {
  thumbLabel: string
  valueText?: string
  thumbId?: string
  describedBy?: string
  ticks?: readonly SliderTick[]
}) {
  const slider = (
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
  if (!ticks) return slider
  const { min = 0, max = 100 } = props
  return (
    <div>
      {slider}
      <div aria-hidden className="relative h-5 text-[11px] leading-3 text-ink-muted">
        {ticks.map(({ at, label }) => {
          const share = (at - min) / (max - min)
          return (
            <span
              key={at}
              className="absolute top-0 flex -translate-x-1/2 flex-col items-center gap-0.5 whitespace-nowrap"
              style={{ left: `calc(${share * 100}% + ${(0.5 - share) * THUMB_PX}px)` }}
            >
              <span className={classNames('w-px bg-field-line', label ? 'h-1.5' : 'h-1')} />
              {label}
            </span>
          )
        })}
      </div>
    </div>
  )
}
