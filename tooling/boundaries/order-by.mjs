// Finds every ORDER BY (and DISTINCT ON) that names an output column which is a cast: `SELECT id::text … ORDER BY id`
// sorts the text, 9 after 10, because PostgreSQL looks for a bare name among the output columns first. A name with its
// table before it (`t.id`) always means the column.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'

const leftOut = /^(node_modules|dist|generated|coverage|results|expected|\.(?!ci$).*)$/
const sources = /\.(ts|tsx|mjs|sql)$/
/** Stands for a part of a query that is only known when the program runs. */
const UNKNOWN = '\ufffd'

/** Every ORDER BY below the folders of a tree that breaks the rule, as {file, line, text}, and how many queries were read. */
export function castOrders(root, folders) {
  const files = folders.flatMap((folder) => filesBelow(join(root, folder)))
  const modules = files.filter((f) => !f.endsWith('.sql')).map((file) => readModule(root, file))
  const shared = new Map(modules.flatMap((m) => [...m.constants]))
  const queries = modules.flatMap((m) => queriesOf(m, shared))
  for (const file of files.filter((f) => f.endsWith('.sql')))
    queries.push({ file: relative(root, file), line: 1, sql: readFileSync(file, 'utf8') })
  const broken = queries.flatMap(({ file, line, sql }) =>
    ordersByCast(sql).map((text) => ({ file, line, text })),
  )
  return { broken, queries: queries.length }
}

function filesBelow(directory) {
  let entries = []
  try {
    entries = readdirSync(directory, { withFileTypes: true })
  } catch {
    return []
  }
  // another repository's: PostgreSQL's own, as `./floe engine patch import` makes it
  if (entries.some((entry) => entry.name === '.git')) return []
  return entries.flatMap((entry) => {
    if (leftOut.test(entry.name)) return []
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return filesBelow(path)
    return entry.isFile() && sources.test(entry.name) ? [path] : []
  })
}

/** A module's texts, and the constants that they may be put together from. */
function readModule(root, path) {
  const file = relative(root, path)
  const source = ts.createSourceFile(file, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, false)
  const constants = new Map()
  const texts = []
  const visit = (node) => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer)
      constants.set(node.name.text, node.initializer)
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateExpression(node))
      texts.push(node)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return { file, source, constants, texts }
}

function queriesOf({ file, source, constants, texts }, shared) {
  const textOf = (node, depth = 0) => {
    if (depth > 8) return UNKNOWN
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text
    if (ts.isTemplateExpression(node))
      return node.templateSpans.reduce(
        (text, span) => text + textOf(span.expression, depth + 1) + span.literal.text,
        node.head.text,
      )
    if (ts.isIdentifier(node)) {
      const found = constants.get(node.text) ?? shared.get(node.text)
      return found ? textOf(found, depth + 1) : UNKNOWN
    }
    return UNKNOWN
  }
  return texts
    .map((node) => ({ node, sql: textOf(node) }))
    .filter(({ sql }) => /\b(order\s+by|distinct\s+on)\b/i.test(sql))
    .map(({ node, sql }) => {
      const { line } = source.getLineAndCharacterOfPosition(node.pos)
      return { file, line: line + 1, sql }
    })
}

const token =
  /--[^\n]*|\/\*[\s\S]*?\*\/|\$(\w*)\$[\s\S]*?\$\1\$|'(?:[^']|'')*'|"(?:[^"]|"")*"|::|[A-Za-z_\ufffd][\w$\ufffd]*|\$?\d+(?:\.\d+)?|[^\s]/g

/** The texts of ORDER BY and DISTINCT ON in a query that name an output column which is a cast. */
export function ordersByCast(sql) {
  const broken = []
  const tokens = []
  for (const [text, tag] of sql.matchAll(token)) {
    if (text.startsWith('--') || text.startsWith('/*')) continue
    // the body of a function is SQL as well
    if (tag !== undefined) broken.push(...ordersByCast(text.slice(tag.length + 2, -tag.length - 2)))
    else tokens.push(text)
  }
  let at = 0
  const level = () => {
    const items = []
    while (at < tokens.length) {
      const text = tokens[at++]
      if (text === ')') break
      items.push(text === '(' ? level() : text)
    }
    broken.push(...ordersOfLevel(items))
    return items
  }
  while (at < tokens.length) level()
  return broken
}

