'use client'
import { type ReactNode, useEffect, useRef, useState } from 'react'

/** Mounts its content only while it is in view or nearly so, and keeps its room otherwise. */
export function WhenVisible({
  height,
  always = false,
  children,
}: {
  height: number
  always?: boolean
  children: ReactNode
}) {
  const box = useRef<HTMLDivElement | null>(null)
  const [visible, setVisible] = useState(false)
  useEffect(() => {
    const element = box.current
    if (!element) return
    const observer = new IntersectionObserver(
      (entries) => setVisible(entries.some((entry) => entry.isIntersecting)),
      { rootMargin: '240px 0px' },
    )
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return (
    <div ref={box} style={{ minHeight: height }} className="grid min-w-0 *:h-full">
      {visible || always ? children : null}
    </div>
  )
}
