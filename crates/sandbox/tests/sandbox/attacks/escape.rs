//! Ways out of the sandbox: rows 32 to 47 of the catalogue and more of their kind. Files of the host, the network and
//! descriptors are in `escape.rs` next door.

use rlef_sandbox::Ending;

use super::{Arena, attack, harmless, stage_all, stage_group};

#[test]
fn there_is_no_way_out() {
    stage_group("escape");
}

/// Each call is made in a child; prints the names of those that did not end with `signal`.
fn killing(calls: &[(&str, String)]) -> String {
    let mut source = String::from(
        "import ctypes, os\nc = ctypes.CDLL(None, use_errno=True)\nb = ctypes.create_string_buffer(4096)\n\
         def attempt(name, *numbers):\n    pid = os.fork()\n    if pid == 0:\n        c.syscall(*numbers)\n        os._exit(0)\n    \
         status = os.waitpid(pid, 0)[1]\n    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != 31: print(name, status)\n",
    );
    for (name, numbers) in calls {
        source.push_str(&format!("attempt('{name}', {numbers})\n"));
    }
    source + "print('done')"
}

/// Calls that no honest program makes, with arguments that would do something.
fn forbidden() -> Vec<(&'static str, String)> {
    let call = |number: libc::c_long, arguments: &str| format!("{number}{arguments}");
    let mut all = vec![
        ("ptrace seize", call(libc::SYS_ptrace, ", 0x4206, 1, 0, 0")),
        (
            "process_vm_writev",
            call(libc::SYS_process_vm_writev, ", 1, 0, 0, 0, 0, 0"),
        ),
        (
            "process_madvise",
            call(libc::SYS_process_madvise, ", 0, 0, 0, 0, 0"),
        ),
        (
            "process_mrelease",
            call(libc::SYS_process_mrelease, ", 0, 0"),
        ),
        ("pidfd_getfd", call(libc::SYS_pidfd_getfd, ", 0, 0, 0")),
        ("kcmp", call(libc::SYS_kcmp, ", 1, 2, 0, 0, 0")),
        (
            "move_mount",
            call(libc::SYS_move_mount, ", -100, b'/tmp', -100, b'/', 0"),
        ),
        (
            "mount_setattr",
            call(libc::SYS_mount_setattr, ", -100, b'/', 0, b, 32"),
        ),
        ("fsconfig", call(libc::SYS_fsconfig, ", 0, 0, 0, 0, 0")),
        ("fsmount", call(libc::SYS_fsmount, ", 0, 0, 0")),
        ("fspick", call(libc::SYS_fspick, ", -100, b'/', 0")),
        ("statmount", "457, b, b, 512, 0".into()),
        ("listmount", "458, b, b, 512, 0".into()),
        ("swapon", call(libc::SYS_swapon, ", b'/tmp/main.py', 0")),
        ("swapoff", call(libc::SYS_swapoff, ", b'/tmp/main.py'")),
        (
            "quotactl",
            call(libc::SYS_quotactl, ", 0, b'/dev/vda', 0, 0"),
        ),
        (
            "name_to_handle_at",
            call(libc::SYS_name_to_handle_at, ", -100, b'/', b, b, 0"),
        ),
        (
            "request_key",
            call(libc::SYS_request_key, ", b'user', b'x', b'y', -3"),
        ),
        ("keyctl join", call(libc::SYS_keyctl, ", 1, b'mine'")),
        (
            "io_uring_enter",
            call(libc::SYS_io_uring_enter, ", 0, 1, 0, 0, 0"),
        ),
        (
            "io_uring_register",
            call(libc::SYS_io_uring_register, ", 0, 0, 0, 0"),
        ),
        ("fanotify_init", call(libc::SYS_fanotify_init, ", 0, 0")),
        (
            "fanotify_mark",
            call(libc::SYS_fanotify_mark, ", 0, 1, 0, 0, b'/'"),
        ),
        ("acct", call(libc::SYS_acct, ", b'/tmp/main.py'")),
        ("syslog", call(libc::SYS_syslog, ", 3, b, 4096")),
        ("kexec_load", call(libc::SYS_kexec_load, ", 0, 0, 0, 0")),
        ("finit_module", call(libc::SYS_finit_module, ", 0, b'', 0")),
        (
            "delete_module",
            call(libc::SYS_delete_module, ", b'ext4', 0"),
        ),
        ("settimeofday", call(libc::SYS_settimeofday, ", b, 0")),
        ("adjtimex", call(libc::SYS_adjtimex, ", b")),
        ("clock_adjtime", call(libc::SYS_clock_adjtime, ", 0, b")),
        ("sethostname", call(libc::SYS_sethostname, ", b'x', 1")),
        ("setdomainname", call(libc::SYS_setdomainname, ", b'x', 1")),
        ("vhangup", call(libc::SYS_vhangup, "")),
        ("unshare nothing", call(libc::SYS_unshare, ", 0")),
        ("unshare files", call(libc::SYS_unshare, ", 0x400")),
        ("setns to its own", call(libc::SYS_setns, ", 0, 0x10000000")),
    ];
    for (name, bit) in [
        ("clone mount", 0x2_0000_u32),
        ("clone cgroup", 0x200_0000),
        ("clone uts", 0x400_0000),
        ("clone ipc", 0x800_0000),
        ("clone user", 0x1000_0000),
        ("clone pid", 0x2000_0000),
        ("clone net", 0x4000_0000),
        ("clone all", 0x7e02_0000),
    ] {
        all.push((
            name,
            call(libc::SYS_clone, &format!(", {bit} | 17, 0, 0, 0, 0")),
        ));
    }
    if cfg!(target_arch = "x86_64") {
        all.push(("iopl", call(172, ", 3")));
        all.push(("ioperm", call(173, ", 0, 1, 1")));
        all.push(("lookup_dcookie", call(212, ", 0, b, 4096")));
        all.push(("x32 read", "0x40000000, 0, b, 1".into()));
        all.push(("x32 execve", "0x40000000 + 520, 0, 0, 0".into()));
    }
    all
}

