'use client'
import { DropdownMenu, Popover as RadixPopover } from 'radix-ui'
import type { ComponentProps, ReactNode } from 'react'
import { classNames } from './class-names'

const panel =
  'z-50 animate-overlay-in rounded-md border border-line-strong bg-raised p-1 text-sm text-ink shadow-overlay'

/** A button that opens a list of things to do. */
export function Menu({
  trigger,
  children,
  align = 'end',
}: {
  trigger: ReactNode
  children: ReactNode
  align?: 'start' | 'end'
}) {
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align={align}
          sideOffset={4}
          collisionPadding={8}
          className={classNames(panel, 'min-w-44')}
        >
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}

const item =
  'flex w-full cursor-pointer items-center gap-2 rounded-sm px-2 py-1.5 outline-none select-none data-[disabled]:cursor-not-allowed data-[disabled]:text-ink-faint data-[highlighted]:bg-hover [&_svg]:size-4 [&_svg]:shrink-0'

export function MenuItem({
  className,
  danger,
  ...props
}: ComponentProps<typeof DropdownMenu.Item> & { danger?: boolean }) {
  return <DropdownMenu.Item className={classNames(item, danger && 'text-bad', className)} {...props} />
}

/** One of several; the chosen one has a dot. */
export function MenuChoice<T extends string>({
  value,
  onChange,
  choices,
  label,
}: {
  value: T
  onChange: (value: T) => void
  choices: readonly { value: T; label: string; icon?: ReactNode }[]
  label: string
}) {
  return (
    <DropdownMenu.RadioGroup
      aria-label={label}
      value={value}
      onValueChange={(next) => {
        const choice = choices.find((c) => c.value === next)
        if (choice) onChange(choice.value)
      }}
    >
      {choices.map((choice) => (
        <DropdownMenu.RadioItem key={choice.value} value={choice.value} className={item}>
          {choice.icon}
          <span className="flex-1">{choice.label}</span>
          <DropdownMenu.ItemIndicator>
            <span className="block size-1.5 rounded-full bg-accent-strong" />
          </DropdownMenu.ItemIndicator>
        </DropdownMenu.RadioItem>
      ))}
    </DropdownMenu.RadioGroup>
  )
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <DropdownMenu.Label className="px-2 py-1 text-xs text-ink-muted">{children}</DropdownMenu.Label>
}

export function MenuSeparator() {
  return <DropdownMenu.Separator className="my-1 h-px bg-line" />
}

/** A small panel beside its button, for a form or a list. */
export function Popover({
  trigger,
  children,
  label,
  align = 'end',
  open,
  onOpenChange,
  className,
}: {
  trigger: ReactNode
  children: ReactNode
  label: string
  align?: 'start' | 'center' | 'end'
  open?: boolean
  onOpenChange?: (open: boolean) => void
  className?: string
}) {
  return (
    <RadixPopover.Root open={open} onOpenChange={onOpenChange}>
      <RadixPopover.Trigger asChild>{trigger}</RadixPopover.Trigger>
      <RadixPopover.Portal>
        <RadixPopover.Content
          aria-label={label}
          align={align}
          sideOffset={4}
          collisionPadding={8}
          className={classNames(panel, 'max-w-[calc(100vw-1rem)] p-3', className)}
        >
          {children}
        </RadixPopover.Content>
      </RadixPopover.Portal>
    </RadixPopover.Root>
  )
}
