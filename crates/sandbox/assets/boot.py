# Runs inside the sandbox, compiled once outside: turns the bare interpreter into what a script expects, then runs
# the program or calls one of its functions. Arguments: "mode" and its number (launcher/order.rs); or "warm", a socket
# and names of modules to become the interpreter from which programs are forked.
# It holds nothing worth stealing: a program may read, change or replace all of this.
def _boot():
    import _sitebuiltins
    import builtins
    import sys

    builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
    builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
    builtins.help = _sitebuiltins._Helper()

    own = globals()
    own_file = _boot.__code__.co_filename

    def show(kind, value, trace, show=sys.__excepthook__):
        # The frames of this file come first and are none of the program's.
        while trace is not None and trace.tb_frame.f_code.co_filename == own_file:
            trace = trace.tb_next
        show(kind, value.with_traceback(trace), trace)

    arguments = sys.argv[1:]
    sys.argv = ["main.py"]
    sys.excepthook = show
    if arguments[0] == "warm":
        mode = _boot.warm(int(arguments[1]), arguments[2:])
        # From here on this is the forked child.
    else:
        mode = int(arguments[1])
        sys.path[0] = "/tmp"
        _boot.packages()
        sys.meta_path.insert(0, _boot.Seeder)
    # Made only now, so that the collector takes it apart at the end even in a child; not this file's own module, which
    # the hooks above keep alive.
    main = sys.modules["__main__"] = type(sys)("__main__", None)
    for name in "__package__", "__loader__", "__spec__", "__annotations__", "__builtins__", "__cached__":
        if name in own:
            main.__dict__[name] = own[name]
    main.__file__ = "/tmp/main.py"
    if mode & 16:
        with open("/tmp/.arguments", encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read()
        sys.argv[1:] = text.split("\0")[:-1]
    own["_names"] = main.__dict__
    own["_call"] = None
    if mode & 2:
        own["_call"] = _boot.asked(main)
    if mode & 8:
        import marshal

        with open(4, "rb") as file:
            file.seek(1)
            return marshal.loads(file.read())
    with open("/tmp/main.py", "rb") as file:
        source = file.read()
    if not mode & 1:
        code = compile(source, "main.py", "exec", dont_inherit=True)
        if mode & 4:
            _boot.save(code)
        return code

    import os

    try:
        compile(source, "main.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        show(type(error), error, None)
        sys.stderr.flush()
        os._exit(65)
    os._exit(64)


def _save(code):
    # For the next run of the same program. What keeps it from being written (a limit on files or memory that the
    # program itself may never reach, code nested too deeply to be written) is none of the program's doing. The first
    # byte is written last: without it, the file does not count.
    import marshal
    import posix

    try:
        text = b"\0" + marshal.dumps(code)
        while text:
            text = text[posix.write(4, text) :]
        posix.pwrite(4, b"\1", 0)
    except (OSError, ValueError, MemoryError):
        pass
    posix.close(4)


def _asked(main):
    # What is to be called with what stands on stdin, which then is empty for the program. A module of another name
    # than __main__, so that the program's own main part stays out of it.
    import json
    import os
    import sys

    try:
        with open(0, "rb", closefd=False) as file:
            asked = json.loads(file.read())
    except BaseException as error:
        # Nothing of the program has run yet, so it is not its failure. A length that no answer has, and why.
        os.write(3, b"\xff" * 8 + ("%s: %s" % (type(error).__name__, error)).encode("utf-8", "replace")[:500])
        os._exit(66)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    main.__name__ = "solution"
    sys.modules["solution"] = main

    def found(names, path):
        first, _, rest = path.partition(".")
        if not rest and first not in names and "Solution" in names:
            first, rest = "Solution", path
        thing = names[first]
        if rest and isinstance(thing, type):
            thing = thing()
        for name in rest.split(".") if rest else ():
            thing = getattr(thing, name)
        return thing

    def call(names, write=os.write, encode=_boot.encode, length=len):
        try:
            function = found(names, asked["function"])
        except (KeyError, AttributeError):
            raise NameError("the program defines no " + asked["function"]) from None
        text = encode(function(*asked["arguments"]))
        text = length(text).to_bytes(8, "little") + text
        while text:
            text = text[write(3, text) :]

    return call


def _encode(value):
    # A value as bytes, by its built-in type alone: what a class says of itself does not count. Whoever changes this
    # from within only lies about its own answer.
    parts = []
    add = parts.append
    # What is still to be written, last first; a container's elements are put there in reverse.
    left = [(value, 0)]
    ancestors = {}
    end = object()
    while left:
        x, depth = left.pop()
        if depth is end:
            del ancestors[x]
            continue
        kind = type(x)
        if depth > 500:
            raise ValueError("the result is nested too deeply")
        if x is None:
            add(b"N")
        elif x is True:
            add(b"T")
        elif x is False:
            add(b"F")
        elif issubclass(kind, int):
            add(b"i%s;" % hex(int.__add__(x, 0)).encode())
        elif issubclass(kind, float):
            add(b"f%s;" % float.__repr__(float.__add__(x, -0.0)).encode())
        elif issubclass(kind, str):
            text = str.encode(x, "utf-8", "surrogatepass")
            add(b"s%d:" % len(text))
            add(text)
        elif issubclass(kind, (bytes, bytearray)):
            text = b"".join((x,))
            add(b"b%d:" % len(text))
            add(text)
        else:
            for base, letter in (list, b"["), (tuple, b"("), (dict, b"{"), (set, b"<"), (frozenset, b"<"):
                if issubclass(kind, base):
                    break
            else:
                text = type.__dict__["__name__"].__get__(kind).encode("utf-8", "surrogatepass")[:200]
                add(b"o%d:" % len(text))
                add(text)
                continue
            if id(x) in ancestors:
                raise ValueError("the result contains itself")
            ancestors[id(x)] = x
            left.append((id(x), end))
            if base is dict:
                items = [part for pair in dict.items(x) for part in pair]
            else:
                items = list(base.__iter__(x))
            add(b"%s%d:" % (letter, len(items)))
            left.extend((item, depth + 1) for item in reversed(items))
    return b"".join(parts)


def _packages():
    # Besides the standard library; where there are any, they are looked for last.
    import posix
    import sys

    try:
        names = posix.listdir("/packages")
    except OSError:
        return
    sys.path.append("/packages")
    if "numpy" in names:
        _boot.Seeder.left.add("numpy.random")


class _Seeder:
    # `random` starts from the same seed in every run, and so does numpy's. Waits in sys.meta_path for their import, then
    # is gone.
    left = {"random"}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.left:
            return None
        import sys

        cls.left.discard(name)
        if not cls.left:
            sys.meta_path.remove(cls)
        spec = sys.modules["_frozen_importlib_external"].PathFinder.find_spec(name, path)
        # A file of that name beside the program is the program's own.
        if spec is not None and spec.origin is not None and not spec.origin.startswith("/tmp/random"):
            loader = spec.loader

            def execute(module):
                del loader.exec_module
                loader.exec_module(module)
                module.seed(0)

            loader.exec_module = execute
        return spec


def _state():
    # What programs have in common with whatever was imported before them, and what packages are known to change.
    import gc
    import os
    import sys
    import _locale
    import _signal

    umask = os.umask(0o77)
    os.umask(umask)
    state = {
        "the recursion limit": sys.getrecursionlimit(),
        "signal handlers": [_signal.getsignal(number) for number in sorted(_signal.valid_signals())],
        "os.environ": dict(os.environ),
        "the locale": _locale.setlocale(_locale.LC_ALL),
        "the working folder": os.getcwd(),
        "the umask": umask,
        "sys.path": list(sys.path),
        "hooks of sys": [sys.excepthook, sys.displayhook, sys.gettrace(), sys.getprofile(), sys.getswitchinterval()],
        "stdin, stdout or stderr": [id(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "the garbage collector": [gc.isenabled(), gc.get_threshold(), gc.get_debug(), len(gc.callbacks)],
        "the decimal context": None,
        "longest numbers in text": getattr(sys, "get_int_max_str_digits", int)(),
    }
    decimal = sys.modules.get("decimal")
    if decimal is not None:
        state["the decimal context"] = repr([decimal.DefaultContext, decimal.getcontext()])
    return state


def _warm(socket, names):
    # Everything up to `serve` happens once, in the parent, before any program; after it we are a child of its own
    # for each program. In the parent `serve` does not return.
    import atexit
    import gc
    import os
    import sys
    import weakref

    # What ends a program quickly; registered first, it runs after everything that the program registers.
    status = [1]
    # Address space, never touched, for telling of a MemoryError and going the way to the end.
    reserve = [bytearray(4 << 20)]

    def note(error):
        # The exit code as CPython has it.
        if error is None:
            status[0] = 0
        elif isinstance(error, SystemExit):
            code = error.code
            if code is None:
                status[0] = 0
            elif isinstance(code, int):
                status[0] = code & 255 if -(1 << 63) <= code < 1 << 63 else 255
        elif isinstance(error, KeyboardInterrupt):
            status[0] = None
        elif isinstance(error, MemoryError):
            reserve.clear()

    def flushed():
        for stream in (getattr(sys, "stdout", None), getattr(sys, "stderr", None)):
            try:
                if stream is not None and not stream.closed:
                    stream.flush()
            except BaseException:
                return False
        return True

    def finish(collect=gc.collect, leave=os._exit, kill=os.kill, ref=weakref.ref):
        # What Py_FinalizeEx does and a program can notice; it would go on to take every module apart, which
        # nobody sees and which costs more than most programs.
        if not flushed():
            return  # the interpreter will find the same and knows what to say of it
        collect()
        for name in ("stdin", "stdout", "stderr"):
            setattr(sys, name, getattr(sys, "__" + name + "__", None))
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            if hasattr(sys, name):
                setattr(sys, name, None)
        # No more source lines in what is told from here on, as there.
        sys.modules["io"] = None
        main = sys.modules.pop("__main__", None)
        try:
            alive = ref(main)
        except TypeError:  # the program put something else there
            alive = lambda: None
        del main
        collect()
        main = alive()
        if main is not None:
            names = main.__dict__
            for hidden in (True, False):
                for name in list(names):
                    if name != "__builtins__" and (name[:1] == "_" and name[1:2] != "_") is hidden:
                        names[name] = None
        flushed()
        if status[0] is None:
            import signal

            signal.signal(signal.SIGINT, signal.SIG_DFL)
            kill(os.getpid(), signal.SIGINT)
        leave(130 if status[0] is None else status[0])

    atexit.register(finish)
    _boot.packages()
    sys.meta_path.insert(0, _boot.Seeder)

    import ctypes

    system = ctypes.PyDLL(None)

    def written():
        # What has been printed, by whatever way: it would be every program's.
        flushed()
        system.fflush(None)
        size = ctypes.c_int()
        total = 0
        for number in 1, 2:
            system.ioctl(number, 0x541B, ctypes.byref(size))  # FIONREAD
            total += size.value
        return total

    before = _boot.state()
    printed = written()
    for name in names:
        try:
            __import__(name)
        except ImportError:  # not in this version
            continue
        # What a package changes for itself would be changed for programs that do not import it.
        now = _boot.state()
        what = [key for key in before if before[key] is not None and now[key] != before[key]]
        if written() != printed:
            what.append("what is printed")
        if what:
            raise SystemExit("importing `%s` changes %s, for programs too that do not use it" % (name, ", ".join(what)))
        before = now
    for name in "random", "numpy.random":
        # Some draw when they are imported.
        if name in sys.modules:
            sys.modules[name].seed(0)
    threading = sys.modules.get("threading")
    helper = ctypes.PyDLL("/fork.so")
    if len(os.listdir("/proc/self/task")) != 1:
        raise SystemExit("a module of the list has started a thread, and processes with threads cannot be forked")
    sys.path[0] = "/tmp"
    sys.path_importer_cache.pop("/", None)
    sys.path_importer_cache.pop("/tmp", None)
    gc.collect()
    gc.freeze()
    answer = helper.serve(socket)
    if answer < 0:
        raise SystemExit("the helper cannot serve: " + os.strerror(-answer))
    _boot.note = note
    if threading is not None:
        # It remembers the parent's.
        threading.main_thread()._set_native_id()
    return answer


_boot.Seeder = _Seeder
_boot.warm = _warm
_boot.packages = _packages
_boot.state = _state
_boot.asked = _asked
_boot.save = _save
_boot.encode = _encode
_boot.note = lambda error: None
_code = _boot()
try:
    if _call is None:
        # Nothing here may hold on to the program's names, or they would not be taken apart at its end.
        exec(_code, globals().pop("_names"))
    else:
        exec(_code, _names)
        _call(globals().pop("_names"))
except BaseException as _error:
    _boot.note(_error)
    raise
else:
    _boot.note(None)
