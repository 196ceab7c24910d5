// Makes the Python of the page start at once: node compile.mjs PYODIDE OUT PACKAGE... makes of OUT/scantling.zip and the
// wheels one archive, compiled by the interpreter that will run it and without what no page needs; their libraries apart,
// so that a browser compiles them side by side and a memory that was kept fits them. Adds Pyodide's own files, its library
// made the same way, what the desk says of its example (first.json), the lock file that names the libraries. The archive
// that was given is taken away last: as long as it is there, nothing of this counts.
import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

const [distribution, out, ...packages] = process.argv.slice(2), ours = `${out}/scantling.zip`;
const { loadPyodide } = await import(pathToFileURL(`${distribution}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${distribution}/`, stdout: console.error, env: { HOME: "/tmp" } });
const lock = JSON.parse(readFileSync(`${distribution}/pyodide-lock.json`)), sha256 = data => createHash("sha256").update(data).digest("hex");
python.FS.writeFile("/python_stdlib.zip", new Uint8Array(readFileSync(`${distribution}/python_stdlib.zip`)));
for (const { file_name, sha256: known } of packages.map(name => lock.packages[name])) {
  const wheel = readFileSync(`${distribution}/${file_name}`);
  if (sha256(wheel) !== known) throw new Error(`${file_name} is not the file of the lock`);
  python.unpackArchive(new Uint8Array(wheel), "wheel", { extractDir: "/scantling" });
}
python.unpackArchive(new Uint8Array(readFileSync(ours)), "zip", { extractDir: "/scantling" });
const made = JSON.parse(python.runPython(`
import importlib.util, io, json, pathlib, re, sys, tarfile, zipfile
from importlib._bootstrap_external import _code_to_hash_pyc as pyc

LEFT = re.compile(
    r"\\.(pyi|pyx|pxd|h|a|c)$|/tests?/|^numpy/(f2py|distutils|testing|ma|polynomial)/|^traitlets/config/"
    r"|^(_pyrepl|curses|dbm|ensurepip|idlelib|lib2to3|multiprocessing|pydoc_data|sqlite3|tkinter|turtledemo|unittest|venv|wsgiref|xml|xmlrpc)/"
    r"|^encodings/(big5|cp(?!1252|437)|euc|gb|hp_|hz|iso|johab|koi8|kz|mac|palm|ptcp|shift|tis)"
    r"|^(_pydatetime|_pydecimal|_pyio|bdb|cProfile|cmd|code|codeop|doctest|ftplib|imaplib|mailbox|modulefinder|netrc|nntplib|optparse|pdb|pickletools|plistlib|poplib|profile|pstats|pyclbr|pydoc"
    r"|smtplib|socketserver|tabnanny|telnetlib|timeit|trace|tracemalloc|turtle|wave|zipapp)[.]py$"
)
sys.path.insert(0, "/scantling")
from scantling.base.files import yaml_of
from scantling_widgets.desk import page_worker
said = []
hear = page_worker.begin(said.append, None)
used = {getattr(module, "__file__", None) or "" for module in sys.modules.values()}
hear(json.dumps({"hello": 1, "vega": True, "link": "", "serial": ""}))
library = next(path for path in sys.path if path.endswith(".zip"))

def kept(root, name, data):
    """Name and content as the page gets them: compiled, without documentation; None of what it needs not."""
    path = f"{root}/{name}"
    if LEFT.search(name) and path not in used:
        return None
    if name.endswith(".py") and (path in used or name.startswith("scantling")) and "/templates/" not in name:
        code = compile(data, path, "exec", dont_inherit=True, optimize=2)
        return name + "c", bytes(pyc(code, importlib.util.source_hash(data), False))
    if name.endswith(".yaml") and "/designs/" not in name:     # a table: no reader of YAML is compiled here
        told = json.dumps(found := yaml_of(pathlib.Path(path)), default=str).encode()
        if json.loads(told) == found and told.startswith(b"{"):
            return name, told
    return name, data

with zipfile.ZipFile("/python_stdlib.zip") as given, zipfile.ZipFile("/library.zip", "w") as packed:
    for item in given.infolist():
        if found := kept(library, item.filename, given.read(item)):
            packed.writestr(zipfile.ZipInfo(found[0]), found[1], zipfile.ZIP_DEFLATED, 9)
libraries, root = {}, pathlib.Path("/scantling")
with tarfile.open("/ours.tar", "w", format=tarfile.USTAR_FORMAT) as packed:
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and (found := kept(root, str(path.relative_to(root)), path.read_bytes())):
            name, data = found
            if name.endswith(".so"):            # its place must be taken: Python looks for it there
                libraries[str(path)], data = path.name, data[:8]
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
json.dumps({"libraries": libraries, "first": [message for message in map(json.loads, said) if "parts" in message or "root" in message]})
`));
const tar = gzipSync(python.FS.readFile("/ours.tar"), { level: 9 });
const files = { "scantling.tar.z": tar, "python_stdlib.zip": python.FS.readFile("/library.zip"), "first.json": JSON.stringify(made.first) };
for (const [path, name] of Object.entries(made.libraries)) files[`${name}.z`] = gzipSync(python.FS.readFile(path), { level: 9 });
files["pyodide-lock.json"] = JSON.stringify({ ...lock, packages: {}, libraries: made.libraries, memory: `memory-${sha256(tar)}` });
for (const [name, data] of Object.entries(files)) writeFileSync(`${out}/${name}`, data);
for (const name of ["pyodide.mjs", "pyodide.asm.mjs"]) copyFileSync(`${distribution}/${name}`, `${out}/${name}`);
writeFileSync(`${out}/pyodide.asm.wasm.z`, gzipSync(readFileSync(`${distribution}/pyodide.asm.wasm`), { level: 9 }));
unlinkSync(ours);
process.exit(0);                                // the desk would go on to try moves