/// Calls that are as on a kernel that does not have them.
fn absent() -> String {
    let numbers = [
        libc::SYS_personality,
        libc::SYS_setpriority,
        libc::SYS_ioprio_set,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_migrate_pages,
        libc::SYS_mbind,
        libc::SYS_set_mempolicy,
        libc::SYS_move_pages,
        libc::SYS_remap_file_pages,
        libc::SYS_mlock,
        libc::SYS_mlock2,
        libc::SYS_memfd_secret,
        libc::SYS_shmat,
        libc::SYS_semop,
        libc::SYS_msgsnd,
        libc::SYS_mq_unlink,
        libc::SYS_flock,
        libc::SYS_inotify_add_watch,
        libc::SYS_splice,
        libc::SYS_tee,
        libc::SYS_vmsplice,
        libc::SYS_sync,
        libc::SYS_syncfs,
        libc::SYS_sync_file_range,
        libc::SYS_setuid,
        libc::SYS_setgid,
        libc::SYS_setfsuid,
        libc::SYS_setresuid,
        libc::SYS_capset,
        libc::SYS_seccomp,
        libc::SYS_landlock_create_ruleset,
        libc::SYS_landlock_restrict_self,
        libc::SYS_execveat,
        libc::SYS_clone3,
        libc::SYS_listen,
        libc::SYS_accept4,
        libc::SYS_bind,
        libc::SYS_connect,
        libc::SYS_socket,
        libc::SYS_io_setup,
        libc::SYS_io_submit,
        libc::SYS_setsockopt,
        libc::SYS_sendmsg,
        libc::SYS_sendmmsg,
        // mseal, map_shadow_stack, setxattrat, open_tree_attr, and one that no kernel has.
        462,
        453,
        463,
        467,
        511,
    ];
    let attributes = [
        libc::SYS_setxattr,
        libc::SYS_lgetxattr,
        libc::SYS_getxattr,
        libc::SYS_flistxattr,
        libc::SYS_listxattr,
        libc::SYS_fremovexattr,
        libc::SYS_removexattr,
    ];
    format!(
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nfor e, all in ({}, {numbers:?}), ({}, {attributes:?}):\n  for n in all:\n    a = c.syscall(n, 0, 0, 0, 0, 0)\n    if (a, ctypes.get_errno()) != (-1, e): print(n, a, ctypes.get_errno())\nprint('done')",
        libc::ENOSYS,
        libc::EOPNOTSUPP
    )
}

