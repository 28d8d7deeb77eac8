const carried = [
  'fill',
  'fill-opacity',
  'stroke',
  'stroke-width',
  'stroke-opacity',
  'stroke-dasharray',
  'stroke-linecap',
  'opacity',
  'font-size',
  'font-family',
  'font-weight',
  'text-anchor',
]

/** The chart's SVG as a document of its own: styles that come from the page are written into it. */
export function standaloneSvg(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement
  const from = [svg, ...svg.querySelectorAll('*')]
  const to = [copy, ...copy.querySelectorAll('*')]
  from.forEach((element, i) => {
    const style = getComputedStyle(element)
    const target = to[i] as SVGElement
    target.removeAttribute('class')
    target.setAttribute(
      'style',
      carried
        .map((name) => `${name}:${style.getPropertyValue(name)}`)
        .filter((pair) => !pair.endsWith(':'))
        .join(';'),
    )
  })
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  return new XMLSerializer().serializeToString(copy)
}

const scale = 2
const gap = 16
const headHeight = 56
// a title and at most two lines of legend
const captionHeight = 58
const legendLine = 14

/**
 * Draws charts (their `<figure>` elements) under one headline into a PNG of twice the size, side by side where they are
 * so on the page. Charts without a drawing are left out. Throws when none is left.
 */
export async function chartsToPng(
  figures: readonly HTMLElement[],
  about: { title: string; subtitle: string },
): Promise<Blob> {
  const charts = figures.flatMap((figure) => {
    const svg = figure.querySelector<SVGSVGElement>('svg.recharts-surface')
    return svg ? [{ figure, svg, box: svg.getBoundingClientRect() }] : []
  })
  const first = charts[0]
  if (!first) throw new Error('there is no chart to draw')
  const left = Math.min(...charts.map((c) => c.box.left))
  const tops = [...new Set(charts.map((c) => Math.round(c.box.top)))].sort((a, b) => a - b)
  const rowHeight = Math.max(...charts.map((c) => c.box.height)) + captionHeight + gap
  const width = Math.max(...charts.map((c) => c.box.right)) - left + 2 * gap
  const height = headHeight + tops.length * rowHeight + gap

  const canvas = document.createElement('canvas')
  canvas.width = Math.ceil(width * scale)
  canvas.height = Math.ceil(height * scale)
  const draw = canvas.getContext('2d')
  if (!draw) throw new Error('the browser offers no canvas')
  const page = getComputedStyle(first.figure)
  const family = page.fontFamily
  draw.scale(scale, scale)
  draw.fillStyle = opaque(page.backgroundColor) ?? '#ffffff'
  draw.fillRect(0, 0, width, height)
  draw.fillStyle = page.color
  draw.textBaseline = 'alphabetic'
  draw.font = `600 16px ${family}`
  draw.fillText(about.title, gap, 26)
  draw.font = `12px ${family}`
  draw.fillText(about.subtitle, gap, 44)

  for (const chart of charts) {
    const x = gap + chart.box.left - left
    const y = headHeight + tops.indexOf(Math.round(chart.box.top)) * rowHeight
    draw.fillStyle = page.color
    draw.font = `600 13px ${family}`
    draw.fillText(chart.figure.querySelector('[data-chart-title]')?.textContent ?? '', x, y + 14)
    draw.font = `11px ${family}`
    let at = x
    let line = 0
    for (const entry of chart.figure.querySelectorAll<HTMLElement>('[data-chart-legend] > li')) {
      const mark = entry.querySelector<HTMLElement>('[data-mark]')
      const label = (entry.innerText ?? entry.textContent ?? '').replace(/\s+/g, ' ').trim()
      const needed = 13 + draw.measureText(label).width
      if (at > x && at + needed > x + chart.box.width && line === 0) {
        line = 1
        at = x
      }
      const top = y + 24 + line * legendLine
      draw.fillStyle = mark ? getComputedStyle(mark).backgroundColor : page.color
      draw.fillRect(at, top, 9, 9)
      draw.fillStyle = page.color
      draw.fillText(label, at + 13, top + 8)
      at += needed + 14
    }
    const picture = new Image()
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standaloneSvg(chart.svg))}`
    await picture.decode()
    draw.drawImage(picture, x, y + captionHeight, chart.box.width, chart.box.height)
  }
  return new Promise((resolve, reject) =>
    canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error('the picture could not be made'))),
      'image/png',
    ),
  )
}

function opaque(color: string): string | null {
  return color === 'transparent' || color === 'rgba(0, 0, 0, 0)' ? null : color
}

/** Hands a file to the browser's download. */
export function download(blob: Blob, fileName: string) {
  const url = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = url
  link.download = fileName
  document.body.append(link)
  link.click()
  link.remove()
  // the download has its own reference by the next turn of the loop
  setTimeout(() => URL.revokeObjectURL(url), 0)
}
