import { join } from 'node:path'
import ts from 'typescript'

const host = (root) => ({
  getCurrentDirectory: () => root,
  getCanonicalFileName: (name) => name,
  getNewLine: () => '\n',
})

/** A configuration with the files that it includes, as `tsc -p` reads it. */
function configurationOf(root, workspace) {
  const read = {
    ...ts.sys,
    getCurrentDirectory: () => join(root, workspace),
    onUnRecoverableConfigFileDiagnostic: (diagnostic) => {
      throw new Error(ts.formatDiagnostic(diagnostic, host(root)))
    },
  }
  return ts.getParsedCommandLineOfConfigFile(join(root, workspace, 'tsconfig.json'), undefined, read)
}

/**
 * What is wrong with the types of workspaces, each under its own tsconfig.json: a row for each, in the order given, with a line
 * for each error. A file that another of them includes is checked there, and only read where it is imported: most of the work
 * would be to check the same sources again for each workspace that imports them. What none of them includes is checked where
 * it is imported. Files are parsed once for all workspaces that read them alike.
 */
export function* wrongTypes(root, workspaces) {
  const configurations = workspaces.map((workspace) => configurationOf(root, workspace))
  const including = new Map()
  configurations.forEach(({ fileNames }, i) => {
    for (const file of fileNames) including.set(file, [...(including.get(file) ?? []), i])
  })
  const registry = ts.createDocumentRegistry(true, root)
  const parsed = new Map()

  for (const [i, { options, fileNames, errors, projectReferences }] of configurations.entries()) {
    const compiler = ts.createCompilerHost(options)
    const key = registry.getKeyForCompilationSettings(options)
    const parse = compiler.getSourceFile
    compiler.getSourceFile = (file, how, ...more) => {
      const as = `${key} ${JSON.stringify(how)} ${file}`
      if (!parsed.has(as)) parsed.set(as, parse(file, how, ...more))
      return parsed.get(as)
    }
    const program = ts.createProgram({
      rootNames: fileNames,
      options,
      host: compiler,
      projectReferences,
      configFileParsingDiagnostics: errors,
    })
    const own = (file) => including.get(file.fileName)?.includes(i) ?? true
    const files = program
      .getSourceFiles()
      .filter((file) => !program.isSourceFileDefaultLibrary(file) && own(file))
    const diagnostics = [
      ...program.getConfigFileParsingDiagnostics(),
      ...program.getOptionsDiagnostics(),
      ...program.getGlobalDiagnostics(),
      ...files.flatMap((file) => [
        ...program.getSyntacticDiagnostics(file),
        ...program.getSemanticDiagnostics(file),
      ]),
    ]
    yield {
      workspace: workspaces[i],
      lines: ts
        .sortAndDeduplicateDiagnostics(diagnostics)
        .flatMap((diagnostic) => ts.formatDiagnostic(diagnostic, host(root)).trimEnd().split('\n')),
    }
  }
}
