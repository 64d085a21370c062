//! Which device computes. Asking the backend for a GPU that is not there aborts deep inside it, so the driver is
//! looked for first.

use burn::tensor::Device;

use crate::ModelError;

/// Opens `cpu`, `cuda` or `cuda:N`.
///
/// # Errors
/// [`ModelError::Device`] for an unknown name, a build without the `cuda` feature, or a machine without driver.
pub fn open(name: &str) -> Result<Device, ModelError> {
    let fail = |why: String| ModelError::Device {
        device: name.to_owned(),
        why,
    };
    match name.split_once(':') {
        None if name == "cpu" => Ok(Device::flex()),
        None if name == "cuda" => cuda(0).map_err(fail),
        Some(("cuda", index)) => {
            let index = index
                .parse()
                .map_err(|_| fail(format!("{index:?} is not a device number; use cuda:0")))?;
            cuda(index).map_err(fail)
        }
        _ => Err(fail("unknown; use cpu, cuda or cuda:N".into())),
    }
}

#[cfg(not(feature = "cuda"))]
fn cuda(_: usize) -> Result<Device, String> {
    Err(
        "this rlef was built without CUDA; build with `--features cuda`, or use --device cpu"
            .into(),
    )
}

#[cfg(feature = "cuda")]
fn cuda(index: usize) -> Result<Device, String> {
    let gpus = std::fs::read_dir("/proc/driver/nvidia/gpus")
        .map(|d| d.count())
        .unwrap_or(0);
    // Inside some containers /proc/driver is hidden although the device nodes are there.
    let nodes = (0..64)
        .filter(|i| std::path::Path::new(&format!("/dev/nvidia{i}")).exists())
        .count();
    let found = gpus.max(nodes);
    if found == 0 {
        return Err("no NVIDIA driver or GPU on this machine (looked in /proc/driver/nvidia/gpus and /dev/nvidia*); \
                    install the driver or use --device cpu"
            .into());
    }
    if index >= found {
        return Err(format!(
            "there are {found} NVIDIA GPUs here, numbered from 0"
        ));
    }
    Ok(Device::cuda(index))
}
