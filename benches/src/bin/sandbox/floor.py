# What a program costs that is forked from an interpreter which has imported what it needs, without any isolation, once
# for each line that comes in: floor.py PROGRAM INPUT MODULE ...
import gc
import os
import sys

program, given = sys.argv[1], sys.argv[2]
for name in sys.argv[3:]:
    __import__(name)
with open(program) as file:
    source = file.read()
nowhere = os.open(os.devnull, os.O_WRONLY)
gc.collect()
gc.freeze()
while os.read(0, 1):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(given, os.O_RDONLY), 0)
        os.dup2(nowhere, 1)
        exec(compile(source, "main.py", "exec"), {"__name__": "__main__"})
        sys.stdout.flush()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("the program fails")
    os.write(1, b"\n")