/// Everything below /proc, opened for reading and for writing.
const PROC: &str = r#"
import os
mine = str(os.getpid())
for folder, folders, files in os.walk("/proc"):
    if folder.count("/") > 6: folders.clear()
    for name in files:
        path = os.path.join(folder, name)
        for how in os.O_WRONLY, os.O_RDWR:
            try: file = os.open(path, how | os.O_NONBLOCK)
            except OSError: continue
            # Its own memory is its own; the open outputs are what they are.
            if not name == "mem" and "/fd" not in folder and "map_files" not in folder: print("writable", path)
            os.close(file)
        if folder.startswith("/proc/1/") or folder == "/proc/1":
            try:
                with open(path, "rb", buffering=0) as file: text = file.read(1 << 16)
            except OSError: continue
            if name in ("environ", "maps", "smaps", "mem", "auxv", "syscall", "stack", "io", "pagemap", "wchan") and text.strip(b"0"): print("readable", path)
for name in "setgroups", "uid_map", "gid_map", "oom_score_adj", "oom_adj", "comm", "clear_refs", "coredump_filter", "timerslack_ns", "loginuid", "attr/current", "sched", "autogroup", "make-it-fail":
    for who in "self", "1", mine, "thread-self":
        try: open("/proc/%s/%s" % (who, name), "w").write("0"); print("wrote", who, name)
        except OSError: pass
for name in "sys", "sysrq-trigger", "kcore", "kmsg", "kallsyms", "keys", "key-users", "locks", "sysvipc", "fs", "irq", "bus", "config.gz", "modules", "mounts/..", "timer_list", "sched_debug", "slabinfo", "vmallocinfo", "stat", "meminfo", "cpuinfo", "uptime", "loadavg", "net/../1/root/etc":
    if os.path.exists("/proc/" + name) and name not in ("mounts/..",): print("there", name)
print("done")
"#;

/// Files that give privileges, and the attempt to use them.
const PRIVILEGED: &str = r#"
import os, stat
for folder, folders, files in os.walk("/"):
    if folder == "/": folders.remove("proc")
    for name in files:
        path = os.path.join(folder, name)
        mode = os.lstat(path).st_mode
        if mode & (stat.S_ISUID | stat.S_ISGID) and not stat.S_ISLNK(mode): print("privileged", path)
for path in "/bin/su", "/usr/bin/sudo", "/usr/bin/newuidmap", "/bin/mount", "/usr/bin/passwd", "/bin/ping":
    if os.path.exists(path): print("there", path)
for call in lambda: os.setuid(0), lambda: os.seteuid(0), lambda: os.setgid(0), lambda: os.initgroups("root", 0), lambda: os.chroot("/tmp"), lambda: os.nice(-20), lambda: os.setpriority(0, 0, -20), lambda: os.sched_setaffinity(0, {0}), lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)):
    pid = os.fork()
    if pid == 0:
        try: call(); print("could", flush=True)
        except OSError: pass
        os._exit(0)
    os.waitpid(pid, 0)
print(os.getresuid(), os.getresgid())
"#;

const PROCESS_SETTINGS: &str = r#"
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
b = ctypes.create_string_buffer(4096)
a = ctypes.addressof(b)
allowed = 1, 2, 3, 15, 16, 38, 39
for n in list(range(80)) + [0x59616d61, 0x53564d41, 0x41555856]:
    for x in 0, 1, a:
        if n not in allowed and c.prctl(n, ctypes.c_ulong(x), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)) != -1: print("prctl", n, x)
