# Does a little work, then tells all that a program can see of its surroundings: the same, to the letter, in every run.
import builtins, ctypes, errno, fcntl, gc, json, os, resource, signal, stat, sys, threading, time

print(int(input()) * 2)
print("clock", abs(time.time() - int(input())) < 60, sys.stdin.read() == "")


def answer(function, *arguments):
    try:
        return function(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno)


def lines(path):
    with open(path, errors="replace") as file:
        return file.read().splitlines()


print("python", [(k, id(v), type(v).__name__) for k, v in sorted(vars(builtins).items()) if k != "_"])
print("modules", sorted(sys.modules), threading.enumerate(), gc.isenabled(), gc.get_threshold(), gc.garbage)
print("hooks", sys.excepthook.__name__, len(sys.meta_path), sys.path, sys.argv, sys.getrecursionlimit())
print("works", json.dumps({"a": [1, None]}), len("abc"), sum(range(10)), max([3, 1]), hash("x"))
print("surroundings", sorted(os.environ.items()), os.getcwd(), os.umask(0o22), os.uname().nodename)
print("user", os.getresuid(), os.getresgid(), os.getgroups(), os.getpid(), os.getppid(), os.getpgid(0), os.getsid(0))
print("slot", os.readlink("/proc/self/ns/user"), os.readlink("/proc/self/ns/net"), os.readlink("/proc/self/ns/ipc"))
told = ("Sig", "Shd", "Cap", "NoNew", "Seccomp", "Cpus", "Threads", "Tracer", "NS", "FDSize", "Groups", "Core", "THP")
print("status", [line for line in lines("/proc/self/status") if line.startswith(told)])
print("limits", lines("/proc/self/limits"))
for name in "personality", "oom_score_adj", "coredump_filter", "timerslack_ns", "cgroup", "uid_map", "loginuid":
    print(name, answer(lines, "/proc/self/" + name))
print("signals", [n for n in range(1, 65) if n not in (32, 33) and signal.getsignal(n) == signal.SIG_IGN])
print("waiting", signal.pthread_sigmask(0, []), signal.sigpending(), signal.getitimer(0), signal.alarm(0))
print("schedule", sorted(os.sched_getaffinity(0)), os.sched_getscheduler(0), os.getpriority(0, 0))
print("children", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, answer(os.waitpid, -1, os.WNOHANG))
print("processes", sorted(n for n in os.listdir("/proc") if n.isdigit()), sorted(os.listdir("/proc/self/task")))
opened = {n: answer(os.readlink, "/proc/self/fd/" + n) for n in os.listdir("/proc/self/fd")}
print("descriptors", sorted((n, t.split(":")[0]) for n, t in opened.items() if "/proc/" not in t))
print("mounts", sorted(" ".join(line.split()[3:]) for line in lines("/proc/self/mountinfo")))

# Sockets of the whole slot.
print("sockets", {n: len(lines("/proc/self/net/" + n)) for n in ("unix", "netlink", "packet", "tcp", "udp", "raw")})
print("traffic", [lines("/proc/self/net/" + n) for n in ("dev", "snmp", "netstat")])

# Locks on files that all runs share, shared memory, semaphores, queues: the calls do not exist.
with open("/boot.pyc", "rb") as file:
    print("locks", [answer(fcntl.fcntl, file, n, b"\0" * 32) for n in (5, 6, 36, 37, 1025)], answer(fcntl.flock, file, 6))
libc = ctypes.CDLL(None, use_errno=True)
made = [(n, getattr(libc, n)(1, 1, 0o1600), ctypes.get_errno()) for n in ("shmget", "semget", "msgget")]
print("ipc", made, libc.mq_open(b"/left", os.O_CREAT, 0o600, None), ctypes.get_errno())

# Every folder: what is in it, and whether it can be written.
seen, written = [], []
for folder, folders, files in os.walk("/"):
    if folder == "/":
        folders.remove("proc")
    there = os.lstat(folder)
    seen.append((folder, sorted(folders), sorted(files), there.st_mode, there.st_uid, folder[:4] == "/tmp" or there.st_mtime_ns))
    for function in os.mkdir, lambda path: os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)):
        if answer(function, folder + "/left") is None:
            written.append(folder)
            (os.rmdir if stat.S_ISDIR(os.lstat(folder + "/left").st_mode) else os.unlink)(folder + "/left")
print("files", len(seen), hash(str(sorted(seen))), "written", written)
space = os.statvfs("/tmp")
print("space", space.f_bfree, space.f_ffree, os.statvfs("/").f_bfree, os.statvfs("/").f_ffree)
