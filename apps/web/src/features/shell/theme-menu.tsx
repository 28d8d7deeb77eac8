'use client'
import { Button, Menu, MenuChoice } from '@floe/ui'
import { Monitor, Moon, Sun } from 'lucide-react'
import { useState } from 'react'
import { THEME_COOKIE } from '@/theme/theme-cookie'

type Theme = 'system' | 'light' | 'dark'

const choices = [
  { value: 'system', label: 'As the system', icon: <Monitor aria-hidden /> },
  { value: 'light', label: 'Light', icon: <Sun aria-hidden /> },
  { value: 'dark', label: 'Dark', icon: <Moon aria-hidden /> },
] as const

/** Chooses light or dark; kept in a cookie, so that the server already sends the right one. */
export function ThemeMenu({ initial }: { initial: Theme }) {
  const [theme, setTheme] = useState<Theme>(initial)
  function choose(next: Theme) {
    setTheme(next)
    if (next === 'system') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = next
    const kept = next === 'system' ? 'max-age=0' : `max-age=${365 * 86_400}`
    // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing on plain http
    document.cookie = `${THEME_COOKIE}=${next}; path=/; ${kept}; samesite=lax`
  }
  const Icon = theme === 'light' ? Sun : theme === 'dark' ? Moon : Monitor
  return (
    <Menu
      trigger={
        <Button variant="quiet" size="icon" aria-label={`Theme: ${theme}`} title="Theme">
          <Icon aria-hidden />
        </Button>
      }
    >
      <MenuChoice label="Theme" value={theme} onChange={choose} choices={choices} />
    </Menu>
  )
}
