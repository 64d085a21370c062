//! The files of a package, in a folder or a zip archive: read by their paths in it, never from outside of it, and never
//! more bytes in all than allowed.

mod zip;

use self::zip::Archive;
use super::PackageError;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where the files are.
enum Store {
    /// A folder, by its path without links.
    Folder(PathBuf),
    Archive(Box<Archive>),
}

pub(super) struct Files {
    store: Store,
    /// Bytes that may still be read.
    left: u64,
    most: u64,
}

impl Files {
    /// Opens a folder or an archive.
    pub(super) fn open(path: &Path, most: u64) -> Result<Self, PackageError> {
        let store = if path.is_dir() {
            let root = path
                .canonicalize()
                .map_err(|error| PackageError::new("", ".", error.to_string()))?;
            Store::Folder(root)
        } else {
            Store::Archive(Box::new(Archive::open(path, most)?))
        };
        Ok(Self {
            store,
            left: most,
            most,
        })
    }

    /// The names in a folder and whether each is a folder itself, sorted; none where there is no such folder.
    pub(super) fn list(&self, folder: &str) -> Result<Vec<(String, bool)>, PackageError> {
        let mut names = match &self.store {
            Store::Archive(archive) => archive.list(folder)?,
            Store::Folder(root) => {
                let Some(place) = inside(root, folder)? else {
                    return Ok(Vec::new());
                };
                if !place.is_dir() {
                    return Ok(Vec::new());
                }
                let fail =
                    |error: std::io::Error| PackageError::new(folder, ".", error.to_string());
                let mut names = Vec::new();
                for entry in place.read_dir().map_err(fail)? {
                    let name = entry.map_err(fail)?.file_name();
                    let Some(name) = name.to_str() else {
                        let what = format!("holds the name {name:?}, which is no UTF-8; rename it");
                        return Err(PackageError::new(folder, ".", what));
                    };
                    let is_folder = place.join(name).is_dir();
                    names.push((name.to_owned(), is_folder));
                }
                names
            }
        };
        names.retain(|(name, _)| {
            !name.starts_with('.') && name != "__MACOSX" && name != "__pycache__"
        });
        names.sort();
        Ok(names)
    }

    /// The size of a file; `None` where there is none.
    pub(super) fn size(&self, path: &str) -> Result<Option<u64>, PackageError> {
        match &self.store {
            Store::Archive(archive) => archive.size(path),
            Store::Folder(root) => {
                let about = inside(root, path)?.and_then(|place| std::fs::metadata(place).ok());
                Ok(about
                    .filter(std::fs::Metadata::is_file)
                    .map(|about| about.len()))
            }
        }
    }

    /// The bytes of a file; `None` where there is none.
    pub(super) fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, PackageError> {
        let Some(size) = self.size(path)? else {
            return Ok(None);
        };
        let too_much = |most| {
            let what = format!(
                "with it the package takes more than {most} bytes, the limit for one problem; raise the limit, or leave \
                 large tests out"
            );
            PackageError::severe(path, what)
        };
        if size > self.left {
            return Err(too_much(self.most));
        }
        let mut bytes = Vec::new();
        // What an archive says of sizes need not be true.
        let limit = self.left.saturating_add(1);
        let read = match &mut self.store {
            Store::Archive(archive) => archive.read(path, limit, &mut bytes),
            Store::Folder(root) => {
                let Some(place) = inside(root, path)? else {
                    return Ok(None);
                };
                std::fs::File::open(place)
                    .and_then(|file| file.take(limit).read_to_end(&mut bytes))
                    .map_err(|error| error.to_string())
            }
        };
        read.map_err(|error| PackageError::new(path, ".", error))?;
        if bytes.len() as u64 > self.left {
            return Err(too_much(self.most));
        }
        self.left -= bytes.len() as u64;
        Ok(Some(bytes))
    }

    /// The text of a file; `None` where there is none.
    pub(super) fn text(&mut self, path: &str) -> Result<Option<String>, PackageError> {
        let Some(bytes) = self.read(path)? else {
            return Ok(None);
        };
        String::from_utf8(bytes).map(Some).map_err(|error| {
            PackageError::new(
                path,
                ".",
                format!("is no UTF-8 text: {}", error.utf8_error()),
            )
        })
    }

    /// The text of a file in which a few bytes of an old encoding do no harm.
    pub(super) fn lossy_text(&mut self, path: &str) -> Result<Option<String>, PackageError> {
        let bytes = self.read(path)?;
        Ok(bytes.map(|bytes| match String::from_utf8(bytes) {
            Ok(text) => text,
            // Latin-1: each byte is its character.
            Err(error) => error.into_bytes().into_iter().map(char::from).collect(),
        }))
    }

    /// Every file under a folder, by paths relative to it, sorted.
    pub(super) fn tree(&self, folder: &str) -> Result<Vec<String>, PackageError> {
        let mut found = BTreeSet::new();
        self.gather(folder, "", 0, &mut found)?;
        Ok(found.into_iter().collect())
    }

    fn gather(
        &self,
        folder: &str,
        under: &str,
        depth: usize,
        found: &mut BTreeSet<String>,
    ) -> Result<(), PackageError> {
        if depth > DEEPEST || found.len() > MOST_FILES {
            let what = "is nested too deep or holds too many files; does a link lead back into it?";
            return Err(PackageError::severe(folder, what));
        }
        for (name, is_folder) in self.list(folder)? {
            let inner = join(under, &name);
            if is_folder {
                self.gather(&join(folder, &name), &inner, depth + 1, found)?;
            } else {
                found.insert(inner);
            }
        }
        Ok(())
    }
}

/// Folders within folders that are followed.
pub(super) const DEEPEST: usize = 12;
/// Files of one program.
const MOST_FILES: usize = 1000;

/// A path in a package.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// The place of a path, links resolved; `None` where nothing is. What leads out of the package is an error.
fn inside(root: &Path, path: &str) -> Result<Option<PathBuf>, PackageError> {
    let Ok(place) = root.join(path).canonicalize() else {
        return Ok(None);
    };
    if place.starts_with(root) {
        Ok(Some(place))
    } else {
        Err(PackageError::severe(
            path,
            "is a link that leads out of the package; put a copy in its place",
        ))
    }
}
