'use client'
import { useEffect, useState } from 'react'

/**
 * The value, a little later: charts that all get new points at the same moment are drawn one after another, so that no
 * long task makes the page stutter. A value of another `generation` is shown at once.
 */
export function useStaggered<T extends { generation: string }>(value: T, delayMs: number): T {
  const [shown, setShown] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setShown(value), delayMs)
    return () => clearTimeout(timer)
  }, [value, delayMs])
  return shown.generation === value.generation ? shown : value
}
