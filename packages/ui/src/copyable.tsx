'use client'
import { Check, Copy } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Button } from './button'
import { classNames } from './class-names'

/** Copies by the clipboard API, and by a selection where that is not allowed (plain http on another machine). */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = document.createElement('textarea')
    area.value = text
    area.style.position = 'fixed'
    area.style.opacity = '0'
    document.body.append(area)
    area.select()
    const copied = document.execCommand('copy')
    area.remove()
    return copied
  }
}

/** Copies a text and says so. `what` completes "Copy …". */
export function CopyButton({
  text,
  what,
  showLabel,
  className,
}: {
  text: string
  what: string
  showLabel?: boolean
  className?: string
}) {
  const [outcome, setOutcome] = useState<'copied' | 'refused' | null>(null)
  useEffect(() => {
    if (outcome === null) return
    const timer = setTimeout(() => setOutcome(null), 2_000)
    return () => clearTimeout(timer)
  }, [outcome])
  const words =
    outcome === 'copied' ? 'Copied' : outcome === 'refused' ? 'Select and copy by hand' : `Copy ${what}`
  return (
    <Button
      variant={showLabel ? 'secondary' : 'quiet'}
      size={showLabel ? 'medium' : 'icon-small'}
      className={className}
      aria-label={words}
      title={words}
      onClick={async () => setOutcome((await copyText(text)) ? 'copied' : 'refused')}
    >
      {outcome === 'copied' ? <Check aria-hidden className="text-good" /> : <Copy aria-hidden />}
      {showLabel ? words : null}
    </Button>
  )
}

/** A text to take along, whole and in one line that scrolls, with a button that copies it. */
export function Copyable({
  text,
  what,
  testId,
  multiline,
  className,
}: {
  text: string
  what: string
  testId?: string
  multiline?: boolean
  className?: string
}) {
  return (
    <div
      className={classNames(
        'flex items-start gap-1 rounded-md border border-line bg-sunken py-0.5 pr-0.5 pl-3',
        className,
      )}
    >
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        data-testid={testId}
        className={classNames(
          'min-w-0 flex-1 overflow-x-auto py-1.5 font-mono text-[13px] leading-4 text-ink',
          multiline ? 'whitespace-pre' : 'whitespace-nowrap',
        )}
      >
        {text}
      </pre>
      <CopyButton text={text} what={what} />
    </div>
  )
}
