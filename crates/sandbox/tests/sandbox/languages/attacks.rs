//! What native programs try: the walls are those of Python programs, and here they are met by machine code.

use std::time::Duration;

use rlef_sandbox::{Ending, Limits};

use super::sources::ALL;
use super::{compile, limits, printed, run};
use crate::text;

const HEADS: &str = "#define _GNU_SOURCE\n#include <dirent.h>\n#include <errno.h>\n#include <fcntl.h>\n#include <sched.h>\n\
    #include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n\
    #include <sys/resource.h>\n#include <sys/socket.h>\n#include <sys/stat.h>\n#include <sys/syscall.h>\n\
    #include <sys/time.h>\n#include <sys/wait.h>\n#include <unistd.h>\n";

fn c(body: &str) -> String {
    format!("{HEADS}int main(void) {{\n{body}\nreturn 0; }}\n")
}

/// An honest program afterwards.
fn honest() {
    if let Some(program) = compile("c", ALL[0].sum) {
        assert_eq!(text(&run(&program, "20 22", &limits()).stdout), "42\n");
    }
}

#[test]
fn native_programs_have_the_same_walls() {
    let source = c(
        "FILE *f = fopen(\"/proc/self/status\", \"r\"); char line[300];\n\
        while (fgets(line, sizeof line, f)) if (!strncmp(line, \"Cap\", 3) || !strncmp(line, \"NoNewPrivs\", 10) || !strncmp(line, \"Seccomp:\", 8)) fputs(line, stdout);\n\
        printf(\"%d %d %d %d %d\\n\", getuid(), geteuid(), getgid(), getpid() > 1, getppid());\n\
        fclose(f); for (int i = 0; i < 1000; i++) if (fcntl(i, F_GETFD) != -1) printf(\"fd %d\\n\", i);\n\
        char host[100]; gethostname(host, 100); puts(host);",
    );
    let Some(said) = printed(&source) else {
        return;
    };
    let none = "0000000000000000";
    let caps =
        ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(|c| format!("{c}:\t{none}\n"));
    let wanted = format!(
        "{}NoNewPrivs:\t1\nSeccomp:\t2\n1000 1000 1000 1 1\nfd 0\nfd 1\nfd 2\nsandbox\n",
        caps.concat()
    );
    assert_eq!(said, wanted);
}

#[test]
fn native_programs_see_no_host_file() {
    let source = c(
        "const char *paths[] = {\"/etc/passwd\", \"/etc/hostname\", \"/root\", \"/home\", \"/var\", \"/usr/bin\", \"/bin/sh\", \"/usr/include\", \"/sys\", \"/dev/mem\", \"/proc/1/environ\", \"/proc/1/mem\", \"/proc/sys\", \"/proc/kallsyms\"};\n\
        for (int i = 0; i < 14; i++) { int f = open(paths[i], O_RDONLY); if (f >= 0) printf(\"open %s\\n\", paths[i]); }\n\
        DIR *d = opendir(\"/\"); struct dirent *e; int n = 0; char *names[50];\n\
        while ((e = readdir(d))) if (e->d_name[0] != '.') names[n++] = strdup(e->d_name);\n\
        for (int i = 0; i < n; i++) { const char *known[] = {\"dev\", \"empty\", \"etc\", \"late\", \"lib\", \"lib64\", \"proc\", \"tmp\", \"usr\"}; int ok = 0; for (int k = 0; k < 9; k++) ok |= !strcmp(names[i], known[k]); if (!ok) puts(names[i]); }",
    );
    if let Some(said) = printed(&source) {
        assert_eq!(said, "");
    }
}

