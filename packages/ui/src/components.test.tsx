import { endedOperationStates, HostState, instanceStates, OperationState, StepState } from '@floe/domain'
import { fireEvent, render, screen } from '@testing-library/react'
import { describe, expect, test, vi } from 'vitest'
import { FaultAlert } from './alert'
import { ConfirmDialog } from './dialog'
import { Field } from './field'
import { Input } from './input'
import { KeyValue } from './key-value'
import { Progress } from './progress'
import { StateBadge } from './state-badge'
import { Table, TableBody, TableCell, TableRow } from './table'
import { parseSpan, parseTimeRange, timeRangeEnds, timeRangePresets, writeTimeRange } from './time-range'

describe('StateBadge', () => {
  test('shows every state in the domain’s own word, with an icon', () => {
    const words = [
      ...instanceStates.map((state) => ({ state, of: 'instance' as const })),
      ...HostState.options.map((state) => ({ state, of: 'host' as const })),
      ...OperationState.options.map((state) => ({ state, of: 'operation' as const })),
      ...StepState.options.map((state) => ({ state, of: 'step' as const })),
    ]
    expect(endedOperationStates.length).toBeGreaterThan(0)
    for (const { state, of } of words) {
      const { container, unmount } = render(<StateBadge state={state} of={of} />)
      expect(container.textContent).toBe(state)
      expect(container.querySelector('svg')).not.toBeNull()
      unmount()
    }
  })

  test('a stale state is not green and says its age', () => {
    const { container } = render(<StateBadge state="running" of="instance" staleMs={12_000} />)
    expect(container.textContent).toBe('running· 12 s ago')
    expect(container.innerHTML).not.toContain('text-good')
  })

  test('unknown is not green', () => {
    const { container } = render(<StateBadge state="unknown" of="instance" />)
    expect(container.innerHTML).not.toContain('text-good')
  })
})

describe('ConfirmDialog', () => {
  test('stays shut until exactly the name was typed', () => {
    const confirm = vi.fn()
    render(
      <ConfirmDialog
        open
        onOpenChange={() => {}}
        title="Delete demo"
        typedName="demo"
        confirmLabel="Delete"
        danger
        onConfirm={confirm}
      />,
    )
    const press = screen.getByRole<HTMLButtonElement>('button', { name: 'Delete' })
    const box = screen.getByLabelText(/Type demo to confirm/)
    for (const wrong of ['', 'Demo', 'demo ', 'dem']) {
      fireEvent.change(box, { target: { value: wrong } })
      expect(press.disabled).toBe(true)
      fireEvent.submit(box)
    }
    expect(confirm).not.toHaveBeenCalled()
    fireEvent.change(box, { target: { value: 'demo' } })
    fireEvent.click(press)
    expect(confirm).toHaveBeenCalledTimes(1)
  })

  test('shows the way out of a refusal where there is one', () => {
    render(
      <ConfirmDialog
        open
        onOpenChange={() => {}}
        title="Stop demo"
        confirmLabel="Stop"
        fault={{ code: 'operation.conflict', message: 'another operation has not ended' }}
        faultActions={<a href="/operations/1">Open that operation</a>}
        onConfirm={() => {}}
      />,
    )
    const alert = screen.getByRole('alert')
    expect(alert.textContent).toContain('another operation has not ended')
    expect(alert.querySelector('a')?.getAttribute('href')).toBe('/operations/1')
  })

  test('shows why it was refused and stays open', () => {
    render(
      <ConfirmDialog
        open
        onOpenChange={() => {}}
        title="Stop demo"
        confirmLabel="Stop"
        fault={{ code: 'operation.conflict', message: 'another operation is running', hint: 'Wait for it.' }}
        onConfirm={() => {}}
      />,
    )
    expect(screen.getByRole('alert').textContent).toContain('another operation is running')
    expect(screen.getByText(/Wait for it/)).toBeDefined()
  })
})

describe('Field', () => {
  test('label, hint and error belong to the control', () => {
    render(
      <Field label="Name" hint="Lower case" error="must start with a letter">
        {(control) => <Input {...control} />}
      </Field>,
    )
    const box = screen.getByLabelText('Name')
    expect(box.getAttribute('aria-invalid')).toBe('true')
    const described = (box.getAttribute('aria-describedby') ?? '').split(' ')
    expect(described.map((id) => document.getElementById(id)?.textContent)).toEqual([
      'Lower case',
      'must start with a letter',
    ])
  })
})

test('a fault shows message, detail, hint and code', () => {
  const retry = vi.fn()
  render(
    <FaultAlert
      fault={{
        code: 'agent.silent',
        message: 'agent did not answer',
        detail: 'Three seconds.',
        hint: 'Start it.',
      }}
      onRetry={retry}
    />,
  )
  for (const text of ['agent did not answer', 'Three seconds.', 'agent.silent'])
    expect(screen.getByText(text)).toBeDefined()
  fireEvent.click(screen.getByRole('button', { name: 'Try again' }))
  expect(retry).toHaveBeenCalled()
})

