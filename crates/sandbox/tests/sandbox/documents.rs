//! The documents name tests for what they promise: those tests exist.

use std::process::Command;

use crate::text;

#[test]
fn every_test_that_a_document_names_exists() {
    let list = Command::new(std::env::current_exe().expect("known"))
        .arg("--list")
        .output()
        .expect("listed");
    let list = text(&list.stdout);
    let known: Vec<&str> = list
        .lines()
        .filter_map(|l| l.strip_suffix(": test"))
        .collect();
    let documents = [
        include_str!("../../SECURITY.md"),
        include_str!("../../ATTACKS.md"),
    ];
    let mut named = 0;
    for document in documents {
        for name in document.split('`').skip(1).step_by(2) {
            // Those of the policy, the control groups, the launcher and compilers' messages are beside them, not in this binary.
            let test = name.contains("::") && name.chars().all(|c| !c.is_uppercase() && c != ' ');
            let beside = ["policy::", "cgroup::", "launcher::", "language::message::"];
            if !test || beside.iter().any(|b| name.starts_with(b)) {
                continue;
            }
            let there = match name.strip_suffix('*') {
                Some(start) => known.iter().any(|k| k.starts_with(start)),
                None => known.contains(&name),
            };
            assert!(there, "there is no test {name}");
            named += 1;
        }
    }
    assert!(named > 60, "{named}");
}
