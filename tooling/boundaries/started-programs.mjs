// Which programs a source starts with the rights of the process itself: as root, where root runs it. What is started as the
// user of an instance (`runCommand` with `user`, `confined`) has that user's rights, and needs no permission here.
import ts from 'typescript'

/** Where functions that start a program come from: all of a module of Node's, or these names of ours. */
const modules = [
  { from: /^(?:node:)?child_process$/, names: null },
  { from: /(?:^|\/)run-command$/, names: new Set(['runCommand']) },
  { from: /(?:^|\/)run-program$/, names: new Set(['runProgram']) },
]
const starting = (specifier) => modules.find((m) => m.from.test(specifier))

/**
 * Programs that a TypeScript source starts, each once and sorted: a literal as its text, anything else as the expression in
 * parentheses; `*` where that cannot be told, because a function that starts programs is handed on or taken whole.
 */
export function startedPrograms(source) {
  const file = ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest, true)
  const starters = new Map()
  const confined = new Set()
  const found = new Set()

  for (const statement of file.statements) {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) continue
    const module = statement.moduleSpecifier && starting(statement.moduleSpecifier.text)
    if (!module) continue
    if (ts.isExportDeclaration(statement)) {
      if (!statement.isTypeOnly) found.add('*')
      continue
    }
    const { importClause: clause } = statement
    if (!clause || clause.isTypeOnly) continue
    if (clause.name || (clause.namedBindings && ts.isNamespaceImport(clause.namedBindings))) found.add('*')
    else
      for (const { isTypeOnly, name, propertyName } of clause.namedBindings.elements) {
        const imported = (propertyName ?? name).text
        // what begins with a capital is a type
        if (isTypeOnly || /^[A-Z]/.test(imported)) continue
        if (module.names === null || module.names.has(imported)) starters.set(name.text, imported)
      }
  }

  const declared = (node) => {
    // const [file, ...words] = confined(user, …)
    if (
      ts.isVariableDeclaration(node) &&
      ts.isArrayBindingPattern(node.name) &&
      node.initializer &&
      ts.isCallExpression(node.initializer) &&
      node.initializer.expression.getText() === 'confined'
    )
      confined.add(node.name.elements[0].getText())
    ts.forEachChild(node, declared)
  }
  declared(file)

  const visit = (node) => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) return
    if (ts.isCallExpression(node)) {
      const [first, , options] = node.arguments
      const { expression: callee } = node
      const whole = callee.kind === ts.SyntaxKind.ImportKeyword || callee.getText() === 'require'
      if (whole && first && ts.isStringLiteralLike(first) && starting(first.text)) found.add('*')
      if (ts.isIdentifier(callee) && starters.has(callee.text)) {
        const asUser = starters.get(callee.text) === 'runCommand' && namesUser(options)
        if (!asUser && !(first && confined.has(first.getText()))) found.add(nameOf(first))
        node.arguments.forEach(visit)
        return
      }
    }
    if (ts.isIdentifier(node) && starters.has(node.text) && !isOnlyAName(node)) found.add('*')
    ts.forEachChild(node, visit)
  }
  visit(file)
  return [...found].sort()
}

const nameOf = (first) => {
  if (first === undefined) return '*'
  return ts.isStringLiteralLike(first) ? first.text : `(${first.getText().replace(/\s+/g, ' ')})`
}

/** Whether options say whose rights a command gets. */
const namesUser = (options) =>
  options !== undefined &&
  ts.isObjectLiteralExpression(options) &&
  options.properties.some(
    (p) =>
      p.name?.getText() === 'user' &&
      (p.initializer === undefined || p.initializer.getText() !== 'undefined'),
  )

/** The name of a property or a declaration, which only looks like the function. */
const isOnlyAName = ({ parent, text }) =>
  (ts.isPropertyAccessExpression(parent) && parent.name.text === text) ||
  (ts.isPropertyAssignment(parent) &&
    parent.name.getText() === text &&
    parent.initializer.getText() !== text) ||
  ts.isMethodDeclaration(parent) ||
  ts.isPropertySignature(parent)
