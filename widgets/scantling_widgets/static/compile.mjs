// Makes the Python of the page start at once: node compile.mjs PYODIDE OUT PACKAGE... compiles OUT/scantling.zip by the
// interpreter that will run it; writes copies of Pyodide's library and wheels without what no page needs, in which what
// the desk imports at its start is compiled, and a lock file that holds the page to these copies. All of it, or nothing.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [distribution, out, ...packages] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${distribution}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${distribution}/`, packages, stdout: console.error, env: { HOME: "/tmp" } });
const lock = JSON.parse(readFileSync(`${distribution}/pyodide-lock.json`)), sha256 = data => createHash("sha256").update(data).digest("hex");
lock.packages = Object.fromEntries(packages.map(name => [name, lock.packages[name]]));
const wheels = Object.values(lock.packages);
for (const { file_name, sha256: known } of wheels)
  if (sha256(readFileSync(`${distribution}/${file_name}`)) !== known) throw new Error(`${file_name} is not the file of the lock`);
const given = new Uint8Array(readFileSync(`${out}/scantling.zip`));
const theirs = ["python_stdlib.zip", ...wheels.map(wheel => wheel.file_name)];
for (const name of theirs) python.FS.writeFile(`/${name}`, new Uint8Array(readFileSync(`${distribution}/${name}`)));
python.FS.writeFile("/scantling.zip", given);
python.unpackArchive(given, "zip", { extractDir: "/scantling" });
const packed = python.runPython(`
import importlib.util, re, sys, zipfile
from importlib._bootstrap_external import _code_to_hash_pyc as pyc

LEFT = re.compile(r"\\.(pyi|pxd|h|a)$|/tests?/|^numpy/f2py/|^(_pyrepl|xmlrpc|wsgiref)/|^(pdb|doctest|imaplib|mailbox)[.]py$")
sys.path.insert(0, "/scantling")
from scantling_widgets import page_worker
page_worker.begin(print)
used = {getattr(module, "__file__", None) or "" for module in sys.modules.values()}
site, library = (next(path for path in sys.path if path.endswith(end)) for end in ("site-packages", ".zip"))

def packed(name, root, wanted):
    """The archive with its modules that are wanted compiled, without documentation."""
    with zipfile.ZipFile("/" + name) as given, zipfile.ZipFile("/out.zip", "w") as out:
        for item in given.infolist():
            name, data = item.filename, given.read(item)
            if LEFT.search(name) and f"{root}/{name}" not in used:
                continue
            if name.endswith(".py") and wanted(name):
                code = compile(data, f"{root}/{name}", "exec", dont_inherit=True, optimize=2)
                name, data = name + "c", pyc(code, importlib.util.source_hash(data), False)
            out.writestr(zipfile.ZipInfo(name), bytes(data), zipfile.ZIP_DEFLATED, 9)

def each(name):
    if name == "scantling.zip":
        packed(name, "/scantling", lambda name: "/templates/" not in name)
    else:
        root = library if name == "python_stdlib.zip" else site
        packed(name, root, lambda name: f"{root}/{name}" in used)
each
`);
const made = ["scantling.zip", ...theirs].map(name => {
  packed(name);
  const data = python.FS.readFile("/out.zip"), wheel = wheels.find(each => each.file_name === name);
  if (wheel) wheel.sha256 = sha256(data);
  return [name, data];
});
for (const [name, data] of [...made, ["pyodide-lock.json", JSON.stringify(lock)]]) writeFileSync(`${out}/${name}`, data);
