//! Where below its own group a process may make groups that have an ability.
//!
//! In version 2 a controller works in a group only if the group above hands it on, and a group that hands any on holds
//! no processes itself. A group that was lent to this process alone (as by `systemd-run --user --scope -p
//! Delegate=yes`) therefore has to be emptied first: the process moves into a group of its own below it. Where others
//! are in the group too, or the hierarchy's root would have to be changed, nothing is done: they are not ours.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::find::{Hierarchy, Version};
use super::{Ability, describe, leftovers};

/// The folder to make groups in, or why there is none.
pub(super) fn prepare(hierarchy: &Hierarchy, ability: Ability) -> Result<PathBuf, String> {
    let folder = leftovers::home(&hierarchy.folder);
    let writable = |path: &Path| {
        access(path, AccessFlags::W_OK).map_err(|e| describe(path, &io::Error::from(e)))
    };
    writable(folder)?;
    if hierarchy.version == Version::Two {
        // Moving a process takes the right to change the group above both its places.
        writable(&folder.join("cgroup.procs"))?;
        match ability {
            Ability::Memory => hand_on("memory", folder)?,
            Ability::Tasks => hand_on("pids", folder)?,
            Ability::Cpu | Ability::Kill => {}
        }
    }
    Ok(folder.to_path_buf())
}

/// Sees to it that groups below `folder` have a controller.
fn hand_on(controller: &str, folder: &Path) -> Result<(), String> {
    let lists = |file: &str| {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).map_err(|e| describe(&path, &e))?;
        Ok::<_, String>(text.split_whitespace().any(|word| word == controller))
    };
    if lists("cgroup.subtree_control")? {
        return Ok(());
    }
    let shown = folder.display();
    if !lists("cgroup.controllers")? {
        return Err(format!("{shown} has no {controller} controller"));
    }
    // Only the root has no type.
    if !folder.join("cgroup.type").exists() {
        return Err(format!(
            "{shown} does not hand on its {controller} controller"
        ));
    }
    let switch = folder.join("cgroup.subtree_control");
    let order = format!("+{controller}");
    match fs::write(&switch, &order) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            let own = std::process::id().to_string();
            if members.lines().any(|member| member != own) {
                return Err(format!("other processes are in the group {shown}"));
            }
            let stay = folder.join(leftovers::own_name().map_err(|e| describe(folder, &e))?);
            let moved = fs::create_dir(&stay)
                .and_then(|()| fs::write(stay.join("cgroup.procs"), &own))
                .and_then(|()| fs::write(&switch, &order));
            moved.map_err(|error| {
                let _ = fs::write(folder.join("cgroup.procs"), &own);
                let _ = fs::remove_dir(&stay);
                describe(&stay, &error)
            })
        }
        other => other.map_err(|error| describe(&switch, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the files of a group, as far as they are read here.
    fn group(files: &[(&str, &str)]) -> (tempfile::TempDir, Hierarchy) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("written");
        }
        let hierarchy = Hierarchy {
            version: Version::Two,
            controllers: Vec::new(),
            folder: folder.path().to_path_buf(),
        };
        (folder, hierarchy)
    }

    #[test]
    fn what_is_handed_on_is_used_and_nothing_else_is_changed() {
        let (folder, hierarchy) = group(&[
            ("cgroup.procs", ""),
            ("cgroup.controllers", "cpu memory pids\n"),
            ("cgroup.subtree_control", "memory\n"),
        ]);
        assert_eq!(
            prepare(&hierarchy, Ability::Memory).as_deref(),
            Ok(folder.path())
        );
        assert_eq!(
            prepare(&hierarchy, Ability::Cpu).as_deref(),
            Ok(folder.path())
        );
        // It looks like the root: not ours to change.
        let refused = prepare(&hierarchy, Ability::Tasks).expect_err("refused");
        assert!(refused.contains("does not hand on its pids"), "{refused}");
        let control = fs::read_to_string(folder.path().join("cgroup.subtree_control"));
        assert_eq!(control.expect("read"), "memory\n");
    }

    #[test]
    fn what_is_missing_is_said() {
        let (_folder, hierarchy) = group(&[
            ("cgroup.procs", ""),
            ("cgroup.controllers", "hugetlb memory_x\n"),
            ("cgroup.subtree_control", ""),
        ]);
        let refused = prepare(&hierarchy, Ability::Memory).expect_err("refused");
        assert!(refused.contains("has no memory controller"), "{refused}");
        let gone = Hierarchy {
            folder: "/nowhere".into(),
            ..hierarchy
        };
        let refused = prepare(&gone, Ability::Cpu).expect_err("refused");
        assert!(refused.contains("/nowhere: No such file"), "{refused}");
    }
}
