# Asks the interpreter where packages lie that programs are to have, with those that they need. Runs once, outside the
# sandbox, with the interpreter's own site-packages; the arguments are names as in `import NAME`, the answer is one line
# of JSON. It imports none of them.
import importlib.util
import json
import os
import re
import sys
from importlib import metadata


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


distributions = {}
providers = {}
for found in metadata.distributions():
    name = found.metadata["Name"]
    # The first of a name is the one that is imported.
    if not name or plain(name) in distributions:
        continue
    distributions[plain(name)] = found
    for file in found.files or ():
        first = file.parts[0]
        if first not in ("..", "__pycache__") and not first.endswith((".dist-info", ".egg-info")):
            providers.setdefault(first.split(".")[0], []).append(found)

entries = {}
missing = []


def show(path):
    path = os.path.abspath(path)
    if os.path.exists(path):
        entries.setdefault(os.path.basename(path), path)


def spec(name):
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


standard = os.path.dirname(os.__file__)
for name in sys.argv[1:]:
    place = spec(name)
    if place is None:
        missing.append(name)
        continue
    for path in place.submodule_search_locations or [place.origin]:
        # Built in, or of the standard library, which is there anyway.
        folder = os.path.dirname(path or "")
        if os.path.isabs(folder) and folder != standard and os.path.basename(folder) != "lib-dynload":
            show(path)
    left, known = list(providers.get(name, ())), set()
    while left:
        found = left.pop()
        key = plain(found.metadata["Name"])
        if key in known:
            continue
        known.add(key)
        for file in found.files or ():
            if file.parts[0] not in ("..", "__pycache__"):
                show(str(found.locate_file(file.parts[0])))
        for wanted in found.requires or ():
            wanted, _, condition = wanted.partition(";")
            wanted = re.match(r"[A-Za-z0-9._-]+", wanted.strip())
            # What is needed only with an extra, or under conditions that do not hold here, is not needed; if it is
            # installed all the same, to show it does no harm.
            if wanted and "extra" not in condition and plain(wanted[0]) in distributions:
                left.append(distributions[plain(wanted[0])])

extensions = []
for path in entries.values():
    if os.path.isfile(path) and ".so" in os.path.basename(path):
        extensions.append(path)
    for folder, _, files in os.walk(path):
        extensions += [os.path.join(folder, f) for f in files if f.endswith(".so") or ".so." in f]
print(json.dumps({"missing": missing, "entries": entries, "extensions": sorted(extensions)}))
