// Compiles the Python of an archive with the interpreter that will run it: node compile.mjs PYODIDE <in.zip >out.zip
import { buffer } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const [distribution] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${distribution}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${distribution}/`, stdout: console.error });
python.FS.writeFile("/in.zip", new Uint8Array(await buffer(process.stdin)));
python.runPython(`
import importlib.util, zipfile
from importlib._bootstrap_external import _code_to_hash_pyc as pyc

with zipfile.ZipFile("/in.zip") as given, zipfile.ZipFile("/out.zip", "w") as out:
    for item in given.infolist():
        name, data = item.filename, given.read(item)
        if name.endswith(".py") and "/templates/" not in name:
            code = compile(data, "/scantling/" + name, "exec", dont_inherit=True, optimize=2)
            name, data = name + "c", pyc(code, importlib.util.source_hash(data), False)
        out.writestr(zipfile.ZipInfo(name), bytes(data), zipfile.ZIP_DEFLATED, 9)
`);
process.stdout.write(python.FS.readFile("/out.zip"));
