# Asks the interpreter where packages lie that programs are to have, with those that they need. Runs once, outside the
# sandbox, with the interpreter's own site-packages; the arguments are names as in `import NAME`, the answer is one line
# of JSON. It imports none of them. What installers have left may be wrong in any way: of a distribution that cannot be
# read, what can be found without is shown, and nobody else's package is kept back for it.
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
from importlib import metadata

# Mounts of a root; the files of a package count one by one only where they are links or somebody else's lie beside them.
MOST = 1500


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def asked(what, otherwise):
    try:
        return what() or otherwise
    except Exception:
        return otherwise


def parts(path):
    # Only what is below the folder that packages lie in.
    path = str(path)
    some = tuple(path.split("/"))
    bad = os.path.isabs(path) or any(p in ("", ".", "..") or "\0" in p for p in some)
    return () if bad or "__pycache__" in some else some


def modules(base, name):
    # Files and folders next to each other that a module of this name may be.
    names = [name] + [name + suffix for suffix in importlib.machinery.all_suffixes()]
    return [n for n in names if os.path.exists(os.path.join(base, n))]


class Distribution:
    def __init__(self, found):
        self.base = str(found.locate_file(""))
        info = os.path.basename(str(getattr(found, "_path", "")))
        named = asked(lambda: found.metadata["Name"], "") or info.partition("-")[0]
        self.key = plain(str(named))
        self.requires = asked(lambda: found.requires, ())
        self.files = {p for p in map(parts, asked(lambda: [str(f) for f in found.files], ())) if p}
        self.listed = bool(self.files)
        tops = asked(lambda: found.read_text("top_level.txt").split(), [])
        if not self.files and not tops:
            tops = [re.sub(r"[-.]+", "_", str(named))]
        for top in tops:
            # Such as `ns/part`, which some tools write.
            if parts(top):
                folder = os.path.join(self.base, *parts(top)[:-1])
                above = parts(top)[:-1]
                self.files |= {above + (n,) for n in modules(folder, parts(top)[-1])}
        if info and os.path.exists(os.path.join(self.base, info)):
            self.files.add((info,))

    def tops(self):
        return {p[0].split(".")[0] for p in self.files if not p[0].endswith((".dist-info", ".egg-info"))}


distributions = {}
providers = {}
owners = {}
for found in metadata.distributions():
    found = asked(lambda: Distribution(found), None)
    # The first of a name is the one that is imported.
    if found is None or not found.key or found.key in distributions:
        continue
    distributions[found.key] = found
    for name in found.tops():
        providers.setdefault(name, []).append(found)
    for path in found.files:
        for end in range(1, len(path) + 1):
            owners.setdefault((found.base,) + path[:end], set()).add(found.key)

entries = {}
missing = []


def leads_out(folder):
    # Whether there are links in it that do not hold elsewhere.
    for here, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(here, name)
            if os.path.islink(path):
                inside = os.path.realpath(path).startswith(folder + os.sep)
                if os.path.isabs(os.readlink(path)) or not inside:
                    return True
    return False


def show(inner, path, above=()):
    # Links are shown as what they lead to.
    path = os.path.realpath(path)
    if not os.path.exists(path) or path in above:
        return
    if os.path.isdir(path) and leads_out(path):
        for name in sorted(os.listdir(path)):
            if name != "__pycache__":
                show(inner + (name,), os.path.join(path, name), above + (path,))
    elif len(entries) < MOST:
        entries.setdefault(inner, path)
    else:
        message = "%s has too many files that are links (as uv makes them with --link-mode=symlink); install it with copies of its files (--link-mode=copy)"
        print(json.dumps({"refused": message % inner[0]}))
        raise SystemExit


def whole(folder):
    return any(n.split(".")[0] == "__init__" for n in os.listdir(folder))


def own(found, inner):
    # A folder that it shares with others (a namespace) is shown as far as it is its own.
    path = os.path.join(found.base, *inner)
    if not os.path.isdir(path):
        show(inner, path)
        return
    alone = owners.get((found.base,) + inner, set()) <= {found.key}
    recorded = {p for p in found.files if p[: len(inner)] == inner}
    if inner in recorded and (alone or not found.listed) or alone and whole(path):
        others = [n for n in os.listdir(path) if owners.get((found.base,) + inner + (n,), {found.key}) - {found.key}]
        if not others:
            show(inner, path)
            return
        recorded |= {inner + (n,) for n in os.listdir(path) if n not in others and n != "__pycache__"}
    for child in sorted({p[: len(inner) + 1] for p in recorded if len(p) > len(inner)}):
        own(found, child)


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
    left, known = list(providers.get(name, ())), set()
    while left:
        found = left.pop()
        if found.key in known:
            continue
        known.add(found.key)
        for top in sorted({p[:1] for p in found.files}):
            own(found, top)
        for wanted in found.requires:
            wanted, _, condition = str(wanted).partition(";")
            wanted = re.match(r"[A-Za-z0-9._-]+", wanted.strip())
            # What is needed only with an extra, or under conditions that do not hold here, is not needed; if it is
            # installed all the same, to show it does no harm.
            if wanted and "extra" not in condition and plain(wanted[0]) in distributions:
                left.append(distributions[plain(wanted[0])])
    # What no distribution tells of, as when it is used from where it is written.
    for path in place.submodule_search_locations or [place.origin]:
        # Built in, or of the standard library, which is there anyway.
        folder = os.path.dirname(path or "")
        if not os.path.isabs(folder) or folder == standard or os.path.basename(folder) == "lib-dynload":
            continue
        if any(key[0].split(".")[0] == name and (folder,) + key[:1] in owners for key in entries):
            continue
        if place.origin is None:
            for part in sorted(os.listdir(path)):
                if part != "__pycache__":
                    show((name, part), os.path.join(path, part))
        else:
            show((os.path.basename(path),), path)


def split():
    # Nothing can be put into a folder that is shown whole: it is taken apart, for what comes from another place.
    for key in sorted(entries, key=len):
        for end in range(1, len(key)):
            path = entries.get(key[:end])
            if path is None:
                continue
            del entries[key[:end]]
            if not os.path.isdir(path):
                del entries[key]
                return True
            for name in sorted(os.listdir(path)):
                if name != "__pycache__":
                    entries.setdefault(key[:end] + (name,), os.path.join(path, name))
            return True
    return False


while split():
    pass
extensions = []
for path in entries.values():
    if os.path.isfile(path) and ".so" in os.path.basename(path):
        extensions.append(path)
    for folder, _, files in os.walk(path):
        extensions += [os.path.join(folder, f) for f in files if f.endswith(".so") or ".so." in f]
shown = {"/".join(key): path for key, path in entries.items()}
print(json.dumps({"missing": missing, "entries": shown, "extensions": sorted(extensions)}))