#[test]
fn native_programs_write_only_to_tmp_and_start_nothing_from_there() {
    let source = c(
        "const char *paths[] = {\"/x\", \"/usr/x\", \"/dev/x\", \"/etc/x\", \"/proc/self/oom_score_adj\", \"/proc/sys/kernel/hostname\", \"/usr/lib/x\", \"/late/x\", \"/empty/x\"};\n\
        for (int i = 0; i < 9; i++) if (open(paths[i], O_WRONLY | O_CREAT, 0777) >= 0) puts(paths[i]);\n\
        if (open(\"/proc/self/exe\", O_RDWR) >= 0) puts(\"own binary\");\n\
        int own = open(\"/proc/self/exe\", O_RDONLY), copy = open(\"/tmp/copy\", O_CREAT | O_WRONLY, 0777); char b[65536]; ssize_t n; while ((n = read(own, b, sizeof b)) > 0) if (write(copy, b, n) != n) return 1;\n\
        close(copy); char *a[] = {\"copy\", 0}; execv(\"/tmp/copy\", a); printf(\"%d\\n\", errno);\n\
        void *m = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(\"/tmp/copy\", O_RDONLY), 0); printf(\"%d %d\\n\", m == MAP_FAILED, errno);\n\
        long made = syscall(SYS_memfd_create, \"x\", 0); printf(\"%ld %d\\n\", made, errno);",
    );
    if let Some(said) = printed(&source) {
        let (access, denied, absent) = (libc::EACCES, libc::EPERM, libc::ENOSYS);
        assert_eq!(said, format!("{access}\n1 {denied}\n-1 {absent}\n"));
    }
}

#[test]
fn forbidden_calls_kill_native_programs_too() {
    for call in [
        "SYS_ptrace, 0, 0, 0, 0",
        "SYS_unshare, 0x10000000",
        "SYS_clone, 0x10000011, 0, 0, 0, 0",
        "SYS_mount, 0, \"/tmp\", \"tmpfs\", 0, 0",
        "SYS_setns, 0, 0",
        "SYS_bpf, 0, 0, 0",
        "SYS_io_uring_setup, 4, 0",
        "SYS_keyctl, 0, -3, 0",
        "SYS_process_vm_readv, 1, 0, 0, 0, 0, 0",
        "SYS_perf_event_open, 0, 0, -1, -1, 0",
        "SYS_userfaultfd, 0",
    ] {
        let source = c(&format!("syscall({call}); puts(\"survived\");"));
        if let Some(program) = compile("c", &source) {
            let ending = run(&program, "", &limits()).ending;
            assert!(matches!(ending, Ending::Forbidden(_)), "{call}: {ending:?}");
        }
    }
    honest();
}

#[test]
fn native_programs_have_no_network() {
    let source = c(
        "int kinds[] = {AF_UNIX, AF_INET, AF_INET6, 16, 17, 40}; for (int i = 0; i < 6; i++) { int made = socket(kinds[i], SOCK_STREAM, 0); printf(\"%d \", made); } printf(\"%d\\n\", errno);",
    );
    if let Some(said) = printed(&source) {
        assert_eq!(said, format!("-1 -1 -1 -1 -1 -1 {}\n", libc::ENOSYS));
    }
}

#[test]
fn fork_bombs_of_machine_code_end_with_the_run() {
    let limits = Limits {
        cpu: Duration::from_millis(500),
        wall: Duration::from_secs(5),
        ..limits()
    };
    let before = processes();
    for body in [
        "for (;;) fork();",
        "for (;;) if (fork() == 0) { setsid(); for (;;) fork(); }",
        "for (;;) { if (fork() == 0) for (;;) sched_yield(); }",
        "signal(SIGCHLD, SIG_IGN); for (;;) { if (fork() == 0) _exit(0); }",
        "for (;;) if (fork()) _exit(0);",
    ] {
        if let Some(program) = compile("c", &c(body)) {
            let outcome = run(&program, "", &limits);
            assert!(
                matches!(
                    outcome.ending,
                    Ending::CpuLimit | Ending::WallLimit | Ending::Exited(0)
                ),
                "{body}: {:?}",
                outcome.ending
            );
            honest();
        }
    }
    let source = c(
        "int n = 1; while (n < 100) { pid_t p = fork(); if (p < 0) break; if (p == 0) pause(); n++; } printf(\"%d\\n\", n);",
    );
    if let Some(said) = printed(&source) {
        assert_eq!(said, "16\n");
        // None of them is there any more: what is new belongs to other tests.
        assert!(processes() < before + 64);
    }
}

