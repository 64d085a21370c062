//! What a hostile program tries: calls, network, host files, writes. Each test is named in SECURITY.md.

use rlef_sandbox::{Ending, Limits};

use crate::{limits, printed, run, run_with, sandbox, text};

/// `call(number, …)` through libc, printing the answer if the program survives it.
fn call(numbers: &str) -> Ending {
    let source = format!(
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nb = ctypes.create_string_buffer(4096)\nprint(c.syscall({numbers}), ctypes.get_errno())"
    );
    run(&source).ending
}

#[test]
fn forbidden_calls_kill() {
    let numbers = [
        ("ptrace", format!("{}, 0, 0, 0, 0", libc::SYS_ptrace)),
        (
            "process_vm_readv",
            format!("{}, 1, 0, 0, 0, 0, 0", libc::SYS_process_vm_readv),
        ),
        (
            "mount",
            format!("{}, 0, b'/tmp', b'tmpfs', 0, 0", libc::SYS_mount),
        ),
        ("umount2", format!("{}, b'/proc', 2", libc::SYS_umount2)),
        ("fsopen", format!("{}, b'tmpfs', 0", libc::SYS_fsopen)),
        (
            "open_tree",
            format!("{}, -100, b'/', 1", libc::SYS_open_tree),
        ),
        (
            "pivot_root",
            format!("{}, b'/', b'/'", libc::SYS_pivot_root),
        ),
        ("chroot", format!("{}, b'/tmp'", libc::SYS_chroot)),
        ("unshare", format!("{}, 0x10000000", libc::SYS_unshare)),
        ("setns", format!("{}, 0, 0", libc::SYS_setns)),
        (
            "clone(NEWUSER)",
            format!("{}, 0x10000011, 0, 0, 0, 0", libc::SYS_clone),
        ),
        (
            "clone(NEWNET)",
            format!("{}, 0x40000011, 0, 0, 0, 0", libc::SYS_clone),
        ),
        ("keyctl", format!("{}, 0, -3, 0", libc::SYS_keyctl)),
        (
            "add_key",
            format!("{}, b'user', b'k', b'v', 1, -3", libc::SYS_add_key),
        ),
        ("bpf", format!("{}, 0, b, 64", libc::SYS_bpf)),
        (
            "io_uring_setup",
            format!("{}, 4, b", libc::SYS_io_uring_setup),
        ),
        (
            "perf_event_open",
            format!("{}, b, 0, -1, -1, 0", libc::SYS_perf_event_open),
        ),
        ("userfaultfd", format!("{}, 0", libc::SYS_userfaultfd)),
        ("reboot", format!("{}, 0, 0, 0, 0", libc::SYS_reboot)),
        ("init_module", format!("{}, b, 0, b", libc::SYS_init_module)),
        (
            "open_by_handle_at",
            format!("{}, -100, b, 0", libc::SYS_open_by_handle_at),
        ),
        (
            "clock_settime",
            format!("{}, 0, b", libc::SYS_clock_settime),
        ),
    ];
    for (name, numbers) in numbers {
        assert!(matches!(call(&numbers), Ending::Forbidden(_)), "{name}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_other_architectures_kill() {
    // x32: the same table with bit 30 set.
    assert!(matches!(call("0x40000000 + 39"), Ending::Forbidden(_)));
    // 32-bit: mov eax, 20 (getpid); int 0x80; ret
    let source = "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(b'\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3')\n\
        f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\nprint(f())";
    let ending = run(source).ending;
    // A kernel without 32-bit support ends it with a fault of its own.
    assert!(
        matches!(
            ending,
            Ending::Forbidden(_) | Ending::Signalled(libc::SIGSEGV)
        ),
        "{ending:?}"
    );
}

#[test]
fn calls_that_are_not_listed_do_not_exist() {
    let numbers = [
        libc::SYS_clone3,
        libc::SYS_memfd_create,
        libc::SYS_flock,
        libc::SYS_inotify_init1,
        libc::SYS_shmget,
        libc::SYS_semget,
        libc::SYS_msgget,
        libc::SYS_mq_open,
        libc::SYS_socket,
        libc::SYS_bind,
        libc::SYS_connect,
        libc::SYS_execveat,
        libc::SYS_setuid,
        libc::SYS_setgroups,
        libc::SYS_capset,
        libc::SYS_personality,
        libc::SYS_seccomp,
        libc::SYS_mlockall,
        libc::SYS_setpriority,
        libc::SYS_sched_setscheduler,
        libc::SYS_vmsplice,
        libc::SYS_io_setup,
        libc::SYS_sync,
        999,
    ];
    let source = format!(
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nfor n in {numbers:?}:\n    a = c.syscall(n, 0, 0, 0, 0, 0)\n    if (a, ctypes.get_errno()) != (-1, {}): print(n, a, ctypes.get_errno())",
        libc::ENOSYS
    );
    assert_eq!(printed(&source), "");
    // Locks on files that all runs share would let two runs signal to each other.
    let locks = "import fcntl\nf = open('/boot.pyc')\nfor n in (6, 7, 37, 38, 1024, 1026):\n    try: fcntl.fcntl(f, n, b'\\0' * 32); print(n)\n    except OSError: pass";
    assert_eq!(printed(locks), "");
}

#[test]
fn there_is_no_network() {
    let source = "import socket\nfor f in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 16, 17, 40):\n    for t in (1, 2, 3):\n        try: socket.socket(f, t); print('made', f, t)\n        except OSError: pass\n\
        try: socket.create_connection(('127.0.0.1', 80), 1); print('connected')\nexcept OSError: pass\n\
        try: socket.getaddrinfo('localhost', 80); print('resolved')\nexcept OSError: pass\n\
        print(*[l.split(':')[0].strip() for l in list(open('/proc/self/net/dev'))[2:]])";
    assert_eq!(printed(source), "lo\n");
}

#[test]
fn host_files_are_not_there() {
    let home = std::env::var("HOME").unwrap_or("/root".into());
    let secret = tempfile::NamedTempFile::new().expect("a file in the host's /tmp");
    let here = std::env::current_dir().expect("known");
    let paths = [
        "/etc/passwd",
        "/etc/shadow",
        "/etc/hosts",
        "/etc/hostname",
        "/bin/sh",
        "/usr/bin/env",
        "/var",
        "/home",
        "/sys",
        "/run",
        "/dev/shm/..%2f",
        "/dev/tty",
        "/dev/mem",
        "/dev/kmsg",
        "/proc/sys",
        "/proc/kcore",
        "/proc/kallsyms",
        "/proc/cmdline",
        "/proc/sysrq-trigger",
        "/proc/1/root/etc",
        "/proc/self/root/etc/passwd",
        "/old",
        &format!("{home}/.bashrc"),
        &format!("{home}/.ssh"),
        &format!("{home}/.cargo"),
    ]
    .map(str::to_owned);
    let paths: Vec<String> = paths
        .into_iter()
        .chain([
            secret.path().display().to_string(),
            here.display().to_string(),
        ])
        // The tests may be started in a folder that is everywhere.
        .filter(|path| path != "/")
        .collect();
    let source = format!(
        "import os\nfor p in {paths:?}:\n    try: os.stat(p); print('there:', p)\n    except OSError: pass\nprint(sorted(os.listdir('/tmp')))"
    );
    assert_eq!(printed(&source), "['main.py']\n");
}

#[test]
fn only_what_the_interpreter_needs_is_there() {
    // Every regular file that can be found belongs to the interpreter, its libraries or the sandbox itself.
    let source = "import os, sys, sysconfig\nstdlib = {os.path.realpath(sysconfig.get_path(n)) for n in ('stdlib', 'platstdlib')}\n\
        ok = {'/boot.pyc', '/tmp/main.py', '/etc/ld.so.cache', os.path.realpath(sys.executable)}\n\
        for d, ds, fs in os.walk('/'):\n    if d == '/proc': ds.clear(); continue\n    \
        for f in fs:\n        p = os.path.join(d, f)\n        if os.path.islink(p) or p in ok or any(p.startswith(s + '/') for s in stdlib): continue\n        \
        if '.so' not in f and not f.startswith('ld-') and not d.startswith('/dev') and not f.endswith('.zip'): print(p)\n\
        for s in stdlib:\n    for n in ('site-packages', 'dist-packages'):\n        p = os.path.join(s, n)\n        if os.path.isdir(p) and os.listdir(p): print(p)";
    assert_eq!(printed(source), "");
}

#[test]
fn nothing_but_tmp_can_be_written() {
    // Every folder and file is tried, with the mode bits opened first where the program may.
    let source = "import os\nbad = []\n\
        def attempt(p, f, *a):\n    try: f(*a); bad.append((f.__name__, p))\n    except OSError: pass\n\
        for d, ds, fs in os.walk('/'):\n    if d == '/': ds[:] = [x for x in ds if x not in ('tmp', 'proc')]\n    \
        attempt(d, os.chmod, d, 0o777); attempt(d, os.mkdir, d + '/new'); attempt(d, os.symlink, '/etc/shadow', d + '/link'); attempt(d, os.mkfifo, d + '/fifo'); attempt(d, os.mknod, d + '/node'); attempt(d, os.utime, d)\n    \
        attempt(d, lambda: open(d + '/file', 'w'))\n    \
        for f in fs:\n        p = os.path.join(d, f)\n        if os.path.islink(p) or p.startswith('/dev/'): attempt(p, os.unlink, p); continue\n        \
        attempt(p, os.chmod, p, 0o777); attempt(p, os.unlink, p); attempt(p, os.truncate, p, 0); attempt(p, lambda: open(p, 'a')); attempt(p, os.rename, p, p + 'x'); attempt(p, os.link, p, '/tmp/l')\n\
        print(bad[:20])\n\
        for p in ('/proc/self/oom_score_adj', '/proc/self/uid_map', '/proc/self/setgroups', '/proc/1/mem', '/proc/self/comm', '/proc/1/oom_score_adj'): attempt(p, lambda: open(p, 'w').write('1'))\n\
        print(bad[:20])\n\
        open('/tmp/mine', 'w').write('x'); os.mkdir('/tmp/folder'); print(os.listdir('/tmp/folder'))";
    let outcome = run_with(
        source,
        b"",
        &Limits {
            cpu: std::time::Duration::from_secs(20),
            wall: std::time::Duration::from_secs(60),
            ..limits()
        },
    );
    assert_eq!(
        (outcome.ending, text(&outcome.stdout)),
        (Ending::Exited(0), "[]\n[]\n[]\n".into()),
        "{}",
        text(&outcome.stderr)
    );
}

#[test]
fn devices_cannot_be_made_nor_programs_started_from_tmp() {
    let source = "import os, stat\ntry: os.mknod('/tmp/null', stat.S_IFCHR | 0o666, os.makedev(1, 3)); print('made')\nexcept OSError: pass\n\
        open('/tmp/x', 'w').write('#!' + os.path.realpath('/proc/self/exe') + '\\nprint(1)'); os.chmod('/tmp/x', 0o4777)\n\
        try: os.execv('/tmp/x', ['x'])\nexcept OSError as e: print(e.errno)";
    assert_eq!(printed(source), format!("{}\n", libc::EACCES));
}

#[test]
fn the_program_has_no_privileges() {
    let source = "import os\ns = dict(l.rstrip('\\n').split(':\\t', 1) for l in open('/proc/self/status') if ':\\t' in l)\n\
        print(*[int(s[k], 16) for k in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')], s['NoNewPrivs'], s['Seccomp'], os.getresuid(), os.getresgid(), os.getgroups())\n\
        print(open('/proc/self/uid_map').read().split()[0::2], os.uname().nodename)\n\
        for f in (lambda: os.setuid(0), lambda: os.nice(-1), lambda: os.setgroups([0]), lambda: os.chown('/tmp/main.py', 0, 0)):\n    try: f(); print('could')\n    except OSError: pass";
    assert_eq!(
        printed(source),
        "0 0 0 0 0 1 2 (1000, 1000, 1000) (1000, 1000, 1000) []\n['1000', '1'] sandbox\n"
    );
}

#[test]
fn the_host_user_is_never_root() {
    let detail = sandbox()
        .protections()
        .into_iter()
        .find(|p| p.name == "unprivileged user")
        .map(|p| p.detail);
    assert!(
        detail
            .as_ref()
            .is_some_and(|d| d.starts_with("host user ") && !d.starts_with("host user 0,")),
        "{detail:?}"
    );
}

#[test]
fn all_protections_are_in_force_and_told() {
    let protections = sandbox().protections();
    for name in [
        "user namespace",
        "mount namespace",
        "pid namespace",
        "network namespace",
        "ipc namespace",
        "uts namespace",
        "private root",
        "private /proc",
        "no capabilities",
        "no new privileges",
        "system-call filter",
        "unprivileged user",
    ] {
        let found = protections.iter().find(|p| p.name == name);
        assert!(
            found.is_some_and(|p| p.in_force && p.required && !p.detail.is_empty()),
            "{name}: {found:?}"
        );
    }
}

/// What only Landlock refuses: a signal to the run's first process, which the kernel would take and drop, as for every
/// first process of a namespace.
#[test]
fn the_second_wall_stands_behind_the_first() {
    // SAFETY: asks for the version only.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0_usize, 0_usize, 1_u32) };
    let protections = sandbox().protections();
    let told = protections.iter().find(|p| p.name.starts_with("Landlock"));
    assert!(
        told.is_some_and(|p| p.in_force == (version >= 2) && !p.required),
        "version {version}: {told:?}"
    );
    let source = "import os, time\n\
        try:\n    os.kill(1, 0)\n    print('signalled')\n\
        except PermissionError:\n    print('refused')\n\
        child = os.fork()\n\
        if child == 0:\n    time.sleep(100)\n\
        os.kill(child, 9)\nprint(os.waitpid(child, 0)[1])\n\
        for name in '/dev/null', '/dev/zero', '/tmp/f', '/dev/shm/g', '/dev/stdout':\n    \
            with open(name, 'w') as f: f.write('')\n\
        os.mkdir('d')\nos.rename('f', 'd/f')\nos.link('d/f', 'h')\nos.truncate('h', 3)\nprint(os.listdir('d'))";
    let signal = if version >= 6 { "refused" } else { "signalled" };
    assert_eq!(printed(source), format!("{signal}\n9\n['f']\n"));
}

#[test]
fn only_three_descriptors_are_open() {
    let source = "import os\nopen_ones = []\nfor n in range(256):\n    try: os.fstat(n); open_ones.append(n)\n    except OSError: pass\nprint(open_ones)\n\
        for n in range(3):\n    try: print(os.lseek(n, 0, 1))\n    except OSError as e: print(e.errno)\n\
        try: os.write(0, b'x'); print('stdin written')\nexcept OSError: pass\n\
        try: os.ftruncate(0, 0); print('stdin cut')\nexcept OSError: pass\n\
        try: open('/dev/stdin', 'r+b', buffering=0).write(b'x'); print('stdin written by name')\nexcept OSError: pass";
    let outcome = run_with(source, b"some input", &limits());
    assert_eq!(
        text(&outcome.stdout),
        format!("[0, 1, 2]\n0\n{0}\n{0}\n", libc::ESPIPE),
        "{}",
        text(&outcome.stderr)
    );
}
