/** Holds `light` or `dark`; absent means that the system decides. Read on the server, so that no page flashes. */
export const THEME_COOKIE = 'floe-theme'

/** The `data-theme` of a cookie's value; undefined leaves it to the system. */
export function themeAttribute(value: string | undefined): 'light' | 'dark' | undefined {
  return value === 'light' || value === 'dark' ? value : undefined
}