for n in range(1, 65): c.prctl(1, n, 0, 0, 0)
c.prctl(15, b"\xff\n) R 1", 0, 0, 0)
print(c.prctl(38, 0, 0, 0, 0), c.prctl(39, 0, 0, 0, 0))
for n in range(0x1001, 0x1013):
    if n not in (0x1002, 0x1001): c.syscall(158, n, a)
# Lists and areas that the kernel reads when a thread ends.
for head in 0, 1, 8, a, 2 ** 47 - 8, 2 ** 63:
    if os.fork() == 0:
        c.syscall(273, ctypes.c_ulong(head), 24)
        c.syscall(218, ctypes.c_ulong(head))
        c.syscall(334, ctypes.c_ulong(head & ~31), 32, 0, 0x53053053)
        os._exit(0)
    os.wait()
print("done")
"#;

const DEVICE_CONTROL: &str = r#"
import fcntl, os, socket
allowed = 0x5401, 0x540F, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451
pair = socket.socketpair()
files = [0, 1, os.open("/dev/null", 2), os.open("/dev/urandom", 2), os.open("/tmp", 0), os.open("/proc/self/ns/user", 0), pair[0].fileno(), os.pidfd_open(os.getpid()) if hasattr(os, "pidfd_open") else 0]
known = [0x5412, 0x541C, 0x540E, 0x5410, 0x5422, 0x5423, 0x8901, 0x8902, 0x8904, 0x8912, 0x8927, 0x89e2, 0xb701, 0xb702, 0xb703, 0xb704, 0xff00, 0xff0b, 0x40086602, 0x80086601, 0x40049409, 0xc0045878, 0xc0045877, 0x40045201, 0x5207, 0x5452, 0xc0502100, 0x2400]
for n in known + list(range(0x5400, 0x5470)):
    for f in files:
        try:
            if n not in allowed: fcntl.ioctl(f, n, b"\0" * 64); print(hex(n), f)
        except OSError: pass
for n in list(range(64)) + list(range(1024, 1050)):
    try:
        if n not in (0, 1, 2, 3, 4, 1030, 1032, 1034): fcntl.fcntl(files[4], n, b"\0" * 32); print("fcntl", n)
    except OSError: pass
print("done")
"#;

/// Machine code, run as a function: `code` in hexadecimal.
fn machine(code: &str) -> String {
    format!(
        "import ctypes, mmap\nm = mmap.mmap(-1, 4096, flags=0x62, prot=7)\nm.write(bytes.fromhex('{code}'))\na = ctypes.addressof(ctypes.c_char.from_buffer(m))\nf = ctypes.CFUNCTYPE(ctypes.c_int)(a)\nprint(f())"
    )
}

