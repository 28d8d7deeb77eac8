const carried = [
  'fill',
  'fill-opacity',
  'stroke',
  'stroke-width',
  'stroke-opacity',
  'stroke-dasharray',
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

export type PictureLegend = { color: string; label: string }

/** Draws the chart with title, legend and window into a PNG of twice the size. */
export async function chartToPng(
  svg: SVGSVGElement,
  about: { title: string; subtitle: string; legend: readonly PictureLegend[] },
): Promise<Blob> {
  const width = svg.clientWidth || Number(svg.getAttribute('width'))
  const height = svg.clientHeight || Number(svg.getAttribute('height'))
  const head = 64
  const scale = 2
  const picture = new Image()
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standaloneSvg(svg))}`
  await picture.decode()
  const canvas = document.createElement('canvas')
  canvas.width = width * scale
  canvas.height = (height + head) * scale
  const draw = canvas.getContext('2d')
  if (!draw) throw new Error('the browser offers no canvas')
  const page = getComputedStyle(svg.closest('figure') ?? document.body)
  const family = page.fontFamily
  draw.scale(scale, scale)
  draw.fillStyle = opaque(page.backgroundColor) ?? '#ffffff'
  draw.fillRect(0, 0, width, height + head)
  draw.fillStyle = page.color
  draw.textBaseline = 'alphabetic'
  draw.font = `600 14px ${family}`
  draw.fillText(about.title, 12, 20)
  draw.font = `11px ${family}`
  draw.fillText(about.subtitle, 12, 37)
  let x = 12
  for (const entry of about.legend) {
    draw.fillStyle = entry.color
    draw.fillRect(x, 47, 10, 10)
    draw.fillStyle = page.color
    draw.fillText(entry.label, x + 14, 56)
    x += 14 + draw.measureText(entry.label).width + 14
  }
  draw.drawImage(picture, 0, head, width, height)
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
