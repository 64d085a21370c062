//! Compiles the warm interpreter's helper (`native/fork.rs`) into a shared object, with the compiler that compiles
//! everything else, so that nothing but cargo is needed. For other systems than it is written for it is left empty:
//! programs are then started afresh.

use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=native");
    println!("cargo::rerun-if-changed=src/launcher/order.rs");
    println!("cargo::rerun-if-changed=build.rs");
    let get = |name: &str| std::env::var(name);
    let output = PathBuf::from(get("OUT_DIR")?).join("fork.so");
    if (
        get("CARGO_CFG_TARGET_ARCH")?.as_str(),
        get("CARGO_CFG_TARGET_OS")?.as_str(),
    ) != ("x86_64", "linux")
    {
        std::fs::write(output, "")?;
        return Ok(());
    }
    let mut compiler = Command::new(get("RUSTC")?);
    compiler
        .args([
            "--edition=2024",
            "--crate-type=cdylib",
            "--crate-name=fork",
            "--target",
        ])
        .arg(get("TARGET")?);
    compiler.args([
        "-Cpanic=abort",
        "-Copt-level=2",
        "-Cstrip=symbols",
        "-Crelocation-model=pic",
    ]);
    // Nothing of this target's libc: the interpreter may have another.
    compiler.args([
        "-Ctarget-feature=-crt-static",
        "-Clink-arg=-nostdlib",
        "-Clink-arg=-Wl,-z,now",
    ]);
    if let Ok(linker) = get("RUSTC_LINKER") {
        compiler.arg(format!("-Clinker={linker}"));
    }
    compiler.arg("-o").arg(&output).arg("native/fork.rs");
    let status = compiler.status()?;
    if !status.success() {
        return Err(format!("native/fork.rs does not compile: {compiler:?}: {status}").into());
    }
    Ok(())
}