/// Processes of all users that are called as a started binary is.
fn processes() -> usize {
    let all = std::fs::read_dir("/proc").expect("there").flatten();
    let called = |p: &std::fs::DirEntry| {
        std::fs::read_to_string(p.path().join("comm")).is_ok_and(|c| c.trim() == "3")
    };
    all.filter(called).count()
}

#[test]
fn memory_in_other_forms_is_bounded() {
    let limits = Limits {
        memory_bytes: 64 << 20,
        cpu: Duration::from_secs(10),
        ..limits()
    };
    for (name, body) in [
        (
            "maps",
            "for (;;) { char *p = mmap(0, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); if (p == MAP_FAILED) return 9; memset(p, 1, 1 << 20); }",
        ),
        (
            "shared maps",
            "for (;;) { char *p = mmap(0, 1 << 20, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0); if (p == MAP_FAILED) return 9; memset(p, 1, 1 << 20); }",
        ),
        (
            "brk",
            "for (;;) { char *p = sbrk(1 << 20); if (p == (void *)-1) return 9; memset(p, 1, 1 << 20); }",
        ),
        (
            "stack",
            "struct rlimit r = {RLIM_INFINITY, RLIM_INFINITY}; if (setrlimit(RLIMIT_STACK, &r) == 0) puts(\"raised\"); for (;;) { volatile char *p = alloca(1 << 16); memset((char *)p, 1, 1 << 16); }",
        ),
        (
            "children",
            "for (int i = 0; i < 8; i++) if (fork() == 0) { char *p = malloc(40 << 20); if (!p) return 9; memset(p, 1, 40 << 20); pause(); } while (wait(0) > 0) ; return 9;",
        ),
    ] {
        let Some(program) = compile("c", &c(body)) else {
            continue;
        };
        let outcome = run(&program, "", &limits);
        let crash = Ending::Signalled(libc::SIGSEGV);
        assert!(
            matches!(outcome.ending, Ending::MemoryLimit | Ending::Exited(9))
                || outcome.ending == crash && name == "stack",
            "{name}: {:?}",
            outcome.ending
        );
        assert!(!text(&outcome.stdout).contains("raised"));
        honest();
    }
}

#[test]
fn nothing_is_left_for_the_next_run_of_the_same_program() {
    // Prints what it finds of an earlier run, and leaves all that it can: files, and marks on its own binary.
    let source = c(
        "struct stat s; int own = open(\"/proc/self/exe\", O_RDONLY); fstat(own, &s);\n\
        printf(\"%d %o %ld \", access(\"/tmp/left\", F_OK), s.st_mode & 0777, (long)s.st_mtime == 12345);\n\
        DIR *d = opendir(\"/tmp\"); int n = 0; while (readdir(d)) n++; printf(\"%d\\n\", n); fflush(stdout);\n\
        close(open(\"/tmp/left\", O_CREAT | O_WRONLY, 0666));\n\
        fchmod(own, 0); chmod(\"/proc/self/exe\", 0700); struct timespec t[2] = {{12345, 0}, {12345, 0}}; futimens(own, t);\n\
        if (fork() == 0) { setsid(); if (fork() == 0) for (;;) sleep(1); }",
    );
    let Some(program) = compile("c", &source) else {
        return;
    };
    for _ in 0..12 {
        let outcome = run(&program, "", &limits());
        assert_eq!(
            text(&outcome.stdout),
            "-1 555 0 2\n",
            "{:?}",
            outcome.ending
        );
    }
}