pub(super) fn all(arena: &Arena) {
    stage_all(arena, [
        harmless("32 to 39 calls that only attacks make, in children", killing(&forbidden()), "done\n"),
        harmless("40 41 44 calls that do not exist", absent(), "done\n"),
        harmless("42 44 46 all of /proc", PROC, "done\n"),
        harmless("43 44 privileges", PRIVILEGED, "(1000, 1000, 1000) (1000, 1000, 1000)\n"),
        harmless("44 settings of its process", PROCESS_SETTINGS, "-1 1\ndone\n"),
        harmless("device and descriptor control", DEVICE_CONTROL, "done\n"),
        harmless("41 what must work: pairs, threads, event loops", "import asyncio, socket, threading, multiprocessing\na, b = socket.socketpair()\na.send(b'x'); print(b.recv(1))\nasync def f(): return await asyncio.to_thread(lambda: 3)\nprint(asyncio.run(f()))\nq = multiprocessing.get_context('fork').SimpleQueue()\nq.put(4); print(q.get())", "b'x'\n3\n4\n"),
        harmless("45 signals to every number", "import os\nfor n in list(range(2, 5000)) + [2 ** 31 - 1]:\n    if n != os.getpid():\n        for f in (os.kill, os.killpg):\n            try: f(n, 9); print('killed', n)\n            except (OSError, OverflowError): pass\nprint(os.listdir('/proc/self/task'))", "['2']\n"),
        harmless("45 handles on every process", "import os, signal\nfor n in range(1, 400):\n    try: f = os.pidfd_open(n)\n    except OSError: continue\n    if n != os.getpid():\n        try: signal.pidfd_send_signal(f, 9)\n        except OSError: pass\n    print(n)", "1\n2\n"),
        harmless("48 its parent killed and stopped", "import ctypes, os\nfor n in (9, 19, 15, 2, 3, 6, 11, 31, 1):\n    ctypes.CDLL(None).kill(os.getppid(), n)\nprint(os.getppid())", "1\n"),
        harmless("the way up", "import os\nd = os.open('/', 0)\nfor _ in range(50): os.chdir('..')\nprint(os.listdir('/proc/self/cwd/../..') == os.listdir('/'), os.path.exists('/old'))\nfor p in ('/proc/1/root', '/proc/1/cwd', '/proc/2/root/../old', '/proc/self/fd/../../1/fd/0'):\n    try: os.listdir(p); print(p)\n    except OSError: pass", "True False\n").any_output(),
        harmless("links out", "import os\nfor n, t in enumerate(('/etc/shadow', '/proc/1/root/etc/shadow', '../../../etc/shadow', '/old/etc/shadow', '/proc/1/fd/0')):\n    os.symlink(t, '/tmp/%d' % n)\n    try: open('/tmp/%d' % n); print(t)\n    except OSError: pass\nprint('done')", "done\n"),
        harmless("programs by other ways", "import os, sys\nopen('/tmp/x', 'wb').write(open('/proc/self/exe', 'rb').read(4096)); os.chmod('/tmp/x', 0o777)\nfor p in ('/tmp/x', '/boot.pyc', '/dev/null', '/fork.so', '/proc/self/fd/0', '/usr/bin/id', '/bin/sh'):\n    try: os.execv(p, [p])\n    except OSError: pass\nprint('none')", "none\n"),
    ]);
    if cfg!(target_arch = "x86_64") {
        let killed = &[Ending::Forbidden(None), Ending::Signalled(libc::SIGSEGV)];
        stage_all(
            arena,
            [
                attack("39 int 0x80", machine("b814000000cd80c3"), killed),
                // push 0x23; lea rax, [rip + 3]; push rax; retfq; then, as 32-bit code: mov eax, 20; int 0x80
                attack(
                    "39 a switch to 32-bit code",
                    machine("6a23488d05030000005048cbb814000000cd80ebfe"),
                    killed,
                )
                .cpu(500),
                attack(
                    "39 sysenter",
                    machine("b8140000000f34c3"),
                    &[
                        Ending::Forbidden(None),
                        Ending::Signalled(libc::SIGSEGV),
                        Ending::Signalled(libc::SIGILL),
                    ],
                ),
                // The page of old system calls: as the kernel has it, under the filter.
                attack(
                    "39 vsyscall",
                    "import ctypes\nf = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(0xffffffffff600000)\nprint(f(None) in (0, -1, -38))",
                    &[
                        Ending::Exited(0),
                        Ending::Signalled(libc::SIGSEGV),
                        Ending::Forbidden(None),
                    ],
                ),
                attack(
                    "privileged instructions",
                    machine("fac3"),
                    &[Ending::Signalled(libc::SIGSEGV)],
                ),
                attack(
                    "ports",
                    machine("66ba8000ecc3"),
                    &[Ending::Signalled(libc::SIGSEGV)],
                ),
                attack(
                    "a local descriptor table",
                    "import ctypes\nprint(ctypes.CDLL(None).syscall(154, 1, 0, 0))",
                    &[Ending::Exited(0)],
                )
                .prints("-1\n"),
            ],
        );
    }
}
