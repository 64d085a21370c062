//! The same small programs in each language.

/// Programs of one language.
pub(super) struct Sources {
    pub language: &'static str,
    /// Prints the sum of the numbers on stdin.
    pub sum: &'static str,
    /// Prints what `bytes` of memory hold that have been written to, 30 MiB.
    pub holds: &'static str,
    /// Says so on stderr and exits with status 3.
    pub exits: &'static str,
    /// Ends by a signal or an uncaught error.
    pub crashes: &'static str,
    /// Never ends, and never sleeps.
    pub spins: &'static str,
    /// Takes and uses memory without end.
    pub hogs: &'static str,
    /// Prints without end.
    pub floods: &'static str,
    /// Eight threads add up to 36.
    pub threads: &'static str,
    /// Does not compile; the line where is the second.
    pub wrong: &'static str,
}

pub(super) const ALL: [Sources; 6] = [
    Sources {
        language: "c",
        sum: "#include <stdio.h>\nint main(void) { long x, s = 0; while (scanf(\"%ld\", &x) == 1) s += x; printf(\"%ld\\n\", s); }",
        holds: "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void) { size_t n = 30 << 20; char *p = malloc(n); memset(p, 1, n); printf(\"%zu\\n\", n * p[n / 2]); }",
        exits: "#include <stdio.h>\nint main(void) { fputs(\"three\", stderr); return 3; }",
        crashes: "#include <stdlib.h>\nint main(void) { abort(); }",
        spins: "int main(void) { for (volatile int i = 0;; i++) ; }",
        hogs: "#include <stdlib.h>\n#include <string.h>\nint main(void) { for (;;) { void *p = malloc(1 << 20); if (!p) return 9; memset(p, 1, 1 << 20); } }",
        floods: "#include <stdio.h>\nint main(void) { for (;;) puts(\"flood\"); }",
        threads: "#include <pthread.h>\n#include <stdio.h>\nstatic int s; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic void *f(void *x) { pthread_mutex_lock(&m); s += (int)(long)x; pthread_mutex_unlock(&m); return 0; }\nint main(void) { pthread_t t[8]; for (long i = 0; i < 8; i++) if (pthread_create(t + i, 0, f, (void *)(i + 1))) return 1; for (int i = 0; i < 8; i++) pthread_join(t[i], 0); printf(\"%d\\n\", s); }",
        wrong: "int main(void) {\n  return nothing;\n}",
    },
    Sources {
        language: "cpp",
        sum: "#include <bits/stdc++.h>\nint main() { long x, s = 0; while (std::cin >> x) s += x; std::cout << s << '\\n'; }",
        holds: "#include <iostream>\n#include <vector>\nint main() { std::vector<char> v(30 << 20, 1); std::cout << v.size() * v[1000] << '\\n'; }",
        exits: "#include <iostream>\nint main() { std::cerr << \"three\"; return 3; }",
        crashes: "#include <stdexcept>\nint main() { throw std::runtime_error(\"uncaught\"); }",
        spins: "int main() { for (volatile int i = 0;; i = i + 1) ; }",
        hogs: "#include <vector>\nint main() { std::vector<std::vector<char>> v; for (;;) v.emplace_back(1 << 20, 1); }",
        floods: "#include <iostream>\nint main() { for (;;) std::cout << \"flood\" << std::endl; }",
        threads: "#include <atomic>\n#include <iostream>\n#include <thread>\n#include <vector>\nint main() { std::atomic<int> s = 0; std::vector<std::thread> t; for (int i = 1; i <= 8; i++) t.emplace_back([&s, i] { s += i; }); for (auto &x : t) x.join(); std::cout << s << '\\n'; }",
        wrong: "int main() {\n  return nothing;\n}",
    },
    Sources {
        language: "rust",
        sum: "use std::io::Read;\nfn main() { let mut s = String::new(); std::io::stdin().read_to_string(&mut s).unwrap(); println!(\"{}\", s.split_whitespace().map(|x| x.parse::<i64>().unwrap()).sum::<i64>()); }",
        holds: "fn main() { let v = vec![1u8; 30 << 20]; println!(\"{}\", v.iter().map(|x| *x as usize).sum::<usize>()); }",
        exits: "fn main() { eprint!(\"three\"); std::process::exit(3); }",
        crashes: "fn main() { std::process::abort(); }",
        spins: "fn main() { loop { std::hint::black_box(1); } }",
        hogs: "fn main() { let mut v = Vec::new(); loop { v.push(std::hint::black_box(vec![1u8; 1 << 20])); } }",
        floods: "fn main() { loop { println!(\"flood\"); } }",
        threads: "fn main() { let t: Vec<_> = (1..=8).map(|i| std::thread::spawn(move || i)).collect(); println!(\"{}\", t.into_iter().map(|t| t.join().unwrap()).sum::<i32>()); }",
        wrong: "fn main() {\n  nothing();\n}",
    },
    Sources {
        language: "java",
        sum: "import java.util.*;\npublic class Main { public static void main(String[] a) { Scanner in = new Scanner(System.in); long s = 0; while (in.hasNextLong()) s += in.nextLong(); System.out.println(s); } }",
        holds: "public class Main { public static void main(String[] a) { byte[] b = new byte[30 << 20]; java.util.Arrays.fill(b, (byte) 1); System.out.println((long) b.length * b[1000]); } }",
        exits: "public class Main { public static void main(String[] a) { System.err.print(\"three\"); System.exit(3); } }",
        crashes: "public class Main { public static void main(String[] a) { throw new IllegalStateException(\"uncaught\"); } }",
        spins: "public class Main { public static void main(String[] a) { long i = 0; while (true) i++; } }",
        hogs: "import java.util.*;\npublic class Main { public static void main(String[] a) { List<byte[]> l = new ArrayList<>(); while (true) l.add(new byte[1 << 20]); } }",
        floods: "public class Main { public static void main(String[] a) { while (true) System.out.println(\"flood\"); } }",
        threads: "import java.util.concurrent.atomic.*;\npublic class Main { public static void main(String[] a) throws Exception { AtomicInteger s = new AtomicInteger(); Thread[] t = new Thread[8]; for (int i = 0; i < 8; i++) { int n = i + 1; t[i] = new Thread(() -> s.addAndGet(n)); t[i].start(); } for (Thread x : t) x.join(); System.out.println(s); } static class Other {} }",
        wrong: "public class Main {\n  int f() { return nothing; }\n}",
    },
    Sources {
        language: "go",
        sum: "package main\nimport \"fmt\"\nfunc main() { var x, s int; for { if _, e := fmt.Scan(&x); e != nil { break }; s += x }; fmt.Println(s) }",
        holds: "package main\nimport \"fmt\"\nfunc main() { b := make([]byte, 30<<20); for i := range b { b[i] = 1 }; fmt.Println(len(b) * int(b[1000])) }",
        exits: "package main\nimport \"os\"\nfunc main() { os.Stderr.WriteString(\"three\"); os.Exit(3) }",
        crashes: "package main\nfunc main() { panic(\"uncaught\") }",
        spins: "package main\nfunc main() { for i := 0; ; i++ { } }",
        hogs: "package main\nvar kept [][]byte\nfunc main() { for { b := make([]byte, 1<<20); for i := range b { b[i] = 1 }; kept = append(kept, b) } }",
        floods: "package main\nimport \"fmt\"\nfunc main() { for { fmt.Println(\"flood\") } }",
        threads: "package main\nimport (\"fmt\"; \"sync\"; \"sync/atomic\"; \"runtime\")\nfunc main() { var s int64; var w sync.WaitGroup; for i := int64(1); i <= 8; i++ { w.Add(1); go func(n int64) { runtime.LockOSThread(); atomic.AddInt64(&s, n); w.Done() }(i) }; w.Wait(); fmt.Println(s) }",
        wrong: "package main\nfunc main() { nothing() }\n",
    },
    Sources {
        language: "javascript",
        sum: "const s = require('fs').readFileSync(0, 'utf8').split(/\\s+/).filter(Boolean).map(Number).reduce((a, b) => a + b, 0);\nconsole.log(s);",
        holds: "const b = Buffer.alloc(30 << 20, 1);\nconsole.log(b.length * b[1000]);",
        exits: "process.stderr.write('three');\nprocess.exitCode = 3;",
        crashes: "throw new Error('uncaught');",
        spins: "for (;;);",
        hogs: "const kept = [];\nfor (;;) kept.push(new Array(10000).fill(kept.length));",
        floods: "for (;;) require('fs').writeSync(1, 'flood\\n');",
        threads: "const { Worker } = require('worker_threads');\nlet s = 0, left = 3;\nfor (const n of [1, 2, 33]) new Worker('require(\"worker_threads\").parentPort.postMessage(require(\"worker_threads\").workerData)', { eval: true, workerData: n, resourceLimits: { maxOldGenerationSizeMb: 8 } }).on('message', (m) => { s += m; if (!--left) console.log(s); });",
        wrong: "let x = 1;\nlet x = = 2;\n",
    },
];