#[test]
fn a_native_program_cannot_reach_what_watches_over_it() {
    for (body, wanted) in [
        (
            "kill(1, SIGKILL); kill(getppid(), SIGTERM); puts(\"here\");",
            "here\n",
        ),
        ("printf(\"%d\", open(\"/proc/1/mem\", O_RDWR));", "-1"),
        ("printf(\"%d\", open(\"/proc/1/fd/0\", O_RDWR));", "-1"),
    ] {
        let source = c(body);
        if let Some(said) = printed(&source) {
            assert_eq!(said, wanted, "{body}");
        }
    }
    // Killing everybody kills the program itself, and nobody else.
    if let Some(program) = compile("c", &c("kill(-1, SIGKILL); pause();")) {
        let limits = Limits {
            wall: Duration::from_secs(3),
            ..limits()
        };
        let ending = run(&program, "", &limits).ending;
        assert!(
            matches!(ending, Ending::Signalled(_) | Ending::WallLimit),
            "{ending:?}"
        );
    }
    honest();
}

#[test]
fn programs_of_other_runtimes_meet_the_same_walls() {
    for (language, source, wanted) in [
        (
            "java",
            "import java.io.*;\npublic class Main { public static void main(String[] a) { for (String p : new String[] {\"/etc/passwd\", \"/root\", \"/home\"}) System.out.print(new File(p).exists()); try { new java.net.Socket(\"127.0.0.1\", 80); } catch (Throwable e) { System.out.print(\" none\"); } try { new ProcessBuilder(\"/bin/sh\", \"-c\", \"true\").start(); } catch (IOException e) { System.out.println(\" none\"); } } }",
            "falsefalsefalse none none\n",
        ),
        (
            "go",
            "package main\nimport (\"fmt\"; \"net\"; \"os\"; \"os/exec\")\nfunc main() { _, a := os.ReadFile(\"/etc/passwd\"); _, b := net.Dial(\"tcp\", \"127.0.0.1:80\"); c := exec.Command(\"/bin/sh\").Run(); fmt.Println(a != nil, b != nil, c != nil) }",
            "true true true\n",
        ),
        (
            "javascript",
            "const fs = require('fs');\nconst gone = (f) => { try { f(); return false; } catch (e) { return true; } };\nconsole.log(gone(() => fs.readFileSync('/etc/passwd')), gone(() => fs.writeFileSync('/usr/x', '')), require('child_process').spawnSync('/bin/sh').error !== undefined);\nrequire('net').connect(80, '127.0.0.1').on('error', () => console.log('none'));",
            "true true true\nnone\n",
        ),
        (
            "rust",
            "fn main() { println!(\"{} {} {}\", std::fs::read(\"/etc/passwd\").is_err(), std::net::TcpStream::connect(\"127.0.0.1:80\").is_err(), std::process::Command::new(\"/bin/sh\").spawn().is_err()); }",
            "true true true\n",
        ),
    ] {
        if let Some(program) = compile(language, source) {
            let outcome = run(&program, "", &limits());
            assert_eq!(
                text(&outcome.stdout),
                wanted,
                "{language}: {:?} {}",
                outcome.ending,
                text(&outcome.stderr)
            );
        }
    }
}

#[test]
fn odd_binaries_are_no_fault() {
    for (name, source) in [
        (
            "a loader that is not there",
            "const char loader[] __attribute__((section(\".interp\"))) = \"/no/such/loader\";\nint main(void) { return 0; }",
        ),
        (
            "a folder for a loader",
            "const char loader[] __attribute__((section(\".interp\"))) = \"/tmp\";\nint main(void) { return 0; }",
        ),
        (
            "a loader that is no program",
            "const char loader[] __attribute__((section(\".interp\"))) = \"/etc/ld.so.cache\";\nint main(void) { return 0; }",
        ),
        (
            "more than any memory",
            "static char a[1L << 46];\nint main(int n, char **v) { return a[n << 20]; }",
        ),
    ] {
        let Some(made) = super::try_compile("c", source) else {
            return;
        };
        // What does not even compile is told as that.
        if let rlef_sandbox::Compiled::Program(program) = made {
            // Linkers differ in what they make of it; whatever it is, `run` takes no fault for an answer.
            let ending = run(&program, "", &limits()).ending;
            println!("{name}: {ending:?}");
        }
        honest();
    }
}
