import { formatTime } from '../age'
import { Table, TableBody, TableCell, TableHead, TableHeader, TableRow } from '../table'
import { formatValue } from './axis'
import type { ChartRow, ChartSeries, ChartUnit } from './series'

const most = 200

/** The same numbers as text, newest first, for readers who cannot or do not want to read a picture. */
export function ChartTable({
  title,
  series,
  rows,
  unit,
  from,
  to,
  height,
}: {
  title: string
  series: readonly ChartSeries[]
  rows: readonly ChartRow[]
  unit: ChartUnit
  from: number
  to: number
  height: number
}) {
  const shown = rows
    .filter((row) => row.at >= from && row.at <= to && series.some((s) => typeof row[s.key] === 'number'))
    .slice(-most)
    .reverse()
  return (
    <div className="overflow-y-auto" style={{ maxHeight: height }}>
      <Table label={`${title}, values`}>
        <TableHead>
          <tr>
            <TableHeader>Time</TableHeader>
            {series.map((s) => (
              <TableHeader key={s.key} number>
                {s.label}
              </TableHeader>
            ))}
          </tr>
        </TableHead>
        <TableBody>
          {shown.map((row) => (
            <TableRow key={row.at}>
              <TableCell className="py-1 whitespace-nowrap tabular-nums">
                {formatTime(row.at, false)}
              </TableCell>
              {series.map((s) => (
                <TableCell key={s.key} number className="py-1">
                  {formatValue(row[s.key], unit)}
                </TableCell>
              ))}
            </TableRow>
          ))}
        </TableBody>
      </Table>
      {shown.length === most ? (
        <p className="px-4 py-2 text-xs text-ink-muted">
          The newest {most} values; the CSV export holds all of them.
        </p>
      ) : null}
    </div>
  )
}
