//! Files, descriptors and what hangs on them: rows 25 and 26 of the catalogue and more of their kind.

use rlef_sandbox::Ending;

use super::{Arena, attack, harmless, stage_all, stage_group};

#[test]
fn files_and_descriptors_do_no_harm() {
    stage_group("files");
}

/// `name` of each call in `calls` (Python expressions) that is not refused.
fn refused(calls: &[(&str, &str)]) -> String {
    let mut source = String::from(
        "import ctypes, fcntl, os, socket, stat, mmap\nc = ctypes.CDLL(None, use_errno=True)\nopen('/tmp/f', 'w').close()\nf = os.open('/tmp/f', os.O_RDWR)\n",
    );
    for (name, call) in calls {
        source.push_str(&format!(
            "try:\n    if {call} not in (-1, False): print('did', '{name}')\nexcept (OSError, ValueError): pass\n"
        ));
    }
    source
}

pub(super) fn all(arena: &Arena) {
    let failed = &[Ending::Exited(1)];
    stage_all(
        arena,
        [
            attack(
                "25 small files",
                "for i in range(100_000): open('/tmp/%d' % i, 'w').close()",
                failed,
            ),
            attack(
                "25 folders",
                "import os\nfor i in range(100_000): os.mkdir('/tmp/%d' % i)",
                failed,
            ),
            attack(
                "25 links",
                "import os\nfor i in range(100_000): os.symlink('x' * 4000, '/tmp/%d' % i)",
                failed,
            ),
            harmless(
                "25 names of one file",
                "import os\nn = 0\ntry:\n    while n < 100_000: os.link('/tmp/main.py', '/tmp/%d' % n); n += 1\nexcept OSError: pass\nprint(n < 100_000)",
                "True\n",
            ),
            attack(
                "a folder in a folder in a folder",
                "import os\nwhile True:\n    os.mkdir('d'); os.chdir('d')",
                failed,
            ),
            harmless(
                "a deep folder that moves",
                "import os\nfor _ in range(1000): os.mkdir('d'); os.chdir('d')\nos.rename('/tmp/d/d', '/tmp/e')\nfor n in range(200): os.rename('/tmp/e', '/tmp/d/x') ; os.rename('/tmp/d/x', '/tmp/e')\nprint('moved')",
                "moved\n",
            ),
            harmless(
                "long names",
                "import os\nfor n in range(3000): open('/tmp/' + str(n).rjust(255, 'n'), 'w').close()\nprint(len(os.listdir('/tmp')))",
                "3001\n",
            ),
            attack(
                "a file without end",
                "f = open('/tmp/f', 'wb', 0)\nwhile True: f.write(bytes(1 << 20))",
                failed,
            ),
            attack(
                "a file without end, past every signal",
                "import signal, os\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nos.truncate('/tmp/main.py', 1 << 40)",
                &[Ending::Signalled(25)],
            ),
            harmless(
                "files full of holes",
                "import os\nf = os.open('/tmp/f', os.O_RDWR | os.O_CREAT)\nos.ftruncate(f, 64 << 20)\nfor i in range(0, 64 << 20, 1 << 20): os.pwrite(f, b'x', i)\ntry: os.ftruncate(f, 1 << 50); print('cut')\nexcept OSError: print('no')\ntry: os.posix_fallocate(f, 0, 1 << 40); print('filled')\nexcept OSError: print('no')",
                "no\nno\n",
            ),
            attack("26 descriptors", "import os\nwhile True: os.dup(0)", failed),
            attack(
                "26 event counters",
                "import ctypes, os\nc = ctypes.CDLL(None)\nwhile c.eventfd(0, 0) >= 0: pass\nopen('/dev/null')",
                failed,
            ),
            attack(
                "26 epoll of epoll",
                "import select\nx = [select.epoll()]\nwhile True:\n    x.append(select.epoll())\n    for y in x[:-1]:\n        try: x[-1].register(y)\n        except (FileExistsError, OSError) as e:\n            if e.errno == 24: raise",
                failed,
            ),
            attack(
                "26 timers",
                "import ctypes, os\nc = ctypes.CDLL(None)\nwhile c.timerfd_create(1, 0) >= 0: pass\nt = ctypes.c_void_p()\nn = 0\nwhile c.syscall(222, 1, 0, ctypes.byref(t)) == 0 and n < 10 ** 6: n += 1\nassert n < 10 ** 6\nopen('/dev/null')",
                failed,
            ),
            harmless(
                "descriptors on their way, in a ring, with stdout among them",
                "import socket, array\n\
            x = []\nfor _ in range(20):\n    a, b = socket.socketpair(); c, d = socket.socketpair()\n    \
            try:\n        send = lambda s, *f: s.sendmsg([b'x'], [(1, 1, array.array('i', f))])\n        send(a, c.fileno(), 1); send(c, a.fileno(), 1, 2); send(b, d.fileno(), 0); send(d, b.fileno())\n        x += [a, b, c, d]; print('ring')\n    except OSError: pass\nprint('done')",
                "done\n",
            ),
            harmless(
                "times of what all share",
                "import os\nfor d in '/', '/dev', '/usr', '/proc':\n    for n in [''] + os.listdir(d):\n        p = os.path.join(d, n)\n        if p in ('/tmp', '/dev/stdin', '/dev/stdout', '/dev/stderr', '/dev/fd', '/dev/shm'): continue\n        for t in (None, (0, 0)):\n            try: os.utime(p, t); print('set', p, t)\n            except OSError: pass\nopen('/dev/null', 'w').write('x'); print(open('/dev/zero', 'rb').read(1))",
                "b'\\x00'\n",
            ),
            harmless(
                "descriptors beyond the limit, on their way",
                "import socket, array\na, b = socket.socketpair(1, 2)\na.setblocking(False)\nn = 0\ntry:\n    while n < 10 ** 5: a.sendmsg([b'x'], [(1, 1, array.array('i', [0] * 200))]); n += 200\nexcept OSError: pass\nprint(n < 10 ** 5)",
                "True\n",
            ),
            harmless(
                "a watch on what all share",
                refused(&[
                    ("inotify", "c.inotify_init()"),
                    ("fanotify", "0 and c.fanotify_init(0, 0)"),
                    (
                        "dnotify",
                        "fcntl.fcntl(os.open('/usr', 0), 1026, 0x80000001)",
                    ),
                    ("lease", "fcntl.fcntl(f, 1024, 0)"),
                    ("lock", "fcntl.fcntl(f, 6, b'\\0' * 32)"),
                    ("open file lock", "fcntl.fcntl(f, 37, b'\\0' * 32)"),
                    ("flock", "fcntl.flock(f, 2)"),
                    ("lockf", "fcntl.lockf(f, 2)"),
                    ("owner", "fcntl.fcntl(f, 8, 1)"),
                    ("signal", "fcntl.fcntl(f, 10, 9)"),
                    ("seals", "fcntl.fcntl(0, 1033, 0)"),
                    ("hint", "fcntl.fcntl(f, 1036, b'\\0' * 8)"),
                ]),
                "",
            ),
            harmless(
                "a mandatory lock",
                "import os, fcntl\nopen('/tmp/f', 'w').close(); os.chmod('/tmp/f', 0o2644)\ntry: fcntl.lockf(open('/tmp/f', 'w'), 2); print('locked')\nexcept OSError: print('no')",
                "no\n",
            ),
            harmless(
                "extended attributes and flags",
                refused(&[
                    ("user", "os.setxattr('/tmp/f', 'user.x', b'x')"),
                    ("trusted", "os.setxattr('/tmp/f', 'trusted.x', b'x')"),
                    (
                        "capability",
                        "os.setxattr('/tmp/f', 'security.capability', b'x' * 20)",
                    ),
                    ("on stdin", "os.setxattr(0, 'user.x', b'x')"),
                    (
                        "immutable",
                        "fcntl.ioctl(f, 0x40086602, b'\\x10' + b'\\0' * 7)",
                    ),
                    ("clone", "fcntl.ioctl(f, 0x40049409, 0)"),
                    ("label", "os.getxattr('/boot.pyc', 'security.selinux')"),
                ]),
                "",
            ),
            harmless(
                "special files",
                refused(&[
                    (
                        "block device",
                        "os.mknod('/tmp/d', stat.S_IFBLK | 0o666, os.makedev(8, 0)) or 1",
                    ),
                    (
                        "memory",
                        "os.mknod('/tmp/m', stat.S_IFCHR | 0o666, os.makedev(1, 1)) or 1",
                    ),
                    (
                        "whiteout",
                        "os.mknod('/tmp/w', stat.S_IFCHR, 0) and os.open('/tmp/w', 0)",
                    ),
                    ("terminal", "os.open('/dev/tty', 2)"),
                    ("pseudo terminals", "os.openpty()"),
                    ("console", "os.open('/dev/console', 2)"),
                    (
                        "random pool",
                        "fcntl.ioctl(os.open('/dev/urandom', 2), 0x40045201, b'\\0' * 4)",
                    ),
                    ("loop", "os.open('/dev/loop-control', 2)"),
                    ("fuse", "os.open('/dev/fuse', 2)"),
                    ("kvm", "os.open('/dev/kvm', 2)"),
                    ("userfaultfd", "os.open('/dev/userfaultfd', 2)"),
                    (
                        "devices by path",
                        "os.open('/proc/self/root/dev/../dev/sda', 0)",
                    ),
                ]),
                "",
            ),
            harmless(
                "a socket's name",
                "import os, stat\nos.mknod('/tmp/s', stat.S_IFSOCK | 0o777)\nimport socket\na, b = socket.socketpair(1, 2)\ntry: a.setsockopt(1, 16, 1); b.setsockopt(1, 16, 1)\nexcept OSError: print('no')\ntry: a.send(b'x')\nexcept OSError: pass\n\
            print(repr(a.getsockname()), repr(b.getsockname()))\nfor n in ('/tmp/s', '\\0x', ''):\n    try: a.sendto(b'x', n); print('sent', repr(n))\n    except OSError: pass",
                "no\n'' ''\n",
            ),
            harmless(
                "links that race with what they point to",
                "import os, threading, time\nend = time.monotonic() + 0.2\nos.symlink('/boot.pyc', '/tmp/a'); open('/tmp/b', 'w').close()\n\
            def swap():\n    while time.monotonic() < end: os.rename('/tmp/a', '/tmp/c'); os.rename('/tmp/b', '/tmp/a'); os.rename('/tmp/a', '/tmp/b'); os.rename('/tmp/c', '/tmp/a')\n\
            def use():\n    while time.monotonic() < end:\n        for f in (lambda: os.chmod('/tmp/a', 0o777), lambda: os.truncate('/tmp/a', 0), lambda: os.link('/tmp/a', '/tmp/l'), lambda: os.unlink('/tmp/l')):\n            try: f()\n            except OSError: pass\n\
            t = [threading.Thread(target=f) for f in (swap, use, use)]\nfor x in t: x.start()\nfor x in t: x.join()\nprint(os.stat('/boot.pyc').st_size > 0)",
                "True\n",
            ),
            harmless(
                "its own source, folder and names gone",
                "import os, shutil\nos.unlink('/tmp/main.py'); os.mkdir('/tmp/d'); os.chdir('/tmp/d'); os.rmdir('/tmp/d'); os.chmod('/tmp', 0)\nprint('gone')",
                "gone\n",
            ),
            harmless(
                "mode bits",
                "import os\nopen('/tmp/f', 'w').close()\nfor m in (0o4777, 0o2777, 0o1777, 0):\n    os.chmod('/tmp/f', m); os.chmod('/tmp', m | 0o700)\nos.chmod('/tmp', 0)\nos.fchmod(1, 0)\ntry: os.fchmod(0, 0)\nexcept OSError: pass\nprint('set')",
                "set\n",
            ),
            harmless(
                "directories while they are read",
                "import os\nit = os.scandir('/tmp')\nfor i in range(2000): open('/tmp/%d' % i, 'w').close()\nn = sum(1 for _ in it)\nfor i in range(2000): os.unlink('/tmp/%d' % i)\nprint('read')",
                "read\n",
            ),
        ],
    );
}
