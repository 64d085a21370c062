# Asks the interpreter where it and its standard library lie. Runs once, outside the sandbox, with -I -S -B;
# argument 1 is the boot file's source, the answer is one line of JSON.
import json, marshal, os, sys
from importlib.util import MAGIC_NUMBER

if sys.version_info < (3, 8):
    print(json.dumps({"version": sys.version.split()[0], "too_old": True}))
    raise SystemExit
code = compile(sys.argv[1], "/boot.py", "exec", dont_inherit=True)
folders = [p for p in sys.path if p and os.path.exists(p)]
folders += [os.path.dirname(os.__file__)]
extensions = []
for folder in folders:
    if os.path.isdir(folder):
        extensions += [os.path.join(folder, n) for n in sorted(os.listdir(folder)) if n.endswith(".so")]
print(json.dumps({
    "version": sys.version.split()[0],
    "too_old": False,
    "implementation": sys.implementation.name,
    # Started under another name than its own, it may not know its own.
    "executable": os.path.realpath(sys.executable or "/proc/self/exe"),
    "prefix": sys.base_prefix,
    "exec_prefix": sys.base_exec_prefix,
    "folders": folders,
    "extensions": sorted(set(extensions)),
    "boot": list(MAGIC_NUMBER + b"\0" * 12 + marshal.dumps(code)),
}))
