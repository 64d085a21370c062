"""Judges a Python program with DMOJ's sandbox (`pip install dmoj`), as a peer for the bench `judge`.

    cargo run --release -p rlef-benches --bin judge -- --peer "VENV/bin/python benches/peer_dmoj.py"

Arguments: the program's file, a folder of N.in and N.out, the number of tests, the number of workers. Prints how many tests
were accepted. One executor (which holds the program) a worker, one `launch` a test, outputs compared as DMOJ's standard
checker does, white space aside.
"""

import os
import sys
from multiprocessing import Pool
from subprocess import PIPE

from dmoj import judgeenv


def judged(arguments):
    source, folder, numbers = arguments
    from dmoj.executors.PY3 import Executor

    with open(source, "rb") as file:
        executor = Executor("sample", file.read())
    accepted = 0
    for number in numbers:
        with open(f"{folder}/{number}.in", "rb") as file:
            stdin = file.read()
        with open(f"{folder}/{number}.out", "rb") as file:
            expected = file.read()
        process = executor.launch(time=5, memory=262144, stdin=PIPE, stdout=PIPE, stderr=PIPE, wall_time=15)
        stdout, _ = process.communicate(stdin, outlimit=16 << 20, errlimit=1 << 20)
        process.wait()
        accepted += process.returncode == 0 and not process.is_tle and stdout.split() == expected.split()
    executor.cleanup()
    return accepted


def main():
    source, folder, tests, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    judgeenv.env["runtime"] = {"python3": os.path.realpath(sys.executable)}
    numbers = range(1, tests + 1)
    parts = [(source, folder, list(numbers[worker::workers])) for worker in range(workers)]
    with Pool(workers) as pool:
        print(sum(pool.map(judged, parts)))


if __name__ == "__main__":
    main()
