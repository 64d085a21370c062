//! What the private root holds: worked out once, outside, from the paths that the interpreter needs.
//!
//! Every needed path is followed link by link, so that inside it is reached by the same name as outside, and only
//! its last, real file or folder is bound. Parents become empty folders: nothing else of them is visible.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Links in a row before a path counts as a loop; the kernel's own figure.
const MOST_LINKS: usize = 40;

/// The plan of a private root. All paths are absolute, and but for `placed` the same inside and outside.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RootPlan {
    /// Empty folders.
    pub folders: BTreeSet<PathBuf>,
    /// Symbolic links and what they say.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Files (false) and folders (true) of the host that are visible, read-only.
    pub bound: BTreeMap<PathBuf, bool>,
    /// Files and folders of the host (second, without links on the way) that are visible, read-only, under another name.
    pub placed: BTreeMap<PathBuf, PathBuf>,
    /// Folders inside bound ones that an empty folder hides.
    pub hidden: BTreeSet<PathBuf>,
    /// Files with given contents, read-only.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

impl RootPlan {
    /// Makes `path` visible, with all links on the way.
    pub(crate) fn add(&mut self, path: &Path) -> io::Result<()> {
        if !path.is_absolute() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{} is not absolute", path.display()),
            ));
        }
        let mut rest: VecDeque<OsString> = components(path);
        let mut here = PathBuf::from("/");
        let mut links = 0;
        while let Some(next) = rest.pop_front() {
            if next == ".." {
                here.pop();
                continue;
            }
            let step = here.join(&next);
            let kind = step.symlink_metadata()?.file_type();
            if !kind.is_symlink() {
                here = step;
                continue;
            }
            links += 1;
            if links > MOST_LINKS {
                return Err(io::Error::from_raw_os_error(libc::ELOOP));
            }
            let target = step.read_link()?;
            if target.is_absolute() {
                here = PathBuf::from("/");
            }
            for part in components(&target).into_iter().rev() {
                rest.push_front(part);
            }
            self.links.insert(step, target);
        }
        let folder = here.metadata()?.is_dir();
        self.bound.insert(here, folder);
        Ok(())
    }

    /// Hides a folder below a bound one, if it is there.
    pub(crate) fn hide(&mut self, path: &Path) {
        if path.symlink_metadata().is_ok_and(|m| m.is_dir()) {
            self.hidden.insert(path.to_path_buf());
        }
    }

    /// Drops what a bound folder already shows and fills in the parents.
    pub(crate) fn finish(mut self) -> Self {
        let folders: Vec<PathBuf> = self
            .bound
            .iter()
            .filter(|(_, folder)| **folder)
            .map(|(p, _)| p.clone())
            .collect();
        let shown = |path: &Path| folders.iter().any(|f| path != f && path.starts_with(f));
        self.bound.retain(|path, _| !shown(path));
        self.links.retain(|path, _| !shown(path));
        self.hidden.retain(|path| shown(path));
        let named = self
            .bound
            .keys()
            .chain(self.links.keys())
            .chain(self.placed.keys())
            .chain(self.files.keys());
        let parents: Vec<PathBuf> = named
            .flat_map(|p| p.ancestors().skip(1))
            .map(Path::to_path_buf)
            .collect();
        self.folders
            .extend(parents.into_iter().filter(|p| p.parent().is_some()));
        self
    }
}

fn components(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_os_string()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_kept_and_only_the_end_is_bound() {
        let place = tempfile::tempdir().expect("a folder");
        let base = place.path().canonicalize().expect("real");
        fs::create_dir_all(base.join("real/lib")).expect("made");
        fs::write(base.join("real/lib/x.so.1"), "x").expect("made");
        symlink("x.so.1", base.join("real/lib/x.so")).expect("made");
        symlink("real", base.join("alias")).expect("made");
        let mut plan = RootPlan::default();
        plan.add(&base.join("alias/../alias/lib/x.so"))
            .expect("found");
        let plan = plan.finish();
        assert_eq!(
            plan.bound,
            BTreeMap::from([(base.join("real/lib/x.so.1"), false)])
        );
        assert_eq!(plan.links[&base.join("alias")], PathBuf::from("real"));
        assert_eq!(
            plan.links[&base.join("real/lib/x.so")],
            PathBuf::from("x.so.1")
        );
        assert!(plan.folders.contains(&base.join("real/lib")));
        assert!(!plan.folders.contains(Path::new("/")));
    }

    #[test]
    fn what_a_bound_folder_shows_is_not_bound_again() {
        let place = tempfile::tempdir().expect("a folder");
        let base = place.path().canonicalize().expect("real");
        fs::create_dir_all(base.join("lib/site-packages")).expect("made");
        fs::write(base.join("lib/a.py"), "").expect("made");
        let mut plan = RootPlan::default();
        plan.add(&base.join("lib/a.py")).expect("found");
        plan.add(&base.join("lib")).expect("found");
        plan.hide(&base.join("lib/site-packages"));
        plan.hide(&base.join("lib/dist-packages"));
        let plan = plan.finish();
        assert_eq!(plan.bound, BTreeMap::from([(base.join("lib"), true)]));
        assert_eq!(
            plan.hidden,
            BTreeSet::from([base.join("lib/site-packages")])
        );
    }

    #[test]
    fn loops_and_missing_files_are_errors() {
        let place = tempfile::tempdir().expect("a folder");
        symlink("b", place.path().join("a")).expect("made");
        symlink("a", place.path().join("b")).expect("made");
        let mut plan = RootPlan::default();
        assert_eq!(
            plan.add(&place.path().join("a"))
                .unwrap_err()
                .raw_os_error(),
            Some(libc::ELOOP)
        );
        assert_eq!(
            plan.add(&place.path().join("none")).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(
            plan.add(Path::new("x")).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
    }
}
