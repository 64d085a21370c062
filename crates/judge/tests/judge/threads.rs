//! A system that has no more threads to give.

use rlef_judge::map_in_order;

#[test]
fn without_threads_the_caller_does_the_work() {
    let own = std::env::current_exe().expect("known");
    let name = "threads::alone_of_its_user";
    let output = std::process::Command::new(own)
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "--test-threads=1",
            name,
        ])
        .env("ALONE", "1")
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

#[test]
#[ignore = "started by without_threads_the_caller_does_the_work, in a process of its own"]
fn alone_of_its_user() {
    if std::env::var_os("ALONE").is_none() {
        return;
    }
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, |all| all.count()) as u64;
    // A user of whom there is nothing else; root has no limit on processes. An ordinary user has more elsewhere.
    // SAFETY: plain numbers; this process does nothing but this test.
    unsafe { libc::setresuid(61_235, 61_235, 61_235) };
    for more in 0..4 {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the structure is valid for both calls.
        let set = unsafe {
            libc::getrlimit(libc::RLIMIT_NPROC, &raw mut limit);
            limit.rlim_cur = threads + more;
            libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit)
        };
        assert_eq!(set, 0);
        if more == 0 {
            assert!(
                std::thread::Builder::new().spawn(|| ()).is_err(),
                "there is no limit"
            );
        }
        let results = map_in_order((0..40).collect(), 4, |n| n * n);
        assert_eq!(results, (0..40).map(|n| n * n).collect::<Vec<_>>());
    }
}
