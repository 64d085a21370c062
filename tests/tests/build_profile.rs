//! Testing and running must share one build of burn, which takes minutes: no package that burn is made of may get other
//! features in the one than in the other.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Packages with every set of features they are built with.
fn tree(arguments: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--prefix", "none", "--format", "{p};{f}"])
        .args(arguments)
        .current_dir(rlef_tests::root())
        .output()
        .expect("cargo starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8(output.stdout).expect("text");
    let mut packages: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines() {
        // ` (*)`: shown above.
        let line = line.trim_end_matches(" (*)");
        if let Some((package, features)) = line.split_once(';') {
            packages
                .entry(package.to_owned())
                .or_default()
                .insert(features.to_owned());
        }
    }
    packages
}

#[test]
fn burn_is_built_once() {
    let burn = tree(&["-p", "burn", "-e", "normal,build"]);
    let running = tree(&["-p", "rlef", "-e", "normal,build"]);
    let testing = tree(&["--workspace", "-e", "normal,build,dev"]);
    assert!(burn.keys().any(|p| p.starts_with("burn-flex ")), "{burn:?}");
    let mut differ = vec![];
    for package in burn.keys().filter(|p| running.contains_key(*p)) {
        if running[package] != testing[package] {
            differ.push(format!(
                "{package}: {:?} when running, {:?} when testing",
                running[package], testing[package]
            ));
        }
    }
    assert!(
        differ.is_empty(),
        "name these packages in crates/cli/Cargo.toml with the features that testing adds:\n{}",
        differ.join("\n")
    );
}
