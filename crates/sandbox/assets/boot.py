# Runs inside the sandbox, compiled once outside: turns the bare interpreter into what a script expects,
# then runs the program (or, with the argument "check", only compiles it).
# It holds nothing worth stealing: a program may read, change or replace all of this.
def _boot():
    import _sitebuiltins
    import builtins
    import sys

    builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
    builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
    builtins.help = _sitebuiltins._Helper()

    own_file = _boot.__code__.co_filename

    def show(kind, value, trace, show=sys.__excepthook__):
        # The frames of this file come first and are none of the program's.
        while trace is not None and trace.tb_frame.f_code.co_filename == own_file:
            trace = trace.tb_next
        show(kind, value.with_traceback(trace), trace)

    class Seeder:
        # `random` starts from the same seed in every run. Waits in sys.meta_path for its import, then is gone.
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != "random":
                return None
            sys.meta_path.remove(Seeder)
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

    sys.meta_path.insert(0, Seeder)

    check = sys.argv[1:] == ["check"]
    sys.argv = ["main.py"]
    sys.path[0] = "/tmp"
    sys.excepthook = show
    with open("/tmp/main.py", "rb") as file:
        source = file.read()
    if not check:
        return compile(source, "main.py", "exec", dont_inherit=True)

    import os

    try:
        compile(source, "main.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        show(type(error), error, None)
        sys.stderr.flush()
        os._exit(65)
    os._exit(64)


_code = _boot()
__file__ = "/tmp/main.py"
del _boot
exec(globals().pop("_code"))
