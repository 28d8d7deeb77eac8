'use client'
import type { Fault } from '@floe/domain'
import { X } from 'lucide-react'
import { Dialog as RadixDialog } from 'radix-ui'
import { type ReactNode, useState } from 'react'
import { FaultAlert } from './alert'
import { Button } from './button'
import { Field } from './field'
import { Input } from './input'

/** A window over the page; focus stays inside, Escape closes it, and focus returns to what opened it. */
export function Dialog({
  open,
  onOpenChange,
  title,
  description,
  children,
  footer,
}: {
  open: boolean
  onOpenChange: (open: boolean) => void
  title: ReactNode
  description?: ReactNode
  children?: ReactNode
  footer?: ReactNode
}) {
  return (
    <RadixDialog.Root open={open} onOpenChange={onOpenChange}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="fixed inset-0 z-40 bg-black/45" />
        <RadixDialog.Content
          {...(description ? {} : { 'aria-describedby': undefined })}
          className="fixed top-1/2 left-1/2 z-50 flex max-h-[calc(100dvh-2rem)] w-[calc(100vw-2rem)] max-w-lg -translate-x-1/2 -translate-y-1/2 flex-col rounded-lg border border-line-strong bg-raised shadow-overlay"
        >
          <header className="pt-4 pr-14 pb-2 pl-5">
            <div className="min-w-0">
              <RadixDialog.Title className="text-base font-semibold break-words text-ink">
                {title}
              </RadixDialog.Title>
              {description ? (
                <RadixDialog.Description className="mt-1 text-sm text-ink-muted">
                  {description}
                </RadixDialog.Description>
              ) : null}
            </div>
          </header>
          <div className="overflow-y-auto px-5 py-2">{children}</div>
          {footer ? (
            <footer className="flex flex-wrap justify-end gap-2 px-5 pt-2 pb-4">{footer}</footer>
          ) : null}
          {/* last, so that the focus goes to what the dialog asks for and not to its way out */}
          <RadixDialog.Close asChild>
            <Button
              variant="quiet"
              size="icon-small"
              aria-label="Close"
              className="absolute top-3.5 right-3.5"
            >
              <X aria-hidden />
            </Button>
          </RadixDialog.Close>
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  )
}

type ConfirmProps = {
  /** What will happen and what will be lost, before the press. */
  children?: ReactNode
  confirmLabel: string
  danger?: boolean
  typedName?: string
  /** What the children ask for cannot be taken as it is yet. */
  incomplete?: boolean
  busy?: boolean
  fault?: Fault | null
  /** The way out of the fault, where there is one. */
  faultActions?: ReactNode
  onConfirm: () => void
}

/**
 * Asks before something that interrupts or destroys. With `typedName` the button stays shut until the person has typed
 * exactly that name. `onConfirm` may take time; the dialog closes when it resolves and stays open with the fault else.
 */
export function ConfirmDialog({
  open,
  onOpenChange,
  title,
  ...props
}: ConfirmProps & { open: boolean; onOpenChange: (open: boolean) => void; title: ReactNode }) {
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={title}>
      {/* mounted with the dialog, so that what was typed last time is gone */}
      <ConfirmForm {...props} onCancel={() => onOpenChange(false)} />
    </Dialog>
  )
}

function ConfirmForm({
  children,
  confirmLabel,
  danger,
  typedName,
  incomplete,
  busy,
  fault,
  faultActions,
  onConfirm,
  onCancel,
}: ConfirmProps & { onCancel: () => void }) {
  const [typed, setTyped] = useState('')
  const confirmed = !incomplete && (typedName === undefined || typed === typedName)
  return (
    <form
      className="flex flex-col gap-3 pb-2"
      onSubmit={(event) => {
        event.preventDefault()
        if (confirmed && !busy) onConfirm()
      }}
    >
      <div className="flex flex-col gap-2 text-sm text-ink-muted">{children}</div>
      {typedName !== undefined ? (
        <Field
          label={
            <>
              Type <code className="rounded bg-sunken px-1 py-0.5 font-mono text-[13px]">{typedName}</code> to
              confirm
            </>
          }
        >
          {(control) => (
            <Input
              {...control}
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
              autoComplete="off"
              autoCapitalize="off"
              spellCheck={false}
            />
          )}
        </Field>
      ) : null}
      {fault ? <FaultAlert fault={fault} actions={faultActions} /> : null}
      <div className="mt-1 flex flex-wrap justify-end gap-2">
        <Button onClick={onCancel}>Cancel</Button>
        <Button type="submit" variant={danger ? 'danger' : 'primary'} disabled={!confirmed} busy={busy}>
          {confirmLabel}
        </Button>
      </div>
    </form>
  )
}