test('a fact that is not known is a dash', () => {
  render(
    <KeyValue
      items={[
        { label: 'Port', value: null },
        { label: 'Zero', value: 0 },
      ]}
    />,
  )
  expect(screen.getByText('Port').nextElementSibling?.textContent).toBe('–')
  expect(screen.getByText('Zero').nextElementSibling?.textContent).toBe('0')
})

describe('Progress', () => {
  const bar = () => screen.getByRole('progressbar', { name: 'Copy' })

  test('shows its percent beside the bar, and 100 only for what is done', () => {
    const { container, rerender } = render(<Progress label="Copy" value={0.29} showPercent />)
    expect(container.textContent).toBe('29 %')
    expect(bar().getAttribute('aria-valuenow')).toBe('29')
    rerender(<Progress label="Copy" value={0.999} showPercent />)
    expect(container.textContent).toBe('99 %')
    rerender(<Progress label="Copy" value={1} showPercent />)
    expect(container.textContent).toBe('100 %')
  })

  test('shows no number where none is known or asked for', () => {
    const { container, rerender } = render(<Progress label="Copy" value={null} showPercent />)
    expect(container.textContent).toBe('')
    expect(bar().hasAttribute('aria-valuenow')).toBe(false)
    rerender(<Progress label="Copy" value={0.5} />)
    expect(container.textContent).toBe('')
    expect(bar().getAttribute('aria-valuenow')).toBe('50')
  })
})

describe('time range', () => {
  test('every preset survives its way through the address', () => {
    for (const preset of timeRangePresets) {
      expect(parseSpan(preset.word)).toBe(preset.ms)
      const params = writeTimeRange(new URLSearchParams('tab=x'), { kind: 'last', ms: preset.ms })
      expect(parseTimeRange(params)).toEqual({ kind: 'last', ms: preset.ms })
      expect(params.get('tab')).toBe('x')
    }
  })

  test('two moments survive it to the millisecond, in milliseconds or RFC 3339', () => {
    const range = { kind: 'between' as const, from: 1_795_000_000_123, to: 1_795_000_060_456 }
    const params = writeTimeRange(new URLSearchParams('range=1h'), range)
    expect(params.get('range')).toBeNull()
    expect(parseTimeRange(params)).toEqual(range)
    const written = new URLSearchParams({
      from: new Date(range.from).toISOString(),
      to: new Date(range.to).toISOString(),
    })
    expect(parseTimeRange(written)).toEqual(range)
    expect(timeRangeEnds(range, 0)).toEqual({ from: range.from, to: range.to })
  })

  test('what cannot be read is the default', () => {
    const fallback = parseTimeRange(new URLSearchParams())
    for (const text of [
      'range=abc',
      'range=-5m',
      'range=1s',
      'range=9999d',
      'from=x&to=y',
      'from=2026-11-21T12:00:00Z',
      'from=2026-11-21T12:00:00Z&to=2026-11-21T11:00:00Z',
    ])
      expect(parseTimeRange(new URLSearchParams(text))).toEqual(fallback)
  })
})

describe('Table', () => {
  /** jsdom lays nothing out: the box is as wide as told, and the table in it. */
  function show(boxWidth: number, tableWidth: number) {
    const widths = { clientWidth: boxWidth, scrollWidth: tableWidth }
    const before = Object.keys(widths).map((name) => [
      name,
      Object.getOwnPropertyDescriptor(Element.prototype, name),
    ])
    for (const [name, width] of Object.entries(widths))
      Object.defineProperty(Element.prototype, name, { configurable: true, get: () => width })
    try {
      return render(
        <Table label="Members">
          <TableBody>
            <TableRow>
              <TableCell>demo</TableCell>
              <TableCell actions>
                <button type="button">Remove</button>
              </TableCell>
            </TableRow>
          </TableBody>
        </Table>,
      )
    } finally {
      for (const [name, was] of before)
        if (was) Object.defineProperty(Element.prototype, name as string, was as never)
    }
  }

  test('one that is wider than its place shows a way to the rest', () => {
    show(1_038, 1_390)
    const right = screen.getByRole('button', { name: 'Columns of Members to the right' })
    expect(right).toHaveProperty('disabled', false)
    expect(screen.getByRole('button', { name: 'Columns of Members to the left' })).toHaveProperty(
      'disabled',
      true,
    )
    expect(screen.getByRole('region', { name: 'Members' }).parentElement?.dataset.scrolls).toBe('true')
    expect(screen.getByRole('button', { name: 'Remove' }).closest('td')?.className).toContain('sticky')
  })

  test('one that has room shows none', () => {
    show(1_038, 1_038)
    expect(screen.queryByText('More columns')).toBeNull()
  })
})
