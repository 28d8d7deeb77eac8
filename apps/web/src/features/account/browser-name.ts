/** What a person calls the program behind a user agent: "Firefox on Linux". Programs state what they like. */
export function browserName(userAgent: string | null): string {
  if (userAgent === null) return 'Unknown browser'
  const browser = first(userAgent, browsers)
  const system = first(userAgent, systems)
  if (browser === null && system === null) return 'Unknown browser'
  return `${browser ?? 'A browser'}${system === null ? '' : ` on ${system}`}`
}

// each states the names of those below it as well
const browsers: [string, RegExp][] = [
  ['Edge', /\bEdg(e|A|iOS)?\//],
  ['Opera', /\bOPR\//],
  ['Firefox', /\b(Firefox|FxiOS)\//],
  ['Chrome', /\b(Chrome|CriOS|HeadlessChrome)\//],
  ['Safari', /\bSafari\//],
  ['curl', /^curl\//],
]
const systems: [string, RegExp][] = [
  ['Android', /\bAndroid\b/],
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['macOS', /\bMac OS X\b/],
  ['Windows', /\bWindows\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['Linux', /\bLinux\b/],
]

const first = (text: string, known: [string, RegExp][]) =>
  known.find(([, pattern]) => pattern.test(text))?.[0] ?? null