const word = (item, ...words) => typeof item === 'string' && words.includes(item.toLowerCase())
const endsList = (item) =>
  word(
    item,
    'from',
    'where',
    'group',
    'having',
    'window',
    'order',
    'union',
    'intersect',
    'except',
    'into',
    ';',
  )
const endsOrder = (item) =>
  word(item, 'limit', 'offset', 'fetch', 'for', 'union', 'intersect', 'except', ';', 'returning', 'on')

/** What stands between `from` and the first item that `ends` it, split at its commas. */
function listAt(items, from, ends) {
  const parts = [[]]
  for (const item of items.slice(from)) {
    if (ends(item)) break
    if (item === ',') parts.push([])
    else parts.at(-1).push(item)
  }
  return parts.filter((part) => part.length > 0)
}

function ordersOfLevel(items) {
  const broken = []
  let lists = []
  const judge = (parts, what) => {
    for (const [first, ...more] of parts) {
      if (typeof first !== 'string' || !plainEnd(more)) continue
      const place = /^\d+$/.test(first) ? Number(first) - 1 : undefined
      const named = (column, at) => (place === undefined ? mayBeNamed(column, first) : place === at)
      if (lists.some((list) => list.some((column, at) => named(column, at) && isCast(column))))
        broken.push(`${what} ${first}`)
    }
  }
  items.forEach((item, i) => {
    if (word(item, ';')) lists = []
    if (item === UNKNOWN && lists.length === 0) lists = [[[UNKNOWN]]]
    if (word(item, 'select')) {
      const distinct = word(items[i + 1], 'distinct')
      const on = distinct && word(items[i + 2], 'on') ? items[i + 3] : undefined
      // a query after UNION adds to the columns of the first one, any other starts a new list
      const joined = word(items[i - 1], 'union', 'intersect', 'except', 'all')
      const list = listAt(items, i + (on ? 4 : distinct ? 2 : 1), endsList)
      lists = joined ? [...lists, list] : [list]
      if (on)
        judge(
          listAt(on, 0, () => false),
          'DISTINCT ON',
        )
    }
    // without a SELECT beside it, it orders what an aggregate or a window is given: those are input columns
    if (word(item, 'order') && word(items[i + 1], 'by') && lists.length > 0)
      judge(listAt(items, i + 2, endsOrder), 'ORDER BY')
  })
  return broken
}

/** Nothing but a direction after the name: anything more makes it an expression, which means input columns. */
const plainEnd = (more) => more.every((item) => word(item, 'asc', 'desc', 'nulls', 'first', 'last'))

const plainName = (item) =>
  typeof item !== 'string' || !/^["A-Za-z_]/.test(item)
    ? undefined
    : item.startsWith('"')
      ? item.slice(1, -1)
      : item.toLowerCase()

/** A column of a select list without its alias. */
function expressionOf(column) {
  const as = column.findLastIndex((item) => word(item, 'as'))
  return as > 0 ? column.slice(0, as) : column
}

/** Whether the value of a column is a cast as a whole, or may be one for all that is known here. */
function isCast(column) {
  const expression = expressionOf(column)
  if (expression.includes(UNKNOWN)) return true
  if (word(expression[0], 'cast') && Array.isArray(expression[1])) return true
  const cast = expression.lastIndexOf('::')
  // what follows the cast is its type, perhaps with a length or brackets; an operator makes it part of something larger
  return (
    cast > 0 &&
    expression.slice(cast + 1).every((i) => Array.isArray(i) || /^["\w.]+$/.test(i) || i === '[' || i === ']')
  )
}

/** Whether a bare name means this column of a select list; of one that is put together at run time it may. */
function mayBeNamed(column, name) {
  const as = column.findLastIndex((item) => word(item, 'as'))
  if (as > 0) return plainName(column[as + 1]) === plainName(name)
  const cast = column.indexOf('::')
  const last = (cast > 0 ? column.slice(0, cast) : column).findLast((item) => typeof item === 'string')
  return last === UNKNOWN || (plainName(name) !== undefined && plainName(last) === plainName(name))
}
