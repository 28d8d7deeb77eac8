'use client'
import { CircleAlert, CircleCheck, Info, TriangleAlert, X } from 'lucide-react'
import { Toast as RadixToast } from 'radix-ui'
import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from 'react'
import type { Tone } from './alert'
import { Button } from './button'
import { classNames } from './class-names'

export type ToastMessage = {
  tone?: Tone
  title: string
  description?: string
  /** Where to read on, for example the operation. */
  action?: ReactNode
}
type Shown = ToastMessage & { id: number }

const ToastContext = createContext<(message: ToastMessage) => void>(() => {})
const icons = { info: Info, good: CircleCheck, warn: TriangleAlert, bad: CircleAlert }
const marks = { info: 'text-accent', good: 'text-good', warn: 'text-warn', bad: 'text-bad' }

/** Shows a short message in the corner: `const toast = useToast(); toast({ title: 'Copied' })`. */
export function useToast() {
  return useContext(ToastContext)
}

/** Once around the application. A toast never holds the only copy of something: it goes away on its own. */
export function ToastProvider({ children }: { children: ReactNode }) {
  const [shown, setShown] = useState<Shown[]>([])
  const show = useCallback((message: ToastMessage) => {
    setShown((before) => [...before.slice(-3), { ...message, id: (before.at(-1)?.id ?? 0) + 1 }])
  }, [])
  const value = useMemo(() => show, [show])
  return (
    <ToastContext.Provider value={value}>
      <RadixToast.Provider swipeDirection="right" duration={6_000}>
        {children}
        {shown.map((message) => {
          const tone = message.tone ?? 'good'
          const Icon = icons[tone]
          return (
            <RadixToast.Root
              key={message.id}
              onOpenChange={(open) => {
                if (!open) setShown((before) => before.filter((m) => m.id !== message.id))
              }}
              className="flex animate-toast-in items-start gap-2.5 rounded-md border border-line-strong bg-raised px-3 py-2.5 text-sm text-ink shadow-overlay"
            >
              <Icon aria-hidden className={classNames('mt-0.5 size-4 shrink-0', marks[tone])} />
              <div className="min-w-0 flex-1">
                <RadixToast.Title className="font-medium break-words">{message.title}</RadixToast.Title>
                {message.description ? (
                  <RadixToast.Description className="break-words text-ink-muted">
                    {message.description}
                  </RadixToast.Description>
                ) : null}
                {message.action ? <div className="mt-1">{message.action}</div> : null}
              </div>
              <RadixToast.Close asChild>
                <Button variant="quiet" size="icon-small" aria-label="Dismiss" className="-mt-1 -mr-1">
                  <X aria-hidden />
                </Button>
              </RadixToast.Close>
            </RadixToast.Root>
          )
        })}
        <RadixToast.Viewport className="fixed right-4 bottom-4 z-50 flex w-88 max-w-[calc(100vw-2rem)] flex-col gap-2 outline-none" />
      </RadixToast.Provider>
    </ToastContext.Provider>
  )
}
